//! The sizes of stored buckets.

use crate::bucket::{BucketDoc, BucketId, TimeseriesOptions};
use crate::engine::store::stored_bucket::StoredBucket;

/// A stored bucket and its size.
#[derive(Clone, Copy)]
pub(in crate::engine) struct BucketSize {
    pub(in crate::engine) id: BucketId,
    pub(in crate::engine) bytes: u64,
    pub(in crate::engine) min_time_ms: i64,
}

impl BucketSize {
    /// The size of a stored bucket; `None` if the bucket cannot be read.
    pub(in crate::engine) fn of(
        id: &BucketId,
        stored: &StoredBucket,
        options: &TimeseriesOptions,
    ) -> Option<BucketSize> {
        let document = stored.document.view();
        let view = BucketDoc::parse(document, options).ok()?;
        Some(BucketSize { id: *id, bytes: document.as_bytes().len() as u64, min_time_ms: view.min_time_ms() })
    }
}
