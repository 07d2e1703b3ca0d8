//! `$expr` in filters: what of it is asked of buckets, and that its own rules of comparing hold.

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
fn a_time_in_an_expression_decides_for_buckets_as_a_filter_does() {
    let forms = Forms::of(&assorted());
    let after = rawdoc! { "$expr": { "$gt": ["$time", at(5000)] } };
    forms.finds(after.clone(), &[6, 7, 8]);
    let found = forms.explained_filter(after);
    let events = doc! { "$expr": { "$gt": ["$time", { "$const": at(5000) }] } };
    assert_eq!(found.unpack().get_document("eventFilter").unwrap(), &events);
    let whole = doc! { "control.min.time": { "$_internalExprGt": at(5000) } };
    assert_eq!(found.unpack().get_document("wholeBucketFilter").unwrap(), &whole);
    assert!(found.plan().get("minRecord").is_some());
    // Those of the last series alone reach behind that moment: one that begins with the number, one of null, one of the array.
    assert_eq!(found.counts()[1..3], [3, 3]);
}

#[test]
fn what_an_expression_says_of_the_metadata_leaves_the_filter_of_measurements() {
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
fn an_expression_of_metadata_and_a_measured_field_leaves_every_bucket_undecided() {
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
fn a_missing_field_is_below_the_metadata_in_an_expression() {
    let forms = Forms::of(&series(&[
        rawdoc! { "m": 1, "a": 0 },
        rawdoc! { "m": 2, "a": 1 },
        rawdoc! { "m": 2, "a": 2 },
        rawdoc! { "m": 2 },
        rawdoc! { "m": 3, "a": 7 },
    ]));
    forms.finds(rawdoc! { "$expr": { "$and": [{ "$lt": ["$a", "$m"] }, { "$gt": ["$m", 1] }] } }, &[2, 4]);
}
