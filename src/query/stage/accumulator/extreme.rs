//! `$min` and `$max`.

use std::cmp::Ordering;
use std::ops::Range;

use kernels::texts::Texts;
use kernels::{convert, extreme, tagged};

use super::kernels::{GroupExtreme, extreme_of_doubles, extreme_of_int64s, offer_doubles, offer_integers};
use super::model::{Accumulator, Inputs, Times, decimals_of, each_cell, groups_met};
use crate::block::{Bitmap, Column, ColumnData, VarData};
use crate::error::Result;
use crate::listed::IntoList;
use crate::value::decimal::to_value;
use crate::value::{Collation, Decimal, Kind, OwnedValue, Value};

/// Extremes of groups in BSON order; null does not count.
pub(super) struct ExtremeValues {
    is_max: bool,
    groups: Vec<GroupExtreme>,
    /// The extremes that are neither doubles, nor integers, nor dates, nor booleans; empty before the first one.
    others: Vec<Option<OwnedValue>>,
    collation: Collation,
}

/// For values that repeat, which of them each group has met is noted in at most so many bits a row.
const SEEN_BITS_A_ROW_MAX: usize = 64;

/// Below this, every integer has a double of its own.
const EXACT_END: f64 = 9_007_199_254_740_992.0;

/// The type byte of an extreme that is among the others. No type has it.
const OTHER: u8 = 0x80;

/// A value in the form of a kernel; `None` for types that have none.
fn word_of(value: Value<'_>) -> Option<u64> {
    match value.kind() {
        Kind::Double => value.as_f64().map(f64::to_bits),
        Kind::Int32 => value.as_i32().map(|n| i64::from(n).cast_unsigned()),
        Kind::Int64 => value.as_i64().map(i64::cast_unsigned),
        Kind::Date => value.as_date_ms().map(i64::cast_unsigned),
        Kind::Bool => value.as_bool().map(u64::from),
        _ => None,
    }
}

/// The value of a word; `None` before the first value.
fn value_of(kind: u8, word: &[u8; 8]) -> Option<Value<'_>> {
    let kind = Kind::from_byte(kind)?;
    // Little-endian: the first bytes of a small value are the whole of it.
    let bytes = match kind {
        Kind::Int32 => word.first_chunk::<4>()?.as_slice(),
        Kind::Bool => word.first_chunk::<1>()?,
        _ => word,
    };
    Some(Value::new_checked(kind, bytes))
}

impl ExtremeValues {
    pub fn new(is_max: bool, collation: &Collation) -> ExtremeValues {
        ExtremeValues { is_max, groups: Vec::new(), others: Vec::new(), collation: collation.clone() }
    }

    /// Calls `see` with the extreme of a group.
    fn see<T>(&self, group: usize, see: impl FnOnce(Option<Value<'_>>) -> T) -> T {
        let known = self.groups.get(group).copied().unwrap_or_default();
        match known.kind {
            OTHER => see(self.others.get(group).and_then(Option::as_ref).map(OwnedValue::view)),
            kind => see(value_of(kind, &known.word.to_le_bytes())),
        }
    }

    /// A value and the place of its row. Of values that compare equal, such as 1 and 1.0, the first one stays.
    fn offer(&mut self, group: usize, value: Value<'_>, place: i64) {
        let wanted = if self.is_max { Ordering::Greater } else { Ordering::Less };
        let order = self.see(group, |known| known.map(|known| self.collation.compare(value, known)));
        let Some(known) = self.groups.get_mut(group) else { return };
        let wins = match order {
            None => true,
            Some(Ordering::Equal) => place < known.place,
            Some(order) => order == wanted,
        };
        if !wins || matches!(value.kind(), Kind::Null | Kind::Undefined) {
            return;
        }
        if let Some(word) = word_of(value) {
            *known = GroupExtreme { word, place, kind: value.kind().byte() };
            return;
        }
        *known = GroupExtreme { word: 0, place, kind: OTHER };
        self.others.resize(self.groups.len(), None);
        if let Some(other) = self.others.get_mut(group) {
            *other = Some(value.to_owned());
        }
    }

    /// Offers the extreme decimals of these rows, which belong to up to so many groups.
    fn offer_decimals(
        &mut self,
        group_of: &dyn Fn(usize) -> usize,
        groups: usize,
        (cells, exponent): (&[i64], i32),
        rows: &Range<usize>,
        times: Option<&Times<'_>>,
    ) {
        let (numbers, firsts) = groups_met(group_of, groups, rows);
        let places = times.map_or_else(Vec::new, |times| rows.clone().map(|row| times.place(row)).listed());
        let first = |row: &usize| {
            let at = row - rows.start;
            let word = cells.get(at).copied().unwrap_or_default().cast_unsigned();
            GroupExtreme { word, place: places.get(at).copied().unwrap_or_default(), kind: OTHER }
        };
        let mut extremes = firsts.iter().map(first).listed();
        offer_integers(&numbers, cells, &places, (OTHER, self.is_max), &mut extremes);
        for (row, extreme) in firsts.into_iter().zip(extremes) {
            let decimal = to_value(Decimal::with_exponent(extreme.word.cast_signed().into(), exponent));
            self.offer(group_of(row), decimal.view(), extreme.place);
        }
    }

    /// Offers each cell of these rows to the group of its row.
    fn offer_values(
        &mut self,
        group_of: &dyn Fn(usize) -> usize,
        cells: &Column,
        rows: Range<usize>,
        times: Option<&Times<'_>>,
        groups: usize,
    ) -> Result<()> {
        if let Some((cells, exponent)) = decimals_of(cells, &rows, groups) {
            self.offer_decimals(group_of, groups, (&cells, exponent), &rows, times);
            return Ok(());
        }
        if let (ColumnData::Dictionary(codes, values), None) = (cells.data(), times)
            && self.groups.len().saturating_mul(values.len()) <= SEEN_BITS_A_ROW_MAX * rows.len()
        {
            // A value that a group has met makes no difference when it comes again.
            let mut seen = Bitmap::filled(self.groups.len() * values.len(), false);
            let mut scratch = Vec::new();
            for (row, code) in codes.iter().enumerate().take(rows.end).skip(rows.start) {
                let group = group_of(row);
                let place = group.saturating_mul(values.len()).saturating_add(*code as usize);
                if place < seen.len()
                    && !seen.get(place)
                    && let Some(value) = cells.value(row, &mut scratch)
                {
                    seen.set(place, true);
                    self.offer(group, value, 0);
                }
            }
            return Ok(());
        }
        let mut scratch = Vec::new();
        let better = if times.is_none() { self.better_cells(group_of, groups, cells, &rows) } else { None };
        if let Some(better) = better {
            for row in better {
                cells.value(row, &mut scratch).into_iter().for_each(|value| self.offer(group_of(row), value, 0));
            }
            return Ok(());
        }
        each_cell(cells, rows, &mut |row, value| {
            self.offer(group_of(row), value, times.map_or(0, |times| times.place(row)));
            Ok(())
        })
    }

    /// Of rows with texts, or with doubles, integers, nulls and missing values, those whose value may be better than all of their group
    /// before; `None` if there are other values.
    fn better_cells(
        &self,
        group_of: &dyn Fn(usize) -> usize,
        groups: usize,
        cells: &Column,
        rows: &Range<usize>,
    ) -> Option<Vec<usize>> {
        if let (ColumnData::String(VarData { offsets, bytes }), true) = (cells.data(), self.collation.is_simple()) {
            let (numbers, firsts) = groups_met(group_of, groups, rows);
            let (texts, present) = (Texts { offsets, bytes }, cells.presence().map(Bitmap::words));
            let best = extreme::texts(texts, present, rows.start, &numbers, firsts.len(), self.is_max);
            return Some(best.into_iter().flatten().collect());
        }
        let ColumnData::Bson(cells) = cells.data() else { return None };
        let (kinds, words) = cells.to_words_of(rows);
        let doubles = tagged::near_doubles(&kinds, &words)?;
        let (mut best, mut better) = (vec![None; self.groups.len()], Vec::new());
        for ((row, x), kind) in rows.clone().zip(doubles).zip(kinds) {
            let Some(best) = best.get_mut(group_of(row)).filter(|_| kind != 0 && kind != Kind::Null.byte()) else {
                continue;
            };
            // NaN sorts below all other numbers. Of different int64s, the nearest double may be the same.
            let is_better = best.is_none_or(|best: f64| match self.is_max {
                true => x > best || best.is_nan() && !x.is_nan() || x == best && x.abs() >= EXACT_END,
                false => x < best || x.is_nan() && !best.is_nan() || x == best && x.abs() >= EXACT_END,
            });
            if is_better {
                *best = Some(x);
                better.push(row);
            }
        }
        Some(better)
    }
}

impl Accumulator for ExtremeValues {
    fn grow(&mut self, _: usize) {
        self.groups.push(GroupExtreme::default());
    }

    fn add(&mut self, group: usize, inputs: &Inputs<'_>, rows: Range<usize>, times: Option<&Times<'_>>) -> Result<()> {
        // In a typed column: first the extreme of the range, then the first cell that equals it.
        let (is_max, cells, range) = (self.is_max, &inputs.cells, rows.clone());
        let best = match (cells.data(), cells.presence()) {
            (ColumnData::Dictionary(_, values), None) if values.len() == 1 && times.is_none() => {
                return self.offer_values(&|_| group, values, 0..range.len().min(1), None, 1);
            }
            (ColumnData::F64(cells), None) => {
                extreme_of_doubles(cells.get(range).unwrap_or_default(), is_max).map(|best| {
                    let is_best = |x: &f64| *x == best || x.is_nan() && best.is_nan();
                    let (row, place) = first(rows.clone(), times, &|row| cells.get(row).is_some_and(is_best));
                    // Zeros may differ in their signs.
                    (OwnedValue::double(row.and_then(|row| cells.get(row)).copied().unwrap_or(best)), place)
                })
            }
            (ColumnData::I32(cells), None) => {
                // Doubles are exact for them.
                let doubles = convert::doubles_of_int32s(cells.get(range).unwrap_or_default());
                extreme_of_doubles(&doubles, is_max).map(|best| {
                    let best = best as i32;
                    let (_, place) = first(rows.clone(), times, &|row| cells.get(row) == Some(&best));
                    (OwnedValue::int32(best), place)
                })
            }
            (ColumnData::I64(cells), None) => {
                extreme_of_int64s(cells.get(range).unwrap_or_default(), is_max).map(|best| {
                    let (_, place) = first(rows.clone(), times, &|row| cells.get(row) == Some(&best));
                    (OwnedValue::int64(best), place)
                })
            }
            // Dates that compare equal are identical.
            (ColumnData::Date(cells), None) => {
                extreme_of_int64s(cells.get(range).unwrap_or_default(), is_max).map(|best| (OwnedValue::date(best), 0))
            }
            // So are booleans.
            (ColumnData::Bool(cells), None) => {
                let cells = cells.get(range).unwrap_or_default();
                let (wanted, other) = if is_max { (1, 0) } else { (0, 1) };
                let found = if cells.contains(&wanted) { wanted } else { other };
                (!cells.is_empty()).then(|| (OwnedValue::bool(found != 0), 0))
            }
            _ => None,
        };
        match best {
            Some((value, place)) => self.offer(group, value.view(), place),
            None => self.offer_values(&|_| group, cells, rows, times, 1)?,
        }
        Ok(())
    }

    fn add_each(
        &mut self,
        groups: &[u32],
        inputs: &Inputs<'_>,
        rows: Range<usize>,
        times: Option<&Times<'_>>,
    ) -> Result<()> {
        let column = &inputs.cells;
        let group_of = |row: usize| groups.get(row - rows.start).map_or(usize::MAX, |group| *group as usize);
        let kind = column.kind().map_or(0, Kind::byte);
        if column.presence().is_some() {
            return self.offer_values(&group_of, column, rows.clone(), times, self.groups.len());
        }
        let places = match times {
            Some(times) => rows.clone().map(|row| times.place(row)).collect(),
            None => Vec::new(),
        };
        let by = (kind, self.is_max);
        let truths: Vec<i64> = match column.data() {
            ColumnData::Bool(cells) => cells.iter().map(|cell| i64::from(*cell)).collect(),
            _ => Vec::new(),
        };
        let mut row = rows.start;
        while row < rows.end {
            let done = row - rows.start;
            let (groups, places) = (groups.get(done..).unwrap_or_default(), places.get(done..).unwrap_or_default());
            let known = &mut self.groups;
            let range = row..rows.end;
            row += match column.data() {
                ColumnData::F64(cells) => {
                    offer_doubles(groups, cells.get(range).unwrap_or_default(), places, by, known)
                }
                ColumnData::I32(cells) => {
                    offer_integers(groups, cells.get(range).unwrap_or_default(), places, by, known)
                }
                ColumnData::I64(cells) | ColumnData::Date(cells) => {
                    offer_integers(groups, cells.get(range).unwrap_or_default(), places, by, known)
                }
                ColumnData::Bool(_) => offer_integers(groups, truths.get(range).unwrap_or_default(), places, by, known),
                _ => return self.offer_values(&group_of, column, rows.clone(), times, self.groups.len()),
            };
            // The group has a value of another type.
            if row < rows.end {
                self.offer_values(&group_of, column, row..row + 1, times, 1)?;
                row += 1;
            }
        }
        Ok(())
    }

    fn merge(&mut self, into: usize, from: usize) -> bool {
        let GroupExtreme { word, place, kind } = self.groups.get(from).copied().unwrap_or_default();
        if let Some(value) = value_of(kind, &word.to_le_bytes()) {
            self.offer(into, value, place);
        } else if let Some(value) = self.others.get(from).cloned().flatten() {
            self.offer(into, value.view(), place);
        }
        true
    }

    fn column(&self) -> Option<Column> {
        let kind = self.groups.first()?.kind;
        let words: Vec<u64> =
            self.groups.iter().map(|group| (group.kind == kind).then_some(group.word)).listed_if_all()?;
        let data = match Kind::from_byte(kind)? {
            Kind::Double => ColumnData::F64(bytemuck::cast_vec(words)),
            Kind::Int64 => ColumnData::I64(bytemuck::cast_vec(words)),
            Kind::Date => ColumnData::Date(bytemuck::cast_vec(words)),
            Kind::Bool => ColumnData::Bool(words.iter().map(|word| u8::from(*word != 0)).collect()),
            _ => return None,
        };
        Some(Column::new(data, None))
    }

    fn show(&self, group: usize, see: &mut dyn FnMut(Value<'_>)) {
        self.see(group, |value| see(value.unwrap_or(Value::NULL)));
    }
}

/// The first row for which the condition holds, and its place, if rows come out of order.
fn first(rows: Range<usize>, times: Option<&Times<'_>>, holds: &dyn Fn(usize) -> bool) -> (Option<usize>, i64) {
    let Some(times) = times else { return (None, 0) };
    let first = rows.filter(|row| holds(*row)).min_by_key(|row| times.place(*row));
    (first, first.map_or(0, |row| times.place(row)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::ColumnBuilder;
    use proptest::prelude::*;

    fn column(values: impl Iterator<Item = Option<OwnedValue>>) -> Column {
        let mut builder = ColumnBuilder::new();
        values.for_each(|value| match value {
            Some(value) => builder.push(value.view()),
            None => builder.push_absent(1),
        });
        builder.finish()
    }

    proptest! {
        #[test]
        fn values_that_repeat_give_the_extremes_of_the_same_values_row_by_row(
            rows in prop::collection::vec((0..3_u32, 0..6_u32, prop::bool::weighted(0.8)), 1..60),
            is_max in any::<bool>(), is_apart in any::<bool>(),
        ) {
            let entries = [
                OwnedValue::string("b"), OwnedValue::string("a"), OwnedValue::int32(1), OwnedValue::double(1.0), OwnedValue::null(),
                OwnedValue::int32(7),
            ];
            let codes: Vec<u32> = rows.iter().map(|row| row.1).collect();
            let present = Bitmap::from_fn(rows.len(), |row| rows[row].2);
            let entry = |row: &(u32, u32, bool)| Some(entries[row.1 as usize].clone()).filter(|_| row.2);
            let (coded, plain) = (
                Column::new(ColumnData::Dictionary(codes, Box::new(column(entries.iter().cloned().map(Some)))), Some(present)),
                column(rows.iter().map(entry)),
            );
            let extremes = |cells: Column| {
                let mut extremes = ExtremeValues::new(is_max, &Collation::default());
                (0..3).for_each(|_| extremes.grow(1));
                let groups: Vec<u32> = rows.iter().map(|row| row.0).collect();
                let inputs = Inputs::of(cells);
                match is_apart {
                    true => extremes.add_each(&groups, &inputs, 0..rows.len(), None).unwrap(),
                    false => extremes.add(1, &inputs, 0..rows.len(), None).unwrap(),
                }
                (0..3).map(|group| extremes.value(group)).collect::<Vec<_>>()
            };
            prop_assert_eq!(extremes(coded), extremes(plain));
        }

        #[test]
        fn extremes_of_booleans_are_those_of_one_comparison_after_another(
            truths in prop::collection::vec(any::<bool>(), 1..40), groups in prop::collection::vec(0..3_u32, 40),
            others in prop::collection::vec(prop_oneof![Just(OwnedValue::int32(1)), Just(OwnedValue::date(0))], 0..2),
            is_max in any::<bool>(), is_apart in any::<bool>(),
        ) {
            let mut extremes = ExtremeValues::new(is_max, &Collation::default());
            (0..3).for_each(|_| extremes.grow(1));
            let mut expected = [const { None::<OwnedValue> }; 3];
            // Values of other types before and after.
            let all = [others.clone(), truths.into_iter().map(OwnedValue::bool).collect(), others];
            for values in all.iter().filter(|values| !values.is_empty()) {
                let inputs = Inputs::of(column(values.iter().cloned().map(Some)));
                for row in 0..values.len() {
                    let group = if is_apart { groups[row] as usize } else { 1 };
                    let wanted = if is_max { Ordering::Greater } else { Ordering::Less };
                    let known = expected[group].as_ref().map(OwnedValue::view);
                    if known.is_none_or(|known| Collation::default().compare(values[row].view(), known) == wanted) {
                        expected[group] = Some(values[row].clone());
                    }
                }
                match is_apart {
                    true => extremes.add_each(&groups[..values.len()], &inputs, 0..values.len(), None).unwrap(),
                    false => extremes.add(1, &inputs, 0..values.len(), None).unwrap(),
                }
            }
            let found = (0..3).map(|group| extremes.value(group)).collect::<Vec<_>>();
            prop_assert_eq!(found, expected.map(|value| value.unwrap_or_else(OwnedValue::null)).to_vec());
            let column = extremes.column();
            for group in 0..3 {
                let mut scratch = Vec::new();
                prop_assert!(column.as_ref().is_none_or(|all| all.value(group, &mut scratch).map(Value::to_owned) == Some(extremes.value(group))));
            }
        }
    }
}
