//! Applies this context's own changes of buckets to what it knows of a collection.

use std::rc::Rc;

use super::bucket_size::BucketSize;
use super::collection::Collection;
use crate::bucket::BucketId;
use crate::engine::store::stored_bucket::StoredBucket;

impl Collection {
    /// Applies new forms of buckets to the directory, after this context has moved the epoch on from `epoch` to `next`.
    pub(in crate::engine) fn note_in_directory(
        &self,
        epoch: u64,
        next: u64,
        changed: &[(BucketId, Option<Rc<StoredBucket>>)],
    ) {
        let mut kept = self.known.directory.borrow_mut();
        let options = &self.entry().options.timeseries;
        *kept = kept.take().and_then(|known| known.moved_on((epoch, next), changed, options));
    }

    /// Records the size of a written bucket, or that the bucket is gone.
    pub(in crate::engine) fn note_size(&self, id: &BucketId, stored: Option<&StoredBucket>) {
        let mut bucket_sizes = self.known.bucket_sizes.borrow_mut();
        let Some(bucket_sizes) = &mut *bucket_sizes else { return };
        let new = stored.and_then(|stored| BucketSize::of(id, stored, &self.entry().options.timeseries));
        match (bucket_sizes.binary_search_by(|bucket| bucket.id.cmp(id)), new) {
            (Ok(at), Some(new)) => bucket_sizes.iter_mut().skip(at).take(1).for_each(|old| *old = new),
            (Ok(at), None) => drop(bucket_sizes.remove(at)),
            (Err(at), Some(new)) => bucket_sizes.insert(at, new),
            (Err(_), None) => {}
        }
    }
}
