//! Computes a field of a partition: accumulators over windows, and functions that only windows have.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/window_function/window_function_exec_*.cpp.

use std::ops::Range;

use super::super::accumulator::{Accumulation, Inputs};
use super::bounds::Window;
use super::cells::{Axis, NOWHERE, cell, doubles, except, picked, typed};
use super::kernel::{Kernel, accumulated};
use crate::block::{Bitmap, Column, ColumnBuilder, ColumnData};
use crate::error::{Error, Result};
use crate::value::decimal::{minus, over, plus, result, times};
use crate::value::{Collation, Decimal, Kind, Number, OwnedValue, Value, compare_sort_keys, sort_key};

pub(super) const ZERO: Number = Number::Integer(0);

/// A window function.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WindowFunction {
    Accumulator(Option<Kernel>, Box<Accumulation>),
    /// `$rank`: one more than the number of rows before all that tie.
    Rank,
    /// `$denseRank`: the same, with tied rows counted once.
    DenseRank,
    /// `$documentNumber`.
    Number,
    /// `$shift`: the value of the row at this distance, and the default.
    Shift(i64, OwnedValue),
    /// `$derivative`, per unit of this many milliseconds.
    Derivative(Option<i64>),
    /// `$integral`, and the accumulator that adds it up.
    Integral(Option<i64>, Box<Accumulation>),
    /// `$minMaxScaler`: the target range, and the accumulators for the smallest and largest value of the window.
    Spread(Number, Number, Box<[Accumulation; 2]>),
    /// `$expMovingAvg`: the weight of the newest value.
    MovingAverage(Decimal),
    /// `$locf`.
    Carry,
    /// `$linearFill`.
    Line,
}

/// A whole partition, and the input of the field to compute.
pub(super) struct Partition<'a> {
    pub rows: usize,
    /// The sort key if it is one field, and whether it is ascending.
    pub order: Option<&'a (Column, bool)>,
    pub input: Inputs<'a>,
    pub window: &'a Window,
    pub collation: &'a Collation,
}

/// A number, or a date as a number.
pub(super) fn place(value: Value<'_>) -> Option<Number> {
    value.as_date_ms().map(Number::Integer).or_else(|| Number::of(value))
}

impl Partition<'_> {
    /// The column of the field.
    ///
    /// Errors: values that the function does not accept.
    pub fn compute(&self, function: &WindowFunction) -> Result<Column> {
        match function {
            WindowFunction::Accumulator(kernel, spec) => {
                accumulated(kernel.as_ref(), spec, &self.input, &self.windows()?)
            }
            WindowFunction::Rank | WindowFunction::DenseRank | WindowFunction::Number => Ok(self.ranks(function)),
            WindowFunction::Shift(by, default) => {
                let all = 0..self.rows;
                Ok(shifted(&self.input.cells, std::slice::from_ref(&all), *by, default))
            }
            WindowFunction::Derivative(unit_ms) => self.derivatives(*unit_ms),
            WindowFunction::Integral(unit_ms, sum) => self.integrals(*unit_ms, sum),
            WindowFunction::Spread(low, high, edges) => self.spread(*low, *high, edges),
            WindowFunction::MovingAverage(alpha) => Ok(self.moving_averages(*alpha)),
            WindowFunction::Carry => Ok(self.carried()),
            WindowFunction::Line => self.interpolated(),
        }
    }

    /// The rows that the window of each row holds.
    ///
    /// Errors: those of `Window::ranges`.
    pub(super) fn windows(&self) -> Result<Vec<Range<usize>>> {
        self.window.ranges(self.rows, self.order.map(|(column, _)| column))
    }

    /// The sort key as places on an axis, if all rows have a number, or a date if `is_date`.
    pub(super) fn axis(&self, is_date: bool) -> Option<Axis<'_>> {
        let (column, _) = self.order?;
        let fits = column.presence().is_none() && (column.kind() == Some(Kind::Date)) == is_date;
        Axis::of(column).filter(|_| fits)
    }

    pub(super) fn order_at<'a>(&'a self, row: usize, scratch: &'a mut Vec<u8>) -> Option<Value<'a>> {
        self.order.and_then(|(column, _)| column.value(row, scratch))
    }

    fn ranks(&self, function: &WindowFunction) -> Column {
        fn equal<T: PartialEq>(cells: &[T], row: usize) -> bool {
            row.checked_sub(1).is_some_and(|before| cells.get(before) == cells.get(row))
        }
        let is_dense = *function == WindowFunction::DenseRank;
        let key = self.order.map(|(column, _)| column).filter(|column| column.presence().is_none());
        let ranks = match key.map(Column::data) {
            _ if *function == WindowFunction::Number => ranked(self.rows, is_dense, |_| false),
            // NaN ties with itself.
            Some(ColumnData::F64(cells)) => ranked(self.rows, is_dense, |row| {
                let is_nan = |row| cell(cells, row).is_nan();
                equal(cells, row) || row > 0 && is_nan(row) && is_nan(row - 1)
            }),
            Some(ColumnData::I32(cells)) => ranked(self.rows, is_dense, |row| equal(cells, row)),
            Some(ColumnData::I64(cells) | ColumnData::Date(cells)) => {
                ranked(self.rows, is_dense, |row| equal(cells, row))
            }
            _ => {
                let ascending = self.order.is_none_or(|(_, ascending)| *ascending);
                let (mut before, mut scratch) = (Vec::new(), Vec::new());
                ranked(self.rows, is_dense, |row| {
                    let key = |row, scratch| sort_key(self.order_at(row, scratch), &[], ascending, self.collation);
                    row > 0
                        && compare_sort_keys(key(row - 1, &mut before), key(row, &mut scratch), self.collation).is_eq()
                })
            }
        };
        Column::new(ColumnData::I64(ranks), None)
    }

    /// Each value scaled from the range of its window to the target range; the lower end if the window's values are all
    /// equal.
    fn spread(&self, low: Number, high: Number, edges: &[Accumulation; 2]) -> Result<Column> {
        let mut scratch = Vec::new();
        let mut number = |column: &Column, row| {
            let number = column.value(row, &mut scratch).and_then(Number::of);
            number.ok_or_else(|| Error::type_mismatch("The input of $minMaxScaler must be numeric"))
        };
        // All values are checked first, so that a non-number among them is an error.
        (0..self.rows).try_for_each(|row| number(&self.input.cells, row).map(|_| ()))?;
        let windows = self.windows()?;
        let [least, greatest] = edges;
        let extreme = |is_max, spec| accumulated(Some(&Kernel::Extreme(is_max)), spec, &self.input, &windows);
        let (least, greatest) = (extreme(false, least)?, extreme(true, greatest)?);
        let mut spread = ColumnBuilder::with_capacity(self.rows);
        for row in 0..self.rows {
            let (value, least, greatest) =
                (number(&self.input.cells, row)?, number(&least, row)?, number(&greatest, row)?);
            let share = match least.compare(greatest).is_eq() {
                true => ZERO,
                false => over(minus(value, least), minus(greatest, least)),
            };
            spread.push(result(plus(low, times(share, minus(high, low)))).view());
        }
        Ok(spread.finish())
    }

    /// Starts with the first number; rows without one get the average so far. From the first decimal on, it is a
    /// decimal.
    fn moving_averages(&self, alpha: Decimal) -> Column {
        let input = typed(&self.input.cells);
        let newest = alpha.near_double();
        match input.as_deref().and_then(|input| Some((doubles(input)?, input.presence()))) {
            Some((cells, present)) => double_averages(&cells, present, [newest, 1.0 - newest]),
            None => self.averages_of_values(alpha),
        }
    }

    /// The same value by value.
    pub(super) fn averages_of_values(&self, alpha: Decimal) -> Column {
        let (exact, alpha) = (Number::Decimal(alpha), alpha.near_double());
        let near = [alpha, 1.0 - alpha].map(Number::Double);
        let mut averages = ColumnBuilder::with_capacity(self.rows);
        let (mut average, mut scratch) = (None, Vec::new());
        let exact = [exact, minus(Number::Integer(1), exact)];
        for row in 0..self.rows {
            if let Some(x) = self.input.cells.value(row, &mut scratch).and_then(Number::of) {
                average = Some(average.map_or(x, |average| {
                    let is_exact = [x, average].iter().any(|number| matches!(number, Number::Decimal(_)));
                    let [newest, others] = if is_exact { exact } else { near };
                    plus(times(x, newest), times(average, others))
                }));
            }
            averages.push(average.map_or_else(OwnedValue::null, result).view());
        }
        averages.finish()
    }
}

/// The values of the rows at a distance, within each of consecutive partitions.
pub(super) fn shifted(cells: &Column, partitions: &[Range<usize>], by: i64, default: &OwnedValue) -> Column {
    let mut rows: Vec<u32> = Vec::with_capacity(cells.len());
    for partition in partitions {
        let from = |row: usize| isize::try_from(by).ok().and_then(|by| row.checked_add_signed(by));
        let from = |row| from(row).filter(|from| partition.contains(from));
        rows.extend(
            partition.clone().map(|row| from(row).and_then(|from| u32::try_from(from).ok()).unwrap_or(NOWHERE)),
        );
    }
    picked(typed(cells).as_deref().unwrap_or(cells), &rows, default.view())
}

/// Numbers rows from 1, where `ties` says of a row whether it ties with the one before.
fn ranked(rows: usize, is_dense: bool, mut ties: impl FnMut(usize) -> bool) -> Vec<i64> {
    let (mut rank, mut number) = (0, 0);
    let mut ranks = Vec::with_capacity(rows);
    for row in 0..rows {
        number += 1;
        if !ties(row) {
            rank = if is_dense { rank + 1 } else { number };
        }
        ranks.push(rank);
    }
    ranks
}

/// Moving averages of the present cells, with the weights of the newest cell and of the average before it.
fn double_averages(cells: &[f64], present: Option<&Bitmap>, [newest, before]: [f64; 2]) -> Column {
    let (mut averages, mut others): (Vec<f64>, _) = (Vec::with_capacity(cells.len()), Vec::new());
    let mut average: Option<f64> = None;
    for (row, x) in cells.iter().enumerate() {
        if present.is_none_or(|present| present.get(row)) {
            average = Some(average.map_or(*x, |average| x * newest + average * before));
        }
        if average.is_none() {
            others.push((row, Value::NULL));
        }
        averages.push(average.unwrap_or_default());
    }
    except(ColumnData::F64(averages), &others)
}
