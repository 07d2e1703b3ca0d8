//! Deletes and updates, and removals of whole buckets and records, which write nothing.

// Loaded later.

pub mod dropping;
pub mod one_bucket;
pub mod removal;
pub mod statements;
pub mod windows;
