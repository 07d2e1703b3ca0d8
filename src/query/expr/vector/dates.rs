//! Dates of columns: fields, bins, texts, and dates that are moved. What stays the same for a while, such as an hour, is
//! computed once in a row of dates.

use std::borrow::Cow;
use std::rc::Rc;

use super::cells::{Cells, Int32s, Vector};
use super::conversion::TWO_TO_53;
use super::mask::Mask;
use super::numbers::{Operand, finished, operand, whole};
use super::run::VectorArguments;
use super::texts::of_new;
use crate::block::{Column, ColumnData};
use crate::query::expr::date::{DateCells, cells_of_dates, differences, part_names, part_of, shifted};
use crate::query::expr::datum::is_nullish;
use crate::query::expr::globals::Globals;
use crate::query::expr::operators::{Op, Operator};

/// The results of an operator on a column of dates, if its other arguments are constant.
pub fn of_dates<'a>(operator: &Operator, arguments: &VectorArguments<'_, 'a>, globals: &Globals) -> Option<Vector<'a>> {
    if operator.op == Op::DateDiff {
        return differing(operator, arguments, globals);
    }
    let vector = arguments.at(0)?;
    let Cells::Dates(times) = &vector.cells else { return None };
    if operator.name() == "$dateToParts" {
        return in_parts(operator, arguments, times, globals);
    }
    let Some(constants) = arguments.constants(&[0]) else { return moved(operator, arguments, times, globals) };
    let is_given = |at: usize| arguments.is_given(at);
    let mut beyond = Vec::new();
    let cells = match cells_of_dates(operator, &constants, &is_given, globals, times, &mut beyond)? {
        DateCells::Int32s(cells) => Cells::Numbers(cells.into_iter().map(f64::from).collect(), Int32s::All),
        DateCells::Int64s(cells) => Cells::Longs(cells.into()),
        DateCells::Dates(cells) => Cells::Dates(cells.into()),
        DateCells::Texts(index, texts) => {
            let entries = Vector::made(Column::new(ColumnData::String(texts), None), Mask::NONE);
            Cells::Indexed(index.into(), Rc::new(entries))
        }
        DateCells::Each(texts) => of_new(texts, None),
    };
    let beyond = Mask::of_rows(times.len(), &beyond);
    Some(finished(cells, vector.absent(), vector.left.clone(), beyond))
}

/// `$dateToParts` by the calendar.
fn in_parts<'a>(
    operator: &Operator,
    arguments: &VectorArguments<'_, 'a>,
    times: &[i64],
    globals: &Globals,
) -> Option<Vector<'a>> {
    let constants = arguments.constants(&[0])?;
    let by_week = constants.get(2).copied()?;
    if by_week.is_some_and(|by_week| by_week.as_bool() != Some(false))
        || arguments.is_given(1) && constants.get(1)?.is_none()
    {
        return None;
    }
    let (mut fields, mut beyond) = (Vec::new(), Vec::new());
    for name in part_names() {
        let part = part_of(operator, false, name)?;
        let cells =
            cells_of_dates(part, constants.get(..2)?, &|at| arguments.is_given(at), globals, times, &mut beyond)?;
        let DateCells::Int32s(cells) = cells else { return None };
        fields.push((name, Column::new(ColumnData::I32(cells), None)));
    }
    let (vector, objects) = (arguments.at(0)?, Column::of_fields(fields)?);
    let beyond = Mask::of_rows(times.len(), &beyond);
    Some(finished(Cells::Any(Cow::Owned(objects)), vector.absent(), vector.left.clone(), beyond))
}

/// `$dateAdd` and `$dateSubtract` of an amount of each row.
fn moved<'a>(
    operator: &Operator,
    arguments: &VectorArguments<'_, 'a>,
    times: &[i64],
    globals: &Globals,
) -> Option<Vector<'a>> {
    let [dates, _, by, ..] = arguments.vectors else { return None };
    let amounts = match operand(by)? {
        Operand::Numbers(cells, _) => {
            let cells = cells.cells(arguments.rows);
            let is_whole = |x: &f64| x.abs() < TWO_TO_53 && x.trunc() == *x;
            cells.iter().all(is_whole).then(|| whole(&cells))?.into()
        }
        Operand::Longs(cells) => cells.cells(arguments.rows),
        _ => return None,
    };
    let amount = |row: usize| amounts.get(row).copied();
    let mut beyond = Vec::new();
    let cells = shifted(operator, &arguments.constants(&[0, 2])?, &amount, globals, times, &mut beyond)?;
    let null = dates.absent().with(&by.absent());
    let left = dates.left.clone().with(&by.left);
    Some(finished(Cells::Dates(cells.into()), null, left, Mask::of_rows(times.len(), &beyond)))
}

/// `$dateDiff` of two dates, of which one may be constant.
fn differing<'a>(operator: &Operator, arguments: &VectorArguments<'_, 'a>, globals: &Globals) -> Option<Vector<'a>> {
    let [start, end, ..] = arguments.vectors else { return None };
    let rows = arguments.rows;
    let (Operand::Dates(starts), Operand::Dates(ends)) = (operand(start)?, operand(end)?) else {
        return None;
    };
    let constants = arguments.constants(&[0, 1])?;
    // A null argument gives null.
    if constants.iter().enumerate().skip(2).any(|(at, value)| arguments.is_given(at) && is_nullish(*value)) {
        return None;
    }
    let mut beyond = Vec::new();
    let cells = differences(operator, &constants, globals, &starts.cells(rows), &ends.cells(rows), &mut beyond)?;
    let null = start.absent().with(&end.absent());
    let left = start.left.clone().with(&end.left);
    Some(finished(Cells::Longs(cells.into()), null, left, Mask::of_rows(rows, &beyond)))
}
