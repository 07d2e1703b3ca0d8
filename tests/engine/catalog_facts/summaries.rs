//! `control.min` and `control.max`. Documents are written as a whole, so there are no deltas: the facts about deltas
//! are checked on whole summaries.

use bson::{RawDocumentBuf, oid::ObjectId, rawdoc};
use timepail::bucket::{MinMax, Schema};
use timepail::value::{Collation, Doc};

fn view(doc: &RawDocumentBuf) -> Doc<'_> {
    Doc::parse(doc.as_bytes()).unwrap()
}

fn update(summary: &mut MinMax, doc: &RawDocumentBuf) {
    view(doc).iter().for_each(|(name, value)| summary.update(name, value));
}

fn assert_shown(summary: &MinMax, min: &RawDocumentBuf, max: &RawDocumentBuf) {
    assert_eq!((summary.min_doc().view(), summary.max_doc().view()), (view(min), view(max)));
}

#[test]
fn a_lower_value_changes_only_the_minimum() {
    let mut summary = MinMax::default();
    let first = rawdoc! { "a": 2, "b": 3 };
    update(&mut summary, &first);
    assert_shown(&summary, &first, &first);
    update(&mut summary, &rawdoc! { "a": 1, "b": 3 });
    assert_shown(&summary, &rawdoc! { "a": 1, "b": 3 }, &first);
}

#[test]
fn the_summary_of_one_measurement_is_the_measurement() {
    let mut summary = MinMax::default();
    update(&mut summary, &rawdoc! { "a": 2, "b": 3 });
    assert_shown(&summary, &rawdoc! { "a": 2, "b": 3 }, &rawdoc! { "a": 2, "b": 3 });
}

#[test]
fn an_object_replaces_an_array_as_minimum_and_an_array_an_object_as_maximum() {
    let mut summary = MinMax::default();
    update(&mut summary, &rawdoc! { "a": { "z": 1 }, "b": [{ "z": 1 }, { "z": 2 }] });
    update(&mut summary, &rawdoc! { "a": [{ "z": 1 }, { "z": 2 }], "b": { "z": 1 } });
    let (min, max) = (
        rawdoc! { "a": { "z": 1 }, "b": { "z": 1 } },
        rawdoc! { "a": [{ "z": 1 }, { "z": 2 }], "b": [{ "z": 1 }, { "z": 2 }] },
    );
    assert_shown(&summary, &min, &max);
    // Adding them again changes nothing.
    assert_shown(&summary, &min, &max);
}

#[test]
fn a_higher_value_changes_only_the_maximum() {
    let mut summary = MinMax::default();
    update(&mut summary, &rawdoc! { "a": 2, "b": 3 });
    update(&mut summary, &rawdoc! { "a": 5, "b": 3 });
    assert_shown(&summary, &rawdoc! { "a": 2, "b": 3 }, &rawdoc! { "a": 5, "b": 3 });
}

#[test]
fn stored_summaries_are_read_and_written_back_as_they_were() {
    let id = |n| ObjectId::from_bytes([n; 12]);
    for (min, max) in [
        (rawdoc! { "a": 1, "b": -2.5 }, rawdoc! { "a": 2, "b": 1e300 }),
        (rawdoc! { "a": [1, 2, 3] }, rawdoc! { "a": [4, 5, 6] }),
        (
            rawdoc! { "a": { "b": { "c": 1 }, "d": [{ "e": 1 }] } },
            rawdoc! { "a": { "b": { "c": 2 }, "d": [{ "e": 3 }] } },
        ),
        (rawdoc! { "a": "a" }, rawdoc! { "a": "aa" }),
        (rawdoc! { "a": id(1), "b": true }, rawdoc! { "a": id(2), "b": true }),
    ] {
        let summary = MinMax::from_control(view(&min), view(&max), &Collation::default()).unwrap();
        assert_shown(&summary, &min, &max);
    }
}

#[test]
fn mixed_types_have_a_summary_and_no_schema() {
    for (one, two) in [
        (rawdoc! { "a": 1 }, rawdoc! { "a": {} }),
        (rawdoc! { "a": {} }, rawdoc! { "a": 1 }),
        (rawdoc! { "a": [] }, rawdoc! { "a": {} }),
        (rawdoc! { "a": 1 }, rawdoc! { "a": "foo" }),
    ] {
        assert!(MinMax::from_control(view(&one), view(&two), &Collation::default()).is_ok());
        assert!(Schema::from_control(view(&one), view(&two)).is_err());
    }
}
