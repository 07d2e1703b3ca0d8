//! Columns of texts, arrays and objects as numbers of distinct ones: queries compare and group these much faster. So are columns with
//! texts among other values.

use super::column::{Column, ColumnData, VarData};
use crate::value::{Interner, Kind, Value};

/// If more than one of so many rows has a text of its own, numbers are of no use.
const ROWS_A_TEXT_MIN: usize = 4;
/// So many rows show whether there are texts among other values.
const SAMPLE_ROWS: usize = 64;
/// So many texts may differ before that is judged: of some hundred paths, most come early.
const TEXTS_FREE: usize = 192;

/// The texts, arrays or objects of the first rows of a column, which may grow.
#[derive(Default)]
pub struct TextNumbers {
    /// The number of each row's text; any number in a row without one.
    index: Vec<u32>,
    numbers: Interner,
    texts: VarData,
    /// How many of the rows have one.
    present: usize,
    /// The column as it was read last.
    made: Option<Column>,
    /// True if the cells have a byte for their type.
    is_tagged: bool,
    /// True if too many texts differ.
    is_of_no_use: bool,
}

impl TextNumbers {
    /// In fewer rows than this, texts are not numbered.
    pub const ROWS_MIN: usize = 64;

    /// True for texts, arrays and objects, and for texts among other values. Columns of other types, also if they are mixed, are
    /// compared by kernels.
    pub fn are_for(column: &Column) -> bool {
        let is_long = |value: Value<'_>| matches!(value.kind(), Kind::Array | Kind::Object | Kind::String);
        let mut scratch = Vec::new();
        let mut is_long_at = |row: usize| column.value(row, &mut scratch).map(is_long);
        match column.data() {
            ColumnData::String(_) => true,
            ColumnData::Bson(_) => {
                let first = (0..column.len()).find(|row| column.is_present(*row)).unwrap_or_default();
                (first..column.len()).take(SAMPLE_ROWS).any(|row| is_long_at(row) == Some(true))
            }
            _ => false,
        }
    }

    /// A column that does not grow with numbers; `None` if they are of no use.
    pub fn of(column: &Column) -> Option<Column> {
        if column.len() < TextNumbers::ROWS_MIN || !TextNumbers::are_for(column) {
            return None;
        }
        TextNumbers::default().up_to(column, column.present_count() / ROWS_A_TEXT_MIN)
    }

    /// The same column with numbers; `None` if they are of no use.
    pub fn numbered(&mut self, column: &Column) -> Option<Column> {
        self.up_to(column, TEXTS_FREE)
    }

    /// True if nothing has numbers.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The same; so many texts may differ before that is judged. Arrays and objects are long, and few of them are alike.
    fn up_to(&mut self, column: &Column, free: usize) -> Option<Column> {
        let (texts, is_tagged) = match column.data() {
            ColumnData::String(texts) => (texts, false),
            ColumnData::Bson(texts) => (texts, true),
            _ => return None,
        };
        if self.is_tagged != is_tagged {
            *self = TextNumbers { is_tagged, ..TextNumbers::default() };
        }
        if let Some(made) = self.made.as_ref().filter(|made| made.len() == column.len()) {
            return Some(made.clone());
        }
        let free = if is_tagged { TextNumbers::ROWS_MIN } else { free };
        let presence = column.presence();
        for row in self.index.len()..column.len() {
            if self.is_of_no_use {
                break;
            }
            let number = match presence.is_none_or(|present| present.get(row)) {
                true => {
                    let text = texts.get(row);
                    self.present += 1;
                    let (number, is_new) = self.numbers.add(text);
                    if is_new {
                        self.texts.push(text);
                    }
                    number
                }
                false => 0,
            };
            self.index.push(u32::try_from(number).unwrap_or(u32::MAX));
            self.is_of_no_use = self.numbers.count() > free + self.present / ROWS_A_TEXT_MIN;
        }
        if self.is_of_no_use || self.numbers.count() == 0 {
            // What is not used need not be kept.
            *self = TextNumbers { is_tagged, is_of_no_use: self.is_of_no_use, ..TextNumbers::default() };
            return None;
        }
        let data = if is_tagged { ColumnData::Bson } else { ColumnData::String };
        let texts = Column::new(data(self.texts.clone()), None);
        let dictionary = ColumnData::Dictionary(self.index.clone(), Box::new(texts));
        self.made = Some(Column::new(dictionary, presence.cloned()));
        self.made.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::shown;
    use super::*;
    use crate::block::{Block, ColumnBuilder};
    use crate::value::OwnedValue;

    fn texts(of: impl Iterator<Item = u32>) -> Column {
        let mut builder = ColumnBuilder::new();
        of.for_each(|n| match n % 10 {
            9 => builder.push_absent(1),
            _ => builder.push(OwnedValue::string(&format!("text {n}")).view()),
        });
        builder.finish()
    }

    #[test]
    fn texts_of_which_at_most_a_quarter_differ_are_numbered_wherever_they_stand() {
        let mixed = |count: u32| {
            let value = |n: u32| {
                if n.is_multiple_of(5) { OwnedValue::string(&n.to_string()) } else { OwnedValue::double(f64::from(n)) }
            };
            let mut builder = ColumnBuilder::new();
            (0..1000).for_each(|n| builder.push(value(n % count).view()));
            builder.finish()
        };
        assert_eq!([7, 900].map(|count| TextNumbers::of(&mixed(count)).is_some()), [true, false]);
        // All come early; the last ones differ; the same as arrays; too few rows.
        for (column, is_numbered) in [
            (texts((0..1000).map(|n| n % 240)), true),
            (texts((0..1000).map(|n| if n < 750 { 1 } else { n })), true),
            (texts((0..1000).map(|n| n % 500)), false),
            (texts((0..60).map(|n| n % 3)), false),
            // One row in ten has a text.
            (texts((0..1000).map(|n| if n % 10 == 0 { 10 * n } else { 9 })), false),
            (texts((0..1000).map(|n| if n % 10 == 0 { n % 50 } else { 9 })), true),
        ] {
            let numbered = TextNumbers::of(&column);
            assert_eq!(numbered.is_some(), is_numbered);
            if let Some(numbered) = numbered {
                assert!(matches!(numbered.data(), ColumnData::Dictionary(..)));
                let [given, numbered] = [&column, &numbered].map(|column| {
                    let mut block = Block::new(column.len());
                    block.set_column("s", column.clone());
                    shown(&block)
                });
                assert_eq!(numbered, given);
            }
        }
    }
}
