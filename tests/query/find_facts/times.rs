//! Filters on time and metadata: what buckets decide, and what remains for measurements.

use bson::{Document, RawDocumentBuf, doc, rawdoc};

use super::forms::{Forms, at};
use super::values::assorted;

const MIDDLE_MS: i64 = 5000;

/// The filter on measurements, and the filter on whole buckets that makes it unnecessary; both must exist.
#[track_caller]
fn asked(forms: &Forms, filter: RawDocumentBuf) -> (Document, Document) {
    let found = forms.explained_filter(filter);
    let of = |name: &str| found.unpack().get_document(name).unwrap().clone();
    (of("eventFilter"), of("wholeBucketFilter"))
}

#[test]
fn a_time_bound_filters_measurements_unless_their_bucket_is_inside() {
    let forms = Forms::of(&assorted());
    for (given, side, found) in [
        ("$gt", "control.min.time", &[6, 7, 8][..]),
        ("$gte", "control.min.time", &[5, 6, 7, 8]),
        ("$lt", "control.max.time", &[1, 2, 3, 4]),
        ("$lte", "control.max.time", &[1, 2, 3, 4, 5]),
    ] {
        let given = bson::raw::CString::try_from(given).unwrap();
        let filter = rawdoc! { "time": { &given: at(MIDDLE_MS) } };
        forms.finds(filter.clone(), found);
        let (events, whole) = asked(&forms, filter);
        assert_eq!(events, doc! { "time": { given.as_str(): at(MIDDLE_MS) } });
        assert_eq!(whole, doc! { side: { given.as_str(): at(MIDDLE_MS) } });
    }
}

#[test]
fn an_equality_with_a_time_matches_all_of_a_bucket_of_that_time() {
    let forms = Forms::of(&assorted());
    let filter = rawdoc! { "time": at(MIDDLE_MS) };
    forms.finds(filter.clone(), &[5]);
    let (events, whole) = asked(&forms, filter);
    assert_eq!(events, doc! { "time": { "$eq": at(MIDDLE_MS) } });
    let equal = doc! { "$eq": at(MIDDLE_MS) };
    assert_eq!(whole, doc! { "$and": [{ "control.min.time": equal.clone() }, { "control.max.time": equal }] });
}

#[test]
fn metadata_conditions_are_not_in_the_measurement_filter() {
    let forms = Forms::of(&assorted());
    let filter = rawdoc! { "time": { "$gt": at(1000) }, "m": { "$lte": 1 } };
    forms.finds(filter.clone(), &[2, 3, 4]);
    let (events, whole) = asked(&forms, filter.clone());
    assert_eq!(events, doc! { "time": { "$gt": at(1000) } });
    assert_eq!(whole, doc! { "control.min.time": { "$gt": at(1000) } });
    let found = forms.explained_filter(filter);
    let parts = found.plan().get_document("filter").unwrap().get_array("$and").unwrap();
    assert_eq!(parts[0].as_document().unwrap(), &doc! { "meta": { "$lte": 1 } });
}

#[test]
fn a_disjunction_of_time_and_metadata_is_decided_by_the_bucket_if_possible() {
    let forms = Forms::of(&assorted());
    let filter = rawdoc! { "$or": [{ "time": { "$lte": at(3000) } }, { "m": { "$gt": 1 } }] };
    forms.finds(filter.clone(), &[1, 2, 3, 5, 6, 7, 8]);
    let (events, whole) = asked(&forms, filter.clone());
    assert_eq!(events, doc! { "$or": [{ "time": { "$lte": at(3000) } }, { "m": { "$gt": 1 } }] });
    let arms = [doc! { "control.max.time": { "$lte": at(3000) } }, doc! { "meta": { "$gt": 1 } }];
    assert_eq!(whole, doc! { "$or": arms.to_vec() });
    // Only the middle series has both matching and other measurements.
    let counted = forms.explained(rawdoc! { "count": "c", "query": filter });
    assert!(counted.counts()[2] < counted.counts()[1], "{:?}", counted.counts());
}

#[test]
fn nested_conjunctions_are_one_filter() {
    let forms = Forms::of(&assorted());
    let bounds = [at(2000), at(7000), at(5000)];
    let nested = rawdoc! { "$and": [
        { "time": { "$gt": bounds[0] } },
        { "$and": [{ "time": { "$lt": bounds[1] } }, { "$and": [{ "time": { "$gte": bounds[2] } }] }] },
    ] };
    forms.finds(nested.clone(), &[5, 6]);
    let (events, whole) = asked(&forms, nested);
    let each = ["$gt", "$lt", "$gte"].into_iter().zip(bounds);
    let each: Vec<Document> = each.map(|(op, bound)| doc! { "time": { op: bound } }).collect();
    assert_eq!(events, doc! { "$and": each });
    let sides = [
        doc! { "control.min.time": { "$gt": bounds[0] } },
        doc! { "control.max.time": { "$lt": bounds[1] } },
        doc! { "control.min.time": { "$gte": bounds[2] } },
    ];
    assert_eq!(whole, doc! { "$and": sides.to_vec() });
}
