//! The executor: takes decoded buckets and returns batches. It is pure: it says when it has enough and never fetches
//! anything itself.

mod assemble;
mod coding;
mod count;
mod distinct;
mod ends;
mod executor;
mod join_objects;
mod known;
mod late_rows;
mod measurements;
#[cfg(test)]
mod model;
mod newest;
mod queue;
mod sink;
mod sorter;
mod threshold;

pub use assemble::{among, join_blocks};
#[cfg(test)]
pub use coding::samples;
pub use coding::{Coder, MissingAs, NOTHING, Numbers, Pairs, Tuples};
pub use count::Count;
pub use distinct::Distinct;
pub use ends::Ends;
pub use executor::Exec;
pub use queue::Queue;
pub use sink::{Counters, Flow, LateColumns, Sink};
pub use sorter::{Late, TimeBound};
