//! Computes a field of a partition: accumulators over windows, and functions that only windows have.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/window_function/window_function_exec_*.cpp.

use super::super::accumulator::{Accumulation, Inputs};
use super::bounds::Window;
use super::slide::over_windows;
use crate::block::{Column, ColumnBuilder, ColumnData};
use crate::error::{Error, ErrorCode, Result};
use crate::value::decimal::{minus, over, plus, result, times};
use crate::value::{Collation, Decimal, Kind, Number, OwnedValue, Value, compare_sort_keys, sort_key};

const ZERO: Number = Number::Integer(0);

/// A window function.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum WindowFunction {
    Accumulator(Box<Accumulation>),
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
            WindowFunction::Accumulator(spec) => {
                let windows = self.window.ranges(self.rows, self.order.map(|(column, _)| column))?;
                over_windows(spec, &self.input, &windows)
            }
            WindowFunction::Rank | WindowFunction::DenseRank | WindowFunction::Number => Ok(self.ranks(function)),
            WindowFunction::Shift(by, default) => Ok(self.shifted(*by, default)),
            WindowFunction::Derivative(unit_ms) => self.derivatives(*unit_ms),
            WindowFunction::Integral(unit_ms, sum) => self.integrals(*unit_ms, sum),
            WindowFunction::Spread(low, high, edges) => self.spread(*low, *high, edges),
            WindowFunction::MovingAverage(alpha) => self.moving_averages(*alpha),
            WindowFunction::Carry => Ok(self.carried()),
            WindowFunction::Line => self.interpolated(),
        }
    }

    pub(super) fn order_at<'a>(&'a self, row: usize, scratch: &'a mut Vec<u8>) -> Option<Value<'a>> {
        self.order.and_then(|(column, _)| column.value(row, scratch))
    }

    fn ranks(&self, function: &WindowFunction) -> Column {
        let ascending = self.order.is_none_or(|(_, ascending)| *ascending);
        let (mut before, mut scratch) = (Vec::new(), Vec::new());
        let mut rank = 0;
        let mut ranks = Vec::with_capacity(self.rows);
        for row in 0..self.rows {
            let ties = *function != WindowFunction::Number && row > 0 && {
                let key = |row, scratch| sort_key(self.order_at(row, scratch), &[], ascending, self.collation);
                compare_sort_keys(key(row - 1, &mut before), key(row, &mut scratch), self.collation).is_eq()
            };
            if !ties {
                rank = if *function == WindowFunction::DenseRank { rank + 1 } else { row + 1 };
            }
            ranks.push(i64::try_from(rank).unwrap_or(i64::MAX));
        }
        Column::new(ColumnData::I64(ranks), None)
    }

    fn shifted(&self, by: i64, default: &OwnedValue) -> Column {
        let mut shifted = ColumnBuilder::with_capacity(self.rows);
        let mut scratch = Vec::new();
        for row in 0..self.rows {
            let from = i64::try_from(row).ok().and_then(|row| usize::try_from(row.checked_add(by)?).ok());
            match from.filter(|from| *from < self.rows) {
                Some(from) => shifted.push(self.input.cells.value(from, &mut scratch).unwrap_or(Value::NULL)),
                None => shifted.push(default.view()),
            }
        }
        shifted.finish()
    }

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
    fn derivatives(&self, unit_ms: Option<i64>) -> Result<Column> {
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
        for window in self.window.ranges(self.rows, self.order.map(|(column, _)| column))? {
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
    fn integrals(&self, unit_ms: Option<i64>, sum: &Accumulation) -> Result<Column> {
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
        let windows = self.window.ranges(self.rows, self.order.map(|(column, _)| column))?;
        // There is no trapezoid before the first row of a window.
        let inner: Vec<_> = windows.iter().map(|window| (window.start + 1).min(window.end)..window.end).collect();
        let sums = over_windows(sum, &Inputs::of(areas.finish()), &inner)?;
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
        let windows = self.window.ranges(self.rows, self.order.map(|(column, _)| column))?;
        let [least, greatest] = edges;
        let (least, greatest) =
            (over_windows(least, &self.input, &windows)?, over_windows(greatest, &self.input, &windows)?);
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
    fn moving_averages(&self, alpha: Decimal) -> Result<Column> {
        let mut averages = ColumnBuilder::with_capacity(self.rows);
        let (mut average, mut scratch) = (None, Vec::new());
        let (exact, alpha) = (Number::Decimal(alpha), alpha.near_double());
        let exact = [exact, minus(Number::Integer(1), exact)];
        let near = [alpha, 1.0 - alpha].map(Number::Double);
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
        Ok(averages.finish())
    }
}
