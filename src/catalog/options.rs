//! What the catalogs of one context have in common: their settings, and what they use together.

use std::cell::Cell;

use crate::limits;

/// Settings, by the server's names of its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogOptions {
    /// `timeseriesBucketMaxCount`: most measurements of a bucket; at least 1.
    pub bucket_count_max: usize,
    /// `timeseriesBucketMinCount`: below it a bucket may pass its size for the sake of large measurements.
    pub bucket_count_min: usize,
    /// `timeseriesBucketMaxSize`, in bytes.
    pub bucket_size_bytes_max: usize,
    /// `timeseriesBucketMinSize`: the least limit that comes out of `cache_bytes`.
    pub bucket_size_bytes_min: usize,
    /// `timeseriesLargeMeasurementThreshold`: a larger cell counts as it is until it is committed, in bytes.
    pub large_measurement_bytes: usize,
    /// `timeseriesIdleBucketExpiryMemoryUsageThreshold`, in bytes, of all catalogs together.
    pub memory_bytes_max: usize,
    /// `timeseriesIdleBucketExpiryMaxCountPerAttempt`: one more than this many buckets are put aside at a time.
    pub expiry_count_max: usize,
    /// `timeseriesMaxRetriesForWriteConflictsOnReopening`: attempts to find a stored bucket for a measurement.
    pub reopening_retries_max: usize,
    /// `timeseriesInsertMaxRetriesOnDuplicates`: ids drawn for a new bucket.
    pub duplicate_retries_max: usize,
    /// `cacheBytes`: what the active buckets of all collections share.
    pub cache_bytes: usize,
    /// Whether stored buckets are reopened at all.
    pub reopening: bool,
}

impl Default for CatalogOptions {
    fn default() -> Self {
        CatalogOptions {
            bucket_count_max: limits::BUCKET_COUNT_MAX,
            bucket_count_min: limits::BUCKET_COUNT_MIN,
            bucket_size_bytes_max: limits::BUCKET_SIZE_BYTES_MAX,
            bucket_size_bytes_min: limits::BUCKET_SIZE_BYTES_MIN,
            large_measurement_bytes: limits::LARGE_MEASUREMENT_BYTES,
            memory_bytes_max: limits::CATALOG_MEMORY_BYTES_MAX,
            expiry_count_max: limits::IDLE_EXPIRY_COUNT_MAX,
            reopening_retries_max: limits::WRITE_CONFLICT_RETRIES_MAX,
            duplicate_retries_max: limits::DUPLICATE_RETRIES_MAX,
            cache_bytes: limits::CACHE_BYTES,
            reopening: true,
        }
    }
}

/// What the catalogs of all collections use together. Each of them holds it and keeps its own share in it.
#[derive(Debug, Default)]
pub struct Totals {
    /// Buckets, open and archived.
    pub active: Cell<usize>,
    /// Estimated memory, in bytes.
    pub memory_bytes: Cell<usize>,
}
