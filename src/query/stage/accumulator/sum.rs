//! `$sum`, `$avg`, `$count`.

use std::ops::Range;

use kernels::tagged::NumbersApart;
use kernels::{gather, runs, tagged};

use super::kernels::{
    DoubleSum, IntegerSum, add_doubles, add_int32_for_each, add_int32s, add_int64s, sum_of_doubles, sum_of_int32s,
    sum_of_int64s,
};
use super::model::{Accumulator, Inputs, ROWS_APART_MIN, Times, decimals_of, each_cell, groups_met, show_double};
use crate::block::{Column, ColumnData};
use crate::error::Result;
use crate::listed::IntoList;
use crate::value::decimal::{sum, total};
use crate::value::{Decimal, Kind, Number, OwnedValue, Value};

/// The product of two integers below this is exact as a double.
const EXACT_MAX: f64 = 67_108_864.0;

/// A coefficient below this still has 34 digits at most when those of a column are added, of which each is less than 2^63.
const SHORT_END: u128 = 10_u128.pow(33);

/// Sums of groups. Values other than numbers do not count.
pub(super) struct Sums {
    is_average: bool,
    groups: usize,
    /// For each group, its doubles; empty before the first one, like the other two.
    doubles: Vec<DoubleSum>,
    integers: Vec<IntegerSum>,
    decimals: Vec<DecimalSum>,
}

#[derive(Clone, Copy, Default)]
struct DecimalSum {
    sum: Option<Decimal>,
    count: u64,
}

impl DecimalSum {
    fn merge(&mut self, other: DecimalSum) {
        self.sum = match (self.sum, other.sum) {
            (Some(a), Some(b)) => Some(sum(a, b)),
            (a, b) => a.or(b),
        };
        self.count += other.count;
    }
}

/// The sum of one group.
struct Sum {
    doubles: DoubleSum,
    integers: IntegerSum,
    decimals: DecimalSum,
}

impl Sum {
    /// The sum as a double, which is rounded once: the integers are added to the doubles with all their digits.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
    fn total(&self) -> f64 {
        if self.integers.count == 0 {
            return self.doubles.total();
        }
        let (mut all, integers) = (self.doubles, self.integers.sum);
        let near = integers as f64;
        all.add(near);
        all.add((integers - near as i128) as f64);
        all.total()
    }

    /// The sum as a decimal if it contains one; divided by `count` for a mean.
    fn decimal(&self, count: Option<u64>) -> Option<OwnedValue> {
        let integers = Decimal::with_exponent(self.integers.sum, 0);
        let doubles = Number::Double(self.doubles.total());
        Some(total(sum(self.decimals.sum?, integers), doubles, count))
    }

    fn show(&self, see: &mut dyn FnMut(Value<'_>)) {
        if let Some(total) = self.decimal(None) {
            return see(total.view());
        }
        if self.doubles.count > 0 {
            return show_double(self.total(), see);
        }
        match (i32::try_from(self.integers.sum), i64::try_from(self.integers.sum)) {
            (Ok(n), _) if !self.integers.has_int64 => see(Value::new_checked(Kind::Int32, &n.to_le_bytes())),
            (_, Ok(n)) => see(Value::new_checked(Kind::Int64, &n.to_le_bytes())),
            _ => show_double(self.total(), see),
        }
    }

    fn show_mean(&self, see: &mut dyn FnMut(Value<'_>)) {
        let count = self.doubles.count + self.integers.count + self.decimals.count;
        if count == 0 {
            return see(Value::NULL);
        }
        if let Some(mean) = self.decimal(Some(count)) {
            return see(mean.view());
        }
        #[allow(clippy::cast_precision_loss)]
        show_double(self.total() / count as f64, see);
    }
}

impl Sums {
    pub fn new(is_average: bool) -> Sums {
        Sums { is_average, groups: 0, doubles: Vec::new(), integers: Vec::new(), decimals: Vec::new() }
    }

    fn doubles(&mut self) -> &mut [DoubleSum] {
        self.doubles.resize(self.groups, DoubleSum::default());
        &mut self.doubles
    }

    fn integers(&mut self) -> &mut [IntegerSum] {
        self.integers.resize(self.groups, IntegerSum::default());
        &mut self.integers
    }

    fn decimals(&mut self) -> &mut [DecimalSum] {
        self.decimals.resize(self.groups, DecimalSum::default());
        &mut self.decimals
    }

    fn sum(&self, group: usize) -> Sum {
        Sum {
            doubles: self.doubles.get(group).copied().unwrap_or_default(),
            integers: self.integers.get(group).copied().unwrap_or_default(),
            decimals: self.decimals.get(group).copied().unwrap_or_default(),
        }
    }

    fn add_doubles(&mut self, group: usize, sum: DoubleSum) {
        if let Some(doubles) = self.doubles().get_mut(group).filter(|_| sum.count > 0) {
            doubles.merge(sum);
        }
    }

    fn add_integers(&mut self, group: usize, sum: IntegerSum) {
        if let Some(integers) = self.integers().get_mut(group) {
            integers.merge(sum);
        }
    }

    fn add_decimals(&mut self, group: usize, sum: DecimalSum) {
        if let Some(decimals) = self.decimals().get_mut(group) {
            decimals.merge(sum);
        }
    }

    fn add_value(&mut self, group: usize, value: Value<'_>) {
        let integer = |n: i64, has_int64| IntegerSum { sum: i128::from(n), count: 1, has_int64 };
        match value.kind() {
            Kind::Double => self.add_doubles(group, sum_of_doubles(&[value.as_f64().unwrap_or_default()])),
            Kind::Int32 => self.add_integers(group, integer(value.as_i32().map_or(0, i64::from), false)),
            Kind::Int64 => self.add_integers(group, integer(value.as_i64().unwrap_or_default(), true)),
            _ => {
                if let Some(Number::Decimal(decimal)) = Number::of(value) {
                    self.add_decimals(group, DecimalSum { sum: Some(decimal), count: 1 });
                }
            }
        }
    }

    /// Adds the entries of these rows to a group; false if they must be added row by row.
    fn add_entries(&mut self, group: usize, index: &[u32], values: &ColumnData) -> bool {
        let rows = index.len();
        let only = runs::ends_of_codes(index, 1).and_then(|_| index.first()).map(|entry| *entry as usize);
        match (values, only) {
            // All rows have the same number, as in a count.
            (ColumnData::I32(values), Some(only)) => {
                let value = values.get(only).copied().unwrap_or_default();
                let sum = i128::from(value) * rows as i128;
                self.add_integers(group, IntegerSum { sum, count: rows as u64, has_int64: false });
            }
            (ColumnData::I32(values), None) => {
                self.add_integers(group, sum_of_int32s(&gather::int32s(values, index)));
            }
            (ColumnData::F64(values), only) => {
                // The product equals the sum if both are exact.
                let value = only.and_then(|only| values.get(only).copied());
                let value = value.filter(|x| x.fract() == 0.0 && x.abs() < EXACT_MAX && rows < EXACT_MAX as usize);
                #[allow(clippy::cast_precision_loss)]
                let sum = match value {
                    Some(value) => DoubleSum { sum: value * rows as f64, lost: 0.0, count: rows as u64 },
                    None => sum_of_doubles(&gather::doubles(values, index)),
                };
                self.add_doubles(group, sum);
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
        let range = rows.clone();
        match (cells.data(), cells.presence()) {
            (ColumnData::F64(cells), None) => {
                self.add_doubles(group, sum_of_doubles(cells.get(range).unwrap_or_default()));
            }
            (ColumnData::I32(cells), None) => {
                self.add_integers(group, sum_of_int32s(cells.get(range).unwrap_or_default()));
            }
            (ColumnData::I64(cells), None) => {
                self.add_integers(group, sum_of_int64s(cells.get(range).unwrap_or_default()));
            }
            (ColumnData::Dictionary(index, values), None)
                if self.add_entries(group, index.get(range).unwrap_or_default(), values.data()) => {}
            _ => return self.add_values(&|_| group, 1, cells, rows),
        }
        Ok(())
    }

    fn add_each(
        &mut self,
        groups: &[u32],
        inputs: &Inputs<'_>,
        rows: Range<usize>,
        _: Option<&Times<'_>>,
    ) -> Result<()> {
        let (cells, start) = (&inputs.cells, rows.start);
        let range = rows.clone();
        match (cells.data(), cells.presence()) {
            (ColumnData::F64(cells), None) => {
                add_doubles(groups, cells.get(range).unwrap_or_default(), self.doubles());
            }
            (ColumnData::I32(cells), None) => {
                add_int32s(groups, cells.get(range).unwrap_or_default(), self.integers());
            }
            (ColumnData::I64(cells), None) => {
                add_int64s(groups, cells.get(range).unwrap_or_default(), self.integers());
            }
            (ColumnData::Dictionary(index, values), None) => match values.data() {
                ColumnData::I32(only) if only.len() == 1 => {
                    add_int32_for_each(groups, only.first().copied().unwrap_or_default(), self.integers());
                }
                ColumnData::F64(values) => {
                    let cells = gather::doubles(values, index.get(range).unwrap_or_default());
                    add_doubles(groups, &cells, self.doubles());
                }
                _ => return self.add_values(&|row| group_at(groups, row - start), self.groups, cells, rows),
            },
            _ => return self.add_values(&|row| group_at(groups, row - start), self.groups, cells, rows),
        }
        Ok(())
    }

    fn merge(&mut self, into: usize, from: usize) -> bool {
        let Sum { doubles, integers, decimals } = self.sum(from);
        self.add_doubles(into, doubles);
        if integers.count > 0 {
            self.add_integers(into, integers);
        }
        if decimals.count > 0 {
            self.add_decimals(into, decimals);
        }
        true
    }

    fn column(&self) -> Option<Column> {
        if !self.decimals.is_empty() {
            return None;
        }
        if self.integers.is_empty() && self.doubles.len() == self.groups {
            // A sum of nothing is an integer, and a mean of nothing is null.
            let result = |sum: &DoubleSum| match (sum.count, self.is_average) {
                (0, _) => None,
                (_, false) => Some(sum.total()),
                #[allow(clippy::cast_precision_loss)]
                (count, true) => Some(sum.total() / count as f64),
            };
            return Some(Column::new(ColumnData::F64(self.doubles.iter().map(result).listed_if_all()?), None));
        }
        if self.is_average || !self.doubles.is_empty() || self.integers.len() < self.groups {
            return None;
        }
        let result = |sum: &IntegerSum| i32::try_from(sum.sum).ok().filter(|_| !sum.has_int64);
        Some(Column::new(ColumnData::I32(self.integers.iter().map(result).listed_if_all()?), None))
    }

    fn show(&self, group: usize, see: &mut dyn FnMut(Value<'_>)) {
        if self.is_average { self.sum(group).show_mean(see) } else { self.sum(group).show(see) }
    }
}

fn group_at(groups: &[u32], row: usize) -> usize {
    groups.get(row).map_or(usize::MAX, |group| *group as usize)
}

impl Sums {
    /// Adds decimals of one exponent to up to so many groups, as integers. Otherwise, for few rows, and where decimals of a
    /// group so far have another exponent or many digits, returns false and adds nothing: sums of such are rounded, one by
    /// one.
    fn add_coefficients(
        &mut self,
        group_of: &dyn Fn(usize) -> usize,
        groups: usize,
        cells: &Column,
        rows: &Range<usize>,
    ) -> bool {
        let Some((cells, exponent)) = decimals_of(cells, rows, groups) else { return false };
        let (numbers, firsts) = groups_met(group_of, groups, rows);
        let is_short = |row: &usize| match self.sum(group_of(*row)).decimals.sum {
            Some(Decimal::Finite { coefficient, exponent: own, .. }) => own == exponent && coefficient < SHORT_END,
            known => known.is_none(),
        };
        if !firsts.iter().all(is_short) {
            return false;
        }
        let mut sums = vec![IntegerSum::default(); firsts.len()];
        add_int64s(&numbers, &cells, &mut sums);
        for (row, IntegerSum { sum, count, .. }) in firsts.into_iter().zip(sums) {
            let sum = Some(Decimal::with_exponent(sum, exponent));
            self.add_decimals(group_of(row), DecimalSum { sum, count });
        }
        true
    }

    /// Adds the values of a BSON column if all of them are doubles, integers or nulls. Otherwise, and for few rows, returns
    /// false and adds nothing.
    fn add_mixed(
        &mut self,
        group_of: &dyn Fn(usize) -> usize,
        groups: usize,
        cells: &Column,
        rows: &Range<usize>,
    ) -> bool {
        let ColumnData::Bson(cells) = cells.data() else { return false };
        if rows.len() < ROWS_APART_MIN {
            return false;
        }
        let (kinds, words) = cells.to_words_of(rows);
        if groups == 1 {
            let Some(NumbersApart { doubles, integers, counts }) = tagged::numbers_apart(&kinds, &words) else {
                return false;
            };
            let ([doubles_count, int32s, int64s], group) = (counts, group_of(rows.start));
            self.add_doubles(group, DoubleSum { count: doubles_count, ..sum_of_doubles(&doubles) });
            let (count, has_int64) = (int32s + int64s, int64s > 0);
            self.add_integers(group, IntegerSum { count, has_int64, ..sum_of_int64s(&integers) });
            return true;
        }
        let [double, int32, int64, null] = [Kind::Double, Kind::Int32, Kind::Int64, Kind::Null].map(Kind::byte);
        if !kinds.iter().all(|kind| [0, double, int32, int64, null].contains(kind)) {
            return false;
        }
        let numbers = rows.clone().zip(&kinds).zip(&words);
        let doubles = self.doubles();
        for ((row, _), word) in numbers.clone().filter(|((_, kind), _)| **kind == double) {
            if let Some(sum) = doubles.get_mut(group_of(row)) {
                sum.add(f64::from_bits(*word));
            }
        }
        let integers = self.integers();
        for ((row, kind), word) in numbers.filter(|((_, kind), _)| **kind == int32 || **kind == int64) {
            if let Some(sum) = integers.get_mut(group_of(row)) {
                let is_int64 = *kind == int64;
                sum.sum += if is_int64 { i128::from(word.cast_signed()) } else { i128::from(*word as i32) };
                sum.count += 1;
                sum.has_int64 |= is_int64;
            }
        }
        true
    }

    /// Adds the values of these rows, which belong to up to so many groups.
    fn add_values(
        &mut self,
        group_of: &dyn Fn(usize) -> usize,
        groups: usize,
        cells: &Column,
        rows: Range<usize>,
    ) -> Result<()> {
        if self.add_coefficients(group_of, groups, cells, &rows) || self.add_mixed(group_of, groups, cells, &rows) {
            return Ok(());
        }
        each_cell(cells, rows, &mut |row, value| {
            self.add_value(group_of(row), value);
            Ok(())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::extreme::ExtremeValues;
    use super::*;
    use crate::block::samples::{column_of, decimals};
    use crate::query::exec::samples::{any_column, cell};
    use crate::value::Collation;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn results_as_a_column_are_those_of_each_group(
            columns in prop::collection::vec(any_column(40), 1..3), groups in prop::collection::vec(0..5_u32, 40),
        ) {
            let collation = Collation::default();
            let extremes = [true, false].map(|is_max| Box::new(ExtremeValues::new(is_max, &collation)) as Box<dyn Accumulator>);
            let sums = [true, false].map(|is_average| Box::new(Sums::new(is_average)) as Box<dyn Accumulator>);
            for mut accumulator in extremes.into_iter().chain(sums) {
                (0..5).for_each(|_| accumulator.grow(1));
                for column in &columns {
                    accumulator.add_each(&groups, &Inputs::of(column.clone()), 0..40, None).unwrap();
                }
                let Some(column) = accumulator.column() else { continue };
                prop_assert_eq!(column.len(), 5);
                for group in 0..5 {
                    prop_assert_eq!(cell(&column, group), Some(accumulator.value(group)));
                }
            }
        }
    }

    /// Numbers of several types, null and missing values. Sums of the doubles are exact.
    fn number(has_doubles: bool) -> impl Strategy<Value = Option<OwnedValue>> {
        let doubles = [0.0, -0.0, 1.5, -7.0, f64::NAN, 9_007_199_254_740_992.0].map(OwnedValue::double);
        let int64s = [0, 3, -7, 1 << 53, (1 << 53) + 1, i64::MAX, i64::MIN].map(OwnedValue::int64);
        let others = [0, -7, 4].map(OwnedValue::int32).into_iter().chain([OwnedValue::null()]);
        let all = doubles.into_iter().filter(|_| has_doubles).chain(int64s).chain(others).map(Some);
        prop::sample::select(all.chain([None]).collect::<Vec<_>>())
    }

    fn any_numbers() -> impl Strategy<Value = Vec<Option<OwnedValue>>> {
        let of_types = any::<bool>().prop_flat_map(|has_doubles| prop::collection::vec(number(has_doubles), 30));
        prop_oneof![decimals(30).prop_map(|values| values.into_iter().map(Some).collect()), of_types]
    }

    proptest! {
        #[test]
        fn numbers_that_are_added_at_once_give_what_they_give_one_by_one(
            columns in prop::collection::vec(any_numbers(), 1..4), groups in prop::collection::vec(0..4_u32, 30),
            places in prop::collection::vec(0..20_i64, 30), has_times in any::<bool>(), is_run in any::<bool>(),
        ) {
            let collation = Collation::default();
            let all = || -> [Box<dyn Accumulator>; 4] {
                [
                    Box::new(ExtremeValues::new(true, &collation)), Box::new(ExtremeValues::new(false, &collation)),
                    Box::new(Sums::new(false)), Box::new(Sums::new(true)),
                ]
            };
            for (mut at_once, mut one_by_one) in all().into_iter().zip(all()) {
                (0..4).for_each(|_| {
                    at_once.grow(1);
                    one_by_one.grow(1);
                });
                for values in &columns {
                    let inputs = Inputs::of(column_of(values));
                    let times = Times { ms: &places, ascending: true };
                    let times = has_times.then_some(&times);
                    match is_run {
                        true => at_once.add(2, &inputs, 0..30, times).unwrap(),
                        false => at_once.add_each(&groups, &inputs, 0..30, times).unwrap(),
                    }
                    for (row, group) in groups.iter().enumerate() {
                        let group = if is_run { 2 } else { *group as usize };
                        one_by_one.add(group, &inputs, row..row + 1, times).unwrap();
                    }
                }
                for group in 0..4 {
                    prop_assert_eq!(at_once.value(group), one_by_one.value(group));
                }
            }
        }
    }

    #[test]
    fn sums_of_doubles_and_counts_have_a_typed_column() {
        let column = |cells: ColumnData, is_average| {
            let mut sums = Sums::new(is_average);
            sums.grow(1);
            sums.add(0, &Inputs::of(Column::new(cells, None)), 0..2, None).unwrap();
            sums.column().map(|column| column.data().clone())
        };
        assert_eq!(column(ColumnData::F64(vec![1.0, 2.0]), true), Some(ColumnData::F64(vec![1.5])));
        assert_eq!(column(ColumnData::I32(vec![1, 2]), false), Some(ColumnData::I32(vec![3])));
        assert_eq!(column(ColumnData::I32(vec![i32::MAX, 2]), false), None);
        assert_eq!(column(ColumnData::I32(vec![1, 2]), true), None);
    }
}
