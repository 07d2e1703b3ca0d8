//! The filter of `find` and `$match`: parsed into a tree, evaluated on documents and on blocks.

mod bounds;
mod compare;
mod exists;
mod matches;
mod membership;
mod parse;
#[cfg(test)]
pub(super) mod samples;
mod select;
mod tree;

pub use compare::{Compare, CompareOp};
pub use membership::In;
pub use tree::{Filter, Test};
