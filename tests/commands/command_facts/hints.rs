//! Facts 3 to 9, 15, 20, 22, 33, 34, 72: indexes that are hinted, hidden, dropped, sparse or hashed.

use bson::{Bson, Document, bson, doc};
use futures::executor::block_on;

use super::forms::{FORMS, Filled, Form, at, name_of, tagged};
use crate::support::explained::explain;
use crate::support::raw;

const RAW: &str = "system.buckets.c";

/// Keys of every kind, and the same over buckets.
fn keys() -> Vec<(Document, Document)> {
    let time = |n: i32| match n {
        1 => doc! { "control.min.t": 1, "control.max.t": 1 },
        n => doc! { "control.max.t": n, "control.min.t": n },
    };
    let behind = |first: Document, n: i32| first.into_iter().chain(time(n)).collect::<Document>();
    vec![
        (doc! { "tag": 1 }, doc! { "meta": 1 }),
        (doc! { "tag": -1 }, doc! { "meta": -1 }),
        (doc! { "tag.a": 1, "tag.b": -1 }, doc! { "meta.a": 1, "meta.b": -1 }),
        (doc! { "t": 1 }, time(1)),
        (doc! { "t": -1 }, time(-1)),
        (doc! { "tag": 1, "t": -1 }, behind(doc! { "meta": 1 }, -1)),
        (doc! { "tag.a": 1, "t": -1 }, behind(doc! { "meta.a": 1 }, -1)),
        (doc! { "tag.a": -1, "tag.b": 1, "t": 1 }, behind(doc! { "meta.a": -1, "meta.b": 1 }, 1)),
        (doc! { "x": 1 }, doc! { "control.min.x": 1, "control.max.x": 1 }),
        (doc! { "x": -1 }, doc! { "control.max.x": -1, "control.min.x": -1 }),
        (doc! { "o.p": 1, "tag": 1 }, doc! { "control.min.o.p": 1, "control.max.o.p": 1, "meta": 1 }),
        (doc! { "tag": "hashed" }, doc! { "meta": "hashed" }),
        (doc! { "tag.a": "hashed", "t": 1 }, behind(doc! { "meta.a": "hashed" }, 1)),
    ]
}

fn measurement() -> Document {
    doc! { "_id": 1, "t": at(60_000), "tag": { "a": 1, "b": "x" }, "x": 1.5, "o": { "p": 2 } }
}

impl Filled {
    /// The rows of a find with a hint, or its error code; equal for both names.
    async fn hinted(&self, hint: impl Into<Bson>, over_buckets: impl Into<Bson>) -> Result<Vec<i32>, i32> {
        let hint = hint.into();
        let find = doc! { "find": "c", "hint": hint.clone() };
        let raw_find = doc! { "find": RAW, "hint": over_buckets.into() };
        if self.db.command(raw(&find)).await.get_f64("ok").unwrap() == 1.0 {
            self.ok(raw_find).await;
            return Ok(self.ids(doc! { "hint": hint }).await);
        }
        let code = self.fails(find).await;
        assert_eq!(self.fails(raw_find).await, code);
        Err(code)
    }

    async fn hide(&self, index: Document, hidden: bool) -> (bool, bool) {
        let index: Document = index.into_iter().chain(doc! { "hidden": hidden }).collect();
        let reply = self.ok(doc! { "collMod": "c", "index": index }).await;
        (reply.get_bool("hidden_old").unwrap(), reply.get_bool("hidden_new").unwrap())
    }
}

#[test]
fn every_index_can_be_hinted_and_dropped_by_key_or_name() {
    block_on(async {
        for form in FORMS {
            let filled = Filled::new(form, doc! { "timeseries": tagged() }, &[measurement()]).await;
            for (key, buckets) in keys() {
                let name = name_of(&key);
                for dropped in [Bson::from(key.clone()), name.as_str().into(), vec![name.as_str()].into()] {
                    filled.index(key.clone(), doc! {}).await;
                    assert_eq!(filled.hinted(key.clone(), buckets.clone()).await, Ok(vec![1]), "{key} {form:?}");
                    assert_eq!(filled.hinted(name.as_str(), name.as_str()).await, Ok(vec![1]), "{key} {form:?}");
                    filled.ok(doc! { "dropIndexes": "c", "index": dropped }).await;
                    assert_eq!(filled.hinted(key.clone(), buckets.clone()).await, Err(2), "{key}");
                    assert_eq!(filled.hinted(name.as_str(), name.as_str()).await, Err(2), "{key}");
                    assert_eq!(filled.fails(doc! { "dropIndexes": "c", "index": &name }).await, 27);
                }
            }
        }
    });
}

#[test]
fn a_hidden_index_is_listed_but_cannot_be_hinted() {
    block_on(async {
        let filled = Filled::new(Form::Both, doc! { "timeseries": tagged() }, &[measurement()]).await;
        for (key, buckets) in keys() {
            filled.index(key.clone(), doc! {}).await;
            for index in [doc! { "name": name_of(&key) }, doc! { "keyPattern": key.clone() }] {
                assert_eq!(filled.hide(index.clone(), true).await, (false, true));
                assert_eq!(filled.hide(index.clone(), true).await, (true, true));
                assert_eq!(filled.hinted(key.clone(), buckets.clone()).await, Err(2), "{key}");
                let listed = filled.listed("c").await;
                assert_eq!(listed.last().unwrap().get_bool("hidden").ok(), Some(true));
                assert_eq!(filled.hide(index, false).await, (true, false));
                assert_eq!(filled.hinted(key.clone(), buckets.clone()).await, Ok(vec![1]), "{key}");
            }
            filled.ok(doc! { "dropIndexes": "c", "index": key.clone() }).await;
            filled.index(key.clone(), doc! { "hidden": true }).await;
            assert_eq!(filled.hinted(key.clone(), buckets.clone()).await, Err(2), "{key}");
            filled.hide(doc! { "name": name_of(&key) }, false).await;
            assert_eq!(filled.hinted(key.clone(), buckets).await, Ok(vec![1]), "{key}");
            filled.ok(doc! { "dropIndexes": "c", "index": key }).await;
        }
        assert_eq!(filled.hide(doc! { "keyPattern": { "tag": 1, "t": 1 } }, true).await, (false, true));
        let find = raw(&doc! { "find": "c", "filter": { "tag": measurement().get("tag").unwrap().clone() } });
        assert_eq!(explain(&filled.db, find).await.plan().get_str("stage").unwrap(), "COLLSCAN");
    });
}

#[test]
fn an_index_is_dropped_only_by_its_exact_name() {
    block_on(async {
        let filled = Filled::new(Form::Journal, doc! { "timeseries": tagged() }, &[]).await;
        assert_eq!(filled.fails(doc! { "dropIndexes": "c", "index": "tag_1" }).await, 27);
        let spec = doc! { "key": { "tag": 1 }, "name": "mine" };
        filled.ok(doc! { "createIndexes": "c", "indexes": [spec] }).await;
        for wrong in ["tag_1", "meta_1"] {
            assert_eq!(filled.fails(doc! { "dropIndexes": "c", "index": wrong }).await, 27);
        }
        filled.ok(doc! { "dropIndexes": "c", "index": "mine" }).await;
    });
}

#[test]
fn a_query_uses_the_index_over_its_bounded_fields() {
    block_on(async {
        let rows: Vec<Document> = (0..30)
            .map(|n| {
                let tag = doc! { "a": n, "b": format!("b{n}") };
                doc! { "_id": n, "t": at(i64::from(n) * 86_400_000), "tag": tag, "x": n, "o": { "p": n } }
            })
            .collect();
        for form in [Form::Buckets(1), Form::Buckets(2), Form::Both] {
            let filled = Filled::new(form, doc! { "timeseries": tagged() }, &rows).await;
            for (key, filter, by_itself) in [
                (doc! { "tag": 1 }, doc! { "tag": { "a": 7, "b": "b7" } }, false),
                (doc! { "tag": -1 }, doc! { "tag": { "a": 7, "b": "b7" } }, false),
                (doc! { "tag.a": 1 }, doc! { "tag.a": 7 }, true),
                (doc! { "tag.b": -1, "t": 1 }, doc! { "tag.b": "b7" }, true),
                (doc! { "tag.a": 1, "tag.b": 1 }, doc! { "tag.a": 7, "tag.b": { "$gte": "b" } }, true),
                (doc! { "t": 1 }, doc! { "t": at(7 * 86_400_000) }, false),
                (doc! { "t": -1 }, doc! { "t": at(7 * 86_400_000) }, false),
                (doc! { "x": 1 }, doc! { "x": 7 }, true),
                (doc! { "o.p": -1, "tag.a": 1 }, doc! { "o.p": 7 }, true),
                (doc! { "tag": "hashed" }, doc! { "tag": { "a": 7, "b": "b7" } }, false),
                (doc! { "tag.a": "hashed" }, doc! { "tag.a": 7 }, true),
            ] {
                filled.index(key.clone(), doc! {}).await;
                assert_eq!(filled.ids(doc! { "filter": filter.clone() }).await, [7], "{key}");
                assert_eq!(filled.ids(doc! { "filter": filter.clone(), "hint": key.clone() }).await, [7], "{key}");
                let mut find = doc! { "find": "c", "filter": filter };
                if !by_itself {
                    find.insert("hint", key.clone());
                }
                let plan = explain(&filled.db, raw(&find)).await;
                let input = plan.plan().get_document("inputStage").unwrap();
                let shown = (input.get_str("stage").unwrap(), input.get_str("indexName").unwrap());
                assert_eq!(shown, ("IXSCAN", &*name_of(&key)));
                filled.ok(doc! { "dropIndexes": "c", "index": key }).await;
            }
        }
    });
}

#[test]
fn a_sparse_index_holds_buckets_with_at_least_one_of_its_fields() {
    block_on(async {
        let rows: Vec<Document> =
            (0..3).map(|n| doc! { "_id": n, "t": at(i64::from(n)), "tag": { "a": n, "null": Bson::Null } }).collect();
        for filled in Filled::each(&rows).await {
            for (key, found) in [
                (doc! { "tag.a": 1 }, &[0, 1, 2][..]),
                (doc! { "tag.none": 1 }, &[]),
                (doc! { "tag.null": 1 }, &[0, 1, 2]),
                (doc! { "tag.none": 1, "tag.a": 1 }, &[0, 1, 2]),
                (doc! { "t": 1, "tag.a": 1 }, &[0, 1, 2]),
                (doc! { "tag.none": 1, "t": -1 }, &[0, 1, 2]),
                (doc! { "tag.none": "hashed" }, &[]),
            ] {
                filled.index(key.clone(), doc! { "sparse": true }).await;
                assert_eq!(filled.ids(doc! { "hint": key.clone() }).await, found, "{key} {:?}", filled.form);
            }
        }
    });
}

#[test]
fn a_hint_at_a_partial_index_finds_only_its_buckets() {
    block_on(async {
        let rows: Vec<Document> =
            (0..6).map(|n| doc! { "_id": n, "t": at(i64::from(n)), "tag": n % 3, "x": n, "y": n }).collect();
        for filled in Filled::each(&rows).await {
            let of = |filter: Document| doc! { "partialFilterExpression": filter };
            // The buckets hold 0 and 3, 1 and 4, 2 and 5. A measurement that shares a bucket with a match is in the index too.
            filled.index(doc! { "x": 1 }, of(doc! { "x": { "$gte": 4 } })).await;
            filled.index(doc! { "y": 1 }, of(doc! { "tag": 1 })).await;
            assert_eq!(filled.ids(doc! { "hint": "x_1" }).await, [1, 2, 4, 5]);
            assert_eq!(filled.ids(doc! { "hint": "y_1" }).await, [1, 4]);
            assert_eq!(filled.ids(doc! { "hint": "y_1", "filter": { "x": { "$lt": 4 } } }).await, [1]);
            assert_eq!(filled.all().await, [0, 1, 2, 3, 4, 5]);
            // A bucket leaves the index together with the measurement that matched.
            assert_eq!(filled.delete(doc! { "x": 4 }, 0).await, 1);
            assert_eq!(filled.ids(doc! { "hint": "x_1" }).await, [2, 5]);
            assert_eq!(filled.update(doc! { "tag": 2 }, doc! { "$set": { "tag": 1 } }, doc! {}).await, (2, 2));
            assert_eq!(filled.ids(doc! { "hint": "y_1" }).await, [1, 2, 5]);
            filled.sound().await;
        }
    });
}

#[test]
fn a_hashed_index_finds_whole_objects_and_null_with_missing_values() {
    block_on(async {
        let tags = [bson!({ "a": 1 }), bson!({ "a": 1, "b": 2 }), bson!(2), bson!("x"), Bson::Null];
        let mut rows: Vec<Document> =
            tags.into_iter().zip(0..).map(|(tag, n)| doc! { "_id": n, "t": at(1), "tag": tag }).collect();
        rows.push(doc! { "_id": 5, "t": at(2) });
        for filled in Filled::each(&rows).await {
            filled.index(doc! { "tag": "hashed" }, doc! {}).await;
            for (tag, found) in [
                (bson!({ "a": 1 }), &[0][..]),
                (bson!({ "a": 1, "b": 2 }), &[1]),
                (bson!({ "b": 2, "a": 1 }), &[]),
                (bson!(2.0), &[2]),
                (bson!(2.1), &[]),
                (Bson::Null, &[4, 5]),
            ] {
                let find = doc! { "filter": { "tag": tag.clone() }, "hint": "tag_hashed" };
                assert_eq!(filled.ids(find).await, found, "{tag} {:?}", filled.form);
            }
        }
    });
}

#[test]
fn index_stats_show_the_keys_that_users_gave() {
    block_on(async {
        let filled = Filled::new(Form::Journal, doc! { "timeseries": tagged() }, &[]).await;
        filled.index(doc! { "tag.a": 1 }, doc! {}).await;
        filled.index(doc! { "tag.b": -1, "t": -1 }, doc! {}).await;
        filled.index(doc! { "x": 1 }, doc! { "partialFilterExpression": { "tag": 1 } }).await;
        let stages = [doc! { "$indexStats": {} }, doc! { "$sort": { "name": 1 } }].to_vec();
        let reply = filled.ok(doc! { "aggregate": "c", "pipeline": stages, "cursor": {} }).await;
        let stats = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        let mut listed = filled.listed("c").await;
        listed.sort_by_key(|spec| spec.get_str("name").unwrap().to_owned());
        assert_eq!(stats.len(), 4);
        for (stat, spec) in stats.iter().zip(&listed) {
            let stat = stat.as_document().unwrap();
            assert_eq!((stat.get_document("spec").unwrap(), stat.get("key")), (spec, spec.get("key")));
        }
    });
}
