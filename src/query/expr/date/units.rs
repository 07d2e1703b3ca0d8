//! Dates in a time zone: their fields, `$dateTrunc`, `$dateDiff`, `$dateAdd`, `$dateSubtract`.

use std::ops::Range;

use super::super::arguments::{Arguments, Want::*, argument, date, failure, integer, text};
use super::super::datum::{Datum, is_nullish};
use super::super::globals::Globals;
use super::super::operators::{Binds, Names, Op, Operator, Wants, asking, names};
use super::super::tree::{Expr, Variable};
use super::calendar::{DAY_MS, START_OF_2000_MS, TimeUnit, civil, days_of, weekday};
use super::zone::Zone;
use crate::error::ErrorCode::*;
use crate::error::{Error, Result};
use crate::value::{OwnedValue, Value};

static PART: Names = names(&["date", "timezone"], 1, 1, Binds::Nothing, &[Location40535, Location40535, Location40539]);
static TRUNC: Names = names(
    &["date", "unit", "binSize", "timezone", "startOfWeek"],
    2,
    0,
    Binds::Nothing,
    &[Location5439007, Location5439008, Location5439009],
);
static DIFF: Names = names(
    &["startDate", "endDate", "unit", "timezone", "startOfWeek"],
    3,
    0,
    Binds::Nothing,
    &[Location5166301, Location5166302, Location5166303],
);
static SHIFT: Names = names(
    &["startDate", "unit", "amount", "timezone"],
    3,
    0,
    Binds::Nothing,
    &[Location5166400, Location5166401, Location5166402],
);

pub(super) const PART_WANTS: Wants = &[(Date, Location16006), (Text, Location40517)];
const TRUNC_WANTS: Wants = &[
    (Date, Location5439012),
    (Text, Location5439013),
    (Whole, Location5439017),
    (Text, Location40517),
    (Text, Location5439015),
];
pub(super) const DIFF_WANTS: Wants = &[
    (Date, Location5166307),
    (Date, Location5166307),
    (Text, Location5439013),
    (Text, Location40517),
    (Text, Location5439015),
];
pub(super) const SHIFT_WANTS: Wants =
    &[(Date, Location5166403), (Text, Location5439013), (Whole, Location5166405), (Text, Location40517)];

const fn part_named(op: Op, name: &'static str) -> Operator {
    asking(op, name, &PART, PART_WANTS, part)
}

pub(super) static TABLE: &[Operator] = &[
    part_named(Op::Year, "$year"),
    part_named(Op::Month, "$month"),
    part_named(Op::DayOfMonth, "$dayOfMonth"),
    part_named(Op::DayOfYear, "$dayOfYear"),
    part_named(Op::DayOfWeek, "$dayOfWeek"),
    part_named(Op::Week, "$week"),
    part_named(Op::IsoWeek, "$isoWeek"),
    part_named(Op::IsoWeekYear, "$isoWeekYear"),
    part_named(Op::IsoDayOfWeek, "$isoDayOfWeek"),
    part_named(Op::Hour, "$hour"),
    part_named(Op::Minute, "$minute"),
    part_named(Op::Second, "$second"),
    part_named(Op::Millisecond, "$millisecond"),
    asking(Op::DateTrunc, "$dateTrunc", &TRUNC, TRUNC_WANTS, truncate),
    asking(Op::DateDiff, "$dateDiff", &DIFF, DIFF_WANTS, difference),
    asking(Op::DateAdd, "$dateAdd", &SHIFT, SHIFT_WANTS, shift),
    asking(Op::DateSubtract, "$dateSubtract", &SHIFT, SHIFT_WANTS, shift),
];

fn unit(name: &str, arguments: Arguments<'_, '_>, at: usize) -> Result<TimeUnit> {
    let unit = text(arguments, at);
    TimeUnit::named(unit)
        .ok_or_else(|| failure(FailedToParse, name, &format!("has an unknown time unit value: {unit}")))
}

/// The weekday in an argument, with Sunday as 0, which is also the default.
fn first_day(name: &str, arguments: Arguments<'_, '_>, at: usize) -> Result<i64> {
    let wanted = text(arguments, at);
    let days = ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
    let is_meant = |day: &str| {
        [day.len(), 3].iter().any(|len| day.get(..*len).is_some_and(|day| day.eq_ignore_ascii_case(wanted)))
    };
    let found = days.iter().position(|day| is_meant(day)).or_else(|| argument(arguments, at).is_none().then_some(0));
    found
        .and_then(|day| i64::try_from(day).ok())
        .ok_or_else(|| failure(Location5439015, name, &format!("does not know the day of the week \"{wanted}\"")))
}

/// `$year` and its siblings.
fn part(operator: &Operator, arguments: Arguments<'_, '_>, globals: &Globals) -> Result<Datum<'static>> {
    let ms = Zone::of(operator.name(), arguments, 1, globals)?.local(date(arguments, 0));
    let part = place_of_part(operator).and_then(|place| part_at(ms, place)).unwrap_or_default();
    Ok(match operator.op {
        Op::IsoWeekYear => Datum::int64(part),
        _ => Datum::int32(i32::try_from(part).unwrap_or_default()),
    })
}

/// The place in `parts` of the field that an operator gives; `None` for other operators.
pub(super) fn place_of_part(operator: &Operator) -> Option<usize> {
    let place = (operator.op as usize).checked_sub(Op::Year as usize)?;
    (operator.op as usize <= Op::Millisecond as usize).then_some(place)
}

/// The field of a date at a place in `parts`.
pub(super) fn part_at(ms: i64, place: usize) -> Option<i64> {
    // The time of day needs no calendar.
    match place.checked_sub(9) {
        Some(place) => time_parts(ms.rem_euclid(DAY_MS)).get(place).copied(),
        None => parts(ms).get(place).copied(),
    }
}

/// Hour, minute, second and millisecond.
pub(super) fn time_parts(of_day: i64) -> [i64; 4] {
    [of_day / 3_600_000, of_day / 60_000 % 60, of_day / 1000 % 60, of_day % 1000]
}

/// The fields of a date, in the order of the operators.
pub fn parts(ms: i64) -> [i64; 13] {
    let (days, of_day) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    let (year, month, day) = civil(days);
    // Monday is 0.
    let monday_based = (weekday(days) + 6) % 7;
    let thursday = days - monday_based + 3;
    let iso_year = civil(thursday).0;
    let first = days_of(year, 1, 1);
    let [hour, minute, second, millisecond] = time_parts(of_day);
    [
        year,
        month,
        day,
        days - first + 1,
        weekday(days) + 1,
        // Weeks begin on Sundays; days before the first Sunday are week 0.
        (days - first + 7 - weekday(days)) / 7,
        (thursday - days_of(iso_year, 1, 1)) / 7 + 1,
        iso_year,
        monday_based + 1,
        hour,
        minute,
        second,
        millisecond,
    ]
}

/// The bins of `$dateTrunc`. They are counted from the start of 2000 in local time. Bins of hours and shorter units
/// have a fixed length; those of days and longer end when local clocks say so.
pub(super) struct Bins {
    unit: TimeUnit,
    size: i64,
    pub(super) zone: Zone,
    first_day: i64,
}

impl Bins {
    fn new(operator: &Operator, arguments: Arguments<'_, '_>, globals: &Globals) -> Result<Bins> {
        let unit = unit(operator.name(), arguments, 1)?;
        let size = integer(arguments, 2, 1);
        if size < 1 {
            return Err(failure(Location5439018, operator.name(), "needs a 'binSize' greater than 0"));
        }
        let mut zone = Zone::of(operator.name(), arguments, 3, globals)?;
        if let Some(of_anchor) = unit.is_exact().then(|| zone.utc(START_OF_2000_MS)).flatten() {
            zone = Zone::Fixed(START_OF_2000_MS - of_anchor);
        }
        Ok(Bins { unit, size, zone, first_day: first_day(operator.name(), arguments, 4)? })
    }

    fn is_in_fixed_zone(&self) -> bool {
        matches!(self.zone, Zone::Fixed(_))
    }

    /// The bins of an operator whose other arguments are constant. For a field of a date, the longest bins in which it
    /// stays the same. `None` if values must be evaluated one by one.
    fn of_constants(operator: &Operator, arguments: &[Expr], globals: &Globals) -> Option<Bins> {
        let mut values = vec![None];
        for argument in arguments.get(1..)? {
            values.push(match argument {
                Expr::Constant(value) => value.as_ref().map(OwnedValue::view),
                _ => return None,
            });
        }
        Bins::of_values(operator, &values, globals)
    }

    /// The same for the values of the other arguments, in their positions.
    pub(super) fn of_values(operator: &Operator, values: &[Option<Value<'_>>], globals: &Globals) -> Option<Bins> {
        if values.iter().any(|value| value.is_some() && is_nullish(*value)) {
            return None;
        }
        let unit = match operator.op {
            Op::DateTrunc => None,
            Op::Year => Some(TimeUnit::Months(12)),
            Op::Month => Some(TimeUnit::Months(1)),
            Op::Hour => Some(TimeUnit::Milliseconds(3_600_000)),
            Op::Minute => Some(TimeUnit::Milliseconds(60_000)),
            Op::DayOfMonth | Op::DayOfYear | Op::DayOfWeek | Op::Week => Some(TimeUnit::Milliseconds(DAY_MS)),
            Op::IsoWeek | Op::IsoWeekYear | Op::IsoDayOfWeek => Some(TimeUnit::Milliseconds(DAY_MS)),
            _ => return None,
        };
        let wants = if unit.is_some() { PART_WANTS } else { TRUNC_WANTS };
        let mut checked = values.iter().zip(wants).skip(1);
        if !checked.all(|(value, (want, code))| value.is_none() || want.check("", 0, *value, *code).is_ok()) {
            return None;
        }
        match unit {
            Some(unit) => Some(Bins { unit, size: 1, zone: Zone::of("", values, 1, globals).ok()?, first_day: 0 }),
            None => Bins::new(operator, values, globals).ok(),
        }
    }

    /// The number of a moment's bin, the zone's offset there, and a range around the moment without a clock change.
    fn index(&self, ms: i64) -> (i64, i64, Range<i64>) {
        let (offset, around) = self.zone.span(ms);
        (self.unit.index(ms.saturating_add(offset), self.first_day).div_euclid(self.size), offset, around)
    }

    /// True if all moments in a range lie in one bin. Clocks that are set back may show the previous day again, so
    /// checking both ends is not enough: between two clock changes, local time never goes back.
    fn holds(&self, first_ms: i64, last_ms: i64) -> bool {
        let (bin, _, mut around) = self.index(first_ms);
        loop {
            let end_ms = last_ms.min(around.end.saturating_sub(1));
            if !around.contains(&end_ms) || self.index(end_ms).0 != bin {
                return false;
            }
            if end_ms == last_ms {
                return true;
            }
            let (next, _, behind) = self.index(around.end);
            if next != bin || behind.end <= around.end {
                return false;
            }
            around = behind;
        }
    }

    /// The same for bins of a fixed length in a zone with a fixed offset, for moments and bins that cannot overflow.
    fn plain_bin(&self, ms: i64) -> Option<(i64, Range<i64>)> {
        const NEAR_MS: i64 = 1 << 52;
        let (TimeUnit::Milliseconds(len), Zone::Fixed(offset)) = (self.unit, &self.zone) else { return None };
        if self.size > NEAR_MS / DAY_MS || !(-NEAR_MS..NEAR_MS).contains(&ms) {
            return None;
        }
        let len = len.wrapping_mul(self.size);
        let rest = (ms + offset - START_OF_2000_MS) % len;
        let start = ms - if rest < 0 { rest + len } else { rest };
        Some((start, start..start + len))
    }

    /// The start of a moment's bin, and a range of moments in that bin; `None` beyond all dates.
    pub(super) fn bin(&self, ms: i64) -> Option<(i64, Range<i64>)> {
        if let Some(plain) = self.plain_bin(ms) {
            return Some(plain);
        }
        let (index, offset, around) = self.index(ms);
        let border = |index: i64| self.unit.start(index.checked_mul(self.size)?, self.first_day);
        let local_ms = border(index)?;
        // With the offset around it: if clocks go back across midnight, a day begins twice.
        let end = border(index.saturating_add(1)).map_or(ms, |end_ms| end_ms.saturating_sub(offset));
        let start = local_ms.saturating_sub(offset);
        Some((self.zone.utc(local_ms)?, around.start.max(start)..around.end.min(end)))
    }
}

fn truncate(operator: &Operator, arguments: Arguments<'_, '_>, globals: &Globals) -> Result<Datum<'static>> {
    let bins = Bins::new(operator, arguments, globals)?;
    bins.bin(date(arguments, 0)).map(|(start, _)| Datum::date(start)).ok_or_else(|| overflow(operator))
}

/// True if an expression is the same for all documents that differ only in `field`, a date within `span` (both ends
/// included): the field occurs only in operators that are constant within a bin, and all of the span lies in one.
#[inline(never)]
pub fn is_alike(expr: &Expr, globals: &Globals, field: &str, span: (i64, i64)) -> bool {
    let is_alike = |expr: &Expr| is_alike(expr, globals, field, span);
    match expr {
        Expr::Constant(_) => true,
        Expr::Field(Variable::Bound(_) | Variable::Outer(_), _) => true,
        Expr::Field(Variable::Root, path) => path.first().is_some_and(|name| **name != *field),
        Expr::Object(fields) => fields.iter().all(|(_, field)| is_alike(field)),
        Expr::Array(items) => items.iter().all(is_alike),
        Expr::Call(operator, arguments) => match arguments.first() {
            Some(Expr::Field(Variable::Root, path)) if matches!(path.as_slice(), [name] if **name == *field) => {
                Bins::of_constants(operator, arguments, globals).is_some_and(|bins| bins.holds(span.0, span.1))
            }
            _ => arguments.iter().all(is_alike),
        },
    }
}

/// True if the value of an expression only rises, or only falls, as the dates in `field` rise: the field plus or minus
/// constants, or its bins in a zone whose clocks never go back.
pub fn is_monotonic(expr: &Expr, globals: &Globals, field: &str) -> bool {
    let is_monotonic = |expr: &Expr| is_monotonic(expr, globals, field);
    match expr {
        Expr::Field(Variable::Root, path) => matches!(path.as_slice(), [name] if **name == *field),
        Expr::Call(operator, arguments) if matches!(operator.op, Op::Add | Op::Subtract) => {
            let mut others = arguments.iter().filter(|argument| !matches!(argument, Expr::Constant(_)));
            others.next().is_some_and(is_monotonic) && others.next().is_none()
        }
        Expr::Call(operator, arguments) if operator.op == Op::DateTrunc => {
            arguments.first().is_some_and(is_monotonic)
                && Bins::of_constants(operator, arguments, globals).is_some_and(|bins| bins.is_in_fixed_zone())
        }
        _ => false,
    }
}

/// How much later than the date in `field` the value of an expression may be, if it is that date, or where its bin begins. A bin begins no later than the
/// moments in it, but where clocks change twice within a day, the search for its begin may find the later one. No zone is known to need that day.
#[inline(never)]
pub fn bin_slack_ms(expr: &Expr, globals: &Globals, field: &str) -> Option<i64> {
    match expr {
        Expr::Field(..) => is_monotonic(expr, globals, field).then_some(0),
        Expr::Call(operator, arguments) if operator.op == Op::DateTrunc => {
            let date = arguments.first().filter(|date| matches!(date, Expr::Field(..)))?;
            let bins =
                Bins::of_constants(operator, arguments, globals).filter(|_| is_monotonic(date, globals, field))?;
            Some(if bins.is_in_fixed_zone() { 0 } else { DAY_MS })
        }
        _ => None,
    }
}

fn difference(operator: &Operator, arguments: Arguments<'_, '_>, globals: &Globals) -> Result<Datum<'static>> {
    let borders = Borders::new(operator, arguments, globals)?;
    let between = borders.between(&borders.place(date(arguments, 0)), &borders.place(date(arguments, 1)));
    between.map(Datum::int64).ok_or_else(|| overflow(operator))
}

/// What `$dateDiff` counts: boundaries of a unit in local time.
pub(super) struct Borders {
    unit: TimeUnit,
    zone: Zone,
    first_day: i64,
}

/// Where a moment lies between the borders.
pub(super) struct PlaceInUnits {
    /// The number of its unit.
    index: i64,
    /// The offset from UTC.
    offset: i64,
    /// Moments with the same number and offset.
    pub same: Range<i64>,
}

impl Borders {
    /// The borders of an operator; its first two arguments are not read.
    pub(super) fn new(operator: &Operator, arguments: Arguments<'_, '_>, globals: &Globals) -> Result<Borders> {
        let unit = unit(operator.name(), arguments, 2)?;
        let zone = Zone::of(operator.name(), arguments, 3, globals)?;
        Ok(Borders { unit, zone, first_day: first_day(operator.name(), arguments, 4)? })
    }

    /// Where a moment lies between the borders.
    pub(super) fn place(&self, at_ms: i64) -> PlaceInUnits {
        let (offset, around) = self.zone.span(at_ms);
        let local_ms = at_ms.saturating_add(offset);
        let unit_ms = self.unit.length_ms().map_or(DAY_MS, |len| len.min(DAY_MS));
        let rest = local_ms.rem_euclid(unit_ms);
        let (start, end) = (at_ms.saturating_sub(rest), at_ms.saturating_add(unit_ms - rest));
        let same = around.start.max(start)..around.end.min(end);
        PlaceInUnits { index: self.unit.index(local_ms, self.first_day), offset, same }
    }

    /// The number of boundaries between two dates; `None` if it has more than 64 bits. Hours that clocks skip do not
    /// count; repeated ones do.
    pub(super) fn between(&self, start: &PlaceInUnits, end: &PlaceInUnits) -> Option<i64> {
        let changed = match self.unit.length_ms() {
            Some(len) if self.unit.is_exact() => (end.offset - start.offset) / len,
            _ => 0,
        };
        end.index.checked_sub(start.index).and_then(|borders| borders.checked_sub(changed))
    }
}

/// `$dateAdd` and `$dateSubtract`; days and longer units in local time.
fn shift(operator: &Operator, arguments: Arguments<'_, '_>, globals: &Globals) -> Result<Datum<'static>> {
    let unit = unit(operator.name(), arguments, 1)?;
    let (from, amount) = (date(arguments, 0), integer(arguments, 2, 0));
    let zone = Zone::of(operator.name(), arguments, 3, globals)?;
    let amount = if operator.op == Op::DateSubtract { amount.checked_neg() } else { Some(amount) };
    let moved = amount.and_then(|amount| match amount {
        0 => Some(from),
        _ if unit.is_exact() => unit.shift(from, amount),
        _ => zone.utc(unit.shift(from.checked_add(zone.offset(from))?, amount)?),
    });
    moved.map(Datum::date).ok_or_else(|| overflow(operator))
}

fn overflow(operator: &Operator) -> Error {
    failure(Location5166406, operator.name(), "gives a date out of range")
}
