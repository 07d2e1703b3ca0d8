//! Sorts with a limit that return all fields: runs give what is filtered and sorted by, and the buckets of the rows that are kept
//! give the rest.

// Loaded later.

use std::cell::RefCell;
use std::rc::Rc;

use super::find_cursor::FindCursor;
use super::push::late_columns;
use crate::block::Block;
use crate::engine::store::bucket_cache::BucketCache;
use crate::engine::store::bucket_runs::BucketRun;
use crate::engine::store::stored_bucket::StoredBucket;
use crate::error::Result;
use crate::listed::IntoList;
use crate::query::Late;
use crate::value::Value;

impl FindCursor {
    /// Keeps those of the rows of a run that a sort with a limit may return. `numbers` are their places in the run, if they are not
    /// all of it, and `selected` says which of them match. False if a bucket of which a row is kept is not in memory.
    ///
    /// Errors: `BadValue` if the sort meets parallel arrays; `DataCorruptionDetected`.
    pub(super) fn keep_late(
        &mut self,
        run: &BucketRun,
        cache: &RefCell<BucketCache>,
        (rows, numbers): (Block, Option<Vec<u32>>),
        selected: Option<Vec<u32>>,
    ) -> Result<bool> {
        let (best, places) = self.exec.best_of(rows, selected)?;
        let place = |row: &u32| numbers.as_ref().map_or(Some(*row), |numbers| numbers.get(*row as usize).copied());
        let places: Vec<u32> = places.iter().filter_map(place).listed();
        if places.is_empty() {
            return Ok(true);
        }
        let Some(buckets) = self.buckets_of(run, cache) else { return Ok(false) };
        let mut taken = 0;
        while let Some(first) = places.get(taken) {
            let at = run.ends.partition_point(|end| end <= first);
            let start = at.checked_sub(1).and_then(|before| run.ends.get(before)).copied().unwrap_or_default();
            let end = run.ends.get(at).copied().unwrap_or(u32::MAX);
            let Some(stored) = buckets.get(at) else { return Ok(false) };
            let until = places.partition_point(|place| *place < end);
            let rows = places.get(taken..until).unwrap_or_default().iter().map(|place| place - start).listed();
            let collection = self.scan.collection();
            let meta = stored.view(&collection.entry().options.timeseries)?.meta().map(Value::to_owned);
            let late = Late { rest: late_columns(collection, &self.plan, stored, 0), meta, rows };
            self.exec.push_late(best.slice(taken..until), late)?;
            taken = until;
        }
        Ok(true)
    }

    /// The buckets of a run; `None` if one of them is not in memory.
    pub(super) fn buckets_of(&self, run: &BucketRun, cache: &RefCell<BucketCache>) -> Option<Vec<Rc<StoredBucket>>> {
        let buckets = if self.units.is_empty() {
            let (found, _) = cache.borrow().scan(&run.collection, &run.range, run.buckets)?;
            found.into_iter().map(|(_, stored)| stored).listed()
        } else {
            self.units.iter().rev().take(run.buckets).map(|next| next.unit.stored.clone()).listed_if_all()?
        };
        (buckets.len() == run.buckets).then_some(buckets)
    }
}
