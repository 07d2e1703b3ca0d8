//! BSON columns (binary subtype 7): converts one column of a bucket to bytes and back.
//!
//! A column is a sequence of literals (BSON values) and *controls*. A control is a byte and up to sixteen 64-bit words
//! that hold the differences between the following values, packed with Simple-8b. Objects become *sections*, with one
//! stream of differences for each scalar in them. `docs/internals/columns.md` describes the format.

mod error;
mod growing;
mod integer;
mod read;
mod scale;
mod selector;
#[cfg(test)]
mod vectors;
mod write;

pub use error::ColumnError;
pub use growing::{GrowingObjects, aligned};
pub use read::{count, decode, decode_from, decode_scalars, single};
pub use write::{ColumnWriter, encode};

/// The same cells as a bucket's column gives them that is read scalar by scalar.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub fn read_again(column: &crate::block::Column) -> crate::block::Column {
    decode_scalars(&encode(column), column.len(), 0).unwrap()
}
