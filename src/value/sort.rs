//! Two sorts for the whole crate. The standard library's sorts are compiled again for each type and each order, at some
//! kilobytes each.

use std::cmp::Ordering;

/// Sorts rows by their keys; stable. Meant for long lists: a radix sort from the last byte of the keys to the first
/// that skips bytes equal in all keys. Times of one bucket, for example, differ in three of eight bytes.
pub fn sort_rows(rows: &mut [(u64, u32)]) {
    if rows.is_sorted_by_key(|row| row.0) {
        return;
    }
    if rows.len() <= INSERTED_ROWS_MAX {
        return insert_in_order(rows);
    }
    let first = rows.first().map_or(0, |row| row.0);
    let differing = rows.iter().fold(0, |bits, row| bits | (row.0 ^ first));
    let mut spare = rows.to_vec();
    let (mut from, mut to) = (&mut *rows, &mut *spare);
    let mut is_in_spare = false;
    for shift in (0..u64::BITS).step_by(8).filter(|shift| (differing >> shift) & 0xFF != 0) {
        pass(from, to, shift);
        std::mem::swap(&mut from, &mut to);
        is_in_spare = !is_in_spare;
    }
    if is_in_spare {
        to.copy_from_slice(from);
    }
}

/// Distributes `rows` into `sorted` by the byte of their keys at `shift`; stable.
fn pass(rows: &[(u64, u32)], sorted: &mut [(u64, u32)], shift: u32) {
    let digit = |row: &(u64, u32)| usize::from((row.0 >> shift) as u8);
    // First how many rows have each byte, then where the next such row goes.
    let mut places = [0_usize; 256];
    for row in rows {
        if let Some(count) = places.get_mut(digit(row)) {
            *count += 1;
        }
    }
    let mut place = 0;
    for count in &mut places {
        place += std::mem::replace(count, place);
    }
    for row in rows {
        if let Some(place) = places.get_mut(digit(row)) {
            if let Some(slot) = sorted.get_mut(*place) {
                *slot = *row;
            }
            *place += 1;
        }
    }
}

/// Up to this many rows, insertion is faster than counting bytes.
const INSERTED_ROWS_MAX: usize = 64;

fn insert_in_order(rows: &mut [(u64, u32)]) {
    for behind in 1..rows.len() {
        let mut at = behind;
        while let Some([before, row]) = at.checked_sub(1).and_then(|from| rows.get_mut(from..=at))
            && before.0 > row.0
        {
            std::mem::swap(before, row);
            at -= 1;
        }
    }
}

/// Sorts by `compare`; stable. Meant for lists that are short or rarely sorted.
pub fn sort_by<T>(items: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut order = order_of(items.len(), &mut |a, b| match (items.get(a), items.get(b)) {
        (Some(a), Some(b)) => compare(a, b),
        _ => Ordering::Equal,
    });
    put_in_place(&mut order, &mut |a, b| items.swap(a, b));
}

/// The numbers below `count` in the order of `compare`: merges runs of 1, 2, 4… until one is left.
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

/// Moves every item to the place that `order` gives it, cycle by cycle.
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
        fn both_sorts_equal_those_of_the_standard_library(
            few in proptest::collection::vec(0..40_u64, 0..200),
            wide in proptest::collection::vec(proptest::num::u64::ANY, 0..200),
            shift in 0..64,
        ) {
            // Some equal keys, and keys that differ in one byte only.
            let keys = few.into_iter().map(|key| key << shift).chain(wide);
            let given: Vec<(u64, u32)> = keys.zip(0..).collect();
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
