//! The executor: decoded buckets in, batches out. Pure; it says when it has enough and never fetches anything itself.

mod assemble;
mod count;
mod distinct;
mod ends;
mod executor;
mod known;
mod measurements;
#[cfg(test)]
mod model;
mod queue;
mod sink;
mod sorter;
mod threshold;

pub use count::Count;
pub use distinct::Distinct;
pub use ends::Ends;
pub use executor::{Exec, Flow};
pub use known::KnownValues;
pub use queue::Queue;
pub use sink::{Counters, Sink};
pub use sorter::TimeBound;
