//! Bucket documents changed as such, and what else the name of the buckets takes.

use std::rc::Rc;

use bson::oid::ObjectId;
use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::memory::MemoryStorage;

use crate::support::valid_bucket::Writers;
use crate::support::{Db, TestEnv, checks, raw, take_rows};

const RAW: &str = "system.buckets.c";

fn row(second: i64, series: &str) -> RawDocumentBuf {
    rawdoc! { "t": DateTime::from_millis(second * 1000), "m": series, "x": second as f64 }
}

/// Two series of three rows: one in a bucket, and of the other the last row in a journal.
async fn filled() -> (Rc<MemoryStorage>, Db) {
    let storage = Rc::new(MemoryStorage::new());
    let db = Db::open(storage.clone(), TestEnv::new(1));
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    db.insert("c", &[row(1, "a"), row(2, "a"), row(3, "a"), row(1, "b"), row(2, "b")]).await;
    db.ok(rawdoc! { "flush": 1 }).await;
    db.insert("c", &[row(3, "b")]).await;
    (storage, db)
}

fn updating(statement: Document) -> RawDocumentBuf {
    raw(&doc! { "update": RAW, "updates": [statement], "unsafeBucketWrites": true })
}

fn find_and_modify(more: Document) -> RawDocumentBuf {
    raw(&doc! { "findAndModify": RAW, "unsafeBucketWrites": true }.into_iter().chain(more).collect::<Document>())
}

/// The counts of an update, or the code of its only error.
async fn updated(db: &Db, statement: Document) -> Result<(i32, i32), i32> {
    let reply = db.ok(updating(statement)).await;
    match reply.get_array("writeErrors") {
        Ok(errors) => Err(errors[0].as_document().unwrap().get_i32("code").unwrap()),
        Err(_) => Ok((reply.get_i32("n").unwrap(), reply.get_i32("nModified").unwrap())),
    }
}

async fn buckets(db: &Db, filter: Document) -> Vec<Document> {
    db.find(raw(&doc! { "find": RAW, "filter": filter, "sort": { "meta": 1 } })).await
}

fn is_closed(bucket: &Document) -> bool {
    bucket.get_document("control").unwrap().get_bool("closed").unwrap_or(false)
}

async fn count(db: &Db, filter: Document) -> i32 {
    db.ok(raw(&doc! { "count": "c", "query": filter })).await.get_i32("n").unwrap()
}

#[test]
fn a_bucket_is_closed_by_hand_and_takes_nothing_more() {
    block_on(async {
        let (storage, db) = filled().await;
        let other = Db::open(storage.clone(), TestEnv::new(2));
        other.insert("c", &[row(4, "a")]).await;
        let close = doc! { "q": { "meta": "a" }, "u": { "$set": { "control.closed": true } } };
        assert_eq!(updated(&db, close.clone()).await, Ok((1, 1)));
        assert_eq!(updated(&db, close).await, Ok((1, 0)));
        let [a, b] = &buckets(&db, doc! {}).await[..] else { panic!("not two buckets") };
        assert!(is_closed(a) && !is_closed(b));
        // This context knows of it, the other one had rows in flight; both read all of them.
        db.insert("c", &[row(5, "a")]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        assert_eq!(buckets(&db, doc! { "meta": "a" }).await.len(), 2);
        assert_eq!((count(&db, doc! { "m": "a" }).await, count(&other, doc! { "m": "a" }).await), (5, 5));
        // As on the server, deletes leave it alone.
        let delete = rawdoc! { "delete": "c", "deletes": [{ "q": { "m": "a", "x": { "$lt": 10 } }, "limit": 0 }] };
        let closed_rows = buckets(&db, doc! { "control.closed": true }).await[0]
            .get_document("control")
            .unwrap()
            .get_i32("count")
            .unwrap();
        assert_eq!(db.ok(delete).await.get_i32("n").unwrap(), 5 - closed_rows);
        let open = doc! { "q": { "meta": "a" }, "u": { "$unset": { "control.closed": "" } }, "multi": true };
        assert_eq!(updated(&other, open).await, Ok((1, 1)));
        checks::sound_when_folded(&*storage, &db, "c", Writers::Several).await;
    });
}

#[test]
fn an_update_of_buckets_folds_their_rows_first_and_counts_buckets() {
    block_on(async {
        let (storage, db) = filled().await;
        let all = doc! { "q": {}, "u": { "$set": { "meta": "c" } }, "multi": true };
        assert_eq!(updated(&db, all.clone()).await, Ok((2, 2)));
        assert_eq!(updated(&db, all).await, Ok((2, 0)));
        assert_eq!((count(&db, doc! { "m": "c" }).await, count(&db, doc! {}).await), (6, 6));
        let one = doc! { "q": { "meta": "c" }, "u": { "$set": { "meta": "d" } } };
        assert_eq!(updated(&db, one).await, Ok((1, 1)));
        assert_eq!(count(&db, doc! { "m": "d" }).await, 3);
        assert_eq!(updated(&db, doc! { "q": { "meta": "none" }, "u": { "$set": { "meta": 1 } } }).await, Ok((0, 0)));
        checks::sound_when_folded(&*storage, &db, "c", Writers::Several).await;
    });
}

#[test]
fn a_bucket_is_replaced_by_a_valid_one_of_the_same_id() {
    block_on(async {
        let (storage, db) = filled().await;
        let mut bucket = buckets(&db, doc! { "meta": "a" }).await.remove(0);
        let id = bucket.get_object_id("_id").unwrap();
        bucket.insert("meta", "z");
        bucket.remove("_id");
        let replace = |bucket: &Document| doc! { "q": { "_id": id }, "u": bucket.clone() };
        assert_eq!(updated(&db, replace(&bucket)).await, Ok((1, 1)));
        assert_eq!(buckets(&db, doc! { "meta": "z" }).await[0].get_object_id("_id").unwrap(), id);
        bucket.insert("_id", ObjectId::from_bytes([7; 12]));
        assert_eq!(updated(&db, replace(&bucket)).await, Err(66));
        bucket.remove("_id");
        let mut many = replace(&bucket);
        many.insert("multi", true);
        assert_eq!(updated(&db, many).await, Err(9));
        bucket.remove("data");
        assert_eq!(updated(&db, replace(&bucket)).await, Err(121));
        checks::sound_when_folded(&*storage, &db, "c", Writers::Several).await;
    });
}

#[test]
fn a_bucket_that_would_break_a_rule_is_refused_and_stays() {
    block_on(async {
        let (_, db) = filled().await;
        db.ok(rawdoc! { "createIndexes": "c", "indexes": [{ "key": { "x": 1 }, "name": "x" }] }).await;
        let before = buckets(&db, doc! {}).await;
        for (change, code) in [
            (doc! { "$set": { "control.count": 7 } }, 121),
            (doc! { "$set": { "control.version": 9 } }, 121),
            (doc! { "$set": { "what": 1 } }, 121),
            (doc! { "$unset": { "control": 1 } }, 121),
            (doc! { "$set": { "control.min.t": DateTime::from_millis(60_000) } }, 121),
            (doc! { "$set": { "control.min.x": 5.0 } }, 121),
            (doc! { "$rename": { "data": "other" } }, 121),
            (doc! { "$set": { "_id": ObjectId::from_bytes([7; 12]) } }, 66),
            (doc! { "$set": { "control.closed": true, "control": {} } }, 40),
            (doc! { "$what": { "a": 1 } }, 9),
            (doc! { "$set": { "": 1 } }, 56),
        ] {
            assert_eq!(updated(&db, doc! { "q": { "meta": "a" }, "u": change.clone() }).await, Err(code), "{change}");
        }
        for (more, code) in [
            (doc! { "u": { "$set": { "meta": 1 } }, "upsert": true }, 72),
            (doc! { "u": [{ "$set": { "meta": 1 } }] }, 72),
        ] {
            let statement = doc! { "q": { "meta": "a" } }.into_iter().chain(more).collect::<Document>();
            assert_eq!(updated(&db, statement.clone()).await, Err(code), "{statement}");
        }
        assert_eq!(db.fails(updating(doc! { "q": { "meta": "a" }, "u": 1 })).await.0, 9);
        assert_eq!(buckets(&db, doc! {}).await, before);
    });
}

#[test]
fn find_and_modify_changes_or_removes_one_bucket_and_shows_it() {
    block_on(async {
        let (storage, db) = filled().await;
        let modified = async |more: Document| {
            let mut reply = db.ok(find_and_modify(more)).await;
            reply.remove("ok");
            (reply.get_document("lastErrorObject").unwrap().clone(), reply.get("value").cloned().unwrap())
        };
        let fields = doc! { "_id": 0, "meta": 1, "control.closed": 1 };
        let close = || doc! { "query": { "meta": { "$in": ["a", "b"] } }, "sort": { "meta": -1 }, "update": { "$set": { "control.closed": true } }, "fields": fields.clone() };
        let one = doc! { "n": 1, "updatedExisting": true };
        let old = doc! { "control": {}, "meta": "b" };
        assert_eq!(modified(close()).await, (one.clone(), Bson::Document(old)));
        let new = doc! { "control": { "closed": true }, "meta": "b" };
        let with_new = close().into_iter().chain(doc! { "new": true }).collect();
        assert_eq!(modified(with_new).await, (one, Bson::Document(new)));
        assert!(
            is_closed(&buckets(&db, doc! { "meta": "b" }).await[0])
                && !is_closed(&buckets(&db, doc! { "meta": "a" }).await[0])
        );
        let none = doc! { "query": { "meta": "none" }, "update": { "$set": { "meta": 1 } } };
        assert_eq!(modified(none).await, (doc! { "n": 0, "updatedExisting": false }, Bson::Null));
        let last = doc! { "sort": { "$natural": -1 }, "remove": true, "fields": { "_id": 1 } };
        let ids: Vec<Bson> = db
            .find(rawdoc! { "find": RAW, "sort": { "$natural": -1 } })
            .await
            .iter()
            .map(|b| b.get("_id").cloned().unwrap())
            .collect();
        assert_eq!(modified(last).await, (doc! { "n": 1 }, Bson::Document(doc! { "_id": ids[0].clone() })));
        assert_eq!(buckets(&db, doc! {}).await.len(), 1);
        for (more, code) in [
            (doc! { "update": { "$set": { "control.count": 9 } } }, 121),
            (doc! { "update": { "$set": { "meta": 1 } }, "upsert": true }, 72),
            (doc! { "update": { "$set": { "meta": 1 } }, "remove": true }, 9),
            (doc! {}, 9),
        ] {
            assert_eq!(db.fails(find_and_modify(more.clone())).await.0, code, "{more}");
        }
        checks::sound_when_folded(&*storage, &db, "c", Writers::Several).await;
    });
}

#[test]
fn whoever_changes_buckets_says_so_and_whoever_drops_them_drops_the_collection() {
    block_on(async {
        let (_, db) = filled().await;
        for command in [
            doc! { "update": RAW, "updates": [{ "q": {}, "u": { "$set": { "meta": 1 } } }] },
            doc! { "findAndModify": RAW, "remove": true },
            doc! { "findAndModify": RAW, "update": { "$set": { "meta": 1 } }, "unsafeBucketWrites": false },
        ] {
            assert_eq!(db.fails(raw(&command)).await, (20, "IllegalOperation".to_owned()), "{command}");
        }
        assert_eq!(db.ok(rawdoc! { "drop": RAW }).await.get_str("ns").unwrap(), "test.system.buckets.c");
        assert!(!db.ok(rawdoc! { "drop": RAW }).await.contains_key("ns"));
        assert_eq!(db.fails(rawdoc! { "listIndexes": "c" }).await.0, 26);
        let listed = db.ok(rawdoc! { "listCollections": 1 }).await;
        assert!(listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap().is_empty());
    });
}

#[test]
fn statistics_by_the_name_of_the_buckets_are_of_buckets() {
    block_on(async {
        let (_, db) = filled().await;
        db.ok(rawdoc! { "createIndexes": "c", "indexes": [{ "key": { "x": 1 }, "name": "x" }] }).await;
        let stats = async |name: &str| db.ok(rawdoc! { "collStats": name }).await;
        let (own, of_buckets) = (stats("c").await, stats(RAW).await);
        assert_eq!(of_buckets.get_str("ns").unwrap(), "test.system.buckets.c");
        assert_eq!(of_buckets.get_i64("count").unwrap(), 2);
        assert_eq!(of_buckets.get_i64("avgObjSize").unwrap(), of_buckets.get_i64("size").unwrap() / 2);
        assert_eq!(of_buckets.get_document("timeseries").unwrap(), own.get_document("timeseries").unwrap());
        assert!(!own.contains_key("count"));
        let rows = async |stage: Document, name: &str| {
            let mut reply = db.ok(raw(&doc! { "aggregate": name, "pipeline": [stage], "cursor": {} })).await;
            take_rows(reply.get_document_mut("cursor").unwrap(), "firstBatch")
        };
        for (name, ns, count) in [("c", "test.c", 6), (RAW, "test.system.buckets.c", 2)] {
            let counted = rows(doc! { "$collStats": { "count": {} } }, name).await.remove(0);
            assert_eq!((counted.get_str("ns").unwrap(), counted.get_i64("count").unwrap()), (ns, count));
        }
        let stored = rows(doc! { "$collStats": { "storageStats": {} } }, RAW).await.remove(0);
        let stored = stored.get_document("storageStats").unwrap();
        assert_eq!(stored.get("count"), of_buckets.get("count"));
        assert_eq!(stored.get("avgObjSize"), of_buckets.get("avgObjSize"));
        let keys = async |name: &str| -> Vec<(Document, bool)> {
            let of = |index: Document| {
                let key = index.get_document("key").unwrap().clone();
                let spec = index.get_document("spec").unwrap();
                assert_eq!(spec.get_document("key").unwrap(), &key);
                (key, spec.contains_key("originalSpec"))
            };
            rows(doc! { "$indexStats": {} }, name).await.into_iter().map(of).collect()
        };
        assert_eq!(
            keys("c").await,
            [(doc! { "m": 1, "t": 1 }, false), (doc! { "x": 1.0 }, false)]
                .map(|(key, original)| (numbers(key), original))
        );
        let of_buckets = [
            (doc! { "meta": 1, "control.min.t": 1, "control.max.t": 1 }, false),
            (doc! { "control.min.x": 1, "control.max.x": 1 }, true),
        ];
        assert_eq!(keys(RAW).await, of_buckets);
    });
}

fn numbers(key: Document) -> Document {
    key.into_iter().map(|(name, _)| (name, Bson::Int32(1))).collect()
}

#[test]
fn buckets_have_a_natural_order_and_measurements_have_none_to_sort_by() {
    block_on(async {
        let (_, db) = filled().await;
        let ids = async |more: Document| -> Vec<ObjectId> {
            let find = doc! { "find": RAW }.into_iter().chain(more).collect::<Document>();
            db.find(raw(&find)).await.iter().map(|bucket| bucket.get_object_id("_id").unwrap()).collect()
        };
        let mut sorted = ids(doc! { "sort": { "_id": 1 } }).await;
        for (direction, hint) in
            [(Bson::Int32(1), doc! {}), (Bson::Double(1.0), doc! {}), (Bson::Int32(1), doc! { "$natural": 1 })]
        {
            assert_eq!(ids(doc! { "sort": { "$natural": direction }, "hint": hint }).await, sorted);
        }
        sorted.reverse();
        assert_eq!(ids(doc! { "sort": { "$natural": -1 } }).await, sorted);
        assert_eq!(ids(doc! { "sort": { "$natural": -1 }, "limit": 1 }).await, sorted[..1]);
        for (name, more) in [
            ("c", doc! { "sort": { "$natural": 1 } }),
            (RAW, doc! { "sort": { "$natural": 2 } }),
            (RAW, doc! { "sort": { "$natural": 1, "meta": 1 } }),
            (RAW, doc! { "sort": { "$natural": 1 }, "hint": { "$natural": -1 } }),
            (RAW, doc! { "sort": { "$natural": 1 }, "hint": "m_1_t_1" }),
        ] {
            let find = doc! { "find": name }.into_iter().chain(more).collect::<Document>();
            assert_eq!(db.fails(raw(&find)).await.0, 2, "{find}");
        }
    });
}

#[test]
fn a_hint_over_buckets_reads_the_index_or_is_refused() {
    block_on(async {
        let (_, db) = filled().await;
        db.insert("c", &[rawdoc! { "t": DateTime::from_millis(0), "m": { "p": [1, 1] }, "y": 1 }]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let indexes = doc! { "createIndexes": "c", "indexes": [
            { "key": { "m": -1 }, "name": "down" },
            { "key": { "m.p": 1 }, "name": "sparse", "sparse": true },
            { "key": { "x": 1 }, "name": "partial", "partialFilterExpression": { "m": "a" } },
            { "key": { "m.$**": 1 }, "name": "wild" },
            { "key": { "m.p": "2d" }, "name": "plane" },
            { "key": { "m": "hashed" }, "name": "hashed" },
            { "key": { "x": -1 }, "name": "hidden", "hidden": true },
        ] };
        let reply = db.command(raw(&indexes)).await;
        assert_eq!(reply.get_f64("ok").unwrap(), 1.0, "{reply}");
        let metas = async |hint: Bson, filter: Document| -> Vec<String> {
            let find = doc! { "find": RAW, "filter": filter, "hint": hint };
            db.find(raw(&find)).await.iter().map(|bucket| bucket.get_str("meta").unwrap_or("p").to_owned()).collect()
        };
        let by_key = |key: Document| Bson::Document(key);
        // Entries are read forwards, whatever the direction of the index.
        assert_eq!(metas("down".into(), doc! {}).await, ["a", "b", "p"]);
        assert_eq!(metas(by_key(doc! { "meta": -1 }), doc! { "meta": { "$type": "string" } }).await, ["a", "b"]);
        assert_eq!(metas("m_1_t_1".into(), doc! {}).await, ["a", "b", "p"]);
        assert_eq!(
            metas(by_key(doc! { "meta": 1, "control.min.t": 1, "control.max.t": 1 }), doc! { "meta": "b" }).await,
            ["b"]
        );
        assert_eq!(metas("hashed".into(), doc! {}).await.len(), 3);
        // As on the server, only what is in it.
        assert_eq!(metas("sparse".into(), doc! {}).await, ["p"]);
        for hint in [
            Bson::from("partial"),
            "wild".into(),
            "plane".into(),
            "hidden".into(),
            "missing".into(),
            by_key(doc! { "m": -1 }),
        ] {
            for command in [
                doc! { "find": RAW, "hint": hint.clone() },
                doc! { "count": RAW, "hint": hint.clone() },
                doc! { "aggregate": RAW, "pipeline": [], "cursor": {}, "hint": hint.clone() },
            ] {
                assert_eq!(db.fails(raw(&command)).await.0, 2, "{command}");
            }
        }
        let update = doc! { "q": {}, "u": { "$set": { "control.closed": true } }, "hint": "down" };
        assert_eq!(updated(&db, update).await, Ok((1, 1)));
        assert_eq!(buckets(&db, doc! { "control.closed": true }).await.len(), 1);
        assert_eq!(updated(&db, doc! { "q": {}, "u": { "$set": { "meta": 1 } }, "hint": "wild" }).await, Err(2));
    });
}
