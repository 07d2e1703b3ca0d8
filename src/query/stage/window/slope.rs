//! `$derivative` and `$integral`.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/window_function/window_function_exec_derivative.cpp and
//! window_function_integral.cpp.

use std::ops::Range;

use kernels::windows::{Cells, sums};

use super::super::accumulator::{Accumulation, Inputs};
use super::cells::{Axis, cell, doubles, except, typed};
use super::function::{Partition, ZERO, place};
use super::slide::over_windows;
use super::sums::no_sum;
use crate::block::{Column, ColumnBuilder, ColumnData};
use crate::error::{Error, ErrorCode, Result};
use crate::value::decimal::{minus, over, plus, result, times};
use crate::value::{Kind, Number, OwnedValue, Value};

impl Partition<'_> {
    /// A sort key that fits the unit and can be the axis of a derivative or an integral.
    fn place_at(&self, row: usize, unit_ms: Option<i64>, codes: [ErrorCode; 3]) -> Result<Number> {
        let mut scratch = Vec::new();
        let value = self.order_at(row, &mut scratch);
        let is_date = value.is_some_and(|value| value.kind() == Kind::Date);
        let [no_date, date, neither] = codes;
        let code = match (unit_ms, is_date) {
            (Some(_), false) => no_date,
            (None, true) => date,
            _ => neither,
        };
        let place = value.and_then(place).filter(|_| unit_ms.is_some() == is_date);
        place.ok_or_else(|| {
            Error::new(code, "The sortBy field must have dates if there is a 'unit', and numbers otherwise")
        })
    }

    /// The slope between the first and the last row of each window; null if their keys are equal.
    pub(super) fn derivatives(&self, unit_ms: Option<i64>) -> Result<Column> {
        match self.typed_derivatives(unit_ms)? {
            Some(column) => Ok(column),
            None => self.derivatives_of_values(unit_ms),
        }
    }

    /// The same over vectors; `None` unless all rows have numbers or dates of one type.
    #[allow(clippy::cast_precision_loss)]
    fn typed_derivatives(&self, unit_ms: Option<i64>) -> Result<Option<Column>> {
        let input = typed(&self.input.cells).filter(|input| input.presence().is_none());
        let (Some(xs), Some(ys)) = (self.axis(unit_ms.is_some()), input.as_deref().and_then(Axis::of)) else {
            return Ok(None);
        };
        let scale = unit_ms.unwrap_or(1) as f64;
        let (mut derivatives, mut others) = (Vec::with_capacity(self.rows), Vec::new());
        for (row, window) in self.windows()?.into_iter().enumerate() {
            let last = window.end.saturating_sub(1);
            let run = if window.is_empty() { 0.0 } else { xs.distance(window.start, last) };
            if run == 0.0 {
                others.push((row, Value::NULL));
            }
            derivatives.push(ys.distance(window.start, last) / run * scale);
        }
        Ok(Some(except(ColumnData::F64(derivatives), &others)))
    }

    /// The same value by value.
    pub(super) fn derivatives_of_values(&self, unit_ms: Option<i64>) -> Result<Column> {
        let codes = [ErrorCode::Location5624900, ErrorCode::Location5624901, ErrorCode::Location5624902];
        let scale = Number::Integer(unit_ms.unwrap_or(1));
        let mut derivatives = ColumnBuilder::with_capacity(self.rows);
        let mut scratch = Vec::new();
        let mut y_at = |row: usize| {
            let value = self.input.cells.value(row, &mut scratch).filter(|value| value.kind() != Kind::Null);
            let Some(value) = value else {
                let message = "$derivative input must not be null or missing";
                return Err(Error::new(ErrorCode::Location5624903, message));
            };
            place(value).ok_or_else(|| Error::type_mismatch("$derivative input must be numeric"))
        };
        for window in self.windows()? {
            if window.is_empty() {
                derivatives.push(Value::NULL);
                continue;
            }
            let (first, last) = (window.start, window.end - 1);
            let run = minus(self.place_at(last, unit_ms, codes)?, self.place_at(first, unit_ms, codes)?);
            let rise = minus(y_at(last)?, y_at(first)?);
            match run.compare(ZERO).is_eq() {
                true => derivatives.push(Value::NULL),
                false => derivatives.push(result(times(over(rise, run), scale)).view()),
            }
        }
        Ok(derivatives.finish())
    }

    /// The sum of the trapezoids between the rows of each window.
    pub(super) fn integrals(&self, unit_ms: Option<i64>, sum: &Accumulation) -> Result<Column> {
        match self.typed_integrals(unit_ms)? {
            Some(column) => Ok(column),
            None => self.integrals_of_values(unit_ms, sum),
        }
    }

    /// The same over vectors; `None` unless all rows have numbers of one type.
    #[allow(clippy::cast_precision_loss)]
    fn typed_integrals(&self, unit_ms: Option<i64>) -> Result<Option<Column>> {
        let input = typed(&self.input.cells).filter(|input| input.presence().is_none());
        let (Some(xs), Some(ys)) = (self.axis(unit_ms.is_some()), input.as_deref().and_then(doubles)) else {
            return Ok(None);
        };
        let mut areas = Vec::with_capacity(self.rows);
        for row in 0..self.rows {
            areas.push(match row.checked_sub(1) {
                Some(before) => xs.distance(before, row) * (cell(&ys, before) + cell(&ys, row)) / 2.0,
                None => 0.0,
            });
        }
        let windows = self.windows()?;
        let (mut sums, _) = sums(Cells { cells: &areas, present: None }, &inner(&windows), false);
        let mut others = Vec::new();
        for (row, (window, sum)) in windows.iter().zip(&mut sums).enumerate() {
            if let Some(ms) = unit_ms {
                *sum /= ms as f64;
            }
            match window.len() {
                0 => others.push((row, Value::NULL)),
                1 if cell(&ys, window.start).is_nan() => *sum = f64::NAN,
                1 if unit_ms.is_none() => others.push((row, no_sum())),
                _ => {}
            }
        }
        Ok(Some(except(ColumnData::F64(sums), &others)))
    }

    /// The same value by value.
    pub(super) fn integrals_of_values(&self, unit_ms: Option<i64>, sum: &Accumulation) -> Result<Column> {
        let codes = [ErrorCode::Location5423901, ErrorCode::Location5423902, ErrorCode::Location5423900];
        let (mut areas, mut is_nan) = (ColumnBuilder::with_capacity(self.rows), Vec::with_capacity(self.rows));
        let mut before = None;
        let mut scratch = Vec::new();
        for row in 0..self.rows {
            let y = self.input.cells.value(row, &mut scratch).and_then(Number::of);
            let message = "The input value of $integral must be numeric";
            let y = y.ok_or_else(|| Error::new(ErrorCode::Location5423900, message))?;
            let x = self.place_at(row, unit_ms, codes)?;
            let area = match before.replace((x, y)) {
                Some((x1, y1)) => over(times(minus(x, x1), plus(y, y1)), Number::Integer(2)),
                None => ZERO,
            };
            areas.push(result(area).view());
            is_nan.push(y.is_nan());
        }
        let windows = self.windows()?;
        let sums = over_windows(sum, &Inputs::of(areas.finish()), &inner(&windows))?;
        let mut integrals = ColumnBuilder::with_capacity(self.rows);
        for (row, window) in windows.iter().enumerate() {
            let sum = sums.value(row, &mut scratch).unwrap_or(Value::NULL);
            match (unit_ms, Number::of(sum)) {
                _ if window.is_empty() => integrals.push(Value::NULL),
                _ if window.len() == 1 && is_nan.get(window.start) == Some(&true) => {
                    integrals.push(OwnedValue::double(f64::NAN).view());
                }
                (Some(ms), Some(sum)) => integrals.push(result(over(sum, Number::Integer(ms))).view()),
                _ => integrals.push(sum),
            }
        }
        Ok(integrals.finish())
    }
}

/// The trapezoids of each window: there is none before its first row.
fn inner(windows: &[Range<usize>]) -> Vec<Range<usize>> {
    windows.iter().map(|window| (window.start + 1).min(window.end)..window.end).collect()
}
