//! Conversions of columns: `$toDouble`, `$toInt`, `$toLong`, `$toDate`, `$toBool`, `$toString`, `$toDecimal`. Values that
//! have no such type are left out.

use std::borrow::Cow;

use kernels::Operand as Side;
use kernels::arithmetic::{self, Arithmetic};
use kernels::written;

use super::cells::{Cells, Int32s, Vector};
use super::mask::Mask;
use super::numbers::{Operand, coefficients, doubles, finished, typed};
use super::reading;
use super::run::VectorArguments;
use super::texts::of_new;
use super::truth::{of_bitmap, truths};
use crate::block::{Column, ColumnData, VarData};
use crate::query::expr::date::iso_texts;
use crate::query::expr::operators::Operator;
use crate::value::{Number, decimal};

/// Below this, every double has an integer next to it.
pub(super) const TWO_TO_53: f64 = 9_007_199_254_740_992.0;

/// `None` for other operators, and for values other than numbers, dates, booleans and texts.
pub fn converted<'a>(operator: &Operator, arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let [vector] = arguments.vectors else { return None };
    if let Some(read) = reading::converted(operator, vector, arguments.rows) {
        return Some(read);
    }
    if let (Cells::Truths(cells), "$toDouble" | "$toInt") = (&vector.cells, operator.name()) {
        let int32s = if operator.name() == "$toInt" { Int32s::All } else { Int32s::None };
        let cells = (0..arguments.rows).map(|row| f64::from(u8::from(cells.get(row)))).collect();
        let cells = Cells::Numbers(cells, int32s);
        return Some(finished(cells, vector.absent(), vector.left.clone(), Mask::NONE));
    }
    let rows = arguments.rows;
    if let ("$toDouble", Some((vector, exponent))) = (operator.name(), coefficients(vector)) {
        let Cells::Longs(cells) = &vector.cells else { return None };
        // Only one operation may round.
        let power = 10_u64.checked_pow(exponent.unsigned_abs())? as f64;
        let doubles = doubles(cells);
        if doubles.iter().any(|x| x.abs() >= TWO_TO_53) {
            return None;
        }
        let op = if exponent < 0 { Arithmetic::Divide } else { Arithmetic::Multiply };
        let cells =
            Cells::Numbers(arithmetic::doubles(op, Side::Cells(&doubles), Side::Same(power)).into(), Int32s::None);
        return Some(finished(cells, vector.absent(), vector.left, Mask::NONE));
    }
    let (cells, beyond) = match (operator.name(), typed(vector)?) {
        ("$toBool", _) => {
            let truths = of_bitmap(truths(vector, arguments.rows), vector.left.clone());
            return Some(Vector { null: vector.absent(), ..truths });
        }
        ("$toDouble", Operand::Numbers(cells, _)) => {
            (Cells::Numbers(cells.cells(rows).into_owned().into(), Int32s::None), Mask::NONE)
        }
        ("$toDouble", Operand::Longs(cells) | Operand::Dates(cells)) => {
            (Cells::Numbers(doubles(&cells.cells(rows)).into(), Int32s::None), Mask::NONE)
        }
        ("$toInt", Operand::Numbers(cells, _)) => {
            let cells = cells.cells(rows);
            // The cells that have no such integer.
            let is_beyond = |x: &f64| !(f64::from(i32::MIN)..f64::from(i32::MAX) + 1.0).contains(&x.trunc());
            let beyond = if cells.iter().any(is_beyond) {
                Mask::from_fn(cells.len(), |row| cells.get(row).is_some_and(is_beyond))
            } else {
                Mask::NONE
            };
            // Integers have no negative zero.
            (Cells::Numbers(cells.iter().map(|x| x.trunc() + 0.0).collect(), Int32s::All), beyond)
        }
        ("$toLong", Operand::Numbers(cells, _)) => {
            let (cells, beyond) = truncated(&cells.cells(rows));
            (Cells::Longs(cells.into()), beyond)
        }
        ("$toLong", Operand::Longs(cells) | Operand::Dates(cells)) => {
            (Cells::Longs(cells.cells(rows).into_owned().into()), Mask::NONE)
        }
        // An int32 is no date.
        ("$toDate", Operand::Numbers(cells, Int32s::None)) => {
            let (cells, beyond) = truncated(&cells.cells(rows));
            (Cells::Dates(cells.into()), beyond)
        }
        ("$toDate", Operand::Longs(cells) | Operand::Dates(cells)) => {
            (Cells::Dates(cells.cells(rows).into_owned().into()), Mask::NONE)
        }
        ("$toString", Operand::Numbers(cells, Int32s::None | Int32s::All)) => {
            let (texts, beyond) = written::doubles(&cells.cells(rows));
            (of_new(texts, None), Mask::of_rows(rows, &beyond))
        }
        ("$toDecimal", Operand::Numbers(cells, int32s @ (Int32s::None | Int32s::All))) => {
            let mut decimals = VarData::default();
            for x in &*cells.cells(rows) {
                let decimal = match int32s {
                    Int32s::All => (*x as i64).into(),
                    _ => decimal::from_double(*x),
                };
                decimal::to_value(decimal).view().append_tagged(&mut decimals.bytes);
                decimals.seal();
            }
            (Cells::Any(Cow::Owned(Column::new(ColumnData::Bson(decimals), None))), Mask::NONE)
        }
        ("$toString", Operand::Dates(cells)) => (of_new(iso_texts(&cells.cells(rows))?, None), Mask::NONE),
        _ => return None,
    };
    Some(finished(cells, vector.absent(), vector.left.clone(), beyond))
}

/// Doubles without their fractions, and the rows whose double is no int64.
fn truncated(cells: &[f64]) -> (Vec<i64>, Mask) {
    if cells.iter().all(|x| x.abs() < TWO_TO_53) {
        #[allow(clippy::cast_possible_truncation)]
        return (cells.iter().map(|x| *x as i64).collect(), Mask::NONE);
    }
    let mut beyond = Vec::new();
    let whole = |(row, x): (usize, &f64)| {
        Number::Double(*x).truncated().unwrap_or_else(|| {
            beyond.push(row);
            0
        })
    };
    let cells: Vec<i64> = cells.iter().enumerate().map(whole).collect();
    let beyond = Mask::of_rows(cells.len(), &beyond);
    (cells, beyond)
}
