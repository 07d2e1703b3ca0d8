//! Facts 26 to 30: partial indexes that queries use without a hint, and what they find.

use bson::{Document, bson, doc};
use futures::executor::block_on;

use super::forms::{FORMS, Filled, at, tagged};
use crate::support::explained::explain;
use crate::support::raw;

/// The index that a find uses without a hint, if any.
async fn through(filled: &Filled, filter: &Document) -> Option<String> {
    let found = explain(&filled.other, raw(&doc! { "find": "c", "filter": filter.clone() })).await;
    let input = found.plan().get_document("inputStage").ok()?;
    Some(input.get_str("indexName").unwrap().to_owned())
}

#[test]
fn a_query_narrower_than_the_partial_filter_uses_the_index() {
    block_on(async {
        let rows: Vec<Document> =
            (0..40).map(|n| doc! { "_id": n, "t": at(i64::from(n)), "tag": n, "a": n, "b": n % 20 }).collect();
        for form in FORMS {
            let filled = Filled::new(form, doc! { "timeseries": tagged() }, &rows).await;
            let queries: Vec<Document> = [
                doc! { "$lt": 12 },
                doc! { "$lt": 11 },
                doc! { "$eq": 3 },
                doc! { "$lte": 12 },
                doc! { "$gt": 3 },
                doc! { "$in": [1, 15] },
            ]
            .into_iter()
            .map(|b| doc! { "a": { "$lt": 30 }, "b": b })
            .collect();
            let mut without = Vec::new();
            for query in &queries {
                without.push(filled.ids(doc! { "filter": query.clone() }).await);
            }
            filled.index(doc! { "a": 1 }, doc! { "partialFilterExpression": { "b": { "$lt": 12 } } }).await;
            for (place, (query, expected)) in queries.iter().zip(&without).enumerate() {
                assert_eq!(&filled.ids(doc! { "filter": query.clone() }).await, expected, "{query} {form:?}");
                let index = through(&filled, query).await;
                assert_eq!(index.as_deref(), (place < 3).then_some("a_1"), "{query} {form:?}");
            }
        }
    });
}

#[test]
fn a_partial_filter_on_strings_uses_the_collation_of_the_collection() {
    block_on(async {
        let create = doc! { "timeseries": tagged(), "collation": { "locale": "en_US", "numericOrdering": true } };
        let rows: Vec<Document> = [1, 10, 23, 24, 26, 29, 99]
            .into_iter()
            .map(|n: i32| doc! { "_id": n, "t": at(i64::from(n)), "tag": n, "x": n, "a": n.to_string() })
            .collect();
        for form in FORMS {
            let filled = Filled::new(form, create.clone(), &rows).await;
            filled.index(doc! { "x": 1 }, doc! { "partialFilterExpression": { "a": { "$lt": "25" } } }).await;
            for (bound, narrower, found) in [
                ("24", true, &[1, 10, 23][..]),
                ("30", false, &[1, 10, 23, 24, 26, 29]),
                ("100", false, &[1, 10, 23, 24, 26, 29, 99]),
            ] {
                let query = doc! { "x": { "$lt": 1000 }, "a": { "$lt": bound } };
                assert_eq!(filled.ids(doc! { "filter": { "a": { "$lt": bound } } }).await, found, "{form:?}");
                assert_eq!(filled.ids(doc! { "filter": query.clone() }).await, found, "{form:?}");
                assert_eq!(through(&filled, &query).await.as_deref(), narrower.then_some("x_1"), "{bound} {form:?}");
            }
        }
    });
}

#[test]
fn a_partial_filter_may_mix_time_metadata_and_measurements() {
    block_on(async {
        let hour = 3_600_000;
        let tags = ["A", "B", "C"];
        let rows: Vec<Document> = (0..18)
            .map(|n| {
                doc! { "_id": n, "t": at(i64::from(n / 3) * hour), "tag": { "bucket": tags[n as usize % 3] }, "b": n - 9 }
            })
            .collect();
        let filter = doc! { "$and": [
            { "t": { "$gte": at(2 * hour) } },
            { "tag.bucket": { "$gte": "B" } },
            { "b": { "$gte": 0 } },
        ] };
        for form in FORMS {
            let filled = Filled::new(form, doc! { "timeseries": tagged() }, &rows).await;
            filled.index(doc! { "a": 1 }, doc! { "partialFilterExpression": filter.clone() }).await;
            let expected: Vec<i32> = (9..18).filter(|n| n % 3 > 0).collect();
            assert_eq!(filled.ids(doc! { "hint": "a_1" }).await, expected, "{form:?}");
            assert_eq!(filled.ids(doc! { "filter": filter.clone() }).await, expected);
            assert_eq!(filled.ids(doc! { "filter": filter.clone(), "hint": "a_1" }).await, expected);
            // Longer spans do not change the stored filter.
            filled.ok(doc! { "collMod": "c", "timeseries": { "granularity": "hours" } }).await;
            assert_eq!(filled.ids(doc! { "filter": filter.clone(), "hint": "a_1" }).await, expected);
            filled.sound().await;
        }
    });
}

#[test]
fn an_index_refuses_arrays_only_on_its_own_paths() {
    block_on(async {
        let rows: Vec<Document> = (0..3).map(|n| doc! { "_id": n, "t": at(i64::from(n)), "tag": 1, "x": n }).collect();
        for form in FORMS {
            let filled = Filled::new(form, doc! { "timeseries": tagged() }, &rows).await;
            filled.index(doc! { "x": 1 }, doc! { "partialFilterExpression": { "tag": 1 } }).await;
            filled.index(doc! { "o.p": 1 }, doc! {}).await;
            for (x, o, code) in [
                (bson!([1]), bson!(1), Some(5_930_501)),
                (bson!([]), bson!(1), Some(5_930_501)),
                (bson!(1), bson!([{ "p": 1 }]), Some(5_930_501)),
                (bson!(1), bson!({ "p": [1] }), Some(5_930_501)),
                (bson!({ "y": [1] }), bson!({ "q": [1] }), None),
            ] {
                let row = doc! { "_id": 9, "t": at(9), "tag": 1, "x": x, "o": o };
                let reply = filled.db.insert("c", &[raw(&row)]).await;
                let found = reply
                    .get_array("writeErrors")
                    .ok()
                    .map(|errors| errors[0].as_document().unwrap().get_i32("code").unwrap());
                assert_eq!(found, code, "{row}");
            }
            assert_eq!(filled.all().await, [0, 1, 2, 9]);
            filled.sound().await;
        }
    });
}
