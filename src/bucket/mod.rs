//! The bucket document: options, id, rounding, schema, summaries, building, unpacking, merging.

mod build;
mod cells;
mod collection;
mod collection_name;
mod convert;
mod dedupe;
mod document;
mod extremes;
mod fields;
mod fit;
mod head;
mod id;
mod joined;
mod kept;
mod merge;
mod min_max;
mod options;
mod placing;
mod room;
mod row_key;
mod rows;
mod run_columns;
mod salvage;
#[cfg(test)]
mod samples;
mod schema;
mod single;
mod summary;
mod time;
mod time_order;
mod unpack;
mod validate;
mod window;

pub use build::{Header, build};
pub use collection::CollectionOptions;
pub use collection_name::{BUCKETS_PREFIX, validate_collection_name};
pub use convert::{compress, decompress};
pub use dedupe::{Dedupe, Keep, Measurement};
pub use document::{BucketDoc, BucketFormat, BucketVersion, with_meta};
pub use fit::{Fit, Misfit, fit};
pub use head::BucketHead;
pub use id::{BucketId, IdGenerator};
pub use joined::{JoinedFields, compact, joined_rows, note_rows};
pub use kept::KeptColumns;
pub use merge::{merge, rebuild, whole};
pub use min_max::MinMax;
pub(crate) use options::safe_integer;
pub use options::{Granularity, TimeseriesOptions};
pub use placing::{PlacedBucket, Placing, Room};
pub use room::ColumnRoom;
pub use rows::Rows;
pub use run_columns::RunColumns;
pub use salvage::{Salvaged, salvage};
pub use schema::Schema;
pub use single::push_single;
pub use summary::extreme_rows;
pub use time::{bucket_start_ms, is_extended_range};
pub use time_order::times_of;
pub use unpack::{unpack, unpack_first_or_last, unpack_rest};
pub use validate::{B19, B22, Finding, Rule, validate};
pub use window::{
    FIRST_BETWEEN, SeriesBits, bucket_in_window, ids_of_window, is_between, may_be_in_window, start_of, window_id,
    window_of, window_start_ms,
};
