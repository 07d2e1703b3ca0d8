//! The stored buckets of each series, from the default index. A query for the newest row of each series reads only the
//! last ones.
//!
//! **Invariant I26**: the directory of a collection is as new as the collection's epoch, or newer. This context's own
//! changes of buckets are applied to it; if another context has moved the epoch on, the index is listed again. A series
//! keeps its number until then.

// Loaded later.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use crate::bucket::{BucketId, TimeseriesOptions};
use crate::engine::store::keyspace;
use crate::engine::store::stored_bucket::StoredBucket;
use crate::error::{Error, Result};
use crate::limits::DIRECTORY_BUCKETS_MAX;
use crate::listed::IntoList;
use crate::storage::Bytes;
use crate::value::{Interner, Value, append_key, append_missing_key, sort_by};

/// The stored buckets of a collection by series.
#[derive(Clone, Default)]
pub struct Directory {
    epoch: u64,
    /// Lives as long as the numbers of series are valid.
    numbering: Rc<()>,
    /// Numbers of series by index key. Metadata that compares equal is one series.
    series: Interner,
    /// How many series there are, including those whose buckets are gone.
    count: usize,
    /// Ordered by series, then by id. Empty if a bucket has several keys because its metadata is an array.
    buckets: Vec<Listed>,
    has_arrays: bool,
}

/// A stored bucket.
#[derive(Clone)]
pub struct Listed {
    /// The number of its series.
    pub series: u32,
    /// Its id.
    pub id: BucketId,
    /// Upper bound of the times in the bucket, as far as it was read.
    pub last_ms: Cell<i64>,
}

impl Directory {
    /// A directory from the keys of the default index, or from bucket keys if there is no meta field.
    pub(in crate::engine) fn of_keys(epoch: u64, keys: &[Bytes], has_meta: bool) -> Result<Directory> {
        let mut directory = Directory { epoch, ..Directory::default() };
        for key in keys {
            let series = if has_meta { keyspace::series_of(key) } else { Some(&[][..]) };
            let series = series.ok_or_else(|| Error::corrupt("An index entry has no metadata or no time"))?;
            directory.add(series, keyspace::bucket_id(key)?, i64::MAX);
        }
        sort_by(&mut directory.buckets, |a, b| (a.series, a.id).cmp(&(b.series, b.id)));
        let mut ids: Vec<BucketId> = directory.buckets.iter().map(|listed| listed.id).listed();
        sort_by(&mut ids, Ord::cmp);
        if ids.windows(2).any(|two| matches!(two, [a, b] if a == b)) {
            directory.give_up();
        }
        Ok(directory)
    }

    fn add(&mut self, series: &[u8], id: BucketId, last_ms: i64) {
        let number = self.series.add(series).0;
        self.count = self.count.max(number + 1);
        let series = u32::try_from(number).unwrap_or(u32::MAX);
        self.buckets.push(Listed { series, id, last_ms: Cell::new(last_ms) });
    }

    fn give_up(&mut self) {
        (self.has_arrays, self.buckets) = (true, Vec::new());
    }

    /// The buckets, ordered by series, then by id.
    pub fn buckets(&self) -> &[Listed] {
        &self.buckets
    }

    /// The places among `buckets` of those of a series.
    pub fn places_of(&self, series: u32) -> Range<usize> {
        let from = self.buckets.partition_point(|listed| listed.series < series);
        let left = self.buckets.get(from..).unwrap_or_default();
        from..from + left.partition_point(|listed| listed.series == series)
    }

    /// The buckets of a series, ordered by id.
    pub fn buckets_of(&self, series: u32) -> &[Listed] {
        self.buckets.get(self.places_of(series)).unwrap_or_default()
    }

    /// Lives as long as the numbers of series are valid.
    pub fn numbering(&self) -> &Rc<()> {
        &self.numbering
    }

    /// The number of series, which is above every series number.
    pub fn count(&self) -> usize {
        self.count
    }

    /// The number of a series that has or had buckets.
    pub fn number(&self, series: &[u8]) -> Option<usize> {
        self.series.get(series)
    }

    /// Applies the new forms of some buckets; `None` for removed ones.
    fn note(&mut self, changed: &[(BucketId, Option<Rc<StoredBucket>>)], options: &TimeseriesOptions) -> Result<()> {
        let (mut moved, mut new) = (Vec::new(), Vec::new());
        for (id, stored) in changed {
            let Some(stored) = stored else {
                moved.push(*id);
                continue;
            };
            let view = stored.view(options)?;
            if view.meta().is_some_and(|meta| meta.as_array().is_some()) {
                self.give_up();
                return Ok(());
            }
            let series = series_key(options, view.meta());
            match self.place(&series, id).and_then(|place| self.buckets.get(place)) {
                Some(known) => known.last_ms.set(view.max_time_ms()),
                None => {
                    moved.push(*id);
                    new.push((series, *id, view.max_time_ms()));
                }
            }
        }
        if self.has_arrays {
            return Ok(());
        }
        if !moved.is_empty() {
            sort_by(&mut moved, Ord::cmp);
            self.buckets.retain(|listed| moved.binary_search(&listed.id).is_err());
        }
        if !new.is_empty() {
            new.into_iter().for_each(|(series, id, last_ms)| self.add(&series, id, last_ms));
            sort_by(&mut self.buckets, |a, b| (a.series, a.id).cmp(&(b.series, b.id)));
        }
        Ok(())
    }

    /// The directory at `next`, after this context has moved the epoch on from `epoch` by changing these buckets.
    /// `None` if the directory is not of `epoch`.
    pub(super) fn moved_on(
        mut self: Rc<Directory>,
        (epoch, next): (u64, u64),
        changed: &[(BucketId, Option<Rc<StoredBucket>>)],
        options: &TimeseriesOptions,
    ) -> Option<Rc<Directory>> {
        if self.epoch != epoch {
            return None;
        }
        let directory = Rc::make_mut(&mut self);
        directory.epoch = next;
        directory.note(changed, options).ok()?;
        self.is_small().then_some(self)
    }

    /// True if it is small enough to be kept.
    pub(in crate::engine) fn is_small(&self) -> bool {
        self.buckets.len() <= DIRECTORY_BUCKETS_MAX
    }

    /// The epoch to which it applies.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// True if some buckets have several keys; then no bucket is listed.
    pub fn has_arrays(&self) -> bool {
        self.has_arrays
    }

    fn place(&self, series: &[u8], id: &BucketId) -> Option<usize> {
        let series = u32::try_from(self.number(series)?).ok()?;
        self.buckets.binary_search_by(|listed| (listed.series, listed.id).cmp(&(series, *id))).ok()
    }
}

/// The key in the default index of a bucket with that metadata; empty without a meta field.
pub(in crate::engine) fn series_key(options: &TimeseriesOptions, meta: Option<Value<'_>>) -> Vec<u8> {
    let mut key = Vec::with_capacity(40);
    match meta {
        _ if options.meta_field.is_none() => {}
        Some(meta) => append_key(&mut key, meta),
        None => append_missing_key(&mut key),
    }
    key
}
