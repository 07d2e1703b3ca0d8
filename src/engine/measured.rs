//! The sizes of stored buckets.

use super::store::stored_bucket::StoredBucket;
use crate::bucket::{BucketDoc, BucketId, TimeseriesOptions};

/// A stored bucket and its size.
#[derive(Clone, Copy)]
pub(super) struct Measured {
    pub(super) id: BucketId,
    pub(super) bytes: u64,
    pub(super) min_time_ms: i64,
}

impl Measured {
    /// What is known of a stored bucket; `None` of one that cannot be read.
    pub(super) fn of(id: &BucketId, stored: &StoredBucket, options: &TimeseriesOptions) -> Option<Measured> {
        let document = stored.document.view();
        let view = BucketDoc::parse(document, options).ok()?;
        Some(Measured { id: *id, bytes: document.as_bytes().len() as u64, min_time_ms: view.min_time_ms() })
    }
}
