//! The bucket document: options, id, rounding, schema, summaries, building, unpacking, merging.

mod collection;
mod extremes;
mod fields;
mod id;
mod min_max;
mod options;
mod rows;
#[cfg(test)]
mod samples;
mod schema;
mod time;

pub use collection::{BUCKETS_PREFIX, CollectionOptions, validate_collection_name};
pub use id::{BucketId, IdGenerator};
pub use min_max::MinMax;
pub use options::{Granularity, TimeseriesOptions};
pub use rows::Rows;
pub use schema::Schema;
pub use time::{bucket_start_ms, is_extended_range};
