//! Columns for tests, and what blocks show.

use super::builder::ColumnBuilder;
use super::column::Column;
use super::table::Block;
use crate::value::{DocWriter, OwnedValue};
use bson::RawDocumentBuf;

/// The documents that the rows of a block are.
pub fn shown(block: &Block) -> Vec<RawDocumentBuf> {
    let row = |row| {
        let mut writer = DocWriter::new();
        block.write_row(row, &mut writer);
        RawDocumentBuf::from_bytes(writer.finish().into_bytes()).unwrap()
    };
    (0..block.rows()).map(row).collect()
}

/// The column of these cells, typed if they have one type.
pub fn column_of(cells: &[Option<OwnedValue>]) -> Column {
    let mut builder = ColumnBuilder::new();
    for cell in cells {
        match cell {
            Some(value) => builder.push(value.view()),
            None => builder.push_absent(1),
        }
    }
    builder.finish()
}
