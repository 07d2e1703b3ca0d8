//! Measurements are found however they are distributed over buckets.

use bson::{RawBson, RawDocumentBuf, cstr, rawdoc};

use super::forms::{Forms, at, joined};

const HOUR_MS: i64 = 3_600_000;

/// Some measurements in the first hour, the others in the second, as the bits of `placement` say.
fn placed(documents: &[RawDocumentBuf], placement: usize) -> Forms {
    let rows = (0..).zip(documents).map(|(n, document)| {
        let hour = (placement >> n & 1) as i64;
        joined(&[&rawdoc! { "time": at(hour * HOUR_MS + n), "n": n as i32 }, document])
    });
    Forms::of(&rows.collect::<Vec<_>>())
}

/// Asserts the answers for every distribution over two buckets.
#[track_caller]
fn wherever_they_lie(documents: &[RawDocumentBuf], facts: &[(RawDocumentBuf, &[i32])]) {
    for placement in 0..1 << documents.len() {
        let forms = placed(documents, placement);
        facts.iter().for_each(|(filter, expected)| forms.finds(filter.clone(), expected));
    }
}

#[test]
fn in_and_exists_match_however_measurements_are_placed() {
    let documents =
        [rawdoc! { "a": 1 }, rawdoc! { "a": [1, 2] }, rawdoc! { "a": null }, rawdoc! {}, rawdoc! { "a": "s" }];
    wherever_they_lie(
        &documents,
        &[
            (rawdoc! { "a": { "$in": [1, "s"] } }, &[0, 1, 4]),
            (rawdoc! { "a": { "$in": [[1, 2], null] } }, &[1, 2, 3]),
            (rawdoc! { "a": { "$nin": [1] } }, &[2, 3, 4]),
            (rawdoc! { "a": { "$exists": true } }, &[0, 1, 2, 4]),
            (rawdoc! { "a": { "$exists": false } }, &[3]),
            (rawdoc! { "a": null }, &[2, 3]),
            (rawdoc! { "a": { "$ne": 2 } }, &[0, 2, 3, 4]),
            (rawdoc! { "a": { "$type": "array" } }, &[1]),
        ],
    );
}

#[test]
fn conjunctions_and_disjunctions_match_however_measurements_are_placed() {
    let documents = [
        rawdoc! { "m": 1, "a": 1, "b": 9 },
        rawdoc! { "m": 1, "a": 5 },
        rawdoc! { "m": 2, "a": 5, "b": 1 },
        rawdoc! { "m": 2, "b": 5 },
        rawdoc! { "a": 9, "b": 5 },
    ];
    wherever_they_lie(
        &documents,
        &[
            (rawdoc! { "$or": [{ "m": 1, "a": { "$gt": 3 } }, { "m": 2, "b": { "$lt": 3 } }] }, &[1, 2]),
            (rawdoc! { "$and": [{ "$or": [{ "m": 2 }, { "a": 9 }] }, { "b": 5 }] }, &[3, 4]),
            (rawdoc! { "$or": [{ "m": 2 }, { "a": { "$exists": false } }, { "b": { "$mod": [9, 0] } }] }, &[0, 2, 3]),
            (rawdoc! { "$nor": [{ "m": 1 }, { "b": 1 }] }, &[3, 4]),
            (rawdoc! { "m": { "$not": { "$eq": 2 } }, "$or": [{ "a": 1 }, { "b": 5 }] }, &[0, 4]),
            (rawdoc! { "$or": [{ "time": { "$lt": at(0) } }, { "m": null }] }, &[4]),
            (rawdoc! { "m": 1, "$and": [{ "a": { "$gte": 1 } }, { "a": { "$lt": 5 } }] }, &[0]),
        ],
    );
}

#[test]
fn operators_pushed_down_only_on_metadata_match_however_measurements_are_placed() {
    let documents = [
        rawdoc! { "m": { "k": 4 } },
        rawdoc! { "m": { "k": [4, 7] } },
        rawdoc! { "m": { "k": [{ "x": 1, "y": 2 }, { "x": 2, "y": 1 }] } },
        rawdoc! { "m": { "k": "four" } },
        rawdoc! { "m": 4 },
    ];
    wherever_they_lie(
        &documents,
        &[
            (rawdoc! { "m.k": { "$mod": [4, 0] } }, &[0, 1]),
            (rawdoc! { "m.k": { "$size": 2 } }, &[1, 2]),
            (rawdoc! { "m.k": { "$elemMatch": { "x": 1, "y": 2 } } }, &[2]),
            (rawdoc! { "m.k": { "$elemMatch": { "x": 1, "y": 1 } } }, &[]),
            (rawdoc! { "m.k": { "$elemMatch": { "$gt": 4, "$lt": 8 } } }, &[1]),
            (rawdoc! { "m.k": { "$regex": "^FO", "$options": "i" } }, &[3]),
            (rawdoc! { "m.k": { "$all": [4, 7] } }, &[1]),
            (rawdoc! { "m.k": { "$exists": false } }, &[4]),
            (rawdoc! { "m.k.0": 4 }, &[1]),
            (rawdoc! { "m": { "k": 4 } }, &[0]),
        ],
    );
}

#[test]
fn nested_values_match_however_measurements_are_placed() {
    let documents = [
        rawdoc! { "a": { "b": 3 } },
        rawdoc! { "a": [{ "b": 1 }, { "b": 5 }] },
        rawdoc! { "a": 3 },
        rawdoc! { "a": { "b": [2, 4] } },
        rawdoc! { "a": { "c": 3 } },
    ];
    let largest = RawBson::MaxKey;
    wherever_they_lie(
        &documents,
        &[
            (rawdoc! { "a.b": { "$gte": 4 } }, &[1, 3]),
            (rawdoc! { "a.b": { "$lt": 2 } }, &[1]),
            (rawdoc! { "a.b": { "$gt": 2, "$lt": 4 } }, &[0, 1, 3]),
            (rawdoc! { "a.b": null }, &[2, 4]),
            (rawdoc! { "a.b": { "$exists": true } }, &[0, 1, 3]),
            (rawdoc! { "a": { "$elemMatch": { "b": 5 } } }, &[1]),
            (rawdoc! { "a": { "c": 3 } }, &[4]),
            (rawdoc! { "a.b": { cstr!("$lt"): largest } }, &[0, 1, 2, 3, 4]),
            (rawdoc! { "$expr": { "$gt": ["$a.b", 3] } }, &[1, 3]),
        ],
    );
}
