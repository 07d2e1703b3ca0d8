//! `$sum`, `$avg`, `$count`.

use std::ops::Range;

use super::model::{Accumulator, Times, each_cell};
use crate::block::{Column, ColumnData};
use crate::error::Result;
use crate::value::decimal::{sum, total};
use crate::value::{Decimal, Kind, Number, OwnedValue};

/// The product of two integers below this is exact as a double.
const EXACT_MAX: f64 = 67_108_864.0;

/// Sums of groups. Anything but a number counts as nothing.
pub(super) struct Sums {
    is_average: bool,
    groups: Vec<Sum>,
}

/// Integers are added exactly, and doubles with what each addition has lost, so that the order of rows hardly matters.
#[derive(Clone, Copy, Default)]
struct Sum {
    count: u64,
    integers: i128,
    doubles: f64,
    /// What rounding has taken from `doubles`.
    lost: f64,
    has_int64: bool,
    has_double: bool,
    decimals: Option<Decimal>,
}

impl Sum {
    fn add_double(&mut self, x: f64) {
        let sum = self.doubles + x;
        let lost = if self.doubles.abs() >= x.abs() { (self.doubles - sum) + x } else { (x - sum) + self.doubles };
        self.doubles = sum;
        self.lost += lost;
    }

    /// The sum as a double.
    fn total(&self) -> f64 {
        // What is lost is no number beside infinities.
        let doubles = if self.doubles.is_finite() { self.doubles + self.lost } else { self.doubles };
        #[allow(clippy::cast_precision_loss)]
        let integers = self.integers as f64;
        doubles + integers
    }

    fn add_decimal(&mut self, decimal: Decimal) {
        self.decimals = Some(self.decimals.map_or(decimal, |before| sum(before, decimal)));
    }

    /// The sum as a decimal where there is one in it; the mean where it is of so many.
    fn decimal(&self, count: Option<u64>) -> Option<OwnedValue> {
        let coefficient = self.integers.unsigned_abs();
        let integers = Decimal::Finite { negative: self.integers < 0, coefficient, exponent: 0 };
        let doubles = Number::Double(if self.has_double { self.doubles + self.lost } else { 0.0 });
        Some(total(sum(self.decimals?, integers), doubles, count))
    }

    fn value(&self) -> OwnedValue {
        if let Some(total) = self.decimal(None) {
            return total;
        }
        if self.has_double {
            return OwnedValue::double(self.total());
        }
        match (i32::try_from(self.integers), i64::try_from(self.integers)) {
            (Ok(n), _) if !self.has_int64 => OwnedValue::int32(n),
            (_, Ok(n)) => OwnedValue::int64(n),
            _ => OwnedValue::double(self.total()),
        }
    }
}

impl Sums {
    pub fn new(is_average: bool) -> Sums {
        Sums { is_average, groups: Vec::new() }
    }
}

impl Accumulator for Sums {
    fn grow(&mut self, _: usize) {
        self.groups.push(Sum::default());
    }

    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>, _: Option<&Times<'_>>) -> Result<()> {
        let Some(sum) = self.groups.get_mut(group) else { return Ok(()) };
        match (cells.data(), cells.presence()) {
            (ColumnData::F64(cells), None) => {
                let cells = cells.get(rows).unwrap_or_default();
                sum.count += cells.len() as u64;
                sum.has_double |= !cells.is_empty();
                cells.iter().for_each(|x| sum.add_double(*x));
                return Ok(());
            }
            (ColumnData::I32(cells), None) => {
                let cells = cells.get(rows).unwrap_or_default();
                sum.count += cells.len() as u64;
                sum.integers += i128::from(cells.iter().map(|n| i64::from(*n)).sum::<i64>());
                return Ok(());
            }
            // The same number for all rows, as in a count.
            (ColumnData::Dictionary(_, values), None) if values.len() == 1 => {
                match values.data() {
                    ColumnData::I32(values) => {
                        sum.count += rows.len() as u64;
                        sum.integers += i128::from(values.first().copied().unwrap_or_default()) * rows.len() as i128;
                        return Ok(());
                    }
                    ColumnData::F64(values) => {
                        // The product is the sum where both are exact.
                        let value = values.first().copied().filter(|x| x.fract() == 0.0 && x.abs() < EXACT_MAX);
                        if let Some(value) = value.filter(|_| rows.len() < EXACT_MAX as usize) {
                            sum.count += rows.len() as u64;
                            sum.has_double = true;
                            #[allow(clippy::cast_precision_loss)]
                            sum.add_double(value * rows.len() as f64);
                            return Ok(());
                        }
                    }
                    _ => {}
                }
            }
            _ => {}
        }
        each_cell(cells, rows, &mut |value| {
            match value.kind() {
                Kind::Double => {
                    sum.has_double = true;
                    sum.add_double(value.as_f64().unwrap_or_default());
                }
                Kind::Int32 => sum.integers += i128::from(value.as_i32().unwrap_or_default()),
                Kind::Int64 => {
                    sum.has_int64 = true;
                    sum.integers += i128::from(value.as_i64().unwrap_or_default());
                }
                _ => match Number::of(value) {
                    Some(Number::Decimal(decimal)) => sum.add_decimal(decimal),
                    _ => return Ok(()),
                },
            }
            sum.count += 1;
            Ok(())
        })
    }

    fn merge(&mut self, into: usize, from: usize) -> bool {
        let from = self.groups.get(from).copied().unwrap_or_default();
        if let Some(sum) = self.groups.get_mut(into) {
            sum.add_double(from.doubles);
            sum.lost += from.lost;
            sum.count += from.count;
            sum.integers += from.integers;
            sum.has_int64 |= from.has_int64;
            sum.has_double |= from.has_double;
            if let Some(decimals) = from.decimals {
                sum.add_decimal(decimals);
            }
        }
        true
    }

    fn value(&self, group: usize) -> OwnedValue {
        let sum = self.groups.get(group).copied().unwrap_or_default();
        if !self.is_average {
            return sum.value();
        }
        if sum.count == 0 {
            return OwnedValue::null();
        }
        if let Some(mean) = sum.decimal(Some(sum.count)) {
            return mean;
        }
        #[allow(clippy::cast_precision_loss)]
        let count = sum.count as f64;
        OwnedValue::double(sum.total() / count)
    }
}
