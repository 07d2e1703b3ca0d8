//! What of a filter can be decided on a bucket, before any of its measurements is unpacked.

mod control;
mod predicate;
mod reach;
#[cfg(test)]
mod soundness;
mod split;
mod time;
#[cfg(test)]
mod traps;
mod unparse;

pub use predicate::{LooseBucketPredicate, TightBucketPredicate};
pub use reach::IdRange;
pub use split::{Layout, Split, split};
