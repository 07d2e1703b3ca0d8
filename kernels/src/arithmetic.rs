//! Arithmetic of columns. A result has a cell for each row; of two operands that are the same for all rows it has one.

use crate::operand::{Operand, each};

macro_rules! doubles {
    ($(#[$doc:meta] $name:ident $op:tt;)*) => {$(
        #[$doc]
        #[inline(never)]
        pub fn $name(a: Operand<'_, f64>, b: Operand<'_, f64>) -> Vec<f64> {
            each(a, b, |x, y| x $op y)
        }
    )*};
}

doubles! {
    /// `a + b`.
    add_doubles +;
    /// `a - b`.
    subtract_doubles -;
    /// `a * b`.
    multiply_doubles *;
    /// `a / b`. Division by zero gives an infinity or NaN.
    divide_doubles /;
}

/// Integers whose result may lie beyond them. `None` if that is so in any row.
macro_rules! integers {
    ($(#[$doc:meta] $name:ident $type:ty, $wrapping:ident, $overflow:expr;)*) => {$(
        #[$doc]
        ///
        /// `None` if a result is beyond the type.
        #[inline(never)]
        pub fn $name(a: Operand<'_, $type>, b: Operand<'_, $type>) -> Option<Vec<$type>> {
            let results = each(a, b, |x, y| x.$wrapping(y));
            // The highest bit tells. A second loop, because one with an early end is not vectorised.
            let rows = results.iter();
            let overflow: fn($type, $type, $type) -> $type = $overflow;
            let over = match (a, b) {
                (Operand::Cells(a), Operand::Cells(b)) => {
                    rows.zip(a.iter().zip(b)).fold(0, |over, (r, (x, y))| over | overflow(*r, *x, *y))
                }
                (Operand::Cells(a), Operand::Same(y)) => rows.zip(a).fold(0, |over, (r, x)| over | overflow(*r, *x, y)),
                (Operand::Same(x), Operand::Cells(b)) => rows.zip(b).fold(0, |over, (r, y)| over | overflow(*r, x, *y)),
                (Operand::Same(x), Operand::Same(y)) => rows.fold(0, |over, r| over | overflow(*r, x, y)),
            };
            (over >= 0).then_some(results)
        }
    )*};
}

integers! {
    /// `a + b`.
    add_int32s i32, wrapping_add, |r, x, y| (x ^ r) & (y ^ r);
    /// `a - b`.
    subtract_int32s i32, wrapping_sub, |r, x, y| (x ^ y) & (x ^ r);
    /// `a + b`.
    add_int64s i64, wrapping_add, |r, x, y| (x ^ r) & (y ^ r);
    /// `a - b`.
    subtract_int64s i64, wrapping_sub, |r, x, y| (x ^ y) & (x ^ r);
}

/// `a * b`. `None` if a result is beyond the type.
#[inline(never)]
pub fn multiply_int32s(a: Operand<'_, i32>, b: Operand<'_, i32>) -> Option<Vec<i32>> {
    let wide = each(a, b, |x, y| i64::from(x) * i64::from(y));
    let over = wide.iter().fold(0, |over, r| over | (r ^ i64::from(*r as i32)));
    (over == 0).then(|| wide.iter().map(|r| *r as i32).collect())
}

/// `a * b`. `None` if a result is beyond the type.
#[inline(never)]
pub fn multiply_int64s(a: Operand<'_, i64>, b: Operand<'_, i64>) -> Option<Vec<i64>> {
    let wide = each(a, b, i64::overflowing_mul);
    let over = wide.iter().fold(false, |over, (_, o)| over | o);
    (!over).then(|| wide.iter().map(|(r, _)| *r).collect())
}

#[cfg(test)]
mod tests {
    use super::Operand::{Cells, Same};
    use super::*;
    use proptest::prelude::*;

    fn any_int64() -> impl Strategy<Value = i64> {
        prop_oneof![any::<i64>(), -9..9_i64, Just(i64::MAX), Just(i64::MIN), any::<i32>().prop_map(i64::from)]
    }

    fn any_int32() -> impl Strategy<Value = i32> {
        prop_oneof![any::<i32>(), -9..9, Just(i32::MAX), Just(i32::MIN)]
    }

    /// Pairs of values, and operands that say the same.
    type Case<T> = (Vec<(T, T)>, [Operand<'static, T>; 2]);

    /// Every shape of operands; what is the same for all rows is the first value.
    fn shapes<T: Copy + 'static>(a: &[T], b: &[T]) -> Vec<Case<T>> {
        let leaked = |cells: &[T]| -> &'static [T] { Box::leak(cells.to_vec().into_boxed_slice()) };
        let (x, y) = (a[0], b[0]);
        let both = a.iter().copied().zip(b.iter().copied()).collect();
        vec![
            (both, [Cells(leaked(a)), Cells(leaked(b))]),
            (a.iter().map(|x| (*x, y)).collect(), [Cells(leaked(a)), Same(y)]),
            (b.iter().map(|y| (x, *y)).collect(), [Same(x), Cells(leaked(b))]),
            (vec![(x, y)], [Same(x), Same(y)]),
        ]
    }

    proptest! {
        #[test]
        fn doubles_are_computed_as_one_by_one(pairs in proptest::collection::vec(any::<(f64, f64)>(), 1..40)) {
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
            let bits = |all: &[f64]| all.iter().map(|x| if x.is_nan() { 0 } else { x.to_bits() }).collect::<Vec<_>>();
            for (rows, [a, b]) in shapes(&a, &b) {
                let expected = |f: fn(f64, f64) -> f64| bits(&rows.iter().map(|(x, y)| f(*x, *y)).collect::<Vec<_>>());
                prop_assert_eq!(bits(&add_doubles(a, b)), expected(|x, y| x + y));
                prop_assert_eq!(bits(&subtract_doubles(a, b)), expected(|x, y| x - y));
                prop_assert_eq!(bits(&multiply_doubles(a, b)), expected(|x, y| x * y));
                prop_assert_eq!(bits(&divide_doubles(a, b)), expected(|x, y| x / y));
            }
        }

        #[test]
        fn int64s_are_computed_as_one_by_one_or_not_at_all(pairs in proptest::collection::vec((any_int64(), any_int64()), 1..40), small in any::<bool>()) {
            let cut = |n: i64| if small { n >> 33 } else { n };
            let (a, b): (Vec<i64>, Vec<i64>) = pairs.iter().map(|(x, y)| (cut(*x), cut(*y))).unzip();
            for (rows, [a, b]) in shapes(&a, &b) {
                let expected = |f: fn(i64, i64) -> Option<i64>| rows.iter().map(|(x, y)| f(*x, *y)).collect::<Option<Vec<_>>>();
                prop_assert_eq!(add_int64s(a, b), expected(i64::checked_add));
                prop_assert_eq!(subtract_int64s(a, b), expected(i64::checked_sub));
                prop_assert_eq!(multiply_int64s(a, b), expected(i64::checked_mul));
            }
        }

        #[test]
        fn int32s_are_computed_as_one_by_one_or_not_at_all(pairs in proptest::collection::vec((any_int32(), any_int32()), 1..40), small in any::<bool>()) {
            let cut = |n: i32| if small { n >> 17 } else { n };
            let (a, b): (Vec<i32>, Vec<i32>) = pairs.iter().map(|(x, y)| (cut(*x), cut(*y))).unzip();
            for (rows, [a, b]) in shapes(&a, &b) {
                let expected = |f: fn(i32, i32) -> Option<i32>| rows.iter().map(|(x, y)| f(*x, *y)).collect::<Option<Vec<_>>>();
                prop_assert_eq!(add_int32s(a, b), expected(i32::checked_add));
                prop_assert_eq!(subtract_int32s(a, b), expected(i32::checked_sub));
                prop_assert_eq!(multiply_int32s(a, b), expected(i32::checked_mul));
            }
        }
    }
}
