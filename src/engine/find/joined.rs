//! Takes the rows of several stored buckets at once, for stages that compute something of all of them. If the same
//! buckets are read again, their joined rows may still be in memory.

// Loaded later.

use std::rc::Rc;

use crate::block::Block;
use crate::bucket::{BucketDoc, JoinedFields, joined_rows, unpack};
use crate::engine::collections::collection::Collection;
use crate::engine::read::unit::Unit;
use crate::engine::store::stored_bucket::StoredBucket;
use crate::error::Result;
use crate::limits::{JOINED_ROWS_FROM, JOINED_ROWS_SHARE, ROWS_TOGETHER};
use crate::query::{Exec, Flow, ReadPlan, Sink, join_blocks};
use crate::value::hash;

/// Passes on the rows of the next buckets at once, and returns how many buckets these are. 0 if they must be taken one by
/// one, because they have rows in journals, or because most of their rows may not match.
///
/// Errors: those of projections; `DataCorruptionDetected`.
pub(super) fn take_joined<'a>(
    collection: &Collection,
    plan: &ReadPlan,
    exec: &mut Exec,
    units: impl Iterator<Item = &'a Unit>,
) -> Result<(usize, Flow)> {
    let none = Ok((0, Flow::Continue));
    // A query may have enough with the first rows.
    if !can_join(plan, exec) || exec.counters().measurements_matched < JOINED_ROWS_FROM {
        return none;
    }
    let entry = collection.entry();
    let options = &entry.options.timeseries;
    let mut buckets: Vec<(&StoredBucket, BucketDoc<'_>, usize)> = Vec::new();
    let (mut rows, mut all_match) = (0, true);
    let takes_some = is_filter_worth_it(plan, exec);
    for unit in units {
        let Some(stored) = unit.stored.as_deref().filter(|_| unit.unfolded().is_none()) else { break };
        // Damage is reported by whoever takes the bucket alone, if that happens: rows before it may be enough.
        let Ok(view) = stored.view(options) else { break };
        if plan.skips_closed && view.closed() || !plan.may_match(&view).unwrap_or(false) {
            break;
        }
        let all_of_it = plan.all_match(&view);
        let Some(count) = view.count().ok().filter(|_| all_of_it || takes_some) else { break };
        all_match &= all_of_it;
        buckets.push((stored, view, count));
        rows += count;
        if rows >= 4 * ROWS_TOGETHER || rows >= ROWS_TOGETHER / 2 && ends_here(unit, count) {
            break;
        }
    }
    if buckets.len() < 2 {
        return none;
    }
    let parts: Vec<_> = buckets.iter().map(|(stored, _, count)| (stored.kept(), *count)).collect();
    let fields = JoinedFields { columns: Rc::clone(&plan.columns), has_meta: plan.plan.wants_meta, only: None };
    let mut alone = Vec::new();
    let joined = joined_rows(&parts, &fields, &mut || {
        for (_, view, _) in &buckets {
            let Ok(rows) = unpack(view, &plan.columns, options) else {
                alone.clear();
                return Ok(None);
            };
            alone.push(exec.complete(rows, view.meta()));
        }
        // The order of fields, which whole documents show, must not depend on which rows are joined.
        let suits = alone.first().is_some_and(|first: &Block| alone.iter().all(|block| block.has_fields_of(first)));
        Ok(suits.then(|| join_blocks(std::mem::take(&mut alone))))
    })?;
    if joined.is_none() && alone.is_empty() {
        return none;
    }
    exec.counters().buckets_passed += buckets.len() as u64;
    exec.counters().buckets_unpacked += buckets.len() as u64;
    let mut flow = Flow::Continue;
    for block in joined.into_iter().chain(alone) {
        flow = exec.push_complete(block, all_match)?;
    }
    Ok((buckets.len(), flow))
}

/// True if rows of buckets that match in part may be joined as well, and filtered afterwards: if most rows match, so that
/// little is decoded and kept in vain. An error of the filter must not come before rows that are enough.
fn is_filter_worth_it(plan: &ReadPlan, exec: &mut Exec) -> bool {
    let counters = exec.counters();
    !plan.plan.residual.can_fail()
        && counters.measurements_matched >= counters.measurements_examined / JOINED_ROWS_SHARE
}

/// True if all rows that match are passed on, of whatever bucket they are.
fn can_join(plan: &ReadPlan, exec: &Exec) -> bool {
    !plan.is_over_buckets()
        && plan.plan.rows_per_group.is_none()
        && plan.plan.newest.is_none()
        && !plan.columns.is_all()
        && (!plan.asks_metadata() || plan.may_leave_out_series())
        && exec.passes_all()
}

/// True if the rows of the next buckets are joined anew, which is so for one in as many buckets as have
/// `ROWS_TOGETHER / 2` rows. It depends on the bucket alone, so that queries of other times join most of the same buckets.
fn ends_here(unit: &Unit, rows: usize) -> bool {
    let together = (ROWS_TOGETHER / 2 / rows.max(1)).max(1) as u64;
    hash(0, unit.id.as_bytes()).is_multiple_of(together)
}
