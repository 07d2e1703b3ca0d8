//! The interface of accumulators, and what several of them share.

use std::borrow::Cow;
use std::ops::Range;

use kernels::alike::{self, TooMany};

use super::picks::Picks;
use crate::block::{Bitmap, Block, Column, ColumnData};
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;
use crate::query::expr::{ArrayWriter, BoundExpr};
use crate::value::{Collation, Kind, Number, OwnedValue, Value};

/// An accumulator for all groups of a stage.
pub trait Accumulator {
    /// Adds a state for one more group, the next by number, with its `n` if the accumulator has one.
    fn grow(&mut self, n: usize);

    /// Adds rows to a group. If rows come out of order, `times` gives their order, with one time per row of the inputs.
    ///
    /// Errors: values that cannot be accumulated.
    fn add(&mut self, group: usize, inputs: &Inputs<'_>, rows: Range<usize>, times: Option<&Times<'_>>) -> Result<()>;

    /// Adds rows, each to a group of its own: there is one number for each of these rows.
    ///
    /// Errors: as `add`.
    fn add_each(
        &mut self,
        groups: &[u32],
        inputs: &Inputs<'_>,
        rows: Range<usize>,
        times: Option<&Times<'_>>,
    ) -> Result<()> {
        let mut start = rows.start;
        for run in groups.chunk_by(|a, b| a == b) {
            let group = run.first().copied().unwrap_or_default();
            self.add(group as usize, inputs, start..start + run.len(), times)?;
            start += run.len();
        }
        Ok(())
    }

    /// Shows the result for a group.
    fn show(&self, group: usize, see: &mut dyn FnMut(Value<'_>));

    /// The results for all groups, if it has a fast way to make a typed column of them.
    fn column(&self) -> Option<Column> {
        None
    }

    /// The result for a group.
    fn value(&self, group: usize) -> OwnedValue {
        let mut value = None;
        self.show(group, &mut |seen| value = Some(seen.to_owned()));
        value.unwrap_or_else(OwnedValue::null)
    }

    /// Which rows of a window it shows; `None` if it shows something else.
    fn picks(&self, _inputs: &Inputs<'_>) -> Option<Picks> {
        None
    }

    /// Merges one group into another, as if that had seen these values as well. Does nothing and answers false if the
    /// accumulator cannot merge.
    fn merge(&mut self, _into: usize, _from: usize) -> bool {
        false
    }

    /// The bytes that it holds, if they may become many.
    fn size_bytes(&self) -> usize {
        0
    }
}

/// What an accumulator takes of the rows of a block.
pub struct Inputs<'a> {
    /// Its values; those that it shows, if it has keys.
    pub cells: Cow<'a, Column>,
    /// What it ranks the values by, a column for each key.
    pub keys: Vec<Column>,
    /// For an accumulator that keeps few rows, what it shows of these, and all rows, in place of `cells`.
    pub(super) shown: Option<(&'a BoundExpr, &'a Block)>,
}

impl Inputs<'_> {
    /// A single column.
    pub fn of(cells: Column) -> Inputs<'static> {
        Inputs { cells: Cow::Owned(cells), keys: Vec::new(), shown: None }
    }

    /// A part of the rows, unless what is shown is made of whole rows.
    pub fn slice(&self, part: &dyn Fn(&Column) -> Column) -> Inputs<'static> {
        Inputs { cells: Cow::Owned(part(&self.cells)), keys: self.keys.iter().map(part).collect(), shown: None }
    }

    /// The same without the rows whose value is null or missing, and which rows are left, unless all are.
    pub fn without_null(mut self) -> (Self, Option<Vec<u32>>) {
        if let Some((typed, _)) = self.cells.untagged() {
            self.cells = Cow::Owned(typed);
        }
        let rows = self.cells.presence().map(Bitmap::to_rows);
        if let Some(rows) = &rows {
            self.cells = Cow::Owned(self.cells.gather(rows));
        }
        (self, rows)
    }

    /// Calls `see` for each of some rows, with its place among them, and with the column and the row there that has what is
    /// shown of it.
    ///
    /// Errors: those of the expression.
    pub(super) fn each_shown(&self, rows: &[u32], see: &mut dyn FnMut(usize, &Column, usize)) -> Result<()> {
        if self.shown.is_some() {
            let shown = self.shown_of(rows)?;
            (0..rows.len()).for_each(|at| see(at, &shown, at));
        } else {
            rows.iter().enumerate().for_each(|(at, row)| see(at, &self.cells, *row as usize));
        }
        Ok(())
    }

    /// What is shown of some rows.
    ///
    /// Errors: those of the expression.
    pub(super) fn shown_of(&self, rows: &[u32]) -> Result<Column> {
        match self.shown {
            Some((expr, block)) => expr.column(&block.gather(rows)),
            None => Ok(self.cells.gather(rows)),
        }
    }
}

/// The times of rows, if these come out of order.
pub struct Times<'a> {
    /// Milliseconds since the epoch, one per row.
    pub ms: &'a [i64],
    /// True if the sort is ascending.
    pub ascending: bool,
}

impl Times<'_> {
    /// The place of a row among all rows: smaller than the places of rows that sort after it.
    pub fn place(&self, row: usize) -> i64 {
        let ms = self.ms.get(row).copied().unwrap_or_default();
        if self.ascending { ms } else { !ms }
    }
}

/// What an accumulator depends on besides its input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// How strings compare.
    pub collation: Collation,
    /// The directions of a `sortBy`.
    pub(super) ascending: Vec<bool>,
    /// The `p` of `$percentile`.
    pub(super) percentiles: Vec<f64>,
    pub(super) is_continuous: bool,
}

/// A number as a double, which is how the server computes here, decimals included; `None` for other values.
fn number(value: Value<'_>) -> Option<f64> {
    Number::of(value).map(Number::near_double)
}

/// The error for exceeding the memory limit.
pub(super) fn list_is_full() -> Error {
    Error::new(ErrorCode::ExceededMemoryLimit, "A list of a $group exceeds the memory limit")
}

/// Shows an array of values.
pub(super) fn show_array(values: &mut dyn Iterator<Item = Value<'_>>, see: &mut dyn FnMut(Value<'_>)) {
    let mut array = ArrayWriter::new();
    values.for_each(|value| array.push(Some(value)));
    array.finish().view().into_iter().for_each(see);
}

/// Shows a double.
pub(super) fn show_double(x: f64, see: &mut dyn FnMut(Value<'_>)) {
    see(Value::new_checked(Kind::Double, &x.to_le_bytes()));
}

/// With fewer rows, taking a column apart costs more than taking it value by value.
pub(super) const ROWS_APART_MIN: usize = 8;

/// The coefficients and the exponent of decimals in all of these rows, which belong to up to so many groups; `None` unless all are
/// decimals of one exponent, and enough for `groups_met`.
pub(super) fn decimals_of(cells: &Column, rows: &Range<usize>, groups: usize) -> Option<(Vec<i64>, i32)> {
    let is_worth_it = rows.len() >= ROWS_APART_MIN.max(groups / 4) && cells.presence().is_none();
    if is_worth_it { cells.decimals(rows.clone()) } else { None }
}

/// The groups that rows belong to, of so many, numbered as they are met: the number of each row, and the first row of each
/// number. All rows belong to the same group if there is one.
pub(super) fn groups_met(
    group_of: &dyn Fn(usize) -> usize,
    groups: usize,
    rows: &Range<usize>,
) -> (Vec<u32>, Vec<usize>) {
    let codes = match groups {
        1 => vec![0; rows.len()],
        _ => rows.clone().map(|row| group_of(row).min(groups) as u32).collect(),
    };
    let (numbers, firsts) = alike::by_codes(&codes, TooMany { free: rows.len(), share: 1 }).unwrap_or_default();
    (numbers, firsts.into_iter().map(|first| rows.start + first as usize).listed())
}

/// Calls `see` with every present cell of a range, and its row.
pub(super) fn each_cell(
    cells: &Column,
    rows: Range<usize>,
    see: &mut dyn FnMut(usize, Value<'_>) -> Result<()>,
) -> Result<()> {
    let mut scratch = Vec::new();
    let present = cells.presence();
    for row in rows.filter(|row| present.is_none_or(|present| present.get(*row))) {
        if let Some(value) = cells.value(row, &mut scratch) {
            see(row, value)?;
        }
    }
    Ok(())
}

/// Calls `see` with every number of a range as a double, and its row.
pub(super) fn each_number(cells: &Column, rows: Range<usize>, see: &mut dyn FnMut(usize, f64)) {
    match (cells.data(), cells.presence()) {
        (ColumnData::F64(cells), None) => {
            rows.clone().zip(cells.get(rows).unwrap_or_default()).for_each(|(row, x)| see(row, *x));
        }
        (ColumnData::I32(cells), None) => {
            rows.clone().zip(cells.get(rows).unwrap_or_default()).for_each(|(row, n)| see(row, f64::from(*n)));
        }
        _ => {
            let mut scratch = Vec::new();
            for row in rows {
                if let Some(x) = cells.value(row, &mut scratch).and_then(number) {
                    see(row, x);
                }
            }
        }
    }
}
