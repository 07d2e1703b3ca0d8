//! Windows: aligned spans of time, each with an id per series that every context computes alike.
//!
//! In a collection with `dedupe`, an insert looks nothing up: it addresses its rows to the window of their series. A
//! fold puts the rows of a window into buckets whose ids say which window they belong to.

use super::id::BucketId;
use super::options::TimeseriesOptions;
use super::time::{bucket_start_ms, is_extended_range};
use crate::value::{OwnedValue, hash};

/// How many bits of an id tell apart the buckets of one series that begin in the same second.
const COPY_BITS: u32 = 24;
/// The lowest copy of a bucket whose rows lie between those of another one of its series, which is full.
pub const FIRST_BETWEEN: u64 = 1 << (COPY_BITS - 1);

/// The start of the window of a time.
pub fn window_start_ms(time_ms: i64, options: &TimeseriesOptions) -> i64 {
    bucket_start_ms(time_ms, options.span_seconds)
}

/// The id of a window of a series. The first bucket of the window nearly always has the same id.
pub fn window_id(start_ms: i64, series: SeriesBits) -> BucketId {
    BucketId::new(start_ms, series.0 << COPY_BITS)
}

/// The id of a bucket that starts at `start_ms`, in whole seconds: the one after `copy` others that start there as
/// well. `None` if there are too many.
pub fn bucket_in_window(start_ms: i64, series: SeriesBits, copy: u64) -> Option<BucketId> {
    (copy >> COPY_BITS == 0).then(|| BucketId::new(start_ms, series.0 << COPY_BITS | copy))
}

/// The id of the window to which a bucket belongs, given the bucket's own id and start. Buckets of different series may
/// share a window id; their metadata distinguishes them. Windows that begin 2^32 seconds apart may share one as well.
pub fn window_of(id: &BucketId, start_ms: i64, options: &TimeseriesOptions) -> BucketId {
    window_id(window_start_ms(start_ms, options), SeriesBits::of_bucket(id))
}

/// The start of a bucket according to its id; `None` outside the standard range, where ids do not contain times.
pub fn start_of(id: &BucketId) -> Option<i64> {
    (!id.is_extended()).then(|| i64::from(id.time_seconds()) * 1000)
}

/// True if the rows of the bucket may lie between those of others of its series.
pub fn is_between(id: &BucketId) -> bool {
    id.counter() & FIRST_BETWEEN != 0
}

/// True if the id can be that of a bucket of the series of `window`, which has that start. Outside the standard range
/// it may also be another window's.
pub fn may_be_in_window(id: &BucketId, window: &BucketId, start_ms: i64, options: &TimeseriesOptions) -> bool {
    if SeriesBits::of_bucket(id) != SeriesBits::of_bucket(window) {
        return false;
    }
    match start_of(id) {
        Some(ms) => (start_ms..start_ms.saturating_add(options.span_ms())).contains(&ms),
        None => {
            id.is_extended() == window.is_extended() || is_extended_range(start_ms.saturating_add(options.span_ms()))
        }
    }
}

/// The ids between which all buckets of a window lie, both included.
pub fn ids_of_window(start_ms: i64, options: &TimeseriesOptions) -> (BucketId, BucketId) {
    let end_ms = start_ms.saturating_add(options.span_ms());
    if is_extended_range(start_ms) || is_extended_range(end_ms) {
        return (BucketId::MIN, BucketId::MAX);
    }
    (BucketId::lowest_at(start_ms), BucketId::highest_at(end_ms))
}

/// Forty bits that are the same for equal metadata, in every version of this package.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesBits(u64);

impl SeriesBits {
    /// Those of a series.
    pub fn of(meta: Option<&OwnedValue>) -> SeriesBits {
        SeriesBits(hash(0, meta.map_or(&[], OwnedValue::tagged)) >> COPY_BITS)
    }

    /// Those in the id of a bucket or window.
    pub fn of_bucket(id: &BucketId) -> SeriesBits {
        SeriesBits(id.counter() >> COPY_BITS)
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::options;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_window_of_a_bucket_is_the_window_of_its_rows(
            time_ms in prop_oneof![-5_000_000_i64..5_000_000, 0_i64..4_000_000_000_000], later_s in 0_i64..3_600, meta in 0_i32..9, copy in 0_u64..9,
        ) {
            let (options, series) = (options(Some("m")), SeriesBits::of(Some(&OwnedValue::int32(meta))));
            let start_ms = window_start_ms(time_ms, &options);
            let window = window_id(start_ms, series);
            // Any bucket that starts in the window.
            let bucket_ms = start_ms + 1000 * later_s;
            let bucket = bucket_in_window(bucket_ms, series, copy).unwrap();
            prop_assert_eq!(window_of(&bucket, bucket_ms, &options), window);
            prop_assert!(may_be_in_window(&bucket, &window, start_ms, &options));
            let (low, high) = ids_of_window(start_ms, &options);
            prop_assert!(low <= bucket && bucket <= high);
            if !is_extended_range(start_ms) && !bucket.is_extended() {
                prop_assert_eq!(start_of(&bucket), Some(bucket_ms));
                for other_ms in [start_ms - options.span_ms(), start_ms + options.span_ms()] {
                    let other = window_id(other_ms, series);
                    prop_assert!(other != window && !may_be_in_window(&bucket, &other, other_ms, &options) || other_ms < 0);
                }
            }
            let stranger = window_id(start_ms, SeriesBits::of(Some(&OwnedValue::int32(meta + 1))));
            prop_assert!(!may_be_in_window(&bucket, &stranger, start_ms, &options));
        }
    }

    #[test]
    fn buckets_that_start_at_the_same_time_have_different_ids() {
        let series = SeriesBits::of(None);
        let ids: Vec<_> =
            (7..9).flat_map(|s| (0..3).map(move |copy| bucket_in_window(1000 * s, series, copy))).collect();
        assert!(ids.iter().all(Option::is_some) && ids.is_sorted_by(|a, b| a < b));
        assert_eq!((bucket_in_window(0, series, 1 << COPY_BITS), ids[0]), (None, Some(window_id(7000, series))));
    }

    #[test]
    fn the_bits_of_a_series_never_change_between_versions() {
        let bits = |meta: &OwnedValue| SeriesBits::of(Some(meta)).0;
        assert_eq!([bits(&OwnedValue::string("a")), SeriesBits::of(None).0], [0xbb_c633_8f36, 0xcb_f29c_e484]);
    }
}
