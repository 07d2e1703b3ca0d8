//! What of a filter can be decided on a bucket, before any of its measurements is unpacked.

mod control;
mod points;
mod predicate;
mod reach;
#[cfg(test)]
mod soundness;
mod split;
mod time;
#[cfg(test)]
mod traps;
mod unparse;

pub use points::{Points, points};
pub use predicate::successor;
pub use split::{Layout, Split, split};
