//! What is asked of storage for a series, and what comes of it.

use crate::bucket::{BucketId, Schema};
use crate::value::OwnedValue;

/// A bucket that measurements of a series could go to, if there is one.
#[derive(Clone, Debug, PartialEq)]
pub struct ReopenRequest {
    /// The series: normalised metadata, `None` without any.
    pub meta: Option<OwnedValue>,
    /// Time of the measurement: the bucket begins at it or before, by less than a span.
    pub time_ms: i64,
    /// Exactly this bucket; `None` for any of the series that begins in time.
    pub archived: Option<BucketId>,
    /// The state of the catalog for which the answer is right.
    pub(super) era: u64,
    /// The number of the series in its batch.
    pub(super) series: usize,
}

/// A stored bucket that was found and may take measurements as far as its document tells.
#[derive(Clone, Debug)]
pub struct Reopened {
    /// Its id.
    pub id: BucketId,
    /// Where it begins.
    pub min_time_ms: i64,
    /// How many measurements it holds.
    pub count: usize,
    /// Length of its document.
    pub size_bytes: usize,
    /// The types of its fields.
    pub schema: Schema,
    /// The names of its columns.
    pub field_names: Vec<Box<str>>,
}

/// What came of a request.
#[derive(Clone, Debug)]
pub enum Offer {
    /// There is such a bucket, and it is healthy.
    Found(Reopened),
    /// There is none.
    NotFound,
    /// There is one that cannot be used.
    Failed(ReopenFailure),
}

/// Why a stored bucket cannot be used, in the order of the server's statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReopenFailure {
    /// Buckets were changed while it was fetched. It is asked for again.
    EraMismatch,
    /// Its `_id` is no ObjectId.
    MalformedIdField,
    /// It is of another series.
    HashCollision,
    /// It was frozen.
    MarkedFrozen,
    /// Its document is not built as one of a bucket.
    Validator,
    /// It is closed.
    MarkedClosed,
    /// Its summaries cannot be read.
    MinMaxCalculation,
    /// Its summaries tell of several types in one field.
    SchemaGeneration,
    /// Its time column is not compressed.
    UncompressedTimeColumn,
    /// Its columns cannot be read.
    CompressionFailure,
    /// Somebody else was writing it. It is asked for again.
    WriteConflict,
}

impl ReopenFailure {
    /// True if the stored form of the bucket is damaged, or says that it is closed: it is never looked at again.
    pub fn freezes(self) -> bool {
        use ReopenFailure::*;
        matches!(
            self,
            Validator
                | MarkedClosed
                | MinMaxCalculation
                | SchemaGeneration
                | UncompressedTimeColumn
                | CompressionFailure
        )
    }

    /// True if the same request may meet with a better answer.
    pub(super) fn is_conflict(self) -> bool {
        matches!(self, ReopenFailure::EraMismatch | ReopenFailure::WriteConflict)
    }
}

/// What a batch learns from an offer.
#[derive(Debug)]
pub(super) struct Answer {
    /// The bucket, if it is open now.
    pub installed: Option<BucketId>,
    /// True if a stored bucket was seen, good or bad.
    pub fetched: bool,
}
