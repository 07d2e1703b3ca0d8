//! The command documents of `find`, `count` and `distinct`, parsed and checked.

mod aggregate;
mod arguments;
mod count;
mod distinct;
mod find;

pub use arguments::Hint;
pub use find::{Edge, FindOptions, Which};
