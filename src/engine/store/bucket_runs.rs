//! Runs: neighbouring buckets of few rows, whose joined columns are found at once. A query over many of these buckets
//! would take longer to look at each of them than to compute its result.
//!
//! A run outlives its buckets in the cache: their joined columns take less room than they do. It is dropped as soon as a
//! bucket in its range is written or removed, cached or not. More columns are made of it only from buckets that are cached,
//! or that were read while storage was at the epoch that memory knows (I26).

use std::cell::Cell;
use std::rc::Rc;

use super::bucket_cache::BucketCache;
use super::keyspace::CollectionId;
use super::stored_bucket::Coverage;
use crate::bucket::KeptColumns;
use crate::limits::RUNS_MAX;
use crate::storage::KeyRange;
use crate::value::hash;

/// Neighbouring buckets.
pub struct BucketRun {
    /// Their collection.
    pub collection: CollectionId,
    /// The range of keys in which they are all stored buckets.
    pub range: KeyRange,
    /// How many they are.
    pub buckets: usize,
    /// How many rows they have together.
    pub rows: usize,
    /// The bytes of their documents.
    pub size_bytes: usize,
    /// How many rows the buckets up to each of them have, that one included.
    pub ends: Box<[u32]>,
    /// Which journal records one of them may hold.
    pub coverage: Coverage,
    /// How many of them were unpacked for whole rows, again and again.
    pub unpacked: Cell<usize>,
    /// Their joined columns.
    pub kept: KeptColumns,
}

impl BucketCache {
    /// The run at the start of `range`, none if that is empty. It may begin earlier or end later only if that `may` be.
    pub fn run(&self, range: &KeyRange, may: (bool, bool)) -> Option<Rc<BucketRun>> {
        let run = self.runs.get(self.runs.partition_point(|run| run.range.end <= range.start))?;
        let is_it = range.start < range.end
            && (run.range.start == range.start || may.0 && run.range.start < range.start)
            && (may.1 || run.range.end <= range.end);
        is_it.then(|| Rc::clone(run))
    }

    /// The buckets and the rows of neighbouring runs from the start of `range` on, and whether they reach its end.
    pub fn runs_of(&self, range: &KeyRange) -> (usize, usize, bool) {
        let (mut buckets, mut rows, mut end) = (0, 0, &range.start);
        for run in self.runs.iter().skip(self.runs.partition_point(|run| run.range.end <= range.start)) {
            if run.range.start > *end || *end >= range.end {
                break;
            }
            (buckets, rows, end) = (buckets + run.buckets, rows + run.rows, &run.range.end);
        }
        (buckets, rows, *end >= range.end)
    }

    /// Notes a run of buckets, which are all of the range and none of which has changed. Returns it, or the one that was known.
    pub fn add_run(&mut self, run: BucketRun) -> Rc<BucketRun> {
        let from = self.runs.partition_point(|known| known.range.end <= run.range.start);
        if let Some(known) = self.runs.get(from).filter(|known| known.range == run.range) {
            return Rc::clone(known);
        }
        while self.runs.get(from).is_some_and(|known| known.range.start < run.range.end) {
            self.runs.remove(from);
        }
        run.kept.allow(&self.room);
        let run = Rc::new(run);
        self.runs.insert(from, Rc::clone(&run));
        if self.runs.len() > RUNS_MAX {
            // Any other one: whoever scans more than there is room for must not find that all are gone.
            let other = (from + 1 + hash(0, &run.range.start) as usize % RUNS_MAX) % self.runs.len();
            self.runs.remove(other);
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use super::super::keyspace;
    use super::super::stored_bucket::StoredBucket;
    use super::*;
    use crate::bucket::BucketId;
    use crate::limits::READ_CACHE_BYTES;
    use crate::value::DocWriter;

    const COLLECTION: CollectionId = [1; 8];

    fn id(number: u8) -> BucketId {
        BucketId::from_bytes([number; 12])
    }

    fn range(low: u8, high: u8) -> KeyRange {
        keyspace::buckets(&COLLECTION, &id(low), &id(high))
    }

    fn put(cache: &mut BucketCache, number: u8) {
        let stored = StoredBucket::new(Default::default(), DocWriter::new().finish());
        cache.put(&COLLECTION, &id(number), Some(Rc::new(stored)));
    }

    /// A run of two buckets.
    fn run(range: KeyRange) -> BucketRun {
        BucketRun {
            collection: COLLECTION,
            range,
            buckets: 2,
            rows: 5,
            size_bytes: 1000,
            ends: [2, 5].into(),
            coverage: Coverage::default(),
            unpacked: Cell::default(),
            kept: KeptColumns::default(),
        }
    }

    fn add(cache: &mut BucketCache, low: u8, high: u8) -> Rc<BucketRun> {
        cache.add_run(run(range(low, high)))
    }

    /// Buckets 10 to 59, of which each ten are a run.
    fn cache() -> BucketCache {
        let mut cache = BucketCache::new(READ_CACHE_BYTES);
        (10..60).for_each(|number| put(&mut cache, number));
        cache.cover(&COLLECTION, &range(10, 59));
        [30, 10, 50, 20, 40].iter().for_each(|low| _ = add(&mut cache, *low, low + 9));
        cache
    }

    fn known(cache: &BucketCache) -> Vec<u8> {
        (10..60).filter(|low| cache.run(&range(*low, 59), (false, false)).is_some()).collect()
    }

    #[test]
    fn a_run_is_found_where_it_begins_if_it_ends_within_the_range() {
        let mut cache = cache();
        assert_eq!(known(&cache), [10, 20, 30, 40, 50]);
        let start = |low, high, may| cache.run(&range(low, high), may).map(|run| run.range.start.clone());
        let exact = (false, false);
        assert!(start(20, 28, exact).is_none() && start(20, 29, exact).is_some());
        assert!(start(5, 59, exact).is_none() && start(60, 99, exact).is_none());
        assert!(start(20, 28, (true, false)).is_none() && start(20, 28, (false, true)).is_some());
        assert!(start(25, 59, (false, true)).is_none());
        assert_eq!(start(25, 26, (true, true)), Some(range(20, 20).start));
        assert!(start(5, 59, (true, true)).is_none() && start(60, 99, (true, true)).is_none());
        let [first, again] = [(); 2].map(|()| add(&mut cache, 20, 29));
        assert!(Rc::ptr_eq(&first, &again));
    }

    #[test]
    fn a_run_is_dropped_when_something_changes_in_its_range() {
        let mut cache = cache();
        put(&mut cache, 25);
        assert_eq!(known(&cache), [10, 30, 40, 50]);
        cache.remove(&COLLECTION, &id(30));
        assert_eq!(known(&cache), [10, 40, 50]);
        cache.put(&COLLECTION, &id(59), None);
        put(&mut cache, 60);
        cache.put(&[2; 8], &id(41), None);
        assert_eq!(known(&cache), [10, 40]);
        cache.forget(&[2; 8]);
        assert_eq!(known(&cache), [10, 40]);
        cache.forget(&COLLECTION);
        assert!(known(&cache).is_empty() && cache.runs.is_empty());
    }

    #[test]
    fn a_run_that_overlaps_others_takes_their_place() {
        let mut cache = cache();
        add(&mut cache, 15, 34);
        assert_eq!(known(&cache), [15, 40, 50]);
        add(&mut cache, 15, 20);
        assert_eq!(known(&cache), [15, 40, 50]);
        assert_eq!(cache.runs.len(), 3);
    }

    #[test]
    fn neighbouring_runs_are_counted_as_far_as_they_reach() {
        let mut cache = BucketCache::new(READ_CACHE_BYTES);
        let mut end = range(10, 10).start;
        for last in [19, 29, 39] {
            let range = KeyRange { start: end, end: range(last, last).end };
            end = range.end.clone();
            cache.add_run(run(range));
        }
        let all = |cache: &BucketCache| [cache.runs_of(&range(10, 39)), cache.runs_of(&range(10, 45))];
        assert_eq!(all(&cache), [(6, 15, true), (6, 15, false)]);
        assert_eq!(cache.runs_of(&range(25, 31)), (4, 10, true));
        assert_eq!([cache.runs_of(&range(9, 31)), cache.runs_of(&range(60, 70))], [(0, 0, false); 2]);
        put(&mut cache, 25);
        assert_eq!(all(&cache), [(2, 5, false); 2]);
    }

    #[test]
    fn runs_outlive_their_buckets_in_the_cache_until_one_of_these_changes() {
        let mut cache = cache();
        let mut writer = DocWriter::new();
        writer.string("x", &"x".repeat(crate::limits::bucket_cache_bytes(READ_CACHE_BYTES) - 25 * 400));
        let large = Rc::new(StoredBucket::new(Default::default(), writer.finish()));
        cache.put(&[2; 8], &id(1), Some(large));
        assert!(cache.get(&COLLECTION, &id(10)).is_none() && cache.get(&COLLECTION, &id(59)).is_some());
        assert_eq!(known(&cache), [10, 20, 30, 40, 50]);
        let again = StoredBucket::new(Default::default(), DocWriter::new().finish());
        cache.put_read(&COLLECTION, &id(12), Some(Rc::new(again)), true);
        assert_eq!(known(&cache), [10, 20, 30, 40, 50]);
        cache.remove(&COLLECTION, &id(11));
        assert_eq!(known(&cache), [20, 30, 40, 50]);
        put(&mut cache, 22);
        assert_eq!(known(&cache), [30, 40, 50]);
    }

    #[test]
    fn the_last_run_is_remembered_and_so_many_others_at_most() {
        let mut cache = BucketCache::new(READ_CACHE_BYTES);
        for number in 0..RUNS_MAX as u32 + 100 {
            let id = |last: u8| {
                let [a, b, c, d] = number.to_be_bytes();
                BucketId::from_bytes([a, b, c, d, 0, 0, 0, 0, 0, 0, 0, last])
            };
            let range = keyspace::buckets(&COLLECTION, &id(0), &id(9));
            cache.add_run(run(range.clone()));
            assert!(cache.run(&range, (false, false)).is_some());
        }
        assert_eq!(cache.runs.len(), RUNS_MAX);
        assert!(cache.runs.is_sorted_by(|a, b| a.range.end <= b.range.start));
    }
}
