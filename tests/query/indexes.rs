//! Indexes: their keys, how they are created, listed and dropped, and equal answers without them.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, doc, rawdoc};
use futures::executor::block_on;
use timepail::bucket::BucketFormat;

use timepail::storage::memory::MemoryStorage;

use crate::support::explained::explain;
use crate::support::{Db, TestEnv, raw};

const MINUTE_MS: i64 = 60_000;

fn at(minute: i64) -> DateTime {
    DateTime::from_millis(minute * MINUTE_MS)
}

async fn collection() -> (Db, Rc<MemoryStorage>) {
    let storage = Rc::new(MemoryStorage::new());
    let db = Db::open(storage.clone(), TestEnv::new(1));
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "tm", "metaField": "mm" } }).await;
    (db, storage)
}

async fn create(db: &Db, specs: &[Document]) -> Document {
    db.ok(raw(&doc! { "createIndexes": "c", "indexes": specs })).await
}

async fn refused(db: &Db, spec: Document) -> i32 {
    db.fails(raw(&doc! { "createIndexes": "c", "indexes": [spec] })).await.0
}

fn index(key: Document, name: &str) -> Document {
    doc! { "key": key, "name": name }
}

async fn list(db: &Db) -> Vec<Document> {
    db.find(rawdoc! { "find": "none" }).await;
    let reply = db.ok(rawdoc! { "listIndexes": "c" }).await;
    let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
    batch.iter().map(|spec| spec.as_document().unwrap().clone()).collect()
}

async fn names(db: &Db) -> Vec<String> {
    list(db).await.iter().map(|spec| spec.get_str("name").unwrap().to_owned()).collect()
}

/// Rows of twenty series, some fields missing or of other types.
fn rows(count: i64) -> Vec<Document> {
    (0..count)
        .map(|n| {
            let mut row = doc! { "tm": at(n * 7), "mm": { "site": n % 5, "unit": format!("u{}", n % 4) }, "n": n };
            match n % 9 {
                0 => {}
                1 => drop(row.insert("x", "text")),
                _ => drop(row.insert("x", (n * 37) % 101)),
            }
            if n % 10 == 0 {
                row.insert("mm", Bson::Array(vec![1.into(), 7.into()]));
            }
            if n % 11 == 0 {
                row.remove("mm");
            }
            row
        })
        .collect()
}

async fn insert(db: &Db, rows: &[Document]) {
    let reply = db.insert("c", &rows.iter().map(raw).collect::<Vec<_>>()).await;
    assert!(reply.get("writeErrors").is_none(), "{reply}");
}

async fn numbers(db: &Db, find: &Document) -> Vec<i64> {
    let mut found: Vec<i64> = db.find(raw(find)).await.iter().map(|row| row.get_i64("n").unwrap()).collect();
    found.sort_unstable();
    found
}

#[test]
fn a_collection_has_a_default_index_only_with_a_meta_field() {
    block_on(async {
        let (db, _) = collection().await;
        assert_eq!(list(&db).await, [doc! { "v": 2, "key": { "mm": 1, "tm": 1 }, "name": "mm_1_tm_1" }]);
        db.ok(rawdoc! { "create": "plain", "timeseries": { "timeField": "t" } }).await;
        let reply = db.ok(rawdoc! { "listIndexes": "plain" }).await;
        let cursor = reply.get_document("cursor").unwrap();
        assert_eq!((cursor.get_str("ns").unwrap(), cursor.get_array("firstBatch").unwrap().len()), ("test.plain", 0));
        assert_eq!(db.fails(rawdoc! { "listIndexes": "nowhere" }).await, (26, "NamespaceNotFound".into()));
    });
}

#[test]
fn indexes_are_created_counted_listed_and_dropped() {
    block_on(async {
        let (db, storage) = collection().await;
        insert(&db, &rows(40)).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let reply = create(&db, &[index(doc! { "mm.site": 1 }, "site"), index(doc! { "x": -1, "tm": 1 }, "x")]).await;
        assert_eq!(["numIndexesBefore", "numIndexesAfter"].map(|name| reply.get_i32(name).unwrap()), [1, 3]);
        assert!(!reply.get_bool("createdCollectionAutomatically").unwrap() && reply.get("note").is_none());
        let again = create(&db, &[index(doc! { "mm.site": 1 }, "site")]).await;
        assert_eq!(again.get_str("note").unwrap(), "all indexes already exist");
        assert_eq!(
            list(&db).await[1..],
            [
                doc! { "v": 2, "key": { "mm.site": 1 }, "name": "site" },
                doc! { "v": 2, "key": { "x": -1, "tm": 1 }, "name": "x" }
            ]
        );
        for missing in [Bson::from("y"), doc! { "y": 1 }.into(), Bson::Array(vec!["site".into(), "y".into()])] {
            let drop = doc! { "dropIndexes": "c", "index": missing };
            assert_eq!(db.fails(raw(&drop)).await, (27, "IndexNotFound".into()));
        }
        assert_eq!(names(&db).await, ["mm_1_tm_1", "site", "x"]);
        let reply = db.ok(rawdoc! { "dropIndexes": "c", "index": { "x": -1, "tm": 1 } }).await;
        assert_eq!(reply.get_i32("nIndexesWas").unwrap(), 3);
        db.ok(rawdoc! { "dropIndexes": "c", "index": ["site"] }).await;
        // The entries of the default index stay, because inserts find their buckets through them.
        let entries = crate::support::checks::keys(&*storage, b"I").await;
        assert!(!entries.is_empty() && entries.iter().all(|entry| entry.key[9..11] == [0, 1]));
        db.ok(rawdoc! { "dropIndexes": "c", "index": "*" }).await;
        assert!(names(&db).await.is_empty());
        assert_eq!(numbers(&db, &doc! { "find": "c", "filter": { "mm.site": 3 } }).await.len(), 7);
        create(&db, &[index(doc! { "mm": 1, "tm": 1 }, "mm_1_tm_1")]).await;
        assert_eq!(names(&db).await, ["mm_1_tm_1"]);
    });
}

#[test]
fn invalid_index_keys_are_refused_with_their_codes() {
    block_on(async {
        let (db, _) = collection().await;
        for (code, spec) in [
            (67, index(doc! {}, "a")),
            (67, index(doc! { "$natural": 1 }, "a")),
            (67, index(doc! { "$hint": "n" }, "a")),
            (67, index(doc! { "x": 0 }, "a")),
            (67, index(doc! { "x": f64::NAN }, "a")),
            (67, index(doc! { "x": true }, "a")),
            (67, index(doc! { "x": Bson::Null }, "a")),
            (67, index(doc! { "x": "" }, "a")),
            (67, index(doc! { "x": "what" }, "a")),
            (67, index(doc! { "x..y": 1 }, "a")),
            (67, index(doc! { "mm.$x": 1 }, "a")),
            (67, index(doc! { "tm": "hashed" }, "a")),
            (67, index(doc! { "x": "hashed" }, "a")),
            (67, index(doc! { "x": "2dsphere_bucket" }, "a")),
            (67, index(doc! { "x": 1, "$**": 1 }, "a")),
            (67, index(doc! { "x": 1 }, "")),
            (2, index(doc! { "x": 1 }, "*")),
            (72, index(doc! { "mm": "text" }, "a")),
            (9, doc! { "key": { "x": 1 } }),
            (9, doc! { "name": "x" }),
            (14, doc! { "key": 1, "name": "x" }),
            (14, doc! { "key": { "x": 1 }, "name": 1 }),
            (72, doc! { "key": { "x": 1 }, "name": "a", "unique": true }),
            (72, doc! { "key": { "x": 1 }, "name": "a", "sparse": true }),
            (67, doc! { "key": { "mm.a": 1 }, "name": "a", "sparse": true, "partialFilterExpression": { "mm.a": 1 } }),
            (72, doc! { "key": { "mm": 1, "x": 1 }, "name": "a", "sparse": true }),
            (197, doc! { "key": { "x": 1 }, "name": "a", "what": 1 }),
            (10065, doc! { "key": { "x": 1 }, "name": "a", "partialFilterExpression": 123 }),
            (
                85,
                doc! { "key": { "x": 1 }, "name": "a", "partialFilterExpression": {}, "collation": { "locale": "fr" } },
            ),
            (72, doc! { "key": { "tm": 1 }, "name": "a", "expireAfterSeconds": 5 }),
            (
                72,
                doc! { "key": { "mm": 1 }, "name": "a", "expireAfterSeconds": 5, "partialFilterExpression": { "mm": 1 } },
            ),
            (
                72,
                doc! { "key": { "tm": 1 }, "name": "a", "expireAfterSeconds": 5, "partialFilterExpression": { "x": 1 } },
            ),
            (
                67,
                doc! { "key": { "tm": 1, "mm": 1 }, "name": "a", "expireAfterSeconds": 5, "partialFilterExpression": { "mm": 1 } },
            ),
            (
                67,
                doc! { "key": { "tm": 1 }, "name": "a", "expireAfterSeconds": -1, "partialFilterExpression": { "mm": 1 } },
            ),
        ] {
            assert_eq!(refused(&db, spec.clone()).await, code, "{spec}");
        }
        for filter in [
            doc! { "x": Bson::Null },
            doc! { "x": { "$ne": 1 } },
            doc! { "x": { "$exists": false } },
            doc! { "x": { "a": 1 } },
            doc! { "$or": [{ "mm": 1 }, { "x": { "$nin": [1] } }] },
        ] {
            let spec = doc! { "key": { "y": 1 }, "name": "a", "partialFilterExpression": filter };
            assert_eq!(refused(&db, spec.clone()).await, 5_916_301, "{spec}");
        }
        assert_eq!(db.fails(rawdoc! { "createIndexes": "c", "indexes": [] }).await.0, 2);
        assert_eq!(
            db.fails(rawdoc! { "createIndexes": "nowhere", "indexes": [{ "key": { "x": 1 }, "name": "x" }] }).await.0,
            26
        );
        assert_eq!(names(&db).await, ["mm_1_tm_1"]);
        for spec in [
            doc! { "key": { "x": 1 }, "name": "a", "sparse": false, "unique": false, "background": true },
            doc! { "key": { "mm.a": "hashed", "tm": 1.5 }, "name": "b" },
            doc! { "key": { "tm": -1 }, "name": "c" },
        ] {
            create(&db, &[spec]).await;
        }
        // One invalid specification prevents all of them.
        let both =
            doc! { "createIndexes": "c", "indexes": [index(doc! { "ok": 1 }, "ok"), index(doc! { "bad": 0 }, "bad")] };
        db.fails(raw(&both)).await;
        assert_eq!(names(&db).await, ["mm_1_tm_1", "a", "b", "c"]);
    });
}

#[test]
fn an_index_like_an_existing_one_is_the_same_or_a_conflict() {
    block_on(async {
        let (db, _) = collection().await;
        create(&db, &[index(doc! { "mm.a": 1 }, "a")]).await;
        for (code, spec) in [
            (85, index(doc! { "mm.a": 1 }, "b")),
            (86, index(doc! { "mm.a": -1 }, "a")),
            (85, doc! { "key": { "mm.a": 1 }, "name": "a", "sparse": true }),
            (85, doc! { "key": { "mm.a": 1 }, "name": "b", "sparse": true }),
            (86, doc! { "key": { "mm.a": 1 }, "name": "a", "partialFilterExpression": { "mm.b": 1 } }),
        ] {
            assert_eq!(refused(&db, spec.clone()).await, code, "{spec}");
        }
        let partial =
            |name: &str, b: i32| doc! { "key": { "mm.a": 1 }, "name": name, "partialFilterExpression": { "mm.b": b } };
        create(&db, &[partial("b", 1), partial("c", 2), index(doc! { "mm.a": -1 }, "d")]).await;
        assert_eq!(names(&db).await, ["mm_1_tm_1", "a", "b", "c", "d"]);
        assert_eq!(db.fails(rawdoc! { "dropIndexes": "c", "index": { "mm.a": 1 } }).await.0, 181);
        assert_eq!(db.fails(rawdoc! { "dropIndexes": "c", "index": { "mm.a": 0 } }).await.0, 27);
        let many: Vec<Document> = (0..59).map(|n| index(doc! { format!("f{n}"): 1 }, &format!("f{n}"))).collect();
        create(&db, &many).await;
        assert_eq!(refused(&db, index(doc! { "last": 1 }, "last")).await, 67);
    });
}

#[test]
fn index_directions_of_equal_value_are_the_same() {
    block_on(async {
        let (db, _) = collection().await;
        create(&db, &[index(doc! { "mm": 1.0, "tm": 1_i64 }, "mm_1_tm_1"), index(doc! { "x": -1 }, "x")]).await;
        create(&db, &[index(doc! { "x": -1.0 }, "x")]).await;
        assert_eq!(names(&db).await, ["mm_1_tm_1", "x"]);
        assert_eq!(refused(&db, index(doc! { "mm": 1.0, "tm": 1.0 }, "other")).await, 85);
    });
}

/// Queries; for each index, some have bounds in it.
fn filters() -> Vec<Document> {
    vec![
        doc! {},
        doc! { "mm.site": 3 },
        doc! { "mm.site": { "$gt": 1, "$lte": 3 } },
        doc! { "mm.site": { "$in": [1, 4, 9] }, "mm.unit": "u1" },
        doc! { "mm.site": Bson::Null },
        doc! { "mm.unit": { "$gte": "u2" } },
        doc! { "mm": 7 },
        doc! { "mm": { "site": 3, "unit": "u3" } },
        doc! { "mm": { "$gt": 5 } },
        doc! { "x": { "$gt": 90 } },
        doc! { "x": { "$lt": 8 } },
        doc! { "x": 37 },
        doc! { "x": "text" },
        doc! { "x": { "$gte": 10, "$lt": 20 }, "mm.site": 2 },
        doc! { "tm": { "$gte": at(300), "$lt": at(600) } },
        doc! { "mm.site": 1, "tm": { "$lt": at(400) } },
        doc! { "$or": [{ "mm.site": 1 }, { "x": 5 }] },
        doc! { "x": { "$ne": 5 }, "mm.unit": "u2" },
    ]
}

fn specs() -> Vec<Document> {
    vec![
        index(doc! { "mm.site": 1 }, "site"),
        index(doc! { "mm.unit": -1, "tm": 1 }, "unit"),
        index(doc! { "mm.site": 1, "mm.unit": 1, "tm": -1 }, "both"),
        index(doc! { "x": 1 }, "x"),
        index(doc! { "x": -1, "mm.site": 1 }, "x_down"),
        index(doc! { "tm": -1 }, "time"),
        // Some metadata is an array, which a hashed index refuses.
        doc! { "key": { "mm": "hashed" }, "name": "hashed", "partialFilterExpression": { "mm.unit": { "$gte": "u0" } } },
        doc! { "key": { "mm.unit": 1 }, "name": "sparse", "sparse": true },
        doc! { "key": { "n": 1 }, "name": "partial", "partialFilterExpression": { "x": { "$gt": 50 }, "mm.site": { "$lte": 3 } } },
    ]
}

#[test]
fn every_query_finds_the_same_with_and_without_indexes_in_every_form() {
    block_on(async {
        let (plain, _) = collection().await;
        let rows = rows(200);
        insert(&plain, &rows).await;
        for format in [BucketFormat::Uncompressed, BucketFormat::Compressed] {
            for first in [0, 120, 200] {
                let storage = Rc::new(MemoryStorage::new());
                let db = Db::open_as(format, storage.clone(), TestEnv::new(1));
                db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "tm", "metaField": "mm" } }).await;
                // Some rows before the indexes are created and some afterwards, in the same buckets.
                let (before, behind) = rows.split_at(first);
                for (part, is_made) in [(before, false), (behind, true)] {
                    if is_made {
                        create(&db, &specs()).await;
                    }
                    if !part.is_empty() {
                        insert(&db, part).await;
                        db.ok(rawdoc! { "flush": 1 }).await;
                    }
                }
                let other = Db::open(storage, TestEnv::new(2));
                for filter in filters() {
                    let expected = numbers(&plain, &doc! { "find": "c", "filter": filter.clone() }).await;
                    for db in [&db, &other] {
                        assert_eq!(
                            numbers(db, &doc! { "find": "c", "filter": filter.clone() }).await,
                            expected,
                            "{filter}"
                        );
                        for spec in specs().iter().filter(|spec| spec.len() == 2) {
                            let hinted = doc! { "find": "c", "filter": filter.clone(), "hint": spec.get("key").unwrap().clone() };
                            assert_eq!(numbers(db, &hinted).await, expected, "{hinted}");
                        }
                    }
                }
            }
        }
    });
}

#[test]
fn entries_follow_their_buckets_through_folds_deletes_and_drops() {
    block_on(async {
        let (db, storage) = collection().await;
        create(&db, &specs()).await;
        insert(&db, &rows(100)).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        insert(&db, &rows(60)).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": { "x": { "$gt": 50 } }, "limit": 0 }, { "q": { "mm.site": 2 }, "limit": 0 }] }).await;
        let entries = crate::support::checks::keys(&*storage, b"I").await;
        // Recreated, they are the same.
        db.ok(rawdoc! { "dropIndexes": "c", "index": "*" }).await;
        create(&db, &[index(doc! { "mm": 1, "tm": 1 }, "mm_1_tm_1")]).await;
        create(&db, &specs()).await;
        let again = crate::support::checks::keys(&*storage, b"I").await;
        assert_eq!(entries.len(), again.len());
        assert!(entries.iter().map(|entry| &entry.key).eq(again.iter().map(|entry| &entry.key)));
        db.ok(rawdoc! { "drop": "c" }).await;
        assert!(crate::support::checks::keys(&*storage, b"").await.is_empty());
    });
}

#[test]
fn explain_shows_the_index_its_bounds_and_the_buckets_read() {
    block_on(async {
        let (db, _) = collection().await;
        let rows: Vec<Document> = (0..50).map(|n| doc! { "tm": at(0), "mm": { "site": n }, "x": n, "n": n }).collect();
        insert(&db, &rows).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        create(&db, &[index(doc! { "mm.site": 1, "tm": -1 }, "site"), index(doc! { "x": -1 }, "x")]).await;
        let command = |filter: Document| raw(&doc! { "find": "c", "filter": filter });
        let shown = explain(&db, command(doc! { "mm.site": 7 })).await;
        let input = shown.plan().get_document("inputStage").unwrap();
        assert_eq!((input.get_str("stage").unwrap(), input.get_str("indexName").unwrap()), ("IXSCAN", "site"));
        assert_eq!(
            input.get_document("keyPattern").unwrap(),
            &doc! { "meta.site": 1, "control.max.tm": -1, "control.min.tm": -1 }
        );
        let bounds = input.get_document("indexBounds").unwrap();
        assert_eq!(bounds.get_array("meta.site").unwrap(), &vec![Bson::from("[7, 7]")]);
        assert_eq!(shown.stats().get_i64("totalKeysExamined").unwrap(), 1);
        assert_eq!(shown.stats().get_i64("totalDocsExamined").unwrap(), 1);
        let shown = explain(&db, command(doc! { "x": { "$gte": 45 } })).await;
        assert_eq!(shown.plan().get_document("inputStage").unwrap().get_str("indexName").unwrap(), "x");
        assert_eq!(shown.stats().get_i64("totalDocsExamined").unwrap(), 5);
        // Whole metadata uses the default index, and time alone uses an id range.
        let shown = explain(&db, command(doc! { "mm": { "site": 7 } })).await;
        assert_eq!(shown.plan().get_document("inputStage").unwrap().get_str("indexName").unwrap(), "mm_1_tm_1");
    });
}

#[test]
fn a_hint_at_a_sparse_or_partial_index_finds_only_its_entries() {
    block_on(async {
        let (db, _) = collection().await;
        let row = |n: i64, meta: Document| doc! { "tm": at(n), "mm": meta, "n": n };
        insert(&db, &[row(1, doc! { "tag": 1 }), row(2, doc! { "other": 1 }), row(3, doc! { "tag": 2 })]).await;
        create(
            &db,
            &[
                doc! { "key": { "mm.tag": 1 }, "name": "sparse", "sparse": true },
                doc! { "key": { "tm": 1 }, "name": "partial", "partialFilterExpression": { "mm.tag": { "$gt": 1 } } },
                doc! { "key": { "tm": 1, "mm.tag": 1 }, "name": "all", "sparse": true },
            ],
        )
        .await;
        let hinted = |name: &str| doc! { "find": "c", "hint": name };
        assert_eq!(numbers(&db, &hinted("sparse")).await, [1, 3]);
        assert_eq!(numbers(&db, &hinted("partial")).await, [3]);
        assert_eq!(numbers(&db, &hinted("all")).await, [1, 2, 3]);
        assert_eq!(numbers(&db, &doc! { "find": "c" }).await, [1, 2, 3]);
        // It is not used without a hint if matches would be missing.
        assert_eq!(numbers(&db, &doc! { "find": "c", "filter": { "mm.tag": Bson::Null } }).await, [2]);
        assert_eq!(numbers(&db, &doc! { "find": "c", "filter": { "mm.tag": 2 } }).await, [3]);
        let unknown = db.fails(raw(&hinted("what"))).await;
        assert_eq!(unknown.0, 2);
    });
}

#[test]
fn a_partial_index_is_used_only_if_the_query_implies_its_filter() {
    block_on(async {
        let (db, _) = collection().await;
        let rows: Vec<Document> = (0..40).map(|n| doc! { "tm": at(n), "mm": n, "a": n, "b": n % 20, "n": n }).collect();
        insert(&db, &rows).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        create(&db, &[doc! { "key": { "a": 1 }, "name": "a_1", "partialFilterExpression": { "b": { "$lt": 12 } } }])
            .await;
        let stage = async |filter: Document| {
            let shown = explain(&db, raw(&doc! { "find": "c", "filter": filter })).await;
            shown.plan().get_document("inputStage").is_ok()
        };
        assert!(stage(doc! { "a": { "$lt": 999 }, "b": { "$lt": 12 } }).await);
        assert!(stage(doc! { "a": { "$lt": 999 }, "b": { "$lt": 11 } }).await);
        assert!(stage(doc! { "a": { "$lt": 999 }, "b": 5 }).await);
        for filter in [
            doc! { "a": { "$lt": 999 } },
            doc! { "a": { "$lt": 999 }, "b": { "$lte": 12 } },
            doc! { "a": { "$lt": 999 }, "b": { "$lt": 13 } },
            doc! { "a": { "$lt": 999 }, "b": { "$gt": 1 } },
            doc! { "a": { "$lt": 999 }, "b": { "$lt": "x" } },
            doc! { "a": { "$lt": 999 }, "b": f64::NAN },
        ] {
            assert!(!stage(filter.clone()).await, "{filter}");
        }
    });
}

#[test]
fn arrays_on_an_indexed_path_are_refused_by_inserts_and_index_builds() {
    block_on(async {
        let (db, _) = collection().await;
        create(&db, &[index(doc! { "a.b": 1 }, "a")]).await;
        let row = |n: i64, a: Bson| raw(&doc! { "tm": at(n), "a": a, "c": [1], "n": n });
        let rows = [
            row(1, 1.into()),
            row(2, Bson::Array(vec![])),
            row(3, doc! { "b": [1] }.into()),
            row(4, doc! { "b": 1 }.into()),
        ];
        let reply = db.insert("c", &rows).await;
        let errors = reply.get_array("writeErrors").unwrap();
        let codes: Vec<(i32, i32)> = errors
            .iter()
            .map(|error| error.as_document().unwrap())
            .map(|error| (error.get_i32("index").unwrap(), error.get_i32("code").unwrap()))
            .collect();
        assert_eq!(codes, [(1, 5_930_501), (2, 5_930_501)]);
        assert_eq!(numbers(&db, &doc! { "find": "c" }).await, [1, 4]);
        for _ in 0..2 {
            // In the journal, and in a bucket.
            assert_eq!(refused(&db, index(doc! { "c": 1 }, "c")).await, 5_930_501);
            assert_eq!(names(&db).await, ["mm_1_tm_1", "a"]);
            db.ok(rawdoc! { "flush": 1 }).await;
        }
    });
}

#[test]
fn contexts_learn_of_a_new_index_before_they_fold() {
    block_on(async {
        let (db, storage) = collection().await;
        let other = Db::open(storage.clone(), TestEnv::new(2));
        insert(&other, &rows(30)).await;
        other.ok(rawdoc! { "flush": 1 }).await;
        insert(&other, &rows(50)[30..]).await;
        create(&db, &specs()).await;
        other.ok(rawdoc! { "flush": 1 }).await;
        insert(&other, &rows(80)[50..]).await;
        other.ok(rawdoc! { "flush": 1 }).await;
        let entries = crate::support::checks::keys(&*storage, b"I").await;
        assert_eq!(names(&other).await.len(), 10);
        for filter in filters() {
            let find = doc! { "find": "c", "filter": filter.clone() };
            let (a, b) = (numbers(&db, &find).await, numbers(&other, &find).await);
            assert_eq!(a, b, "{filter}");
        }
        db.ok(rawdoc! { "dropIndexes": "c", "index": "*" }).await;
        create(&other, &[index(doc! { "mm": 1, "tm": 1 }, "mm_1_tm_1")]).await;
        create(&other, &specs()).await;
        let again = crate::support::checks::keys(&*storage, b"I").await;
        assert!(entries.iter().map(|entry| &entry.key).eq(again.iter().map(|entry| &entry.key)));
    });
}

#[test]
fn index_stats_count_the_queries_that_use_each_index() {
    block_on(async {
        let (db, _) = collection().await;
        insert(&db, &rows(40)).await;
        create(&db, &[index(doc! { "mm.site": 1 }, "site")]).await;
        for filter in [doc! { "mm.site": 1 }, doc! { "mm.site": 2 }, doc! { "mm": 7 }, doc! { "n": 1 }] {
            numbers(&db, &doc! { "find": "c", "filter": filter }).await;
        }
        let aggregate = async |pipeline: Vec<Document>| {
            let reply = db.ok(raw(&doc! { "aggregate": "c", "pipeline": pipeline, "cursor": {} })).await;
            let batch = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone();
            batch.iter().map(|doc| doc.as_document().unwrap().clone()).collect::<Vec<_>>()
        };
        let stats = aggregate(vec![doc! { "$indexStats": {} }]).await;
        let shown: Vec<(&str, i64)> = stats
            .iter()
            .map(|doc| (doc.get_str("name").unwrap(), doc.get_document("accesses").unwrap().get_i64("ops").unwrap()))
            .collect();
        assert_eq!(shown, [("mm_1_tm_1", 1), ("site", 2)]);
        assert_eq!(stats[1].get_document("key").unwrap(), &doc! { "mm.site": 1 });
        assert_eq!(stats[1].get_document("spec").unwrap(), &list(&db).await[1]);
        assert!(stats[1].get_document("accesses").unwrap().get_datetime("since").is_ok());
        let sum = vec![
            doc! { "$indexStats": {} },
            doc! { "$match": { "name": "site" } },
            doc! { "$group": { "_id": Bson::Null, "n": { "$sum": "$accesses.ops" } } },
        ];
        assert_eq!(aggregate(sum).await, [doc! { "_id": Bson::Null, "n": 2_i64 }]);
        for (code, pipeline) in [
            (40602, vec![doc! { "$limit": 1 }, doc! { "$indexStats": {} }]),
            (28803, vec![doc! { "$indexStats": { "a": 1 } }]),
        ] {
            assert_eq!(db.fails(raw(&doc! { "aggregate": "c", "pipeline": pipeline, "cursor": {} })).await.0, code);
        }
    });
}

#[test]
fn an_index_on_time_with_a_filter_expires_buckets_of_some_series() {
    block_on(async {
        let storage = Rc::new(MemoryStorage::new());
        let env = TestEnv::new(1);
        let db = Db::open(storage.clone(), Rc::clone(&env));
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "tm", "metaField": "mm" } }).await;
        let old = env.now_ms.get() - 10 * 60 * MINUTE_MS;
        let row =
            |n: i64, keep: bool, ms: i64| doc! { "tm": DateTime::from_millis(ms), "mm": { "keep": keep }, "n": n };
        insert(&db, &[row(1, true, old), row(2, false, old), row(3, false, env.now_ms.get())]).await;
        let ttl = doc! {
            "key": { "tm": 1 }, "name": "ttl", "expireAfterSeconds": 3600, "partialFilterExpression": { "mm.keep": false },
        };
        create(&db, std::slice::from_ref(&ttl)).await;
        let shown = &list(&db).await[1];
        assert_eq!(shown.get_i64("expireAfterSeconds").unwrap(), 3600);
        assert_eq!(shown.get_document("partialFilterExpression").unwrap(), &doc! { "mm.keep": false });
        db.ok(rawdoc! { "expire": 1 }).await;
        assert_eq!(numbers(&db, &doc! { "find": "c" }).await, [1, 3]);
        // Beside an index on time with another key.
        create(&db, &[index(doc! { "tm": 1 }, "tm_1")]).await;
        for name in ["tm_1", "ttl"] {
            assert!(names(&db).await.contains(&name.to_owned()));
            db.ok(rawdoc! { "dropIndexes": "c", "index": { "tm": 1 } }).await;
            assert!(!names(&db).await.contains(&name.to_owned()));
        }
        env.now_ms.set(env.now_ms.get() + 100 * 60 * MINUTE_MS);
        db.ok(rawdoc! { "expire": 1 }).await;
        assert_eq!(numbers(&db, &doc! { "find": "c" }).await, [1, 3]);
    });
}

#[test]
fn coll_stats_has_the_sizes_of_indexes() {
    block_on(async {
        let (db, storage) = collection().await;
        insert(&db, &rows(40)).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        create(&db, &[index(doc! { "x": 1 }, "x")]).await;
        let stats = db.ok(rawdoc! { "collStats": "c" }).await;
        let entries = crate::support::checks::keys(&*storage, b"I").await;
        let total: i64 = entries.iter().map(|entry| entry.key.len() as i64).sum();
        let sizes = stats.get_document("indexSizes").unwrap();
        assert_eq!(sizes.keys().collect::<Vec<_>>(), ["mm_1_tm_1", "x"]);
        assert_eq!(sizes.values().map(|size| size.as_i64().unwrap()).sum::<i64>(), total);
        assert_eq!((stats.get_i32("nindexes").unwrap(), stats.get_i64("totalIndexSize").unwrap()), (2, total));
    });
}

#[test]
fn a_hidden_index_is_maintained_but_not_used() {
    block_on(async {
        let (db, storage) = collection().await;
        insert(&db, &rows(60)).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        create(&db, &[index(doc! { "mm.site": 1 }, "site")]).await;
        let change = |index: Document| raw(&doc! { "collMod": "c", "index": index });
        let reply = db.ok(change(doc! { "keyPattern": { "mm.site": 1 }, "hidden": true })).await;
        assert_eq!((reply.get_bool("hidden_old").unwrap(), reply.get_bool("hidden_new").unwrap()), (false, true));
        assert!(list(&db).await[1].get_bool("hidden").unwrap());
        let other = Db::open(storage, TestEnv::new(2));
        for db in [&db, &other] {
            assert_eq!(db.fails(rawdoc! { "find": "c", "hint": "site" }).await.0, 2);
            let shown = explain(db, rawdoc! { "find": "c", "filter": { "mm.site": 1 } }).await;
            assert_eq!(shown.plan().get_str("stage").unwrap(), "COLLSCAN");
        }
        insert(&other, &rows(30)).await;
        other.ok(rawdoc! { "flush": 1 }).await;
        db.ok(change(doc! { "name": "site", "hidden": false })).await;
        assert!(!list(&db).await[1].contains_key("hidden"));
        let found = numbers(&db, &doc! { "find": "c", "filter": { "mm.site": 1 }, "hint": "site" }).await;
        assert_eq!(
            found.len(),
            rows(60)
                .iter()
                .chain(&rows(30))
                .filter(|row| row.get_document("mm").is_ok_and(|mm| mm.get_i64("site").unwrap() == 1))
                .count()
        );
        for (code, index) in [
            (27, doc! { "name": "none", "hidden": true }),
            (27, doc! { "keyPattern": { "none": 1 }, "hidden": true }),
            (27, doc! { "name": "_id_", "hidden": true }),
            (72, doc! { "name": "site" }),
            (72, doc! { "name": "site", "expireAfterSeconds": 5 }),
            (72, doc! { "name": "site", "prepareUnique": true }),
            (14, doc! { "name": "site", "hidden": "yes" }),
        ] {
            assert_eq!(db.fails(change(index.clone())).await.0, code, "{index}");
        }
        let both = rawdoc! { "collMod": "c", "index": { "name": "site", "hidden": true }, "expireAfterSeconds": 5 };
        assert_eq!(db.fails(both).await.0, 72);
        let ttl =
            doc! { "key": { "tm": 1 }, "name": "ttl", "expireAfterSeconds": 9, "partialFilterExpression": { "mm": 1 } };
        create(&db, &[ttl]).await;
        let reply = db.ok(change(doc! { "name": "ttl", "expireAfterSeconds": 10 })).await;
        let of = |name: &str| reply.get_i64(name).unwrap();
        assert_eq!((of("expireAfterSeconds_old"), of("expireAfterSeconds_new")), (9, 10));
        assert_eq!(list(&db).await[2].get_i64("expireAfterSeconds").unwrap(), 10);
    });
}

#[test]
fn an_index_belongs_to_the_current_collection_of_that_name() {
    block_on(async {
        let (db, storage) = collection().await;
        let other = Db::open(storage, TestEnv::new(2));
        other.ok(rawdoc! { "drop": "c" }).await;
        other.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "tm", "metaField": "site" } }).await;
        // The field is metadata in the new collection and a measurement field in the old one.
        create(&db, &[doc! { "key": { "site.id": 1 }, "name": "site", "sparse": true }]).await;
        assert_eq!(names(&other).await, ["site_1_tm_1", "site"]);
    });
}

#[test]
fn an_index_recreated_during_its_build_is_complete_or_absent() {
    let mut outcomes = [0, 0];
    for seed in 0..40 {
        block_on(async {
            let inner = Rc::new(MemoryStorage::new());
            let faulty = crate::support::faults::Faulty::new(inner, crate::support::Random::new(seed), true);
            let (one, other) = (Db::open(faulty.clone(), TestEnv::new(1)), Db::open(faulty, TestEnv::new(2)));
            one.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "tm", "metaField": "mm" } }).await;
            insert(&one, &rows(60)).await;
            one.ok(rawdoc! { "flush": 1 }).await;
            let make = |key: Document| raw(&doc! { "createIndexes": "c", "indexes": [index(key, "i")] });
            let again = async {
                other.command(rawdoc! { "dropIndexes": "c", "index": "i" }).await;
                other.command(make(doc! { "mm.unit": 1 })).await
            };
            let (first, second) = futures::future::join(one.command(make(doc! { "n": -1 })), again).await;
            for reply in [&first, &second] {
                outcomes[usize::from(reply.get_f64("ok").unwrap() == 1.0)] += 1;
            }
            let all = numbers(&one, &doc! { "find": "c" }).await;
            for name in names(&one).await {
                assert_eq!(numbers(&other, &doc! { "find": "c", "hint": &name }).await, all, "seed {seed}, {name}");
            }
            let reply = one.ok(rawdoc! { "validate": "c", "full": true }).await;
            assert!(reply.get_bool("valid").unwrap(), "seed {seed}: {reply}");
        });
    }
    assert!(outcomes.iter().all(|n| *n > 0), "{outcomes:?}");
}
