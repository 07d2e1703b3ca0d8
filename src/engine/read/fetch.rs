//! Stored buckets, from the cache or from storage.

use std::rc::Rc;

use crate::bucket::BucketId;
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::store::{keyspace, stored_bucket::StoredBucket};
use crate::error::{Error, Result};
use crate::listed::IntoList;
use crate::storage::{Bytes, KeyRange, Page};

/// Buckets of a range.
pub(super) struct StoredPage {
    pub(super) found: Vec<(BucketId, Rc<StoredBucket>)>,
    /// The range in which they are complete.
    pub(super) covered: KeyRange,
    /// The epoch of all of them, if somebody has asked, and if it is the one that memory knows.
    pub(super) epoch: Option<u64>,
}

/// Decodes a stored bucket; an error names the bucket.
pub(super) fn decode_stored(bucket: &BucketId, value: Vec<u8>) -> Result<StoredBucket> {
    StoredBucket::decode(value).map_err(|e| Error::new(e.code, format!("Bucket {bucket:?}: {}", e.message)))
}

impl Engine {
    /// A page of one range. Caches it as far as allowed.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    pub(super) async fn read_page(
        &self,
        collection: &Collection,
        range: &KeyRange,
        page: Page,
        may_keep_bytes: &mut usize,
        asks_epoch: bool,
    ) -> Result<StoredPage> {
        let (id, epoch) = (collection.id(), collection.journal.epoch());
        // As long as its key is there, it is the present epoch.
        let key = keyspace::epoch(&id, epoch);
        let of_epoch = KeyRange { end: [&key[..], &[0]].concat(), start: key };
        let ranges = [of_epoch, range.clone()];
        let asked = usize::from(asks_epoch);
        let page = Page { entries_max: page.entries_max + asked, ..page };
        let mut entries = self.storage.scan(ranges.get(1 - asked..).unwrap_or_default(), page).await?;
        let mut covered = range.clone();
        if let Some(last) = entries.last().filter(|_| entries.len() >= page.entries_max) {
            covered.end = [&last.key[..], &[0]].concat();
        }
        let stands = entries.first().is_some_and(|entry| keyspace::is_of_markers(&entry.key));
        if stands {
            entries.remove(0);
        }
        let mut found = Vec::with_capacity(entries.len());
        for entry in entries {
            let bucket = keyspace::bucket_id(&entry.key)?;
            found.push((bucket, Rc::new(decode_stored(&bucket, entry.value)?)));
        }
        let is_known = collection.journal.epoch() == epoch;
        // As in `fetch`. Beyond its share, a scan would evict its own earlier buckets.
        if *may_keep_bytes > 0 && is_known {
            let mut cache = self.buckets.borrow_mut();
            let mut kept = covered.clone();
            for (bucket, stored) in &found {
                *may_keep_bytes = may_keep_bytes.saturating_sub(stored.size_bytes());
                if *may_keep_bytes == 0 {
                    kept.end = keyspace::bucket(&id, bucket);
                    break;
                }
                cache.put_read(&id, bucket, Some(Rc::clone(stored)), stands);
            }
            cache.cover(&id, &kept);
        }
        Ok(StoredPage { found, covered, epoch: (stands && is_known).then_some(epoch) })
    }

    /// The stored forms of these buckets in the same order, from the cache or storage; `None` if not stored.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    pub(in crate::engine) async fn fetch(
        &self,
        collection: &Collection,
        buckets: &[BucketId],
    ) -> Result<Vec<Option<Rc<StoredBucket>>>> {
        let id = collection.id();
        let epoch = collection.journal.epoch();
        let mut found: Vec<Option<Option<Rc<StoredBucket>>>> = {
            let cache = self.buckets.borrow();
            buckets.iter().map(|bucket| cache.get(&id, bucket)).listed()
        };
        let mut missing: Vec<Bytes> = buckets
            .iter()
            .zip(&found)
            .filter(|(_, found)| found.is_none())
            .map(|(bucket, _)| keyspace::bucket(&id, bucket))
            .listed();
        if !missing.is_empty() {
            let has_runs = self.buckets.borrow().has_runs();
            missing.extend(has_runs.then(|| keyspace::epoch(&id, epoch)));
            let values = self.storage.get_many(&missing).await?;
            let stands = has_runs && values.last().is_some_and(Option::is_some);
            let slots = found.iter_mut().zip(buckets).filter(|(slot, _)| slot.is_none());
            for ((slot, bucket), value) in slots.zip(values) {
                let Some(value) = value else { continue };
                let stored = Some(Rc::new(decode_stored(bucket, value)?));
                // If the epoch has moved on meanwhile, these may be too old for the cache.
                if collection.journal.epoch() == epoch {
                    self.buckets.borrow_mut().put_read(&id, bucket, stored.clone(), stands);
                }
                *slot = Some(stored);
            }
        }
        Ok(found.into_iter().map(Option::flatten).listed())
    }
}
