//! Columns for tests, and what blocks show.

use super::builder::ColumnBuilder;
use super::column::Column;
use super::table::Block;
use crate::value::{DocWriter, OwnedValue};
use bson::{RawDocumentBuf, cstr, rawdoc};

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

/// A row with an object `o` of a few fields that the bits choose, up to 511; with few bits it has none.
pub fn row_with_object(bits: u16) -> RawDocumentBuf {
    let has = |bit: u16| bits >> bit & 1 == 1;
    let (mut object, mut inner) = (RawDocumentBuf::new(), RawDocumentBuf::new());
    has(0).then(|| inner.append(cstr!("x"), i32::from(bits)));
    has(1).then(|| inner.append(cstr!("y"), "text"));
    has(2).then(|| object.append(cstr!("a"), f64::from(bits)));
    (has(0) || has(1) || bits > 500).then(|| object.append(cstr!("in"), inner));
    has(3).then(|| object.append(cstr!("b"), has(4)));
    if bits > 25 {
        rawdoc! { "o": object }
    } else {
        rawdoc! { "n": 1 }
    }
}
