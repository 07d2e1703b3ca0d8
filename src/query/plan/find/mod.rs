//! The command documents of `find`, `count` and `distinct`, parsed and checked.

pub mod arguments;
mod command;
mod count;
mod distinct;

pub use arguments::Hint;
pub use command::FindCommand;
