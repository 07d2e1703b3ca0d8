//! Dates: their parts, `$dateTrunc`, `$dateDiff`, `$dateAdd`, `$dateSubtract`, in UTC or at a fixed offset from it.

use super::calendar::{Unit, civil, days_of, weekday};
use super::datum::{Datum, type_name};
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Kind, Number, Value};

type Arguments<'a, 'b> = &'a [Option<Value<'b>>];

const DAY_MS: i64 = 86_400_000;

/// Milliseconds of what stands for a date: a date, a timestamp, an ObjectId.
pub(super) fn date_ms(value: Value<'_>) -> Option<i64> {
    match value.kind() {
        Kind::Date => value.as_date_ms(),
        Kind::Timestamp => value.as_timestamp().map(|bits| i64::try_from(bits >> 32).unwrap_or_default() * 1000),
        Kind::ObjectId => {
            let [a, b, c, d, ..] = value.as_object_id()?;
            Some(i64::from(u32::from_be_bytes([a, b, c, d])) * 1000)
        }
        _ => None,
    }
}

/// The date at a place among the arguments.
fn date_at(name: &str, arguments: Arguments<'_, '_>, at: usize, code: ErrorCode) -> Result<i64> {
    let value = arguments.get(at).copied().flatten();
    value
        .and_then(date_ms)
        .ok_or_else(|| Error::new(code, format!("{name}: can't convert from BSON type {} to Date", type_name(value))))
}

/// The string at a place among the arguments, where there is one.
fn text_at<'a>(what: &str, arguments: Arguments<'_, 'a>, at: usize, code: ErrorCode) -> Result<Option<&'a str>> {
    let Some(value) = arguments.get(at).copied().flatten() else { return Ok(None) };
    let text = value
        .as_str()
        .ok_or_else(|| Error::new(code, format!("{what} must evaluate to a string, found {}", value.kind().alias())))?;
    Ok(Some(text))
}

fn unit_at(name: &str, arguments: Arguments<'_, '_>, at: usize) -> Result<Unit> {
    let text = text_at("unit", arguments, at, ErrorCode::Location5439013)?.unwrap_or_default();
    Unit::named(text).ok_or_else(|| {
        Error::new(ErrorCode::FailedToParse, format!("{name} parameter 'unit' has an unknown time unit value: {text}"))
    })
}

/// How far the clocks of a timezone are ahead of UTC, in milliseconds. So far that is a fixed offset.
fn offset_at(arguments: Arguments<'_, '_>, at: usize) -> Result<i64> {
    let Some(zone) = text_at("timezone", arguments, at, ErrorCode::Location40517)? else { return Ok(0) };
    if matches!(zone, "UTC" | "GMT" | "Z" | "Etc/UTC" | "Etc/GMT") {
        return Ok(0);
    }
    let minutes = zone.split_at_checked(1).and_then(|(sign, rest)| {
        let digits = rest.replacen(':', "", 1);
        let number: i64 = digits.parse().ok().filter(|_| digits.bytes().all(|b| b.is_ascii_digit()))?;
        let minutes = if digits.len() == 4 { number / 100 * 60 + number % 100 } else { number * 60 };
        match sign {
            _ if !matches!(digits.len(), 2 | 4) => None,
            "+" => Some(minutes),
            "-" => Some(-minutes),
            _ => None,
        }
    });
    minutes.map(|minutes| minutes * 60_000).ok_or_else(|| {
        let message = format!("unrecognized time zone identifier: \"{zone}\"; fixed offsets are supported so far");
        Error::new(ErrorCode::Location40485, message)
    })
}

/// The weekday at a place among the arguments, Sunday 0.
fn first_day_at(arguments: Arguments<'_, '_>, at: usize) -> Result<i64> {
    let Some(name) = text_at("startOfWeek", arguments, at, ErrorCode::Location5439015)? else { return Ok(0) };
    let wanted = name.to_ascii_lowercase();
    let days = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    let found = (0..).zip(days).find(|(_, day)| *day == wanted || (wanted.len() == 3 && day.starts_with(&wanted)));
    found.map(|(day, _)| day).ok_or_else(|| {
        let message = format!("parameter 'startOfWeek' value cannot be recognized as a day of a week: {name}");
        Error::new(ErrorCode::Location5439015, message)
    })
}

/// `$year` and its siblings.
pub(super) fn part(name: &'static str, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let ms = date_at(name, arguments, 0, ErrorCode::Location16006)?.saturating_add(offset_at(arguments, 1)?);
    let (days, of_day) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    let (year, month, day) = civil(days);
    // Monday 0.
    let monday_based = (weekday(days) + 6) % 7;
    let thursday = days - monday_based + 3;
    let iso_year = civil(thursday).0;
    let part = match name {
        "$year" => year,
        "$month" => month,
        "$dayOfMonth" => day,
        "$dayOfYear" => days - days_of(year, 1, 1) + 1,
        "$dayOfWeek" => weekday(days) + 1,
        // Weeks begin on Sundays; the days before the first one are week 0.
        "$week" => (days - days_of(year, 1, 1) + 7 - weekday(days)) / 7,
        "$isoWeek" => (thursday - days_of(iso_year, 1, 1)) / 7 + 1,
        "$isoWeekYear" => iso_year,
        "$isoDayOfWeek" => monday_based + 1,
        "$hour" => of_day / 3_600_000,
        "$minute" => of_day / 60_000 % 60,
        "$second" => of_day / 1000 % 60,
        _ => of_day % 1000,
    };
    Ok(if name == "$isoWeekYear" { Datum::int64(part) } else { Datum::int32(i32::try_from(part).unwrap_or_default()) })
}

/// The start of the bin that a date lies in; bins are counted from the start of 2000.
pub(super) fn truncate(name: &'static str, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let date = date_at(name, arguments, 0, ErrorCode::Location5439012)?;
    let unit = unit_at(name, arguments, 1)?;
    let size = match arguments.get(2).copied().flatten() {
        None => 1,
        Some(size) => Number::of(size).and_then(Number::whole).ok_or_else(|| {
            let message = format!("{name} requires 'binSize' to be a 64-bit integer, but got {size:?}");
            Error::new(ErrorCode::Location5439017, message)
        })?,
    };
    if size < 1 {
        let message = format!("{name} requires 'binSize' to be greater than 0, but got {size}");
        return Err(Error::new(ErrorCode::Location5439018, message));
    }
    let offset = offset_at(arguments, 3)?;
    let first_day = first_day_at(arguments, 4)?;
    let bin = unit.index(date.saturating_add(offset), first_day).div_euclid(size);
    let start =
        bin.checked_mul(size).and_then(|index| unit.start(index, first_day)).and_then(|ms| ms.checked_sub(offset));
    start.map(Datum::date).ok_or_else(|| overflow(name))
}

/// How many borders of a unit lie between two dates.
pub(super) fn difference(name: &'static str, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let [start, end] = [0, 1].map(|at| date_at(name, arguments, at, ErrorCode::Location5166307));
    let (start, end) = (start?, end?);
    let unit = unit_at(name, arguments, 2)?;
    let offset = offset_at(arguments, 3)?;
    let first_day = first_day_at(arguments, 4)?;
    let index = |ms: i64| unit.index(ms.saturating_add(offset), first_day);
    index(end).checked_sub(index(start)).map(Datum::int64).ok_or_else(|| overflow(name))
}

/// `$dateAdd` and `$dateSubtract`.
pub(super) fn shift(name: &'static str, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let date = date_at(name, arguments, 0, ErrorCode::Location5166403)?;
    let unit = unit_at(name, arguments, 1)?;
    let amount = arguments.get(2).copied().flatten();
    let whole = amount.and_then(Number::of).and_then(Number::whole).ok_or_else(|| {
        Error::new(ErrorCode::Location5166405, format!("{name} expects integer amount of time units, not {amount:?}"))
    })?;
    let offset = offset_at(arguments, 3)?;
    let moved = (if name == "$dateSubtract" { whole.checked_neg() } else { Some(whole) })
        .and_then(|amount| unit.shift(date.checked_add(offset)?, amount)?.checked_sub(offset));
    moved.map(Datum::date).ok_or_else(|| overflow(name))
}

fn overflow(name: &str) -> Error {
    Error::new(ErrorCode::Location5166406, format!("{name} overflowed"))
}
