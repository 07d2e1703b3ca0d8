//! Takes the rows of several buckets at once, stored ones and those that only journals have, for stages that compute
//! something of all of them. If the same buckets are read again, their joined rows may still be in memory.

// Loaded later.

use std::rc::Rc;

use super::sieve::Sieve;
use crate::block::{Block, common_order};
use crate::bucket::{ColumnRoom, JoinedFields, KeptColumns, TimeseriesOptions, joined_rows, unpack};
use crate::engine::collections::collection::Collection;
use crate::engine::journal::{SectionGroup, Tail};
use crate::engine::read::unit::Unit;
use crate::engine::store::stored_bucket::StoredBucket;
use crate::error::Result;
use crate::limits::{
    JOINED_BUCKETS_SHARE, JOINED_ROWS_FROM, ROWS_TOGETHER, ROWS_TOGETHER_SIZE_BYTES_MAX, SMALL_BUCKET_ROWS,
};
use crate::listed::IntoList;
use crate::query::{Exec, Flow, Queue, ReadPlan, Sink, Which};
use crate::value::{FieldSet, Value, hash};

/// Passes on the rows of the next buckets at once, until there are as many as `wanted`, and returns how many buckets these are. 0 if the next one must be taken
/// alone, because it is in part stored and in part in journals, or because most rows of large buckets may not match.
///
/// Errors: those of projections; `DataCorruptionDetected`.
pub(super) fn take_joined(
    collection: &Collection,
    plan: &ReadPlan,
    (sieve, room): (&Sieve, &Rc<ColumnRoom>),
    exec: &mut Exec,
    wanted: usize,
    units: &mut dyn Iterator<Item = &Unit>,
) -> Result<(usize, Flow)> {
    // A query may have enough with the first rows.
    if !can_join(plan, exec) || exec.counters().measurements_matched < JOINED_ROWS_FROM {
        return Ok((0, Flow::Continue));
    }
    let entry = collection.entry();
    let options = &entry.options.timeseries;
    let mut parts: Vec<JoinedPart<'_>> = Vec::new();
    let (mut rows, mut size_bytes, mut all_match) = (0, 0, true);
    let (mut taken, mut left_out) = (0, 0);
    for unit in units {
        let group = unit.unfolded();
        // Counting takes no columns of rows in journals.
        if group.is_some() && (unit.stored.is_some() || plan.only_counts()) {
            break;
        }
        let found = match &unit.stored {
            Some(stored) => JoinedPart::of_stored(plan, stored, options),
            None => group.map_or(Ok(None), |group| JoinedPart::of_journal(plan, sieve, (unit, group), options)),
        };
        // Damage and failing filters are reported by whoever takes the bucket alone, if that happens: rows before it may be
        // enough.
        let Ok(found) = found else { break };
        let Some(part) = found else {
            taken += 1;
            left_out += usize::from(parts.is_empty());
            continue;
        };
        if !is_worth_it(plan, exec, &part) {
            break;
        }
        taken += 1;
        part.rows_in.kept().allow(room);
        rows += part.rows;
        size_bytes += part.rows_in.size_bytes();
        all_match &= part.all_match;
        let ends_here = ends_here(unit, part.rows);
        parts.push(part);
        let most = if plan.columns.is_all() { ROWS_TOGETHER / 2 } else { 4 * ROWS_TOGETHER };
        if rows >= wanted.min(most)
            || rows >= ROWS_TOGETHER / 2 && ends_here
            || size_bytes >= ROWS_TOGETHER_SIZE_BYTES_MAX
        {
            break;
        }
    }
    if parts.len() < 2 {
        return Ok((left_out, Flow::Continue));
    }
    let kept: Vec<_> = parts.iter().map(|part| (part.rows_in.kept(), part.rows)).listed();
    let (columns, has_meta) = (Rc::clone(&plan.columns), plan.plan.wants_meta);
    let in_any_order = plan.plan.in_any_order;
    let fields = JoinedFields { columns, has_meta, in_any_order, only: None };
    let mut make = || {
        let mut blocks = Vec::with_capacity(parts.len());
        for part in &parts {
            let Ok(rows) = part.rows_in.columns(&plan.columns, options) else { return Ok(Vec::new()) };
            blocks.push(exec.complete(rows, part.meta));
        }
        Ok(joined(blocks, in_any_order))
    };
    // As in `unpack`, reads of all fields replace nothing that is kept.
    let joined = if plan.columns.is_all() { make()? } else { joined_rows(&kept, &fields, &mut make)? };
    if joined.is_empty() {
        return Ok((left_out, Flow::Continue));
    }
    let matched_before = exec.counters().measurements_matched;
    let mut selected = Vec::with_capacity(joined.len());
    for block in &joined {
        match exec.select_complete(block, all_match) {
            Ok(rows) => selected.push(rows),
            Err(_) => {
                exec.has_failed = true;
                return Ok((left_out, Flow::Continue));
            }
        }
    }
    let counters = exec.counters();
    counters.buckets_passed += parts.len() as u64;
    counters.unpacked(parts.len() as u64, matched_before);
    let mut flow = Flow::Continue;
    for (block, rows) in joined.into_iter().zip(selected) {
        flow = exec.collect(block, rows)?;
    }
    Ok((taken, flow))
}

/// A bucket that may have rows that match.
struct JoinedPart<'a> {
    rows_in: RowsIn<'a>,
    meta: Option<Value<'a>>,
    rows: usize,
    all_match: bool,
}

/// Where its rows are.
enum RowsIn<'a> {
    Stored(&'a StoredBucket),
    Journal(Rc<Tail>),
}

impl RowsIn<'_> {
    fn kept(&self) -> &KeptColumns {
        match self {
            RowsIn::Stored(stored) => stored.kept(),
            RowsIn::Journal(tail) => tail.kept(),
        }
    }

    fn size_bytes(&self) -> usize {
        match self {
            RowsIn::Stored(stored) => stored.size_bytes(),
            RowsIn::Journal(tail) => tail.size_bytes(),
        }
    }

    fn columns(&self, wanted: &FieldSet, options: &TimeseriesOptions) -> Result<Block> {
        match self {
            RowsIn::Stored(stored) => unpack(&stored.view(options)?, wanted, options),
            RowsIn::Journal(tail) => Ok(tail.columns(wanted)),
        }
    }
}

impl<'a> JoinedPart<'a> {
    /// A stored bucket; `None` if no row of it can match.
    ///
    /// Errors: those of filters on metadata; `DataCorruptionDetected`.
    fn of_stored(
        plan: &ReadPlan,
        stored: &'a StoredBucket,
        options: &TimeseriesOptions,
    ) -> Result<Option<JoinedPart<'a>>> {
        let view = stored.view(options)?;
        if !plan.may_match(&view)? {
            return Ok(None);
        }
        let (rows, all_match, meta) = (view.count()?, plan.all_match(&view), view.meta());
        Ok(Some(JoinedPart { rows_in: RowsIn::Stored(stored), meta, rows, all_match }))
    }

    /// The same for a bucket that only journals have.
    fn of_journal(
        plan: &ReadPlan,
        sieve: &Sieve,
        (unit, group): (&Unit, &'a SectionGroup),
        options: &TimeseriesOptions,
    ) -> Result<Option<JoinedPart<'a>>> {
        let (meta, times) = (group.meta(), group.times());
        if !plan.may_match_rows(meta, times.0, times.1)? || !sieve.may_match(plan, unit, group)? {
            return Ok(None);
        }
        let tail = unit.tail(group, options)?;
        let view = tail.summary(unit.id, meta);
        if !plan.may_match(&view)? {
            return Ok(None);
        }
        let (rows, all_match) = (tail.rows().rows(), plan.all_match(&view));
        Ok(Some(JoinedPart { rows_in: RowsIn::Journal(tail), meta, rows, all_match }))
    }
}

/// True if the rows of a bucket may be joined with others. Those of a bucket that matches in part are filtered afterwards, so most
/// buckets must have a row that matches, or else much is decoded and kept in vain; but the rows of a small bucket cost less than the
/// bucket. Where a filter fails, it must meet buckets one by one.
fn is_worth_it(plan: &ReadPlan, exec: &mut Exec, part: &JoinedPart<'_>) -> bool {
    if part.rows > SMALL_BUCKET_ROWS {
        let counters = exec.counters();
        let most_match = counters.buckets_matched * JOINED_BUCKETS_SHARE >= counters.buckets_unpacked;
        // Large buckets may not be needed as a whole, and take long to join. Of those in which all rows match, `control` may have
        // the extremes.
        let has_extremes = plan.plan.rows_per_group.is_some() && part.all_match;
        if plan.columns.is_all() || has_extremes || !part.all_match && !most_match {
            return false;
        }
    }
    part.all_match || !exec.has_failed
}

/// True if all rows that match are passed on, of whatever bucket they are.
fn can_join(plan: &ReadPlan, exec: &Exec) -> bool {
    !plan.is_over_buckets()
        && plan.plan.rows_per_group.as_ref().is_none_or(|wanted| wanted.which == Which::Extremes)
        && plan.plan.newest.is_none()
        && (!plan.asks_metadata() || plan.may_leave_out_series())
        && exec.takes_all()
}

/// True if the rows of the next buckets are joined anew, which is so for one in as many buckets as have
/// `ROWS_TOGETHER / 2` rows. It depends on the bucket alone, so that queries of other times join most of the same buckets.
fn ends_here(unit: &Unit, rows: usize) -> bool {
    let together = (ROWS_TOGETHER / 2 / rows.max(1)).max(1) as u64;
    hash(0, unit.id.as_bytes()).is_multiple_of(together)
}

/// Joins neighbours, unless they have the same fields in another order: the order of fields, which whole documents show,
/// must not depend on which rows are joined. It may if `in_any_order`.
pub(super) fn joined(blocks: Vec<Block>, in_any_order: bool) -> Vec<Block> {
    let together = in_any_order || common_order(&mut blocks.iter()).is_some();
    let mut queue = Queue::default();
    blocks.into_iter().for_each(|block| queue.push(block));
    let mut runs = Vec::new();
    while queue.rows() > 0 {
        runs.push(if together { queue.take(usize::MAX, usize::MAX) } else { queue.take_alike() });
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::pivot_docs;
    use crate::query::Counters;
    use crate::value::Doc;
    use bson::{RawDocumentBuf, rawdoc};

    fn block(row: &RawDocumentBuf) -> Block {
        pivot_docs([Doc::parse(row.as_bytes()).unwrap()]).unwrap()
    }

    #[test]
    fn of_buckets_that_are_examined_together_as_many_count_as_matched_as_may_be() {
        let mut counters = Counters { measurements_matched: 7, ..Counters::default() };
        counters.unpacked(3, 5);
        assert_eq!((counters.buckets_unpacked, counters.buckets_matched), (3, 2));
        counters.measurements_matched = 40;
        counters.unpacked(4, 7);
        assert_eq!((counters.buckets_unpacked, counters.buckets_matched), (7, 6));
    }

    #[test]
    fn rows_with_other_fields_are_joined_and_those_with_fields_in_another_order_only_if_it_does_not_matter() {
        let (whole, part, other) = (rawdoc! { "a": 1, "b": 2 }, rawdoc! { "b": 3 }, rawdoc! { "b": 4, "a": 5 });
        let blocks = || [&whole, &part, &whole, &other, &part, &whole].map(block).to_vec();
        let rows = |in_any_order| joined(blocks(), in_any_order).iter().map(Block::rows).collect::<Vec<_>>();
        assert_eq!(rows(false), [3, 2, 1]);
        assert_eq!(rows(true), [6]);
        assert_eq!(joined(blocks(), false)[0].column("a").map(crate::block::Column::present_count), Some(2));
    }
}
