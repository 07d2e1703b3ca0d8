//! BSON columns (binary subtype 7): one column of a bucket to bytes and back.
//!
//! A column is a sequence of literals (BSON values) and of *controls*: a byte and up to sixteen 64-bit words that hold the
//! differences of the values that follow, packed by Simple-8b. Objects become *sections*, one stream of differences for every
//! scalar in them. `ARCHITECTURE.md`, "Compressed columns", has the format in short.

mod control_writer;
mod double_writer;
mod entries;
mod error;
#[cfg(test)]
mod forge;
mod integer;
mod items;
mod presence;
mod reader;
mod reference;
#[cfg(test)]
mod samples;
mod scale;
mod section;
mod section_writer;
mod selector;
mod shape;
mod stream;
mod stream_writer;
mod typed;
#[cfg(test)]
mod vectors;
#[cfg(test)]
mod vectors_read;
mod word_writer;
mod words;
mod writer;

pub use error::ColumnError;
pub use reader::{count, decode};
pub use writer::{ColumnWriter, encode};
