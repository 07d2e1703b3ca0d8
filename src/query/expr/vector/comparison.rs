//! Comparisons of columns: `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$cmp`.

use std::cmp::Ordering;

use super::cells::{Cells, Int32s, Scratch, Vector};
use super::mask::Mask;
use super::numbers::{Operand, doubles, operand, whole};
use super::run::VectorArguments;
use crate::block::ColumnData;
use crate::query::expr::compare::CompareOp;
use crate::query::expr::operators::{Op, Operator};
use crate::value::{Collation, Kind};

/// Doubles represent every integer below this.
const EXACT_MAX: i64 = 1 << 53;

/// What a comparison asks of an order.
#[derive(Clone, Copy)]
enum Asked {
    Order,
    Unequal,
    Comparison(CompareOp),
}

/// `None` unless both sides are numbers, both dates, or one is a column of strings and the other a constant.
pub fn compared<'a>(
    operator: &Operator,
    arguments: &VectorArguments<'_, 'a>,
    collation: &Collation,
) -> Option<Vector<'a>> {
    let [a, b] = arguments.vectors else { return None };
    let rows = arguments.rows;
    let asked = match operator.comparison() {
        Some(op) => Asked::Comparison(op),
        None if operator.op == Op::Ne => Asked::Unequal,
        None => Asked::Order,
    };
    let mut orders = orders(a, b, rows, collation)?;
    // Null and missing sort below everything else.
    let absent = a.absent().with(&b.absent());
    let left = a.left.clone().with(&b.left);
    if let Some(absent) = absent.rows() {
        let (mut first, mut second) = (Scratch::default(), Scratch::default());
        for row in absent.iter().filter(|row| !left.has(*row)) {
            if let Some(slot) = orders.get_mut(row) {
                *slot = collation.compare_options(a.value(row, &mut first), b.value(row, &mut second)) as i8;
            }
        }
    }
    let truths = |holds: fn(i8) -> bool| Cells::Truths(orders.iter().map(|order| u8::from(holds(*order))).collect());
    let cells = match asked {
        Asked::Order => Cells::Numbers(orders.iter().map(|order| f64::from(*order)).collect(), Int32s::All),
        Asked::Unequal => truths(|order| order != 0),
        Asked::Comparison(CompareOp::Eq) => truths(|order| order == 0),
        Asked::Comparison(CompareOp::Gt) => truths(|order| order > 0),
        Asked::Comparison(CompareOp::Gte) => truths(|order| order >= 0),
        Asked::Comparison(CompareOp::Lt) => truths(|order| order < 0),
        Asked::Comparison(CompareOp::Lte) => truths(|order| order <= 0),
    };
    Some(cells.with(Mask::NONE, Mask::NONE, left))
}

/// The order of each row's two values: -1, 0 or 1.
fn orders(a: &Vector<'_>, b: &Vector<'_>, rows: usize, collation: &Collation) -> Option<Vec<i8>> {
    if let Some(orders) = of_texts(a, b, collation) {
        return Some(orders);
    }
    if let Some(orders) = of_texts(b, a, collation) {
        return Some(orders.into_iter().map(|order| -order).collect());
    }
    Some(match (operand(a, rows)?, operand(b, rows)?) {
        (Operand::Numbers(x, _), Operand::Numbers(y, _)) => of_doubles(&x, &y),
        (Operand::Longs(x), Operand::Longs(y)) | (Operand::Dates(x), Operand::Dates(y)) => of_integers(&x, &y),
        (Operand::Longs(x), Operand::Numbers(y, Int32s::All)) => of_integers(&x, &whole(&y)),
        (Operand::Numbers(x, Int32s::All), Operand::Longs(y)) => of_integers(&whole(&x), &y),
        (Operand::Longs(x), Operand::Numbers(y, _)) => of_doubles(&exact(&x)?, &y),
        (Operand::Numbers(x, _), Operand::Longs(y)) => of_doubles(&x, &exact(&y)?),
        _ => return None,
    })
}

/// Integers as doubles; `None` if one is not exact.
fn exact(cells: &[i64]) -> Option<Vec<f64>> {
    cells.iter().all(|n| n.unsigned_abs() < EXACT_MAX.unsigned_abs()).then(|| doubles(cells))
}

fn of_integers(x: &[i64], y: &[i64]) -> Vec<i8> {
    x.iter().zip(y).map(|(x, y)| i8::from(x > y) - i8::from(x < y)).collect()
}

/// NaN sorts below all other numbers.
fn of_doubles(x: &[f64], y: &[f64]) -> Vec<i8> {
    let order = |x: &f64, y: &f64| match (x.is_nan(), y.is_nan()) {
        (false, false) => i8::from(x > y) - i8::from(x < y),
        (x, y) => i8::from(y) - i8::from(x),
    };
    x.iter().zip(y).map(|(x, y)| order(x, y)).collect()
}

/// A column of strings and a constant one.
fn of_texts(a: &Vector<'_>, b: &Vector<'_>, collation: &Collation) -> Option<Vec<i8>> {
    let (Cells::Any(column), Cells::Constant(Some(text))) = (&a.cells, &b.cells) else { return None };
    let ColumnData::String(cells) = column.data() else { return None };
    if text.view().kind() != Kind::String || !collation.is_simple() {
        return None;
    }
    let text = text.view().as_str()?.as_bytes();
    Some((0..cells.len()).map(|row| cells.get(row).cmp(text) as i8).collect())
}

const _: () = assert!(Ordering::Less as i8 == -1 && Ordering::Greater as i8 == 1);
