//! Arithmetic of columns. A result has a cell for each row; of two operands that are the same for all rows it has one.

use crate::operand::{Operand, in_chunks, rows_of};

/// What is computed of two doubles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arithmetic {
    /// `a + b`.
    Add,
    /// `a - b`.
    Subtract,
    /// `a * b`.
    Multiply,
    /// `a / b`. Division by zero gives an infinity or NaN.
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
            Arithmetic::Remainder => results.extend(rows.map(|(x, y)| x % y)),
        }
    });
    results
}

#[cfg(test)]
mod tests {
    use super::Operand::{Cells, Same};
    use super::*;
    use proptest::prelude::*;

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
                prop_assert_eq!(bits(&doubles(Arithmetic::Add, a, b)), expected(|x, y| x + y));
                prop_assert_eq!(bits(&doubles(Arithmetic::Subtract, a, b)), expected(|x, y| x - y));
                prop_assert_eq!(bits(&doubles(Arithmetic::Multiply, a, b)), expected(|x, y| x * y));
                prop_assert_eq!(bits(&doubles(Arithmetic::Divide, a, b)), expected(|x, y| x / y));
                prop_assert_eq!(bits(&doubles(Arithmetic::Remainder, a, b)), expected(|x, y| x % y));
            }
        }
    }
}
