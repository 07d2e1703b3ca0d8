//! Date operators with time zones.

use bson::{DateTime, RawBson, rawbson};
use proptest::prelude::*;

use super::super::tests::{check, date, fails};
use super::super::{BoundExpr, Expr};
use super::fields::{Fields, iso_ms};
use super::zone::Zone;
use crate::block::{Block, Column, ColumnData};
use crate::error::ErrorCode;
use crate::query::expr::samples::globals;
use crate::value::{Doc, OwnedValue, Value};

/// A moment in RFC 3339.
fn at(text: &str) -> RawBson {
    RawBson::DateTime(DateTime::parse_rfc3339_str(text).unwrap())
}

#[track_caller]
fn moment(expr: RawBson, wanted: &str) {
    check(expr, at(wanted));
}

#[test]
fn date_parts_are_in_local_time() {
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
fn bins_of_days_and_longer_begin_in_local_time() {
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
        // On this day the first hour occurs twice.
        ("2023-11-05T05:30:00Z", "day", 1, "America/Havana", "2023-11-05T04:00:00Z"),
        ("2024-07-15T12:10:00Z", "hour", 1, "Asia/Kolkata", "2024-07-15T11:30:00Z"),
        // Bins of six hours are in elapsed time, counted from a midnight in winter.
        ("2024-07-01T12:00:00Z", "hour", 6, "America/New_York", "2024-07-01T11:00:00Z"),
        ("2024-01-01T12:00:00Z", "hour", 6, "America/New_York", "2024-01-01T11:00:00Z"),
    ] {
        moment(bin(time, unit, size, zone), wanted);
    }
    fails(bin("2024-01-01T00:00:00Z", "day", 1, "Europe/Nowhere"), ErrorCode::Location40485);
}

#[test]
fn days_are_added_in_local_time_and_hours_in_elapsed_time() {
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
        // Half past one occurs twice; this is the second one.
        ("$dateAdd", "2024-11-03T06:30:00Z", "day", 0, "2024-11-03T06:30:00Z"),
        ("$dateAdd", "2024-11-02T05:30:00Z", "day", 1, "2024-11-03T05:30:00Z"),
        ("$dateSubtract", "2024-03-10T16:00:00Z", "day", 1, "2024-03-09T17:00:00Z"),
        ("$dateSubtract", "2024-03-10T16:00:00Z", "second", 1, "2024-03-10T15:59:59Z"),
    ] {
        moment(moved(name, time, unit, amount), wanted);
    }
}

#[test]
fn date_diff_counts_local_days_and_elapsed_hours() {
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
    fn bins_of_a_column_equal_those_of_its_values(
        zone in prop::sample::select(vec!["UTC", "+05:45", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca"]),
        unit in prop::sample::select(vec!["millisecond", "minute", "hour", "day", "week", "month", "quarter", "year"]),
        size in 1..4_i32,
        start in 0..1_700_000_000_000_i64,
        steps in prop::collection::vec(-3i64<<26..5i64<<26, 100),
    ) {
        let mut ms = start;
        let times: Vec<i64> = steps.iter().map(|step| { ms += step / (1 + step.rem_euclid(7).pow(6)); ms }).collect();
        // Bins that came before come back.
        let times: Vec<i64> = times.iter().chain(times.iter().rev().step_by(2)).copied().collect();
        let expr = |source: RawBson| {
            bson::rawdoc! { "$dateTrunc": { "date": source, "unit": unit, "binSize": size, "timezone": zone, "startOfWeek": "monday" } }
        };
        let mut block = Block::new(times.len());
        block.set_column("t", Column::new(ColumnData::Date(times.clone()), None));
        let parsed = Expr::parse(Doc::parse(expr(RawBson::from("$t")).as_bytes()).unwrap().as_value(), &globals()).unwrap();
        let found = BoundExpr::new(parsed, globals()).column(&block).unwrap();
        for (row, ms) in times.iter().enumerate() {
            let alone = Expr::parse(Doc::parse(expr(date(*ms)).as_bytes()).unwrap().as_value(), &globals()).unwrap();
            let Expr::Constant(Some(wanted)) = alone else { panic!("not evaluated") };
            let mut scratch = Vec::new();
            prop_assert_eq!(found.value(row, &mut scratch), Some(wanted.view()), "{} {} {}", ms, unit, zone);
        }
    }
}

/// An expression, to be evaluated on rows.
pub(super) fn bound(expr: RawBson) -> BoundExpr {
    let doc = bson::rawdoc! { "x": expr };
    let value = Doc::parse(doc.as_bytes()).unwrap().get("x").unwrap();
    BoundExpr::new(Expr::parse(value, &globals()).unwrap(), globals())
}

/// Its values for the times `t`.
pub(super) fn values(expr: &BoundExpr, times: Vec<i64>) -> Vec<Option<OwnedValue>> {
    let mut block = Block::new(times.len());
    block.set_column("t", Column::new(ColumnData::Date(times), None));
    let column = expr.column(&block).unwrap();
    (0..column.len()).map(|row| column.value(row, &mut Vec::new()).map(Value::to_owned)).collect()
}

#[test]
fn equal_bins_at_both_ends_do_not_imply_one_bin_if_clocks_go_back_across_midnight() {
    // In this night, clocks in St. John's showed one minute of Sunday and then repeated the last hour of Saturday.
    let ms = |text: &str| DateTime::parse_rfc3339_str(text).unwrap().timestamp_millis();
    let (before, between, after) = (ms("2010-11-07T02:00:00Z"), ms("2010-11-07T02:30:30Z"), ms("2010-11-07T02:45:00Z"));
    let of_zone = |zone: &str| bound(rawbson!({ "$dateTrunc": { "date": "$t", "unit": "day", "timezone": zone } }));
    let day = of_zone("America/St_Johns");
    let bins = values(&day, vec![before, between, after]);
    assert!(bins[0] == bins[2] && bins[0] != bins[1]);
    // The result does not depend on the dates evaluated before.
    assert_eq!(
        values(&day, vec![after + 3_600_000, after, between, before]),
        [&bins[1], &bins[0], &bins[1], &bins[0]].map(Clone::clone)
    );
    assert!(!day.is_alike_between("t", before, after));
    assert!(day.is_alike_between("t", before, before + 60_000) && day.is_alike_between("t", between + 30_000, after));
    assert!(of_zone("UTC").is_alike_between("t", before, after));
}

#[test]
fn only_expressions_on_bins_are_alike_between_two_times() {
    let is_alike = |expr: RawBson| bound(expr).is_alike_between("t", 3_600_000, 3_601_000);
    for expr in [
        rawbson!({ "$dateTrunc": { "date": "$t", "unit": "hour", "binSize": 2, "timezone": "+05:45", "startOfWeek": "mon" } }),
        rawbson!({ "$dateToString": { "date": { "$dateTrunc": { "date": "$t", "unit": "day" } } } }),
        rawbson!({ "a": { "$year": "$t" }, "b": [{ "$hour": { "date": "$t", "timezone": "Asia/Kolkata" } }, "$m.t", 5] }),
        rawbson!({ "$add": ["$m", 1] }),
        rawbson!({ "$let": { "vars": { "v": { "$month": "$t" } }, "in": { "$add": ["$$v", 1] } } }),
    ] {
        assert!(is_alike(expr.clone()), "{expr:?}");
    }
    for expr in [
        rawbson!("$t"),
        rawbson!("$$ROOT"),
        rawbson!({ "$dateTrunc": { "date": "$t", "unit": "second" } }),
        rawbson!({ "$dateTrunc": { "date": "$t", "unit": "$u" } }),
        rawbson!({ "$dateTrunc": { "date": "$t", "unit": "fortnight" } }),
        rawbson!({ "$dateTrunc": { "date": "$t", "unit": "day", "timezone": "Europe/Nowhere" } }),
        rawbson!({ "$dateTrunc": { "date": "$t", "unit": "day", "timezone": "$t" } }),
        rawbson!({ "$dateTrunc": { "date": { "$add": ["$t", 1] }, "unit": "day" } }),
        rawbson!({ "$let": { "vars": { "v": "$t" }, "in": { "$month": "$$v" } } }),
        rawbson!({ "$subtract": ["$t", 1] }),
        rawbson!({ "$second": "$t" }),
        rawbson!({ "a": { "$year": "$t" }, "b": "$t" }),
    ] {
        assert!(!is_alike(expr.clone()), "{expr:?}");
    }
    // This terminates even at the limits of 64 bits.
    let day = bound(rawbson!({ "$dateTrunc": { "date": "$t", "unit": "day", "timezone": "Europe/London" } }));
    for (first, last) in [(i64::MIN, i64::MAX), (i64::MAX - 1, i64::MAX), (i64::MIN, i64::MIN + 1)] {
        assert!(!day.is_alike_between("t", first, last));
    }
}

proptest! {
    #[test]
    fn expressions_alike_between_two_times_are_equal_at_each_minute(
        zone in prop::sample::select(vec!["UTC", "+05:45", "America/St_Johns", "Australia/Lord_Howe", "Pacific/Apia", "America/Havana", "Africa/Casablanca"]),
        unit in prop::sample::select(vec!["minute", "hour", "day", "week", "month", "quarter", "year"]),
        part in prop::sample::select(vec!["$year", "$month", "$dayOfMonth", "$dayOfYear", "$dayOfWeek", "$week", "$isoWeek", "$isoWeekYear", "$isoDayOfWeek", "$hour", "$minute", "$second"]),
        size in 1..4_i32,
        at_change in any::<bool>(),
        (around, minutes, len) in (0..500_usize, -4000..300_i64, 0..13_u32),
    ) {
        // Near a clock change, or anywhere.
        let reference = jiff::tz::TimeZone::get(if zone.len() > 6 { zone } else { "Europe/Paris" }).unwrap();
        let mut changes = reference.following(jiff::Timestamp::UNIX_EPOCH).skip(around % 100).map(|change| change.timestamp().as_millisecond());
        let from = changes.next().filter(|_| at_change).unwrap_or(around as i64 * 3_000_000_000).div_euclid(60_000) + minutes;
        let count = 1 << len;
        let times: Vec<i64> = (from..from + count).map(|minute| minute * 60_000).collect();
        let (first, last) = (times[0], times[times.len() - 1]);
        let part = bson::raw::CString::try_from(part).unwrap();
        let bin = bound(rawbson!({ "$dateTrunc": { "date": "$t", "unit": unit, "binSize": size, "timezone": zone } }));
        let part = bound(rawbson!({ (&*part): { "date": "$t", "timezone": zone } }));
        let all_equal = |expr: &BoundExpr| values(expr, times.clone()).windows(2).all(|pair| pair[0] == pair[1]);
        prop_assert_eq!(bin.is_alike_between("t", first, last), all_equal(&bin), "{} {}", first, last);
        prop_assert!(!part.is_alike_between("t", first, last) || all_equal(&part), "{} {}", first, last);
    }
}

#[test]
fn dates_are_split_into_parts_and_built_from_parts() {
    let apart = |options: RawBson| rawbson!({ "$dateToParts": options });
    check(
        apart(rawbson!({ "date": "$t" })),
        rawbson!({ "year": 2023, "month": 11, "day": 14, "hour": 22, "minute": 13, "second": 20, "millisecond": 123 }),
    );
    check(
        apart(rawbson!({ "date": "$t", "iso8601": true, "timezone": "Asia/Tokyo" })),
        rawbson!({ "isoWeekYear": 2023, "isoWeek": 46, "isoDayOfWeek": 3, "hour": 7, "minute": 13, "second": 20, "millisecond": 123 }),
    );
    check(apart(rawbson!({ "date": "$n" })), RawBson::Null);
    check(apart(rawbson!({ "date": "$t", "iso8601": null })), RawBson::Null);
    fails(apart(rawbson!({ "date": "$t", "iso8601": 1 })), ErrorCode::Location40521);
    fails(apart(rawbson!("$t")), ErrorCode::Location40524);
    fails(apart(rawbson!({ "date": "$t", "x": 1 })), ErrorCode::Location40520);
    fails(apart(rawbson!({ "timezone": "UTC" })), ErrorCode::Location40522);
    fails(apart(rawbson!({ "date": "$s" })), ErrorCode::Location16006);

    let together = |parts: RawBson| rawbson!({ "$dateFromParts": parts });
    for (parts, wanted) in [
        (rawbson!({ "year": 2024 }), "2024-01-01T00:00:00Z"),
        (rawbson!({ "year": 2024, "month": 14, "day": 0, "hour": -1 }), "2025-01-30T23:00:00Z"),
        (rawbson!({ "year": 2024.0, "second": 100_000, "millisecond": 1_i64 }), "2024-01-02T03:46:40.001Z"),
        (rawbson!({ "year": 2024, "month": 7, "day": 4, "timezone": "America/New_York" }), "2024-07-04T04:00:00Z"),
        (
            rawbson!({ "year": 2024, "month": 3, "day": 10, "hour": 2, "minute": 30, "timezone": "America/New_York" }),
            "2024-03-10T07:30:00Z",
        ),
        (rawbson!({ "isoWeekYear": 2020, "isoWeek": 53, "isoDayOfWeek": 5 }), "2021-01-01T00:00:00Z"),
        (rawbson!({ "isoWeekYear": 2019 }), "2018-12-31T00:00:00Z"),
    ] {
        moment(together(parts), wanted);
    }
    check(together(rawbson!({ "year": 2024, "month": "$n" })), RawBson::Null);
    for (parts, code) in [
        (rawbson!({ "month": 2 }), ErrorCode::Location40516),
        (rawbson!({ "year": 2024, "isoWeek": 2 }), ErrorCode::Location40489),
        (rawbson!({ "isoWeekYear": 2024, "month": 2 }), ErrorCode::Location40525),
        (rawbson!({ "year": 0 }), ErrorCode::Location40523),
        (rawbson!({ "isoWeekYear": 10_000 }), ErrorCode::Location31095),
        (rawbson!({ "year": 2024, "month": 40_000 }), ErrorCode::Location31034),
        (rawbson!({ "year": 2024, "month": 1.5 }), ErrorCode::Location40515),
        (rawbson!({ "year": 2024, "week": 1 }), ErrorCode::Location40518),
        (rawbson!({ "year": 2024, "millisecond": i64::MAX, "second": 1 }), ErrorCode::Overflow),
        (rawbson!(2024), ErrorCode::Location40519),
    ] {
        fails(together(parts), code);
    }
    let stamp = RawBson::Timestamp(bson::Timestamp { time: u32::MAX, increment: 7 });
    check(rawbson!({ "$tsSecond": (stamp.clone()) }), i64::from(u32::MAX));
    check(rawbson!({ "$tsIncrement": stamp }), 7_i64);
    check(rawbson!({ "$tsSecond": "$absent" }), RawBson::Null);
    fails(rawbson!({ "$tsSecond": "$t" }), ErrorCode::Location5687301);
    fails(rawbson!({ "$tsIncrement": "$a" }), ErrorCode::Location5687302);
}

#[test]
fn dates_are_formatted() {
    let text = |options: RawBson| rawbson!({ "$dateToString": options });
    check(text(rawbson!({ "date": "$t" })), "2023-11-14T22:13:20.123Z");
    check(text(rawbson!({ "date": "$t", "timezone": "America/New_York" })), "2023-11-14T17:13:20.123");
    for (format, wanted) in [
        ("%Y/%m/%d %H:%M:%S,%L", "2023/11/14 17:13:20,123"),
        ("%j %U %u %V %w %G", "318 46 2 46 3 2023"),
        ("%z %Z", "-0500 -300"),
        ("%b %B %%", "Nov November %"),
        ("", ""),
        ("é%dé", "é14é"),
    ] {
        check(text(rawbson!({ "date": "$t", "timezone": "America/New_York", "format": format })), wanted);
    }
    check(text(rawbson!({ "date": "$t", "timezone": "+0430", "format": "%z %Z" })), "+0430 +270");
    check(text(rawbson!({ "date": "$t", "timezone": "+99:99", "format": "%z" })), "+10039");
    check(text(rawbson!({ "date": (date(-62_167_219_200_000)), "format": "%Y-%j" })), "0000-001");
    check(text(rawbson!({ "date": "$n", "onNull": "$s" })), "héllo");
    check(text(rawbson!({ "date": "$n" })), RawBson::Null);
    check(text(rawbson!({ "date": "$t", "format": null })), RawBson::Null);
    check(text(rawbson!({ "date": "$t", "timezone": "$absent" })), RawBson::Null);
    check(
        text(rawbson!({ "date": "$t", "onNull": { "$divide": ["$a", { "$subtract": ["$a", 5] }] }, "format": "%d" })),
        "14",
    );
    for (options, code) in [
        (rawbson!({ "date": "$t", "format": "%" }), ErrorCode::Location18535),
        (rawbson!({ "date": "$t", "format": "%q" }), ErrorCode::Location18536),
        (rawbson!({ "date": "$t", "format": 1 }), ErrorCode::Location18533),
        (rawbson!({ "date": (date(253_402_300_800_000)), "format": "%Y" }), ErrorCode::Location18537),
        (rawbson!({ "date": "$s", "format": "%Y" }), ErrorCode::Location16006),
        (rawbson!({ "date": "$t", "timezone": "Mars/Base" }), ErrorCode::Location40485),
        (rawbson!({ "format": "%Y" }), ErrorCode::Location18628),
        (rawbson!({ "date": "$t", "f": 1 }), ErrorCode::Location18534),
        (rawbson!("$t"), ErrorCode::Location18629),
    ] {
        fails(text(options), code);
    }
}

#[test]
fn date_strings_are_parsed_in_common_forms() {
    let read = |text: &str| rawbson!({ "$dateFromString": { "dateString": text } });
    for (text, wanted) in [
        ("2017-02-08T12:10:40.787", "2017-02-08T12:10:40.787Z"),
        ("2017-02-08T12:10:40.787Z", "2017-02-08T12:10:40.787Z"),
        ("2017-02-08T12:10:40.7871234+02:00", "2017-02-08T10:10:40.787Z"),
        ("2017-02-08 12:10", "2017-02-08T12:10:00Z"),
        ("2017-02-08", "2017-02-08T00:00:00Z"),
        ("2017-2-8", "2017-02-08T00:00:00Z"),
        ("2017/02/08", "2017-02-08T00:00:00Z"),
        ("2017-02", "2017-02-01T00:00:00Z"),
        ("2017-039", "2017-02-08T00:00:00Z"),
        ("2017-W06-3", "2017-02-08T00:00:00Z"),
        ("2017W06", "2017-02-06T00:00:00Z"),
        ("20170208", "2017-02-08T00:00:00Z"),
        ("20170208T121040Z", "2017-02-08T12:10:40Z"),
        ("20170208T1210", "2017-02-08T12:10:00Z"),
        ("20170208121040", "2017-02-08T12:10:40Z"),
        ("02/08/2017 1:05 pm", "2017-02-08T13:05:00Z"),
        ("8.2.2017 12am", "2017-02-08T00:00:00Z"),
        ("8 February 2017", "2017-02-08T00:00:00Z"),
        ("8-Feb-2017 12:10:40", "2017-02-08T12:10:40Z"),
        ("Feb 8th, 2017", "2017-02-08T00:00:00Z"),
        ("february 2017", "2017-02-01T00:00:00Z"),
        ("Wed, 08 Feb 2017 12:10:40 +0200", "2017-02-08T10:10:40Z"),
        ("Wed Feb 08 2017 12:10:40 GMT+0100 (Central European Standard Time)", "2017-02-08T11:10:40Z"),
        ("2017-07-08 12:00 America/New_York", "2017-07-08T16:00:00Z"),
        ("2017-07-08T24:00", "2017-07-09T00:00:00Z"),
        ("@1486555840", "2017-02-08T12:10:40Z"),
        ("@-1", "1969-12-31T23:59:59Z"),
        (" 2017-02-08 ", "2017-02-08T00:00:00Z"),
    ] {
        moment(read(text), wanted);
    }
    for text in [
        "",
        "today",
        "12:10",
        "2017",
        "2017-02-30",
        "2017-13-01",
        "2017-02-08T25:00",
        "2017-02-08T12:60",
        "2017-02-08T",
        "2017-02-08 12",
        "2017-02-08 noon",
        "Feb 8",
        "8 Febr 17",
        "13/13/2017",
        "2017-02-08T12:10:40.",
        "2017-W54",
        "2017-000",
        "é2017-02-08",
        "@x",
        "@1x",
        "2017-02-08 13:00 pm",
        "99999999999999999999",
    ] {
        fails(read(text), ErrorCode::ConversionFailure);
    }
}

#[test]
fn date_strings_are_parsed_by_a_format() {
    let read = |text: &str, format: &str| rawbson!({ "$dateFromString": { "dateString": text, "format": format } });
    for (text, format, wanted) in [
        ("06-15-2018", "%m-%d-%Y", "2018-06-15T00:00:00Z"),
        ("15 Jun 2018 at 7:05", "%d %b %Y at %H:%M", "2018-06-15T07:05:00Z"),
        ("December 1, 2018 23:59:58.007+0130", "%B %d, %Y %H:%M:%S.%L%z", "2018-12-01T22:29:58.007Z"),
        ("2018-06-15 -90", "%Y-%m-%d %Z", "2018-06-15T01:30:00Z"),
        ("2018W53.1", "%GW%V.%u", "2018-12-31T00:00:00Z"),
        ("2018 366", "%Y %j", "2019-01-01T00:00:00Z"),
        ("100%20180615", "100%%%Y%m%d", "2018-06-15T00:00:00Z"),
    ] {
        moment(read(text, format), wanted);
    }
    for (text, format) in [
        ("2018-06", "%Y-%m"),
        ("2018-06-15x", "%Y-%m-%d"),
        ("2018/06/15", "%Y-%m-%d"),
        ("2018-06-31", "%Y-%m-%d"),
        ("07:05", "%H:%M"),
    ] {
        fails(read(text, format), ErrorCode::ConversionFailure);
    }
    fails(read("2018", "%q"), ErrorCode::Location18536);
    fails(read("2018", "%w"), ErrorCode::Location18536);
    fails(read("2018", "%Y%"), ErrorCode::Location18535);
    let from = |options: RawBson| rawbson!({ "$dateFromString": options });
    moment(from(rawbson!({ "dateString": "2024-07-04", "timezone": "America/New_York" })), "2024-07-04T04:00:00Z");
    fails(
        from(rawbson!({ "dateString": "2024-07-04Z", "timezone": "America/New_York" })),
        ErrorCode::ConversionFailure,
    );
    check(from(rawbson!({ "dateString": "never", "onError": "$s" })), "héllo");
    check(from(rawbson!({ "dateString": "$a", "onError": 1 })), 1);
    check(from(rawbson!({ "dateString": "$n", "onNull": 2 })), 2);
    check(from(rawbson!({ "dateString": "$absent" })), RawBson::Null);
    check(from(rawbson!({ "dateString": "2024-07-04", "format": "$n" })), RawBson::Null);
    fails(from(rawbson!({ "dateString": "$a" })), ErrorCode::ConversionFailure);
    fails(from(rawbson!({ "dateString": "2024-07-04", "format": 1 })), ErrorCode::Location40684);
    fails(
        from(rawbson!({ "dateString": "2024-07-04", "timezone": "Mars/Base", "onError": 1 })),
        ErrorCode::Location40485,
    );
    fails(from(rawbson!({ "format": "%Y" })), ErrorCode::Location40542);
    fails(from(rawbson!({ "dateString": "x", "f": 1 })), ErrorCode::Location40541);
    fails(from(rawbson!("x")), ErrorCode::Location40540);
}

proptest! {
    #[test]
    fn iso_texts_are_read_as_any_others(
        year in 0..10_000_i64, (month, day, hour, minute, second) in (0..14_u8, 0..33_u8, 0..26_u8, 0..62_u8, 0..62_u8),
        fraction in prop::sample::select(vec!["", ".007", ".5", ".1234"]),
        zone in prop::sample::select(vec!["Z", "Z", "Z", "z", "+00:00", ""]),
    ) {
        let text = format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}{fraction}{zone}");
        let free = Fields::free(&text, &globals()).and_then(|fields| Zone::UTC.utc(fields.local_ms()?));
        let fast = iso_ms(text.as_bytes());
        prop_assert!(fast.is_none() || fast == free, "{} {:?} {:?}", text, fast, free);
        let is_plain = matches!(zone, "Z" | "") && matches!(fraction, "" | ".007") && hour < 24;
        prop_assert_eq!(fast.is_some(), free.is_some() && is_plain, "{}", text);
    }

    #[test]
    fn formatted_dates_are_parsed_back(
        ms in -62_135_596_800_000..253_402_300_800_000_i64,
        format in prop::sample::select(vec![
            "%Y-%m-%dT%H:%M:%S.%LZ", "%G-W%V-%uT%H:%M:%S.%L%z", "%Y%j %H%M%S%L", "%d %B %Y %H:%M:%S.%L %z", "%b %d, %Y %H:%M:%S.%L %z",
        ]),
    ) {
        let wrapped = bson::rawdoc! { "e": { "$dateToString": { "date": date(ms), "format": format } } };
        let text = Expr::parse(Doc::parse(wrapped.as_bytes()).unwrap().get("e").unwrap(), &globals()).unwrap();
        let Expr::Constant(Some(text)) = text else { panic!("not evaluated") };
        let text = text.view().as_str().unwrap();
        check(rawbson!({ "$dateFromString": { "dateString": text, "format": format } }), date(ms));
        if !format.contains("%j") && !format.contains("%V") {
            check(rawbson!({ "$dateFromString": { "dateString": text } }), date(ms));
        }
    }
}
