//! Filters for which deciding by the bucket alone easily goes wrong, each with a bucket that shows it.

use bson::{DateTime, RawBson, RawDocumentBuf, cstr, rawdoc};

use super::{Layout, Split, split};
use crate::bucket::{MinMax, TimeseriesOptions};
use crate::query::filter::samples::{filter, hits};
use crate::value::{Collation, Doc};

/// Which rows of a bucket match, and what the predicates say about the bucket.
#[derive(Debug, PartialEq)]
struct Answer {
    rows: Vec<usize>,
    may_match: bool,
    all_match: bool,
}

fn split_of(wanted: &RawDocumentBuf, mixed_schema: bool) -> Split {
    let options = TimeseriesOptions {
        time_field: "t".into(),
        meta_field: Some("m".into()),
        rebucketed: false,
        granularity: None,
        span_seconds: 3_600,
        rounding_seconds: Some(60),
        collation: Collation::default(),
    };
    split(
        &filter(wanted),
        &Layout {
            options: &options,
            extended_range: false,
            mixed_schema,
            fixed_buckets: false,
            is_index_filter: false,
        },
    )
}

/// Applies a filter to a bucket of `rows`; types are mixed if the rows have several.
#[track_caller]
fn ask(rows: &[RawDocumentBuf], mixed_schema: bool, wanted: RawDocumentBuf) -> Answer {
    let mut summary = MinMax::seed_time("t", 0, &Collation::default());
    for row in rows {
        Doc::parse(row.as_bytes()).unwrap().iter().for_each(|(name, value)| summary.update(name, value));
    }
    let split = split_of(&wanted, mixed_schema);
    let (min, max) = (summary.min_doc(), summary.max_doc());
    let (may_match, all_match) =
        (split.bucket.may_match(min.view(), max.view(), None), split.whole.all_match(min.view(), max.view(), None));
    let rows = hits(rows, wanted);
    assert!(may_match || rows.is_empty(), "a bucket with a match was ruled out");
    Answer { rows, may_match, all_match }
}

/// Applies a filter and checks that the bucket stays undecided.
#[track_caller]
fn undecided(rows: &[RawDocumentBuf], mixed_schema: bool, wanted: RawDocumentBuf) -> Vec<usize> {
    let answer = ask(rows, mixed_schema, wanted);
    assert!(answer.may_match && !answer.all_match);
    answer.rows
}

#[test]
fn in_an_expression_a_missing_field_is_less_than_any_constant() {
    let rows = [rawdoc! { "a": 9 }, rawdoc! {}];
    for op in [cstr!("$lt"), cstr!("$lte")] {
        assert_eq!(undecided(&rows, false, rawdoc! { "$expr": { op: ["$a", 5] } }), [1]);
        assert!(!ask(&rows, false, rawdoc! { "a": { op: 5 } }).may_match);
    }
    // With its sides swapped, it is the same comparison.
    assert_eq!(undecided(&rows, false, rawdoc! { "$expr": { "$gt": [5, "$a"] } }), [1]);
    assert!(!ask(&rows, false, rawdoc! { "$expr": { "$gt": ["$a", 9] } }).may_match);
}

#[test]
fn null_matches_fields_that_are_in_no_summary() {
    let rows = [rawdoc! { "x": "abc" }, rawdoc! {}];
    for wanted in [
        rawdoc! { "x": null },
        rawdoc! { "x": { "$in": ["zzz", null] } },
        rawdoc! { "x": { "$lte": null } },
        rawdoc! { "x": { "$exists": false } },
        rawdoc! { "x": { "$all": [null] } },
        rawdoc! { "x": { "$not": { "$type": "string" } } },
    ] {
        assert_eq!(undecided(&rows, false, wanted), [1]);
    }
}

#[test]
fn no_negation_is_decided_by_summaries() {
    let rows = [rawdoc! { "a": 1 }, rawdoc! { "a": 3 }];
    for wanted in [
        rawdoc! { "a": { "$ne": 3 } },
        rawdoc! { "a": { "$nin": [3] } },
        rawdoc! { "a": { "$not": { "$gt": 2 } } },
        rawdoc! { "$nor": [{ "a": 3 }] },
        rawdoc! { "$expr": { "$not": { "$eq": ["$a", 3] } } },
        rawdoc! { "$expr": { "$ne": ["$a", 3] } },
    ] {
        assert_eq!(undecided(&rows, false, wanted), [0]);
    }
}

#[test]
fn an_array_matches_by_element_and_is_summarised_by_position() {
    let rows = [rawdoc! { "a": [1, 9] }, rawdoc! { "a": [5, 2] }];
    for wanted in [
        rawdoc! { "a": 9 },
        rawdoc! { "a": { "$gt": 8 } },
        rawdoc! { "a": { "$elemMatch": { "$gt": 8 } } },
        rawdoc! { "a": { "$all": [1, 9] } },
        rawdoc! { "a.1": 9 },
        rawdoc! { "$expr": { "$in": [9, "$a"] } },
        rawdoc! { "$expr": { "$lt": ["$a", [5]] } },
    ] {
        assert_eq!(undecided(&rows, false, wanted), [0]);
    }
    assert_eq!(undecided(&rows, false, rawdoc! { "a": { "$size": 2 } }), [0, 1]);
}

#[test]
fn a_whole_object_is_not_compared_with_one_merged_from_many() {
    let rows = [rawdoc! { "o": { "x": 1, "y": 9 } }, rawdoc! { "o": { "x": 5, "y": 2 } }];
    assert_eq!(undecided(&rows, false, rawdoc! { "o": { "x": 1, "y": 9 } }), [0]);
    assert_eq!(undecided(&rows, false, rawdoc! { "$expr": { "$eq": ["$o", { "x": 5, "y": 2 }] } }), [1]);
}

#[test]
fn mixed_types_on_a_path_hide_the_values_below() {
    let rows = [rawdoc! { "a": 1 }, rawdoc! { "a": { "b": 3 } }, rawdoc! { "a": DateTime::from_millis(0) }];
    assert_eq!(undecided(&rows, true, rawdoc! { "a.b": { "$gt": 2 } }), [1]);
    assert_eq!(undecided(&rows, true, rawdoc! { "$expr": { "$gt": ["$a.b", 2] } }), [1]);
    let rows = [rawdoc! { "a": [2, 3] }, rawdoc! { "a": 4 }];
    assert_eq!(undecided(&rows, true, rawdoc! { "a": { "$lte": 3 } }), [0]);
    let rows = [rawdoc! { "a": "b" }, rawdoc! { "a": "x" }, rawdoc! { "a": DateTime::from_millis(0) }];
    assert_eq!(undecided(&rows, true, rawdoc! { "a": { "$regex": "^x" } }), [1]);
}

#[test]
fn nan_is_in_no_range_of_a_filter_and_below_everything_in_a_summary_and_an_expression() {
    let rows = [rawdoc! { "v": 1.0 }, rawdoc! { "v": f64::NAN }, rawdoc! { "v": 100.0 }];
    for (wanted, found) in [
        (rawdoc! { "v": { "$lt": 50 } }, vec![0]),
        (rawdoc! { "v": { "$gt": 50 } }, vec![2]),
        (rawdoc! { "v": f64::NAN }, vec![1]),
        (rawdoc! { "$expr": { "$lt": ["$v", 50] } }, vec![0, 1]),
        (rawdoc! { "$expr": { "$eq": ["$v", f64::NAN] } }, vec![1]),
    ] {
        assert_eq!(undecided(&rows, false, wanted), found);
    }
    assert_eq!(ask(&rows[1..2], false, rawdoc! { "v": { "$gt": 0 } }).rows, [0_usize; 0]);
}

#[test]
fn a_field_inside_arrays_may_exist_without_being_in_a_summary() {
    let rows = [rawdoc! { "a": [1] }, rawdoc! { "a": [{ "b": 3 }] }];
    assert_eq!(undecided(&rows, false, rawdoc! { "a.b": { "$exists": true } }), [1]);
}

#[test]
fn minkey_and_maxkey_bounds_match_values_of_every_type() {
    let rows = [rawdoc! { "x": 1 }, rawdoc! {}];
    assert_eq!(undecided(&rows, false, rawdoc! { "x": { "$gt": RawBson::MinKey } }), [0, 1]);
    assert_eq!(undecided(&rows, false, rawdoc! { "x": { "$lt": RawBson::MaxKey } }), [0, 1]);
}

#[test]
fn a_field_name_with_a_dot_is_not_reachable_by_a_path() {
    let rows = [rawdoc! { "a.b": 3 }, rawdoc! { "a": { "b": 3 } }];
    assert_eq!(undecided(&rows, true, rawdoc! { "a.b": 3 }), [1]);
    assert_eq!(undecided(&rows, true, rawdoc! { "$expr": { "$eq": ["$a.b", 3] } }), [1]);
    assert_eq!(undecided(&rows, true, rawdoc! { "$expr": { "$eq": [{ "$getField": "a.b" }, 3] } }), [0]);
}

#[test]
fn a_number_is_a_position_to_filters_and_a_name_to_expressions() {
    let rows = [rawdoc! { "a": [7, 8] }, rawdoc! { "a": { "0": 7 } }];
    assert_eq!(undecided(&rows, true, rawdoc! { "a.0": 7 }), [0, 1]);
    assert_eq!(undecided(&rows, true, rawdoc! { "$expr": { "$eq": ["$a.0", 7] } }), [1]);
    assert_eq!(undecided(&rows, true, rawdoc! { "$expr": { "$eq": ["$a.0", []] } }), [0]);
}

#[test]
fn bucket_predicates_compare_decimals_and_doubles_exactly() {
    let rows = [rawdoc! { "n": 0.1 }];
    let decimal = |text: &str| RawBson::Decimal128(text.parse().unwrap());
    assert!(!ask(&rows, false, rawdoc! { "n": decimal("0.1") }).may_match);
    assert_eq!(undecided(&rows, false, rawdoc! { "n": { "$gt": decimal("0.1") } }), [0]);
    assert_eq!(undecided(&rows, false, rawdoc! { "$expr": { "$gt": ["$n", decimal("0.1")] } }), [0]);
}

#[test]
fn a_literal_prefix_excludes_buckets_of_other_strings_but_not_of_stored_patterns() {
    let rows = [rawdoc! { "s": "aba" }, rawdoc! { "s": "abz" }];
    for (pattern, may_match) in
        [("^ab", true), ("^aba", true), ("^abzz", false), ("^aa", false), ("^b", false), ("^ab?z", true)]
    {
        assert_eq!(ask(&rows, false, rawdoc! { "s": { "$regex": pattern } }).may_match, may_match, "{pattern}");
    }
    assert!(ask(&rows, false, rawdoc! { "s": { "$regex": "^AA", "$options": "i" } }).may_match);
    let like = || RawBson::RegularExpression(bson::Regex { pattern: cstr!("^b").into(), options: cstr!("").into() });
    assert_eq!(undecided(&[rawdoc! { "s": like() }], false, rawdoc! { "s": like() }), [0]);
}

#[test]
fn an_expression_that_compares_the_time_decides_as_a_filter_does() {
    let at = |ms: i64| RawBson::DateTime(DateTime::from_millis(ms));
    let rows = [rawdoc! { "t": at(60_000) }, rawdoc! { "t": at(70_000) }];
    let before = ask(&rows, true, rawdoc! { "$expr": { "$lt": ["$t", at(70_001)] } });
    assert_eq!(before, Answer { rows: vec![0, 1], may_match: true, all_match: true });
    assert!(!ask(&rows, true, rawdoc! { "$expr": { "$gt": ["$t", at(70_000)] } }).may_match);
    // If part of a conjunction cannot be rewritten, the whole stays undecided.
    let both = rawdoc! { "$expr": { "$and": [{ "$lt": ["$t", at(70_001)] }, { "$eq": [{ "$year": "$t" }, 1970] }] } };
    assert_eq!(undecided(&rows, true, both), [0, 1]);
}

#[test]
fn an_expression_on_metadata_only_is_decided_by_the_bucket() {
    let split =
        split_of(&rawdoc! { "$expr": { "$and": [{ "$eq": ["$m.a", "$m.b"] }, { "$gt": ["$x", "$m.a"] }] } }, true);
    assert_eq!(split.meta, filter(&rawdoc! { "$expr": { "$eq": ["$meta.a", "$meta.b"] } }));
    assert_eq!(split.residual, filter(&rawdoc! { "$expr": { "$gt": ["$x", "$m.a"] } }));
    // A new random number is drawn for each measurement.
    let chance = split_of(&rawdoc! { "$expr": { "$lt": [{ "$rand": {} }, "$m.rate"] } }, true);
    assert!(chance.meta.is_trivial() && !chance.residual.is_trivial());
}

#[test]
fn a_failure_on_the_metadata_is_left_for_the_rows_to_raise() {
    let split = split_of(&rawdoc! { "$or": [{ "x": 1 }, { "$expr": { "$divide": [1, "$m"] } }] }, true);
    let zero = crate::value::OwnedValue::int32(0);
    let doc = Doc::EMPTY;
    assert!(split.bucket.may_match(doc, doc, Some(zero.view())));
    assert!(!split.whole.all_match(doc, doc, Some(zero.view())));
    assert!(split.residual.matches_value(Some(zero.view())).is_err());
}
