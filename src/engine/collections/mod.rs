//! What this context knows about each collection and its buckets. One storage call brings it up to date.

mod adopted_records;
pub mod bucket_size;
pub mod collection;
pub mod direct_write;
pub mod directory;
pub mod entry_change;
mod index_uses;
pub mod journal_values;
pub mod known;
pub mod namespace;
mod new_records;
pub mod own_changes;
pub mod snapshot;
pub mod work;
