//! A cache of stored buckets that were recently written or read, and of ids known not to be stored yet.
//!
//! **Invariant I26**: the cached buckets of a collection are at least as new as the epoch that its `Collection` knows.
//! If another context has moved the epoch on, all cached buckets of the collection are dropped, and answers to earlier
//! requests are not cached.
//!
//! For some ranges of keys, the cache knows that it holds every bucket stored there. Scans of these ranges need no
//! storage.

use std::collections::VecDeque;
use std::rc::Rc;

use super::bucket_runs::BucketRun;
use super::keyspace::{self, CollectionId};
use super::stored_bucket::StoredBucket;
use crate::bucket::{BucketId, ColumnRoom};
use crate::limits::{COVERED_RANGES_MAX, bucket_cache_bytes, kept_columns_bytes};
use crate::storage::{Bytes, KeyRange, PartPlace, SortedParts};

/// The collection as a number, which sorts as its bytes do and is compared at once; and the bucket.
type CacheKey = (u64, BucketId);
/// What is known of a bucket, and which entry of `order` is current.
type CacheEntry = (CacheKey, u64, Option<Rc<StoredBucket>>);
/// A stored bucket.
type Kept = (BucketId, Rc<StoredBucket>);

/// Stored buckets up to a size; the oldest is evicted first.
pub struct BucketCache {
    size_bytes_max: usize,
    /// In key order.
    kept: SortedParts<CacheEntry>,
    /// Keys and numbers, oldest first.
    order: VecDeque<(CacheKey, u64)>,
    next: u64,
    size_bytes: usize,
    /// Ranges in which all stored buckets of a collection are cached, the latest last. Those of one collection do not touch.
    covered: Vec<(CollectionId, KeyRange)>,
    /// For the decoded columns of these buckets.
    pub(super) room: Rc<ColumnRoom>,
    /// Runs of buckets that were read, in key order and apart. None of these buckets has changed since.
    pub(super) runs: Vec<Rc<BucketRun>>,
}

impl BucketCache {
    /// A cache of buckets and of their decoded columns, which together take up to about `read_cache_bytes`.
    pub fn new(read_cache_bytes: usize) -> BucketCache {
        BucketCache {
            size_bytes_max: bucket_cache_bytes(read_cache_bytes),
            kept: SortedParts::default(),
            order: VecDeque::new(),
            next: 0,
            size_bytes: 0,
            covered: Vec::new(),
            room: Rc::new(ColumnRoom::new(kept_columns_bytes(read_cache_bytes))),
            runs: Vec::new(),
        }
    }

    /// The memory for decoded columns.
    pub fn room(&self) -> Rc<ColumnRoom> {
        Rc::clone(&self.room)
    }

    /// Notes that a query begins: what it reads stays in memory longer than what earlier ones have read.
    pub fn begin_query(&self) {
        self.room.begin_query();
    }

    /// What is known of a bucket: its stored form, or that it is not stored. `None` if nothing is known.
    pub fn get(&self, collection: &CollectionId, bucket: &BucketId) -> Option<Option<Rc<StoredBucket>>> {
        let key = key_of(collection, bucket);
        self.kept.get(self.place(&key)).filter(|kept| kept.0 == key).map(|(_, _, stored)| stored.clone())
    }

    /// Caches what is known of a bucket, replacing earlier knowledge. It may have changed.
    pub fn put(&mut self, collection: &CollectionId, bucket: &BucketId, stored: Option<Rc<StoredBucket>>) {
        self.put_read(collection, bucket, stored, false);
    }

    /// Caches what was read of a bucket. `stands`: it has not changed since the epoch that memory knows.
    pub fn put_read(
        &mut self,
        collection: &CollectionId,
        bucket: &BucketId,
        stored: Option<Rc<StoredBucket>>,
        stands: bool,
    ) {
        let key = key_of(collection, bucket);
        if !stands {
            self.drop_run(&key);
        }
        self.size_bytes += size_bytes(stored.as_deref());
        stored.iter().for_each(|stored| stored.keep_columns(&self.room));
        self.next += 1;
        let new = (key, self.next, stored);
        let place = self.place(&key);
        match self.kept.get_mut(place).filter(|kept| kept.0 == key) {
            Some(kept) => self.size_bytes -= size_bytes(std::mem::replace(kept, new).2.as_deref()),
            None => self.kept.insert(place, new),
        }
        self.order.push_back((key, self.next));
        self.drop_outdated();
        while self.size_bytes > self.size_bytes_max
            && let Some((oldest, number)) = self.order.pop_front()
        {
            if self.take(&oldest, Some(number)) {
                let gone = keyspace::buckets(&oldest.0.to_be_bytes(), &oldest.1, &oldest.1);
                // The oldest bucket comes first in its range, because scans go forwards.
                self.covered.retain_mut(|(_, range)| {
                    if range.start <= gone.start && gone.start < range.end {
                        range.start.clone_from(&gone.end);
                    }
                    !range.is_empty()
                });
            }
        }
    }

    /// Records that all buckets stored in `range` were cached.
    pub fn cover(&mut self, collection: &CollectionId, range: &KeyRange) {
        let mut range = range.clone();
        self.covered.retain_mut(|(of, known)| {
            let is_apart = of != collection || known.end < range.start || range.end < known.start;
            if !is_apart {
                range.start = std::mem::take(&mut range.start).min(std::mem::take(&mut known.start));
                range.end = std::mem::take(&mut range.end).max(std::mem::take(&mut known.end));
            }
            is_apart
        });
        if self.covered.len() == COVERED_RANGES_MAX {
            self.covered.remove(0);
        }
        self.covered.push((*collection, range));
    }

    /// The first stored buckets of `range`, at most `count`, and the range in which they are complete; `None` if the
    /// cache does not cover its start.
    pub fn scan(&self, collection: &CollectionId, range: &KeyRange, count: usize) -> Option<(Vec<Kept>, KeyRange)> {
        let known = |(of, known): &&(CollectionId, KeyRange)| {
            of == collection && known.start <= range.start && range.start < known.end
        };
        let (_, known) = self.covered.iter().find(known)?;
        let mut end = known.end.clone().min(range.end.clone());
        let mut found = Vec::new();
        let [place, until] = [&range.start, &end].map(|key| self.place_of_key(key));
        let mut left = self.kept.rank(until).saturating_sub(self.kept.rank(place));
        let (number, _) = key_of(collection, &BucketId::MIN);
        self.kept.visit(place, &mut |((of, id), _, stored)| {
            if *of != number || left == 0 {
                return false;
            }
            left -= 1;
            found.extend(stored.iter().map(|stored| (*id, Rc::clone(stored))));
            if stored.is_some() && found.len() == count {
                end = keyspace::buckets(collection, id, id).end;
                return false;
            }
            true
        });
        Some((found, KeyRange { start: range.start.clone(), end }))
    }

    /// The last stored buckets of `range`, at most `count`, ascending, and where they begin; `None` if the cache does not cover its end.
    pub fn scan_end(
        &self,
        collection: &CollectionId,
        range: &KeyRange,
        count: usize,
    ) -> Option<(Vec<BucketId>, Bytes)> {
        let known = |(of, known): &&(CollectionId, KeyRange)| {
            of == collection && known.start < range.end && range.end <= known.end
        };
        let (_, known) = self.covered.iter().find(known)?;
        let mut start = known.start.clone().max(range.start.clone());
        let [place, until] = [&start, &range.end].map(|key| self.place_of_key(key));
        let from = self.kept.back(until, count).max(place);
        if from > place {
            start = self.kept.get(from).map_or(start, |((_, id), ..)| keyspace::bucket(collection, id));
        }
        let (mut found, mut left) = (Vec::new(), self.kept.rank(until).saturating_sub(self.kept.rank(from)));
        self.kept.visit(from, &mut |((_, id), _, stored)| {
            found.extend(stored.as_ref().filter(|_| left > 0).map(|_| *id));
            left = left.saturating_sub(1);
            left > 0
        });
        Some((found, start))
    }

    /// The number of entries in `range`, and whether all buckets stored there are cached. A range that ends before it begins is empty.
    pub fn count(&self, collection: &CollectionId, range: &KeyRange) -> (usize, bool) {
        let holds = |(of, known): &(CollectionId, KeyRange)| {
            of == collection && known.start <= range.start && range.end <= known.end
        };
        let [start, end] = [&range.start, &range.end].map(|key| self.kept.rank(self.place_of_key(key)));
        (end.saturating_sub(start), self.covered.iter().any(holds))
    }

    /// Drops a bucket.
    pub fn remove(&mut self, collection: &CollectionId, bucket: &BucketId) {
        let key = key_of(collection, bucket);
        self.drop_run(&key);
        self.take(&key, None);
        self.drop_outdated();
    }

    fn drop_outdated(&mut self) {
        // Many replacements of few buckets would fill `order` with outdated entries.
        if self.order.len() > 2 * self.kept.len() + 16 {
            let kept = &self.kept;
            self.order.retain(|(key, number)| {
                kept.get(place_in(kept, key)).is_some_and(|kept| kept.0 == *key && kept.1 == *number)
            });
        }
    }

    /// Drops every bucket of a collection.
    pub fn forget(&mut self, collection: &CollectionId) {
        let (number, _) = key_of(collection, &BucketId::MIN);
        self.kept.remove_before(self.kept.place(&|kept| kept.0.0 <= number), &mut |(key, _, stored)| {
            let is_doomed = key.0 == number;
            self.size_bytes -= if is_doomed { size_bytes(stored.as_deref()) } else { 0 };
            is_doomed
        });
        self.drop_outdated();
        self.covered.retain(|(of, _)| of != collection);
        self.runs.retain(|run| run.collection != *collection);
    }

    /// True if any runs are known.
    pub fn has_runs(&self) -> bool {
        !self.runs.is_empty()
    }

    /// Drops the run in whose range a bucket lies.
    fn drop_run(&mut self, (of, id): &CacheKey) {
        let key = keyspace::bucket_key(&of.to_be_bytes(), id);
        let at = self.runs.partition_point(|run| run.range.end[..] <= key[..]);
        if self.runs.get(at).is_some_and(|run| run.range.start[..] <= key[..]) {
            self.runs.remove(at);
        }
    }

    /// Removes the cached form of a bucket; true if there was one.
    fn take(&mut self, key: &CacheKey, number: Option<u64>) -> bool {
        let place = self.place(key);
        let is_it = |kept: &&CacheEntry| kept.0 == *key && number.is_none_or(|number| number == kept.1);
        if self.kept.get(place).filter(is_it).is_none() {
            return false;
        }
        let removed = self.kept.remove(place);
        self.size_bytes -= removed.map_or(0, |(_, _, stored)| size_bytes(stored.as_deref()));
        true
    }

    /// The place of the first entry that is not before `key`.
    fn place(&self, key: &CacheKey) -> PartPlace {
        place_in(&self.kept, key)
    }

    /// The place of the first entry whose key in storage is not before `key`.
    fn place_of_key(&self, key: &Bytes) -> PartPlace {
        let (collection, bucket, is_in_front) = keyspace::bucket_from(key);
        let key = key_of(&collection, &bucket);
        self.kept.place(&|kept| kept.0 < key || is_in_front && kept.0 == key)
    }
}

fn key_of(collection: &CollectionId, bucket: &BucketId) -> CacheKey {
    (u64::from_be_bytes(*collection), *bucket)
}

fn place_in(kept: &SortedParts<CacheEntry>, key: &CacheKey) -> PartPlace {
    kept.place(&|kept| kept.0 < *key)
}

/// Approximate bytes of an entry.
fn size_bytes(stored: Option<&StoredBucket>) -> usize {
    stored.map_or(200, StoredBucket::size_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::READ_CACHE_BYTES;
    use crate::value::DocWriter;

    const SIZE_BYTES_MAX: usize = bucket_cache_bytes(READ_CACHE_BYTES);

    fn id(number: u8) -> BucketId {
        BucketId::from_bytes([number; 12])
    }

    fn stored(size_bytes: usize) -> Option<Rc<StoredBucket>> {
        let mut writer = DocWriter::new();
        writer.string("x", &"x".repeat(size_bytes));
        Some(Rc::new(StoredBucket::new(Default::default(), writer.finish())))
    }

    #[test]
    fn the_cache_returns_the_last_version_of_a_bucket_by_collection_and_id() {
        let mut cache = BucketCache::new(READ_CACHE_BYTES);
        cache.put(&[1; 8], &id(1), stored(10));
        let last = stored(20);
        cache.put(&[1; 8], &id(1), last.clone());
        assert_eq!(cache.get(&[1; 8], &id(1)), Some(last.clone()));
        assert!(cache.get(&[2; 8], &id(1)).is_none() && cache.get(&[1; 8], &id(2)).is_none());
        assert_eq!(cache.size_bytes, size_bytes(last.as_deref()));
    }

    #[test]
    fn a_bucket_known_to_be_missing_differs_from_an_unknown_one() {
        let mut cache = BucketCache::new(READ_CACHE_BYTES);
        cache.put(&[1; 8], &id(1), None);
        assert_eq!((cache.get(&[1; 8], &id(1)), cache.get(&[1; 8], &id(2))), (Some(None), None));
        cache.put(&[1; 8], &id(1), stored(1));
        assert_eq!(cache.get(&[1; 8], &id(1)), Some(stored(1)));
    }

    #[test]
    fn a_range_that_ends_before_it_begins_has_no_buckets() {
        let mut cache = BucketCache::new(READ_CACHE_BYTES);
        (1..9).for_each(|number| cache.put(&[1; 8], &id(number), stored(1)));
        let range = |low, high| keyspace::buckets(&[1; 8], &id(low), &id(high));
        assert_eq!([cache.count(&[1; 8], &range(3, 6)), cache.count(&[1; 8], &range(6, 3))], [(4, false), (0, false)]);
    }

    #[test]
    fn keys_of_every_kind_are_found_among_those_of_buckets() {
        let mut cache = BucketCache::new(READ_CACHE_BYTES);
        let all: Vec<_> =
            [1, 2, 0xFF].into_iter().flat_map(|of| [0, 7, 0xFF].map(|number| ([of; 8], id(number)))).collect();
        all.iter().for_each(|(of, bucket)| cache.put(of, bucket, stored(1)));
        let keys = all.iter().map(|(of, bucket)| keyspace::bucket(of, bucket));
        let whole = keyspace::bucket(&[2; 8], &id(7));
        let others = (0..whole.len()).map(|len| whole[..len].to_vec());
        let foreign = [vec![1], vec![0x7F], vec![0x7F; 30], Vec::new()];
        for key in keys.clone().chain(others).chain(foreign) {
            for key in [[&key[..], &[0]].concat(), [&key[..], &[0xFF]].concat(), key] {
                let in_front = keys.clone().filter(|one| *one < key).count();
                assert_eq!(cache.kept.rank(cache.place_of_key(&key)), in_front, "{key:?}");
            }
        }
    }

    #[test]
    fn buckets_are_forgotten_one_by_one_and_by_collection() {
        let mut cache = BucketCache::new(READ_CACHE_BYTES);
        for (collection, number) in [(1, 1), (1, 2), (2, 1)] {
            cache.put(&[collection; 8], &id(number), stored(1));
        }
        cache.remove(&[1; 8], &id(1));
        assert!(cache.get(&[1; 8], &id(1)).is_none() && cache.get(&[1; 8], &id(2)).is_some());
        cache.forget(&[1; 8]);
        assert!(cache.get(&[1; 8], &id(2)).is_none() && cache.get(&[2; 8], &id(1)).is_some());
        assert_eq!(cache.size_bytes, size_bytes(stored(1).as_deref()));
    }

    #[test]
    fn the_oldest_cached_buckets_are_evicted_first() {
        let mut cache = BucketCache::new(READ_CACHE_BYTES);
        for number in 0..5 {
            cache.put(&[1; 8], &id(number), stored(SIZE_BYTES_MAX / 4));
        }
        let kept = |cache: &BucketCache| [0, 1, 2, 3, 4].map(|number| cache.get(&[1; 8], &id(number)).is_some());
        assert_eq!(kept(&cache), [false, false, true, true, true]);
        // Cached again, it is the newest entry.
        cache.put(&[1; 8], &id(2), stored(SIZE_BYTES_MAX / 4));
        cache.put(&[1; 8], &id(0), stored(SIZE_BYTES_MAX / 4));
        assert_eq!(kept(&cache), [true, false, true, false, true]);
        cache.put(&[1; 8], &id(9), stored(SIZE_BYTES_MAX));
        assert!(cache.kept.len() == 0 && cache.order.is_empty() && cache.size_bytes == 0);
    }

    /// The numbers of the buckets in a scan from `from` to `to`, and where it ends.
    fn scanned(cache: &BucketCache, from: u8, to: u8, count: usize) -> Option<(Vec<u8>, KeyRange)> {
        let range = keyspace::buckets(&[1; 8], &id(from), &id(to));
        let (found, covered) = cache.scan(&[1; 8], &range, count)?;
        assert_eq!(covered.start, range.start);
        Some((found.iter().map(|(id, _)| id.as_bytes()[0]).collect(), covered))
    }

    #[test]
    fn a_range_is_cached_as_far_as_all_its_buckets_were_put() {
        let mut cache = BucketCache::new(READ_CACHE_BYTES);
        (1..6).for_each(|number| cache.put(&[1; 8], &id(number), stored(1)));
        assert_eq!(scanned(&cache, 1, 5, 9), None);
        let range = |low, high| keyspace::buckets(&[1; 8], &id(low), &id(high));
        cache.cover(&[1; 8], &range(2, 3));
        let next = KeyRange { start: range(3, 3).end, end: range(4, 4).end };
        cache.cover(&[1; 8], &next);
        assert_eq!(scanned(&cache, 2, 9, 9), Some((vec![2, 3, 4], KeyRange { end: next.end, ..range(2, 9) })));
        assert_eq!(scanned(&cache, 2, 3, 9), Some((vec![2, 3], range(2, 3))));
        assert_eq!(scanned(&cache, 2, 9, 2), Some((vec![2, 3], range(2, 3))));
        assert_eq!((scanned(&cache, 1, 3, 9), scanned(&cache, 5, 9, 9)), (None, None));
        assert!(cache.scan(&[2; 8], &range(2, 3), 9).is_none());
        // Ids known not to be stored, and removed buckets, do not count as buckets; written ones do.
        cache.put(&[1; 8], &id(3), None);
        assert_eq!(scanned(&cache, 2, 4, 9).unwrap().0, [2, 4]);
        cache.remove(&[1; 8], &id(2));
        cache.put(&[1; 8], &id(3), stored(2));
        assert_eq!(scanned(&cache, 2, 4, 9).unwrap().0, [3, 4]);
        cache.forget(&[1; 8]);
        assert!(scanned(&cache, 3, 4, 9).is_none());
    }

    #[test]
    fn ranges_that_do_not_touch_are_known_beside_each_other_until_there_are_many() {
        let mut cache = BucketCache::new(READ_CACHE_BYTES);
        let range = |collection: u8, low, high| keyspace::buckets(&[collection; 8], &id(low), &id(high));
        let known = |cache: &BucketCache, collection: u8, low, high| {
            cache.count(&[collection; 8], &range(collection, low, high)).1
        };
        cache.cover(&[1; 8], &range(1, 2, 4));
        cache.cover(&[2; 8], &range(2, 2, 4));
        cache.cover(&[1; 8], &range(1, 7, 9));
        assert!(known(&cache, 1, 2, 4) && known(&cache, 2, 2, 4) && known(&cache, 1, 7, 9));
        assert!(!known(&cache, 1, 4, 7));
        cache.cover(&[1; 8], &range(1, 3, 8));
        assert!(known(&cache, 1, 2, 9) && cache.covered.len() == 2);
        cache.forget(&[1; 8]);
        assert!(!known(&cache, 1, 2, 4) && known(&cache, 2, 2, 4));
        for collection in 3..=COVERED_RANGES_MAX as u8 + 2 {
            assert!(known(&cache, 2, 2, 4));
            cache.cover(&[collection; 8], &range(collection, 1, 1));
        }
        assert!(!known(&cache, 2, 2, 4) && known(&cache, 3, 1, 1));
    }

    #[test]
    fn a_range_is_still_cached_after_its_evicted_buckets() {
        let mut cache = BucketCache::new(READ_CACHE_BYTES);
        (1..4).for_each(|number| cache.put(&[1; 8], &id(number), stored(SIZE_BYTES_MAX / 5)));
        cache.cover(&[1; 8], &keyspace::buckets(&[1; 8], &id(1), &id(4)));
        assert_eq!(scanned(&cache, 1, 4, 9).unwrap().0, [1, 2, 3]);
        // A bucket of another collection.
        cache.put(&[2; 8], &id(1), stored(SIZE_BYTES_MAX / 2));
        assert!(scanned(&cache, 1, 4, 9).is_none());
        assert_eq!(scanned(&cache, 2, 4, 9).unwrap().0, [2, 3]);
        cache.put(&[2; 8], &id(2), stored(SIZE_BYTES_MAX - 1000));
        assert!((0..5).all(|from| scanned(&cache, from, 4, 9).is_none_or(|(found, _)| found.is_empty())));
    }

    #[test]
    fn replacing_a_cached_bucket_repeatedly_takes_no_more_memory() {
        let mut cache = BucketCache::new(READ_CACHE_BYTES);
        (0..1000).for_each(|_| cache.put(&[1; 8], &id(1), stored(1)));
        assert!(cache.order.len() < 20 && cache.kept.len() == 1);
    }

    #[test]
    fn entries_are_counted_in_a_range_and_it_is_known_whether_they_are_all() {
        let mut cache = BucketCache::new(READ_CACHE_BYTES);
        (1..6).for_each(|number| cache.put(&[1; 8], &id(number), stored(1)));
        let range = |low: u8, high: u8| keyspace::buckets(&[1; 8], &id(low), &id(high));
        assert_eq!(cache.count(&[1; 8], &range(2, 4)), (3, false));
        cache.cover(&[1; 8], &range(2, 4));
        assert_eq!(cache.count(&[1; 8], &range(2, 4)), (3, true));
        assert_eq!(cache.count(&[1; 8], &range(3, 3)), (1, true));
        assert_eq!(cache.count(&[1; 8], &range(1, 3)), (3, false));
        assert_eq!(cache.count(&[1; 8], &range(3, 5)), (3, false));
        assert!(!cache.count(&[2; 8], &range(2, 4)).1);
        assert_eq!(cache.count(&[1; 8], &range(4, 2)).0, 0);
    }
}
