//! Two sorts for the whole crate: the standard library's is compiled again for each type and each order, at some
//! kilobytes a time.

use std::cmp::Ordering;

/// Sorts rows by their keys; rows of equal keys keep their order. For long lists.
pub fn sort_rows(rows: &mut [(u64, u32)]) {
    rows.sort_by_key(|row| row.0);
}

/// Sorts by `compare`; what is equal keeps its order. For lists that are short, or rarely sorted.
pub fn sort_by<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut order = order_of(items.len(), &mut |a, b| match (items.get(a), items.get(b)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    });
    put_in_place(&mut order, &mut |a, b| items.swap(a, b));
}

/// The numbers below `count` in the order of `compare`: runs of 1, 2, 4… are merged until one is left.
fn order_of(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    if (1..count).all(|at| compare(at - 1, at).is_le()) {
        return order;
    }
    let mut merged = Vec::with_capacity(count);
    let mut len = 1;
    while len < count {
        for runs in order.chunks(2 * len) {
            let (mut left, mut right) = runs.split_at(len.min(runs.len()));
            while let (Some((a, behind_a)), Some((b, behind_b))) = (left.split_first(), right.split_first()) {
                if compare(*a, *b).is_le() {
                    merged.push(*a);
                    left = behind_a;
                } else {
                    merged.push(*b);
                    right = behind_b;
                }
            }
            merged.extend_from_slice(left);
            merged.extend_from_slice(right);
        }
        std::mem::swap(&mut order, &mut merged);
        merged.clear();
        len *= 2;
    }
    order
}

/// Brings to every place what `order` says belongs there, cycle by cycle.
fn put_in_place(order: &mut [usize], swap: &mut dyn FnMut(usize, usize)) {
    for start in 0..order.len() {
        let mut at = start;
        while let Some(slot) = order.get_mut(at) {
            let from = std::mem::replace(slot, at);
            if from == start {
                break;
            }
            swap(at, from);
            at = from;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn both_sorts_are_those_of_the_standard_library(keys in proptest::collection::vec(0..40_u64, 0..200)) {
            let given: Vec<(u64, u32)> = keys.into_iter().zip(0..).collect();
            let mut wanted = given.clone();
            wanted.sort();
            let (mut rows, mut items) = (given.clone(), given);
            sort_rows(&mut rows);
            sort_by(&mut items, |a, b| a.0.cmp(&b.0));
            prop_assert_eq!(&rows, &wanted);
            prop_assert_eq!(&items, &wanted);
        }
    }
}
