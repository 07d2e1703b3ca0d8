//! Filters on measured values: types, arrays, objects, missing fields and NaN.

use bson::{DateTime, RawDocumentBuf, rawdoc};

use super::forms::{Forms, at, joined, series};

/// Numbers and other values in three series; the rows are numbered from 1.
pub fn assorted() -> Vec<RawDocumentBuf> {
    series(&[
        rawdoc! { "m": 0, "a": 1 },
        rawdoc! { "m": 1, "a": 2 },
        rawdoc! { "m": 1, "a": 3 },
        rawdoc! { "m": 1, "a": 4 },
        rawdoc! { "m": 2, "a": 5 },
        rawdoc! { "m": 2 },
        rawdoc! { "m": 2, "a": null },
        rawdoc! { "m": 2, "a": [1, 2, 3] },
    ])
}

#[test]
fn a_number_is_compared_with_numbers_and_with_the_elements_of_arrays() {
    let forms = Forms::of(&assorted());
    forms.finds(rawdoc! { "a": { "$gt": 3 } }, &[4, 5]);
    forms.finds(rawdoc! { "a": { "$gte": 3 } }, &[3, 4, 5, 8]);
    forms.finds(rawdoc! { "a": { "$lt": 3 } }, &[1, 2, 8]);
    forms.finds(rawdoc! { "a": { "$lte": 3 } }, &[1, 2, 3, 8]);
    forms.finds(rawdoc! { "a": 3 }, &[3, 8]);
}

#[test]
fn mixed_types_share_a_bucket_only_if_contexts_write_it_concurrently() {
    let forms = Forms::of(&series(&[rawdoc! { "a": 1 }, rawdoc! { "a": "s" }, rawdoc! { "a": [2] }]));
    assert_eq!(forms.bucket_counts(), [3, 3, 3, 3, 3, 3, 1, 1]);
}

#[test]
fn a_missing_field_equals_null_and_is_not_less_than_strings_or_numbers() {
    let forms = Forms::of(&series(&[rawdoc! { "x": "abc" }, rawdoc! {}]));
    forms.finds(rawdoc! { "x": null }, &[2]);
    forms.finds(rawdoc! { "x": { "$lt": "aaa" } }, &[]);
    forms.finds(rawdoc! { "x": { "$lte": 10 } }, &[]);
    forms.finds(rawdoc! { "$expr": { "$lt": ["$x", "aaa"] } }, &[2]);
    forms.finds(rawdoc! { "$expr": { "$lte": ["$x", 10] } }, &[2]);
}

#[test]
fn nan_matches_no_range_and_equals_itself() {
    let nan = f64::NAN;
    let forms = Forms::of(&series(&[rawdoc! { "v": 1.0 }, rawdoc! { "v": nan }, rawdoc! { "v": 100.0 }]));
    forms.finds(rawdoc! { "v": { "$lt": 50.0 } }, &[1]);
    forms.finds(rawdoc! { "v": { "$gt": 50.0 } }, &[3]);
    forms.finds(rawdoc! { "v": { "$gte": 0.0, "$lte": 200.0 } }, &[1, 3]);
    forms.finds(rawdoc! { "v": nan }, &[2]);
    let nothing_else = Forms::of(&series(&[rawdoc! { "v": nan }, rawdoc! { "v": nan }]));
    for range in [rawdoc! { "$lt": 50.0 }, rawdoc! { "$gt": 50.0 }, rawdoc! { "$gte": 0.0, "$lte": 200.0 }] {
        nothing_else.finds(rawdoc! { "v": range }, &[]);
    }
    nothing_else.finds(rawdoc! { "v": nan }, &[1, 2]);
}

#[test]
fn an_array_above_a_number_in_one_bucket_is_found_by_its_elements() {
    // The minimum of the bucket is 4, since arrays sort above numbers.
    let forms = Forms::of(&series(&[rawdoc! { "a": [2, 3] }, rawdoc! { "a": 4 }]));
    forms.finds(rawdoc! { "a": { "$lte": 3 } }, &[1]);
}

#[test]
fn a_path_into_objects_matches_beside_scalars() {
    let moment = DateTime::from_millis(5);
    let forms = Forms::of(&series(&[rawdoc! { "a": 1 }, rawdoc! { "a": { "b": 3 } }, rawdoc! { "a": moment }]));
    forms.finds(rawdoc! { "a.b": { "$gt": 2 } }, &[2]);
    let in_arrays =
        series(&[rawdoc! { "a": [1] }, rawdoc! { "a": [{ "b": 3 }] }, rawdoc! { "a": [moment, { "b": 1 }] }]);
    Forms::of(&in_arrays).finds(rawdoc! { "a.b": { "$gt": 2 } }, &[2]);
}

#[test]
fn an_array_at_the_end_of_a_path_is_found_by_its_elements() {
    let forms = Forms::of(&series(&[rawdoc! { "a": { "b": 3 } }, rawdoc! { "a": { "b": [1, 2] } }]));
    forms.finds(rawdoc! { "a.b": { "$gte": 3 } }, &[1]);
    forms.finds(rawdoc! { "a.b": 2 }, &[2]);
    let forms = Forms::of(&series(&[rawdoc! { "a": { "b": 4 } }, rawdoc! { "a": { "b": [1, 2] } }]));
    forms.finds(rawdoc! { "a.b": { "$lte": 3 } }, &[2]);
}

#[test]
fn an_array_position_is_compared_by_type() {
    let rows = series(&[rawdoc! { "a": 7 }, rawdoc! { "a": ["ya", "no", 3] }, rawdoc! { "a": true }]);
    Forms::of(&rows).finds(rawdoc! { "a.0": { "$gte": "" } }, &[2]);
}

#[test]
fn arrays_of_objects_within_arrays_of_objects_are_searched_to_the_end_of_the_path() {
    let forms = Forms::of(&series(&[
        rawdoc! { "a": { "b": [{ "c": 3 }, { "c": 4 }] } },
        rawdoc! { "a": [{ "b": [{ "c": 1 }, { "c": 2 }] }, { "b": { "c": 2 } }] },
    ]));
    forms.finds(rawdoc! { "a.b.c": { "$lt": 2 } }, &[2]);
    forms.finds(rawdoc! { "a.b.c": { "$gte": 3 } }, &[1]);
}

#[test]
fn a_value_above_the_maximum_excludes_the_bucket() {
    let forms = Forms::with(
        &rawdoc! { "timeField": "time", "metaField": "tag" },
        &[rawdoc! { "time": at(0), "tag": 1, "n": 1, "a": 42 }],
    );
    let above = rawdoc! { "a": { "$gt": 100 } };
    let scanned = forms.explained_filter(above.clone());
    assert_eq!(scanned.plan().get_str("stage").unwrap(), "COLLSCAN");
    assert_eq!(scanned.counts(), [1, 0, 0, 0]);
    let fetched = forms.explained_filter(joined(&[&rawdoc! { "tag": 1 }, &above]));
    assert_eq!(fetched.plan().get_str("stage").unwrap(), "FETCH");
    assert_eq!(fetched.counts(), [1, 0, 0, 0]);
    let stages = fetched.stats().get_document("executionStages").unwrap();
    let index = stages.get_document("inputStage").unwrap();
    assert_eq!((index.get_str("stage").unwrap(), index.get_i64("nReturned").unwrap()), ("IXSCAN", 1));
    forms.finds(above, &[]);
}

#[test]
fn an_empty_in_finds_nothing() {
    let forms = Forms::of(&[rawdoc! { "time": at(0), "_id": 1, "n": 1 }, rawdoc! { "time": at(1), "n": 2 }]);
    forms.finds(rawdoc! { "_id": { "$in": [] } }, &[]);
    forms.finds(rawdoc! { "_id": { "$nin": [] } }, &[1, 2]);
    forms.finds(rawdoc! { "_id": { "$in": [1] } }, &[1]);
}
