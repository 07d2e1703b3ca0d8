//! Columns of texts, arrays and objects in a tail, as numbers of distinct ones, or objects as columns of their scalars:
//! queries compare and group these much faster.

use std::cell::RefCell;

use crate::block::{Block, Column, ColumnData, TextNumbers};
use crate::column::GrowingObjects;

/// The texts, arrays and objects of a tail, by column. They grow with the tail when it is read, and are never shared
/// between tails.
#[derive(Default)]
pub struct TailTexts {
    columns: RefCell<Vec<(Box<str>, TailColumn)>>,
}

/// The first rows of a column.
#[derive(Default)]
struct TailColumn {
    numbers: TextNumbers,
    scalars: Scalars,
}

/// The objects of the first rows of a column, scalar by scalar.
#[derive(Default)]
struct Scalars {
    objects: GrowingObjects,
    /// Of the texts among the scalars.
    numbers: Vec<TextNumbers>,
    /// The column as it was read last.
    made: Option<Column>,
    /// True if the objects have no common shape.
    is_of_no_use: bool,
}

impl TailTexts {
    /// Puts numbered texts in place of texts, in columns of all rows of the tail, and if objects are read `apart`, columns
    /// of scalars in place of objects.
    // Loaded later.
    #[inline(never)]
    pub fn number_if_loaded(&self, rows: &mut Block, apart: bool) {
        if rows.rows() < TextNumbers::ROWS_MIN {
            return;
        }
        let mut columns = self.columns.borrow_mut();
        let all = rows.columns().iter().filter(|(_, column)| TextNumbers::are_for(column));
        for (name, column) in all.cloned().collect::<Vec<_>>() {
            let place = columns.iter().position(|(known, _)| *known == name).unwrap_or_else(|| {
                columns.push((name.clone(), TailColumn::default()));
                columns.len() - 1
            });
            let Some((_, known)) = columns.get_mut(place) else { continue };
            let made = known.numbers.numbered(&column);
            if let Some(made) = made.or_else(|| if apart { known.scalars.of(&column) } else { None }) {
                rows.set_column(&name, made);
            }
        }
    }
}

impl Scalars {
    /// The same column by its scalars; `None` if its objects have no common shape.
    fn of(&mut self, column: &Column) -> Option<Column> {
        if self.is_of_no_use || !matches!(column.data(), ColumnData::Bson(_)) {
            return None;
        }
        if let Some(made) = self.made.as_ref().filter(|made| made.len() == column.len()) {
            return Some(made.clone());
        }
        let Some(objects) = self.objects.extend(column) else {
            *self = Scalars { is_of_no_use: true, ..Scalars::default() };
            return None;
        };
        if self.numbers.len() != objects.scalars().len() {
            // A field that is new moves others to other places.
            self.numbers.clear();
            self.numbers.resize_with(objects.scalars().len(), TextNumbers::default);
        }
        let mut numbers = self.numbers.iter_mut();
        let numbered = |scalar: &Column| {
            let numbers = numbers.next().filter(|_| TextNumbers::are_for(scalar));
            numbers.and_then(|numbers| numbers.numbered(scalar)).unwrap_or_else(|| scalar.clone())
        };
        self.made = Some(Column::of_objects(objects.map(numbered)));
        self.made.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{ColumnBuilder, pivot_docs};
    use crate::value::{Doc, OwnedValue, Value};
    use bson::rawdoc;

    /// A block of one column of texts; an empty one is a missing one.
    fn block(texts: &[String]) -> Block {
        let mut builder = ColumnBuilder::new();
        for text in texts {
            match text.as_str() {
                "" => builder.push_absent(1),
                text => builder.push(OwnedValue::string(text).view()),
            }
        }
        let mut block = Block::new(texts.len());
        block.set_column("s", builder.finish());
        block
    }

    fn values(block: &Block) -> Vec<Option<String>> {
        let column = block.column("s").unwrap();
        let text = |row: usize| column.value(row, &mut Vec::new()).and_then(Value::as_str).map(str::to_owned);
        (0..block.rows()).map(text).collect()
    }

    #[test]
    fn numbered_texts_are_the_same_texts_while_a_column_grows() {
        let all: Vec<String> = (0..900).map(|row| ["", "on", "off", "none"][row * row % 7 % 4].to_owned()).collect();
        let texts = TailTexts::default();
        for rows in [10, 64, 65, 300, 300, 900] {
            let expected = block(&all[..rows]);
            let mut found = expected.clone();
            texts.number_if_loaded(&mut found, true);
            let is_numbered = matches!(found.column("s").unwrap().data(), ColumnData::Dictionary(..));
            assert_eq!((values(&found), is_numbered), (values(&expected), rows >= TextNumbers::ROWS_MIN));
        }
    }

    #[test]
    fn texts_that_mostly_differ_are_left_as_they_are() {
        let all: Vec<String> = (0..500).map(|row| format!("text {row}")).collect();
        let texts = TailTexts::default();
        for rows in [64, 300, 500] {
            let mut found = block(&all[..rows]);
            texts.number_if_loaded(&mut found, true);
            let is_numbered = matches!(found.column("s").unwrap().data(), ColumnData::Dictionary(..));
            assert_eq!((values(&found), is_numbered), (values(&block(&all[..rows])), rows == 64));
        }
        assert!(texts.columns.borrow().iter().all(|(_, known)| known.numbers.is_empty()));
    }

    #[test]
    fn numbered_arrays_are_the_same_arrays_while_a_column_grows() {
        let docs: Vec<_> =
            (0..300).map(|n| rawdoc! { "n": if n % 7 < 3 { "a" } else { "b" }, "l": [n % 3, "x"] }).collect();
        let texts = TailTexts::default();
        for rows in [64, 200, 200, 300] {
            let docs = docs[..rows].iter().map(|doc| Doc::parse(doc.as_bytes()).unwrap());
            let expected = pivot_docs(docs).unwrap();
            let mut found = expected.clone();
            texts.number_if_loaded(&mut found, true);
            let (found, expected) = (found.column("l").unwrap(), expected.column("l").unwrap());
            let ColumnData::Dictionary(_, values) = found.data() else { panic!("{found:?}") };
            assert_eq!((values.len(), &found.clone().into_plain()), (3, expected));
        }
    }

    #[test]
    fn objects_that_differ_are_the_same_objects_as_columns_while_fields_come() {
        let doc = |n: i32| match n {
            ..150 => rawdoc! { "o": { "n": n, "s": if n % 2 == 0 { "even" } else { "odd" } } },
            _ => rawdoc! { "o": { "n": n, "new": if n % 3 == 0 { "x" } else { "y" }, "s": "odd" } },
        };
        let docs: Vec<_> = (0..300).map(doc).collect();
        let texts = TailTexts::default();
        for (rows, is_numbered) in [(64, false), (90, true), (90, true), (200, true), (201, true), (300, true)] {
            let docs = docs[..rows].iter().map(|doc| Doc::parse(doc.as_bytes()).unwrap());
            let expected = pivot_docs(docs).unwrap();
            let mut found = expected.clone();
            texts.number_if_loaded(&mut found, true);
            let found = found.column("o").unwrap();
            if let ColumnData::Objects(objects) = found.data() {
                let is_text = |scalar: &&Column| matches!(scalar.data(), ColumnData::Dictionary(..));
                assert_eq!(objects.scalars().iter().filter(is_text).count(), 1 + usize::from(rows > 150));
            }
            assert_eq!(matches!(found.data(), ColumnData::Objects(_)), is_numbered, "{rows} rows");
            assert_eq!(&found.clone().into_plain(), expected.column("o").unwrap());
        }
    }

    #[test]
    fn other_columns_and_absent_texts_stay() {
        let docs: Vec<_> = (0..100).map(|n| rawdoc! { "n": n }).collect();
        let mut rows = pivot_docs(docs.iter().map(|doc| Doc::parse(doc.as_bytes()).unwrap())).unwrap();
        let nothing = block(&vec![String::new(); 100]);
        rows.set_column("s", nothing.column("s").unwrap().clone());
        let before = rows.clone();
        TailTexts::default().number_if_loaded(&mut rows, true);
        assert_eq!(rows, before);
    }
}
