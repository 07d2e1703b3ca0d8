//! Expressions, parsed and evaluated.

mod convert;
mod families;

use bson::{DateTime, RawBson, RawDocumentBuf, rawbson, rawdoc};

use super::Expr;
use super::evaluate::Scope;
use crate::env::fixed::FixedEnv;
use crate::error::{ErrorCode, Result};
use crate::query::expr::samples::globals;
use crate::value::{Doc, DocWriter};

/// The value of an expression for a document; `None` if it is missing.
fn evaluate(expr: impl Into<RawBson>, doc: &RawDocumentBuf) -> Result<Option<RawBson>> {
    let wrapped = rawdoc! { "e": expr.into() };
    let globals = globals();
    let expr = Expr::parse(Doc::parse(wrapped.as_bytes()).unwrap().get("e").unwrap(), &globals)?;
    let value = expr.evaluate(&Scope::of(Doc::parse(doc.as_bytes()).unwrap(), &globals))?.into_static();
    Ok(value.view().map(|value| {
        let mut writer = DocWriter::new();
        writer.value("v", value);
        let doc = RawDocumentBuf::from_bytes(writer.finish().into_bytes()).unwrap();
        doc.get("v").unwrap().unwrap().into()
    }))
}

fn doc() -> RawDocumentBuf {
    rawdoc! {
        "a": 5, "big": i64::MAX, "max": i32::MAX, "x": 2.5, "s": "héllo", "n": null, "t": date(1_700_000_000_123),
        "list": [3, 1, 2], "o": { "b": [{ "c": 1 }, { "d": 2 }, 7, { "c": [3] }], "0": "zero" }, "x.y": "dotted", "none": [],
    }
}

pub(super) fn date(ms: i64) -> RawBson {
    RawBson::DateTime(DateTime::from_millis(ms))
}

/// Asserts that `expr` evaluates to `wanted`, with constant operands and with operands read from fields.
#[track_caller]
pub(super) fn check(expr: impl Into<RawBson>, wanted: impl Into<RawBson>) {
    let expr = expr.into();
    assert_eq!(evaluate(expr.clone(), &doc()).unwrap(), Some(wanted.into()), "{expr:?}");
}

#[track_caller]
fn missing(expr: impl Into<RawBson>) {
    assert_eq!(evaluate(expr, &doc()).unwrap(), None);
}

#[track_caller]
pub(super) fn fails(expr: impl Into<RawBson>, code: ErrorCode) {
    let expr = expr.into();
    let found = evaluate(expr.clone(), &doc()).map_err(|e| e.code);
    assert_eq!(found, Err(code), "{expr:?}");
}

#[test]
fn paths_map_over_arrays_and_numbers_are_names() {
    check("$a", 5);
    check("$o.b.c", rawbson!([1, [3]]));
    check("$o.0", "zero");
    check("$list.0", rawbson!([]));
    missing("$a.b");
    missing("$absent");
    check("plain", "plain");
    check(rawdoc! { "$literal": "$a" }, "$a");
    check("$$ROOT.a", 5);
    check("$$CURRENT.o.0", "zero");
    check("$$NOW", date(FixedEnv::NOW_MS));
    missing("$$REMOVE");
}

#[test]
fn operators_take_missing_constants_as_they_take_missing_fields() {
    for absent in ["$$REMOVE", "$absent"] {
        check(rawdoc! { "$add": ["$a", absent] }, RawBson::Null);
        check(rawdoc! { "$multiply": ["$absent", absent] }, RawBson::Null);
        check(rawdoc! { "$subtract": ["$a", absent] }, RawBson::Null);
        check(rawdoc! { "$add": [absent, 1] }, RawBson::Null);
        check(rawdoc! { "$concat": ["a", absent] }, RawBson::Null);
        check(rawdoc! { "$round": [1.25, absent] }, RawBson::Null);
        check(rawdoc! { "$type": absent }, "missing");
        check(rawdoc! { "$ifNull": [absent, 7] }, 7);
    }
}

#[test]
fn objects_drop_what_is_missing_and_arrays_keep_a_null_for_it() {
    check(rawdoc! { "k": "$a", "l": "$absent", "m": [1, "$absent"] }, rawdoc! { "k": 5, "m": [1, null] });
}

#[test]
fn comparisons_span_all_types() {
    check(rawdoc! { "$gt": ["$s", "$a"] }, true);
    check(rawdoc! { "$lt": ["$absent", null] }, true);
    check(rawdoc! { "$eq": ["$a", 5.0] }, true);
    check(rawdoc! { "$ne": ["$a", 5_i64] }, false);
    check(rawdoc! { "$cmp": ["$a", "$list"] }, -1);
    check(rawdoc! { "$lt": [f64::NAN, "$a"] }, true);
    check(rawdoc! { "$gte": ["$list", 100] }, true);
}

#[test]
fn conditions_evaluate_only_the_chosen_branch() {
    let bad = || rawbson!({ "$divide": ["$a", { "$subtract": ["$a", 5] }] });
    check(rawdoc! { "$and": [{ "$gt": ["$a", 9] }, bad()] }, false);
    check(rawdoc! { "$or": ["$a", bad()] }, true);
    check(rawdoc! { "$and": [] }, true);
    check(rawdoc! { "$not": ["$n"] }, true);
    check(rawdoc! { "$not": "$a" }, false);
    check(rawdoc! { "$cond": ["$a", "yes", bad()] }, "yes");
    check(rawdoc! { "$cond": { "if": "$absent", "then": bad(), "else": "no" } }, "no");
    check(rawdoc! { "$ifNull": ["$absent", "$n", 7, bad()] }, 7);
    check(rawdoc! { "$ifNull": ["$absent", null] }, RawBson::Null);
    let switch = |last: RawDocumentBuf| rawdoc! { "$switch": last };
    let branches = || rawbson!([{ "case": { "$lt": ["$a", 1] }, "then": bad() }, { "case": "$a", "then": "second" }]);
    check(switch(rawdoc! { "branches": branches() }), "second");
    let never = || rawbson!([{ "case": "$n", "then": 1 }]);
    check(switch(rawdoc! { "branches": never(), "default": 2 }), 2);
    fails(switch(rawdoc! { "branches": never() }), ErrorCode::Location40066);
    fails(switch(rawdoc! { "branches": [] }), ErrorCode::Location40068);
    fails(switch(rawdoc! { "branches": [{ "case": 1 }] }), ErrorCode::Location40065);
    fails(bad(), ErrorCode::BadValue);
}

#[test]
fn inner_variables_shadow_outer_ones() {
    let current =
        rawdoc! { "$let": { "vars": { "CURRENT": { "a": 1 } }, "in": ["$a", "$$CURRENT.a", "$$ROOT.a", "$o"] } };
    check(current, rawbson!([1, 1, 5, null]));
    let sum = rawdoc! { "$let": { "vars": { "a": 1, "b": "$a" }, "in": { "$add": ["$$a", "$$b", "$a"] } } };
    check(sum, 11);
    let outer = rawbson!({ "$map": { "input": "$list", "as": "x", "in": {
        "$let": { "vars": { "x": { "$add": ["$$x", 1] } }, "in": { "$multiply": ["$$x", "$a"] } } } } });
    check(outer, rawbson!([20, 10, 15]));
    fails("$$nobody", ErrorCode::Location17276);
    fails(rawdoc! { "$let": { "vars": { "a": 1, "b": "$$a" }, "in": 1 } }, ErrorCode::Location17276);
    fails(rawdoc! { "$let": { "vars": { "Big": 1 }, "in": 1 } }, ErrorCode::FailedToParse);
}

#[test]
fn numbers_widen_on_overflow_and_null_gives_null() {
    check(rawdoc! { "$add": ["$a", 1] }, 6);
    check(rawdoc! { "$add": ["$max", 1] }, i64::from(i32::MAX) + 1);
    check(rawdoc! { "$add": ["$big", 1] }, 9_223_372_036_854_775_808.0);
    check(rawdoc! { "$add": [] }, 0);
    check(rawdoc! { "$add": ["$a", "$absent"] }, RawBson::Null);
    check(rawdoc! { "$multiply": ["$x", 2, 2_i64] }, 10.0);
    check(rawdoc! { "$subtract": ["$a", 2.5] }, 2.5);
    check(rawdoc! { "$divide": ["$a", 2] }, 2.5);
    check(rawdoc! { "$mod": [-7, "$absent"] }, RawBson::Null);
    check(rawdoc! { "$mod": [-7, 4] }, -3);
    check(rawdoc! { "$mod": ["$x", 2] }, 0.5);
    check(rawdoc! { "$abs": i32::MIN }, 2_147_483_648_i64);
    check(rawdoc! { "$ceil": "$x" }, 3.0);
    check(rawdoc! { "$floor": "$a" }, 5);
    check(rawdoc! { "$sqrt": 16 }, 4.0);
    check(rawdoc! { "$round": 2.5 }, 2.0);
    check(rawdoc! { "$round": [1.2345, 2] }, 1.23);
    check(rawdoc! { "$round": [1250, -2] }, 1200);
    check(rawdoc! { "$trunc": [-1.29, 1] }, -1.2);
    fails(rawdoc! { "$add": ["$a", "$s"] }, ErrorCode::TypeMismatch);
    fails(rawdoc! { "$add": "$s" }, ErrorCode::TypeMismatch);
    fails(rawdoc! { "$divide": ["$a", 0] }, ErrorCode::BadValue);
    fails(rawdoc! { "$mod": ["$a", 0.0] }, ErrorCode::Location16610);
    fails(rawdoc! { "$sqrt": -1 }, ErrorCode::Location28714);
    fails(rawdoc! { "$abs": i64::MIN }, ErrorCode::Location28680);
}

#[test]
fn arguments_are_checked_in_turn_until_one_is_null() {
    check(rawdoc! { "$add": ["$n", "$s"] }, RawBson::Null);
    check(rawdoc! { "$multiply": [2, "$absent", "$s"] }, RawBson::Null);
    check(rawdoc! { "$round": ["$n", "$s"] }, RawBson::Null);
    fails(rawdoc! { "$round": ["$s", "$n"] }, ErrorCode::Location51081);
    check(rawdoc! { "$concat": ["$s", "$n", "$a"] }, RawBson::Null);
    check(rawdoc! { "$setUnion": ["$n", "$s"] }, RawBson::Null);
    check(rawdoc! { "$indexOfCP": ["$n", "$n", "$s"] }, RawBson::Null);
    check(rawdoc! { "$indexOfBytes": ["$n", 1] }, RawBson::Null);
    check(rawdoc! { "$indexOfArray": ["$n", 1, "$s"] }, RawBson::Null);
    fails(rawdoc! { "$add": ["$s", "$n"] }, ErrorCode::TypeMismatch);
    fails(rawdoc! { "$multiply": ["$t", "$n"] }, ErrorCode::TypeMismatch);
    fails(rawdoc! { "$concat": ["$a", "$n"] }, ErrorCode::Location16702);
    fails(rawdoc! { "$concatArrays": ["$a", "$n"] }, ErrorCode::Location28664);
    fails(rawdoc! { "$setIntersection": ["$a", "$n"] }, ErrorCode::Location17047);
    fails(rawdoc! { "$indexOfCP": ["$s", "$n"] }, ErrorCode::Location40094);
    fails(rawdoc! { "$indexOfBytes": ["$s", "$absent"] }, ErrorCode::Location40092);
    fails(rawdoc! { "$indexOfArray": ["$a", 1] }, ErrorCode::Location40090);
}

#[test]
fn int32s_give_an_int32_if_the_result_fits_whatever_is_on_the_way() {
    check(rawdoc! { "$add": ["$max", 1, "$a", -10] }, i32::MAX - 4);
    check(rawdoc! { "$multiply": ["$max", "$max", 0] }, 0);
    check(rawdoc! { "$add": ["$max", 1_i64, -10] }, i64::from(i32::MAX - 9));
    check(rawdoc! { "$add": ["$max", 1] }, 2_147_483_648_i64);
}

#[test]
fn sums_and_means_of_expressions_lose_no_digits_on_the_way() {
    let large = 9_007_199_254_740_993_i64;
    check(rawdoc! { "$sum": [large, -9_007_199_254_740_992.0] }, 1.0);
    check(rawdoc! { "$sum": [1e16, 1, "$a", -1e16] }, 6.0);
    check(rawdoc! { "$sum": [[1e100, 1.0, -1e100]] }, 1.0);
    check(rawdoc! { "$sum": [large, large, 0.5] }, 18_014_398_509_481_988.0);
    check(rawdoc! { "$sum": ["$big", 1_i64, -5] }, i64::MAX - 4);
    check(rawdoc! { "$sum": ["$big", f64::INFINITY] }, f64::INFINITY);
    check(rawdoc! { "$avg": [1e16, 1, 1, -1e16] }, 0.5);
    check(rawdoc! { "$avg": [large, -9_007_199_254_740_992_i64] }, 0.5);
}

#[test]
fn the_exact_value_of_a_double_is_rounded() {
    // What these doubles are in truth is in each comment.
    check(rawdoc! { "$round": [1.115, 2] }, 1.11); // 1.11499…
    check(rawdoc! { "$round": [-1.115, 2] }, -1.11);
    check(rawdoc! { "$round": [4.35, 1] }, 4.3); // 4.34999…
    check(rawdoc! { "$round": [1.15, 1] }, 1.1); // 1.14999…
    check(rawdoc! { "$round": [8.345, 2] }, 8.35); // 8.34500…06
    check(rawdoc! { "$round": [0.125, 2] }, 0.12); // 0.125
    check(rawdoc! { "$round": [0.375, 2] }, 0.38); // 0.375
    check(rawdoc! { "$trunc": [8.2, 1] }, 8.1); // 8.19999…
    check(rawdoc! { "$trunc": [-8.2, 1] }, -8.1);
    check(rawdoc! { "$trunc": [8.1, 1] }, 8.0); // 8.09999…
    check(rawdoc! { "$trunc": [1.1, 1] }, 1.1); // 1.10000…08
    check(rawdoc! { "$round": [25.0, -1] }, 20.0);
    check(rawdoc! { "$round": [25.000_000_000_000_004, -1] }, 30.0);
    check(rawdoc! { "$trunc": [29.999_999_999_999_996, -1] }, 20.0);
    check(rawdoc! { "$round": [1e22, -20] }, 1e22);
}

#[test]
fn a_double_without_digits_beyond_the_places_stays() {
    let cases = [
        (123_456_789.123, 9),
        (123_456_789.123, 100),
        (1.298, 16),
        (1.298, 22),
        (1.298, 100),
        (-0.1, 20),
        (1e300, -20),
    ];
    for (x, places) in cases {
        check(rawdoc! { "$trunc": [x, places] }, x);
        check(rawdoc! { "$round": [x, places] }, x);
    }
}

#[test]
fn integers_are_rounded_exactly_to_powers_of_ten() {
    check(rawdoc! { "$trunc": [4_611_686_018_427_387_909_i64, -1] }, 4_611_686_018_427_387_900_i64);
    check(rawdoc! { "$trunc": [-4_611_686_018_427_387_909_i64, -1] }, -4_611_686_018_427_387_900_i64);
    check(rawdoc! { "$round": [4_611_686_018_427_387_909_i64, -1] }, 4_611_686_018_427_387_910_i64);
    check(rawdoc! { "$round": [4_611_686_018_427_387_905_i64, -1] }, 4_611_686_018_427_387_900_i64);
    check(rawdoc! { "$round": [4_611_686_018_427_387_915_i64, -1] }, 4_611_686_018_427_387_920_i64);
    check(rawdoc! { "$trunc": ["$big", -18] }, 9_000_000_000_000_000_000_i64);
    check(rawdoc! { "$trunc": [i64::MIN, -18] }, -9_000_000_000_000_000_000_i64);
    check(rawdoc! { "$trunc": ["$big", -19] }, 0_i64);
    check(rawdoc! { "$round": ["$big", -20] }, 0_i64);
    check(rawdoc! { "$round": ["$max", -1] }, 2_147_483_650_i64);
    check(rawdoc! { "$round": [25, -1] }, 20);
    check(rawdoc! { "$round": [-35, -1] }, -40);
    check(rawdoc! { "$trunc": [-39, -1] }, -30);
    check(rawdoc! { "$round": [49, -2] }, 0);
    fails(rawdoc! { "$round": ["$big", -1] }, ErrorCode::Location51080);
    fails(rawdoc! { "$round": [i64::MIN, -1] }, ErrorCode::Location51080);
    fails(rawdoc! { "$round": ["$big", -19] }, ErrorCode::Location51080);
}

#[test]
fn dates_add_and_subtract_in_milliseconds() {
    check(rawdoc! { "$add": ["$t", 7] }, date(1_700_000_000_130));
    check(rawdoc! { "$add": [1.5, "$t"] }, date(1_700_000_000_125));
    check(rawdoc! { "$subtract": ["$t", date(1_700_000_000_000)] }, 123_i64);
    check(rawdoc! { "$subtract": ["$t", 123] }, date(1_700_000_000_000));
    fails(rawdoc! { "$add": ["$t", "$t"] }, ErrorCode::Location16612);
    fails(rawdoc! { "$subtract": [1, "$t"] }, ErrorCode::TypeMismatch);
    fails(rawdoc! { "$add": [date(i64::MAX), 1] }, ErrorCode::Overflow);
}

#[test]
fn arrays_are_measured_searched_mapped_and_filtered() {
    check(rawdoc! { "$size": "$list" }, 3);
    fails(rawdoc! { "$size": "$a" }, ErrorCode::Location17124);
    check(rawdoc! { "$isArray": "$list" }, true);
    check(rawdoc! { "$isArray": [["$a"]] }, true);
    check(rawdoc! { "$in": [2.0, "$list"] }, true);
    check(rawdoc! { "$in": ["$absent", "$list"] }, false);
    fails(rawdoc! { "$in": [1, "$a"] }, ErrorCode::Location40081);
    check(rawdoc! { "$arrayElemAt": ["$list", -1] }, 2);
    missing(rawdoc! { "$arrayElemAt": ["$list", 3] });
    missing(rawdoc! { "$arrayElemAt": ["$list", -4] });
    check(rawdoc! { "$first": "$list" }, 3);
    check(rawdoc! { "$last": "$list" }, 2);
    missing(rawdoc! { "$last": "$none" });
    check(rawdoc! { "$concatArrays": ["$list", [9]] }, rawbson!([3, 1, 2, 9]));
    check(rawdoc! { "$concatArrays": ["$list", "$n"] }, RawBson::Null);
    check(rawdoc! { "$map": { "input": "$list", "in": { "$add": ["$$this", 1] } } }, rawbson!([4, 2, 3]));
    check(rawdoc! { "$map": { "input": "$n", "in": 1 } }, RawBson::Null);
    check(rawdoc! { "$filter": { "input": "$list", "as": "x", "cond": { "$gte": ["$$x", 2] } } }, rawbson!([3, 2]));
    let limited = rawdoc! { "$filter": { "input": "$list", "cond": true, "limit": 1 } };
    check(limited, rawbson!([3]));
    let product =
        rawdoc! { "$reduce": { "input": "$list", "initialValue": 1, "in": { "$multiply": ["$$value", "$$this"] } } };
    check(product, 6);
    fails(rawdoc! { "$map": { "input": "$a", "in": 1 } }, ErrorCode::Location16883);
    for (limit, code) in [
        (rawbson!(0), ErrorCode::Location327392),
        (rawbson!(1.5), ErrorCode::Location327391),
        (rawbson!(1_i64 << 40), ErrorCode::Location327391),
    ] {
        fails(rawdoc! { "$filter": { "input": "$list", "cond": 1, "limit": limit.clone() } }, code);
        check(rawdoc! { "$filter": { "input": "$n", "cond": 1, "limit": limit.clone() } }, RawBson::Null);
        check(rawdoc! { "$filter": { "input": [], "cond": 1, "limit": limit } }, rawbson!([]));
    }
}

#[test]
fn strings_are_counted_in_characters() {
    check(rawdoc! { "$concat": ["$s", "!", "$s"] }, "héllo!héllo");
    check(rawdoc! { "$concat": ["$s", "$absent"] }, RawBson::Null);
    check(rawdoc! { "$toUpper": "$s" }, "HéLLO");
    check(rawdoc! { "$toLower": "$n" }, "");
    check(rawdoc! { "$strLenCP": "$s" }, 5);
    check(rawdoc! { "$strLenBytes": "$s" }, 6);
    check(rawdoc! { "$substrCP": ["$s", 1, 2] }, "él");
    check(rawdoc! { "$substrCP": ["$s", 9, 2] }, "");
    check(rawdoc! { "$indexOfCP": ["$s", "l"] }, 2);
    check(rawdoc! { "$indexOfCP": ["$s", "l", 3] }, 3);
    check(rawdoc! { "$indexOfCP": ["$s", "o", 0, 4] }, -1);
    check(rawdoc! { "$indexOfCP": ["$n", "o"] }, RawBson::Null);
    fails(rawdoc! { "$concat": ["$a"] }, ErrorCode::Location16702);
    fails(rawdoc! { "$strLenCP": "$n" }, ErrorCode::Location34471);
}

#[test]
fn types_are_named_and_converted() {
    check(rawdoc! { "$type": "$absent" }, "missing");
    check(rawdoc! { "$type": "$big" }, "long");
    check(rawdoc! { "$isNumber": "$x" }, true);
    check(rawdoc! { "$toInt": "$x" }, 2);
    check(rawdoc! { "$toLong": "$t" }, 1_700_000_000_123_i64);
    check(rawdoc! { "$toDouble": true }, 1.0);
    check(rawdoc! { "$toDate": 5_i64 }, date(5));
    check(rawdoc! { "$toBool": "$s" }, true);
    check(rawdoc! { "$toInt": "$n" }, RawBson::Null);
    fails(rawdoc! { "$toInt": "$big" }, ErrorCode::ConversionFailure);
    fails(rawdoc! { "$toDate": "$a" }, ErrorCode::ConversionFailure);
    check(rawdoc! { "$getField": "x.y" }, "dotted");
    check(rawdoc! { "$getField": { "field": "0", "input": "$o" } }, "zero");
    missing(rawdoc! { "$getField": "$s" });
}

#[test]
fn date_parts_follow_the_calendar() {
    // Tuesday the 14th of November 2023, 22:13:20.123
    for (name, wanted) in [
        ("$year", 2023),
        ("$month", 11),
        ("$dayOfMonth", 14),
        ("$dayOfYear", 318),
        ("$dayOfWeek", 3),
        ("$week", 46),
        ("$isoWeek", 46),
        ("$isoDayOfWeek", 2),
        ("$hour", 22),
        ("$minute", 13),
        ("$second", 20),
        ("$millisecond", 123),
    ] {
        let name = bson::raw::CString::try_from(name).unwrap();
        check(rawdoc! { &name: "$t" }, wanted);
        check(rawdoc! { &name: { "date": "$t" } }, wanted);
    }
    check(rawdoc! { "$isoWeekYear": date(1_609_459_200_000) }, 2020_i64);
    check(rawdoc! { "$isoWeek": date(1_609_459_200_000) }, 53);
    check(rawdoc! { "$week": date(1_609_459_200_000) }, 0);
    check(rawdoc! { "$hour": { "date": "$t", "timezone": "+05:30" } }, 3);
    check(rawdoc! { "$hour": { "date": "$t", "timezone": "-03" } }, 19);
    check(rawdoc! { "$hour": "$n" }, RawBson::Null);
    check(rawdoc! { "$hour": { "date": "$t", "timezone": "$absent" } }, RawBson::Null);
    check(rawdoc! { "$year": RawBson::ObjectId(bson::oid::ObjectId::from_bytes([0; 12])) }, 1970);
    fails(rawdoc! { "$hour": "$a" }, ErrorCode::Location16006);
    fails(rawdoc! { "$hour": { "date": "$t", "timezone": "Nowhere" } }, ErrorCode::Location40485);
    fails(rawdoc! { "$hour": { "date": "$t", "zone": 1 } }, ErrorCode::Location40535);
}

#[test]
fn dates_are_truncated_to_bins_from_the_start_of_2000() {
    let trunc = |unit: &str, bin: i32| rawdoc! { "$dateTrunc": { "date": "$t", "unit": unit, "binSize": bin } };
    check(trunc("second", 1), date(1_700_000_000_000));
    check(trunc("minute", 5), date(1_699_999_800_000));
    check(trunc("hour", 6), date(1_699_984_800_000));
    check(trunc("day", 1), date(1_699_920_000_000));
    check(trunc("week", 1), date(1_699_747_200_000));
    check(trunc("month", 1), date(1_698_796_800_000));
    check(trunc("quarter", 1), date(1_696_118_400_000));
    check(trunc("year", 10), date(1_577_836_800_000));
    let monday = rawdoc! { "$dateTrunc": { "date": "$t", "unit": "week", "startOfWeek": "Mon" } };
    check(monday, date(1_699_833_600_000));
    let zone = rawdoc! { "$dateTrunc": { "date": "$t", "unit": "day", "timezone": "+0530" } };
    check(zone, date(1_699_986_600_000));
    check(rawdoc! { "$dateTrunc": { "date": "$t", "unit": "day", "binSize": "$absent" } }, RawBson::Null);
    fails(trunc("day", 0), ErrorCode::Location5439018);
    fails(trunc("fortnight", 1), ErrorCode::FailedToParse);
    fails(rawdoc! { "$dateTrunc": { "date": "$t" } }, ErrorCode::Location5439009);
    fails(rawdoc! { "$dateTrunc": { "date": "$a", "unit": "day" } }, ErrorCode::Location5439012);
    fails(rawdoc! { "$dateTrunc": { "date": date(i64::MIN), "unit": "year" } }, ErrorCode::Location5166406);
}

#[test]
fn date_diff_counts_unit_boundaries() {
    let hours = |start: i64, end: i64| {
        rawdoc! { "$dateDiff": { "startDate": date(start), "endDate": date(end), "unit": "hour" } }
    };
    check(hours(3 * 3_600_000 - 1, 3 * 3_600_000), 1_i64);
    check(hours(2 * 3_600_000, 3 * 3_600_000 - 1), 0_i64);
    check(hours(7_200_000, 0), -2_i64);
    let add = |unit: &str, amount: i32| rawdoc! { "$dateAdd": { "startDate": date(949_276_800_000), "unit": unit, "amount": amount } };
    // From the 31st of January 2000.
    check(add("month", 1), date(951_782_400_000));
    check(add("year", 1), date(980_899_200_000));
    check(add("week", -1), date(948_672_000_000));
    check(
        rawdoc! { "$dateSubtract": { "startDate": "$t", "unit": "millisecond", "amount": 123 } },
        date(1_700_000_000_000),
    );
    fails(rawdoc! { "$dateAdd": { "startDate": "$t", "unit": "day", "amount": 1.5 } }, ErrorCode::Location5166405);
    fails(rawdoc! { "$dateAdd": { "startDate": "$t", "unit": "day", "amount": i64::MAX } }, ErrorCode::Location5166406);
}

#[test]
fn malformed_expressions_are_refused_with_the_servers_code() {
    fails(rawdoc! { "$foo": 1 }, ErrorCode::InvalidPipelineOperator);
    fails(rawdoc! { "$eq": [1] }, ErrorCode::Location16020);
    fails(rawdoc! { "$ifNull": [1] }, ErrorCode::Location28667);
    fails(rawdoc! { "$eq": [1, 2], "$ne": [1, 2] }, ErrorCode::Location15983);
    fails("$", ErrorCode::Location16872);
    fails("$a..b", ErrorCode::Location15998);
    fails("$a.", ErrorCode::Location40353);
    fails("$a.$b", ErrorCode::Location16410);
    fails(rawdoc! { "$indexOfCP": ["abc", "c", 0.5] }, ErrorCode::Location40096);
    fails(rawdoc! { "$indexOfCP": ["abc", "c", "1"] }, ErrorCode::Location40096);
    fails(rawdoc! { "$indexOfCP": ["abc", "c", -1] }, ErrorCode::Location40097);
    fails(rawdoc! { "$indexOfCP": ["abc", "c", 0, -1] }, ErrorCode::Location40097);
    fails(rawdoc! { "a.b": 1 }, ErrorCode::Location16412);
    fails(rawdoc! { "$cond": { "if": 1, "then": 2 } }, ErrorCode::Location17080);
    fails(rawdoc! { "$cond": [1, 2] }, ErrorCode::Location16020);
}

#[test]
fn constants_are_folded_when_parsed_and_rand_is_not() {
    let parse = |expr: RawDocumentBuf| {
        let wrapped = rawdoc! { "e": expr };
        Expr::parse(Doc::parse(wrapped.as_bytes()).unwrap().get("e").unwrap(), &globals()).unwrap()
    };
    assert!(matches!(parse(rawdoc! { "$add": [1, { "$size": [[1, 2]] }] }), Expr::Constant(Some(_))));
    assert!(parse(rawdoc! { "$rand": {} }).is_random());
    assert!(parse(rawdoc! { "$map": { "input": [1], "in": "$$this" } }).fields().is_empty());
}
