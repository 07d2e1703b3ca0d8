//! Converts dates to and from their fields: `$dateToParts`, `$dateFromParts`, `$tsSecond`, `$tsIncrement`.

use super::super::arguments::{Arguments, Want::*, argument, date, failure};
use super::super::datum::{Datum, container};
use super::super::globals::Globals;
use super::super::operators::{Binds, Names, Op, Operator, Wants, asking, names, null_in};
use super::calendar::{days_of, weekday};
use super::units::{self, parts};
use super::zone::Zone;
use crate::error::ErrorCode::*;
use crate::error::Result;
use crate::value::{DocWriter, Kind, Number, Value};

static TO_PARTS: Names =
    names(&["date", "timezone", "iso8601"], 1, 0, Binds::Nothing, &[Location40524, Location40520, Location40522]);
static FROM_PARTS: Names = names(
    &[
        "year",
        "month",
        "day",
        "hour",
        "minute",
        "second",
        "millisecond",
        "timezone",
        "isoWeekYear",
        "isoWeek",
        "isoDayOfWeek",
    ],
    0,
    0,
    Binds::Nothing,
    &[Location40519, Location40518],
);
const TO_PARTS_WANTS: Wants = &[(Date, Location16006), (Text, Location40517), (Any, InternalError)];
const PART: (crate::query::expr::arguments::Want, crate::error::ErrorCode) = (Whole, Location40515);
const FROM_PARTS_WANTS: Wants = &[PART, PART, PART, PART, PART, PART, PART, (Text, Location40517), PART, PART, PART];
/// The calendar fields with their positions in `date::parts`; those of the time of day follow in both.
const CALENDAR: [(&str, usize); 7] =
    [("year", 0), ("month", 1), ("day", 2), ("hour", 9), ("minute", 10), ("second", 11), ("millisecond", 12)];
const ISO: [(&str, usize); 3] = [("isoWeekYear", 7), ("isoWeek", 6), ("isoDayOfWeek", 8)];

pub(super) static TABLE: &[Operator] = &[
    asking(Op::More, "$dateToParts", &TO_PARTS, TO_PARTS_WANTS, to_parts),
    asking(Op::More, "$dateFromParts", &FROM_PARTS, FROM_PARTS_WANTS, from_parts),
    null_in(Op::More, "$tsSecond", &[(Any, InternalError)], |_, a| {
        stamp(a)
            .map(|bits| bits >> 32)
            .ok_or_else(|| failure(Location5687301, "$tsSecond", "needs a timestamp"))
            .map(long)
    }),
    null_in(Op::More, "$tsIncrement", &[(Any, InternalError)], |_, a| {
        let increment = stamp(a).map(|bits| bits & 0xffff_ffff);
        increment.ok_or_else(|| failure(Location5687302, "$tsIncrement", "needs a timestamp")).map(long)
    }),
];

fn stamp(arguments: Arguments<'_, '_>) -> Option<u64> {
    argument(arguments, 0).and_then(Value::as_timestamp)
}

fn long(bits: u64) -> Datum<'static> {
    Datum::int64(bits.cast_signed())
}

fn to_parts(operator: &Operator, arguments: Arguments<'_, '_>, globals: &Globals) -> Result<Datum<'static>> {
    let by_week = match argument(arguments, 2).map(Value::as_bool) {
        None => false,
        Some(Some(by_week)) => by_week,
        Some(None) => return Err(failure(Location40521, operator.name(), "needs a boolean as its iso8601")),
    };
    let all = parts(Zone::of(operator.name(), arguments, 1, globals)?.local(date(arguments, 0)));
    let mut writer = DocWriter::new();
    let (calendar, time) = CALENDAR.split_at_checked(3).unwrap_or_default();
    for (name, at) in (if by_week { &ISO } else { calendar }).iter().chain(time) {
        writer.int32(name, all.get(*at).and_then(|part| i32::try_from(*part).ok()).unwrap_or_default());
    }
    Ok(container(Kind::Object, writer))
}

/// The names of the fields that `$dateToParts` gives.
pub fn part_names() -> impl Iterator<Item = &'static str> {
    CALENDAR.iter().map(|(name, _)| *name)
}

/// The operator that gives a field of what `operator` gives, if that is `$dateToParts`. Both fail for the same arguments.
pub fn part_of(operator: &Operator, by_week: bool, field: &str) -> Option<&'static Operator> {
    if operator.name() != "$dateToParts" {
        return None;
    }
    let (calendar, time) = CALENDAR.split_at_checked(3)?;
    let all = (if by_week { &ISO } else { calendar }).iter().chain(time);
    let (_, place) = all.into_iter().find(|(name, _)| *name == field)?;
    // As an operator, the year of a week is an int64.
    units::TABLE.get(*place).filter(|operator| operator.op != Op::IsoWeekYear)
}

/// Months, days and smaller fields may be any number, and carry over.
fn from_parts(operator: &Operator, arguments: Arguments<'_, '_>, globals: &Globals) -> Result<Datum<'static>> {
    let refuse = |code, problem: &str| Err(failure(code, operator.name(), problem));
    let is_given = |places: [usize; 3]| places.map(|at| argument(arguments, at).is_some());
    let (calendar, by_week) = (is_given([0, 1, 2]), is_given([8, 9, 10]));
    match (calendar, by_week) {
        ([true, ..], [false, false, false]) | ([false, false, false], [true, ..]) => {}
        ([true, ..], _) => return refuse(Location40489, "cannot combine a year with weeks"),
        (_, [true, ..]) => return refuse(Location40525, "cannot combine weeks with months"),
        _ => return refuse(Location40516, "needs a year or an isoWeekYear"),
    }
    let part = |at: usize, otherwise: i64| {
        let part = argument(arguments, at).and_then(Number::of).and_then(Number::whole).unwrap_or(otherwise);
        let is_small = (-32_768..=32_767).contains(&part) || matches!(at, 0 | 5 | 6 | 8);
        let too_large = || failure(Location31034, operator.name(), "needs numbers below 32768");
        if is_small { Ok(part) } else { Err(too_large()) }
    };
    let days = if by_week.contains(&true) {
        let year = part(8, 0)?;
        if !(1..=9999).contains(&year) {
            return refuse(Location31095, "needs an isoWeekYear from 1 to 9999");
        }
        day_of_week(year, part(9, 1)?, part(10, 1)?)
    } else {
        let year = part(0, 0)?;
        if !(1..=9999).contains(&year) {
            return refuse(Location40523, "needs a year from 1 to 9999");
        }
        days_of(year, part(1, 1)?, part(2, 1)?)
    };
    let seconds = (days * 24 + part(3, 0)?) * 3600 + part(4, 0)? * 60;
    let local =
        part(5, 0)?.checked_add(seconds).and_then(|seconds| seconds.checked_mul(1000)?.checked_add(part(6, 0).ok()?));
    let zone = Zone::of(operator.name(), arguments, 7, globals)?;
    match local.and_then(|local| zone.utc(local)) {
        Some(ms) => Ok(Datum::date(ms)),
        None => refuse(Overflow, "gives a date out of range"),
    }
}

/// Days from the epoch to a day (Monday is 1) of a week of its year.
pub fn day_of_week(year: i64, week: i64, day: i64) -> i64 {
    // 4 January is always in the first week.
    let fourth = days_of(year, 1, 4);
    fourth - (weekday(fourth) + 6) % 7 + (week - 1) * 7 + day - 1
}
