//! Requests for stored buckets, and their answers.

use crate::bucket::{BucketId, Schema};
use crate::value::OwnedValue;

/// A request for a stored bucket that measurements of a series could go to.
#[derive(Clone, Debug, PartialEq)]
pub struct ReopenRequest {
    /// The series: normalised metadata; `None` if it has none.
    pub meta: Option<OwnedValue>,
    /// Time of the measurement. The bucket must begin at or before it, by less than a span.
    pub time_ms: i64,
    /// Exactly this bucket; `None` for any bucket of the series with a suitable start.
    pub archived: Option<BucketId>,
    /// The catalog era in which the answer is valid.
    pub(super) era: u64,
    /// The number of the series in its batch.
    pub(super) series: usize,
}

/// A stored bucket that was found and that may take measurements according to its document.
#[derive(Clone, Debug)]
pub struct Reopened {
    /// The id of the bucket.
    pub id: BucketId,
    /// Start of the bucket.
    pub min_time_ms: i64,
    /// Number of measurements.
    pub count: usize,
    /// Length of the document in bytes.
    pub size_bytes: usize,
    /// The types of its fields.
    pub schema: Schema,
    /// The names of its columns.
    pub field_names: Vec<Box<str>>,
}

/// The answer to a request.
#[derive(Clone, Debug)]
pub enum Offer {
    /// A healthy bucket was found.
    Found(Reopened),
    /// There is no such bucket.
    NotFound,
    /// A bucket was found that cannot be used.
    Failed(ReopenFailure),
}

/// Why a stored bucket cannot be used, in the order of the server's statistics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReopenFailure {
    /// Buckets were changed while it was fetched. The request is repeated.
    EraMismatch,
    /// Its `_id` is not an ObjectId.
    MalformedIdField,
    /// It belongs to another series.
    HashCollision,
    /// It was frozen.
    MarkedFrozen,
    /// Its document does not have the shape of a bucket.
    Validator,
    /// It is closed.
    MarkedClosed,
    /// Its summaries cannot be read.
    MinMaxCalculation,
    /// Its summaries show several types in one field.
    SchemaGeneration,
    /// Its time column is not compressed.
    UncompressedTimeColumn,
    /// Its columns cannot be read.
    CompressionFailure,
    /// Somebody else was writing it. The request is repeated.
    WriteConflict,
}

impl ReopenFailure {
    /// True if the stored bucket is damaged or closed; it is then never examined again.
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

    /// True if repeating the request may give a better answer.
    pub(super) fn is_conflict(self) -> bool {
        matches!(self, ReopenFailure::EraMismatch | ReopenFailure::WriteConflict)
    }
}

/// What a batch keeps of an offer.
#[derive(Debug)]
pub(super) struct OfferAnswer {
    /// Start and id of the bucket, if it is now open.
    pub installed: Option<(i64, BucketId)>,
    /// True if a stored bucket was found, usable or not.
    pub fetched: bool,
}
