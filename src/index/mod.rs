//! Order-preserving index entries of bucket documents: for the default index over metadata and time, and for users'
//! indexes.

mod entries;
mod meta_time;
mod multikey;
mod part;
mod places;
mod ranges;
mod raw_spec;
mod spec;

pub use entries::{ANY, BucketSummary, keys, wildcard_key};
pub use meta_time::{META_TIME_INDEX, entries, range, texts};
pub use multikey::note_arrays;
pub use part::{KeyPart, PartKind, Source};
pub use places::check_points;
pub use ranges::apart;
pub use spec::IndexSpec;
