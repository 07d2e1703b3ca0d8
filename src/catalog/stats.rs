//! What the catalog counts. Names are those of `collStats.timeseries`.

use super::reopening::ReopenFailure;

/// Counters since the collection was first used in this process, and gauges of what its catalog holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Buckets in memory, open and archived. A gauge.
    pub active: usize,
    /// Series with an open bucket. A gauge.
    pub open_series: usize,
    /// Open buckets that wait for measurements. A gauge.
    pub idle: usize,
    /// Estimated memory of the catalog. A gauge.
    pub memory_bytes: usize,
    /// Commits that began a bucket.
    pub bucket_inserts: u64,
    /// Commits that went on with one.
    pub bucket_updates: u64,
    /// Buckets opened because their series had none, neither open nor stored.
    pub opened_due_to_metadata: u64,
    /// Buckets closed because they held as many measurements as they may.
    pub closed_due_to_count: u64,
    /// Buckets closed because a field changed its type.
    pub closed_due_to_schema_change: u64,
    /// Buckets closed because they reached their size.
    pub closed_due_to_size: u64,
    /// Buckets closed because a measurement lay beyond their span.
    pub closed_due_to_time_forward: u64,
    /// Buckets given up, or archived ones forgotten, for lack of memory.
    pub closed_due_to_memory_threshold: u64,
    /// Commits finished, a bucket each.
    pub commits: u64,
    /// Inserts that waited for the commit of another.
    pub waits: u64,
    /// Measurements in finished commits.
    pub measurements_committed: u64,
    /// Buckets closed because a stored one of their series was reopened.
    pub closed_due_to_reopening: u64,
    /// Idle buckets archived for lack of memory.
    pub archived_due_to_memory_threshold: u64,
    /// Buckets archived because a measurement lay before their start.
    pub archived_due_to_time_backward: u64,
    /// Stored buckets opened again.
    pub reopened: u64,
    /// Buckets that passed their size for the sake of large measurements.
    pub kept_open_due_to_large_measurements: u64,
    /// Buckets closed because they reached what the number of active buckets leaves to each.
    pub closed_due_to_cache_pressure: u64,
    /// Buckets that are never written again.
    pub frozen: u64,
    /// Archived buckets that were found in storage.
    pub fetched: u64,
    /// Buckets of no particular id that were found in storage.
    pub queried: u64,
    /// Archived buckets that were not found.
    pub fetches_failed: u64,
    /// Searches without a result.
    pub queries_failed: u64,
    /// Stored buckets that could not be used, by `ReopenFailure`.
    pub reopenings_failed: [u64; ReopenFailure::NAMES.len()],
    /// Stored buckets that were found to be open already.
    pub duplicate_reopened: u64,
}

impl Stats {
    /// Archived buckets, as the server reckons them: those that are active beyond one a series. A gauge.
    pub fn archived(&self) -> usize {
        self.active.saturating_sub(self.open_series)
    }

    /// What `collStats` shows, under the server's names and in its order.
    #[inline(never)]
    pub fn counters(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let average = self.measurements_committed.checked_div(self.commits);
        let values = [
            self.active as u64,
            self.bucket_inserts,
            self.bucket_updates,
            self.opened_due_to_metadata,
            self.closed_due_to_count,
            self.closed_due_to_schema_change,
            self.closed_due_to_size,
            self.closed_due_to_time_forward,
            self.closed_due_to_memory_threshold,
            self.commits,
            self.waits,
            self.measurements_committed,
            average.unwrap_or_default(),
            self.closed_due_to_reopening,
            self.archived_due_to_memory_threshold,
            self.archived_due_to_time_backward,
            self.reopened,
            self.kept_open_due_to_large_measurements,
            self.closed_due_to_cache_pressure,
            self.frozen,
            self.fetched,
            self.queried,
            self.fetches_failed,
            self.queries_failed,
        ];
        let last = [self.duplicate_reopened];
        let names = NAMES.iter().chain(&ReopenFailure::NAMES).chain(&["numDuplicateBucketsReopened"]);
        let mut counters = Vec::with_capacity(40);
        counters.extend(names.copied().zip([&values[..], &self.reopenings_failed, &last].concat()));
        if average.is_none() {
            counters.retain(|(name, _)| *name != AVERAGE);
        }
        counters.into_iter()
    }
}

/// Shown only where anything was committed.
const AVERAGE: &str = "avgNumMeasurementsPerCommit";

/// Up to the failures to reopen.
static NAMES: [&str; 24] = [
    "numActiveBuckets",
    "numBucketInserts",
    "numBucketUpdates",
    "numBucketsOpenedDueToMetadata",
    "numBucketsClosedDueToCount",
    "numBucketsClosedDueToSchemaChange",
    "numBucketsClosedDueToSize",
    "numBucketsClosedDueToTimeForward",
    "numBucketsClosedDueToMemoryThreshold",
    "numCommits",
    "numWaits",
    "numMeasurementsCommitted",
    AVERAGE,
    "numBucketsClosedDueToReopening",
    "numBucketsArchivedDueToMemoryThreshold",
    "numBucketsArchivedDueToTimeBackward",
    "numBucketsReopened",
    "numBucketsKeptOpenDueToLargeMeasurements",
    "numBucketsClosedDueToCachePressure",
    "numBucketsFrozen",
    "numBucketsFetched",
    "numBucketsQueried",
    "numBucketFetchesFailed",
    "numBucketQueriesFailed",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_the_names_and_the_order_of_the_server() {
        let names = |stats: Stats| stats.counters().map(|(name, _)| name).collect::<Vec<_>>();
        let none = names(Stats::default());
        assert_eq!((none.len(), none[0], none[34]), (35, "numActiveBuckets", "numDuplicateBucketsReopened"));
        assert!(none.iter().all(|name| name.starts_with("num")));
        assert_eq!(none[23], "numBucketReopeningsFailedDueToEraMismatch");
        let some = names(Stats { commits: 2, measurements_committed: 7, ..Stats::default() });
        assert_eq!(some[12], "avgNumMeasurementsPerCommit");
    }

    #[test]
    fn the_average_is_an_integer_and_shown_only_after_a_commit() {
        let average = |commits, measurements_committed| {
            let stats = Stats { commits, measurements_committed, ..Stats::default() };
            stats.counters().find(|(name, _)| *name == "avgNumMeasurementsPerCommit").map(|(_, n)| n)
        };
        assert_eq!((average(0, 0), average(2, 7)), (None, Some(3)));
    }
}
