//! Encodes columns to the bytes that the server's encoder writes.

mod control;
mod double;
pub(super) mod reference;
#[cfg(test)]
mod samples;
mod section;
mod stream;
#[cfg(test)]
mod vectors;
mod word;
mod writer;

pub use writer::{ColumnWriter, encode};
