//! Collections as this context knows them: by name, brought up to date by one reading of storage, with what is known of
//! their buckets.

mod adopted_records;
pub mod bucket_size;
pub mod collection;
pub mod direct_write;
pub mod directory;
pub mod entry_change;
pub mod journal_values;
pub mod namespace;
mod new_records;
pub mod own_changes;
pub mod snapshot;
