//! Dates of columns: fields, bins, texts, and dates that are moved. What stays the same for a while, such as an hour, is
//! computed once in a row of dates.

use super::cells::{Cells, Int32s, Vector};
use super::mask::Mask;
use super::numbers::finished;
use super::run::VectorArguments;
use crate::block::{Column, ColumnData, VarData};
use crate::query::expr::date::{DateCells, cells_of_dates};
use crate::query::expr::globals::Globals;
use crate::query::expr::operators::Operator;
use std::rc::Rc;

/// The results of an operator on a column of dates, if its other arguments are constant.
pub fn of_dates<'a>(operator: &Operator, arguments: &VectorArguments<'_, 'a>, globals: &Globals) -> Option<Vector<'a>> {
    let vector = arguments.at(0)?;
    let Cells::Dates(times) = &vector.cells else { return None };
    let constants = arguments.constants()?;
    let is_given = |at: usize| arguments.is_given(at);
    let mut beyond = Vec::new();
    let cells = match cells_of_dates(operator, &constants, &is_given, globals, times, &mut beyond)? {
        DateCells::Int32s(cells) => Cells::Numbers(cells.into_iter().map(f64::from).collect(), Int32s::All),
        DateCells::Int64s(cells) => Cells::Longs(cells.into()),
        DateCells::Dates(cells) => Cells::Dates(cells.into()),
        DateCells::Texts(index, texts) => {
            let mut entries = VarData::default();
            texts.iter().for_each(|text| entries.push(text.as_bytes()));
            let entries = Vector::made(Column::new(ColumnData::String(entries), None), Mask::NONE);
            Cells::Indexed(index.into(), Rc::new(entries))
        }
    };
    let beyond = Mask::of_rows(times.len(), &beyond);
    Some(finished(cells, vector.absent(), vector.left.clone(), beyond))
}
