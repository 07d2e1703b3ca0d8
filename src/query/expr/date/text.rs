//! Converts dates to and from text: `$dateToString`, `$dateFromString`.

use std::iter;

use kernels::written::DatePart;

use super::super::arguments::{date_ms, failure};
use super::super::datum::{Datum, is_nullish, type_name};
use super::super::evaluate::Scope;
use super::super::globals::Globals;
use super::super::operators::{Binds, Names, Op, Operator, Syntax, lazy, names};
use super::super::tree::Expr;
use super::calendar::DAY_MS;
use super::fields::{Cursor, Fields, iso_ms};
use super::units::{parts, time_parts};
use super::zone::Zone;
use crate::error::ErrorCode::*;
use crate::error::{Error, ErrorCode, Result};
use crate::value::Value;

static TO_STRING: Names = names(
    &["date", "format", "timezone", "onNull"],
    1,
    0,
    Binds::Nothing,
    &[Location18629, Location18534, Location18628],
);
static FROM_STRING: Names = names(
    &["dateString", "format", "timezone", "onError", "onNull"],
    1,
    0,
    Binds::Nothing,
    &[Location40540, Location40541, Location40542],
);
/// Format letters, with the positions of their fields in `date::parts` and their number of digits.
const LETTERS: [(u8, usize, usize); 13] = [
    (b'Y', 0, 4),
    (b'm', 1, 2),
    (b'd', 2, 2),
    (b'j', 3, 3),
    (b'w', 4, 1),
    (b'U', 5, 2),
    (b'V', 6, 2),
    (b'G', 7, 4),
    (b'u', 8, 1),
    (b'H', 9, 2),
    (b'M', 10, 2),
    (b'S', 11, 2),
    (b'L', 12, 3),
];
pub(super) const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

pub(super) static TABLE: &[Operator] = &[
    lazy(Op::More, "$dateToString", Syntax::Named(&TO_STRING), to_string),
    lazy(Op::More, "$dateFromString", Syntax::Named(&FROM_STRING), from_string),
];

/// The value of a string argument; `None` if it is not given.
///
/// Errors: outer, with the code, if it is not a string; inner if it is null.
fn wanted(name: &str, argument: &Expr, scope: &Scope<'_>, code: ErrorCode) -> Result<Option<Option<String>>> {
    if *argument == Expr::MISSING {
        return Ok(Some(None));
    }
    let found = argument.evaluate(scope)?;
    match found.view() {
        value if is_nullish(value) => Ok(None),
        Some(value) if value.as_str().is_some() => Ok(Some(value.as_str().map(str::to_owned))),
        other => Err(failure(code, name, &format!("needs a string, found {}", type_name(other)))),
    }
}

/// The time zone in the argument, and whether it is given; `None` if it is null.
fn zone(name: &str, argument: &Expr, scope: &Scope<'_>) -> Result<Option<(Zone, bool)>> {
    let Some(text) = wanted(name, argument, scope, Location40517)? else { return Ok(None) };
    let value = text.as_deref().map(Datum::string);
    let zone = Zone::of(name, &[value.as_ref().and_then(Datum::view)], 0, scope.globals())?;
    Ok(Some((zone, value.is_some())))
}

/// The replacement for null; null itself if none is given.
pub fn instead<'s>(argument: &'s Expr, scope: &Scope<'s>) -> Result<Datum<'s>> {
    if *argument == Expr::MISSING { Ok(Datum::NULL) } else { argument.evaluate(scope) }
}

fn to_string<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    const NAME: &str = "$dateToString";
    let [date, format, timezone, on_null] = arguments else { return Ok(Datum::NULL) };
    let (Some(format), Some((zone, _))) = (wanted(NAME, format, scope, Location18533)?, zone(NAME, timezone, scope)?)
    else {
        return Ok(Datum::NULL);
    };
    let date = date.evaluate(scope)?;
    if is_nullish(date.view()) {
        return instead(on_null, scope);
    }
    let ms = date.view().and_then(date_ms);
    let ms =
        ms.ok_or_else(|| failure(Location16006, NAME, &format!("needs a date, found {}", type_name(date.view()))))?;
    let format = format_of(format.as_deref(), &zone);
    Ok(Datum::joined(iter::once(DateTexts::new(&zone, format).of(ms)?)))
}

/// The format, or the one that is used if none is given.
pub(super) fn format_of<'f>(format: Option<&'f str>, zone: &Zone) -> &'f str {
    format.unwrap_or(match zone {
        Zone::Fixed(0) => "%Y-%m-%dT%H:%M:%S.%LZ",
        _ => "%Y-%m-%dT%H:%M:%S.%L",
    })
}

/// A number of milliseconds, at most a day, in which a text of this format stays the same.
pub(super) fn finest_unit(format: &str) -> i64 {
    let unit = |letter: u8| match letter {
        b'L' => 1,
        b'S' => 1000,
        b'M' => 60_000,
        b'H' => 3_600_000,
        _ => DAY_MS,
    };
    format.bytes().map(unit).min().unwrap_or(DAY_MS)
}

/// The parts of texts of this format; `None` if it has other parts than numbers of the date and the time of day.
pub(super) fn parts_of(format: &str) -> Option<Vec<DatePart>> {
    let (mut parts, mut letters) = (Vec::new(), format.bytes());
    while let Some(letter) = letters.next() {
        parts.push(match letter {
            b'%' => match letters.next()? {
                b'%' => DatePart::Same(b'%'),
                b'Y' => DatePart::Year,
                b'm' => DatePart::Month,
                b'd' => DatePart::Day,
                b'H' => DatePart::Hour,
                b'M' => DatePart::Minute,
                b'S' => DatePart::Second,
                b'L' => DatePart::Millisecond,
                _ => return None,
            },
            letter => DatePart::Same(letter),
        });
    }
    Some(parts)
}

/// ISO 8601 as programs write it.
const ISO_FORMATS: [&str; 6] = [
    "%Y-%m-%dT%H:%M:%S.%LZ",
    "%Y-%m-%dT%H:%M:%SZ",
    "%Y-%m-%d %H:%M:%S",
    "%Y-%m-%dT%H:%M:%S",
    "%Y-%m-%d %H:%M:%S.%L",
    "%Y-%m-%d",
];

/// The parts of texts that `read` reads alike if they have all digits. `None` for formats that need more than a date and a time of day in numbers.
pub fn shapes_of(format: Option<&str>) -> Option<Vec<Vec<DatePart>>> {
    match format {
        Some(format) => {
            let parts = parts_of(format)?;
            let has_all = [DatePart::Year, DatePart::Month, DatePart::Day].iter().all(|part| parts.contains(part));
            has_all.then(|| vec![parts])
        }
        None => ISO_FORMATS.into_iter().map(parts_of).collect(),
    }
}

fn of_format(code: ErrorCode, problem: &str) -> Error {
    failure(code, "The format of a date", problem)
}

/// Formats dates in one time zone, and keeps the fields of the last day.
pub(super) struct DateTexts<'f> {
    zone: &'f Zone,
    format: &'f [u8],
    /// The local day of `parts`, counted from the epoch.
    day: i64,
    parts: [i64; 13],
    text: Vec<u8>,
}

impl<'f> DateTexts<'f> {
    /// Texts of this format.
    pub(super) fn new(zone: &'f Zone, format: &'f str) -> DateTexts<'f> {
        DateTexts { zone, format: format.as_bytes(), day: 0, parts: parts(0), text: Vec::new() }
    }

    /// The text of a date.
    ///
    /// Errors: as a server, for an unknown specifier, an unmatched `%`, and for years that have more than four digits.
    pub(super) fn of(&mut self, ms: i64) -> Result<&[u8]> {
        let local = self.zone.local(ms);
        let (day, of_day) = (local.div_euclid(DAY_MS), local.rem_euclid(DAY_MS));
        if day != self.day {
            (self.day, self.parts) = (day, parts(local));
        }
        if let Some(of_parts) = self.parts.last_chunk_mut() {
            *of_parts = time_parts(of_day);
        }
        self.text.clear();
        let mut rest = self.format;
        while let Some((letter, behind)) = rest.split_first() {
            rest = behind;
            if *letter != b'%' {
                self.text.push(*letter);
                continue;
            }
            let (letter, behind) =
                rest.split_first().ok_or_else(|| of_format(Location18535, "ends with an unmatched '%'"))?;
            self.push_field(*letter, rest, (local - ms) / 60_000)?;
            rest = behind;
        }
        Ok(&self.text)
    }

    /// Appends what a specifier stands for, with which `rest` of the format begins.
    fn push_field(&mut self, letter: u8, rest: &[u8], offset_minutes: i64) -> Result<()> {
        let (sign, size) = (if offset_minutes < 0 { b'-' } else { b'+' }, offset_minutes.abs());
        let month =
            || usize::try_from(self.parts[1] - 1).ok().and_then(|at| MONTHS.get(at)).copied().unwrap_or_default();
        match letter {
            b'%' => self.text.push(b'%'),
            b'z' => {
                self.text.push(sign);
                push_digits(&mut self.text, size / 60, 2);
                push_digits(&mut self.text, size % 60, 2);
            }
            b'Z' => {
                self.text.push(sign);
                push_digits(&mut self.text, size, 1);
            }
            b'b' => self.text.extend_from_slice(month().as_bytes().get(..3).unwrap_or_default()),
            b'B' => self.text.extend_from_slice(month().as_bytes()),
            _ => {
                let Some((_, at, width)) = LETTERS.iter().find(|(known, ..)| *known == letter) else {
                    let letter = str::from_utf8(rest).unwrap_or_default().chars().next().unwrap_or_default();
                    return Err(of_format(Location18536, &format!("has the unknown specifier '%{letter}'")));
                };
                let part = self.parts.get(*at).copied().unwrap_or_default();
                if *width == 4 && !(0..=9999).contains(&part) {
                    return Err(failure(Location18537, "$dateToString", "needs a year from 0 to 9999"));
                }
                push_digits(&mut self.text, part, *width);
            }
        }
        Ok(())
    }
}

/// Appends a number with at least that many digits. It is not negative, and has at most four.
fn push_digits(out: &mut Vec<u8>, number: i64, width: usize) {
    let n = u32::try_from(number).unwrap_or_default();
    let digits = [n / 1000, n / 100, n / 10, n].map(|n| b'0' | u8::try_from(n % 10).unwrap_or_default());
    let unused = digits.iter().take(4 - width).take_while(|digit| **digit == b'0').count();
    out.extend_from_slice(digits.get(unused..).unwrap_or_default());
}

fn from_string<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    const NAME: &str = "$dateFromString";
    let [text, format, timezone, on_error, on_null] = arguments else { return Ok(Datum::NULL) };
    let (format, zone) = (wanted(NAME, format, scope, Location40684)?, zone(NAME, timezone, scope)?);
    let text = text.evaluate(scope)?;
    if is_nullish(text.view()) {
        return instead(on_null, scope);
    }
    let (Some(format), Some(zone)) = (format, zone) else { return Ok(Datum::NULL) };
    match read(text.view(), format.as_deref(), zone, scope.globals())? {
        Some(ms) => Ok(Datum::date(ms)),
        None if *on_error != Expr::MISSING => on_error.evaluate(scope),
        None => {
            let value = text.view().unwrap_or(Value::NULL);
            Err(failure(ConversionFailure, NAME, &format!("cannot read a date from {value:?}")))
        }
    }
}

/// The date in a value; `None` if it has none.
///
/// Errors: those of formats.
pub fn read(
    value: Option<Value<'_>>,
    format: Option<&str>,
    (zone, is_given): (Zone, bool),
    globals: &Globals,
) -> Result<Option<i64>> {
    let Some(text) = value.and_then(Value::as_str) else { return Ok(None) };
    if let (None, false, Some(ms)) = (format, is_given, iso_ms(text.as_bytes())) {
        return Ok(Some(ms));
    }
    let fields = match format {
        None => Fields::free(text, globals),
        Some(format) => formatted(text, format)?,
    };
    // Only one time zone may be given.
    let fields = fields.filter(|fields| fields.zone.is_none() || !is_given);
    Ok(fields.and_then(|fields| fields.local_ms().and_then(|ms| fields.zone.as_ref().unwrap_or(&zone).utc(ms))))
}

/// Reads a text by a format.
///
/// Errors: 18535 and 18536 for invalid formats.
fn formatted(text: &str, format: &str) -> Result<Option<Fields>> {
    let (mut fields, mut is_right) = (Fields::default(), true);
    let mut text = Cursor(text.as_bytes());
    let mut letters = format.bytes();
    while let Some(letter) = letters.next() {
        if letter != b'%' {
            is_right &= text.eat(letter);
            continue;
        }
        let letter = letters.next().ok_or_else(|| of_format(Location18535, "ends with an unmatched '%'"))?;
        is_right &= match letter {
            b'%' => text.eat(b'%'),
            b'z' => text.zone().map(|zone| fields.zone = Some(zone)).is_some(),
            b'Z' => {
                let negative = text.eat(b'-');
                let _ = !negative && text.eat(b'+');
                let minutes = text.number(4).map(|(minutes, _)| if negative { -minutes } else { minutes });
                minutes.map(|minutes| fields.zone = Some(Zone::Fixed(minutes * 60_000))).is_some()
            }
            b'b' | b'B' => text.month().map(|month| fields.set(1, month)).is_some(),
            _ => {
                let found = LETTERS.iter().find(|(known, ..)| *known == letter && !matches!(letter, b'w' | b'U'));
                let Some((_, at, width)) = found else {
                    let letter = char::from(letter);
                    return Err(of_format(Location18536, &format!("has the unknown specifier '%{letter}'")));
                };
                text.number(*width).map(|(part, _)| fields.set(*at, part)).is_some()
            }
        };
    }
    Ok(Some(fields).filter(|_| is_right && text.0.is_empty()))
}
