//! For the distinct values of metadata, one bucket of each series says as much as all of them.

// Loaded later.

use std::rc::Rc;

use super::planned::ParseFind;
use super::series::is_whole;
use crate::bucket::BucketId;
use crate::engine::Engine;
use crate::engine::collections::directory::series_key;
use crate::engine::read::scan::{Access, Scan};
use crate::error::Result;
use crate::limits::{LISTED_KEYS_A_BUCKET, LISTED_SERIES_MIN};
use crate::listed::IntoList;
use crate::query::{ReadPlan, Sink};
use crate::storage::LocalFuture;
use crate::value::sort_by;

impl Engine {
    /// As `drain`, into a sink for which only the values of the field `field` matter, and not how often they occur.
    ///
    /// Errors: as `drain`.
    pub async fn drain_values(
        &self,
        name: &str,
        raw: bool,
        field: &str,
        options: &ParseFind<'_>,
        sink: &mut dyn Sink,
    ) -> Result<()> {
        let Some((mut scan, plan, find)) = self.begin_find(name, raw, options).await? else { return Ok(()) };
        if !raw && scan.collection().meta_field() == Some(field) {
            self.aim_at_one_of_each(&mut scan, &plan, find.filter.is_trivial()).await?;
        }
        self.drain_aimed(scan, plan, sink).await.map(drop)
    }

    /// Aims the scan of a `$group` for which only the different values of metadata matter. False as below.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    #[inline(never)]
    pub(super) fn aim_at_values<'a>(&'a self, scan: &'a mut Scan, plan: &'a ReadPlan) -> LocalFuture<'a, bool> {
        Box::pin(async move {
            let takes_all = !plan.asks_metadata();
            Ok(plan.only_values() && self.aim_at_one_of_each(scan, plan, takes_all).await?)
        })
    }

    /// Aims a scan of all buckets at the first of each series, and at those with rows in journals. False if rows or other
    /// buckets may differ from these, or if that is not worth a list of all buckets.
    async fn aim_at_one_of_each(&self, scan: &mut Scan, plan: &ReadPlan, takes_all: bool) -> Result<bool> {
        let is_by_series = plan.may_leave_out_series() && (takes_all || plan.metadata_filter().is_some());
        let in_memory = self.buckets_in_memory(scan);
        if !is_whole(plan)
            || !is_by_series
            || !plan.plan.residual.is_trivial()
            || in_memory.is_some_and(|buckets| 2 * buckets < LISTED_SERIES_MIN)
        {
            return Ok(false);
        }
        let collection = Rc::clone(scan.collection());
        let Some(directory) = self.directory(&collection, scan.epoch(), usize::MAX).await? else { return Ok(false) };
        let (count, all) = (directory.count(), directory.buckets().len());
        if LISTED_KEYS_A_BUCKET * count > all {
            return Ok(false);
        }
        let entry = collection.entry();
        let options = &entry.options.timeseries;
        let series = self.series_of(&directory);
        let chosen = match plan.metadata_filter() {
            // If it fails, it fails again on the rows, which raises the error.
            Some(filter) => match series.choose(filter, count) {
                Ok(chosen) => chosen.into_iter().map(|one| one.number).listed(),
                Err(_) => return Ok(false),
            },
            None => (0..u32::try_from(count).unwrap_or(u32::MAX)).listed(),
        };
        // Missing metadata and null are one series there, but null is a value.
        let unsure = directory.number(&series_key(options, None));
        let mut wanted: Vec<BucketId> = Vec::new();
        for number in chosen {
            let few = if unsure == Some(number as usize) { usize::MAX } else { 1 };
            wanted.extend(directory.buckets_of(number).iter().take(few).map(|one| one.id));
        }
        series.add_listed(scan, &directory, &mut wanted);
        sort_by(&mut wanted, Ord::cmp);
        wanted.dedup();
        scan.aim(Access::Ids(wanted));
        Ok(true)
    }
}
