//! Updates of metadata: parsed into a tree of paths, applied to one value.

// Loaded later.

mod apply;
mod array;
mod operators;
mod parse;
mod query;
#[cfg(test)]
mod tests;
mod tree;

pub use query::{check_query, not_allowed};
pub use tree::Update;
