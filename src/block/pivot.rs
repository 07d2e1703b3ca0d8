//! Turns documents into a block.

use super::builder::ColumnBuilder;
use super::table::Block;
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Doc, Interner};

/// Collects documents row by row.
#[derive(Default)]
pub struct DocPivot {
    rows: usize,
    names: Interner,
    columns: Vec<(Box<str>, ColumnBuilder)>,
}

impl DocPivot {
    /// A pivot without rows.
    pub fn new() -> DocPivot {
        DocPivot::default()
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Appends a document as a row.
    ///
    /// Errors: 12602102 if the document names a top-level field twice. The row then holds the first of the two, and the
    /// caller must drop the row or give up.
    pub fn push(&mut self, doc: Doc<'_>) -> Result<()> {
        let row = self.rows;
        self.rows += 1;
        let mut twice = None;
        for (position, (name, value)) in doc.iter().enumerate() {
            // Documents of one shape have their fields in the same order: look there before asking the map.
            let at = match self.columns.get(position) {
                Some((n, _)) if &**n == name => position,
                _ => {
                    let (at, new) = self.names.add(name.as_bytes());
                    if new {
                        self.columns.push((name.into(), ColumnBuilder::new()));
                    }
                    at
                }
            };
            if let Some((_, builder)) = self.columns.get_mut(at) {
                if builder.len() > row {
                    twice.get_or_insert(name);
                    continue;
                }
                builder.push_absent(row - builder.len());
                builder.push(value);
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

    /// The block; columns in first-seen order.
    pub fn finish(self) -> Block {
        let mut block = Block::new(self.rows);
        for (name, mut builder) in self.columns {
            builder.push_absent(self.rows - builder.len());
            block.push_new_column(&name, builder.finish());
        }
        block
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
