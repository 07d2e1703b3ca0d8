//! The calendar: days since the epoch, months, weeks.

use kernels::reading::first_day;

/// Milliseconds per day.
pub(super) const DAY_MS: i64 = 86_400_000;
/// Days from the epoch to the start of 2000, a Saturday.
const DAYS_TO_2000: i64 = 10_957;
/// The start of 2000.
pub(super) const START_OF_2000_MS: i64 = DAYS_TO_2000 * DAY_MS;
/// Days per four hundred years.
const ERA_DAYS: i64 = 146_097;

/// Year, month and day (both from 1) of a day, counted from the epoch.
///
/// Years are counted from March, so that the leap day comes last and months have a regular length: five of them have
/// 153 days.
pub fn civil(days: i64) -> (i64, i64, i64) {
    // Days from 1 March of the year 0.
    let days = days.saturating_add(719_468);
    let (era, day) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, of_month)
}

/// Days from the epoch to a date. The month may be any number: 0 is the December before.
pub(super) fn days_of(year: i64, month: i64, day: i64) -> i64 {
    first_day(year, month).saturating_add(day - 1)
}

/// The weekday, with Sunday as 0.
pub(super) fn weekday(days: i64) -> i64 {
    // The epoch was a Thursday.
    (days.rem_euclid(7) + 4) % 7
}

/// A unit of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TimeUnit {
    /// A multiple of milliseconds.
    Milliseconds(i64),
    /// Seven days, from a weekday that the caller knows.
    Week,
    /// A multiple of months.
    Months(i64),
}

impl TimeUnit {
    /// The unit with this name.
    pub fn named(name: &str) -> Option<TimeUnit> {
        Some(match name {
            "millisecond" => TimeUnit::Milliseconds(1),
            "second" => TimeUnit::Milliseconds(1000),
            "minute" => TimeUnit::Milliseconds(60_000),
            "hour" => TimeUnit::Milliseconds(3_600_000),
            "day" => TimeUnit::Milliseconds(DAY_MS),
            "week" => TimeUnit::Week,
            "month" => TimeUnit::Months(1),
            "quarter" => TimeUnit::Months(3),
            "year" => TimeUnit::Months(12),
            _ => return None,
        })
    }

    /// The length in milliseconds, if it is constant.
    pub fn length_ms(self) -> Option<i64> {
        if let TimeUnit::Months(_) = self { None } else { Some(self.anchor(0).1) }
    }

    /// True for hours and shorter units, which do not depend on clock changes.
    pub(super) fn is_exact(self) -> bool {
        matches!(self, TimeUnit::Milliseconds(len) if len < DAY_MS)
    }

    /// The start, length and number of unit 0, the first one of 2000.
    fn anchor(self, first_day: i64) -> (i64, i64) {
        match self {
            TimeUnit::Milliseconds(len) => (START_OF_2000_MS, len),
            // The first such weekday of 2000, which began with a Saturday.
            _ => ((DAYS_TO_2000 + (first_day + 1) % 7) * DAY_MS, 7 * DAY_MS),
        }
    }

    /// The number of the unit that contains a time, counted from the start of 2000. Weeks begin at `first_day`, with
    /// Sunday as 0.
    pub(super) fn index(self, ms: i64, first_day: i64) -> i64 {
        match self {
            TimeUnit::Months(len) => {
                let (year, month, _) = civil(ms.div_euclid(DAY_MS));
                ((year - 2000) * 12 + month - 1).div_euclid(len)
            }
            _ => {
                let (start, len) = self.anchor(first_day);
                // In two steps, because the difference may exceed 64 bits.
                let (whole, rest) = (ms.div_euclid(len), ms.rem_euclid(len));
                whole.saturating_sub(start.div_euclid(len)).saturating_sub(i64::from(rest < start.rem_euclid(len)))
            }
        }
    }

    /// The start of the unit with this number; `None` beyond all dates.
    pub(super) fn start(self, index: i64, first_day: i64) -> Option<i64> {
        match self {
            TimeUnit::Months(len) => {
                let months = index.checked_mul(len)?;
                days_of(months.div_euclid(12) + 2000, months.rem_euclid(12) + 1, 1).checked_mul(DAY_MS)
            }
            _ => {
                let (start, len) = self.anchor(first_day);
                index.checked_mul(len)?.checked_add(start)
            }
        }
    }

    /// A time moved by a number of units. A day that the month does not have becomes the month's last.
    pub fn shift(self, ms: i64, amount: i64) -> Option<i64> {
        match self {
            TimeUnit::Months(len) => {
                let (year, month, day) = civil(ms.div_euclid(DAY_MS));
                let months = amount.checked_mul(len)?.checked_add(year * 12 + month - 1)?;
                let (year, month) = (months.div_euclid(12), months.rem_euclid(12) + 1);
                let first = days_of(year, month, 1);
                let last = days_of(year, month + 1, 1).saturating_sub(1);
                let days = first.saturating_add(day - 1).min(last);
                days.checked_mul(DAY_MS)?.checked_add(ms.rem_euclid(DAY_MS))
            }
            _ => amount.checked_mul(self.anchor(0).1)?.checked_add(ms),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn days_and_dates_are_those_of_the_calendar() {
        assert_eq!(civil(0), (1970, 1, 1));
        assert_eq!(civil(-1), (1969, 12, 31));
        assert_eq!(civil(11_016), (2000, 2, 29));
        assert_eq!(days_of(2000, 1, 1), DAYS_TO_2000);
        assert_eq!(days_of(1900, 3, 1) - days_of(1900, 2, 28), 1);
        assert_eq!(days_of(1999, 13, 1), DAYS_TO_2000);
        assert_eq!(weekday(0), 4);
        assert_eq!(weekday(-5), 6);
    }

    #[test]
    fn dates_at_the_ends_of_64_bits_do_not_trap() {
        for name in ["millisecond", "second", "day", "week", "month", "quarter", "year"] {
            let unit = TimeUnit::named(name).unwrap();
            for ms in [i64::MIN, i64::MAX, 0] {
                let _ = unit.start(unit.index(ms, 1), 1);
                for amount in [i64::MIN, i64::MAX, 1] {
                    let _ = unit.shift(ms, amount);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn converting_days_to_dates_and_back_is_lossless(days in -10_000_000..10_000_000_i64) {
            let (year, month, day) = civil(days);
            prop_assert_eq!(days_of(year, month, day), days);
            prop_assert!((1..=12).contains(&month) && (1..=31).contains(&day));
        }

        #[test]
        fn a_time_lies_between_the_start_of_its_unit_and_the_next(ms in -1i64<<50..1i64<<50, first_day in 0..7_i64) {
            for name in ["second", "minute", "hour", "day", "week", "month", "quarter", "year"] {
                let unit = TimeUnit::named(name).unwrap();
                let index = unit.index(ms, first_day);
                prop_assert!(unit.start(index, first_day).unwrap() <= ms);
                prop_assert!(ms < unit.start(index + 1, first_day).unwrap());
            }
            let week = TimeUnit::Week.start(TimeUnit::Week.index(ms, first_day), first_day).unwrap();
            prop_assert_eq!(weekday(week / DAY_MS), first_day);
        }
    }
}
