//! Finds the last stored bucket of a collection whose data ended long ago.
//!
//! Storage is only read forwards. So without this, the newest row of such a collection would take a list of all its
//! buckets, each time.

// Loaded later.

use std::rc::Rc;

use super::scan::Scan;
use crate::bucket::BucketId;
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::store::keyspace;
use crate::error::Result;
use crate::limits::{END_KEYS, FIRST_END_KEYS, FIRST_PART_SPANS};
use crate::storage::{KeyRange, Page};

impl Engine {
    /// True if a scan from the end should know where the data ends: unless rows about now are in journals, or in a range that
    /// ends earlier.
    pub(in crate::engine) fn wants_end(&self, scan: &Scan) -> bool {
        let collection = scan.collection();
        let span_ms = collection.entry().options.timeseries.span_ms();
        let ends_ms = match scan.range() {
            Some(range) => keyspace::highest_bucket(range).map_or(0, |id| i64::from(id.time_seconds()) * 1000),
            None => scan.older.as_ref().map_or(0, |_| i64::MAX),
        };
        let now_ms = self.env.now_ms();
        collection.known.last_start.get().0 != scan.epoch()
            && ends_ms.saturating_add(span_ms) >= now_ms
            && scan.groups().all(|group| group.times().1 < now_ms.saturating_sub(span_ms))
    }

    /// Notes where the stored data of a collection ends, if that is long ago.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    pub(in crate::engine) async fn find_end(&self, collection: &Rc<Collection>) -> Result<()> {
        let back_ms = collection.entry().options.timeseries.span_ms().saturating_mul(FIRST_PART_SPANS);
        let end = BucketId::lowest_at(self.env.now_ms().saturating_sub(back_ms));
        self.seek_end(collection, &keyspace::buckets(&collection.id(), &BucketId::MIN, &end)).await
    }

    /// Notes the start of the last bucket, which is searched for in `range`, unless there are buckets behind it.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    async fn seek_end(&self, collection: &Rc<Collection>, range: &KeyRange) -> Result<()> {
        let (id, epoch) = (collection.id(), collection.journal.epoch());
        let behind =
            KeyRange { start: range.end.clone(), end: keyspace::buckets(&id, &BucketId::MIN, &BucketId::MAX).end };
        let one = Page { entries_max: 1, keys_only: true };
        if !behind.is_empty() && !self.storage.scan(&[behind], one).await?.is_empty() {
            collection.known.last_start.set((epoch, self.env.now_ms()));
            return Ok(());
        }
        let seconds = |bucket: Option<BucketId>| bucket.map_or(0, |bucket| bucket.time_seconds());
        // The last bucket begins in one of these seconds, unless there is none.
        let mut low = seconds(keyspace::lowest_bucket(range));
        let mut high = seconds(keyspace::highest_bucket(range));
        // Of few buckets, all are listed at once; else the range is halved, again and again.
        let (mut width, mut most) = (high.saturating_sub(low), FIRST_END_KEYS);
        while low < high {
            let from = high.saturating_sub(width).max(low);
            let ids = [from, high].map(|seconds| keyspace::bucket(&id, &BucketId::from_seconds(seconds, 0)));
            let [start, end] = ids;
            let page = Page { entries_max: most, keys_only: true };
            let found = self.storage.scan(&[KeyRange { start, end }], page).await?;
            match found.last() {
                None => high = from,
                Some(last) => {
                    low = keyspace::bucket_id(&last.key)?.time_seconds();
                    if found.len() < most || high - low <= 1 {
                        break;
                    }
                }
            }
            (width, most) = ((high - low).div_ceil(2), END_KEYS);
        }
        collection.known.last_start.set((epoch, i64::from(low) * 1000));
        Ok(())
    }
}
