//! The layout of keys, catalog entries and stored buckets; and signals, turns, queues and maps for the rooms above.

pub mod bucket_cache;
pub mod bucket_runs;
pub mod entry;
pub mod keyspace;
pub mod pages;
pub mod queue;
pub mod signal;
pub mod sorted_map;
pub mod stored_bucket;
pub mod turns;
