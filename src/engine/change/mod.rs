//! Deletes and updates, and removals that rewrite nothing.

pub mod dropping;
pub mod removal;
pub mod statements;
