//! Where the span of a bucket begins, and which dates are outside the standard range.

use crate::limits::STANDARD_DATE_MS_MAX;

/// Start of the bucket that a measurement at `time_ms` opens.
///
/// Milliseconds since the epoch. `rounding_seconds` is above zero. The result is its greatest multiple not above
/// `time_ms`, or the smallest date if that multiple is not a valid date.
///
/// Source: mongodb/mongo src/mongo/db/timeseries/README.md, "Bucketing Parameters".
pub fn bucket_start_ms(time_ms: i64, rounding_seconds: i64) -> i64 {
    let rounding_ms = rounding_seconds.max(1).saturating_mul(1000);
    time_ms.saturating_sub(time_ms.rem_euclid(rounding_ms))
}

/// True for dates before 1970 or after the seconds that fit 31 bits. Buckets with such dates do not sort by id.
pub fn is_extended_range(time_ms: i64) -> bool {
    !(0..=STANDARD_DATE_MS_MAX).contains(&time_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_starts_at_the_multiple_at_or_below_its_first_measurement() {
        for (time, by_minute, by_hour, by_day) in [
            (1_619_122_214_134, 1_619_122_200_000, 1_619_121_600_000, 1_619_049_600_000),
            (-1, -60_000, -3_600_000, -86_400_000),
            (-60_000, -60_000, -3_600_000, -86_400_000),
            (59_999, 0, 0, 0),
            (2_147_483_647_999, 2_147_483_640_000, 2_147_482_800_000, 2_147_472_000_000),
        ] {
            assert_eq!(bucket_start_ms(time, 60), by_minute);
            assert_eq!(bucket_start_ms(time, 3_600), by_hour);
            assert_eq!(bucket_start_ms(time, 86_400), by_day);
        }
    }

    #[test]
    fn a_start_before_the_smallest_date_becomes_the_smallest_date() {
        assert_eq!(bucket_start_ms(i64::MIN, 60), i64::MIN);
        assert_eq!(bucket_start_ms(i64::MIN + 1, 86_400), i64::MIN);
        assert_eq!(bucket_start_ms(i64::MAX, 1), i64::MAX - i64::MAX % 1000);
    }

    #[test]
    fn the_standard_range_runs_from_1970_to_the_last_second_of_31_bits() {
        assert!(!is_extended_range(0));
        assert!(!is_extended_range(2_147_483_647_000));
        assert!(is_extended_range(-1));
        assert!(is_extended_range(2_147_483_647_001));
    }

    /// A time in UTC, given by days since the epoch.
    fn at(days: i64, hour: i64, minute: i64, second: i64, ms: i64) -> i64 {
        (((days * 24 + hour) * 60 + minute) * 60 + second) * 1000 + ms
    }

    /// 2021-04-22.
    const DAY: i64 = 18_739;

    #[test]
    fn granularity_seconds_rounds_to_the_minute_and_spans_an_hour() {
        let start = bucket_start_ms(at(DAY, 20, 10, 14, 134), 60);
        assert_eq!(start, at(DAY, 20, 10, 0, 0));
        assert!(at(DAY, 20, 10, 5, 0) >= start && at(DAY, 21, 9, 59, 999) - start < 3_600_000);
        assert!(at(DAY, 21, 10, 0, 0) - start >= 3_600_000);
    }

    #[test]
    fn granularity_minutes_rounds_to_the_hour_and_spans_a_day() {
        let start = bucket_start_ms(at(DAY, 20, 10, 14, 0), 3_600);
        assert_eq!(start, at(DAY, 20, 0, 0, 0));
        assert!(at(DAY, 20, 5, 0, 0) >= start && at(DAY + 1, 19, 59, 59, 999) - start < 86_400_000);
        assert!(at(DAY + 1, 20, 0, 0, 0) - start >= 86_400_000);
    }

    #[test]
    fn granularity_hours_rounds_to_the_day_and_spans_thirty_days() {
        let start = bucket_start_ms(at(DAY, 20, 10, 0, 0), 86_400);
        assert_eq!(start, at(DAY, 0, 0, 0, 0));
        assert!(at(DAY, 10, 10, 0, 0) >= start && at(DAY + 29, 23, 59, 59, 999) - start < 2_592_000_000);
        assert!(at(DAY + 31, 0, 0, 0, 0) - start >= 2_592_000_000);
    }
}
