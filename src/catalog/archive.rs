//! Archived buckets, of which memory holds only the start and the id.

use crate::bucket::BucketId;

/// Estimated memory of an archived bucket.
pub const ARCHIVED_BUCKET_BYTES: usize = 52;

/// Archived buckets of a collection. Series are distinguished only by a hash; the metadata is compared when a bucket is
/// reopened.
#[derive(Debug, Default)]
pub struct Archive {
    /// Ascending by series and start, which together are unique.
    entries: Vec<(u64, i64, BucketId)>,
}

impl Archive {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    fn place(&self, series: u64, min_time_ms: i64) -> usize {
        self.entries.partition_point(|(s, min, _)| (*s, *min) < (series, min_time_ms))
    }

    /// Archives a bucket; false if another bucket of the series begins at the same time.
    pub fn insert(&mut self, series: u64, min_time_ms: i64, id: BucketId) -> bool {
        let at = self.place(series, min_time_ms);
        let free = self.entries.get(at).is_none_or(|(s, min, _)| (*s, *min) != (series, min_time_ms));
        if free {
            self.entries.insert(at, (series, min_time_ms, id));
        }
        free
    }

    /// The latest bucket of a series that begins at or before `time_ms`, if its span reaches that time.
    pub fn candidate(&self, series: u64, time_ms: i64, span_ms: i64) -> Option<BucketId> {
        let at = self.entries.partition_point(|(s, min, _)| (*s, *min) <= (series, time_ms)).checked_sub(1)?;
        let (s, min, id) = self.entries.get(at)?;
        (*s == series && time_ms.saturating_sub(*min) < span_ms).then_some(*id)
    }

    /// Removes the bucket `id`, which begins at `min_time_ms`; false if it is not archived.
    pub fn remove(&mut self, series: u64, min_time_ms: i64, id: BucketId) -> bool {
        let at = self.place(series, min_time_ms);
        let there = self.entries.get(at) == Some(&(series, min_time_ms, id));
        if there {
            self.entries.remove(at);
        }
        there
    }

    /// Removes the bucket `id`, wherever it begins; returns the number of entries removed.
    pub fn forget(&mut self, id: BucketId) -> usize {
        let before = self.entries.len();
        self.entries.retain(|(_, _, archived)| *archived != id);
        before - self.entries.len()
    }

    /// Removes the greatest entry; false if there is none.
    pub fn pop(&mut self) -> bool {
        self.entries.pop().is_some()
    }

    pub fn clear(&mut self) {
        self.entries.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u8) -> BucketId {
        BucketId::from_bytes([n; 12])
    }

    #[test]
    fn the_candidate_is_the_last_to_begin_before_the_time_and_spans_it() {
        let mut archive = Archive::default();
        assert!(archive.insert(1, 100, id(1)) && archive.insert(1, 150, id(2)) && archive.insert(2, 0, id(3)));
        for (series, time, expected) in [
            (1, 99, None),
            (1, 100, Some(id(1))),
            (1, 149, Some(id(1))),
            (1, 150, Some(id(2))),
            (1, 249, Some(id(2))),
            (1, 250, None),
            (2, 99, Some(id(3))),
            (0, 99, None),
            (3, 99, None),
        ] {
            assert_eq!(archive.candidate(series, time, 100), expected, "{series} {time}");
        }
    }

    #[test]
    fn of_two_buckets_with_the_same_start_the_older_entry_stays() {
        let mut archive = Archive::default();
        assert!(archive.insert(1, 100, id(1)) && !archive.insert(1, 100, id(2)));
        assert!(!archive.remove(1, 100, id(2)) && archive.remove(1, 100, id(1)));
        assert_eq!(archive.len(), 0);
    }

    #[test]
    fn the_largest_entry_is_removed_first() {
        let mut archive = Archive::default();
        assert!(archive.insert(2, 0, id(1)) && archive.insert(1, 900, id(2)) && archive.insert(2, 5, id(3)));
        assert!(archive.pop());
        assert_eq!((archive.candidate(2, 9, 10), archive.candidate(1, 900, 10)), (Some(id(1)), Some(id(2))));
    }
}
