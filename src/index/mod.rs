//! Order-preserving index entries over bucket documents.
//!
//! So far one index: the default one over metadata and time, which every collection with a metaField has.

mod meta_time;

pub use meta_time::{META_TIME_INDEX, entries, range};
