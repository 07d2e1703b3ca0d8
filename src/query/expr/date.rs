//! Dates: their parts, `$dateTrunc`, `$dateDiff`, `$dateAdd`, `$dateSubtract`, in UTC or at a fixed offset from it.

use super::arguments::{Arguments, date, failure, given, integer, text};
use super::calendar::{DAY_MS, Unit, civil, days_of, weekday};
use super::datum::Datum;
use super::operators::{Op, Operator};
use super::tree::{Expr, Variable};
use crate::error::{Error, ErrorCode, Result};

fn unit(name: &str, arguments: Arguments<'_, '_>, at: usize) -> Result<Unit> {
    let unit = text(arguments, at);
    Unit::named(unit)
        .ok_or_else(|| failure(ErrorCode::FailedToParse, name, &format!("has an unknown time unit value: {unit}")))
}

/// How far the clocks of a timezone are ahead of UTC, in milliseconds. So far that is a fixed offset.
fn offset(name: &str, arguments: Arguments<'_, '_>, at: usize) -> Result<i64> {
    let zone = text(arguments, at);
    if given(arguments, at).is_none() || matches!(zone, "UTC" | "GMT" | "Z" | "Etc/UTC" | "Etc/GMT") {
        return Ok(0);
    }
    offset_minutes(zone.as_bytes()).map(|minutes| minutes * 60_000).ok_or_else(|| {
        let problem = format!("does not know the time zone \"{zone}\": fixed offsets are supported so far");
        failure(ErrorCode::Location40485, name, &problem)
    })
}

/// `±HH`, `±HHMM` or `±HH:MM`.
fn offset_minutes(zone: &[u8]) -> Option<i64> {
    let (sign, rest) = zone.split_first()?;
    let mut digits = [0; 4];
    let mut len = 0;
    for byte in rest.iter().filter(|byte| **byte != b':') {
        *digits.get_mut(len)? = i64::from(byte.wrapping_sub(b'0')).min(10);
        len += 1;
    }
    let [a, b, c, d] = digits;
    let minutes = (a * 10 + b) * 60 + c * 10 + d;
    match sign {
        _ if len % 2 == 1 || len == 0 || digits.contains(&10) => None,
        b'+' => Some(minutes),
        b'-' => Some(-minutes),
        _ => None,
    }
}

/// The weekday at a place among the arguments, Sunday 0: what is not given.
fn first_day(name: &str, arguments: Arguments<'_, '_>, at: usize) -> Result<i64> {
    let wanted = text(arguments, at);
    let days = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    let is_meant = |day: &str| {
        [day.len(), 3].iter().any(|len| day.get(..*len).is_some_and(|day| day.eq_ignore_ascii_case(wanted)))
    };
    let found = days.iter().position(|day| is_meant(day)).or_else(|| given(arguments, at).is_none().then_some(0));
    found.and_then(|day| i64::try_from(day).ok()).ok_or_else(|| {
        failure(ErrorCode::Location5439015, name, &format!("does not know the day of the week \"{wanted}\""))
    })
}

/// `$year` and its siblings.
pub(super) fn part(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let ms = date(arguments, 0).saturating_add(offset(operator.name(), arguments, 1)?);
    let (days, of_day) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    let (year, month, day) = civil(days);
    // Monday 0.
    let monday_based = (weekday(days) + 6) % 7;
    let thursday = days - monday_based + 3;
    let iso_year = civil(thursday).0;
    let part = match operator.op {
        Op::Year => year,
        Op::Month => month,
        Op::DayOfMonth => day,
        Op::DayOfYear => days - days_of(year, 1, 1) + 1,
        Op::DayOfWeek => weekday(days) + 1,
        // Weeks begin on Sundays; the days before the first one are week 0.
        Op::Week => (days - days_of(year, 1, 1) + 7 - weekday(days)) / 7,
        Op::IsoWeek => (thursday - days_of(iso_year, 1, 1)) / 7 + 1,
        Op::IsoWeekYear => return Ok(Datum::int64(iso_year)),
        Op::IsoDayOfWeek => monday_based + 1,
        Op::Hour => of_day / 3_600_000,
        Op::Minute => of_day / 60_000 % 60,
        Op::Second => of_day / 1000 % 60,
        _ => of_day % 1000,
    };
    Ok(Datum::int32(i32::try_from(part).unwrap_or_default()))
}

/// The start of the bin that a date lies in; bins are counted from the start of 2000.
pub(super) fn truncate(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let unit = unit(operator.name(), arguments, 1)?;
    let size = integer(arguments, 2, 1);
    if size < 1 {
        return Err(failure(ErrorCode::Location5439018, operator.name(), "needs a 'binSize' greater than 0"));
    }
    let offset = offset(operator.name(), arguments, 3)?;
    let first_day = first_day(operator.name(), arguments, 4)?;
    let bin = unit.index(date(arguments, 0).saturating_add(offset), first_day).div_euclid(size);
    let start = bin.checked_mul(size).and_then(|index| unit.start(index, first_day)?.checked_sub(offset));
    start.map(Datum::date).ok_or_else(|| overflow(operator))
}

impl Expr {
    /// How long each bin of a `$dateTrunc` of a field is, in milliseconds; `None` for another expression, and for bins that differ.
    pub(super) fn bin_ms(&self) -> Option<i64> {
        let Expr::Call(operator, arguments) = self else { return None };
        let [Expr::Field(Variable::Root, path), Expr::Constant(Some(unit)), size, zone, day] = arguments.as_slice()
        else {
            return None;
        };
        let is_constant = |expr: &Expr| matches!(expr, Expr::Constant(_));
        let size = match size {
            Expr::Constant(Some(size)) => size.view().as_integer()?,
            Expr::Constant(None) => 1,
            _ => return None,
        };
        let fits = operator.op == Op::DateTrunc && path.len() == 1 && is_constant(zone) && is_constant(day);
        Unit::named(unit.view().as_str()?)?.length_ms()?.checked_mul(size).filter(|_| fits)
    }
}

/// How many borders of a unit lie between two dates.
pub(super) fn difference(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let unit = unit(operator.name(), arguments, 2)?;
    let offset = offset(operator.name(), arguments, 3)?;
    let first_day = first_day(operator.name(), arguments, 4)?;
    let index = |at| unit.index(date(arguments, at).saturating_add(offset), first_day);
    index(1).checked_sub(index(0)).map(Datum::int64).ok_or_else(|| overflow(operator))
}

/// `$dateAdd` and `$dateSubtract`.
pub(super) fn shift(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let unit = unit(operator.name(), arguments, 1)?;
    let amount = integer(arguments, 2, 0);
    let offset = offset(operator.name(), arguments, 3)?;
    let amount = if operator.op == Op::DateSubtract { amount.checked_neg() } else { Some(amount) };
    let moved =
        amount.and_then(|amount| unit.shift(date(arguments, 0).checked_add(offset)?, amount)?.checked_sub(offset));
    moved.map(Datum::date).ok_or_else(|| overflow(operator))
}

fn overflow(operator: &Operator) -> Error {
    failure(ErrorCode::Location5166406, operator.name(), "goes beyond all dates")
}
