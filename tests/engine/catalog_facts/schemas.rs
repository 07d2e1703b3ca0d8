//! Measurements that share a bucket, and types that open another one.

use bson::{RawDocumentBuf, rawdoc};
use timepail::catalog::Counter;

use super::harness::*;

/// The measurements of each group share a bucket, and each group opens another one because of its types.
fn assert_groups(groups: &[Vec<RawDocumentBuf>]) {
    let docs: Vec<_> = groups.iter().flatten().map(with).collect();
    let expected: Vec<_> = groups.iter().map(Vec::len).collect();
    let mut at_once = catalog();
    let sections = insert(&mut at_once, &docs);
    assert_eq!(sections.iter().map(|section| section.rows).collect::<Vec<_>>(), expected);
    let mut one_by_one = catalog();
    let mut buckets: Vec<_> =
        docs.iter().map(|doc| insert(&mut one_by_one, std::slice::from_ref(doc))[0].bucket).collect();
    buckets.dedup();
    assert_eq!(buckets.len(), groups.len());
    for catalog in [at_once, one_by_one] {
        assert_eq!(catalog.stats()[Counter::ClosedDueToSchemaChange], groups.len() as u64 - 1);
    }
}

#[test]
fn values_of_four_types_need_four_buckets() {
    assert_groups(&[
        vec![rawdoc! { "a": 1 }],
        vec![rawdoc! { "a": true }],
        vec![rawdoc! { "a": {} }, rawdoc! { "a": { "b": 1 } }],
        vec![rawdoc! { "a": { "b": true } }],
    ]);
}

#[test]
fn an_empty_object_accepts_any_first_type_of_a_field() {
    assert_groups(&[
        vec![rawdoc! { "a": 1 }],
        vec![rawdoc! { "a": true }],
        vec![rawdoc! { "a": {} }, rawdoc! { "a": { "b": true } }],
        vec![rawdoc! { "a": { "b": 1 } }],
    ]);
}

#[test]
fn new_nested_fields_fit_and_a_nested_field_of_another_type_does_not() {
    let five = [
        rawdoc! { "a": { "b": true } },
        rawdoc! { "a": { "c": true } },
        rawdoc! { "a": { "d": true } },
        rawdoc! { "a": { "e": true } },
        rawdoc! { "a": { "f": true } },
    ];
    assert_groups(&[five.to_vec(), vec![rawdoc! { "a": { "d": 1.0 } }]]);
    assert_groups(&[five.into_iter().chain([rawdoc! { "b": 1.0 }]).collect()]);
}

#[test]
fn one_field_of_another_type_is_enough() {
    assert_groups(&[vec![rawdoc! { "b": 1.0 }, rawdoc! { "c": {} }], vec![rawdoc! { "a": 1.0, "b": 2.0, "c": 3.0 }]]);
}

#[test]
fn fields_come_in_any_order_and_arrays_of_any_length() {
    assert_groups(&[
        vec![
            rawdoc! { "a": 1, "b": 2, "c": 3 },
            rawdoc! { "c": 1, "b": 2, "a": 3 },
            rawdoc! { "b": 1, "a": 2, "c": 3 },
        ],
        vec![rawdoc! { "a": { "b": [1.0, 2.0] } }],
        vec![rawdoc! { "a": { "b": [true, false] } }, rawdoc! { "a": { "b": [false, true, false, true] } }],
    ]);
}

#[test]
fn objects_in_arrays_must_have_the_types_of_their_position() {
    assert_groups(&[
        vec![
            rawdoc! { "a": { "b": [{ "a": true }, { "b": false }] } },
            rawdoc! { "a": { "b": [{ "b": true }, { "a": false }] } },
        ],
        vec![rawdoc! { "a": { "b": [{ "a": 1.0 }, { "b": 2.0 }] } }, rawdoc! { "a": { "b": [{}, {}, true, false] } }],
    ]);
}
