//! The open buckets of one series.
//!
//! An insert of old rows opens a bucket for each window, and all of them stay open until it is committed. So nothing
//! here may look at every bucket for each row.

use std::ops::Range;

use super::open_bucket::OpenBucket;
use super::rollover::RolloverReason;
use crate::bucket::BucketId;
use crate::value::OwnedValue;

/// The open buckets of a series. At most one of them has no reason to roll over.
pub(super) struct OpenSeries {
    pub hash: u64,
    /// Shared by everything that names the series: batches, sections, journal records.
    pub meta: Option<OwnedValue>,
    /// By start and id.
    buckets: Vec<OpenBucket>,
    /// Start and id of the bucket without a reason.
    current: Option<(i64, BucketId)>,
    /// How many buckets rule out looking for stored ones.
    forbidding: usize,
    /// How many buckets have a reason, and still take rows of their time.
    soft: usize,
    /// How many buckets have a reason and no uncommitted rows.
    due: usize,
    /// How many buckets were removed and are still in `buckets`.
    gone: usize,
}

impl OpenSeries {
    pub fn new(hash: u64, meta: Option<OwnedValue>) -> OpenSeries {
        OpenSeries { hash, meta, buckets: Vec::new(), current: None, forbidding: 0, soft: 0, due: 0, gone: 0 }
    }

    pub fn buckets(&self) -> &[OpenBucket] {
        &self.buckets
    }

    /// Number of buckets that were not removed.
    pub fn len(&self) -> usize {
        self.buckets.len() - self.gone
    }

    /// Adds a bucket; returns its position.
    pub fn add(&mut self, bucket: OpenBucket) -> usize {
        let at = self.place(bucket.min_time_ms, bucket.id);
        self.buckets.insert(at, bucket);
        self.tally(at, 1);
        at
    }

    /// The position of a bucket that begins at `min_time_ms`.
    pub fn position(&self, min_time_ms: i64, id: BucketId) -> Option<usize> {
        let at = self.place(min_time_ms, id);
        self.buckets.get(at).is_some_and(|bucket| bucket.id == id && !bucket.is_gone).then_some(at)
    }

    fn place(&self, min_time_ms: i64, id: BucketId) -> usize {
        self.buckets.partition_point(|bucket| (bucket.min_time_ms, bucket.id) < (min_time_ms, id))
    }

    /// The position of the bucket that has no reason to roll over.
    pub fn current(&self) -> Option<usize> {
        let (min_time_ms, id) = self.current?;
        self.position(min_time_ms, id)
    }

    /// The positions of the buckets whose span includes `time_ms`; none if none of these has a reason and takes rows.
    pub fn spanning(&self, time_ms: i64, span_ms: i64) -> Range<usize> {
        if self.soft == 0 {
            return 0..0;
        }
        let from = self.buckets.partition_point(|bucket| time_ms.saturating_sub(bucket.min_time_ms) >= span_ms);
        from..self.buckets.partition_point(|bucket| bucket.min_time_ms <= time_ms).max(from)
    }

    /// True if one of the buckets rules out looking for stored ones.
    pub fn forbids_query(&self) -> bool {
        self.forbidding > 0
    }

    /// True if some buckets could roll over now.
    pub fn has_due(&self) -> bool {
        self.due > 0
    }

    /// Changes the reason of a bucket or how many of its rows are uncommitted.
    pub fn change<R>(&mut self, index: usize, change: impl FnOnce(&mut OpenBucket) -> R) -> Option<R> {
        self.tally(index, -1);
        let changed = self.buckets.get_mut(index).map(change);
        self.tally(index, 1);
        changed
    }

    /// Notes when a bucket became idle, or that it no longer is, as 0; returns what was noted before.
    pub fn set_idle_since(&mut self, index: usize, moment: u64) -> Option<u64> {
        Some(std::mem::replace(&mut self.buckets.get_mut(index)?.idle_since, moment))
    }

    /// Removes a bucket. Until `sweep`, it stays where it is and no search finds it: moving the others for each bucket
    /// would take quadratic time.
    pub fn remove(&mut self, index: usize) -> Option<&OpenBucket> {
        self.buckets.get(index).filter(|bucket| !bucket.is_gone)?;
        self.tally(index, -1);
        self.gone += 1;
        let bucket = self.buckets.get_mut(index)?;
        bucket.is_gone = true;
        Some(bucket)
    }

    /// Positions change unless no bucket was removed.
    pub fn sweep(&mut self) {
        if std::mem::take(&mut self.gone) > 0 {
            self.buckets.retain(|bucket| !bucket.is_gone);
        }
    }

    fn tally(&mut self, index: usize, by: isize) {
        let Some(bucket) = self.buckets.get(index) else { return };
        let add = |n: &mut usize, counts: bool| *n = n.wrapping_add_signed(if counts { by } else { 0 });
        match bucket.reason {
            None => self.current = (by > 0).then_some((bucket.min_time_ms, bucket.id)),
            Some(reason) => {
                add(&mut self.forbidding, reason != RolloverReason::TimeBackward);
                add(&mut self.soft, reason.is_soft());
                add(&mut self.due, bucket.staged == 0);
            }
        }
    }
}
