//! Wildcard indexes on paths of the metadata.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, bson, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::memory::MemoryStorage;

use crate::support::explained::{Explained, explain};
use crate::support::{Db, TestEnv, raw};

async fn collection() -> Db {
    let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "mm" } }).await;
    db
}

async fn create(db: &Db, key: Document) -> Result<(), i32> {
    let spec = doc! { "key": key, "name": "all" };
    let reply = db.command(raw(&doc! { "createIndexes": "c", "indexes": [spec] })).await;
    if reply.get_f64("ok").ok() == Some(1.0) { Ok(()) } else { Err(reply.get_i32("code").unwrap()) }
}

/// Metadata of many forms, one bucket each.
fn metadata() -> Vec<Bson> {
    let mut all: Vec<Bson> =
        (0..40).map(|n| bson!({ "a": n, "c": { "d": n % 4, "e": format!("e{n}") }, "x.y": n })).collect();
    all.extend([
        bson!({ "a": [1, 2, { "b": 3 }], "c": { "d": [] } }),
        bson!({ "a": { "b": 3 }, "c": [{ "d": 3 }, { "d": [7] }] }),
        bson!({ "a": { "b": [3, [4]] }, "c": {} }),
        bson!({ "a": { "0": 1 }, "c": null }),
        bson!({ "a": 3.0, "c": { "d": null } }),
        bson!("plain"),
        bson!([{ "a": 3 }, 3]),
        bson!(3),
    ]);
    all
}

async fn filled(db: &Db) {
    let rows = metadata()
        .into_iter()
        .zip(0..)
        .map(|(meta, n)| raw(&doc! { "t": DateTime::from_millis(n), "n": n as i32, "mm": meta }));
    let reply = db.insert("c", &rows.collect::<Vec<_>>()).await;
    assert!(reply.get("writeErrors").is_none(), "{reply}");
    db.ok(rawdoc! { "flush": 1 }).await;
}

async fn numbers(db: &Db, filter: &Document) -> Vec<i32> {
    let found = db.find(rawdoc! { "find": "c", "filter": raw(filter), "sort": { "n": 1 } }).await;
    found.iter().map(|row| row.get_i32("n").unwrap()).collect()
}

async fn plan(db: &Db, filter: &Document) -> Explained {
    explain(db, rawdoc! { "find": "c", "filter": raw(filter) }).await
}

fn index_of(explained: &Explained) -> Option<&Document> {
    explained.plan().get_document("inputStage").ok()
}

fn filters() -> Vec<(Document, bool)> {
    vec![
        (doc! { "mm.a": 3 }, true),
        (doc! { "mm.a": { "$in": [1, 3, 7] } }, true),
        (doc! { "mm.a": { "$gt": 30, "$lt": 34 } }, true),
        (doc! { "mm.a": { "$lte": 2 } }, true),
        (doc! { "mm.a.b": 3 }, true),
        (doc! { "mm.a.b": { "$gte": 3 } }, true),
        (doc! { "mm.a.0": 1 }, true),
        (doc! { "mm.c.d": 3, "mm.a": { "$lt": 20 } }, true),
        (doc! { "mm.c.d": { "$exists": true } }, true),
        // Containers have entries only for their parts.
        (doc! { "mm.c": { "$exists": true } }, true),
        (doc! { "mm": { "$exists": true } }, true),
        (doc! { "mm.c.e": "e7" }, true),
        (doc! { "mm.x.y": 3 }, true),
        (doc! { "mm.none": 3 }, true),
        (doc! { "mm.c": {} }, true),
        (doc! { "mm.a": { "$type": "number" } }, true),
        (doc! { "mm.c.e": { "$type": ["string", "bool"] } }, true),
        (doc! { "mm.c.e": { "$gt": "e3" } }, true),
        (doc! { "$or": [{ "mm.c.d": 3 }, { "mm.c.e": { "$in": ["e1", "e7"] } }] }, true),
        (doc! { "$or": [{ "mm.a": 3 }, { "mm.c.d": 3 }] }, true),
        (doc! { "mm.c": { "$type": "object" } }, false),
        (doc! { "mm.a": { "$in": [1, null] } }, false),
        (doc! { "mm.c": { "d": 3, "e": "e3" } }, false),
        (doc! { "mm.a": [1, 2] }, false),
        (doc! { "mm.a": null }, false),
        (doc! { "mm.a": { "$ne": 3 } }, false),
        (doc! { "mm.a": { "$exists": false } }, false),
        (doc! { "mm.a": { "$lt": Bson::MaxKey } }, false),
        (doc! { "mm.a": { "$gte": { "b": 1 } } }, false),
        (doc! { "$or": [{ "mm.a": 3 }, { "n": 3 }] }, false),
        (doc! { "n": 3 }, false),
    ]
}

#[test]
fn every_query_finds_the_same_with_and_without_a_wildcard() {
    block_on(async {
        let plain = collection().await;
        filled(&plain).await;
        for (key, root) in [("mm.$**", "mm"), ("mm.c.$**", "mm.c"), ("mm.a.$**", "mm.a")] {
            for before in [true, false] {
                let db = collection().await;
                if before {
                    create(&db, doc! { key: 1 }).await.unwrap();
                }
                filled(&db).await;
                if !before {
                    create(&db, doc! { key: 1 }).await.unwrap();
                }
                assert!(db.ok(rawdoc! { "validate": "c", "full": true }).await.get_bool("valid").unwrap());
                for (filter, is_useful) in filters() {
                    assert_eq!(numbers(&db, &filter).await, numbers(&plain, &filter).await, "{filter} with {key}");
                    let of_root = |path: &String| path == root || path.starts_with(&format!("{root}."));
                    let arms = filter.get_array("$or").into_iter().flatten();
                    let useful = is_useful
                        && arms.map(|arm| arm.as_document().unwrap()).all(|arm| arm.keys().any(of_root))
                        && (filter.contains_key("$or") || filter.keys().any(of_root));
                    let explained = plan(&db, &filter).await;
                    assert_eq!(index_of(&explained).is_some(), useful, "{filter} with {key}");
                }
            }
        }
    });
}

#[test]
fn explain_shows_the_wildcard_path_and_the_buckets_read() {
    block_on(async {
        let db = collection().await;
        create(&db, doc! { "mm.$**": 1 }).await.unwrap();
        filled(&db).await;
        let explained = plan(&db, &doc! { "mm.c.e": "e7" }).await;
        let scan = index_of(&explained).unwrap();
        assert_eq!(scan.get_document("keyPattern").unwrap(), &doc! { "$_path": 1, "meta.c.e": 1 });
        let bounds = doc! { "$_path": ["[\"meta.c.e\", \"meta.c.e\"]"], "meta.c.e": ["[\"e7\", \"e7\"]"] };
        assert_eq!(scan.get_document("indexBounds").unwrap(), &bounds);
        assert_eq!(scan.get_document("multiKeyPaths").unwrap(), &doc! { "$_path": [], "meta.c.e": ["meta", "meta.c"] });
        // The bucket of the string, and those with arrays on the path.
        assert_eq!(explained.counts(), [3, 1, 1, 1]);
        let listed = db.ok(rawdoc! { "listIndexes": "c" }).await;
        let listed = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        assert_eq!(listed[1].as_document().unwrap(), &doc! { "v": 2, "key": { "mm.$**": 1 }, "name": "all" });
    });
}

#[test]
fn a_hint_at_a_wildcard_index_needs_a_path_below_it() {
    block_on(async {
        let db = collection().await;
        create(&db, doc! { "mm.$**": 1 }).await.unwrap();
        filled(&db).await;
        for hint in [bson!("all"), bson!({ "mm.$**": 1 })] {
            let find = |filter: Document| raw(&doc! { "find": "c", "filter": filter, "hint": hint.clone() });
            assert_eq!(db.find(find(doc! { "mm.a": 3 })).await.len(), 3);
            assert_eq!(db.fails(find(doc! { "n": 3 })).await, (2, "BadValue".to_owned()));
            assert_eq!(db.fails(find(doc! {})).await.0, 2);
        }
    });
}

#[test]
fn wildcard_index_keys_are_accepted_or_refused() {
    block_on(async {
        let db = collection().await;
        for (key, code) in [
            (doc! { "$**": 1 }, 67),
            (doc! { "x.$**": 1 }, 67),
            (doc! { "x": 1, "y.$**": 1 }, 67),
            (doc! { "mm.tag": 1, "x.$**": 1 }, 67),
            (doc! { "_id.$**": 1 }, 67),
            (doc! { "mm.$**": "hashed" }, 67),
            (doc! { "mm.$**": 0 }, 67),
            (doc! { "mm.$**.a": 1 }, 67),
        ] {
            assert_eq!(create(&db, key.clone()).await, Err(code), "{key}");
        }
        for (key, code) in [(doc! { "mm.$**": 1 }, 9), (doc! { "mm": 1 }, 2)] {
            let spec = doc! { "key": key, "name": "x", "wildcardProjection": { "a": 1 } };
            assert_eq!(db.fails(raw(&doc! { "createIndexes": "c", "indexes": [spec] })).await.0, code);
        }
        create(&db, doc! { "mm.a.$**": -1 }).await.unwrap();
        db.ok(rawdoc! { "dropIndexes": "c", "index": { "mm.a.$**": -1 } }).await;
    });
}

#[test]
fn entries_follow_updates_of_the_metadata() {
    block_on(async {
        let db = collection().await;
        create(&db, doc! { "mm.$**": 1 }).await.unwrap();
        filled(&db).await;
        let update = doc! { "q": { "mm.a": 7 }, "u": { "$set": { "mm.a": { "b": [70] } }, "$unset": { "mm.c": 1 } }, "multi": true };
        db.ok(raw(&doc! { "update": "c", "updates": [update] })).await;
        assert_eq!(numbers(&db, &doc! { "mm.a": 7 }).await, [0; 0]);
        assert_eq!(numbers(&db, &doc! { "mm.a.b": 70 }).await, [7]);
        assert_eq!(numbers(&db, &doc! { "mm.c.e": "e7" }).await, [0; 0]);
        db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": { "mm.a.b": 70 }, "limit": 0 }] }).await;
        assert_eq!(numbers(&db, &doc! { "mm.a.b": 70 }).await, [0; 0]);
        assert!(db.ok(rawdoc! { "validate": "c", "full": true }).await.get_bool("valid").unwrap());
    });
}
