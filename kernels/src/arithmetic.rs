//! Arithmetic of columns. A result has a cell for each row; of two operands that are the same for all rows it has one.

use crate::operand::{Operand, in_chunks, rows_of};

/// What is computed of two numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// `a + b`.
    Add,
    /// `a - b`.
    Subtract,
    /// `a * b`.
    Multiply,
    /// `a / b`. Of doubles, division by zero gives an infinity or NaN; of int64s, the fraction is cut off.
    Divide,
    /// The remainder of `a / b`, with the sign of `a`.
    Remainder,
}

/// The results for two operands.
#[inline(never)]
pub fn doubles(operator: Arithmetic, a: Operand<'_, f64>, b: Operand<'_, f64>) -> Vec<f64> {
    let mut results = Vec::with_capacity(rows_of(a, b));
    in_chunks(a, b, |a, b| {
        let rows = a.iter().zip(b);
        match operator {
            Arithmetic::Add => results.extend(rows.map(|(x, y)| x + y)),
            Arithmetic::Subtract => results.extend(rows.map(|(x, y)| x - y)),
            Arithmetic::Multiply => results.extend(rows.map(|(x, y)| x * y)),
            Arithmetic::Divide => results.extend(rows.map(|(x, y)| x / y)),
            Arithmetic::Remainder if are_near(a, b) => results.extend(rows.map(|(x, y)| near_remainder(*x, *y))),
            Arithmetic::Remainder => results.extend(rows.map(|(x, y)| x % y)),
        }
    });
    results
}

/// True if `near_remainder` computes these remainders. Asked once for some rows: in a loop with both ways, the compiler takes the slow one for all.
#[inline(always)]
fn are_near(a: &[f64], b: &[f64]) -> bool {
    /// 2^52. The whole numbers up to the sum of two numbers below it are doubles.
    const NEAR: f64 = 4_503_599_627_370_496.0;
    a.iter().fold(true, |all, x| all & (x.abs() < NEAR))
        && b.iter().fold(true, |all, y| all & (y.abs() < NEAR) & (y.abs() > 0.0) & (y.trunc() == *y))
}

/// `x % y` for numbers near to zero and a whole `y`. The operator goes bit by bit.
///
/// The quotient is rounded, but not up to the next whole number: `x` is at least 2^-53 of itself away from the next multiple, and what is rounded up is less
/// than that. All else is exact: the product is a whole number below 2^53, and the difference has no smaller digit than `x` and is less than `x`.
#[inline(always)]
fn near_remainder(x: f64, y: f64) -> f64 {
    let (size, divisor) = (x.abs(), y.abs());
    (size - (size / divisor).trunc() * divisor).copysign(x)
}

/// The results for two operands. Rows without one, because it is beyond int64 or the divisor is zero, are added to `beyond`, ascending.
#[inline(never)]
pub fn int64s(operator: Arithmetic, a: Operand<'_, i64>, b: Operand<'_, i64>, beyond: &mut Vec<usize>) -> Vec<i64> {
    let mut results: Vec<i64> = Vec::with_capacity(rows_of(a, b));
    in_chunks(a, b, |a, b| {
        let (start, rows) = (results.len(), a.iter().zip(b));
        // Negative if a result is beyond int64.
        let mut signs = 0;
        match operator {
            Arithmetic::Add | Arithmetic::Subtract => {
                // To subtract a number is to add its inverted digits and one.
                let one = i64::from(operator == Arithmetic::Subtract);
                results.extend(rows.map(|(x, y)| {
                    let y = y ^ -one;
                    let sum = x.wrapping_add(y).wrapping_add(one);
                    signs |= (x ^ sum) & (y ^ sum);
                    sum
                }));
            }
            _ => results.extend(rows.map(|(x, y)| {
                let result = checked(operator, *x, *y);
                signs |= -i64::from(result.is_none());
                result.unwrap_or_default()
            })),
        }
        if signs < 0 {
            let lacking = (start..).zip(a.iter().zip(b)).filter(|(_, (x, y))| checked(operator, **x, **y).is_none());
            beyond.extend(lacking.map(|(row, _)| row));
        }
    });
    results
}

// Inlined, it would be several loops, which no SIMD makes faster.
#[inline(never)]
fn checked(operator: Arithmetic, x: i64, y: i64) -> Option<i64> {
    match operator {
        Arithmetic::Add => x.checked_add(y),
        Arithmetic::Subtract => x.checked_sub(y),
        Arithmetic::Multiply => x.checked_mul(y),
        Arithmetic::Divide => x.checked_div(y),
        // The smallest number has a remainder by -1, though no quotient.
        Arithmetic::Remainder => (y != 0).then(|| x.wrapping_rem(y)),
    }
}

#[cfg(test)]
mod tests {
    use super::Operand::{Cells, Same};
    use super::*;
    use proptest::prelude::*;

    /// Pairs of values, and operands that say the same.
    type Case<T> = (Vec<(T, T)>, [Operand<'static, T>; 2]);

    /// What a checked operator computes.
    type Checked = fn(i64, i64) -> Option<i64>;

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
                prop_assert_eq!(bits(&doubles(Arithmetic::Add, a, b)), expected(|x, y| x + y));
                prop_assert_eq!(bits(&doubles(Arithmetic::Subtract, a, b)), expected(|x, y| x - y));
                prop_assert_eq!(bits(&doubles(Arithmetic::Multiply, a, b)), expected(|x, y| x * y));
                prop_assert_eq!(bits(&doubles(Arithmetic::Divide, a, b)), expected(|x, y| x / y));
                prop_assert_eq!(bits(&doubles(Arithmetic::Remainder, a, b)), expected(|x, y| x % y));
            }
        }

        #[test]
        fn remainders_are_those_of_the_operator(
            pairs in proptest::collection::vec((any::<i64>(), 0..64_u32, 0..60_u32, any::<i64>(), 12..64_u32, -2..3_i64, any::<bool>()), 1..200),
            are_all_near: bool,
        ) {
            // Rows of which one is far away, or has no whole divisor, go another way together. Random ones nearly always have one.
            let pair = |(n, cut, fraction, m, short, near, is_multiple): &(i64, u32, u32, i64, u32, i64, bool)| {
                let (n, y) = if are_all_near { (n >> 12, (m >> (*short).max(32)) | 1) } else { (*n, m >> short) };
                // Multiples and their neighbours have quotients next to whole numbers.
                let x = if *is_multiple { (n >> 32).wrapping_mul(y).wrapping_add(*near) } else { n >> cut };
                (x as f64 / f64::from(*fraction).exp2(), y as f64)
            };
            let (a, b): (Vec<f64>, Vec<f64>) = pairs.iter().map(pair).unzip();
            prop_assert!(!are_all_near || are_near(&a, &b));
            for (rows, [a, b]) in shapes(&a, &b) {
                let bits = |x: f64| if x.is_nan() { 0 } else { x.to_bits() };
                let found: Vec<u64> = doubles(Arithmetic::Remainder, a, b).into_iter().map(bits).collect();
                prop_assert_eq!(found, rows.iter().map(|(x, y)| bits(x % y)).collect::<Vec<_>>());
            }
        }

        #[test]
        fn int64s_are_computed_as_one_by_one_and_what_has_no_result_is_named(
            pairs in proptest::collection::vec((any::<i64>(), 0..64_u32, any::<i64>(), 0..64_u32), 1..140),
            edges in proptest::collection::vec((0..140_usize, prop_oneof![Just(i64::MIN), Just(i64::MAX), Just(-1), Just(0)], any::<bool>()), 0..4),
        ) {
            let (mut a, mut b): (Vec<i64>, Vec<i64>) = pairs.iter().map(|(x, cut, y, short)| (x >> cut, y >> short)).unzip();
            for (row, edge, left) in edges {
                if let Some(cell) = if left { &mut a } else { &mut b }.get_mut(row) {
                    *cell = edge;
                }
            }
            for (rows, [a, b]) in shapes(&a, &b) {
                let cases: [(Arithmetic, Checked); 5] = [
                    (Arithmetic::Add, i64::checked_add),
                    (Arithmetic::Subtract, i64::checked_sub),
                    (Arithmetic::Multiply, i64::checked_mul),
                    (Arithmetic::Divide, i64::checked_div),
                    (Arithmetic::Remainder, |x, y| if y == -1 { Some(0) } else { x.checked_rem(y) }),
                ];
                for (operator, f) in cases {
                    let expected: Vec<_> = rows.iter().map(|(x, y)| f(*x, *y)).collect();
                    let mut beyond = Vec::new();
                    let found = int64s(operator, a, b, &mut beyond);
                    prop_assert_eq!(&beyond, &(0..rows.len()).filter(|row| expected[*row].is_none()).collect::<Vec<_>>());
                    for (row, expected) in expected.iter().enumerate() {
                        prop_assert!(expected.is_none() || *expected == Some(found[row]));
                    }
                }
            }
        }
    }
}
