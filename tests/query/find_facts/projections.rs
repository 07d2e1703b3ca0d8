//! Projections: the columns that they need, computed fields, and filters before them.

use bson::{Bson, Document, RawDocumentBuf, doc, rawdoc};

use super::forms::{Forms, at};

fn rows() -> Vec<RawDocumentBuf> {
    vec![
        rawdoc! { "time": at(0), "m": 42, "_id": 1, "a": 1, "b": 10 },
        rawdoc! { "time": at(1), "m": 42, "_id": 2, "a": 2, "b": 20 },
        rawdoc! { "time": at(2), "_id": 3, "a": 2, "b": 30 },
        rawdoc! { "time": at(3), "m": 42, "_id": 4, "b": 40, "a": { "sub": 5 } },
        rawdoc! { "time": at(4), "m": 7, "_id": 5, "b": 50 },
    ]
}

/// The rows of a filter and a projection, in time order.
#[track_caller]
fn found(forms: &Forms, filter: RawDocumentBuf, projection: RawDocumentBuf) -> Vec<Document> {
    forms.sorted(rawdoc! { "find": "c", "filter": filter, "projection": projection, "sort": { "time": 1 } })
}

#[test]
fn a_filter_decodes_a_column_that_the_projection_omits() {
    let forms = Forms::of(&rows());
    let (filter, only_id) = (rawdoc! { "a": 2 }, rawdoc! { "_id": 1 });
    assert_eq!(found(&forms, filter.clone(), only_id.clone()), [doc! { "_id": 2 }, doc! { "_id": 3 }]);
    let explained = forms.explained(rawdoc! { "find": "c", "filter": filter, "projection": only_id });
    let mut include: Vec<&str> =
        explained.unpack().get_array("include").unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    include.sort_unstable();
    assert_eq!(include, ["_id", "a"]);
}

#[test]
fn an_exclusion_decodes_every_other_column_and_adds_no_metadata() {
    let forms = Forms::of(&rows());
    let (filter, without) = (rawdoc! { "a": 2 }, rawdoc! { "a": 0 });
    let expected = [doc! { "time": at(1), "m": 42, "_id": 2, "b": 20 }, doc! { "time": at(2), "_id": 3, "b": 30 }];
    assert_eq!(found(&forms, filter.clone(), without.clone()), expected);
    let explained = forms.explained(rawdoc! { "find": "c", "filter": filter, "projection": without });
    assert_eq!(explained.unpack().get_array("exclude").unwrap(), &Vec::<Bson>::new());
}

#[test]
fn a_filter_applies_before_the_projection() {
    let forms = Forms::of(&rows());
    let only_b = || rawdoc! { "b": 1, "_id": 0 };
    let b = |values: &[i32]| values.iter().map(|b| doc! { "b": b }).collect::<Vec<_>>();
    assert_eq!(found(&forms, rawdoc! { "a": 2 }, only_b()), b(&[20, 30]));
    assert_eq!(found(&forms, rawdoc! { "a.sub": 5 }, only_b()), b(&[40]));
    assert_eq!(found(&forms, rawdoc! { "a": { "$exists": false } }, only_b()), b(&[50]));
    let more = rawdoc! { "_id": 1, "a": { "$add": [1, "$a"] } };
    assert_eq!(found(&forms, rawdoc! { "a": 1 }, more), [doc! { "_id": 1, "a": 2 }]);
    let no_meta = rawdoc! { "m": 0, "time": 0, "a": 0, "_id": 0 };
    assert_eq!(found(&forms, rawdoc! { "m": 42 }, no_meta.clone()), b(&[10, 20, 40]));
    assert_eq!(found(&forms, rawdoc! { "m": { "$exists": false } }, no_meta), b(&[30]));
}

#[test]
fn a_field_computed_from_metadata_replaces_its_column() {
    let forms = Forms::of(&[
        rawdoc! { "time": at(0), "m": 4, "b": 1, "c": "real" },
        rawdoc! { "time": at(1), "m": 5, "b": 2 },
        rawdoc! { "time": at(2), "m": 6 },
    ]);
    let computed = rawdoc! { "_id": 0, "b": "$m", "c": { "$multiply": [2, "$m"] } };
    let expected = [doc! { "b": 4, "c": 8 }, doc! { "b": 5, "c": 10 }, doc! { "b": 6, "c": 12 }];
    assert_eq!(found(&forms, rawdoc! {}, computed.clone()), expected);
    // The filter still uses the columns.
    assert_eq!(found(&forms, rawdoc! { "b": { "$lte": 2 }, "c": { "$exists": true } }, computed), expected[..1]);
}

#[test]
fn a_projection_can_replace_the_time_and_the_metadata() {
    let forms = Forms::of(&[
        rawdoc! { "time": at(0), "m": 4, "b": 1 },
        rawdoc! { "time": at(1), "m": 5 },
        rawdoc! { "time": at(2), "b": 3 },
    ]);
    let of = |projection: RawDocumentBuf| found(&forms, rawdoc! {}, projection);
    assert_eq!(of(rawdoc! { "_id": 0, "time": "$m" }), [doc! { "time": 4 }, doc! { "time": 5 }, doc! {}]);
    assert_eq!(of(rawdoc! { "_id": 0, "m": "$b" }), [doc! { "m": 1 }, doc! {}, doc! { "m": 3 }]);
    assert_eq!(of(rawdoc! { "_id": 0, "m": "$time" }), [at(0), at(1), at(2)].map(|time| doc! { "m": time }));
    assert_eq!(of(rawdoc! { "_id": 0, "m": "const" }), [(); 3].map(|()| doc! { "m": "const" }));
    assert_eq!(of(rawdoc! { "_id": 0, "m": { "$literal": 1 } }), [(); 3].map(|()| doc! { "m": 1 }));
    // Expressions see the original measurement.
    let swapped = of(rawdoc! { "_id": 0, "m": "$b", "b": "$m" });
    assert_eq!(swapped, [doc! { "m": 1, "b": 4 }, doc! { "b": 5 }, doc! { "m": 3 }]);
}

#[test]
fn a_computed_path_applies_to_objects_and_to_every_array_element() {
    let forms = Forms::of(&[
        rawdoc! { "time": at(0), "m": 4, "a": { "b": 1, "z": 2 }, "c": [{}, {}] },
        rawdoc! { "time": at(1), "m": 4, "a": 7, "c": [{ "a": 1, "z": 2 }, 5] },
        rawdoc! { "time": at(2), "m": 4 },
        rawdoc! { "time": at(3), "a": { "b": 1 } },
    ]);
    let of = |projection: RawDocumentBuf| found(&forms, rawdoc! {}, projection);
    let into_objects = of(rawdoc! { "_id": 0, "a.b": "$m" });
    assert_eq!(into_objects[..3], [(); 3].map(|()| doc! { "a": { "b": 4 } }));
    assert_eq!(into_objects[3], doc! { "a": {} });
    let fours = doc! { "c": [{ "a": 4 }, { "a": 4 }] };
    let into_arrays = of(rawdoc! { "_id": 0, "c.a": "$m" });
    assert_eq!(into_arrays[..3], [fours.clone(), fours, doc! { "c": { "a": 4 } }]);
}

#[test]
fn only_get_field_reads_names_with_a_dot_or_a_dollar() {
    let forms = Forms::with(
        &rawdoc! { "timeField": "time", "metaField": "meta1" },
        &[
            rawdoc! { "time": at(0), "meta1": 100, "a.b": 3, "$meta1": "literal" },
            rawdoc! { "time": at(1), "meta1": 100, "a": { "b": 9 } },
        ],
    );
    let of = |projection: RawDocumentBuf| found(&forms, rawdoc! {}, projection);
    let both = [doc! { "x": 3 }, doc! {}];
    assert_eq!(of(rawdoc! { "_id": 0, "x": { "$getField": "a.b" } }), both);
    assert_eq!(of(rawdoc! { "_id": 0, "x": { "$getField": { "field": "a.b", "input": "$$ROOT" } } }), both);
    assert_eq!(of(rawdoc! { "_id": 0, "x": "$a.b" }), [doc! {}, doc! { "x": 9 }]);
    let literal = of(rawdoc! { "_id": 0, "x": { "$getField": { "$literal": "$meta1" } } });
    assert_eq!(literal, [doc! { "x": "literal" }, doc! {}]);
    assert_eq!(of(rawdoc! { "_id": 0, "x": { "$getField": "meta1" } }), [(); 2].map(|()| doc! { "x": 100 }));
    let sums = of(rawdoc! { "_id": 0, "x": { "$add": [1, { "$getField": "a.b" }] } });
    assert_eq!(sums, [doc! { "x": 4 }, doc! { "x": null }]);
    let of_metadata = rawdoc! { "$expr": { "$eq": [{ "$getField": { "$literal": "$meta1" } }, 100] } };
    assert_eq!(found(&forms, of_metadata, rawdoc! { "_id": 0, "time": 1 }), [] as [Document; 0]);
    let of_dotted = rawdoc! { "$expr": { "$eq": [{ "$getField": "a.b" }, 3] } };
    assert_eq!(found(&forms, of_dotted, rawdoc! { "_id": 0, "time": 1 }), [doc! { "time": at(0) }]);
}
