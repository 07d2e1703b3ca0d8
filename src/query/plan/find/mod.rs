//! Parses the commands `find`, `count` and `distinct`.

pub mod arguments;
mod command;
mod count;
mod distinct;

pub use arguments::Hint;
pub use command::FindCommand;
