//! Filters of `find` and `$match`: parsed into a tree, evaluated on documents and on blocks.

mod arrays;
mod bits;
mod bounds;
mod compare;
mod equalities;
mod exists;
mod expression;
mod geo;
mod kinds;
mod lists;
mod matches;
mod membership;
mod mixed;
mod modulo;
mod parse;
mod position;
mod regex;
#[cfg(test)]
pub mod samples;
mod schema;
mod select;
mod tree;
mod unparse;

pub use compare::Compare;
pub use geo::{Geo, may_lie};
pub use kinds::Kinds;
pub use membership::In;
pub use tree::{Filter, Test};
