//! The executor: decoded buckets in, batches out. Pure; it says when it has enough and never fetches anything itself.

mod assemble;
mod count;
mod executor;
mod measurements;
#[cfg(test)]
mod model;
mod queue;
mod sorter;

pub use count::Count;
pub use executor::{Counters, Exec, Flow};
