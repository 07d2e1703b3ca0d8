//! The command documents of `find` and `count`, parsed and checked.

mod arguments;
mod count;
mod find;

pub use arguments::Hint;
pub use count::CountOptions;
pub use find::FindOptions;
