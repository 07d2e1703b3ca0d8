//! Why a bucket makes room for another, and what becomes of it.

/// Why an open bucket did not take a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolloverReason {
    /// The measurement lies beyond the bucket's span.
    TimeForward,
    /// The measurement lies before the bucket's start.
    TimeBackward,
    /// The bucket holds as many measurements as it may.
    Count,
    /// The bucket reached its size.
    Size,
    /// The bucket reached what the number of active buckets leaves to each.
    CachePressure,
    /// A field has another type than in the bucket.
    SchemaChange,
}

impl RolloverReason {
    /// True if measurements of the bucket's own time may still come to it: as long as it is in memory, or once it is
    /// reopened. A bucket that is full or of other types never serves again from memory.
    pub fn is_soft(self) -> bool {
        matches!(self, RolloverReason::TimeForward | RolloverReason::TimeBackward)
    }
}
