//! Turns documents into a block.

use super::builder::ColumnBuilder;
use super::column::Column;
use super::table::Block;
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;
use crate::value::{Doc, Interner, Value};

/// Of more columns, new ones come last, because to find their places would take long.
const ORDERED_MAX: usize = 1024;

/// Collects documents row by row.
#[derive(Default)]
pub struct DocPivot {
    rows: usize,
    names: Interner,
    /// In the order in which they came.
    columns: Vec<(Box<str>, ColumnBuilder)>,
    /// Their numbers, in the order in which documents have them.
    order: Vec<usize>,
    /// True if some document has its fields in another order.
    disagrees: bool,
}

/// Where the next field of a row probably is among the columns.
pub struct FieldPlace(usize);

impl DocPivot {
    /// A pivot without rows.
    pub fn new() -> DocPivot {
        DocPivot::default()
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// How many fields the rows have together.
    pub fn fields(&self) -> usize {
        self.columns.len()
    }

    /// Appends a document as a row.
    ///
    /// Errors: 12602102 if the document names a top-level field twice. The row then holds the first of the two, and the
    /// caller must drop the row or give up.
    pub fn push(&mut self, doc: Doc<'_>) -> Result<()> {
        let (mut place, mut twice) = (self.begin_row(), None);
        for (name, value) in doc {
            if !self.push_field(&mut place, name, value) {
                twice.get_or_insert(name);
            }
        }
        match twice {
            None => Ok(()),
            Some(name) => Err(Error::new(
                ErrorCode::Location12602102,
                format!("Field '{name}' appears more than once at the top level of a measurement"),
            )),
        }
    }

    /// Appends a row without fields.
    pub fn begin_row(&mut self) -> FieldPlace {
        self.rows += 1;
        FieldPlace(0)
    }

    /// Appends a field to the last row, behind those that it has. False if it has one of that name.
    pub fn push_field(&mut self, FieldPlace(next): &mut FieldPlace, name: &str, value: Value<'_>) -> bool {
        // Most documents have their fields in the same order: look there before asking the map.
        let expected = self.order.get(*next).copied();
        let at = match expected.and_then(|at| Some((at, self.columns.get(at)?))) {
            Some((at, (known, _))) if **known == *name => at,
            _ => {
                let (at, is_new) = self.names.add(name.as_bytes());
                if is_new {
                    self.columns.push((name.into(), ColumnBuilder::new()));
                    *next = if at < ORDERED_MAX { *next } else { self.order.len() };
                    self.order.insert(*next, at);
                } else if self.order.len() <= ORDERED_MAX {
                    let found = self.order.iter().position(|known| *known == at).unwrap_or(*next);
                    self.disagrees |= found < *next;
                    *next = found;
                } else {
                    self.disagrees = true;
                }
                at
            }
        };
        *next += 1;
        let Some((_, builder)) = self.columns.get_mut(at) else { return true };
        if builder.len() == self.rows {
            return false;
        }
        builder.push_absent(self.rows - 1 - builder.len());
        builder.push(value);
        true
    }

    /// True if the columns stand in the order in which each row has its fields.
    pub fn agrees(&self) -> bool {
        !self.disagrees
    }

    /// The block. Each column stands behind that of the field in front of it, in the first document that has both.
    pub fn finish(self) -> Block {
        let DocPivot { rows, columns, order, .. } = self;
        let finish = |(name, mut builder): (Box<str>, ColumnBuilder)| {
            builder.push_absent(rows - builder.len());
            Some((name, builder.finish()))
        };
        let mut columns: Vec<Option<(Box<str>, Column)>> = columns.into_iter().map(finish).listed();
        let next = |at: &usize| columns.get_mut(*at)?.take();
        Block::of(rows, order.iter().filter_map(next).collect())
    }
}

/// A block of all `docs`.
///
/// Errors: 12602102 as `DocPivot::push`.
pub fn pivot_docs<'a>(docs: impl IntoIterator<Item = Doc<'a>>) -> Result<Block> {
    let mut pivot = DocPivot::new();
    docs.into_iter().try_for_each(|doc| pivot.push(doc))?;
    Ok(pivot.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{DocWriter, Kind};
    use bson::rawdoc;

    #[test]
    fn documents_of_different_shapes_survive_the_round_trip() {
        let docs =
            [rawdoc! { "a": 1.0, "b": "x" }, rawdoc! { "b": "y", "c": [1, 2] }, rawdoc! {}, rawdoc! { "a": 2.0 }];
        let block = pivot_docs(docs.iter().map(|d| Doc::parse(d.as_bytes()).unwrap())).unwrap();
        assert_eq!(block.rows(), 4);
        assert_eq!(block.column("a").unwrap().kind(), Some(Kind::Double));
        for (row, doc) in docs.iter().enumerate() {
            let mut writer = DocWriter::new();
            block.write_row(row, &mut writer);
            assert_eq!(writer.finish().view().as_bytes(), doc.as_bytes());
        }
    }

    #[test]
    fn columns_stand_in_the_order_of_documents_also_if_the_first_of_these_lack_some_fields() {
        let names = |docs: &[bson::RawDocumentBuf]| {
            let block = pivot_docs(docs.iter().map(|doc| Doc::parse(doc.as_bytes()).unwrap())).unwrap();
            block.columns().iter().map(|(name, _)| name.to_string()).collect::<String>()
        };
        let (few, all) = (rawdoc! { "a": 1, "e": 1 }, rawdoc! { "a": 1, "b": 1, "c": 1, "e": 1, "f": 1 });
        assert_eq!(names(&[few.clone(), all.clone()]), "abcef");
        assert_eq!(names(&[rawdoc! { "c": 1 }, all.clone(), few.clone(), all]), "abcef");
        let agree = |docs: &[bson::RawDocumentBuf]| {
            let mut pivot = DocPivot::new();
            docs.iter().for_each(|doc| pivot.push(Doc::parse(doc.as_bytes()).unwrap()).unwrap());
            pivot.agrees()
        };
        assert!(
            agree(&[few.clone(), rawdoc! { "b": 1, "e": 1 }]) && !agree(&[few.clone(), rawdoc! { "e": 1, "a": 1 }])
        );
        // Where they disagree, the first one decides.
        assert_eq!(names(&[few, rawdoc! { "e": 1, "b": 1, "a": 1 }]), "aeb");
        let wide = |from: usize| {
            let fields: bson::Document = (from..from + 2000).map(|n| (format!("{n:04}"), 1.into())).collect();
            bson::RawDocumentBuf::try_from(&fields).unwrap()
        };
        assert_eq!(names(&[wide(0), rawdoc! { "new": 1, "0007": 2 }]).len(), 8003);
    }

    #[test]
    fn a_duplicate_field_name_is_refused_with_the_servers_code() {
        let mut writer = DocWriter::new();
        writer.int32("a", 1).int32("a", 2);
        let doc = writer.finish();
        assert_eq!(pivot_docs([doc.view()]).unwrap_err().code, ErrorCode::Location12602102);
    }

    #[test]
    fn blocks_with_different_columns_are_joined() {
        let one = rawdoc! { "a": 1.0 };
        let two = rawdoc! { "b": 2, "a": 3 };
        let make = |d: &bson::RawDocumentBuf| pivot_docs([Doc::parse(d.as_bytes()).unwrap()]).unwrap();
        let joined = Block::concat(vec![make(&one), make(&two)]);
        let mut scratch = Vec::new();
        assert_eq!(joined.rows(), 2);
        assert!(joined.column("b").unwrap().value(0, &mut scratch).is_none());
        assert_eq!(joined.column("a").unwrap().value(1, &mut scratch).unwrap().as_i32(), Some(3));
    }
}
