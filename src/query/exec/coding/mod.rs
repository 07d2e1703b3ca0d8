//! Numbers the values of whole columns, so that groups and sets compare small integers instead of values.

mod coder;
mod numbers;
mod objects;
mod pairs;
#[cfg(test)]
pub mod samples;
#[cfg(test)]
mod tests;
mod tuples;
mod words;

pub use coder::{Coder, MissingAs, NOTHING};
pub use numbers::Numbers;
pub use pairs::Pairs;
pub use tuples::Tuples;
