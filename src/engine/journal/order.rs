//! The groups of journals in the order of their buckets, which is found once.

use std::rc::Rc;

use super::sections::ByBucket;
use crate::bucket::BucketId;
use crate::value::sort_by;

impl ByBucket {
    /// The places of all groups among buckets, ascending, and their numbers. Those of groups with resolutions may change.
    #[inline(never)]
    pub fn in_order(&self, have_resolutions: bool) -> Rc<Vec<(BucketId, usize)>> {
        let mut known = self.ordered.borrow_mut();
        if have_resolutions {
            *known = Rc::default();
        }
        if known.len() < self.groups().len() {
            let places = Rc::make_mut(&mut known);
            let new = self.groups().iter().enumerate().skip(places.len());
            places.extend(new.map(|(number, group)| (group.place(), number)));
            sort_by(places, Ord::cmp);
        }
        Rc::clone(&known)
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::shared;
    use super::*;

    #[test]
    fn groups_are_in_the_order_of_their_buckets_also_behind_new_ones() {
        let mut by_bucket = ByBucket::default();
        assert!(by_bucket.in_order(false).is_empty());
        by_bucket.push(&shared(1, 0, &[(4, &[1]), (2, &[1])]));
        let numbers = |by_bucket: &ByBucket| by_bucket.in_order(false).iter().map(|(_, at)| *at).collect::<Vec<_>>();
        assert_eq!(numbers(&by_bucket), [1, 0]);
        let before = by_bucket.in_order(false);
        by_bucket.push(&shared(1, 1, &[(3, &[1]), (2, &[3]), (1, &[1])]));
        assert_eq!((numbers(&by_bucket), before.len()), (vec![3, 1, 2, 0], 2));
        assert_eq!(by_bucket.in_order(true), by_bucket.in_order(false));
    }
}
