//! Stored buckets that were written or read lately.
//!
//! **Invariant**: what is kept under a generation and a fingerprint never changes. Whether it is still the bucket's form, an index
//! entry says that was read from storage by the query at hand.

use std::collections::VecDeque;
use std::rc::Rc;

use super::keyspace::{BucketRef, CollectionId};
use super::stored_bucket::StoredBucket;
use crate::bucket::BucketId;
use crate::limits::BUCKET_CACHE_BYTES_MAX;

type Key = (CollectionId, BucketRef);

/// Up to `BUCKET_CACHE_BYTES_MAX` of stored buckets. The one that was put first goes first.
#[derive(Default)]
pub struct BucketCache {
    /// In order of their keys.
    kept: Vec<(Key, Rc<StoredBucket>)>,
    /// The keys in the order in which they were put.
    order: VecDeque<Key>,
    size_bytes: usize,
}

impl BucketCache {
    /// A bucket in exactly that form.
    pub fn get(&self, collection: &CollectionId, bucket: &BucketRef) -> Option<Rc<StoredBucket>> {
        let at = self.place(&(*collection, *bucket)).ok()?;
        self.kept.get(at).map(|(_, stored)| Rc::clone(stored))
    }

    /// The highest generation of a bucket that is kept, perhaps not the one that exists.
    pub fn latest_generation(&self, collection: &CollectionId, bucket: &BucketId) -> Option<u32> {
        let last = BucketRef { id: *bucket, generation: u32::MAX, fingerprint: u32::MAX };
        let behind = self.kept.partition_point(|(kept, _)| *kept <= (*collection, last));
        let ((of, found), _) = self.kept.get(behind.checked_sub(1)?)?;
        (of == collection && found.id == *bucket).then_some(found.generation)
    }

    /// Keeps a bucket. Its older forms go when their turn comes.
    pub fn put(&mut self, collection: &CollectionId, bucket: BucketRef, stored: Rc<StoredBucket>) {
        let key = (*collection, bucket);
        let Err(at) = self.place(&key) else { return };
        self.size_bytes += size_bytes(&stored);
        self.kept.insert(at, (key, stored));
        self.order.push_back(key);
        while self.size_bytes > BUCKET_CACHE_BYTES_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            if let Ok(at) = self.place(&oldest) {
                self.size_bytes -= size_bytes(&self.kept.remove(at).1);
            }
        }
    }

    fn place(&self, key: &Key) -> Result<usize, usize> {
        self.kept.binary_search_by(|(kept, _)| kept.cmp(key))
    }
}

/// The document, and about what keeping it takes beside.
fn size_bytes(stored: &StoredBucket) -> usize {
    stored.document.view().as_bytes().len() + 200
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::DocWriter;

    fn bucket(number: u8, generation: u32) -> BucketRef {
        BucketRef { id: BucketId::from_bytes([number; 12]), generation, fingerprint: 7 }
    }

    fn stored(size_bytes: usize) -> Rc<StoredBucket> {
        let mut writer = DocWriter::new();
        writer.string("x", &"x".repeat(size_bytes));
        Rc::new(StoredBucket { coverage: Default::default(), document: writer.finish(), fingerprint: 7 })
    }

    #[test]
    fn a_bucket_is_found_in_the_form_it_was_kept_in_and_in_no_other() {
        let mut cache = BucketCache::default();
        cache.put(&[1; 8], bucket(1, 5), stored(10));
        assert!(cache.get(&[1; 8], &bucket(1, 5)).is_some());
        let others = [
            (2, bucket(1, 5)),
            (1, bucket(2, 5)),
            (1, bucket(1, 6)),
            (1, BucketRef { fingerprint: 8, ..bucket(1, 5) }),
        ];
        for (collection, other) in others {
            assert!(cache.get(&[collection; 8], &other).is_none());
        }
    }

    #[test]
    fn the_latest_generation_is_the_highest_one_of_that_bucket_in_that_collection() {
        let mut cache = BucketCache::default();
        for (collection, number, generation) in [(1, 1, 5), (1, 1, 7), (1, 1, 6), (1, 2, 9), (2, 1, 8)] {
            cache.put(&[collection; 8], bucket(number, generation), stored(1));
        }
        let latest = |(collection, number): (u8, u8)| {
            cache.latest_generation(&[collection; 8], &BucketId::from_bytes([number; 12]))
        };
        assert_eq!([(1, 1), (1, 2), (2, 1)].map(latest), [Some(7), Some(9), Some(8)]);
        assert_eq!([(0, 1), (1, 0), (1, 3), (2, 2), (3, 1)].map(latest), [None; 5]);
    }

    #[test]
    fn what_was_put_first_makes_room_for_what_comes_later() {
        let mut cache = BucketCache::default();
        for number in 0..5 {
            cache.put(&[1; 8], bucket(number, 0), stored(BUCKET_CACHE_BYTES_MAX / 4));
            cache.put(&[1; 8], bucket(number, 0), stored(1));
        }
        let kept = |number| cache.get(&[1; 8], &bucket(number, 0)).is_some();
        assert_eq!([0, 1, 2, 3, 4].map(kept), [false, false, true, true, true]);
        assert!(cache.size_bytes <= BUCKET_CACHE_BYTES_MAX);
        cache.put(&[1; 8], bucket(9, 0), stored(BUCKET_CACHE_BYTES_MAX));
        assert!(cache.kept.is_empty() && cache.order.is_empty() && cache.size_bytes == 0);
    }
}
