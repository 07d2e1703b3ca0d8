//! Which cells a comparison holds for, as words (see `bits`). Two operands that are the same for all rows give one row.

use crate::bits::{of, of_pairs};
use crate::operand::Operand;

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

#[inline(always)]
fn each<T: Copy>(a: Operand<'_, T>, b: Operand<'_, T>, holds: impl Fn(T, T) -> bool) -> Vec<u64> {
    match (a, b) {
        (Operand::Cells(a), Operand::Cells(b)) => of_pairs(a, b, holds),
        (Operand::Cells(a), Operand::Same(y)) => of(a, |x| holds(x, y)),
        (Operand::Same(x), Operand::Cells(b)) => of(b, |y| holds(x, y)),
        (Operand::Same(x), Operand::Same(y)) => of(&[x], |x| holds(x, y)),
    }
}

/// The same for an operator that holds for `b` and `a` if it holds for `a` and `b`.
#[inline(always)]
fn each_way<T: Copy>(a: Operand<'_, T>, b: Operand<'_, T>, holds: impl Fn(T, T) -> bool) -> Vec<u64> {
    match (a, b) {
        (Operand::Cells(a), Operand::Cells(b)) => of_pairs(a, b, holds),
        (Operand::Cells(cells), Operand::Same(y)) | (Operand::Same(y), Operand::Cells(cells)) => {
            of(cells, |x| holds(x, y))
        }
        (Operand::Same(x), Operand::Same(y)) => of(&[x], |x| holds(x, y)),
    }
}

macro_rules! comparisons {
    ($(#[$doc:meta] $name:ident $type:ty, $each:ident, $holds:expr;)*) => {$(
        #[$doc]
        #[inline(never)]
        pub fn $name(a: Operand<'_, $type>, b: Operand<'_, $type>) -> Vec<u64> {
            $each(a, b, $holds)
        }
    )*};
}

comparisons! {
    /// `a == b` in the order of values: NaN equals NaN, and 0 equals -0.
    equal_doubles f64, each_way, |x, y| (x == y) | (x.is_nan() & y.is_nan());
    /// `a < b` in the order of values: NaN is less than every number.
    less_doubles f64, each, |x, y| (x < y) | (x.is_nan() & !y.is_nan());
    /// `a == b`.
    equal_int32s i32, each_way, |x, y| x == y;
    /// `a < b`.
    less_int32s i32, each, |x, y| x < y;
    /// `a == b`.
    equal_int64s i64, each_way, |x, y| x == y;
    /// `a < b`.
    less_int64s i64, each, |x, y| x < y;
    /// `a == b`, as for booleans and the codes of a dictionary.
    equal_codes u32, each_way, |x, y| x == y;
}

/// The rows that are not in `words`. Two operands that are the same for all rows have one row.
fn others<T>(mut words: Vec<u64>, a: Operand<'_, T>, b: Operand<'_, T>) -> Vec<u64> {
    let rows = match (a, b) {
        (Operand::Cells(a), Operand::Cells(b)) => a.len().min(b.len()),
        (Operand::Cells(cells), _) | (_, Operand::Cells(cells)) => cells.len(),
        _ => 1,
    };
    words.iter_mut().for_each(|word| *word = !*word);
    if let Some(last) = words.last_mut().filter(|_| !rows.is_multiple_of(64)) {
        *last &= u64::MAX >> (64 - rows % 64);
    }
    words
}

/// `a <= b` in the order of values: NaN is less than every number.
pub fn not_greater_doubles(a: Operand<'_, f64>, b: Operand<'_, f64>) -> Vec<u64> {
    others(less_doubles(b, a), a, b)
}

/// `a <= b`.
pub fn not_greater_int32s(a: Operand<'_, i32>, b: Operand<'_, i32>) -> Vec<u64> {
    others(less_int32s(b, a), a, b)
}

/// `a <= b`.
pub fn not_greater_int64s(a: Operand<'_, i64>, b: Operand<'_, i64>) -> Vec<u64> {
    others(less_int64s(b, a), a, b)
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
            let all = [(equal_doubles as fn(_, _) -> _, &[Ordering::Equal][..]), (less_doubles, &[Ordering::Less]), (not_greater_doubles, &[Ordering::Less, Ordering::Equal])];
            for (compare, orders) in all {
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
            prop_assert_eq!(equal_int64s(Cells(&a), Cells(&b)), expected(a.len(), |i| a[i] == b[i]));
            prop_assert_eq!(less_int64s(Cells(&a), Cells(&b)), expected(a.len(), |i| a[i] < b[i]));
            prop_assert_eq!(not_greater_int64s(Cells(&a), Same(low)), expected(a.len(), |i| a[i] <= low));
            prop_assert_eq!(int64s_between(&a, low, high), expected(a.len(), |i| (low..=high).contains(&a[i])));
            let narrow = |cells: &[i64]| cells.iter().map(|n| *n as i32).collect::<Vec<_>>();
            let (a, b, low, high) = (narrow(&a), narrow(&b), low as i32, high as i32);
            prop_assert_eq!(equal_int32s(Cells(&a), Cells(&b)), expected(a.len(), |i| a[i] == b[i]));
            prop_assert_eq!(less_int32s(Same(low), Cells(&b)), expected(a.len(), |i| low < b[i]));
            prop_assert_eq!(not_greater_int32s(Cells(&a), Cells(&b)), expected(a.len(), |i| a[i] <= b[i]));
            prop_assert_eq!(int32s_between(&a, low, high), expected(a.len(), |i| (low..=high).contains(&a[i])));
            let codes: Vec<u32> = a.iter().map(|n| n.cast_unsigned()).collect();
            prop_assert_eq!(equal_codes(Cells(&codes), Same(codes[0])), expected(codes.len(), |i| codes[i] == codes[0]));
        }
    }
}
