//! What the catalog counts. Names are those of `collStats.timeseries`.

/// Counters since the collection was first used in this process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Buckets opened.
    pub buckets_opened: u64,
    /// Buckets closed because they held `BUCKET_COUNT_MAX` measurements.
    pub closed_due_to_count: u64,
    /// Buckets closed because they reached their size.
    pub closed_due_to_size: u64,
    /// Buckets closed because a field changed its type.
    pub closed_due_to_schema_change: u64,
    /// Buckets closed because a measurement lay beyond their span.
    pub closed_due_to_time_forward: u64,
    /// Buckets put aside because a measurement lay before their start.
    pub archived_due_to_time_backward: u64,
    /// Commits finished.
    pub commits: u64,
    /// Measurements in finished commits.
    pub measurements_committed: u64,
}
