//! How large a bucket may be.

use super::options::CatalogOptions;
use super::rollover::RolloverReason;
use crate::limits::LARGE_BUCKET_SIZE_BYTES_MAX;

const INT32_MAX: usize = 0x7FFF_FFFF;

/// The size limits for a run of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizeLimit {
    /// The limit that applies to most buckets.
    pub effective_bytes: usize,
    /// One bucket's share of the cache.
    pub derived_bytes: usize,
}

impl SizeLimit {
    /// The limits with `active` buckets in all collections.
    pub fn new(options: &CatalogOptions, active: usize) -> SizeLimit {
        let share = (options.cache_bytes / 2).checked_div(active);
        let share = share.map_or(INT32_MAX, |share| share.min(INT32_MAX).max(options.bucket_size_bytes_min));
        SizeLimit { effective_bytes: share.min(options.bucket_size_bytes_max), derived_bytes: share }
    }

    /// Why a bucket of `count` measurements must not grow to `total_bytes`. `Ok(true)` if it may as an exception,
    /// because it holds few measurements.
    pub fn check(&self, options: &CatalogOptions, count: usize, total_bytes: usize) -> Result<bool, RolloverReason> {
        if total_bytes <= self.effective_bytes {
            return Ok(false);
        }
        if count >= options.bucket_count_min {
            let is_option = self.effective_bytes == options.bucket_size_bytes_max;
            return Err(if is_option { RolloverReason::Size } else { RolloverReason::CachePressure });
        }
        match self.derived_bytes.min(LARGE_BUCKET_SIZE_BYTES_MAX) {
            cap if total_bytes <= cap => Ok(true),
            LARGE_BUCKET_SIZE_BYTES_MAX => Err(RolloverReason::Size),
            _ => Err(RolloverReason::CachePressure),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn active_buckets_share_the_cache_between_a_floor_and_the_size_of_a_bucket() {
        for (cache_bytes, active, effective_bytes, derived_bytes) in [
            (128_000_000, 1000, 64_000, 64_000),
            (0, 1000, 5120, 5120),
            (128_000_000, 0, 128_000, INT32_MAX),
            (1_280_000, 1, 128_000, 640_000),
            (1, 1, 5120, 5120),
        ] {
            let options = CatalogOptions { cache_bytes, ..CatalogOptions::default() };
            assert_eq!(SizeLimit::new(&options, active), SizeLimit { effective_bytes, derived_bytes });
        }
    }

    #[test]
    fn the_share_of_the_cache_is_rounded_once() {
        let limit = |cache_bytes, active| {
            SizeLimit::new(&CatalogOptions { cache_bytes, ..CatalogOptions::default() }, active).derived_bytes
        };
        for cache_bytes in [99_999, 100_000, 100_001, 123_457] {
            for active in 1..9 {
                assert_eq!(limit(cache_bytes, active), (cache_bytes / (2 * active)).max(5120));
            }
        }
    }

    #[test]
    fn a_bucket_of_few_measurements_may_pass_its_size_up_to_a_cap() {
        use RolloverReason::{CachePressure, Size};
        let options = CatalogOptions::default();
        let roomy = SizeLimit::new(&options, 0);
        for (count, total, expected) in [
            (10, 128_000, Ok(false)),
            (10, 128_001, Err(Size)),
            (9, 128_001, Ok(true)),
            (9, LARGE_BUCKET_SIZE_BYTES_MAX, Ok(true)),
            (9, LARGE_BUCKET_SIZE_BYTES_MAX + 1, Err(Size)),
        ] {
            assert_eq!(roomy.check(&options, count, total), expected, "{count} {total}");
        }
        let tight = SizeLimit { effective_bytes: 60_000, derived_bytes: 60_000 };
        assert_eq!(tight.check(&options, 10, 60_001), Err(CachePressure));
        assert_eq!(tight.check(&options, 9, 60_001), Err(CachePressure));
        let between = SizeLimit { effective_bytes: 128_000, derived_bytes: 200_000 };
        assert_eq!(between.check(&options, 9, 200_000), Ok(true));
        assert_eq!(between.check(&options, 9, 200_001), Err(CachePressure));
        assert_eq!(between.check(&options, 10, 128_001), Err(Size));
    }
}
