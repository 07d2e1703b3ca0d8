//! The bucket document: options, id, rounding, schema, summaries, building, unpacking, merging.

mod collection;
mod id;
mod options;
mod time;

pub use collection::{BUCKETS_PREFIX, CollectionOptions, validate_collection_name};
pub use id::{BucketId, IdGenerator};
pub use options::{Granularity, TimeseriesOptions};
pub use time::{bucket_start_ms, is_extended_range};
