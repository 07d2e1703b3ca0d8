//! `$and`, `$or`, `$not`, and which rows have a value that counts as true.

use std::rc::Rc;

use super::cells::{Cells, Scratch, Vector};
use super::mask::Mask;
use crate::block::{Bitmap, Column};
use crate::value::{OwnedValue, Value};

/// The rows whose value counts as true, of a vector without an index. Rows that are left out are not among them.
pub fn truths(vector: &Vector<'_>, rows: usize) -> Bitmap {
    let mut truths = match &vector.cells {
        Cells::Constant(value) => {
            Bitmap::filled(rows, value.as_ref().map(OwnedValue::view).is_some_and(Value::is_true))
        }
        Cells::Truths(rows) => rows.clone(),
        // NaN counts as true.
        Cells::Numbers(cells, _) => Bitmap::from_slice(cells, |x| *x != 0.0),
        Cells::Longs(cells) => Bitmap::from_slice(cells, |n| *n != 0),
        Cells::Dates(_) | Cells::Lists(_) => Bitmap::filled(rows, true),
        Cells::Either(first, a, b) => {
            let (mut of_a, mut others) = (truths(a, rows), first.clone());
            of_a.and(first);
            others.invert();
            others.and(&truths(b, rows));
            others.or(&of_a);
            others
        }
        Cells::Any(_) | Cells::Indexed(..) => {
            let mut scratch = Scratch::default();
            return Bitmap::from_fn(rows, |row| {
                !vector.left.has(row) && vector.value(row, &mut scratch).is_some_and(Value::is_true)
            });
        }
    };
    let none = vector.absent().with(&vector.left);
    if let Some(none) = none.rows() {
        let mut others = none.clone();
        others.invert();
        truths.and(&others);
    }
    truths
}

/// The rows of a column whose value counts as true.
pub fn of_column(column: &Column) -> Bitmap {
    let vector = Rc::new(Vector::of(column)).flat();
    if vector.left.is_none() {
        return truths(&vector, column.len());
    }
    let mut scratch = Vec::new();
    Bitmap::from_fn(column.len(), |row| column.value(row, &mut scratch).is_some_and(Value::is_true))
}

/// A vector of truths, without the rows that are left out.
pub fn of_bitmap<'a>(truths: Bitmap, left: Mask) -> Vector<'a> {
    Cells::Truths(truths).with(Mask::NONE, Mask::NONE, left)
}

/// `$and` or `$or`. Once a row is decided, later arguments do not matter for it.
pub fn combined<'a>(vectors: &[Rc<Vector<'a>>], rows: usize, is_or: bool) -> Vector<'a> {
    let mut truth = Bitmap::filled(rows, !is_or);
    let mut left = Mask::NONE;
    for vector in vectors {
        let vector = vector.flat();
        if !vector.left.is_none() {
            let mut open = truth.clone();
            if is_or {
                open.invert();
            }
            left.add(&vector.left.within(&open));
        }
        let other = truths(&vector, rows);
        if is_or { truth.or(&other) } else { truth.and(&other) }
    }
    of_bitmap(truth, left)
}

/// `$not`.
pub fn negated<'a>(vectors: &[Rc<Vector<'a>>], rows: usize) -> Vector<'a> {
    let Some(vector) = vectors.first().map(Vector::flat) else { return Vector::nothing(rows) };
    let mut truth = truths(&vector, rows);
    truth.invert();
    of_bitmap(truth, vector.left.clone())
}
