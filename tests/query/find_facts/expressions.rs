//! `$expr` in filters: the part that buckets decide, and its own comparison rules.

use bson::{doc, rawdoc};

use super::forms::{Forms, at, series};
use super::values::assorted;

#[test]
fn an_expression_compares_values_of_different_types() {
    let forms = Forms::of(&assorted());
    forms.finds(rawdoc! { "$expr": { "$gt": ["$a", 3] } }, &[4, 5, 8]);
    forms.finds(rawdoc! { "$expr": { "$lt": ["$a", 3] } }, &[1, 2, 6, 7]);
}

#[test]
fn a_time_bound_in_an_expression_prunes_buckets_like_a_filter() {
    let forms = Forms::of(&assorted());
    let after = rawdoc! { "$expr": { "$gt": ["$time", at(5000)] } };
    forms.finds(after.clone(), &[6, 7, 8]);
    let found = forms.explained_filter(after);
    let events = doc! { "$expr": { "$gt": ["$time", { "$const": at(5000) }] } };
    assert_eq!(found.unpack().get_document("eventFilter").unwrap(), &events);
    let whole = doc! { "control.min.time": { "$_internalExprGt": at(5000) } };
    assert_eq!(found.unpack().get_document("wholeBucketFilter").unwrap(), &whole);
    assert!(found.plan().get("minRecord").is_some());
    // Only the buckets of the last series reach beyond that time: one that begins with the number, one of null, one of the array.
    assert_eq!(found.counts()[1..3], [3, 3]);
}

#[test]
fn expressions_on_metadata_are_removed_from_the_measurement_filter() {
    let forms = Forms::of(&assorted());
    let both = rawdoc! { "$expr": { "$and": [{ "$eq": ["$m", 2] }, { "$gt": ["$time", at(5000)] }] } };
    forms.finds(both.clone(), &[6, 7, 8]);
    let found = forms.explained_filter(both);
    let events = doc! { "$expr": { "$gt": ["$time", { "$const": at(5000) }] } };
    assert_eq!(found.unpack().get_document("eventFilter").unwrap(), &events);
    assert!(found.plan().to_string().contains("$meta"), "{}", found.plan());
    assert_eq!(found.counts()[1..3], [3, 3]);
}

#[test]
fn an_expression_on_metadata_and_a_measured_field_decides_no_bucket() {
    let forms = Forms::of(&assorted());
    let both = rawdoc! { "$expr": { "$and": [{ "$eq": ["$m", "$a"] }, { "$gt": ["$time", at(2000)] }] } };
    forms.finds(both.clone(), &[]);
    let found = forms.explained_filter(both);
    assert!(found.unpack().get("wholeBucketFilter").is_none());
    assert!(found.unpack().get("eventFilter").is_some() && found.plan().get("minRecord").is_some());
    forms.finds(rawdoc! { "$expr": { "$and": [{ "$eq": ["$m", "$a"] }, { "$gt": ["$time", at(0)] }] } }, &[]);
    forms.finds(rawdoc! { "$expr": { "$and": [{ "$lt": ["$m", "$a"] }, { "$gt": ["$time", at(3000)] }] } }, &[4, 5, 8]);
}

#[test]
fn in_an_expression_a_missing_field_is_less_than_the_metadata() {
    let forms = Forms::of(&series(&[
        rawdoc! { "m": 1, "a": 0 },
        rawdoc! { "m": 2, "a": 1 },
        rawdoc! { "m": 2, "a": 2 },
        rawdoc! { "m": 2 },
        rawdoc! { "m": 3, "a": 7 },
    ]));
    forms.finds(rawdoc! { "$expr": { "$and": [{ "$lt": ["$a", "$m"] }, { "$gt": ["$m", 1] }] } }, &[2, 4]);
}
