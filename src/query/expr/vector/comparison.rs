//! Comparisons of columns: `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$cmp`.

use std::cmp::Ordering;

use kernels::compare::{self, Comparison};

use super::cells::{Cells, Int32s, Vector};
use super::mask::Mask;
use super::numbers::{Operand, Values, operand};
use super::run::VectorArguments;
use crate::block::{Bitmap, ColumnData, VarData};
use crate::query::expr::compare::CompareOp;
use crate::query::expr::operators::{Op, Operator};
use crate::value::{Collation, Kind, canonical_class};

/// Doubles represent every integer below this.
const EXACT_MAX: i64 = 1 << 53;

/// `None` unless the cells of each side are numbers, dates, booleans or strings, or have one type that the other side does not have.
pub fn compared<'a>(
    operator: &Operator,
    arguments: &VectorArguments<'_, 'a>,
    collation: &Collation,
) -> Option<Vector<'a>> {
    let [a, b] = arguments.vectors else { return None };
    // Null and missing sort below everything else.
    let absent = a.absent().with(&b.absent());
    let left = a.left.clone().with(&b.left);
    // Beside null, cells of any type are alike.
    let no_cells = absent.count() == arguments.rows && class(a).is_some() && class(b).is_some();
    let op = match (operator.comparison(), operator.op) {
        (Some(op), _) => op,
        (None, Op::Ne) => CompareOp::Eq,
        _ => {
            let mut orders = match no_cells {
                true => vec![0.0; arguments.rows],
                false => orders(a, b, arguments.rows, collation)?,
            };
            for_absent(a, b, arguments.rows, &mut |order, rows| {
                rows.iter()
                    .for_each(|row| orders.get_mut(row).into_iter().for_each(|slot| *slot = f64::from(order as i8)));
            });
            return Some(Cells::Numbers(orders.into(), Int32s::All).with(Mask::NONE, Mask::NONE, left));
        }
    };
    let mut truths =
        if no_cells { Bitmap::filled(arguments.rows, false) } else { truths(op, a, b, arguments.rows, collation)? };
    for_absent(a, b, arguments.rows, &mut |order, rows| {
        truths.or(rows);
        if !op.holds(order) {
            let mut others = rows.clone();
            others.invert();
            truths.and(&others);
        }
    });
    if operator.op == Op::Ne {
        truths.invert();
    }
    Some(Cells::Truths(truths).with(Mask::NONE, Mask::NONE, left))
}

/// Calls `see` for the rows of which a side has no cell, by their order. Missing values come first, then null, then all
/// that a kernel compares.
fn for_absent(a: &Vector<'_>, b: &Vector<'_>, rows: usize, see: &mut dyn FnMut(Ordering, &Bitmap)) {
    let by_rank = |vector: &Vector<'_>| {
        let mut cells = Mask::all(rows);
        cells.remove(&vector.absent());
        [vector.missing.clone(), vector.null.clone(), cells]
    };
    let of_b = by_rank(b);
    for (x, of_a) in by_rank(a).iter().enumerate() {
        for (y, of_b) in of_b.iter().enumerate().filter(|(y, _)| x + y < 4) {
            let both = of_b.rows().map(|rows| of_a.within(rows));
            both.iter().filter_map(Mask::rows).for_each(|rows| see(x.cmp(&y), rows));
        }
    }
}

/// The place of the type of all cells in the order of types; `None` if their types differ in it, or are not known, or if the masks do
/// not have all rows whose value is null, or sorts below it.
fn class(vector: &Vector<'_>) -> Option<i8> {
    let kind = match &vector.cells {
        Cells::Numbers(..) | Cells::Longs(_) => Kind::Double,
        Cells::Dates(_) => Kind::Date,
        Cells::Truths(_) => Kind::Bool,
        Cells::Lists(_) => Kind::Array,
        Cells::Any(column) => match column.data() {
            ColumnData::Dictionary(..) => return None,
            ColumnData::Objects(_) => Kind::Object,
            _ => column.kind()?,
        },
        Cells::Constant(value) => value.as_ref()?.view().kind(),
        Cells::Indexed(..) | Cells::Either(..) => return None,
    };
    Some(canonical_class(kind)).filter(|class| *class > canonical_class(Kind::Null))
}

/// The rows for which a comparison holds, without regard to masks.
pub fn truths(op: CompareOp, a: &Vector<'_>, b: &Vector<'_>, rows: usize, collation: &Collation) -> Option<Bitmap> {
    if let (Some(x), Some(y)) = (class(a), class(b))
        && x != y
    {
        return Some(Bitmap::filled(rows, op.holds(x.cmp(&y))));
    }
    if let (Some(x), Some(y)) = (booleans(a, rows), booleans(b, rows)) {
        return Some(of_booleans(op, x, y));
    }
    if let Some(truths) = of_texts(a, b, collation, &|order| op.holds(order)) {
        return Some(truths);
    }
    if let Some(truths) = of_texts(b, a, collation, &|order| op.flipped().holds(order)) {
        return Some(truths);
    }
    match (operand(a)?, operand(b)?) {
        (Operand::Numbers(x, _), Operand::Numbers(y, _)) => of_doubles(op, &x, &y),
        (Operand::Longs(x), Operand::Longs(y)) | (Operand::Dates(x), Operand::Dates(y)) => of_integers(op, &x, &y),
        (Operand::Longs(x), Operand::Numbers(y, Int32s::All)) => of_integers(op, &x, &y.whole()),
        (Operand::Numbers(x, Int32s::All), Operand::Longs(y)) => of_integers(op, &x.whole(), &y),
        (Operand::Longs(x), Operand::Numbers(y, _)) => of_doubles(op, &exact(&x)?, &y),
        (Operand::Numbers(x, _), Operand::Longs(y)) => of_doubles(op, &x, &exact(&y)?),
        _ => None,
    }
}

/// The cells that are true; `None` for other types.
fn booleans(vector: &Vector<'_>, rows: usize) -> Option<Bitmap> {
    match &vector.cells {
        Cells::Truths(truths) => Some(truths.clone()),
        Cells::Constant(value) => Some(Bitmap::filled(rows, value.as_ref()?.view().as_bool()?)),
        _ => None,
    }
}

/// False sorts below true.
fn of_booleans(op: CompareOp, mut x: Bitmap, y: Bitmap) -> Bitmap {
    match op {
        CompareOp::Eq => {
            let (mut less, greater) =
                (of_booleans(CompareOp::Lt, x.clone(), y.clone()), of_booleans(CompareOp::Gt, x, y));
            less.or(&greater);
            less.invert();
            less
        }
        CompareOp::Lt => {
            x.invert();
            x.and(&y);
            x
        }
        CompareOp::Lte => {
            x.invert();
            x.or(&y);
            x
        }
        CompareOp::Gt => of_booleans(CompareOp::Lt, y, x),
        CompareOp::Gte => of_booleans(CompareOp::Lte, y, x),
    }
}

/// Integers as doubles; `None` if one is not exact.
fn exact<'v>(values: &Values<'v, i64>) -> Option<Values<'v, f64>> {
    let is_exact = |n: &i64| n.unsigned_abs() < EXACT_MAX.unsigned_abs();
    let are_exact = match values {
        Values::Cells(cells) => cells.iter().all(is_exact),
        Values::Same(n) => is_exact(n),
    };
    are_exact.then(|| values.doubles())
}

/// NaN sorts below all other numbers.
fn of_doubles(op: CompareOp, x: &Values<'_, f64>, y: &Values<'_, f64>) -> Option<Bitmap> {
    let (comparison, [a, b]) = turned(op, [x.side(), y.side()]);
    Some(Bitmap::from_words(compare::doubles(comparison, a, b), rows(x, y)?))
}

fn of_integers(op: CompareOp, x: &Values<'_, i64>, y: &Values<'_, i64>) -> Option<Bitmap> {
    let (comparison, [a, b]) = turned(op, [x.side(), y.side()]);
    Some(Bitmap::from_words(compare::int64s(comparison, a, b), rows(x, y)?))
}

/// The comparison that a kernel knows, and its operands in the order in which it holds.
fn turned<T>(op: CompareOp, [x, y]: [T; 2]) -> (Comparison, [T; 2]) {
    match op {
        CompareOp::Eq => (Comparison::Equal, [x, y]),
        CompareOp::Lt => (Comparison::Less, [x, y]),
        CompareOp::Lte => (Comparison::NotGreater, [x, y]),
        CompareOp::Gt => (Comparison::Less, [y, x]),
        CompareOp::Gte => (Comparison::NotGreater, [y, x]),
    }
}

/// The number of rows; `None` for two constants.
fn rows<T: Copy + PartialEq>(x: &Values<'_, T>, y: &Values<'_, T>) -> Option<usize> {
    x.rows().or(y.rows())
}

/// The order of each row's two values: -1, 0 or 1.
pub fn orders(a: &Vector<'_>, b: &Vector<'_>, rows: usize, collation: &Collation) -> Option<Vec<f64>> {
    let less = truths(CompareOp::Lt, a, b, rows, collation)?;
    let greater = truths(CompareOp::Gt, a, b, rows, collation)?;
    let bit = |rows: &Bitmap, row: usize| f64::from(u8::from(rows.get(row)));
    // Integers have no negative zero.
    Some((0..rows).map(|row| bit(&greater, row) - bit(&less, row) + 0.0).collect())
}

/// A column of strings, and a constant one or another column.
fn of_texts(a: &Vector<'_>, b: &Vector<'_>, collation: &Collation, holds: &dyn Fn(Ordering) -> bool) -> Option<Bitmap> {
    let cells = strings(a).filter(|_| collation.is_simple())?;
    if let Some(others) = strings(b) {
        return Some(Bitmap::from_fn(cells.len(), |row| holds(cells.get(row).cmp(others.get(row)))));
    }
    let Cells::Constant(Some(text)) = &b.cells else { return None };
    let text = text.view().as_str()?.as_bytes();
    Some(Bitmap::from_fn(cells.len(), |row| holds(cells.get(row).cmp(text))))
}

fn strings<'v>(vector: &'v Vector<'_>) -> Option<&'v VarData> {
    let Cells::Any(column) = &vector.cells else { return None };
    let ColumnData::String(cells) = column.data() else { return None };
    Some(cells)
}
