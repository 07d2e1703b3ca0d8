//! Deletes and updates, and removals that rewrite nothing.

pub mod dropping;
pub mod one_bucket;
pub mod removal;
pub mod statements;
pub mod windows;
