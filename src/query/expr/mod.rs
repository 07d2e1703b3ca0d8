//! Expressions: parsed into a tree, evaluated on a document.

mod globals;

pub use globals::Globals;
