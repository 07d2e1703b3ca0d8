//! What stands on one side of an operator.

/// The cells of a column, or one value for all rows.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a, T> {
    /// A value for each row.
    Cells(&'a [T]),
    /// The same value for each row.
    Same(T),
}

/// Runs `f` over the rows of two operands, with a loop for each of their shapes: the compiler vectorises each by itself. A loop ends with the
/// shorter column, and has one row if both are the same for all.
#[inline(always)]
pub(crate) fn each<T: Copy, U>(a: Operand<'_, T>, b: Operand<'_, T>, f: impl Fn(T, T) -> U) -> Vec<U> {
    match (a, b) {
        (Operand::Cells(a), Operand::Cells(b)) => a.iter().zip(b).map(|(x, y)| f(*x, *y)).collect(),
        (Operand::Cells(a), Operand::Same(y)) => a.iter().map(|x| f(*x, y)).collect(),
        (Operand::Same(x), Operand::Cells(b)) => b.iter().map(|y| f(x, *y)).collect(),
        (Operand::Same(x), Operand::Same(y)) => vec![f(x, y)],
    }
}
