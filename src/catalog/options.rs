//! What the catalogs of one context share: settings, and memory in use.

use std::cell::Cell;

use super::stats::Stats;
use crate::bucket::safe_integer;
use crate::error::{Error, Result};
use crate::limits;
use crate::value::{Doc, Value};

/// Settings, named by the server's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CatalogOptions {
    /// `timeseriesBucketMaxCount`: maximum measurements of a bucket; at least 1.
    pub bucket_count_max: usize,
    /// `timeseriesBucketMinCount`: below it a bucket may exceed its size for large measurements.
    pub bucket_count_min: usize,
    /// `timeseriesBucketMaxSize`, in bytes.
    pub bucket_size_bytes_max: usize,
    /// `timeseriesBucketMinSize`: lower limit of the size that `cache_bytes` leaves to each bucket.
    pub bucket_size_bytes_min: usize,
    /// `timeseriesLargeMeasurementThreshold`, in bytes: a larger cell counts uncompressed until it is committed.
    pub large_measurement_bytes: usize,
    /// `timeseriesIdleBucketExpiryMemoryUsageThreshold`, in bytes, for all catalogs together.
    pub memory_bytes_max: usize,
    /// `timeseriesIdleBucketExpiryMaxCountPerAttempt`: one more than this many buckets are archived at a time.
    pub expiry_count_max: usize,
    /// `timeseriesMaxRetriesForWriteConflictsOnReopening`: attempts to find a stored bucket for a measurement.
    pub reopening_retries_max: usize,
    /// `timeseriesInsertMaxRetriesOnDuplicates`: ids drawn for a new bucket before giving up.
    pub duplicate_retries_max: usize,
    /// `cacheBytes`: shared by the active buckets of all collections.
    pub cache_bytes: usize,
    /// `readCacheBytes`: stored buckets and their decoded columns that stay in memory.
    pub read_cache_bytes: usize,
    /// True if stored buckets are reopened at all.
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
            read_cache_bytes: limits::READ_CACHE_BYTES,
            reopening: true,
        }
    }
}

/// A parameter of the server, or one of timepail, as an integer.
struct Parameter {
    name: &'static str,
    min: i64,
    max: i64,
    place: fn(&mut CatalogOptions) -> &mut usize,
}

const INT32_MAX: i64 = 0x7FFF_FFFF;

static PARAMETERS: [Parameter; 11] = [
    // No more than a bucket document can count.
    Parameter {
        name: "timeseriesBucketMaxCount",
        min: 1,
        max: limits::BUCKET_ROWS_MAX as i64,
        place: |o| &mut o.bucket_count_max,
    },
    // A bucket must fit into a document, because rows are acknowledged before it is written.
    Parameter {
        name: "timeseriesBucketMaxSize",
        min: 1,
        max: limits::LARGE_BUCKET_SIZE_BYTES_MAX as i64,
        place: |o| &mut o.bucket_size_bytes_max,
    },
    Parameter { name: "timeseriesBucketMinCount", min: 1, max: INT32_MAX, place: |o| &mut o.bucket_count_min },
    Parameter { name: "timeseriesBucketMinSize", min: 1, max: INT32_MAX, place: |o| &mut o.bucket_size_bytes_min },
    Parameter {
        name: "timeseriesLargeMeasurementThreshold",
        min: 0,
        max: INT32_MAX,
        place: |o| &mut o.large_measurement_bytes,
    },
    Parameter {
        name: "timeseriesIdleBucketExpiryMemoryUsageThreshold",
        min: i64::MIN,
        max: i64::MAX,
        place: |o| &mut o.memory_bytes_max,
    },
    Parameter {
        name: "timeseriesIdleBucketExpiryMaxCountPerAttempt",
        min: 2,
        max: INT32_MAX,
        place: |o| &mut o.expiry_count_max,
    },
    Parameter {
        name: "timeseriesMaxRetriesForWriteConflictsOnReopening",
        min: 0,
        max: INT32_MAX,
        place: |o| &mut o.reopening_retries_max,
    },
    Parameter {
        name: "timeseriesInsertMaxRetriesOnDuplicates",
        min: 0,
        max: INT32_MAX,
        place: |o| &mut o.duplicate_retries_max,
    },
    Parameter { name: "cacheBytes", min: 0, max: i64::MAX, place: |o| &mut o.cache_bytes },
    Parameter { name: "readCacheBytes", min: 0, max: i64::MAX, place: |o| &mut o.read_cache_bytes },
];

impl CatalogOptions {
    /// These settings, changed by `parameters`, which have the server's names.
    ///
    /// Errors: `InvalidOptions` for an unknown name, `TypeMismatch` if a value is not a number, `BadValue` if it is out
    /// of range.
    pub fn with_parameters(mut self, parameters: Doc<'_>) -> Result<CatalogOptions> {
        for (name, value) in parameters {
            let parameter = PARAMETERS.iter().find(|parameter| parameter.name == name);
            let parameter = parameter.ok_or_else(|| Error::invalid_options(format!("Unknown parameter '{name}'")))?;
            parameter.set(&mut self, value)?;
        }
        Ok(self)
    }

    /// Every parameter and its value.
    pub fn parameters(mut self) -> impl Iterator<Item = (&'static str, usize)> {
        PARAMETERS.iter().map(move |parameter| (parameter.name, *(parameter.place)(&mut self)))
    }
}

impl Parameter {
    fn set(&self, options: &mut CatalogOptions, value: Value<'_>) -> Result<()> {
        let Parameter { name, min, max, place } = self;
        let wrong =
            || Error::type_mismatch(format!("Parameter '{name}' must be a number, not {}", value.kind().alias()));
        let n = safe_integer(value).ok_or_else(wrong)?;
        if !(*min..=*max).contains(&n) {
            return Err(Error::bad_value(format!("Parameter '{name}' must be from {min} to {max}, not {n}")));
        }
        let place = place(options);
        // Only the memory threshold accepts values of zero and below, which select the default.
        *place = if *min < 0 && n <= 0 {
            limits::CATALOG_MEMORY_BYTES_MAX
        } else {
            usize::try_from(n).unwrap_or(usize::MAX)
        };
        Ok(())
    }
}

/// What the catalogs of all collections use together. Each catalog holds a reference and keeps its own share up to
/// date.
#[derive(Debug, Default)]
pub struct Totals {
    /// Buckets, open and archived.
    pub active: Cell<usize>,
    /// Estimated memory, in bytes.
    pub memory_bytes: Cell<usize>,
    /// The latest era of any catalog.
    pub era: Cell<u64>,
    /// The counters of catalogs whose collections are gone.
    pub gone: Cell<Stats>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use bson::{RawBson, RawDocumentBuf, rawdoc};

    fn with(parameters: &RawDocumentBuf) -> Result<CatalogOptions, ErrorCode> {
        let parameters = Doc::parse(parameters.as_bytes()).unwrap();
        CatalogOptions::default().with_parameters(parameters).map_err(|error| error.code)
    }

    fn one(name: &str, value: impl Into<RawBson>) -> RawDocumentBuf {
        let mut doc = RawDocumentBuf::new();
        doc.append(bson::raw::CString::try_from(name).unwrap(), value.into());
        doc
    }

    #[test]
    fn parameters_have_the_names_and_defaults_of_the_server() {
        let expected = [
            ("timeseriesBucketMaxCount", 1000),
            ("timeseriesBucketMaxSize", 128_000),
            ("timeseriesBucketMinCount", 10),
            ("timeseriesBucketMinSize", 5120),
            ("timeseriesLargeMeasurementThreshold", 32),
            ("timeseriesIdleBucketExpiryMemoryUsageThreshold", 16 << 20),
            ("timeseriesIdleBucketExpiryMaxCountPerAttempt", 3),
            ("timeseriesMaxRetriesForWriteConflictsOnReopening", 16),
            ("timeseriesInsertMaxRetriesOnDuplicates", 10),
            ("cacheBytes", 256 << 20),
            ("readCacheBytes", 96 << 20),
        ];
        assert_eq!(CatalogOptions::default().parameters().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn each_parameter_sets_its_own_value_and_no_other() {
        for (at, (name, default)) in CatalogOptions::default().parameters().enumerate() {
            let changed = with(&one(name, 77)).unwrap();
            let values: Vec<_> = changed.parameters().map(|(_, value)| value).collect();
            let mut expected: Vec<_> = CatalogOptions::default().parameters().map(|(_, value)| value).collect();
            expected[at] = 77;
            assert!(values == expected && default != 77, "{name}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_bad_values_and_other_types_are_type_mismatches() {
        for (name, least) in [
            ("timeseriesBucketMaxCount", 1),
            ("timeseriesBucketMaxSize", 1),
            ("timeseriesBucketMinCount", 1),
            ("timeseriesBucketMinSize", 1),
            ("timeseriesLargeMeasurementThreshold", 0),
            ("timeseriesIdleBucketExpiryMaxCountPerAttempt", 2),
            ("timeseriesMaxRetriesForWriteConflictsOnReopening", 0),
            ("timeseriesInsertMaxRetriesOnDuplicates", 0),
            ("cacheBytes", 0),
        ] {
            assert!(with(&one(name, least)).is_ok(), "{name}");
            assert_eq!(with(&one(name, least - 1)), Err(ErrorCode::BadValue), "{name}");
            assert_eq!(with(&one(name, "5")), Err(ErrorCode::TypeMismatch), "{name}");
            assert_eq!(with(&one(name, true)), Err(ErrorCode::TypeMismatch), "{name}");
        }
        for (name, most) in [
            ("timeseriesBucketMaxCount", 1_000_000_i64),
            ("timeseriesBucketMaxSize", 12_582_912),
            ("timeseriesBucketMinCount", 0x7FFF_FFFF),
        ] {
            assert!(with(&one(name, most)).is_ok(), "{name}");
            assert_eq!(with(&one(name, most + 1)), Err(ErrorCode::BadValue), "{name}");
        }
        assert_eq!(with(&one("timeseriesBucketMaxcount", 5)), Err(ErrorCode::InvalidOptions));
    }

    #[test]
    fn doubles_are_numbers_too_as_javascript_sends_them() {
        assert_eq!(with(&one("timeseriesBucketMaxCount", 5.0)).unwrap().bucket_count_max, 5);
        assert_eq!(with(&one("timeseriesBucketMaxCount", f64::NAN)), Err(ErrorCode::BadValue));
        assert_eq!(with(&one("cacheBytes", 1e300)).unwrap().cache_bytes, i64::MAX as usize);
    }

    #[test]
    fn a_memory_threshold_that_is_not_positive_means_the_default() {
        for n in [0, -1, i64::MIN] {
            let name = "timeseriesIdleBucketExpiryMemoryUsageThreshold";
            assert_eq!(with(&one(name, n)).unwrap().memory_bytes_max, 16 << 20);
            assert_eq!(with(&one(name, 1)).unwrap().memory_bytes_max, 1);
        }
        assert_eq!(with(&rawdoc! {}), Ok(CatalogOptions::default()));
    }
}
