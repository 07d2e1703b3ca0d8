//! Reads dates from text, field by field, in the forms that people write.

use kernels::reading;
use kernels::written::DatePart;

use super::super::globals::Globals;
use super::calendar::{DAY_MS, days_of};
use super::parts::day_of_week;
use super::text::MONTHS;
use super::zone::Zone;
use crate::env::offset_ms;

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];

/// The fields found in a text, in the order of `date::parts`, and the time zone.
#[derive(Default)]
pub struct Fields {
    parts: [Option<i64>; 13],
    pub zone: Option<Zone>,
}

impl Fields {
    pub fn set(&mut self, at: usize, part: i64) {
        if let Some(place) = self.parts.get_mut(at) {
            *place = Some(part);
        }
    }

    fn set_all(&mut self, parts: &[(usize, i64)]) {
        parts.iter().for_each(|(at, part)| self.set(*at, *part));
    }

    /// The local time; `None` if a field is missing or there is no such date.
    pub fn local_ms(&self) -> Option<i64> {
        let [year, month, day, of_year, _, _, week, of_week, weekday, time @ ..] = self.parts;
        let within = |part: Option<i64>, least: i64, last: i64| part.filter(|part| (least..=last).contains(part));
        let days = match (of_week, of_year) {
            (Some(year), _) => day_of_week(year, within(week.or(Some(1)), 1, 53)?, within(weekday.or(Some(1)), 1, 7)?),
            (None, Some(_)) => days_of(year?, 1, within(of_year, 1, 366)?),
            _ => {
                let (year, month) = (year?, within(month, 1, 12)?);
                let first = days_of(year, month, 1);
                first + within(day, 1, days_of(year, month + 1, 1) - first)? - 1
            }
        };
        let [hour, minute, second, ms] = time.map(|part| part.unwrap_or(0));
        let of_day = ((hour * 60 + minute) * 60 + second) * 1000 + ms;
        let is_time = minute < 60 && second < 60 && of_day <= DAY_MS;
        is_time.then_some(days * DAY_MS + of_day)
    }

    /// Reads one of the common forms: ISO 8601, days with the name of their month, `month/day/year`, `day.month.year`,
    /// `@seconds`; then the time, then the time zone.
    pub fn free(text: &str, globals: &Globals) -> Option<Fields> {
        let mut fields = Fields::default();
        let mut text = Cursor(text.trim_ascii().as_bytes());
        if text.eat(b'@') {
            let negative = text.eat(b'-');
            let (seconds, _) = text.number(12)?;
            fields.set_all(&[(0, 1970), (1, 1), (2, 1)]);
            // The offset that gives this many seconds.
            fields.zone = Some(Zone::Fixed(if negative { seconds } else { -seconds } * 1000));
            return Some(fields).filter(|_| text.0.is_empty());
        }
        text.date(&mut fields)?;
        let is_apart = text.skip(b" ,\t") > 0;
        let has_t = text.eat(b'T') || text.eat(b't');
        if text.0.first().is_some_and(u8::is_ascii_digit) {
            text.time(&mut fields, is_apart || has_t)?;
        } else if has_t {
            return None;
        }
        text.skip(b" ");
        // A name in brackets repeats the zone before it.
        let end = text.0.iter().position(|byte| *byte == b'(').unwrap_or(text.0.len());
        let zone = text.0.get(..end)?.trim_ascii();
        if !zone.is_empty() {
            let after =
                zone.strip_prefix(b"GMT").or_else(|| zone.strip_prefix(b"UTC")).filter(|after| !after.is_empty());
            let found = match after.and_then(offset_ms) {
                Some(offset) => Some(Zone::Fixed(offset)),
                None if zone == b"z" => Some(Zone::UTC),
                None => Zone::named(std::str::from_utf8(zone).ok()?, globals),
            };
            fields.zone = Some(found?);
        }
        Some(fields)
    }
}

static ISO: [DatePart; 14] = [
    DatePart::Year,
    DatePart::Same(b'-'),
    DatePart::Month,
    DatePart::Same(b'-'),
    DatePart::Day,
    DatePart::Same(b'T'),
    DatePart::Hour,
    DatePart::Same(b':'),
    DatePart::Minute,
    DatePart::Same(b':'),
    DatePart::Second,
    DatePart::Same(b'.'),
    DatePart::Millisecond,
    DatePart::Same(b'Z'),
];

/// The date in a text as `Date.prototype.toISOString` writes it, or its start as a date, or as a date and a time without a time zone. `None`
/// for other texts, which may still be dates.
pub fn iso_ms(text: &[u8]) -> Option<i64> {
    let text = if text.len() == 20 { text.strip_suffix(b"Z")? } else { text };
    let parts = match text.len() {
        24 => ISO.len(),
        23 => ISO.len() - 1,
        19 => ISO.len() - 3,
        10 => ISO.len() - 9,
        _ => return None,
    };
    reading::date(text, ISO.get(..parts)?)
}

/// The rest of a text.
pub struct Cursor<'t>(pub &'t [u8]);

impl<'t> Cursor<'t> {
    /// Skips the next byte if it is `byte`; true if so.
    pub fn eat(&mut self, byte: u8) -> bool {
        let rest = self.0.strip_prefix(&[byte]);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Skips bytes that are in the set; returns how many.
    fn skip(&mut self, bytes: &[u8]) -> usize {
        self.take(usize::MAX, &|byte| bytes.contains(&byte)).len()
    }

    /// Up to this many bytes that pass.
    fn take(&mut self, most: usize, passes: &dyn Fn(u8) -> bool) -> &'t [u8] {
        let len = self.0.iter().take(most).take_while(|byte| passes(**byte)).count();
        let (taken, rest) = self.0.split_at_checked(len).unwrap_or_default();
        self.0 = rest;
        taken
    }

    /// A number of at most this many digits, and how many it has.
    pub fn number(&mut self, most: usize) -> Option<(i64, usize)> {
        let digits = self.take(most, &|byte| byte.is_ascii_digit());
        let number = digits.iter().fold(0, |number, digit| number * 10 + i64::from(digit - b'0'));
        (!digits.is_empty()).then_some((number, digits.len()))
    }

    fn word(&mut self) -> &'t [u8] {
        self.take(usize::MAX, &|byte| byte.is_ascii_alphabetic())
    }

    /// The number of a month from at least the first three letters of its name.
    pub fn month(&mut self) -> Option<i64> {
        place(&MONTHS, self.word()).and_then(|at| i64::try_from(at + 1).ok())
    }

    /// `±HH`, `±HHMM`, `±HH:MM` or `Z`.
    pub fn zone(&mut self) -> Option<Zone> {
        if self.eat(b'Z') {
            return Some(Zone::UTC);
        }
        offset_ms(self.take(6, &|byte| byte.is_ascii_digit() || b"+-:".contains(&byte))).map(Zone::Fixed)
    }

    fn date(&mut self, fields: &mut Fields) -> Option<()> {
        let mut named = Cursor(self.0);
        if place(&DAYS, named.word()).is_some() {
            named.skip(b" ,.");
            self.0 = named.0;
        }
        if self.0.first()?.is_ascii_alphabetic() {
            // June 14th, 2023
            fields.set(1, self.month()?);
            self.skip(b" .-");
            return match self.number(4)? {
                (year, 4) => {
                    fields.set_all(&[(0, year), (2, 1)]);
                    Some(())
                }
                (day, _) => {
                    let mut suffix = Cursor(self.0);
                    if matches!(suffix.word(), b"st" | b"nd" | b"rd" | b"th") {
                        self.0 = suffix.0;
                    }
                    self.skip(b" ,.-");
                    fields.set(2, day);
                    self.year(fields)
                }
            };
        }
        let (number, digits) = self.number(14)?;
        match digits {
            14 => {
                fields.set_all(&[(9, number / 10_000 % 100), (10, number / 100 % 100), (11, number % 100)]);
                fields.set_all(&ymd(number / 1_000_000));
            }
            8 => fields.set_all(&ymd(number)),
            4 => {
                let separator = self.0.first().copied().filter(|byte| b"-/.".contains(byte));
                let _ = separator.is_some_and(|separator| self.eat(separator));
                if self.eat(b'W') {
                    let (week, 2) = self.number(2)? else { return None };
                    fields.set_all(&[(7, number), (6, week)]);
                    if self.eat(b'-') {
                        fields.set(8, self.number(1)?.0);
                    }
                    return Some(());
                }
                fields.set(0, number);
                match (self.number(3)?, separator) {
                    ((of_year, 3), _) => fields.set(3, of_year),
                    ((month, _), Some(separator)) => {
                        let day = if self.eat(separator) { self.number(2)?.0 } else { 1 };
                        fields.set_all(&[(1, month), (2, day)]);
                    }
                    _ => return None,
                }
            }
            1 | 2 if self.eat(b'/') => {
                fields.set_all(&[(1, number), (2, self.number(2)?.0)]);
                self.eat(b'/').then_some(())?;
                self.year(fields)?;
            }
            1 | 2 => {
                fields.set(2, number);
                self.skip(b" .-");
                let month = if self.0.first()?.is_ascii_digit() { self.number(2)?.0 } else { self.month()? };
                fields.set(1, month);
                self.skip(b" .-,");
                self.year(fields)?;
            }
            _ => return None,
        }
        Some(())
    }

    /// A four-digit year.
    fn year(&mut self, fields: &mut Fields) -> Option<()> {
        let (year, 4) = self.number(4)? else { return None };
        fields.set(0, year);
        Some(())
    }

    /// `hh:mm`, `hh:mm:ss.fff`, `hh pm`; without colons if it is separated from the date.
    fn time(&mut self, fields: &mut Fields, is_apart: bool) -> Option<()> {
        let (number, digits) = self.number(6)?;
        let (mut hour, mut minute, mut second) = (number, 0, 0);
        let mut whole = digits > 2;
        match digits {
            6 if is_apart => (hour, minute, second) = (number / 10_000, number / 100 % 100, number % 100),
            4 if is_apart => (hour, minute) = (number / 100, number % 100),
            1 | 2 => {
                if self.eat(b':') {
                    minute = self.number(2)?.0;
                    whole = true;
                    if self.eat(b':') {
                        second = self.number(2)?.0;
                    }
                }
            }
            _ => return None,
        }
        if whole && (self.eat(b'.') || self.eat(b',')) {
            let (fraction, digits) = self.number(3)?;
            fields.set(
                12,
                fraction
                    * if digits == 1 {
                        100
                    } else if digits == 2 {
                        10
                    } else {
                        1
                    },
            );
            self.number(15);
        }
        let mut half = Cursor(self.0);
        half.skip(b" ");
        let word = half.word().to_ascii_lowercase();
        if matches!(word.as_slice(), b"am" | b"pm") {
            self.0 = half.0;
            if !(1..=12).contains(&hour) {
                return None;
            }
            hour = hour % 12 + if word == b"pm" { 12 } else { 0 };
        } else if !whole {
            return None;
        }
        fields.set_all(&[(9, hour), (10, minute), (11, second)]);
        Some(())
    }
}

fn ymd(number: i64) -> [(usize, i64); 3] {
    [(0, number / 10_000), (1, number / 100 % 100), (2, number % 100)]
}

/// The index of the name that starts with the first three letters of a word.
fn place(names: &[&str], word: &[u8]) -> Option<usize> {
    names.iter().position(|name| {
        word.len() > 2 && name.as_bytes().get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
    })
}
