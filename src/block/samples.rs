//! Columns for tests.

use super::builder::ColumnBuilder;
use super::column::Column;
use crate::value::OwnedValue;

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
