//! `$sum`, `$avg`, `$count`.

use std::ops::Range;

use super::kernels::{sum_of_doubles, sum_of_int32s, sum_of_int64s, two_sum};
use super::model::{Accumulator, Inputs, Times, each_cell};
use crate::block::{Column, ColumnBuilder, ColumnData};
use crate::error::Result;
use crate::value::decimal::{sum, total};
use crate::value::{Decimal, Kind, Number, OwnedValue, Value};

/// The product of two integers below this is exact as a double.
const EXACT_MAX: f64 = 67_108_864.0;

/// Sums of groups. Values other than numbers do not count.
pub(super) struct Sums {
    is_average: bool,
    groups: usize,
    /// For each group, its doubles; empty before the first one, like the other two.
    doubles: Vec<Doubles>,
    integers: Vec<Integers>,
    decimals: Vec<Decimals>,
}

/// Doubles are added with compensation for rounding, so that the order of rows hardly matters.
#[derive(Clone, Copy, Default)]
struct Doubles {
    sum: f64,
    /// What rounding has taken from `sum`.
    lost: f64,
    count: u64,
}

/// Integers are added exactly.
#[derive(Clone, Copy, Default)]
struct Integers {
    sum: i128,
    count: u64,
    has_int64: bool,
}

#[derive(Clone, Copy, Default)]
struct Decimals {
    sum: Option<Decimal>,
    count: u64,
}

impl Doubles {
    #[inline(always)]
    fn add(&mut self, x: f64, lost: f64) {
        let (sum, taken) = two_sum(self.sum, x);
        self.sum = sum;
        self.lost += taken + lost;
    }

    /// Adds one double to one group.
    #[inline(always)]
    fn add_one(groups: &mut [Doubles], group: u32, x: f64) {
        if let Some(doubles) = groups.get_mut(group as usize) {
            doubles.add(x, 0.0);
            doubles.count += 1;
        }
    }
}

impl Integers {
    /// Adds one integer to one group.
    #[inline(always)]
    fn add_one(groups: &mut [Integers], group: u32, n: i64, is_int64: bool) {
        if let Some(integers) = groups.get_mut(group as usize) {
            integers.sum += i128::from(n);
            integers.count += 1;
            integers.has_int64 |= is_int64;
        }
    }
}

impl Decimals {
    fn add(&mut self, decimal: Decimal) {
        self.sum = Some(self.sum.map_or(decimal, |before| sum(before, decimal)));
    }
}

/// The sum of one group.
#[derive(Clone, Copy, Default)]
struct Sum {
    doubles: Doubles,
    integers: Integers,
    decimals: Decimals,
}

impl Sum {
    /// The sum as a double.
    fn total(&self) -> f64 {
        let Doubles { sum, lost, .. } = self.doubles;
        // With infinities, the compensation is NaN.
        let doubles = if sum.is_finite() { sum + lost } else { sum };
        #[allow(clippy::cast_precision_loss)]
        let integers = self.integers.sum as f64;
        doubles + integers
    }

    /// The sum as a decimal if it contains one; divided by `count` for a mean.
    fn decimal(&self, count: Option<u64>) -> Option<OwnedValue> {
        let Integers { sum: integers, .. } = self.integers;
        let coefficient = integers.unsigned_abs();
        let integers = Decimal::Finite { negative: integers < 0, coefficient, exponent: 0 };
        let doubles = Number::Double(self.doubles.sum + self.doubles.lost);
        Some(total(sum(self.decimals.sum?, integers), doubles, count))
    }

    fn see(&self, see: &mut dyn FnMut(Value<'_>)) {
        if let Some(total) = self.decimal(None) {
            return see(total.view());
        }
        if self.doubles.count > 0 {
            return see_double(self.total(), see);
        }
        match (i32::try_from(self.integers.sum), i64::try_from(self.integers.sum)) {
            (Ok(n), _) if !self.integers.has_int64 => see(Value::new_checked(Kind::Int32, &n.to_le_bytes())),
            (_, Ok(n)) => see(Value::new_checked(Kind::Int64, &n.to_le_bytes())),
            _ => see_double(self.total(), see),
        }
    }

    fn see_mean(&self, see: &mut dyn FnMut(Value<'_>)) {
        let count = self.doubles.count + self.integers.count + self.decimals.count;
        if count == 0 {
            return see(Value::NULL);
        }
        if let Some(mean) = self.decimal(Some(count)) {
            return see(mean.view());
        }
        #[allow(clippy::cast_precision_loss)]
        see_double(self.total() / count as f64, see);
    }
}

fn see_double(x: f64, see: &mut dyn FnMut(Value<'_>)) {
    see(Value::new_checked(Kind::Double, &x.to_le_bytes()));
}

impl Sums {
    pub fn new(is_average: bool) -> Sums {
        Sums { is_average, groups: 0, doubles: Vec::new(), integers: Vec::new(), decimals: Vec::new() }
    }

    fn doubles(&mut self) -> &mut [Doubles] {
        self.doubles.resize(self.groups, Doubles::default());
        &mut self.doubles
    }

    fn integers(&mut self) -> &mut [Integers] {
        self.integers.resize(self.groups, Integers::default());
        &mut self.integers
    }

    fn decimals(&mut self) -> &mut [Decimals] {
        self.decimals.resize(self.groups, Decimals::default());
        &mut self.decimals
    }

    fn sum(&self, group: usize) -> Sum {
        Sum {
            doubles: self.doubles.get(group).copied().unwrap_or_default(),
            integers: self.integers.get(group).copied().unwrap_or_default(),
            decimals: self.decimals.get(group).copied().unwrap_or_default(),
        }
    }

    fn see(&self, group: usize, see: &mut dyn FnMut(Value<'_>)) {
        if self.is_average { self.sum(group).see_mean(see) } else { self.sum(group).see(see) }
    }

    fn add_doubles(&mut self, group: usize, sum: f64, lost: f64, count: usize) {
        if let Some(doubles) = self.doubles().get_mut(group).filter(|_| count > 0) {
            doubles.add(sum, lost);
            doubles.count += count as u64;
        }
    }

    fn add_integers(&mut self, group: usize, sum: i128, count: usize, has_int64: bool) {
        if let Some(integers) = self.integers().get_mut(group) {
            integers.sum += sum;
            integers.count += count as u64;
            integers.has_int64 |= has_int64 && count > 0;
        }
    }

    fn add_value(&mut self, group: usize, value: Value<'_>) {
        match value.kind() {
            Kind::Double => self.add_doubles(group, value.as_f64().unwrap_or_default(), 0.0, 1),
            Kind::Int32 => self.add_integers(group, i128::from(value.as_i32().unwrap_or_default()), 1, false),
            Kind::Int64 => self.add_integers(group, i128::from(value.as_i64().unwrap_or_default()), 1, true),
            _ => {
                if let (Some(Number::Decimal(decimal)), Some(decimals)) =
                    (Number::of(value), self.decimals().get_mut(group))
                {
                    decimals.add(decimal);
                    decimals.count += 1;
                }
            }
        }
    }

    /// Adds the same value for so many rows of a group; false if it must be added row by row.
    fn add_repeated(&mut self, group: usize, values: &Column, rows: usize) -> bool {
        match values.data() {
            ColumnData::I32(values) => {
                let value = values.first().copied().unwrap_or_default();
                self.add_integers(group, i128::from(value) * rows as i128, rows, false);
            }
            ColumnData::F64(values) => {
                // The product equals the sum if both are exact.
                let value = values.first().copied().filter(|x| x.fract() == 0.0 && x.abs() < EXACT_MAX);
                let Some(value) = value.filter(|_| rows < EXACT_MAX as usize) else { return false };
                #[allow(clippy::cast_precision_loss)]
                self.add_doubles(group, value * rows as f64, 0.0, rows);
            }
            _ => return false,
        }
        true
    }
}

impl Accumulator for Sums {
    fn grow(&mut self, _: usize) {
        self.groups += 1;
    }

    fn add(&mut self, group: usize, inputs: &Inputs<'_>, rows: Range<usize>, _: Option<&Times<'_>>) -> Result<()> {
        let cells = &inputs.cells;
        match (cells.data(), cells.presence()) {
            (ColumnData::F64(cells), None) => {
                let cells = cells.get(rows).unwrap_or_default();
                let (sum, lost) = sum_of_doubles(cells);
                self.add_doubles(group, sum, lost, cells.len());
                return Ok(());
            }
            (ColumnData::I32(cells), None) => {
                let cells = cells.get(rows).unwrap_or_default();
                self.add_integers(group, i128::from(sum_of_int32s(cells)), cells.len(), false);
                return Ok(());
            }
            (ColumnData::I64(cells), None) => {
                let cells = cells.get(rows).unwrap_or_default();
                self.add_integers(group, sum_of_int64s(cells), cells.len(), true);
                return Ok(());
            }
            // All rows have the same number, as in a count.
            (ColumnData::Dictionary(_, values), None)
                if values.len() == 1 && self.add_repeated(group, values, rows.len()) =>
            {
                return Ok(());
            }
            _ => {}
        }
        each_cell(cells, rows, &mut |_, value| {
            self.add_value(group, value);
            Ok(())
        })
    }

    fn add_each(
        &mut self,
        groups: &[u32],
        inputs: &Inputs<'_>,
        rows: Range<usize>,
        _: Option<&Times<'_>>,
    ) -> Result<()> {
        let cells = &inputs.cells;
        match (cells.data(), cells.presence()) {
            (ColumnData::F64(cells), None) => {
                let sums = self.doubles();
                let cells = cells.get(rows).unwrap_or_default();
                groups.iter().zip(cells).for_each(|(group, x)| Doubles::add_one(sums, *group, *x));
            }
            (ColumnData::F64(cells), Some(presence)) => {
                let sums = self.doubles();
                for (row, group) in rows.zip(groups).filter(|(row, _)| presence.get(*row)) {
                    Doubles::add_one(sums, *group, cells.get(row).copied().unwrap_or_default());
                }
            }
            (ColumnData::I32(cells), None) => {
                let sums = self.integers();
                let cells = cells.get(rows).unwrap_or_default();
                groups.iter().zip(cells).for_each(|(group, n)| Integers::add_one(sums, *group, i64::from(*n), false));
            }
            (ColumnData::I64(cells), None) => {
                let sums = self.integers();
                let cells = cells.get(rows).unwrap_or_default();
                groups.iter().zip(cells).for_each(|(group, n)| Integers::add_one(sums, *group, *n, true));
            }
            (ColumnData::Dictionary(_, values), None) if values.len() == 1 => match values.data() {
                ColumnData::I32(values) => {
                    let n = values.first().copied().map_or(0, i64::from);
                    let sums = self.integers();
                    groups.iter().for_each(|group| Integers::add_one(sums, *group, n, false));
                }
                ColumnData::F64(values) => {
                    let x = values.first().copied().unwrap_or_default();
                    let sums = self.doubles();
                    groups.iter().for_each(|group| Doubles::add_one(sums, *group, x));
                }
                _ => return self.add_values(groups, cells, rows),
            },
            _ => return self.add_values(groups, cells, rows),
        }
        Ok(())
    }

    fn merge(&mut self, into: usize, from: usize) -> bool {
        let Sum { doubles, integers, decimals } = self.sum(from);
        if doubles.count > 0 {
            self.add_doubles(into, doubles.sum, doubles.lost, doubles.count as usize);
        }
        if integers.count > 0 {
            self.add_integers(into, integers.sum, integers.count as usize, integers.has_int64);
        }
        if let (Some(sum), Some(into)) = (decimals.sum, self.decimals().get_mut(into)) {
            into.add(sum);
            into.count += decimals.count;
        }
        true
    }

    fn value(&self, group: usize) -> OwnedValue {
        let mut value = OwnedValue::null();
        self.see(group, &mut |seen| value = seen.to_owned());
        value
    }

    fn put(&self, group: usize, to: &mut ColumnBuilder) {
        self.see(group, &mut |value| to.push(value));
    }
}

impl Sums {
    fn add_values(&mut self, groups: &[u32], cells: &Column, rows: Range<usize>) -> Result<()> {
        let start = rows.start;
        each_cell(cells, rows, &mut |row, value| {
            let group = groups.get(row - start).map_or(usize::MAX, |group| *group as usize);
            self.add_value(group, value);
            Ok(())
        })
    }
}
