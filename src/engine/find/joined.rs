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
use crate::limits::{JOINED_ROWS_FROM, ROWS_TOGETHER};
use crate::query::{Exec, Flow, ReadPlan, Sink, join_blocks};
use crate::value::hash;

/// Passes on the rows of the next buckets at once, and returns how many buckets these are. 0 if they must be taken one by
/// one, because they have rows in journals, or because some of their rows may not match.
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
    let mut rows = 0;
    for unit in units {
        let Some(stored) = unit.stored.as_deref().filter(|_| unit.unfolded().is_none()) else { break };
        // Damage is reported by whoever takes the bucket alone, if that happens: rows before it may be enough.
        let Ok(view) = stored.view(options) else { break };
        let all_match = || plan.may_match(&view).unwrap_or(false) && plan.all_match(&view);
        let Some(count) = view.count().ok().filter(|_| !(plan.skips_closed && view.closed()) && all_match()) else {
            break;
        };
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
        flow = exec.push_complete(block)?;
    }
    Ok((buckets.len(), flow))
}

/// True if the rows of all buckets that match whole are passed on as they are.
fn can_join(plan: &ReadPlan, exec: &Exec) -> bool {
    !plan.is_over_buckets()
        && plan.plan.rows_per_group.is_none()
        && plan.plan.newest.is_none()
        && !plan.columns.is_all()
        && plan.is_decided_by_time()
        && (!plan.asks_metadata() || plan.may_leave_out_series())
        && exec.passes_all()
}

/// True if the rows of the next buckets are joined anew, which is so for one in as many buckets as have
/// `ROWS_TOGETHER / 2` rows. It depends on the bucket alone, so that queries of other times join most of the same buckets.
fn ends_here(unit: &Unit, rows: usize) -> bool {
    let together = (ROWS_TOGETHER / 2 / rows.max(1)).max(1) as u64;
    hash(0, unit.id.as_bytes()).is_multiple_of(together)
}
