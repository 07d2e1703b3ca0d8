//! The counters of the catalog, named as in `collStats.timeseries` and `serverStatus.bucketCatalog`.

use std::ops::{Index, IndexMut};

use super::offer::ReopenFailure;
use crate::value::DocWriter;

macro_rules! counters {
    ($($(#[$doc:meta])* $counter:ident = $name:literal,)*) => {
        /// Counted since the collection was first used in this process, in the server's order.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Counter {
            $($(#[$doc])* $counter,)*
        }

        static NAMES: [&str; [$($name),*].len()] = [$($name),*];
    };
}

counters! {
    /// Commits that inserted a bucket.
    BucketInserts = "numBucketInserts",
    /// Commits that added to an existing bucket.
    BucketUpdates = "numBucketUpdates",
    /// Buckets opened because their series had none, neither open nor stored.
    OpenedDueToMetadata = "numBucketsOpenedDueToMetadata",
    /// Buckets closed because they held the maximum number of measurements.
    ClosedDueToCount = "numBucketsClosedDueToCount",
    /// Buckets closed because a field changed its type.
    ClosedDueToSchemaChange = "numBucketsClosedDueToSchemaChange",
    /// Buckets closed because they reached their maximum size.
    ClosedDueToSize = "numBucketsClosedDueToSize",
    /// Buckets closed because a measurement lay beyond their span.
    ClosedDueToTimeForward = "numBucketsClosedDueToTimeForward",
    /// Buckets closed, or dropped from the archive, to free memory.
    ClosedDueToMemoryThreshold = "numBucketsClosedDueToMemoryThreshold",
    /// Commits finished, counted per bucket.
    Commits = "numCommits",
    /// Inserts that waited for the commit of another.
    Waits = "numWaits",
    /// Measurements in finished commits.
    MeasurementsCommitted = "numMeasurementsCommitted",
    /// Buckets closed because a stored one of their series was reopened.
    ClosedDueToReopening = "numBucketsClosedDueToReopening",
    /// Idle buckets archived to free memory.
    ArchivedDueToMemoryThreshold = "numBucketsArchivedDueToMemoryThreshold",
    /// Buckets archived because a measurement lay before their start.
    ArchivedDueToTimeBackward = "numBucketsArchivedDueToTimeBackward",
    /// Stored buckets opened again.
    Reopened = "numBucketsReopened",
    /// Buckets that exceeded their size for large measurements.
    KeptOpenDueToLargeMeasurements = "numBucketsKeptOpenDueToLargeMeasurements",
    /// Buckets closed because they reached the size that cache pressure leaves to each.
    ClosedDueToCachePressure = "numBucketsClosedDueToCachePressure",
    /// Buckets that are never written again.
    Frozen = "numBucketsFrozen",
    /// Buckets whose rows are no longer stored in time order (version 2 that became 3). Counted by folds.
    ConvertedToUnsorted = "numCompressedBucketsConvertedToUnsorted",
    /// Archived buckets that were found in storage.
    Fetched = "numBucketsFetched",
    /// Stored buckets found by a search without an id.
    Queried = "numBucketsQueried",
    /// Archived buckets that were not found in storage.
    FetchesFailed = "numBucketFetchesFailed",
    /// Searches without a result.
    QueriesFailed = "numBucketQueriesFailed",
    /// The first of the reopening failures, which are in the order of `ReopenFailure`.
    FailedDueToEraMismatch = "numBucketReopeningsFailedDueToEraMismatch",
    /// See `ReopenFailure`.
    FailedDueToMalformedIdField = "numBucketReopeningsFailedDueToMalformedIdField",
    /// See `ReopenFailure`.
    FailedDueToHashCollision = "numBucketReopeningsFailedDueToHashCollision",
    /// See `ReopenFailure`.
    FailedDueToMarkedFrozen = "numBucketReopeningsFailedDueToMarkedFrozen",
    /// See `ReopenFailure`.
    FailedDueToValidator = "numBucketReopeningsFailedDueToValidator",
    /// See `ReopenFailure`.
    FailedDueToMarkedClosed = "numBucketReopeningsFailedDueToMarkedClosed",
    /// See `ReopenFailure`.
    FailedDueToMinMaxCalculation = "numBucketReopeningsFailedDueToMinMaxCalculation",
    /// See `ReopenFailure`.
    FailedDueToSchemaGeneration = "numBucketReopeningsFailedDueToSchemaGeneration",
    /// See `ReopenFailure`.
    FailedDueToUncompressedTimeColumn = "numBucketReopeningsFailedDueToUncompressedTimeColumn",
    /// See `ReopenFailure`.
    FailedDueToCompressionFailure = "numBucketReopeningsFailedDueToCompressionFailure",
    /// See `ReopenFailure`.
    FailedDueToWriteConflict = "numBucketReopeningsFailedDueToWriteConflict",
    /// Stored buckets that turned out to be open already.
    DuplicateReopened = "numDuplicateBucketsReopened",
    /// New buckets that would exceed the maximum document size.
    TooLargeInsert = "numBucketDocumentsTooLargeInsert",
    /// Buckets that an addition would make exceed the maximum document size. Counted by folds.
    TooLargeUpdate = "numBucketDocumentsTooLargeUpdate",
    /// Rows that folds found to be another row's measurement, in a collection with `dedupe`. Specific to timepail.
    DuplicatesRemoved = "numDuplicatesRemoved",
}

/// Counters, and gauges of the catalog's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Buckets in memory, open and archived. A gauge.
    pub active: usize,
    /// Series with an open bucket. A gauge.
    pub open_series: usize,
    /// Open buckets without uncommitted measurements. A gauge.
    pub idle: usize,
    /// Estimated memory of the catalog. A gauge.
    pub memory_bytes: usize,
    pub(super) counts: [u64; NAMES.len()],
}

impl Default for Stats {
    fn default() -> Stats {
        Stats { active: 0, open_series: 0, idle: 0, memory_bytes: 0, counts: [0; NAMES.len()] }
    }
}

// Every counter has its index, and so has each reopening failure after the first.
#[allow(clippy::indexing_slicing)]
impl Index<Counter> for Stats {
    type Output = u64;
    fn index(&self, counter: Counter) -> &u64 {
        &self.counts[counter as usize]
    }
}

#[allow(clippy::indexing_slicing)]
impl IndexMut<Counter> for Stats {
    fn index_mut(&mut self, counter: Counter) -> &mut u64 {
        &mut self.counts[counter as usize]
    }
}

#[allow(clippy::indexing_slicing)]
impl Index<ReopenFailure> for Stats {
    type Output = u64;
    fn index(&self, failure: ReopenFailure) -> &u64 {
        &self.counts[Counter::FailedDueToEraMismatch as usize + failure as usize]
    }
}

#[allow(clippy::indexing_slicing)]
impl IndexMut<ReopenFailure> for Stats {
    fn index_mut(&mut self, failure: ReopenFailure) -> &mut u64 {
        &mut self.counts[Counter::FailedDueToEraMismatch as usize + failure as usize]
    }
}

impl Stats {
    /// Archived buckets as the server computes them: active buckets minus one per open series. A gauge.
    pub fn archived(&self) -> usize {
        self.active.saturating_sub(self.open_series)
    }

    /// Adds the counters and gauges of another catalog.
    pub fn add(&mut self, other: &Stats) {
        self.active += other.active;
        self.open_series += other.open_series;
        self.idle += other.idle;
        self.memory_bytes += other.memory_bytes;
        self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
    }

    /// Writes the counters under the server's names.
    pub fn write(&self, writer: &mut DocWriter) {
        for (name, n) in self.counters() {
            writer.int64(name, i64::try_from(n).unwrap_or(i64::MAX));
        }
    }

    /// The counters to show, under the server's names and in its order.
    #[inline(never)]
    pub fn counters(&self) -> Vec<(&'static str, u64)> {
        let mut shown = Vec::with_capacity(NAMES.len() + 2);
        shown.push(("numActiveBuckets", self.active as u64));
        // The last one is not the server's.
        for (at, (name, count)) in NAMES.iter().zip(&self.counts).enumerate().take(Counter::DuplicatesRemoved as usize)
        {
            shown.push((*name, *count));
            if at == Counter::MeasurementsCommitted as usize
                && let Some(average) = count.checked_div(self[Counter::Commits])
            {
                shown.push(("avgNumMeasurementsPerCommit", average));
            }
        }
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_have_the_names_and_the_order_of_the_server() {
        let names: Vec<_> = Stats::default().counters().into_iter().map(|(name, _)| name).collect();
        let failures = [
            "EraMismatch",
            "MalformedIdField",
            "HashCollision",
            "MarkedFrozen",
            "Validator",
            "MarkedClosed",
            "MinMaxCalculation",
            "SchemaGeneration",
            "UncompressedTimeColumn",
            "CompressionFailure",
            "WriteConflict",
        ];
        let before = [
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
            "numBucketsClosedDueToReopening",
            "numBucketsArchivedDueToMemoryThreshold",
            "numBucketsArchivedDueToTimeBackward",
            "numBucketsReopened",
            "numBucketsKeptOpenDueToLargeMeasurements",
            "numBucketsClosedDueToCachePressure",
            "numBucketsFrozen",
            "numCompressedBucketsConvertedToUnsorted",
            "numBucketsFetched",
            "numBucketsQueried",
            "numBucketFetchesFailed",
            "numBucketQueriesFailed",
        ];
        let after =
            ["numDuplicateBucketsReopened", "numBucketDocumentsTooLargeInsert", "numBucketDocumentsTooLargeUpdate"];
        let failures = failures.map(|failure| format!("numBucketReopeningsFailedDueTo{failure}"));
        let expected = before.into_iter().chain(failures.iter().map(String::as_str)).chain(after);
        assert_eq!(names, expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_failure_to_reopen_is_counted_under_its_name() {
        for (failure, name) in [
            (ReopenFailure::EraMismatch, "numBucketReopeningsFailedDueToEraMismatch"),
            (ReopenFailure::MarkedFrozen, "numBucketReopeningsFailedDueToMarkedFrozen"),
            (ReopenFailure::WriteConflict, "numBucketReopeningsFailedDueToWriteConflict"),
        ] {
            let mut stats = Stats::default();
            stats[failure] += 2;
            let counted: Vec<_> = stats.counters().into_iter().filter(|(_, n)| *n != 0).collect();
            assert_eq!((counted, stats[failure]), (vec![(name, 2)], 2));
        }
    }

    #[test]
    fn the_average_is_an_integer_and_shown_only_after_a_commit() {
        let shown = |commits, measurements| {
            let mut stats = Stats::default();
            stats[Counter::Commits] += commits;
            stats[Counter::MeasurementsCommitted] += measurements;
            stats.counters().get(12).copied()
        };
        assert_eq!(shown(0, 0), Some(("numBucketsClosedDueToReopening", 0)));
        assert_eq!(shown(2, 7), Some(("avgNumMeasurementsPerCommit", 3)));
    }

    #[test]
    fn the_statistics_of_two_catalogs_add_up() {
        let mut one = Stats { active: 1, idle: 2, ..Stats::default() };
        one[Counter::Commits] += 3;
        let mut sum = one;
        sum.add(&one);
        assert_eq!((sum.active, sum.idle, sum[Counter::Commits], sum.open_series), (2, 4, 6, 0));
    }
}
