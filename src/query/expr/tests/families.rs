//! Operators, family by family.

use bson::{RawBson, rawbson};

use super::{check, date, fails};
use crate::error::ErrorCode;

#[track_caller]
fn all(cases: Vec<(RawBson, RawBson)>) {
    cases.into_iter().for_each(|(expr, wanted)| check(expr, wanted));
}

#[track_caller]
fn refused(cases: Vec<(RawBson, ErrorCode)>) {
    cases.into_iter().for_each(|(expr, code)| fails(expr, code));
}

#[test]
fn strings_are_trimmed_split_and_replaced() {
    all(vec![
        (rawbson!({ "$trim": { "input": "\t a b\n " } }), "a b".into()),
        (rawbson!({ "$trim": { "input": "xyax", "chars": "yx" } }), "a".into()),
        (rawbson!({ "$ltrim": { "input": "  a " } }), "a ".into()),
        (rawbson!({ "$rtrim": { "input": "  a " } }), "  a".into()),
        (rawbson!({ "$trim": { "input": "$n" } }), RawBson::Null),
        (rawbson!({ "$trim": { "input": "a", "chars": null } }), RawBson::Null),
        (rawbson!({ "$split": ["$s", "l"] }), rawbson!(["hé", "", "o"])),
        (rawbson!({ "$split": ["abc", "x"] }), rawbson!(["abc"])),
        (rawbson!({ "$split": ["$nothing", "x"] }), RawBson::Null),
        (rawbson!({ "$replaceOne": { "input": "$s", "find": "l", "replacement": "L" } }), "héLlo".into()),
        (rawbson!({ "$replaceAll": { "input": "$s", "find": "l", "replacement": "" } }), "héo".into()),
        (rawbson!({ "$replaceAll": { "input": "aaa", "find": "aa", "replacement": "b" } }), "ba".into()),
        (rawbson!({ "$replaceAll": { "input": "é", "find": "", "replacement": "-" } }), "-é-".into()),
        (rawbson!({ "$replaceOne": { "input": "a", "find": null, "replacement": "b" } }), RawBson::Null),
        (rawbson!({ "$substrBytes": ["hello", 1, 3] }), "ell".into()),
        (rawbson!({ "$substr": ["hello", 2, -1] }), "llo".into()),
        (rawbson!({ "$substrBytes": ["hello", 9, 3] }), "".into()),
        (rawbson!({ "$substrBytes": ["$n", 0, 3] }), "".into()),
        (rawbson!({ "$indexOfBytes": ["$s", "l"] }), 3.into()),
        (rawbson!({ "$indexOfBytes": ["hello", "l", 3] }), 3.into()),
        (rawbson!({ "$indexOfBytes": ["hello", "lo", 0, 4] }), (-1).into()),
        (rawbson!({ "$indexOfBytes": ["$n", "l"] }), RawBson::Null),
        (rawbson!({ "$strcasecmp": ["aB", "Ab"] }), 0.into()),
        (rawbson!({ "$strcasecmp": ["a", "B"] }), (-1).into()),
        (rawbson!({ "$strcasecmp": ["a", null] }), 1.into()),
        (rawbson!({ "$strcasecmp": ["$a", "5"] }), 0.into()),
        (rawbson!({ "$toUpper": 1e30 }), "1E+30".into()),
        (rawbson!({ "$toLower": (date(0)) }), "1970-01-01t00:00:00.000z".into()),
        (rawbson!({ "$toLower": (RawBson::Decimal128("1E+7".parse().unwrap())) }), "1e+7".into()),
        (rawbson!({ "$toUpper": "$absent" }), "".into()),
        (rawbson!({ "$substr": [12345, 1, 2.9] }), "23".into()),
        (rawbson!({ "$substrCP": [(date(0)), 0, 4] }), "1970".into()),
        (rawbson!({ "$substrCP": [-2.5, 1, 9] }), "2.5".into()),
    ]);
    refused(vec![
        (rawbson!({ "$arrayToObject": [[["a\0b", 1]]] }), ErrorCode::Location4940400),
        (rawbson!({ "$arrayToObject": [[{ "k": "a\0b", "v": 1 }]] }), ErrorCode::Location4940401),
        (rawbson!({ "$setField": { "field": "a\0", "input": {}, "value": 1 } }), ErrorCode::Location9534700),
        (rawbson!("$a.b\0c"), ErrorCode::Location16411),
        (rawbson!({ "$arrayToObject": [[["a", 1], { "k": "a", "v": 1 }]] }), ErrorCode::Location40396),
        (rawbson!({ "$arrayToObject": [[{ "k": "a", "v": 1 }, ["a", 1]]] }), ErrorCode::Location40391),
        (rawbson!({ "$arrayToObject": [[{ "k": "a", "w": 1 }]] }), ErrorCode::Location40393),
        (rawbson!({ "$range": ["a", 1] }), ErrorCode::Location34443),
        (rawbson!({ "$range": [1, 1.5] }), ErrorCode::Location34446),
        (rawbson!({ "$range": [1, 2, null] }), ErrorCode::Location34447),
        (rawbson!({ "$slice": ["$list", "x"] }), ErrorCode::Location28725),
        (rawbson!({ "$slice": ["$list", 1, 1.5] }), ErrorCode::Location28728),
        (rawbson!({ "$firstN": { "n": "x", "input": "$list" } }), ErrorCode::Location5787902),
        (rawbson!({ "$firstN": { "n": 1.5, "input": "$list" } }), ErrorCode::Location5787903),
        (rawbson!({ "$trim": "a" }), ErrorCode::Location50696),
        (rawbson!({ "$trim": { "input": 1 } }), ErrorCode::Location50699),
        (rawbson!({ "$trim": { "input": "a", "chars": 1 } }), ErrorCode::Location50700),
        (rawbson!({ "$trim": { "chars": "a" } }), ErrorCode::Location50695),
        (rawbson!({ "$trim": { "input": "a", "other": 1 } }), ErrorCode::Location50694),
        (rawbson!({ "$split": ["a", ""] }), ErrorCode::Location40087),
        (rawbson!({ "$split": [1, "a"] }), ErrorCode::Location40085),
        (rawbson!({ "$replaceOne": { "input": "a", "find": 1, "replacement": "b" } }), ErrorCode::Location51745),
        (rawbson!({ "$replaceOne": { "input": "a", "find": "b" } }), ErrorCode::Location51747),
        (rawbson!({ "$substrBytes": ["$s", 2, 1] }), ErrorCode::Location28656),
        (rawbson!({ "$substrBytes": ["$s", 0, 2] }), ErrorCode::Location28657),
        (rawbson!({ "$substrBytes": ["$s", -1, 2] }), ErrorCode::Location50752),
        (rawbson!({ "$strcasecmp": ["a"] }), ErrorCode::Location16020),
        (rawbson!({ "$strcasecmp": [true, "a"] }), ErrorCode::Location16007),
        (rawbson!({ "$toLower": "$list" }), ErrorCode::Location16007),
        (rawbson!({ "$substr": ["a", "x", 1] }), ErrorCode::Location16034),
        (rawbson!({ "$substr": ["a", 1, null] }), ErrorCode::Location16035),
        (rawbson!({ "$substrCP": ["a", null, 1] }), ErrorCode::Location34450),
        (rawbson!({ "$substrCP": ["a", 1.5, 1] }), ErrorCode::Location34451),
        (rawbson!({ "$substrCP": ["a", 1, "x"] }), ErrorCode::Location34452),
        (rawbson!({ "$substrCP": ["a", 1, 5_000_000_000_i64] }), ErrorCode::Location34453),
        (rawbson!({ "$substrCP": ["a", 1, -1] }), ErrorCode::Location34454),
        (rawbson!({ "$substrCP": ["a", -1, 1] }), ErrorCode::Location34455),
    ]);
}

#[test]
fn regular_expressions_and_string_conversions_work_on_values() {
    all(vec![
        (rawbson!({ "$regexMatch": { "input": "$s", "regex": "^h" } }), true.into()),
        (rawbson!({ "$regexMatch": { "input": "$s", "regex": "^o" } }), false.into()),
        (rawbson!({ "$regexMatch": { "input": "$n", "regex": "^o" } }), false.into()),
        (rawbson!({ "$regexMatch": { "input": "a", "regex": "$n" } }), false.into()),
        (rawbson!({ "$toString": 12 }), "12".into()),
        (rawbson!({ "$toString": { "$literal": 3.0 } }), "3".into()),
        (rawbson!({ "$toString": true }), "true".into()),
        (rawbson!({ "$toString": "$t" }), "2023-11-14T22:13:20.123Z".into()),
        (rawbson!({ "$toString": "$n" }), RawBson::Null),
        (rawbson!({ "$toString": (bson::oid::ObjectId::from_bytes([0xa1; 12])) }), "a1".repeat(12).into()),
    ]);
    refused(vec![
        (rawbson!({ "$regexMatch": { "input": 1, "regex": "a" } }), ErrorCode::Location51104),
        (rawbson!({ "$regexMatch": { "input": "a", "regex": 1 } }), ErrorCode::Location51105),
        (rawbson!({ "$regexMatch": { "input": "a", "regex": "a", "options": 1 } }), ErrorCode::Location51106),
        (rawbson!({ "$regexMatch": { "input": "a", "regex": "a", "options": "q" } }), ErrorCode::Location51108),
        (rawbson!({ "$regexMatch": { "input": "a" } }), ErrorCode::Location31023),
        (rawbson!({ "$toString": [["a"]] }), ErrorCode::ConversionFailure),
    ]);
}

#[test]
fn arrays_are_reversed_sliced_zipped_and_sorted() {
    all(vec![
        (rawbson!({ "$reverseArray": "$list" }), rawbson!([2, 1, 3])),
        (rawbson!({ "$reverseArray": "$n" }), RawBson::Null),
        (rawbson!({ "$range": [0, 5, 2] }), rawbson!([0, 2, 4])),
        (rawbson!({ "$range": [3, 0, -1] }), rawbson!([3, 2, 1])),
        (rawbson!({ "$range": [3, 0] }), rawbson!([])),
        (rawbson!({ "$slice": ["$list", 2] }), rawbson!([3, 1])),
        (rawbson!({ "$slice": ["$list", -2] }), rawbson!([1, 2])),
        (rawbson!({ "$slice": ["$list", 1, 5] }), rawbson!([1, 2])),
        (rawbson!({ "$slice": ["$list", -9, 2] }), rawbson!([3, 1])),
        (rawbson!({ "$slice": ["$n", 1] }), RawBson::Null),
        (rawbson!({ "$zip": { "inputs": ["$list", [7, 8]] } }), rawbson!([[3, 7], [1, 8]])),
        (
            rawbson!({ "$zip": { "inputs": ["$list", [7]], "useLongestLength": true, "defaults": [0, 9] } }),
            rawbson!([[3, 7], [1, 9], [2, 9]]),
        ),
        (
            rawbson!({ "$zip": { "inputs": ["$list", [7]], "useLongestLength": true } }),
            rawbson!([[3, 7], [1, null], [2, null]]),
        ),
        (rawbson!({ "$zip": { "inputs": ["$list", "$n"] } }), RawBson::Null),
        (rawbson!({ "$sortArray": { "input": "$list", "sortBy": 1 } }), rawbson!([1, 2, 3])),
        (rawbson!({ "$sortArray": { "input": "$list", "sortBy": -1 } }), rawbson!([3, 2, 1])),
        (
            rawbson!({ "$sortArray": { "input": [{ "a": 1, "b": 2 }, { "a": 2 }, { "a": 1, "b": 1 }], "sortBy": { "a": -1, "b": 1 } } }),
            rawbson!([{ "a": 2 }, { "a": 1, "b": 1 }, { "a": 1, "b": 2 }]),
        ),
        (rawbson!({ "$sortArray": { "input": "$n", "sortBy": 1 } }), RawBson::Null),
        (rawbson!({ "$firstN": { "n": 2, "input": "$list" } }), rawbson!([3, 1])),
        (rawbson!({ "$lastN": { "n": 2, "input": "$list" } }), rawbson!([1, 2])),
        (rawbson!({ "$minN": { "n": 2, "input": [3, null, 1, 2] } }), rawbson!([1, 2])),
        (rawbson!({ "$maxN": { "n": 9, "input": "$list" } }), rawbson!([3, 2, 1])),
        (rawbson!({ "$indexOfArray": ["$list", 2] }), 2.into()),
        (rawbson!({ "$indexOfArray": ["$list", 3, 1] }), (-1).into()),
        (rawbson!({ "$indexOfArray": ["$n", 3] }), RawBson::Null),
    ]);
    refused(vec![
        (rawbson!({ "$reverseArray": 1 }), ErrorCode::Location34435),
        (rawbson!({ "$range": [0, 1, 0] }), ErrorCode::Location34449),
        (rawbson!({ "$range": [0, 1.5] }), ErrorCode::Location34446),
        (rawbson!({ "$range": [0, i32::MAX] }), ErrorCode::ExceededMemoryLimit),
        (rawbson!({ "$slice": ["$list", 1, 0] }), ErrorCode::Location28729),
        (rawbson!({ "$slice": [1, 1] }), ErrorCode::Location28724),
        (rawbson!({ "$zip": { "inputs": 1 } }), ErrorCode::Location34461),
        (rawbson!({ "$zip": { "inputs": [1] } }), ErrorCode::Location34468),
        (rawbson!({ "$zip": { "inputs": [], "defaults": [1] } }), ErrorCode::Location34466),
        (rawbson!({ "$zip": { "inputs": [[1]], "useLongestLength": true, "defaults": [] } }), ErrorCode::Location34467),
        (rawbson!({ "$sortArray": { "input": 1, "sortBy": 1 } }), ErrorCode::Location2942504),
        (rawbson!({ "$sortArray": { "input": [], "sortBy": 2 } }), ErrorCode::Location2942507),
        (rawbson!({ "$firstN": { "n": 0, "input": [] } }), ErrorCode::Location5787908),
        (rawbson!({ "$firstN": { "n": 1, "input": 1 } }), ErrorCode::Location5788200),
        (rawbson!({ "$indexOfArray": [1, 3] }), ErrorCode::Location40090),
    ]);
}

#[test]
fn sets_ignore_order_and_duplicates() {
    all(vec![
        (rawbson!({ "$setUnion": [[2, 1], [2.0, 3]] }), rawbson!([1, 2, 3])),
        (rawbson!({ "$setIntersection": ["$list", [2, 3, 3]] }), rawbson!([2, 3])),
        (rawbson!({ "$setIntersection": [] }), rawbson!([])),
        (rawbson!({ "$setDifference": ["$list", [1]] }), rawbson!([3, 2])),
        (rawbson!({ "$setDifference": ["$n", [1]] }), RawBson::Null),
        (rawbson!({ "$setEquals": ["$list", [1, 2, 3, 3]] }), true.into()),
        (rawbson!({ "$setEquals": ["$list", [1, 2]] }), false.into()),
        (rawbson!({ "$setIsSubset": [[2, 2], "$list"] }), true.into()),
        (rawbson!({ "$setIsSubset": [[4], "$list"] }), false.into()),
        (rawbson!({ "$anyElementTrue": [[0, null, 1]] }), true.into()),
        (rawbson!({ "$allElementsTrue": [[0, 1]] }), false.into()),
        (rawbson!({ "$min": ["$a", 2, null] }), 2.into()),
        (rawbson!({ "$max": "$list" }), 3.into()),
        (rawbson!({ "$max": "$none" }), RawBson::Null),
        (rawbson!({ "$sum": "$list" }), 6.into()),
        (rawbson!({ "$sum": ["$list", 2, "x"] }), 2.into()),
        (rawbson!({ "$sum": ["$max", 1] }), (i64::from(i32::MAX) + 1).into()),
        (rawbson!({ "$avg": ["$a", 2] }), 3.5.into()),
        (rawbson!({ "$avg": "$none" }), RawBson::Null),
    ]);
    refused(vec![
        (rawbson!({ "$setUnion": [1] }), ErrorCode::Location17043),
        (rawbson!({ "$setEquals": [[1], null] }), ErrorCode::Location17044),
        (rawbson!({ "$setIsSubset": [[1], 1] }), ErrorCode::Location17042),
        (rawbson!({ "$anyElementTrue": 1 }), ErrorCode::Location17041),
    ]);
}

#[test]
fn objects_are_merged_and_converted_to_arrays_and_back() {
    all(vec![
        (
            rawbson!({ "$mergeObjects": [{ "a": 1, "b": 2 }, null, { "b": 3, "c": 4 }] }),
            rawbson!({ "a": 1, "b": 3, "c": 4 }),
        ),
        (rawbson!({ "$mergeObjects": "$nothing" }), rawbson!({})),
        (
            rawbson!({ "$objectToArray": { "a": 1, "b": "$n" } }),
            rawbson!([{ "k": "a", "v": 1 }, { "k": "b", "v": null }]),
        ),
        (rawbson!({ "$arrayToObject": [[["a", 1], ["b", 2], ["a", 3]]] }), rawbson!({ "a": 3, "b": 2 })),
        (rawbson!({ "$arrayToObject": { "$literal": [{ "k": "a", "v": 1 }] } }), rawbson!({ "a": 1 })),
        (rawbson!({ "$arrayToObject": "$n" }), RawBson::Null),
        (
            rawbson!({ "$setField": { "field": "a.b", "input": { "c": 1 }, "value": 2 } }),
            rawbson!({ "c": 1, "a.b": 2 }),
        ),
        (
            rawbson!({ "$setField": { "field": "c", "input": { "c": 1, "d": 2 }, "value": 3 } }),
            rawbson!({ "c": 3, "d": 2 }),
        ),
        (
            rawbson!({ "$setField": { "field": "c", "input": { "c": 1, "d": 2 }, "value": "$$REMOVE" } }),
            rawbson!({ "d": 2 }),
        ),
        (rawbson!({ "$unsetField": { "field": "c", "input": { "c": 1, "d": 2 } } }), rawbson!({ "d": 2 })),
        (rawbson!({ "$unsetField": { "field": "c", "input": "$n" } }), RawBson::Null),
    ]);
    refused(vec![
        (rawbson!({ "$mergeObjects": [1] }), ErrorCode::Location40400),
        (rawbson!({ "$objectToArray": 1 }), ErrorCode::Location40390),
        (rawbson!({ "$arrayToObject": [[["a"]]] }), ErrorCode::Location40397),
        (rawbson!({ "$arrayToObject": [[[1, 2]]] }), ErrorCode::Location40395),
        (rawbson!({ "$arrayToObject": { "$literal": [{ "k": "a" }] } }), ErrorCode::Location40392),
        (rawbson!({ "$arrayToObject": { "$literal": [1] } }), ErrorCode::Location40398),
        (rawbson!({ "$setField": { "field": "c", "input": 1, "value": 2 } }), ErrorCode::Location4161105),
        (rawbson!({ "$setField": { "field": 1, "input": {}, "value": 2 } }), ErrorCode::Location4161107),
    ]);
}

#[test]
fn powers_trigonometry_and_bitwise_operators() {
    all(vec![
        (rawbson!({ "$pow": ["$a", 2] }), 25.into()),
        (rawbson!({ "$pow": [2, 40] }), (1_i64 << 40).into()),
        (rawbson!({ "$pow": [2, -1] }), 0.5.into()),
        (rawbson!({ "$pow": [2, 64] }), 18_446_744_073_709_551_616.0.into()),
        (rawbson!({ "$pow": ["$n", 2] }), RawBson::Null),
        // Rounded once.
        (rawbson!({ "$pow": [0.1, 2] }), (0.1 * 0.1).into()),
        (rawbson!({ "$pow": [-1e200, 2.0] }), f64::INFINITY.into()),
        (rawbson!({ "$eq": [{ "$pow": [0, f64::NAN] }, f64::NAN] }), true.into()),
        (rawbson!({ "$exp": 0 }), 1.0.into()),
        (rawbson!({ "$ln": 1 }), 0.0.into()),
        (rawbson!({ "$log10": 1000 }), 3.0.into()),
        (rawbson!({ "$log": [8, 2] }), 3.0.into()),
        (rawbson!({ "$sin": 0 }), 0.0.into()),
        (rawbson!({ "$cos": 0 }), 1.0.into()),
        (rawbson!({ "$atan2": [0, 1] }), 0.0.into()),
        (rawbson!({ "$acos": 1 }), 0.0.into()),
        (rawbson!({ "$degreesToRadians": 180 }), std::f64::consts::PI.into()),
        (rawbson!({ "$sigmoid": 0 }), 0.5.into()),
        (rawbson!({ "$tan": "$nothing" }), RawBson::Null),
        (rawbson!({ "$bitAnd": [6, 3] }), 2.into()),
        (rawbson!({ "$bitOr": [6, (1_i64)] }), 7_i64.into()),
        (rawbson!({ "$bitXor": [6, 3] }), 5.into()),
        (rawbson!({ "$bitNot": 5 }), (-6).into()),
        (rawbson!({ "$bitAnd": [] }), (-1).into()),
        (rawbson!({ "$bitOr": [1, "$n"] }), RawBson::Null),
    ]);
    refused(vec![
        (rawbson!({ "$pow": [0, -1] }), ErrorCode::Location28764),
        (rawbson!({ "$pow": ["a", 1] }), ErrorCode::Location28762),
        (rawbson!({ "$ln": 0 }), ErrorCode::Location28766),
        (rawbson!({ "$log10": -1 }), ErrorCode::Location28761),
        (rawbson!({ "$log": [1, 1] }), ErrorCode::Location28759),
        (rawbson!({ "$acos": 2 }), ErrorCode::Location50989),
        (rawbson!({ "$sin": f64::INFINITY }), ErrorCode::Location50989),
        (rawbson!({ "$exp": "a" }), ErrorCode::Location28765),
        (rawbson!({ "$bitAnd": [1.5] }), ErrorCode::TypeMismatch),
        (rawbson!({ "$bitNot": 1.0 }), ErrorCode::TypeMismatch),
        (rawbson!({ "$ln": (date(1)) }), ErrorCode::Location28765),
    ]);
}

#[test]
fn regex_matches_have_their_position_in_characters_and_their_groups() {
    let find = |input: &str, regex: RawBson| rawbson!({ "$regexFind": { "input": input, "regex": regex } });
    let find_all = |input: &str, regex: RawBson| rawbson!({ "$regexFindAll": { "input": input, "regex": regex } });
    let regex = |pattern: &str, options: &str| {
        RawBson::RegularExpression(bson::Regex {
            pattern: bson::raw::CString::try_from(pattern).unwrap(),
            options: bson::raw::CString::try_from(options).unwrap(),
        })
    };
    all(vec![
        (find("$s", "l+".into()), rawbson!({ "match": "ll", "idx": 2, "captures": [] })),
        (find("$s", "(h)(x)?.(l)".into()), rawbson!({ "match": "hél", "idx": 0, "captures": ["h", null, "l"] })),
        (find("😀😀b", "b".into()), rawbson!({ "match": "b", "idx": 2, "captures": [] })),
        (find("$s", regex("L", "i")), rawbson!({ "match": "l", "idx": 2, "captures": [] })),
        (find("$s", "x".into()), RawBson::Null),
        (find("$n", "x".into()), RawBson::Null),
        (find("$s", "$n".into()), RawBson::Null),
        (
            rawbson!({ "$regexFind": { "input": "$s", "regex": "H", "options": "i" } }),
            rawbson!({ "match": "h", "idx": 0, "captures": [] }),
        ),
        (
            find_all("a1 é22", r"([a-z]|é)(\d)".into()),
            rawbson!([{ "match": "a1", "idx": 0, "captures": ["a", "1"] }, { "match": "é2", "idx": 3, "captures": ["é", "2"] }]),
        ),
        (
            find_all("é😀", "".into()),
            rawbson!([{ "match": "", "idx": 0, "captures": [] }, { "match": "", "idx": 1, "captures": [] }, { "match": "", "idx": 2, "captures": [] }]),
        ),
        (
            find_all("abab", "^ab|b$".into()),
            rawbson!([{ "match": "ab", "idx": 0, "captures": [] }, { "match": "b", "idx": 3, "captures": [] }]),
        ),
        (find_all("$s", "x".into()), rawbson!([])),
        (find_all("$absent", "x".into()), rawbson!([])),
        (find_all("$s", RawBson::Null), rawbson!([])),
    ]);
    refused(vec![
        (find("$a", "x".into()), ErrorCode::Location51104),
        (find("$s", 1.into()), ErrorCode::Location51105),
        (
            rawbson!({ "$regexFindAll": { "input": "$s", "regex": (regex("a", "i")), "options": "i" } }),
            ErrorCode::Location51107,
        ),
        (find_all("$s", "(".into()), ErrorCode::Location51091),
        (rawbson!({ "$regexFind": "$s" }), ErrorCode::Location51103),
    ]);
}

#[test]
fn arithmetic_with_a_decimal_is_exact_and_gives_decimals() {
    let dec = |text: &str| RawBson::Decimal128(text.parse().unwrap());
    all(vec![
        (rawbson!({ "$add": [(dec("0.1")), (dec("0.2"))] }), dec("0.3")),
        (rawbson!({ "$add": ["$a", (dec("0.10"))] }), dec("5.10")),
        (rawbson!({ "$add": ["$x", (dec("1"))] }), dec("3.50000000000000")),
        (rawbson!({ "$subtract": ["$big", (dec("0.5"))] }), dec("9223372036854775806.5")),
        (rawbson!({ "$multiply": [(dec("1.20")), "$a", 2] }), dec("12.00")),
        (rawbson!({ "$divide": [(dec("1")), 3] }), dec("0.3333333333333333333333333333333333")),
        (rawbson!({ "$mod": [(dec("-7.5")), 2] }), dec("-1.5")),
        (rawbson!({ "$abs": (dec("-7.50")) }), dec("7.50")),
        (rawbson!({ "$ceil": (dec("-7.5")) }), dec("-7")),
        (rawbson!({ "$floor": (dec("-7.5")) }), dec("-8")),
        (rawbson!({ "$round": [(dec("2.345")), 2] }), dec("2.34")),
        (rawbson!({ "$trunc": (dec("2.9")) }), dec("2")),
        (rawbson!({ "$add": ["$t", (dec("7"))] }), date(1_700_000_000_130)),
        (rawbson!({ "$sum": [(dec("0.1")), "$a", "$x", "$s"] }), dec("7.60000000000000")),
        (rawbson!({ "$avg": [[(dec("0.1")), 2]] }), dec("1.05")),
        (rawbson!({ "$add": [(dec("1")), "$n"] }), RawBson::Null),
    ]);
    refused(vec![
        (rawbson!({ "$divide": [(dec("1")), (dec("0.0"))] }), ErrorCode::BadValue),
        (rawbson!({ "$mod": ["$a", (dec("0"))] }), ErrorCode::Location5733415),
        (rawbson!({ "$sqrt": (dec("-4")) }), ErrorCode::Location28714),
    ]);
}

#[test]
fn math_functions_of_decimals_give_decimals_and_deviations_give_doubles() {
    let dec = |text: &str| RawBson::Decimal128(text.parse().unwrap());
    all(vec![
        (rawbson!({ "$sqrt": (dec("2")) }), dec("1.414213562373095048801688724209698")),
        (rawbson!({ "$sqrt": (dec("-0")) }), dec("-0")),
        (rawbson!({ "$sqrt": (dec("NaN")) }), dec("NaN")),
        (rawbson!({ "$pow": [2, (dec("-0.5"))] }), dec("0.7071067811865475244008443621048490")),
        (rawbson!({ "$pow": [(dec("0")), (dec("0"))] }), dec("1")),
        (rawbson!({ "$pow": [(dec("-8")), (dec("0.5"))] }), dec("NaN")),
        (rawbson!({ "$exp": (dec("1")) }), dec("2.718281828459045235360287471352662")),
        (rawbson!({ "$exp": (dec("-Infinity")) }), dec("0")),
        (rawbson!({ "$pow": [0, (dec("NaN"))] }), dec("NaN")),
        (rawbson!({ "$ln": (dec("10")) }), dec("2.302585092994045684017991454684364")),
        (rawbson!({ "$ln": (dec("1E-400")) }), dec("-921.0340371976182736071965818737457")),
        (rawbson!({ "$ln": (dec("NaN")) }), dec("NaN")),
        (rawbson!({ "$log10": (dec("1E-400")) }), dec("-400")),
        (rawbson!({ "$log": [(dec("8")), 2] }), dec("3.000000000000000000000000000000000")),
        (rawbson!({ "$sigmoid": (dec("0")) }), dec("0.5")),
        (rawbson!({ "$sigmoid": (dec("-20000")) }), dec("0E-6176")),
        (rawbson!({ "$degreesToRadians": (dec("180")) }), dec("3.141592653589793238462643383279503")),
        (rawbson!({ "$sin": (dec("0.5")) }), dec("0.479425538604203")),
        (rawbson!({ "$cos": (dec("1E-400")) }), dec("1.00000000000000")),
        (rawbson!({ "$atan2": [(dec("1")), 1] }), dec("0.785398163397448")),
        (rawbson!({ "$stdDevPop": [(dec("1.5")), (dec("2.5"))] }), 0.5.into()),
        (rawbson!({ "$toDouble": (dec("0.1")) }), 0.1.into()),
        (rawbson!({ "$toDouble": (dec("1E-400")) }), 0.0.into()),
    ]);
    refused(vec![
        (rawbson!({ "$ln": (dec("0")) }), ErrorCode::Location28766),
        (rawbson!({ "$log10": (dec("-1E-400")) }), ErrorCode::Location28761),
        (rawbson!({ "$log": [(dec("8")), (dec("1.0"))] }), ErrorCode::Location28759),
        (rawbson!({ "$log": [(dec("-8")), 2] }), ErrorCode::Location28758),
        (rawbson!({ "$pow": [(dec("0")), -1] }), ErrorCode::Location28764),
        (rawbson!({ "$asin": (dec("1.00000000000000000000000001")) }), ErrorCode::Location50989),
        (rawbson!({ "$sin": (dec("Infinity")) }), ErrorCode::Location50989),
        (rawbson!({ "$toDouble": (dec("1E+400")) }), ErrorCode::ConversionFailure),
    ]);
}

#[test]
fn standard_deviations_and_bson_sizes() {
    let binary = RawBson::Binary(bson::Binary { subtype: bson::spec::BinarySubtype::Generic, bytes: vec![1, 2, 3] });
    all(vec![
        (rawbson!({ "$stdDevPop": [2, 4, "$s", 4, 4, 5, 5, 7, 9] }), 2.0.into()),
        (rawbson!({ "$stdDevSamp": [[1, 3]] }), 2_f64.sqrt().into()),
        (rawbson!({ "$stdDevPop": "$list" }), (2.0_f64 / 3.0).sqrt().into()),
        (rawbson!({ "$stdDevPop": 7 }), 0.0.into()),
        (rawbson!({ "$stdDevSamp": 7 }), RawBson::Null),
        (rawbson!({ "$stdDevPop": "$s" }), RawBson::Null),
        (rawbson!({ "$binarySize": "$s" }), 6.into()),
        (rawbson!({ "$binarySize": binary }), 3.into()),
        (rawbson!({ "$binarySize": "$n" }), RawBson::Null),
        (rawbson!({ "$bsonSize": { "a": "$a" } }), 12.into()),
        (rawbson!({ "$bsonSize": "$absent" }), RawBson::Null),
    ]);
    refused(vec![
        (rawbson!({ "$binarySize": "$a" }), ErrorCode::Location51276),
        (rawbson!({ "$bsonSize": "$list" }), ErrorCode::Location31393),
        (rawbson!({ "$stdDevPop": [1, 2] , "$a": 1 }), ErrorCode::Location15983),
    ]);
}

#[test]
fn medians_and_percentiles_are_of_the_numbers_of_an_array() {
    let dec = |text: &str| RawBson::Decimal128(text.parse().unwrap());
    let of = |input: RawBson, p: RawBson, method: &str| rawbson!({ "$percentile": { "input": input, "p": p, "method": method } });
    let median = |input: RawBson, method: &str| rawbson!({ "$median": { "input": input, "method": method } });
    let numbers = || rawbson!([4, "x", (dec("0.1")), 2.5, null, (f64::NAN), 3_i64]);
    all(vec![
        (median(numbers(), "approximate"), 2.5.into()),
        (median(numbers(), "continuous"), 2.75.into()),
        (median("$x".into(), "discrete"), 2.5.into()),
        (median(dec("0.1"), "discrete"), 0.1.into()),
        (median("$s".into(), "discrete"), RawBson::Null),
        (median(rawbson!([]), "continuous"), RawBson::Null),
        (of(numbers(), rawbson!([0, 0.5, 1]), "discrete"), rawbson!([0.1, 2.5, 4.0])),
        (of(numbers(), rawbson!([0.25]), "continuous"), rawbson!([1.9])),
        (of("$absent".into(), rawbson!([0.5, 1]), "discrete"), rawbson!([null, null])),
        (of("$a".into(), rawbson!([{ "$divide": [1, 2] }]), "discrete"), rawbson!([5.0])),
    ]);
    refused(vec![
        (rawbson!({ "$median": "$a" }), ErrorCode::Location7436201),
        (rawbson!({ "$percentile": ["$a"] }), ErrorCode::Location7436200),
        (rawbson!({ "$median": { "input": "$a" } }), ErrorCode::IDLFailedToParse),
        (rawbson!({ "$median": { "input": "$a", "method": "discrete", "p": [1] } }), ErrorCode::IDLUnknownField),
        (median("$a".into(), "exact"), ErrorCode::BadValue),
        (rawbson!({ "$median": { "input": "$a", "method": 1 } }), ErrorCode::TypeMismatch),
        (of("$a".into(), "$list".into(), "discrete"), ErrorCode::Location7750300),
        (of("$a".into(), rawbson!([]), "discrete"), ErrorCode::Location7750301),
        (of("$a".into(), rawbson!(["x"]), "discrete"), ErrorCode::Location7750302),
        (of("$a".into(), rawbson!([1.5]), "discrete"), ErrorCode::Location7750303),
    ]);
}

#[test]
fn an_interpolated_value_is_never_outside_its_two_numbers() {
    // Half of the smallest double is 0, and 0.3 and 0.7 of 0.1 add up to less than 0.1: a naive formula fails here.
    let least = f64::from_bits(1);
    let at = |numbers: [f64; 2], p: f64| rawbson!({ "$percentile": { "input": [(numbers[0]), (numbers[1])], "p": [p], "method": "continuous" } });
    for (numbers, p, wanted) in [
        ([least, least], 0.5, least),
        ([-least, -least], 0.5, -least),
        ([0.1, 0.1], 0.3, 0.1),
        ([0.3, 0.3], 0.43, 0.3),
        ([f64::MAX, f64::MAX], 0.9, f64::MAX),
        ([f64::MIN, f64::MAX], 0.5, 0.0),
        ([least, 3.0 * least], 0.5, 2.0 * least),
        ([1.0, 2.0], 0.25, 1.25),
    ] {
        check(at(numbers, p), rawbson!([wanted]));
    }
}
