//! Dates by the clocks of time zones.

use bson::{DateTime, RawBson, rawbson};
use proptest::prelude::*;

use super::super::tests::{check, date, fails};
use super::super::{BoundExpr, Expr};
use crate::block::{Block, Column, ColumnData};
use crate::error::ErrorCode;
use crate::query::filter::samples::globals;
use crate::value::Doc;

/// A moment in RFC 3339.
fn at(text: &str) -> RawBson {
    RawBson::DateTime(DateTime::parse_rfc3339_str(text).unwrap())
}

#[track_caller]
fn moment(expr: RawBson, wanted: &str) {
    check(expr, at(wanted));
}

#[test]
fn parts_are_those_of_the_clocks_of_a_zone() {
    let part = |name: &str, zone: &str, time: &str| {
        let name = bson::raw::CString::try_from(name).unwrap();
        rawbson!({ (&*name): { "date": (at(time)), "timezone": zone } })
    };
    for (name, zone, time, wanted) in [
        ("$hour", "America/New_York", "2024-01-15T12:00:00Z", 7),
        ("$hour", "America/New_York", "2024-07-15T12:00:00Z", 8),
        ("$minute", "Asia/Kolkata", "2024-07-15T12:00:00Z", 30),
        ("$dayOfMonth", "Pacific/Auckland", "2024-07-15T12:00:00Z", 16),
        ("$year", "Pacific/Honolulu", "2024-01-01T09:59:59Z", 2023),
        ("$isoWeek", "Pacific/Honolulu", "2024-01-01T09:59:59Z", 52),
        ("$dayOfWeek", "Europe/Paris", "2024-03-30T23:30:00Z", 1),
        ("$hour", "Europe/Paris", "2024-03-31T01:00:00Z", 3),
        ("$hour", "Europe/Paris", "2024-03-31T00:59:59Z", 1),
    ] {
        check(part(name, zone, time), wanted);
    }
    fails(rawbson!({ "$hour": { "date": "$t", "timezone": "Europe/Nowhere" } }), ErrorCode::Location40485);
    fails(rawbson!({ "$hour": { "date": "$t", "timezone": 3 } }), ErrorCode::Location40517);
}

#[test]
fn bins_of_days_and_more_begin_when_the_clocks_say_so() {
    let bin = |time: &str, unit: &str, size: i32, zone: &str| rawbson!({ "$dateTrunc": { "date": (at(time)), "unit": unit, "binSize": size, "timezone": zone } });
    for (time, unit, size, zone, wanted) in [
        ("2024-03-10T12:00:00Z", "day", 1, "America/New_York", "2024-03-10T05:00:00Z"),
        ("2024-03-11T12:00:00Z", "day", 1, "America/New_York", "2024-03-11T04:00:00Z"),
        ("2024-03-11T03:59:59Z", "day", 1, "America/New_York", "2024-03-10T05:00:00Z"),
        ("2024-03-12T12:00:00Z", "week", 1, "America/New_York", "2024-03-10T05:00:00Z"),
        ("2024-03-12T12:00:00Z", "month", 1, "America/New_York", "2024-03-01T05:00:00Z"),
        ("2024-04-12T12:00:00Z", "month", 1, "America/New_York", "2024-04-01T04:00:00Z"),
        ("2024-04-12T12:00:00Z", "year", 1, "America/New_York", "2024-01-01T05:00:00Z"),
        // The clocks skip the first hour of this day.
        ("2018-11-04T12:00:00Z", "day", 1, "America/Sao_Paulo", "2018-11-04T03:00:00Z"),
        // And there the first hour comes twice.
        ("2023-11-05T05:30:00Z", "day", 1, "America/Havana", "2023-11-05T04:00:00Z"),
        ("2024-07-15T12:10:00Z", "hour", 1, "Asia/Kolkata", "2024-07-15T11:30:00Z"),
        // Six hours are six hours, counted from a midnight in winter.
        ("2024-07-01T12:00:00Z", "hour", 6, "America/New_York", "2024-07-01T11:00:00Z"),
        ("2024-01-01T12:00:00Z", "hour", 6, "America/New_York", "2024-01-01T11:00:00Z"),
    ] {
        moment(bin(time, unit, size, zone), wanted);
    }
    fails(bin("2024-01-01T00:00:00Z", "day", 1, "Europe/Nowhere"), ErrorCode::Location40485);
}

#[test]
fn days_are_added_by_the_clocks_and_hours_are_hours() {
    let moved = |name: &str, time: &str, unit: &str, amount: i32| {
        let name = bson::raw::CString::try_from(name).unwrap();
        rawbson!({ (&*name): { "startDate": (at(time)), "unit": unit, "amount": amount, "timezone": "America/New_York" } })
    };
    for (name, time, unit, amount, wanted) in [
        ("$dateAdd", "2024-03-09T17:00:00Z", "day", 1, "2024-03-10T16:00:00Z"),
        ("$dateAdd", "2024-03-09T17:00:00Z", "hour", 24, "2024-03-10T17:00:00Z"),
        ("$dateAdd", "2024-03-09T17:00:00Z", "week", 1, "2024-03-16T16:00:00Z"),
        ("$dateAdd", "2024-01-31T17:00:00Z", "month", 2, "2024-03-31T16:00:00Z"),
        ("$dateAdd", "2024-01-31T17:00:00Z", "month", 1, "2024-02-29T17:00:00Z"),
        // Half past two is skipped.
        ("$dateAdd", "2024-03-09T07:30:00Z", "day", 1, "2024-03-10T07:30:00Z"),
        // Half past one comes twice, and this is the second time.
        ("$dateAdd", "2024-11-03T06:30:00Z", "day", 0, "2024-11-03T06:30:00Z"),
        ("$dateAdd", "2024-11-02T05:30:00Z", "day", 1, "2024-11-03T05:30:00Z"),
        ("$dateSubtract", "2024-03-10T16:00:00Z", "day", 1, "2024-03-09T17:00:00Z"),
        ("$dateSubtract", "2024-03-10T16:00:00Z", "second", 1, "2024-03-10T15:59:59Z"),
    ] {
        moment(moved(name, time, unit, amount), wanted);
    }
}

#[test]
fn differences_count_the_days_of_the_clocks_and_the_hours_that_have_passed() {
    for (start, end, unit, zone, wanted) in [
        ("2024-03-10T05:00:00Z", "2024-03-11T04:00:00Z", "day", "America/New_York", 1),
        ("2024-03-10T05:00:00Z", "2024-03-11T03:59:59Z", "day", "America/New_York", 0),
        ("2024-03-10T05:00:00Z", "2024-03-11T04:00:00Z", "hour", "America/New_York", 23),
        ("2024-03-10T06:30:00Z", "2024-03-10T07:30:00Z", "hour", "America/New_York", 1),
        ("2024-03-10T06:30:00Z", "2024-03-10T07:30:00Z", "minute", "America/New_York", 60),
        ("2024-11-03T05:30:00Z", "2024-11-03T06:30:00Z", "hour", "America/New_York", 1),
        ("2024-11-03T06:30:00Z", "2024-11-03T05:30:00Z", "second", "America/New_York", -3600),
        ("2024-07-15T11:29:00Z", "2024-07-15T11:30:00Z", "hour", "Asia/Kolkata", 1),
        ("2023-12-31T18:29:59Z", "2023-12-31T18:30:00Z", "year", "Asia/Kolkata", 1),
        ("2024-03-10T04:59:00Z", "2024-03-10T05:00:00Z", "week", "America/New_York", 1),
    ] {
        let options = rawbson!({ "startDate": (at(start)), "endDate": (at(end)), "unit": unit, "timezone": zone });
        check(rawbson!({ "$dateDiff": options }), i64::from(wanted));
    }
}

proptest! {
    #[test]
    fn bins_of_a_column_are_those_of_its_values(
        zone in prop::sample::select(vec!["UTC", "+05:45", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca"]),
        unit in prop::sample::select(vec!["millisecond", "minute", "hour", "day", "week", "month", "quarter", "year"]),
        size in 1..4_i32,
        start in 0..1_700_000_000_000_i64,
        steps in prop::collection::vec(-3i64<<26..5i64<<26, 100),
    ) {
        let mut ms = start;
        let times: Vec<i64> = steps.iter().map(|step| { ms += step / (1 + step.rem_euclid(7).pow(6)); ms }).collect();
        let expr = |source: RawBson| {
            bson::rawdoc! { "$dateTrunc": { "date": source, "unit": unit, "binSize": size, "timezone": zone, "startOfWeek": "monday" } }
        };
        let mut block = Block::new(times.len());
        block.set_column("t", Column::new(ColumnData::Date(times.clone()), None));
        let parsed = Expr::parse(Doc::parse(expr(RawBson::from("$t")).as_bytes()).unwrap().as_value(), &globals()).unwrap();
        let found = BoundExpr::new(parsed, globals()).column(&block).unwrap();
        for (row, ms) in times.iter().enumerate() {
            let alone = Expr::parse(Doc::parse(expr(date(*ms)).as_bytes()).unwrap().as_value(), &globals()).unwrap();
            let Expr::Constant(Some(wanted)) = alone else { panic!("not folded") };
            let mut scratch = Vec::new();
            prop_assert_eq!(found.value(row, &mut scratch), Some(wanted.view()), "{} {} {}", ms, unit, zone);
        }
    }
}
