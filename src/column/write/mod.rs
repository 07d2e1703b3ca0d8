//! Columns to bytes, byte for byte as the server's encoder writes them.

mod control;
mod double;
mod reference;
#[cfg(test)]
mod samples;
mod section;
mod stream;
#[cfg(test)]
mod vectors;
mod word;
mod writer;

pub use writer::{ColumnWriter, encode};
