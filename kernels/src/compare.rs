//! Which cells a comparison holds for, as words (see `bits`). Two operands that are the same for all rows give one row.

use crate::bits::{of, word_of_pairs};
use crate::operand::{Operand, in_chunks, rows_of};

/// Which doubles lie from `low` to `high`, both included. A NaN is never among them.
#[inline(never)]
pub fn doubles_between(cells: &[f64], low: f64, high: f64) -> Vec<u64> {
    of(cells, |x| (low <= x) & (x <= high))
}

/// Which int32s lie from `low` to `high`, both included.
#[inline(never)]
pub fn int32s_between(cells: &[i32], low: i32, high: i32) -> Vec<u64> {
    of(cells, |n| (low <= n) & (n <= high))
}

/// Which int64s lie from `low` to `high`, both included.
#[inline(never)]
pub fn int64s_between(cells: &[i64], low: i64, high: i64) -> Vec<u64> {
    of(cells, |n| (low <= n) & (n <= high))
}

/// Which doubles are NaN.
#[inline(never)]
pub fn nans(cells: &[f64]) -> Vec<u64> {
    of(cells, f64::is_nan)
}

/// Which bytes equal `byte`.
#[inline(never)]
pub fn equal_bytes(cells: &[u8], byte: u8) -> Vec<u64> {
    of(cells, |cell| cell == byte)
}

/// How two values compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// `a == b`.
    Equal,
    /// `a < b`.
    Less,
    /// `a <= b`.
    NotGreater,
}

#[inline(always)]
fn each<T: Copy>(
    comparison: Comparison,
    a: Operand<'_, T>,
    b: Operand<'_, T>,
    equal: impl Fn(T, T) -> bool,
    less: impl Fn(T, T) -> bool,
) -> Vec<u64> {
    let mut words = Vec::with_capacity(rows_of(a, b).div_ceil(64));
    in_chunks(a, b, |a, b| {
        words.push(match comparison {
            Comparison::Equal => word_of_pairs(a, b, &equal),
            Comparison::Less => word_of_pairs(a, b, &less),
            // There is no chunk without rows.
            Comparison::NotGreater => !word_of_pairs(b, a, &less) & u64::MAX >> (64 - a.len().clamp(1, 64)),
        });
    });
    words
}

/// Doubles in the order of values: NaN equals NaN and is less than every number, and 0 equals -0.
#[inline(never)]
pub fn doubles(comparison: Comparison, a: Operand<'_, f64>, b: Operand<'_, f64>) -> Vec<u64> {
    let equal = |x: f64, y: f64| (x == y) | (x.is_nan() & y.is_nan());
    each(comparison, a, b, equal, |x, y| (x < y) | (x.is_nan() & !y.is_nan()))
}

/// Int64s.
#[inline(never)]
pub fn int64s(comparison: Comparison, a: Operand<'_, i64>, b: Operand<'_, i64>) -> Vec<u64> {
    each(comparison, a, b, |x, y| x == y, |x, y| x < y)
}

#[cfg(test)]
mod tests {
    use super::Operand::{Cells, Same};
    use super::*;
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn expected(rows: usize, holds: impl Fn(usize) -> bool) -> Vec<u64> {
        let mut words = vec![0; rows.div_ceil(64)];
        (0..rows).filter(|row| holds(*row)).for_each(|row| words[row / 64] |= 1 << (row % 64));
        words
    }

    /// The order of values.
    fn order(x: f64, y: f64) -> Ordering {
        x.partial_cmp(&y).unwrap_or_else(|| y.is_nan().cmp(&x.is_nan()))
    }

    fn any_double() -> impl Strategy<Value = f64> {
        prop_oneof![any::<f64>(), (-2..3).prop_map(f64::from), Just(-0.0), Just(f64::NAN), Just(f64::INFINITY)]
    }

    proptest! {
        #[test]
        fn doubles_compare_in_the_order_of_values(pairs in proptest::collection::vec((any_double(), any_double()), 1..200)) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
            let all = [
                (Comparison::Equal, &[Ordering::Equal][..]),
                (Comparison::Less, &[Ordering::Less]),
                (Comparison::NotGreater, &[Ordering::Less, Ordering::Equal]),
            ];
            for (comparison, orders) in all {
                let compare = |a, b| doubles(comparison, a, b);
                let holds = |x, y| orders.contains(&order(x, y));
                prop_assert_eq!(compare(Cells(&a), Cells(&b)), expected(a.len(), |i| holds(a[i], b[i])));
                prop_assert_eq!(compare(Cells(&a), Same(b[0])), expected(a.len(), |i| holds(a[i], b[0])));
                prop_assert_eq!(compare(Same(a[0]), Cells(&b)), expected(a.len(), |i| holds(a[0], b[i])));
                prop_assert_eq!(compare(Same(a[0]), Same(b[0])), expected(1, |_| holds(a[0], b[0])));
            }
            let (low, high) = (b[0], *b.last().unwrap());
            prop_assert_eq!(doubles_between(&a, low, high), expected(a.len(), |i| (low..=high).contains(&a[i])));
            prop_assert_eq!(nans(&a), expected(a.len(), |i| a[i].is_nan()));
        }

        #[test]
        fn integers_compare_as_one_by_one(pairs in proptest::collection::vec((any::<i64>(), any::<i64>()), 1..200), shift in 0..64_u32) {
            let (a, b): (Vec<i64>, Vec<i64>) = pairs.iter().map(|(x, y)| (x >> shift, y >> shift)).unzip();
            let (low, high) = (b[0], *b.last().unwrap());
            prop_assert_eq!(int64s(Comparison::Equal, Cells(&a), Cells(&b)), expected(a.len(), |i| a[i] == b[i]));
            prop_assert_eq!(int64s(Comparison::Less, Same(low), Cells(&b)), expected(a.len(), |i| low < b[i]));
            prop_assert_eq!(int64s(Comparison::NotGreater, Cells(&a), Same(low)), expected(a.len(), |i| a[i] <= low));
            prop_assert_eq!(int64s_between(&a, low, high), expected(a.len(), |i| (low..=high).contains(&a[i])));
            let narrow = |cells: &[i64]| cells.iter().map(|n| *n as i32).collect::<Vec<_>>();
            let (a, low, high) = (narrow(&a), low as i32, high as i32);
            prop_assert_eq!(int32s_between(&a, low, high), expected(a.len(), |i| (low..=high).contains(&a[i])));
            let bytes: Vec<u8> = a.iter().map(|n| *n as u8).collect();
            prop_assert_eq!(equal_bytes(&bytes, bytes[0]), expected(bytes.len(), |i| bytes[i] == bytes[0]));
        }
    }
}
