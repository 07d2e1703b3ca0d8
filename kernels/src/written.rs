//! Dates and numbers as texts.

use crate::texts::NewTexts;
use crate::{digits, scale};

/// A part of the text of a date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DatePart {
    /// The same byte in each text.
    Same(u8),
    /// The year, in four digits.
    Year,
    /// The month, in two digits.
    Month,
    /// The day of the month, in two digits.
    Day,
    /// The hour, in two digits.
    Hour,
    /// The minute, in two digits.
    Minute,
    /// The second, in two digits.
    Second,
    /// The millisecond, in three digits.
    Millisecond,
}

const DAY_MS: i64 = 86_400_000;

/// The texts of local times in milliseconds since the epoch. `civil` has the year, the month and the day of the month of a day, counted from
/// the epoch. `None` if a year is before 0 or after 9999.
#[inline(never)]
pub fn dates(times: &[i64], parts: &[DatePart], civil: &dyn Fn(i64) -> (i64, i64, i64)) -> Option<NewTexts> {
    let (mut text, mut fields) = (Vec::new(), Vec::new());
    for part in parts {
        let (width, of_day) = match part {
            DatePart::Same(byte) => {
                text.push(*byte);
                continue;
            }
            DatePart::Year => (4, false),
            DatePart::Month | DatePart::Day => (2, false),
            DatePart::Millisecond => (3, true),
            DatePart::Hour | DatePart::Minute | DatePart::Second => (2, true),
        };
        fields.push((*part, text.len()..text.len() + width, of_day));
        text.resize(text.len() + width, b'0');
    }
    let mut bytes = Vec::with_capacity(times.len() * text.len());
    let mut known = None;
    for ms in times {
        let (day, ms) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS) as u32);
        let (mut date, is_new) = ((0, 0, 0), known != Some(day));
        if is_new {
            date = civil(day);
            if !(0..=9999).contains(&date.0) {
                return None;
            }
            known = Some(day);
        }
        for (part, place, of_day) in &fields {
            let number = match part {
                _ if !of_day && !is_new => continue,
                DatePart::Year => date.0 as u32,
                DatePart::Month => date.1 as u32,
                DatePart::Day => date.2 as u32,
                DatePart::Hour => ms / 3_600_000,
                DatePart::Minute => ms / 60_000 % 60,
                DatePart::Second => ms / 1000 % 60,
                _ => ms % 1000,
            };
            put(text.get_mut(place.clone()).unwrap_or_default(), number);
        }
        bytes.extend_from_slice(&text);
    }
    let offsets = (0..=times.len()).map(|row| (row * text.len()) as u32).collect();
    Some((offsets, bytes))
}

/// Writes the last digits of a number.
#[inline(always)]
fn put(digits: &mut [u8], mut number: u32) {
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
}

/// The most zeros between the point and the first digit.
const ZEROS_MAX: usize = 3;

/// Doubles as texts, without a power of ten, and the rows of those that need one, or are no numbers, and a few others. Their texts are empty.
#[inline(never)]
pub fn doubles(cells: &[f64]) -> (NewTexts, Vec<usize>) {
    let (mut offsets, mut bytes, mut others) = (Vec::with_capacity(cells.len() + 1), Vec::new(), Vec::new());
    offsets.push(0);
    for (row, x) in cells.iter().enumerate() {
        let short = scale::shortest(x.abs()).map(|(digits, places)| (digits, places.unsigned_abs()));
        match short.or_else(|| digits::long(x.abs())) {
            Some((digits, places)) => {
                if !push_decimal(&mut bytes, x.is_sign_negative(), digits, places as usize) {
                    others.push(row);
                }
            }
            None => others.push(row),
        }
        offsets.push(bytes.len() as u32);
    }
    ((offsets, bytes), others)
}

/// Appends a number of which so many are decimals. False, and nothing is appended, if more than three zeros
/// would follow the point.
#[inline(always)]
fn push_decimal(out: &mut Vec<u8>, negative: bool, digits: u64, places: usize) -> bool {
    let significant = if digits == 0 { 1 } else { digits.ilog10() as usize + 1 };
    if places > significant + ZEROS_MAX {
        return false;
    }
    // The last digit first.
    let (start, mut left, mut written) = (out.len(), digits, 0);
    while left > 0 || written <= places {
        if written == places && places > 0 {
            out.push(b'.');
        }
        out.push(b'0' + (left % 10) as u8);
        left /= 10;
        written += 1;
    }
    if negative {
        out.push(b'-');
    }
    out.get_mut(start..).unwrap_or_default().reverse();
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts_of((offsets, bytes): &NewTexts) -> Vec<&str> {
        let text = |ends: &[u32]| std::str::from_utf8(&bytes[ends[0] as usize..ends[1] as usize]).unwrap();
        offsets.windows(2).map(text).collect()
    }

    #[test]
    fn dates_are_written_with_all_digits() {
        use DatePart::*;
        let civil = |day: i64| (day + 7, 3, 9);
        let parts =
            [Year, Same(b'-'), Month, Day, Same(b'T'), Hour, Same(b':'), Minute, Second, Same(b'.'), Millisecond];
        let times = [0, 86_399_999, 86_400_000 + 3_723_004];
        assert_eq!(
            texts_of(&dates(&times, &parts, &civil).unwrap()),
            ["0007-0309T00:0000.000", "0007-0309T23:5959.999", "0008-0309T01:0203.004"]
        );
        assert_eq!(texts_of(&dates(&[-1], &[Year, Hour], &civil).unwrap()), ["000623"]);
        assert_eq!(dates(&[0, -8 * DAY_MS], &[Year], &civil), None, "a year before 0");
        assert_eq!(dates(&[9993 * DAY_MS], &[Hour], &civil), None, "a year of five digits");
    }

    #[test]
    fn doubles_with_powers_of_ten_are_left_out() {
        let cells =
            [0.5, 0.0001, 0.000_123_456, 0.000_01, 1e15, 1e14, 0.1 + 0.2, f64::NAN, f64::INFINITY, -0.0, -12.5, 100.0];
        let (made, others) = doubles(&cells);
        assert_eq!(
            texts_of(&made),
            [
                "0.5",
                "0.0001",
                "0.000123456",
                "",
                "",
                "100000000000000",
                "0.30000000000000004",
                "",
                "",
                "-0",
                "-12.5",
                "100"
            ]
        );
        assert_eq!(others, [3, 4, 7, 8]);
    }

    proptest! {
        #[test]
        fn short_doubles_are_written_as_by_the_standard_library(integer in -999_999_999_999_999_i64..999_999_999_999_999, drop in 0..15_u32, places in 0..23_i32) {
            let x: f64 = format!("{}e-{places}", integer / 10_i64.pow(drop)).parse().unwrap();
            let (made, others) = doubles(&[x]);
            // The standard library writes no powers of ten.
            let is_small = x != 0.0 && x.abs() < 1e-4;
            prop_assert_eq!(others.len(), usize::from(is_small), "{}", x);
            if !is_small {
                prop_assert_eq!(texts_of(&made), [x.to_string()]);
            }
        }
    }
}
