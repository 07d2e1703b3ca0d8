//! Deletes and updates, and what goes without having been rewritten.

pub mod dropping;
pub mod removal;
pub mod statements;
