//! Columns of values with their type bytes: to and from plain words.

use std::ops::Range;

use kernels::{compare, convert, decimals, gather, paths, tagged};

use super::bitmap::Bitmap;
use super::column::{Column, ColumnData, VarData};
use crate::listed::IntoList;
use crate::value::Kind;

/// How many rows are looked at before all are taken apart.
const SAMPLE_ROWS: usize = 64;

impl VarData {
    /// Values with these type bytes, 0 where one is missing, and these words: doubles, dates, integers, booleans and null.
    pub fn of_words(kinds: &[u8], words: &[u64]) -> VarData {
        let (offsets, bytes) = tagged::join(kinds, words);
        VarData { offsets, bytes }
    }

    /// Appends rows of a column as values with their type bytes. Does nothing and returns false if values of this form are
    /// not stored as such.
    pub(super) fn extend_tagged(&mut self, column: &Column, rows: &Range<usize>) -> bool {
        if let ColumnData::Bson(values) = column.data() {
            self.extend(values, rows.clone());
            return true;
        }
        let Some((kind, cells)) = column.data().cell_bytes() else { return false };
        let len = cells.len() / column.len().max(1);
        let mut start = rows.start;
        while start < rows.end {
            let is_present = column.is_present(start);
            let end = match column.presence() {
                None => rows.end,
                Some(presence) => (start..rows.end).find(|row| presence.get(*row) != is_present).unwrap_or(rows.end),
            };
            if is_present {
                let cells = cells.get(start * len..end * len).unwrap_or_default();
                tagged::append(&mut self.offsets, &mut self.bytes, kind.byte(), cells, end - start);
            } else {
                (start..end).for_each(|_| self.seal());
            }
            start = end;
        }
        true
    }

    /// The type byte of each value, 0 if it is missing, and its first eight bytes.
    pub fn to_words(&self) -> (Vec<u8>, Vec<u64>) {
        self.to_words_of(&(0..self.len()))
    }

    /// The same for some rows.
    pub fn to_words_of(&self, rows: &Range<usize>) -> (Vec<u8>, Vec<u64>) {
        tagged::parts(self.offsets.get(rows.start..=rows.end).unwrap_or_default(), &self.bytes)
    }
}

/// The rows that have this type byte.
pub fn of_kind(kinds: &[u8], kind: u8) -> Bitmap {
    Bitmap::from_words(compare::equal_bytes(kinds, kind), kinds.len())
}

impl ColumnData {
    /// The type of cells of fixed width, and their bytes. A dictionary whose only value is null has none.
    pub(super) fn cell_bytes(&self) -> Option<(Kind, &[u8])> {
        Some(match self {
            ColumnData::F64(cells) => (Kind::Double, bytemuck::cast_slice(cells)),
            ColumnData::I32(cells) => (Kind::Int32, bytemuck::cast_slice(cells)),
            ColumnData::I64(cells) => (Kind::Int64, bytemuck::cast_slice(cells)),
            ColumnData::Date(cells) => (Kind::Date, bytemuck::cast_slice(cells)),
            ColumnData::Bool(cells) => (Kind::Bool, cells),
            ColumnData::Dictionary(_, values) => match values.data() {
                ColumnData::Bson(cells) if cells.len() == 1 && cells.get(0) == [Kind::Null.byte()] => (Kind::Null, &[]),
                _ => return None,
            },
            _ => return None,
        })
    }
}

impl Column {
    /// What a path of names reaches in the objects of a BSON column. `None` if the path leads into an array, or to other
    /// values than numbers, dates, booleans and null.
    pub fn reached_by(&self, path: &[&str]) -> Option<Column> {
        let ColumnData::Bson(cells) = self.data() else { return None };
        let names: Vec<&[u8]> = path.iter().map(|name| name.as_bytes()).listed();
        let (kinds, words) = paths::words(&cells.offsets, &cells.bytes, &names)?;
        let present = Bitmap::from_slice(&kinds, |kind| *kind != 0);
        let mixed = Column::new(ColumnData::Bson(VarData::of_words(&kinds, &words)), Some(present));
        Some(mixed.untagged().filter(|(_, nulls)| nulls.none()).map_or(mixed, |(typed, _)| typed))
    }

    /// The coefficients of these rows of a column of decimals, and the exponent that all of them have; any number in rows without
    /// a value. `None` for other columns.
    pub fn decimals(&self, rows: Range<usize>) -> Option<(Vec<i64>, i32)> {
        match self.data() {
            ColumnData::Bson(cells) => decimals::coefficients(cells.offsets.get(rows.start..=rows.end)?, &cells.bytes),
            ColumnData::Dictionary(index, values) => {
                let index = index.get(rows)?;
                // A slice carries the dictionary of its whole column.
                if values.len() > index.len() {
                    return values.gather(index).decimals(0..index.len());
                }
                let (cells, exponent) = values.decimals(0..values.len())?;
                Some((gather::int64s(&cells, index), exponent))
            }
            _ => None,
        }
    }

    /// Decimals of these coefficients and this exponent; `None` if decimals have no such exponent.
    pub fn of_decimals(coefficients: &[i64], exponent: i32) -> Option<Column> {
        let bytes = decimals::cells(coefficients, exponent)?;
        let len = bytes.len().checked_div(coefficients.len()).unwrap_or_default();
        let offsets = (0..=coefficients.len()).map(|row| u32::try_from(row * len).unwrap_or(u32::MAX)).collect();
        Some(Column::new(ColumnData::Bson(VarData { offsets, bytes }), None))
    }

    /// The numbers of a BSON column in which all values are doubles, int32s and nulls, as doubles. Nulls have no cell in it.
    pub fn to_doubles(&self) -> Option<Column> {
        let ColumnData::Bson(cells) = self.data() else { return None };
        let (kinds, mut words) = cells.to_words();
        if !tagged::make_doubles(&kinds, &mut words) {
            return None;
        }
        let mut numbers = of_kind(&kinds, Kind::Double.byte());
        numbers.or(&of_kind(&kinds, Kind::Int32.byte()));
        Some(Column::new(ColumnData::F64(bytemuck::cast_vec(words)), Some(numbers)))
    }

    /// A BSON column in which all values but nulls are doubles, int32s, int64s or dates, as a column of that type, and
    /// the rows that are null, which have no cell in it.
    pub fn untagged(&self) -> Option<(Column, Bitmap)> {
        let ColumnData::Bson(cells) = self.data() else { return None };
        let is_value = |kind: &&u8| **kind != 0 && **kind != Kind::Null.byte();
        let first = cells
            .offsets
            .iter()
            .zip(cells.offsets.iter().skip(1))
            .find_map(|(start, end)| cells.bytes.get(*start as usize..*end as usize)?.first().filter(is_value));
        let kind = first.map_or(Some(Kind::Double), |kind| Kind::from_byte(*kind))?;
        if !matches!(kind, Kind::Double | Kind::Int32 | Kind::Int64 | Kind::Date) {
            return None;
        }
        // Most columns of several types show it at once.
        let is_other =
            |row: &usize| cells.get(*row).first().is_some_and(|byte| *byte != kind.byte() && is_value(&byte));
        if (0..cells.len().min(SAMPLE_ROWS)).any(|row| is_other(&row)) {
            return None;
        }
        let (kinds, words) = cells.to_words();
        let (present, nulls) = (of_kind(&kinds, kind.byte()), of_kind(&kinds, Kind::Null.byte()));
        if present.count() + nulls.count() != self.present_count() {
            return None;
        }
        let words: Vec<i64> = bytemuck::cast_slice(&words).to_vec();
        let data = match kind {
            Kind::Double => ColumnData::F64(bytemuck::cast_slice(&words).to_vec()),
            Kind::Int32 => ColumnData::I32(convert::int32s(&words)),
            Kind::Int64 => ColumnData::I64(words),
            _ => ColumnData::Date(words),
        };
        Some((Column::new(data, Some(present)), nulls))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::samples::column_of;
    use crate::value::{OwnedValue, Value};
    use proptest::prelude::*;

    fn value() -> impl Strategy<Value = OwnedValue> {
        prop_oneof![
            any::<f64>().prop_map(OwnedValue::double),
            any::<i32>().prop_map(OwnedValue::int32),
            any::<i64>().prop_map(OwnedValue::int64),
            any::<i64>().prop_map(OwnedValue::date),
            any::<bool>().prop_map(OwnedValue::bool),
        ]
    }

    proptest! {
        #[test]
        fn doubles_and_int32s_are_the_same_numbers_as_doubles_and_other_types_are_not_converted(
            numbers in proptest::collection::vec(proptest::option::of(prop_oneof![
                any::<f64>().prop_map(OwnedValue::double), any::<i32>().prop_map(OwnedValue::int32), Just(OwnedValue::null()),
            ]), 0..150),
            other in proptest::option::weighted(0.2, value()),
        ) {
            // So that the column is one of BSON.
            let mut cells = vec![Some(OwnedValue::null()), Some(OwnedValue::double(0.5))];
            cells.extend(numbers);
            cells.extend(other.clone().map(Some));
            let column = column_of(&cells);
            let is_number = |other: &OwnedValue| matches!(other.view().kind(), Kind::Double | Kind::Int32);
            let doubles = column.to_doubles();
            prop_assert_eq!(doubles.is_some(), other.as_ref().is_none_or(is_number));
            for (row, cell) in cells.iter().enumerate().filter(|_| doubles.is_some()) {
                let mut scratch = Vec::new();
                let double = doubles.as_ref().and_then(|doubles| doubles.value(row, &mut scratch)).map(Value::to_owned);
                let expected = cell.as_ref().and_then(|cell| cell.view().as_f64().or(cell.view().as_integer().map(|n| n as f64)));
                prop_assert_eq!(double, expected.map(OwnedValue::double));
            }
        }

        #[test]
        fn a_column_of_one_type_and_nulls_has_the_same_cells_without_type_bytes(
            first in value(), rows in proptest::collection::vec((value(), 0..4_u8, any::<bool>()), 0..150), one_type in any::<bool>(),
        ) {
            // A null first, so that the column is one of BSON.
            let mut cells = vec![Some(OwnedValue::null())];
            cells.extend(rows.into_iter().map(|(other, form, _)| match form {
                0 => None,
                1 => Some(OwnedValue::null()),
                _ if one_type => Some(first.clone()),
                _ => Some(other),
            }));
            let column = column_of(&cells);
            let kinds: std::collections::BTreeSet<u8> = cells.iter().flatten().map(|value| value.view().kind().byte()).collect();
            let others = kinds.iter().filter(|kind| **kind != Kind::Null.byte());
            let fits = kinds.len() <= 2 && others.clone().all(|kind| *kind != Kind::Bool.byte());
            let found = column.untagged();
            prop_assert_eq!(found.is_some(), fits);
            for (row, cell) in cells.iter().enumerate() {
                let Some((typed, nulls)) = &found else { break };
                let is_null = *cell == Some(OwnedValue::null());
                prop_assert_eq!(nulls.get(row), is_null);
                let expected = cell.as_ref().filter(|_| !is_null).map(OwnedValue::view);
                let mut scratch = Vec::new();
                prop_assert_eq!(typed.value(row, &mut scratch), expected);
            }
            let ColumnData::Bson(data) = column.data() else { panic!() };
            let (kinds, words) = data.to_words();
            prop_assert_eq!(&VarData::of_words(&kinds, &words), data);
        }
    }
}
