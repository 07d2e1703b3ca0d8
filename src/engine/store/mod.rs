//! What lies in storage: keys, entries, buckets; and what waits, counts and sorts for those above.

pub mod bucket_cache;
pub mod entry;
pub mod keyspace;
pub mod pages;
pub mod queue;
pub mod signal;
pub mod sorted_map;
pub mod stored_bucket;
