//! Scans of collections with `dedupe`: each measurement is found once, wherever its rows lie (I38).
//!
//! A group of journal rows and the stored buckets that lie between them make one unit, and such a bucket is no unit of
//! its own. A fold never moves rows from one bucket to another. So whatever is folded while the scan goes on, the rows
//! of a bucket that the scan reads later are either in a unit or are not.

// Loaded later.

use std::rc::Rc;

use super::listed::buckets_of;
use super::scan::Scan;
use super::unit::Unit;
use crate::block::Block;
use crate::bucket::{
    BucketId, Dedupe, Keep, TimeseriesOptions, ids_of_window, is_between, may_be_in_window, start_of, unpack,
    window_of, window_start_ms,
};
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::journal::{ByBucket, Resolution, SectionGroup, Tail};
use crate::engine::store::keyspace;
use crate::engine::store::stored_bucket::StoredBucket;
use crate::error::Result;
use crate::listed::IntoList;
use crate::storage::{KeyRange, LocalFuture};
use crate::value::{FieldSet, Interner, sort_by};

/// What a scan knows of the measurements of its groups.
pub(in crate::engine) struct KnownRows {
    dedupe: Dedupe,
    /// The stored buckets whose rows are in units of journal rows.
    absorbed: Interner,
}

impl Engine {
    /// Finds out the measurements of all groups that the scan has not left out. Called once, before the first page.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    /// Boxed, because it is in the second half of the module.
    #[inline(never)]
    pub(in crate::engine) fn resolve<'a>(&'a self, scan: &'a mut Scan, dedupe: Dedupe) -> LocalFuture<'a, ()> {
        Box::pin(self.resolve_groups(scan, dedupe))
    }

    async fn resolve_groups(&self, scan: &mut Scan, dedupe: Dedupe) -> Result<()> {
        let collection = Rc::clone(scan.collection());
        let epoch = scan.epoch();
        let entry = collection.entry();
        let options = &entry.options.timeseries;
        let stale: Vec<Rc<SectionGroup>> =
            scan.open_groups().map(|(_, group)| group).filter(|group| !group.is_resolved(epoch)).cloned().listed();
        if !stale.is_empty() {
            let windows = self.buckets_of_windows(&collection, epoch, &stale, options).await?;
            for ((group, listed), near) in stale.iter().zip(&windows.listed).zip(windows.near) {
                let absorbed =
                    near.into_iter().filter(|near| near.overlaps).map(|near| (near.id, near.stored)).listed();
                group.resolve(epoch, Rc::clone(listed), absorbed, &dedupe, options)?;
            }
        }
        let mut absorbed = Interner::default();
        for known in scan.groups().filter_map(SectionGroup::resolution) {
            for (id, _) in &known.absorbed {
                absorbed.add(id.as_bytes());
            }
        }
        scan.set_windows(KnownRows { dedupe, absorbed });
        Ok(())
    }

    /// The stored buckets of the windows of some groups.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    pub(in crate::engine) async fn buckets_of_windows(
        &self,
        collection: &Rc<Collection>,
        epoch: u64,
        groups: &[Rc<SectionGroup>],
        options: &TimeseriesOptions,
    ) -> Result<WindowBuckets> {
        let mut listed: Vec<Option<Rc<[BucketId]>>> = groups.iter().map(|group| group.listed(epoch)).listed();
        let unlisted: Vec<&Rc<SectionGroup>> =
            groups.iter().zip(&listed).filter(|(_, listed)| listed.is_none()).map(|(group, _)| group).listed();
        let ids = self.list_windows(collection, &unlisted, options).await?;
        for (group, listed) in groups.iter().zip(&mut listed) {
            listed.get_or_insert_with(|| of_window(&ids, group, options));
        }
        let listed: Vec<Rc<[BucketId]>> = listed.into_iter().flatten().listed();
        let near: Vec<Vec<BucketId>> = groups
            .iter()
            .zip(&listed)
            .map(|(group, listed)| may_overlap(listed, (group.first_ms, group.last_ms)))
            .listed();
        let stored = self.fetch(collection, &near.concat()).await?;
        let mut stored = near.concat().into_iter().zip(stored);
        let mut nearby = Vec::with_capacity(groups.len());
        for (group, near) in groups.iter().zip(&near) {
            let mut of_group = Vec::new();
            for (id, stored) in stored.by_ref().take(near.len()) {
                let Some(stored) = stored else { continue };
                let view = stored.view(options)?;
                // Ids of different series may be alike, and outside the standard range those of different windows. Closed
                // buckets are not read.
                let in_window = window_start_ms(view.min_time_ms(), options) == group.min_time_ms;
                if in_window && view.meta() == group.meta() && !view.closed() {
                    let overlaps = view.min_time_ms() <= group.last_ms && view.max_time_ms() >= group.first_ms;
                    of_group.push(NearBucket { id, stored: Rc::clone(&stored), overlaps });
                }
            }
            nearby.push(of_group);
        }
        Ok(WindowBuckets { listed, near: nearby })
    }

    /// The ids of all stored buckets in the windows of some groups, of any series, ascending.
    async fn list_windows(
        &self,
        collection: &Rc<Collection>,
        groups: &[&Rc<SectionGroup>],
        options: &TimeseriesOptions,
    ) -> Result<Vec<BucketId>> {
        let mut windows: Vec<(BucketId, BucketId)> =
            groups.iter().map(|group| ids_of_window(group.min_time_ms, options)).listed();
        sort_by(&mut windows, Ord::cmp);
        let mut ranges: Vec<KeyRange> = Vec::new();
        for (low, high) in windows {
            let range = keyspace::buckets(&collection.id(), &low, &high);
            match ranges.last_mut().filter(|last| range.start <= last.end) {
                Some(last) if last.end < range.end => last.end = range.end,
                Some(_) => {}
                None => ranges.push(range),
            }
        }
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        buckets_of(&self.scan_keys(ranges).await?)
    }
}

/// Stored buckets by group.
pub(in crate::engine) struct WindowBuckets {
    /// All that may belong to its window.
    pub listed: Vec<Rc<[BucketId]>>,
    /// Those of its series that may have rows between the first and the last of its rows, and the one that ends before
    /// them.
    pub near: Vec<Vec<NearBucket>>,
}

/// A stored bucket near the rows of a group.
pub(in crate::engine) struct NearBucket {
    /// Its id.
    pub id: BucketId,
    /// The bucket.
    pub stored: Rc<StoredBucket>,
    /// True if its times overlap with those of the rows.
    pub overlaps: bool,
}

/// Those of `ids` that may belong to the window of a group, ascending.
fn of_window(ids: &[BucketId], group: &SectionGroup, options: &TimeseriesOptions) -> Rc<[BucketId]> {
    let (low, high) = ids_of_window(group.min_time_ms, options);
    let from = ids.partition_point(|id| *id < low);
    let near = ids.iter().skip(from).take_while(|id| **id <= high);
    near.filter(|id| may_be_in_window(id, &group.bucket, group.min_time_ms, options)).copied().collect()
}

/// The buckets of a window, ascending, that may have rows in `[first_ms, last_ms]`.
fn may_overlap(listed: &[BucketId], (first_ms, last_ms): (i64, i64)) -> Vec<BucketId> {
    let mut found = Vec::new();
    for (at, id) in listed.iter().enumerate() {
        // All rows of a bucket come before the next one begins, unless that one lies between them.
        let next = listed.iter().skip(at + 1).find(|next| !is_between(next)).and_then(start_of);
        let begins_later = start_of(id).is_some_and(|start_ms| start_ms > last_ms);
        // Outside the standard range, ids do not sort by time.
        let ends_earlier = !id.is_extended() && !is_between(id) && next.is_some_and(|next_ms| next_ms <= first_ms);
        if !begins_later && !ends_earlier {
            found.push(*id);
        }
    }
    found
}

impl KnownRows {
    /// True if the rows of the stored bucket are in a unit of journal rows.
    pub(super) fn absorbs(&self, id: &BucketId) -> bool {
        self.absorbed.get(id.as_bytes()).is_some()
    }

    /// The unit of a stored bucket without the measurements that journal rows of the scan are; `None` if it has no
    /// others. The bucket was written after the scan began, from records that the scan has.
    ///
    /// Errors: `DataCorruptionDetected`.
    pub(super) fn rest_of(
        &self,
        id: BucketId,
        stored: &StoredBucket,
        known: &Resolution,
        options: &TimeseriesOptions,
    ) -> Result<Option<Unit>> {
        let view = stored.view(options)?;
        let (met, rows) = (known.tail.rows(), unpack(&view, &FieldSet::All, options)?);
        let all = Block::concat_slices(&[(met, 0..met.rows()), (&rows, 0..rows.rows())]);
        // Of a measurement that both have, this keeps the row that was met.
        let first = Dedupe { keep: Keep::First, ..self.dedupe.clone() };
        let found = first.measurements(&all, &options.time_field, 0..0)?;
        let is_new = |row: &u32| *row as usize >= met.rows();
        let left: Vec<u32> = match found {
            Some(found) => found.iter().map(|measurement| measurement.kept).filter(is_new).listed(),
            None => (0..u32::try_from(all.rows()).unwrap_or(u32::MAX)).filter(is_new).listed(),
        };
        if left.is_empty() {
            return Ok(None);
        }
        let tail = Tail::of_rows(&all.gather(&left), view.min_time_ms(), options)?;
        let group = SectionGroup::of_tail(id, view.min_time_ms(), view.meta().map(|meta| meta.to_owned()), tail);
        Ok(Some(Unit::of_journal(id, 0, &Rc::new(ByBucket::of_group(group)))))
    }
}

impl Scan {
    /// True if there are journal rows in the window of a stored bucket.
    ///
    /// Errors: `DataCorruptionDetected`.
    #[inline(never)]
    pub(in crate::engine) fn has_rows_near(&self, unit: &Unit) -> Result<bool> {
        let entry = self.collection().entry();
        let options = &entry.options.timeseries;
        let Some(stored) = &unit.stored else { return Ok(false) };
        let start_ms = stored.view(options)?.min_time_ms();
        Ok(!self.journal().groups_of(&window_of(&unit.id, start_ms, options)).is_empty())
    }

    /// The unit of a stored bucket; `None` if its rows are in units of journal rows.
    ///
    /// Errors: `DataCorruptionDetected`.
    #[inline(never)]
    pub(super) fn unit_of_window(&self, id: BucketId, stored: Rc<StoredBucket>) -> Result<Option<Unit>> {
        let entry = self.collection().entry();
        let options = &entry.options.timeseries;
        let (windows, journal, left_out) = self.windows();
        if windows.is_some_and(|windows| windows.absorbs(&id)) {
            return Ok(None);
        }
        let view = stored.view(options)?;
        let start_ms = start_of(&id).unwrap_or(view.min_time_ms());
        // These rows also belong to a record here, under the bucket that they came from.
        if stored.coverage.origins().any(|origin| journal.holds(origin)) {
            return Ok(None);
        }
        let of_window = journal.groups_of(&window_of(&id, start_ms, options));
        let group = of_window
            .iter()
            .filter_map(|number| journal.groups().get(*number).map(|group| (*number, group)))
            .find(|(_, group)| group.meta() == view.meta());
        let half_folded = group.is_some_and(|(_, group)| group.is_covered(&stored.coverage));
        // The measurements of a group that is left out are found here or nowhere, though an earlier scan has resolved
        // it. Its own rows do not match.
        let returned = group.filter(|(number, _)| left_out.get(*number) != Some(&true));
        if half_folded
            && let (Some(windows), Some(known)) = (windows, returned.and_then(|(_, group)| group.resolution()))
        {
            return windows.rest_of(id, &stored, &known, options);
        }
        Ok(Some(Unit { half_folded, stored: Some(Rc::clone(&stored)), ..self.stored_unit(id, &stored) }))
    }
}
