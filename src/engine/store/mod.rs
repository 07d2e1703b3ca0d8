//! Keys, entries and buckets in storage; and the signals, turns, queues and maps that the rooms above use.

pub mod bucket_cache;
pub mod entry;
pub mod keyspace;
pub mod pages;
pub mod queue;
pub mod signal;
pub mod sorted_map;
pub mod stored_bucket;
pub mod turns;
