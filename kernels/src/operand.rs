//! What stands on one side of an operator.

use std::ops::Range;

/// The cells of a column, or one value for all rows.
#[derive(Clone, Copy, Debug)]
pub enum Operand<'a, T> {
    /// A value for each row.
    Cells(&'a [T]),
    /// The same value for each row.
    Same(T),
}

/// Rows that are looked at by one turn of a loop.
pub(crate) const CHUNK: usize = 64;

impl<'a, T: Copy> Operand<'a, T> {
    /// Its value in all rows, or any of its cells; `None` if it has none.
    pub(crate) fn any(&self) -> Option<T> {
        match self {
            Operand::Cells(cells) => cells.first().copied(),
            Operand::Same(value) => Some(*value),
        }
    }

    // Inlined, it would make the compiler write a loop for each shape.
    #[inline(never)]
    pub(crate) fn part<'b>(&self, rows: Range<usize>, same: &'b [T; CHUNK]) -> &'b [T]
    where
        'a: 'b,
    {
        match self {
            Operand::Cells(cells) => cells.get(rows).unwrap_or_default(),
            Operand::Same(_) => same.get(..rows.len()).unwrap_or_default(),
        }
    }
}

/// How many rows two operands have: those of the shorter column, or one if both are the same for all.
pub(crate) fn rows_of<T>(a: Operand<'_, T>, b: Operand<'_, T>) -> usize {
    match (a, b) {
        (Operand::Cells(a), Operand::Cells(b)) => a.len().min(b.len()),
        (Operand::Cells(cells), _) | (_, Operand::Cells(cells)) => cells.len(),
        _ => 1,
    }
}

/// A chunk in which all rows are the same. Inlined, it is 32 instructions.
#[inline(never)]
pub(crate) fn repeated<T: Copy>(value: T) -> [T; CHUNK] {
    [value; CHUNK]
}

/// Calls `see` with up to 64 rows of two operands at a time. What is the same for all rows is repeated, so that there is one loop for all shapes of
/// operands, which the compiler vectorises.
#[inline(always)]
pub(crate) fn in_chunks<T: Copy>(a: Operand<'_, T>, b: Operand<'_, T>, mut see: impl FnMut(&[T], &[T])) {
    let (Some(x), Some(y)) = (a.any(), b.any()) else { return };
    let (rows, same) = (rows_of(a, b), (repeated(x), repeated(y)));
    for start in (0..rows).step_by(CHUNK) {
        let chunk = start..rows.min(start + CHUNK);
        see(a.part(chunk.clone(), &same.0), b.part(chunk, &same.1));
    }
}
