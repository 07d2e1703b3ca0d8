//! Facts 1, 2, 13, 14, 28: indexes over buckets, as `system.buckets.<name>` has them.

use bson::{Document, doc};
use futures::executor::block_on;

use super::forms::{Filled, Form, at, name_of, tagged};

const RAW: &str = "system.buckets.c";

async fn empty(timeseries: Document) -> Filled {
    Filled::new(Form::Journal, doc! { "timeseries": timeseries }, &[]).await
}

#[test]
fn a_new_collection_has_one_index_under_both_of_its_names() {
    block_on(async {
        let filled = empty(tagged()).await;
        assert_eq!(filled.listed("c").await, [doc! { "v": 2, "key": { "tag": 1, "t": 1 }, "name": "tag_1_t_1" }]);
        let buckets = doc! { "meta": 1, "control.min.t": 1, "control.max.t": 1 };
        assert_eq!(filled.listed(RAW).await, [doc! { "v": 2, "key": buckets, "name": "tag_1_t_1" }]);
        let without = empty(doc! { "timeField": "t" }).await;
        assert!(without.listed("c").await.is_empty() && without.listed(RAW).await.is_empty());
        assert_eq!(without.fails(doc! { "listIndexes": "system.buckets.none" }).await, 26);
    });
}

#[test]
fn a_bucket_index_keeps_its_original_spec_only_if_the_key_does_not_imply_it() {
    block_on(async {
        for (key, buckets, tells) in [
            (doc! { "tag": -1 }, doc! { "meta": -1 }, true),
            (doc! { "tag.a": 1, "tag.b": -1 }, doc! { "meta.a": 1, "meta.b": -1 }, true),
            (doc! { "t": 1 }, doc! { "control.min.t": 1, "control.max.t": 1 }, true),
            (doc! { "t": -1 }, doc! { "control.max.t": -1, "control.min.t": -1 }, true),
            (doc! { "tag.a": 1, "t": -1 }, doc! { "meta.a": 1, "control.max.t": -1, "control.min.t": -1 }, true),
            (
                doc! { "tag.a": -1, "tag.b": 1, "t": 1 },
                doc! { "meta.a": -1, "meta.b": 1, "control.min.t": 1, "control.max.t": 1 },
                true,
            ),
            (doc! { "x": 1 }, doc! { "control.min.x": 1, "control.max.x": 1 }, false),
            (doc! { "x": -1 }, doc! { "control.max.x": -1, "control.min.x": -1 }, false),
            (doc! { "a.b": 1, "tag": 1 }, doc! { "control.min.a.b": 1, "control.max.a.b": 1, "meta": 1 }, false),
            (doc! { "tag": "hashed" }, doc! { "meta": "hashed" }, true),
            (doc! { "_id": 1 }, doc! { "control.min._id": 1, "control.max._id": 1 }, false),
            (doc! { "meta": 1 }, doc! { "control.min.meta": 1, "control.max.meta": 1 }, false),
            (
                doc! { "control.min.x": 1 },
                doc! { "control.min.control.min.x": 1, "control.max.control.min.x": 1 },
                false,
            ),
            (doc! { "tagx": 1 }, doc! { "control.min.tagx": 1, "control.max.tagx": 1 }, false),
            (doc! { "t.x": 1 }, doc! { "control.min.t.x": 1, "control.max.t.x": 1 }, false),
            (doc! { "x": 1.5 }, doc! { "control.min.x": 1.5, "control.max.x": 1.5 }, false),
        ] {
            let filled = empty(tagged()).await;
            filled.index(key.clone(), doc! {}).await;
            let shown = doc! { "v": 2, "key": key.clone(), "name": name_of(&key) };
            assert_eq!(filled.listed("c").await[1], shown);
            let mut over = doc! { "v": 2, "key": buckets.clone(), "name": name_of(&key) };
            if !tells {
                over.insert("originalSpec", shown.clone());
            }
            assert_eq!(filled.listed(RAW).await[1], over);
            // Created over buckets, it is the same index.
            let spec = doc! { "key": buckets, "name": name_of(&key) };
            let again = filled.ok(doc! { "createIndexes": RAW, "indexes": [spec] }).await;
            assert_eq!(again.get_str("note").unwrap(), "all indexes already exist", "{key}");
        }
    });
}

#[test]
fn an_index_created_over_buckets_equals_one_over_measurements() {
    block_on(async {
        let filled = empty(tagged()).await;
        let spec = doc! { "key": { "control.min.y": 1, "control.max.y": 1 }, "name": "y" };
        filled.ok(doc! { "createIndexes": RAW, "indexes": [spec] }).await;
        assert_eq!(filled.listed("c").await[1], doc! { "v": 2, "key": { "y": 1 }, "name": "y" });
        for key in [
            doc! { "not_metadata": 1 },
            doc! { "control.min.y": 1 },
            doc! { "control.max.t": 1 },
            doc! { "control.max.y": 1, "control.min.y": 1 },
            doc! { "control.min.y": 1, "control.max.z": 1 },
            doc! { "control.min.y": 1, "control.max.y": 2 },
            doc! { "data.y": 1 },
            doc! { "metax": 1 },
            doc! {},
        ] {
            let spec = doc! { "key": key.clone(), "name": "refused" };
            assert_eq!(filled.fails(doc! { "createIndexes": RAW, "indexes": [spec] }).await, 67, "{key}");
        }
        let filtered = doc! { "key": { "meta": 1 }, "name": "refused", "partialFilterExpression": { "meta": 1 } };
        assert_eq!(filled.fails(doc! { "createIndexes": RAW, "indexes": [filtered] }).await, 67);
        let plain = empty(doc! { "timeField": "t" }).await;
        let meta = doc! { "key": { "meta": 1 }, "name": "refused" };
        assert_eq!(plain.fails(doc! { "createIndexes": RAW, "indexes": [meta] }).await, 67);
        assert_eq!(filled.listed("c").await.len(), 2);
    });
}

#[test]
fn indexes_over_buckets_are_hinted_hidden_and_dropped_by_their_bucket_keys() {
    block_on(async {
        let filled = empty(tagged()).await;
        filled.insert(&[doc! { "_id": 1, "t": at(1), "tag": 1, "x": 1 }]).await;
        filled.index(doc! { "x": 1 }, doc! {}).await;
        let key = doc! { "control.min.x": 1, "control.max.x": 1 };
        let hinted = |hint: Document| doc! { "find": RAW, "hint": hint };
        let hidden = |key: Document, hidden: bool| {
            doc! { "collMod": RAW, "index": { "keyPattern": key, "hidden": hidden } }
        };
        filled.ok(hinted(key.clone())).await;
        assert_eq!(filled.fails(hinted(doc! { "x": 1 })).await, 2);
        filled.ok(hidden(key.clone(), true)).await;
        assert_eq!(filled.fails(hinted(key.clone())).await, 2);
        assert_eq!(filled.fails(doc! { "find": RAW, "hint": "x_1" }).await, 2);
        assert!(filled.listed("c").await[1].get_bool("hidden").unwrap());
        let raw = filled.listed(RAW).await.remove(1);
        assert!(
            raw.get_bool("hidden").unwrap() && raw.get_document("originalSpec").unwrap().get_bool("hidden").unwrap()
        );
        assert_eq!(filled.fails(hidden(doc! { "x": 1 }, false)).await, 27);
        filled.ok(hidden(key.clone(), false)).await;
        filled.ok(hinted(key.clone())).await;
        assert_eq!(filled.fails(doc! { "dropIndexes": RAW, "index": { "x": 1 } }).await, 27);
        filled.ok(doc! { "dropIndexes": RAW, "index": key.clone() }).await;
        assert_eq!((filled.fails(hinted(key)).await, filled.listed("c").await.len()), (2, 1));
        filled.ok(doc! { "dropIndexes": RAW, "index": "tag_1_t_1" }).await;
        assert!(filled.listed(RAW).await.is_empty());
    });
}

#[test]
fn a_partial_index_over_buckets_is_listed_with_both_filters() {
    block_on(async {
        let hour = 3_600_000;
        // Contexts that write concurrently may mix types in a bucket, which is then in the index.
        let or_mixed = |mut tests: Vec<Document>| {
            let types = ["$control.min.a", "$control.max.a"].map(|path| doc! { "$type": path });
            tests.push(doc! { "$expr": { "$ne": types.to_vec() } });
            doc! { "$or": tests }
        };
        let eq = |field: &str, n: i32| {
            let bound = |side: &str| format!("control.{side}.{field}");
            doc! { "$and": [{ bound("min"): { "$_internalExprLte": n } }, { bound("max"): { "$_internalExprGte": n } }] }
        };
        for (filter, buckets) in [
            (doc! {}, doc! {}),
            (doc! { "tag": { "$in": [1, 2] } }, doc! { "meta": { "$in": [1, 2] } }),
            (doc! { "a": 5 }, or_mixed(vec![eq("a", 5)])),
            (doc! { "a": { "$lt": 5 } }, or_mixed(vec![doc! { "control.min.a": { "$_internalExprLt": 5 } }])),
            (doc! { "a": { "$gte": 5 } }, or_mixed(vec![doc! { "control.max.a": { "$_internalExprGte": 5 } }])),
            (
                doc! { "a": { "$exists": true } },
                or_mixed(vec![doc! { "control.min.a": { "$exists": true }, "control.max.a": { "$exists": true } }]),
            ),
            (doc! { "a": { "$in": [1, 2] } }, or_mixed(vec![doc! { "$or": [eq("a", 1), eq("a", 2)] }])),
            (
                doc! { "t": { "$lt": at(hour) } },
                // A bucket ends before its span does.
                doc! { "control.min.t": { "$_internalExprLt": at(hour) } },
            ),
        ] {
            let filled = empty(tagged()).await;
            filled.index(doc! { "x": 1 }, doc! { "partialFilterExpression": filter.clone() }).await;
            let shown = filled.listed("c").await.remove(1);
            assert_eq!(shown.get_document("partialFilterExpression").unwrap(), &filter);
            let raw = filled.listed(RAW).await.remove(1);
            assert_eq!(raw.get_document("originalSpec").unwrap(), &shown);
            assert_eq!(raw.get_document("partialFilterExpression").unwrap(), &buckets, "{filter}");
        }
    });
}
