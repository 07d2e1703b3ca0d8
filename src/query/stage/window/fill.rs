//! `$locf` and `$linearFill`: values for rows that have none.

use super::cells::{Axis, NOWHERE, cell, except, picked, typed};
use super::function::{Partition, place};
use crate::block::{Column, ColumnBuilder, ColumnData};
use crate::error::{Error, ErrorCode, Result};
use crate::value::decimal::{minus, over, plus, result, times};
use crate::value::{Kind, Number, Value};

fn is_null(value: Option<Value<'_>>) -> bool {
    value.is_none_or(|value| matches!(value.kind(), Kind::Null | Kind::Undefined))
}

impl Partition<'_> {
    /// The last value so far that is not null.
    pub(super) fn carried(&self) -> Column {
        let typed = typed(&self.input.cells);
        let column = typed.as_deref().unwrap_or(&self.input.cells);
        let (mut last, mut scratch) = (NOWHERE, Vec::new());
        let mut rows = Vec::with_capacity(self.rows);
        for row in 0..self.rows {
            let is_there = match typed {
                Some(_) => column.is_present(row),
                None => !is_null(column.value(row, &mut scratch)),
            };
            if is_there {
                last = u32::try_from(row).unwrap_or(NOWHERE);
            }
            rows.push(last);
        }
        picked(column, &rows, Value::NULL)
    }

    /// Values on the line between the neighbouring values; null if there is none on one side.
    ///
    /// Errors: `TypeMismatch` if a value is neither a number nor null, or if sort keys are neither all numbers nor all
    /// dates; 6050106 if rows tie.
    pub(super) fn interpolated(&self) -> Result<Column> {
        match self.doubles_interpolated() {
            Some(column) => Ok(column),
            None => self.values_interpolated(),
        }
    }

    /// The same over vectors; `None` unless all values are doubles and all sort keys differ and have one type.
    fn doubles_interpolated(&self) -> Option<Column> {
        let input = typed(&self.input.cells)?;
        let ColumnData::F64(ys) = input.data() else { return None };
        let xs = self.axis(false).or_else(|| self.axis(true)).filter(Axis::is_distinct)?;
        let mut filled = ys.clone();
        let mut others = Vec::new();
        let (mut left, mut row) = (None, 0);
        while row < self.rows {
            if input.is_present(row) {
                left = Some(row);
                row += 1;
                continue;
            }
            let right = (row..self.rows).find(|row| input.is_present(*row));
            let gap = row..right.unwrap_or(self.rows);
            match (left, right) {
                (Some(left), Some(right)) => {
                    let slope = (cell(ys, right) - cell(ys, left)) / xs.distance(left, right);
                    for (row, y) in gap.clone().zip(filled.get_mut(gap.clone()).into_iter().flatten()) {
                        *y = cell(ys, left) + xs.distance(left, row) * slope;
                    }
                }
                _ => others.extend(gap.clone().map(|row| (row, Value::NULL))),
            }
            row = gap.end;
        }
        Some(except(ColumnData::F64(filled), &others))
    }

    /// The same value by value.
    pub(super) fn values_interpolated(&self) -> Result<Column> {
        let mut scratch = Vec::new();
        let (mut xs, mut ys) = (Vec::with_capacity(self.rows), Vec::with_capacity(self.rows));
        let mut kind = None;
        for row in 0..self.rows {
            let x = self.order_at(row, &mut scratch);
            let is_date = x.is_some_and(|x| x.kind() == Kind::Date);
            let (Some(x), true) = (x.and_then(place), is_date == *kind.get_or_insert(is_date)) else {
                return Err(Error::type_mismatch(
                    "The sortBy field must be a number in all rows, or a date in all rows",
                ));
            };
            if xs.last().is_some_and(|last: &Number| last.compare(x).is_eq()) {
                let message = "The sortBy field must not have repeated values";
                return Err(Error::new(ErrorCode::Location6050106, message));
            }
            xs.push(x);
            let y = self.input.cells.value(row, &mut scratch);
            let number = y.and_then(Number::of);
            if number.is_none() && !is_null(y) {
                return Err(Error::type_mismatch("A value to fill must be numeric, null or missing"));
            }
            ys.push(number);
        }
        let mut filled = ColumnBuilder::with_capacity(self.rows);
        let point = |row: usize| Some((*xs.get(row)?, ys.get(row).copied().flatten()?));
        let (mut left, mut right) = (None, 0);
        for (row, x) in xs.iter().enumerate() {
            if point(row).is_some() {
                left = Some(row);
                filled.push(self.input.cells.value(row, &mut scratch).unwrap_or(Value::NULL));
                continue;
            }
            right = (right.max(row)..self.rows).find(|row| point(*row).is_some()).unwrap_or(self.rows);
            let (Some((x1, y1)), Some((x2, y2))) = (left.and_then(point), point(right)) else {
                filled.push(Value::NULL);
                continue;
            };
            let slope = over(minus(y2, y1), minus(x2, x1));
            filled.push(result(plus(y1, times(minus(*x, x1), slope))).view());
        }
        Ok(filled.finish())
    }
}
