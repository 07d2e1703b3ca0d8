//! Where matching measurements can be: an interval of times, and one of bucket ids.

use std::ops::{Bound, RangeBounds};

use crate::bucket::BucketId;

/// An interval of bucket ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IdRange {
    /// The lower end.
    pub low: Bound<BucketId>,
    /// The upper end.
    pub high: Bound<BucketId>,
}

impl IdRange {
    /// Every id.
    pub const FULL: IdRange = IdRange { low: Bound::Unbounded, high: Bound::Unbounded };

    /// No id. The ends exclude the largest and the smallest id, so that intersecting and covering need no special case.
    pub fn empty() -> IdRange {
        IdRange {
            low: Bound::Excluded(BucketId::highest_at(i64::MAX)),
            high: Bound::Excluded(BucketId::lowest_at(i64::MIN)),
        }
    }

    /// True if it contains every id.
    pub fn is_full(&self) -> bool {
        *self == IdRange::FULL
    }

    /// True if it contains no id.
    pub fn is_empty(&self) -> bool {
        match (self.low, self.high) {
            (Bound::Unbounded, _) | (_, Bound::Unbounded) => false,
            (Bound::Included(low), Bound::Included(high)) => low > high,
            (Bound::Included(low) | Bound::Excluded(low), Bound::Included(high) | Bound::Excluded(high)) => low >= high,
        }
    }

    /// True if `id` lies inside.
    pub fn contains(&self, id: &BucketId) -> bool {
        RangeBounds::contains(&(self.low, self.high), id)
    }
}

/// An interval of times and one of bucket ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reach {
    /// The first time, included.
    pub(super) first_ms: i64,
    /// The last time, included.
    pub(super) last_ms: i64,
    /// The ids of buckets with such times.
    pub(super) ids: IdRange,
}

impl Reach {
    /// All times and buckets.
    pub(super) const EVERYWHERE: Reach = Reach { first_ms: i64::MIN, last_ms: i64::MAX, ids: IdRange::FULL };

    /// No times and no buckets.
    pub(super) fn nowhere() -> Reach {
        Reach { first_ms: i64::MAX, last_ms: i64::MIN, ids: IdRange::empty() }
    }

    /// The intersection.
    pub(super) fn intersect(self, other: Reach) -> Reach {
        Reach {
            first_ms: self.first_ms.max(other.first_ms),
            last_ms: self.last_ms.min(other.last_ms),
            ids: IdRange {
                low: greatest(self.ids.low, other.ids.low, low_rank),
                high: least(self.ids.high, other.ids.high, high_rank),
            },
        }
    }

    /// The smallest interval around both.
    pub(super) fn cover(self, other: Reach) -> Reach {
        Reach {
            first_ms: self.first_ms.min(other.first_ms),
            last_ms: self.last_ms.max(other.last_ms),
            ids: IdRange {
                low: least(self.ids.low, other.ids.low, low_rank),
                high: greatest(self.ids.high, other.ids.high, high_rank),
            },
        }
    }
}

type End = Bound<BucketId>;

fn greatest<K: Ord>(a: End, b: End, rank: fn(End) -> K) -> End {
    if rank(a) >= rank(b) { a } else { b }
}

fn least<K: Ord>(a: End, b: End, rank: fn(End) -> K) -> End {
    if rank(a) <= rank(b) { a } else { b }
}

/// Orders lower ends: a bound that excludes its id comes after one that includes it.
fn low_rank(end: End) -> Option<(BucketId, bool)> {
    match end {
        Bound::Unbounded => None,
        Bound::Included(id) => Some((id, false)),
        Bound::Excluded(id) => Some((id, true)),
    }
}

/// Orders upper ends: unbounded comes last.
fn high_rank(end: End) -> (bool, Option<(BucketId, bool)>) {
    match end {
        Bound::Unbounded => (true, None),
        Bound::Included(id) => (false, Some((id, true))),
        Bound::Excluded(id) => (false, Some((id, false))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(seconds: i64) -> BucketId {
        BucketId::new(seconds * 1000, 7)
    }

    fn between(low: End, high: End) -> Reach {
        Reach { ids: IdRange { low, high }, ..Reach::EVERYWHERE }
    }

    #[test]
    fn the_empty_range_is_neutral_to_union_and_the_full_one_to_intersection() {
        let some = Reach {
            first_ms: 5,
            last_ms: 9,
            ids: IdRange { low: Bound::Included(id(1)), high: Bound::Excluded(id(3)) },
        };
        assert_eq!(Reach::nowhere().cover(some), some);
        assert_eq!(Reach::EVERYWHERE.intersect(some), some);
        assert_eq!(Reach::nowhere().intersect(some), Reach::nowhere());
        assert_eq!(Reach::EVERYWHERE.cover(some), Reach::EVERYWHERE);
        assert!(Reach::nowhere().ids.is_empty() && !some.ids.is_empty() && Reach::EVERYWHERE.ids.is_full());
    }

    #[test]
    fn an_excluded_bound_is_narrower_than_an_included_one() {
        let excluded = between(Bound::Excluded(id(1)), Bound::Excluded(id(5)));
        let included = between(Bound::Included(id(1)), Bound::Included(id(5)));
        assert_eq!(excluded.intersect(included), excluded);
        assert_eq!(excluded.cover(included), included);
        assert!(!excluded.ids.contains(&id(1)) && included.ids.contains(&id(5)) && excluded.ids.contains(&id(2)));
        assert!(between(Bound::Included(id(5)), Bound::Included(id(1))).ids.is_empty());
    }
}
