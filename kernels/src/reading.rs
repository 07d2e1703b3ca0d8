//! Numbers and dates from texts, in the forms that programs write. Others are left to the caller.

use std::cell::Cell;

use crate::digits;
use crate::texts::Texts;
use crate::written::DatePart;

const DAY_MS: i64 = 86_400_000;

/// The digits of a number with an optional sign, as an integer, and how many of them are decimals. `None` for more digits than an integer
/// of 64 bits holds in any case, and for other forms.
#[inline(always)]
fn decimal(text: &[u8]) -> Option<(bool, u64, u32)> {
    const DIGITS_MAX: usize = 19;
    let (negative, text) = match text {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        _ => (false, text),
    };
    let (mut number, mut places, mut is_behind) = (0_u64, 0, false);
    if text.len() > DIGITS_MAX + 1 {
        return None;
    }
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit < 10 {
            number = number.wrapping_mul(10).wrapping_add(u64::from(digit));
            places += u32::from(is_behind);
        } else if *byte == b'.' && !is_behind {
            is_behind = true;
        } else {
            return None;
        }
    }
    let count = text.len() - usize::from(is_behind);
    let has_ends = text.first() != Some(&b'.') && text.last() != Some(&b'.');
    (has_ends && (1..=DIGITS_MAX).contains(&count)).then_some((negative, number, places))
}

/// The double in a text like `-12.5`; `None` for other forms.
#[inline(always)]
fn double_of(text: &[u8]) -> Option<f64> {
    let (negative, number, places) = decimal(text)?;
    let size = digits::nearest(number, places);
    Some(if negative { -size } else { size })
}

/// The same, for a single text.
#[inline(never)]
pub fn double(text: &[u8]) -> Option<f64> {
    double_of(text)
}

/// The doubles in texts, and the rows of other texts. Those have 0.
#[inline(never)]
pub fn doubles(texts: Texts<'_>) -> (Vec<f64>, Vec<usize>) {
    read(texts, &double_of)
}

/// The integers in texts, and the rows of other texts. Those have 0.
#[inline(never)]
pub fn integers(texts: Texts<'_>) -> (Vec<i64>, Vec<usize>) {
    read(texts, &|text| {
        let (negative, number, 0) = decimal(text).filter(|_| !text.contains(&b'.'))? else { return None };
        let number = i64::try_from(number).ok()?;
        Some(if negative { -number } else { number })
    })
}

#[inline(always)]
fn read<T: Default>(texts: Texts<'_>, of: &dyn Fn(&[u8]) -> Option<T>) -> (Vec<T>, Vec<usize>) {
    let mut others = Vec::new();
    let each = |(row, text): (usize, &[u8])| {
        of(text).unwrap_or_else(|| {
            others.push(row);
            T::default()
        })
    };
    (texts.iter().enumerate().map(each).collect(), others)
}

/// The days from the epoch to the first day of a month, which may be any number: 0 is the December before. Saturates far beyond all dates.
#[inline(never)]
pub fn first_day(year: i64, month: i64) -> i64 {
    // Years that begin in March end with the leap day.
    let months = year.saturating_mul(12).saturating_add(month - 3);
    let (year, month) = (months.div_euclid(12), months.rem_euclid(12));
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year.saturating_mul(365).saturating_add(leaps + (153 * month + 2) / 5 - 719_468)
}

/// The times of texts that have exactly these parts, in milliseconds since the epoch, if they are dates; `shapes` has more than one
/// if texts may have other parts. The rows of other texts have 0. A year, a month and a day must be among the parts.
#[inline(never)]
pub fn dates(texts: Texts<'_>, shapes: &[Vec<DatePart>]) -> (Vec<i64>, Vec<usize>) {
    // Most texts have the shape of the one before.
    let last = Cell::new(0);
    read(texts, &|text| {
        let known = shapes.get(last.get()).and_then(|shape| date_of(text, shape));
        known.or_else(|| {
            let (at, ms) = shapes.iter().enumerate().find_map(|(at, shape)| Some((at, date_of(text, shape)?)))?;
            last.set(at);
            Some(ms)
        })
    })
}

/// The time of a text with these parts, as of texts.
#[inline(never)]
pub fn date(text: &[u8], shape: &[DatePart]) -> Option<i64> {
    date_of(text, shape)
}

#[inline(always)]
fn date_of(text: &[u8], shape: &[DatePart]) -> Option<i64> {
    let (mut rest, mut fields) = (text, [0_i64; 7]);
    for part in shape {
        let (width, at) = match part {
            DatePart::Same(byte) => {
                rest = rest.strip_prefix(&[*byte])?;
                continue;
            }
            DatePart::Year => (4, 0),
            DatePart::Month => (2, 1),
            DatePart::Day => (2, 2),
            DatePart::Hour => (2, 3),
            DatePart::Minute => (2, 4),
            DatePart::Second => (2, 5),
            DatePart::Millisecond => (3, 6),
        };
        let (digits, behind) = rest.split_at_checked(width)?;
        let mut number = 0;
        for byte in digits {
            let digit = byte.wrapping_sub(b'0');
            if digit > 9 {
                return None;
            }
            number = number * 10 + i64::from(digit);
        }
        if let Some(field) = fields.get_mut(at) {
            *field = number;
        }
        rest = behind;
    }
    let [year, month, day, hour, minute, second, ms] = fields;
    if !rest.is_empty() || !(1..=12).contains(&month) || hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let first = first_day(year, month);
    // All months have so many days.
    if day < 1 || day > 28 && first + day > first_day(year, month + 1) {
        return None;
    }
    Some((first + day - 1) * DAY_MS + ((hour * 60 + minute) * 60 + second) * 1000 + ms)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn texts_of<T: AsRef<str>>(texts: &[T]) -> (Vec<u32>, Vec<u8>) {
        let (mut offsets, mut bytes) = (vec![0], Vec::new());
        for text in texts {
            bytes.extend_from_slice(text.as_ref().as_bytes());
            offsets.push(bytes.len() as u32);
        }
        (offsets, bytes)
    }

    #[test]
    fn numbers_in_other_forms_are_left_to_the_caller() {
        let (offsets, bytes) = texts_of(&[
            "1",
            "-1.5",
            "+0",
            "-0",
            "",
            ".",
            "1.",
            ".5",
            "1.2.3",
            "1e3",
            " 1",
            "--1",
            "99999999999999999999",
            "0x1",
            "NaN",
            "9223372036854775807",
            "-9223372036854775808",
        ]);
        let texts = Texts { offsets: &offsets, bytes: &bytes };
        let (found, others) = doubles(texts);
        assert_eq!(others, [4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14]);
        assert_eq!(
            (&found[..4], found[3].is_sign_negative(), found[15]),
            (&[1.0, -1.5, 0.0, 0.0][..], true, 9_223_372_036_854_775_807.0)
        );
        let (found, others) = integers(texts);
        assert_eq!(others, [1, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 16]);
        assert_eq!((&found[..4], found[15]), (&[1, 0, 0, 0][..], i64::MAX));
    }

    #[test]
    fn dates_have_all_digits_and_lie_in_the_calendar() {
        use DatePart::*;
        let day = vec![Year, Same(b'-'), Month, Same(b'-'), Day];
        let time = [
            day.as_slice(),
            &[Same(b'T'), Hour, Same(b':'), Minute, Same(b':'), Second, Same(b'.'), Millisecond, Same(b'Z')],
        ]
        .concat();
        let (offsets, bytes) = texts_of(&[
            "1970-01-01",
            "2024-02-29T23:59:59.999Z",
            "2023-02-29",
            "2024-02-30",
            "1900-02-29",
            "2000-02-29",
            "2024-13-01",
            "2024-00-01",
            "2024-01-00",
            "2024-04-31",
            "2024-12-31",
            "0000-01-01",
            "9999-12-31",
            "2024-1-01",
            "2024-01-01 ",
            "2024-01-01T24:00:00.000Z",
            "2024-01-01T00:60:00.000Z",
            "2024-01-01T00:00:60.000Z",
            "",
        ]);
        let (found, others) = dates(Texts { offsets: &offsets, bytes: &bytes }, &[day, time]);
        assert_eq!(others, [2, 3, 4, 6, 7, 8, 9, 13, 14, 15, 16, 17, 18]);
        let expected =
            [0, 1_709_251_199_999, 951_782_400_000, 1_735_603_200_000, -62_167_219_200_000, 253_402_214_400_000];
        assert_eq!([0, 1, 5, 10, 11, 12].map(|row: usize| found[row]), expected);
    }

    proptest! {
        #[test]
        fn numbers_are_those_of_the_standard_library(
            numbers in proptest::collection::vec((any::<i64>(), 0..63_u32, 0..20_usize), 1..20),
        ) {
            let written = |(number, drop, places): &(i64, u32, usize)| {
                let digits = format!("{:0width$}", (number >> drop).unsigned_abs(), width = places + 1);
                let (whole, decimals) = digits.split_at(digits.len() - places);
                format!("{}{whole}{}{decimals}", if *number < 0 { "-" } else { "" }, if *places > 0 { "." } else { "" })
            };
            let written: Vec<String> = numbers.iter().map(written).collect();
            let (offsets, bytes) = texts_of(&written);
            let texts = Texts { offsets: &offsets, bytes: &bytes };
            let ((found, others), (integers, no_integers)) = (doubles(texts), integers(texts));
            for (row, text) in written.iter().enumerate() {
                let digits = text.bytes().filter(u8::is_ascii_digit).count();
                prop_assert_eq!(others.contains(&row), digits > 19, "{}", text);
                if digits <= 19 {
                    prop_assert_eq!(found[row].to_bits(), text.parse::<f64>().unwrap().to_bits(), "{}", text);
                }
                let integer: Option<i64> = text.parse().ok().filter(|n| *n != i64::MIN);
                prop_assert_eq!((!no_integers.contains(&row)).then(|| integers[row]), integer);
            }
        }
    }
}
