//! BSON columns (binary subtype 7): one column of a bucket to bytes and back.
//!
//! A column is a sequence of literals (BSON values) and of *controls*: a byte and up to sixteen 64-bit words that hold the
//! differences of the values that follow, packed by Simple-8b. Objects become *sections*, one stream of differences for every
//! scalar in them. `docs/internals/columns.md` has the format in short.

mod error;
mod integer;
mod read;
mod scale;
mod selector;
#[cfg(test)]
mod vectors;
mod write;

pub use error::ColumnError;
pub use read::{count, decode, decode_from};
pub use write::{ColumnWriter, encode};
