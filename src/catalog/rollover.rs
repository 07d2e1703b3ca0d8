//! Why a bucket rolls over.

/// Why an open bucket did not take a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolloverReason {
    /// The measurement lies beyond the bucket's span.
    TimeForward,
    /// The measurement lies before the bucket's start.
    TimeBackward,
    /// The bucket holds the maximum number of measurements.
    Count,
    /// The bucket has reached its maximum size.
    Size,
    /// The bucket has reached the size that cache pressure leaves to each active bucket.
    CachePressure,
    /// A field has another type than in the bucket.
    SchemaChange,
}

impl RolloverReason {
    /// True if the bucket may still take measurements of its own time, in memory or once reopened. A full bucket, or
    /// one with other types, never takes rows again from memory.
    pub fn is_soft(self) -> bool {
        matches!(self, RolloverReason::TimeForward | RolloverReason::TimeBackward)
    }
}
