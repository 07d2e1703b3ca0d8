//! Operators on a column of dates, with their other arguments constant. Consecutive dates often lie in the same hour or
//! day, so what is the same for all of it is computed once.

use std::ops::Range;

use kernels::texts::NewTexts;
use kernels::{runs, written};

use super::super::globals::Globals;
use super::super::operators::{Op, Operator};
use super::calendar::{TimeUnit, civil};
use super::text::{DateTexts, finest_unit, format_of, parts_of};
use super::units::{Bins, Borders, DIFF_WANTS, PART_WANTS, SHIFT_WANTS, part_at, place_of_part};
use super::zone::Zone;
use crate::block::VarData;
use crate::listed::IntoList;
use crate::value::{Number, Value};

/// The results for a column of dates.
pub enum DateCells {
    /// Int32s.
    Int32s(Vec<i32>),
    /// Int64s.
    Int64s(Vec<i64>),
    /// Dates in milliseconds since the epoch.
    Dates(Vec<i64>),
    /// Texts, and which of them each row has.
    Texts(Vec<u32>, VarData),
    /// A text of each row.
    Each(NewTexts),
}

/// The results of an operator on dates; `None` if it has none of its own for columns, or if constants are not as they must
/// be. `constants` has the other arguments in their positions, and `is_given` tells which of them were given. The rows whose
/// result is an error are added to `beyond`, ascending.
pub fn cells_of_dates(
    operator: &Operator,
    constants: &[Option<Value<'_>>],
    is_given: &dyn Fn(usize) -> bool,
    globals: &Globals,
    times: &[i64],
    beyond: &mut Vec<usize>,
) -> Option<DateCells> {
    match operator.op {
        Op::DateTrunc => {
            let bins = Bins::of_values(operator, constants, globals)?;
            Some(DateCells::Dates(by_bins(times, beyond, &|ms| bins.bin(ms), &|_, start| Some(start))))
        }
        Op::DateAdd | Op::DateSubtract => {
            let amount = Number::of(constants.get(2).copied().flatten()?)?.whole()?;
            shifted(operator, constants, &|_| Some(amount), globals, times, beyond).map(DateCells::Dates)
        }
        _ if operator.name() == "$dateToString" => texts(constants, is_given, globals, times, beyond),
        _ => {
            let place = place_of_part(operator)?;
            let zone = zone(constants, 1, PART_WANTS.get(1)?, globals)?;
            let part = |ms: i64, _| part_at(zone.local(ms), place);
            let cells = match Bins::of_values(operator, constants, globals) {
                Some(bins) => by_bins(times, beyond, &|ms| bins.bin(ms), &part),
                // Seconds and milliseconds.
                None => times.iter().map(|ms| part(*ms, 0).unwrap_or_default()).collect(),
            };
            Some(match operator.op {
                Op::IsoWeekYear => DateCells::Int64s(cells),
                _ => DateCells::Int32s(cells.into_iter().map(|part| i32::try_from(part).unwrap_or_default()).collect()),
            })
        }
    }
}

/// The time zone in an argument; `None` if it is no zone.
fn zone(
    constants: &[Option<Value<'_>>],
    at: usize,
    (want, code): &(super::super::arguments::Want, crate::error::ErrorCode),
    globals: &Globals,
) -> Option<Zone> {
    if let Some(given) = constants.get(at).copied().flatten() {
        want.check("", at, Some(given), *code).ok()?;
    }
    Zone::of("", constants, at, globals).ok()
}

/// Bins met lately, and what is the same for all dates in one. Dates that are out of order come back to them.
struct Recent {
    bins: Vec<(Range<i64>, i64)>,
    shift: u32,
    met: usize,
}

impl Recent {
    /// Room for the days of a year.
    const SLOTS: usize = 1024;

    fn new() -> Recent {
        Recent { bins: Vec::new(), shift: 0, met: 0 }
    }

    /// The bin of a date, and what is the same for it; `make` makes them if they are not known.
    #[inline(never)]
    fn get(&mut self, ms: i64, make: &mut dyn FnMut() -> Option<(i64, Range<i64>)>) -> Option<(i64, Range<i64>)> {
        let slot = ms >> self.shift;
        let place = |slot: i64| slot.cast_unsigned() as usize & (Self::SLOTS - 1);
        // A slot in which one bin ends and another begins holds either. The slot beside it holds the other.
        let near = [slot, slot.wrapping_sub(1), slot.wrapping_add(1)];
        let mut known = near.iter().filter_map(|slot| self.bins.get(place(*slot)));
        if let Some((bin, value)) = known.find(|(bin, _)| bin.contains(&ms)) {
            return Some((*value, bin.clone()));
        }
        let (value, bin) = make()?;
        self.met += 1;
        if let Some(slot) = self.bins.get_mut(place(slot)) {
            *slot = (bin.clone(), value);
        } else if self.met == 16 {
            // Dates in order never come back, and rarely get here. A bin has at least two slots.
            self.shift = bin.end.saturating_sub(bin.start).max(2).ilog2() - 1;
            self.bins = vec![(0..0, value); Self::SLOTS];
        }
        Some((value, bin))
    }
}

/// Calls `of` with the first date of each run of dates in a bin, and the start of the bin. A date beyond all dates has no
/// result.
fn by_bins(
    times: &[i64],
    beyond: &mut Vec<usize>,
    bin_of: &dyn Fn(i64) -> Option<(i64, Range<i64>)>,
    of: &dyn Fn(i64, i64) -> Option<i64>,
) -> Vec<i64> {
    let mut cells = Vec::with_capacity(times.len());
    let mut recent = Recent::new();
    while let Some(behind @ [ms, ..]) = times.get(cells.len()..) {
        match recent.get(*ms, &mut || bin_of(*ms).and_then(|(start, bin)| Some((of(*ms, start)?, bin)))) {
            Some((value, bin)) => {
                let count = runs::leading_within(behind, bin.start, bin.end).max(1);
                runs::fill(&mut cells, count, value);
            }
            None => {
                beyond.push(cells.len());
                cells.push(0);
            }
        }
    }
    cells
}

/// `$dateAdd` and `$dateSubtract`. `amount` takes a row; the unit and the time zone are constant.
pub fn shifted(
    operator: &Operator,
    constants: &[Option<Value<'_>>],
    amount: &dyn Fn(usize) -> Option<i64>,
    globals: &Globals,
    times: &[i64],
    beyond: &mut Vec<usize>,
) -> Option<Vec<i64>> {
    let constant = |at: usize| constants.get(at).copied().flatten();
    let unit = TimeUnit::named(constant(1)?.as_str()?)?;
    let zone = zone(constants, 3, SHIFT_WANTS.get(3)?, globals)?;
    let is_back = operator.op == Op::DateSubtract;
    let move_one = |ms: i64, amount: i64| match if is_back { amount.checked_neg()? } else { amount } {
        0 => Some(ms),
        amount if unit.is_exact() => unit.shift(ms, amount),
        amount => zone.utc(unit.shift(ms.checked_add(zone.offset(ms))?, amount)?),
    };
    let each = |(row, ms): (usize, &i64)| {
        amount(row).and_then(|amount| move_one(*ms, amount)).unwrap_or_else(|| {
            beyond.push(row);
            0
        })
    };
    Some(times.iter().enumerate().map(each).collect())
}

/// `$dateToString`. A text serves all dates that have it.
fn texts(
    constants: &[Option<Value<'_>>],
    is_given: &dyn Fn(usize) -> bool,
    globals: &Globals,
    times: &[i64],
    beyond: &mut Vec<usize>,
) -> Option<DateCells> {
    // A replacement for null is for the rows without a date, which are not seen here.
    if is_given(3) {
        return None;
    }
    let zone = zone(constants, 2, PART_WANTS.get(1)?, globals)?;
    let format = match constants.get(1).copied().flatten() {
        None => None,
        Some(format) => Some(format.as_str()?),
    };
    let format = format_of(format, &zone);
    let unit = finest_unit(format);
    if unit <= SECOND_MS && mostly_differ(times, unit) {
        let each = parts_of(format).and_then(|parts| {
            let local = times.iter().map(|ms| zone.local(*ms)).listed();
            written::dates(&local, &parts, &civil)
        });
        if let Some(each) = each {
            return Some(DateCells::Each(each));
        }
    }
    let (mut index, mut found) = (Vec::with_capacity(times.len()), VarData::default());
    let mut written = DateTexts::new(&zone, format);
    let (mut recent, mut bin, mut place) = (Recent::new(), 0..0, 0);
    for (row, ms) in times.iter().enumerate() {
        if !bin.contains(ms) {
            let made = recent.get(*ms, &mut || {
                found.push(written.of(*ms).ok()?);
                Some((found.len() as i64 - 1, zone.bin_around(*ms, unit)))
            });
            let (number, around) = made.unwrap_or_else(|| {
                beyond.push(row);
                (0, 0..0)
            });
            (place, bin) = (u32::try_from(number).unwrap_or(u32::MAX), around);
        }
        index.push(place);
    }
    if found.is_empty() {
        found.push(b"");
    }
    Some(DateCells::Texts(index, found))
}

const SECOND_MS: i64 = 1000;

/// True if most dates do not have the text of the date in front of them.
fn mostly_differ(times: &[i64], unit: i64) -> bool {
    let pairs = times.iter().zip(times.iter().skip(1));
    2 * pairs.filter(|(a, b)| a.div_euclid(unit) == b.div_euclid(unit)).count() < times.len()
}

/// The texts of dates, as `$toString` has them. `None` if a year is before 0 or after 9999.
pub fn iso_texts(times: &[i64]) -> Option<NewTexts> {
    written::dates(times, &parts_of(format_of(None, &Zone::Fixed(0)))?, &civil)
}

/// `$dateDiff` of two columns of dates; otherwise as `cells_of_dates`.
pub fn differences(
    operator: &Operator,
    constants: &[Option<Value<'_>>],
    globals: &Globals,
    starts: &[i64],
    ends: &[i64],
    beyond: &mut Vec<usize>,
) -> Option<Vec<i64>> {
    for ((at, value), (want, code)) in constants.iter().enumerate().zip(DIFF_WANTS).skip(2) {
        if value.is_some() {
            want.check("", at, *value, *code).ok()?;
        }
    }
    let borders = Borders::new(operator, constants, globals).ok()?;
    let [mut start, mut end] = [starts, ends].map(|times| borders.place(times.first().copied().unwrap_or_default()));
    let mut between = borders.between(&start, &end);
    let each = |(row, (start_ms, end_ms)): (usize, (&i64, &i64))| {
        let is_same = start.same.contains(start_ms) && end.same.contains(end_ms);
        if !is_same {
            for (place, at_ms) in [(&mut start, *start_ms), (&mut end, *end_ms)] {
                if !place.same.contains(&at_ms) {
                    *place = borders.place(at_ms);
                }
            }
            between = borders.between(&start, &end);
        }
        between.unwrap_or_else(|| {
            beyond.push(row);
            0
        })
    };
    Some(starts.iter().zip(ends).enumerate().map(each).collect())
}

#[cfg(test)]
mod tests {
    use super::super::super::tests::date;
    use super::super::tests::{bound, values};
    use bson::{RawBson, rawbson};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn differences_from_a_column_equal_those_from_its_values(
            zone in prop::sample::select(vec!["UTC", "+05:45", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca"]),
            unit in prop::sample::select(vec!["millisecond", "second", "minute", "hour", "day", "week", "month", "quarter", "year"]),
            from in 0..1_700_000_000_000_i64,
            start in 0..1_700_000_000_000_i64,
            steps in prop::collection::vec(-3i64<<26..5i64<<26, 40),
        ) {
            let mut ms = start;
            let times: Vec<i64> = steps.iter().map(|step| { ms += step / (1 + step.rem_euclid(7).pow(6)); ms }).collect();
            let times: Vec<i64> = times.iter().chain(times.iter().rev().step_by(2)).copied().collect();
            let expr = |start: RawBson, end: RawBson| {
                rawbson!({ "$dateDiff": { "startDate": start, "endDate": end, "unit": unit, "timezone": zone, "startOfWeek": "monday" } })
            };
            let (t, from) = (RawBson::from("$t"), date(from));
            let later = || rawbson!({ "$add": [(t.clone()), (1 << 27)] });
            let found = [(from.clone(), t.clone()), (t.clone(), from.clone()), (t.clone(), later())];
            let found = found.map(|(start, end)| values(&bound(expr(start, end)), times.clone()));
            for (row, ms) in times.iter().enumerate() {
                let (at, later) = (date(*ms), date(ms + (1 << 27)));
                let alone = [(from.clone(), at.clone()), (at.clone(), from.clone()), (at.clone(), later)];
                for ((start, end), found) in alone.into_iter().zip(&found) {
                    let alone = values(&bound(expr(start, end)), vec![*ms]);
                    prop_assert_eq!(&found[row], &alone[0], "{} {} {}", ms, unit, zone);
                }
            }
        }

        #[test]
        fn parts_and_texts_of_dates_out_of_order_equal_those_of_each_alone(
            zone in prop::sample::select(vec!["UTC", "+05:45", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia"]),
            start in -1i64<<42..1i64<<42,
            step in prop::sample::select(vec![1000_i64, 60_000, 3_600_000, 86_400_000, 700_000_000]),
            places in prop::collection::vec(0..80_i64, 150),
        ) {
            let times: Vec<i64> = places.iter().map(|place| start + place * step * 997 / 1000).collect();
            for name in ["$year", "$month", "$dayOfWeek", "$isoWeekYear", "$hour", "$minute", "$second"] {
                let name = bson::raw::CString::try_from(name).unwrap();
                let part = bound(rawbson!({ (&*name): { "date": "$t", "timezone": zone } }));
                for (ms, found) in times.iter().zip(values(&part, times.clone())) {
                    prop_assert_eq!(&found, &values(&part, vec![*ms])[0], "{} {}", ms, zone);
                }
            }
            for format in ["%Y-%m", "%G %V", "%Y-%m-%d", "%H:%M", "%d.%m.%Y %H:%M:%S", "%Y%%%LZ %S"] {
                let text = bound(rawbson!({ "$dateToString": { "date": "$t", "format": format, "timezone": zone } }));
                for (ms, found) in times.iter().zip(values(&text, times.clone())) {
                    prop_assert_eq!(&found, &values(&text, vec![*ms])[0], "{} {}", ms, zone);
                }
            }
        }
    }
}
