//! BSON columns (binary subtype 7): one column of a bucket to bytes and back.
//!
//! A column is a sequence of literals (BSON values) and of *controls*: a byte and up to sixteen 64-bit words that hold the
//! differences of the values that follow, packed by Simple-8b. Objects become *sections*, one stream of differences for every
//! scalar in them. `ARCHITECTURE.md`, "Compressed columns", has the format in short.

mod entries;
mod error;
mod integer;
mod items;
mod presence;
mod reader;
mod scale;
mod section;
mod selector;
mod shape;
mod stream;
mod typed;
#[cfg(test)]
mod vectors_read;
mod words;

pub use error::ColumnError;
pub use reader::{count, decode};
