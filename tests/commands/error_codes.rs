//! Provokes every error code of index commands, updates, deletes, `collMod` and small commands.

use std::rc::Rc;

use bson::oid::ObjectId;
use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Document, RawDocumentBuf, bson, doc, rawdoc};
use futures::executor::block_on;
use timepail::engine::stored_bucket::StoredBucket;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Changeset, KeyRange, Page, Storage};
use timepail::value::Doc;

use crate::support::{Db, TestEnv, checks, raw};

fn at(minute: i64) -> DateTime {
    DateTime::from_millis(minute * 60_000)
}

/// Two series with a measurement each in buckets, one more in the journal, and some indexes.
async fn filled() -> (Rc<MemoryStorage>, Db) {
    let storage = Rc::new(MemoryStorage::new());
    let db = Db::open(storage.clone(), TestEnv::new(1));
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    db.ok(rawdoc! { "create": "plain", "timeseries": { "timeField": "t" } }).await;
    let row = |n: i64, meta: Bson, x: i32| raw(&doc! { "t": at(n), "m": meta, "x": x, "list": [n], "n": n });
    db.insert("c", &[row(1, bson!({ "a": 1, "s": "b" }), 1), row(2, bson!({ "a": 2, "s": "c" }), 2)]).await;
    db.ok(rawdoc! { "flush": 1 }).await;
    db.insert("c", &[row(3, bson!({ "a": 1, "s": "b" }), 3)]).await;
    let indexes = [
        doc! { "key": { "x": 1 }, "name": "x" },
        doc! { "key": { "m.a": 1, "m.b": 1 }, "name": "two" },
        doc! { "key": { "m.h": "hashed" }, "name": "hash" },
        doc! { "key": { "m.s": 1 }, "name": "secret", "hidden": true },
        doc! { "key": { "m.s": 1 }, "name": "some", "partialFilterExpression": { "m.a": 1 } },
        doc! { "key": { "t": 1 }, "name": "ttl", "expireAfterSeconds": 9_000_000, "partialFilterExpression": { "m.a": 9 } },
    ];
    db.ok(raw(&doc! { "createIndexes": "c", "indexes": indexes.to_vec() })).await;
    (storage, db)
}

/// Code and name of the error of a reply, or of its first statement.
fn error_of(reply: &Document) -> Option<(i32, String)> {
    let error = match reply.get_array("writeErrors") {
        Ok(errors) => errors[0].as_document().unwrap(),
        Err(_) if reply.get_f64("ok").unwrap() == 1.0 => return None,
        Err(_) => reply,
    };
    assert!(!error.get_str("errmsg").unwrap().is_empty());
    Some((error.get_i32("code").unwrap(), error.get_str("codeName").unwrap().to_owned()))
}

fn index(spec: Document) -> Document {
    doc! { "createIndexes": "c", "indexes": [spec] }
}

fn key(key: Document) -> Document {
    index(doc! { "key": key, "name": "new" })
}

fn with(name: &str, value: impl Into<Bson>) -> Document {
    let mut spec = doc! { "key": { "m.z": 1 }, "name": "new" };
    spec.insert(name, value.into());
    index(spec)
}

fn partial(filter: Document) -> Document {
    with("partialFilterExpression", filter)
}

fn update(q: Document, u: impl Into<Bson>) -> Document {
    doc! { "update": "c", "updates": [{ "q": q, "u": u.into(), "multi": true }] }
}

fn delete(q: Document, limit: i32) -> Document {
    doc! { "delete": "c", "deletes": [{ "q": q, "limit": limit }] }
}

fn insert(row: Document) -> Document {
    doc! { "insert": "c", "documents": [row] }
}

fn collmod(field: &str, value: impl Into<Bson>) -> Document {
    let mut command = doc! { "collMod": "c" };
    command.insert(field, value.into());
    command
}

fn bucket() -> Document {
    let t = DateTime::from_millis(3_600_000);
    let time = doc! { "t": t };
    let mut id = [0; 12];
    id[..4].copy_from_slice(&3600_u32.to_be_bytes());
    doc! {
        "_id": ObjectId::from_bytes(id),
        "control": { "version": 1, "min": time.clone(), "max": time },
        "data": { "t": { "0": t } },
    }
}

fn raw_insert(change: impl Fn(&mut Document)) -> Document {
    let mut bucket = bucket();
    change(&mut bucket);
    doc! { "insert": "system.buckets.c", "documents": [bucket], "unsafeBucketWrites": true }
}

#[rustfmt::skip]
fn commands() -> Vec<(i32, &'static str, Document)> {
    let ttl = |key: Document, filter: Document| {
        index(doc! { "key": key, "name": "new", "expireAfterSeconds": 1, "partialFilterExpression": filter })
    };
    let mixed = |bucket: &mut Document| {
        for (side, value) in [("min", Bson::from(1)), ("max", Bson::from("x"))] {
            let control = bucket.get_document_mut("control").unwrap();
            control.get_document_mut(side).unwrap().insert("v", value);
        }
        let data = bucket.get_document_mut("data").unwrap();
        let t = DateTime::from_millis(3_600_000);
        data.insert("t", doc! { "0": t, "1": t });
        data.insert("v", doc! { "0": 1, "1": "x" });
    };
    vec![
        (2, "BadValue", doc! { "find": "c", "hint": "unknown" }),
        (2, "BadValue", doc! { "find": "c", "hint": { "unknown": 1 } }),
        (2, "BadValue", doc! { "find": "c", "hint": "secret" }),
        (2, "BadValue", doc! { "count": "c", "hint": "secret" }),
        (2, "BadValue", doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0, "hint": "secret" }] }),
        (2, "BadValue", doc! { "update": "c", "updates": [{ "q": {}, "u": { "$set": { "m": 1 } }, "multi": true, "hint": "unknown" }] }),
        (2, "BadValue", doc! { "find": "c", "filter": { "$where": "true" } }),
        (2, "BadValue", doc! { "createIndexes": "c", "indexes": [] }),
        (2, "BadValue", index(doc! { "key": { "m": 1 }, "name": "*" })),
        (2, "BadValue", with("originalSpec", doc! {})),
        (2, "BadValue", collmod("index", doc! { "name": "x", "unique": false })),
        (2, "BadValue", insert(doc! { "x": 1 })),
        (9, "FailedToParse", index(doc! { "key": { "m": 1 } })),
        (9, "FailedToParse", index(doc! { "name": "new" })),
        (9, "FailedToParse", delete(doc! {}, 2)),
        (9, "FailedToParse", update(doc! { "m": 1 }, doc! { "$what": { "m": 1 } })),
        (9, "FailedToParse", doc! { "findAndModify": "c", "remove": true, "new": true }),
        (14, "TypeMismatch", index(doc! { "key": 1, "name": "new" })),
        (14, "TypeMismatch", index(doc! { "key": { "m": 1 }, "name": 1 })),
        (14, "TypeMismatch", with("hidden", "yes")),
        (14, "TypeMismatch", with("collation", 1)),
        (14, "TypeMismatch", with("unique", "yes")),
        (14, "TypeMismatch", with("sparse", "yes")),
        (14, "TypeMismatch", with("originalSpec", 1)),
        (14, "TypeMismatch", collmod("expireAfterSeconds", doc! {})),
        (16, "InvalidLength", doc! { "delete": "c", "deletes": [] }),
        (16, "InvalidLength", doc! { "update": "c", "updates": [] }),
        (16, "InvalidLength", doc! { "insert": "c", "documents": [] }),
        (20, "IllegalOperation", doc! { "create": "system.buckets.new" }),
        (20, "IllegalOperation", doc! { "delete": "system.buckets.c", "deletes": [{ "q": {}, "limit": 0 }] }),
        (20, "IllegalOperation", doc! { "commitTransaction": 1 }),
        (26, "NamespaceNotFound", doc! { "collMod": "none" }),
        (26, "NamespaceNotFound", doc! { "createIndexes": "none", "indexes": [{ "key": { "x": 1 }, "name": "x" }] }),
        (26, "NamespaceNotFound", doc! { "dropIndexes": "none", "index": "*" }),
        (26, "NamespaceNotFound", doc! { "listIndexes": "none" }),
        (26, "NamespaceNotFound", doc! { "validate": "none" }),
        (26, "NamespaceNotFound", doc! { "collStats": "none" }),
        (26, "NamespaceNotFound", doc! { "insert": "none", "documents": [{ "t": at(1) }] }),
        (27, "IndexNotFound", doc! { "dropIndexes": "c", "index": "none" }),
        (27, "IndexNotFound", doc! { "dropIndexes": "c", "index": { "none": 1 } }),
        (27, "IndexNotFound", doc! { "dropIndexes": "c", "index": { "x": "what" } }),
        (27, "IndexNotFound", doc! { "dropIndexes": "c", "index": ["x", "none"] }),
        (27, "IndexNotFound", doc! { "dropIndexes": "c", "index": "_id_" }),
        (27, "IndexNotFound", collmod("index", doc! { "name": "none", "hidden": true })),
        (27, "IndexNotFound", collmod("index", doc! { "name": "_id_", "hidden": true })),
        (27, "IndexNotFound", collmod("index", doc! { "keyPattern": { "x": true }, "hidden": true })),
        (27, "IndexNotFound", doc! { "find": "c", "filter": { "$text": { "$search": "x" } } }),
        (40, "ConflictingUpdateOperators", update(doc! {}, doc! { "$set": { "m.a": 1 }, "$inc": { "m.a": 1 } })),
        (43, "CursorNotFound", doc! { "getMore": 7_i64, "collection": "c" }),
        (48, "NamespaceExists", doc! { "create": "c", "timeseries": { "timeField": "other" } }),
        (59, "CommandNotFound", doc! { "what": 1 }),
        (67, "CannotCreateIndex", key(doc! {})),
        (67, "CannotCreateIndex", key(doc! { "$natural": 1 })),
        (67, "CannotCreateIndex", key(doc! { "$hint": "x" })),
        (67, "CannotCreateIndex", key(doc! { "t": "hashed" })),
        (67, "CannotCreateIndex", key(doc! { "x": "hashed" })),
        (67, "CannotCreateIndex", key(doc! { "x": 0 })),
        (67, "CannotCreateIndex", key(doc! { "m.a": true })),
        (67, "CannotCreateIndex", key(doc! { "m..a": 1 })),
        (67, "CannotCreateIndex", index(doc! { "key": { "m": 1 }, "name": "" })),
        (67, "CannotCreateIndex", ttl(doc! { "t": 1, "m": 1 }, doc! { "m.a": 1 })),
        (67, "CannotCreateIndex", key((0..33).map(|n| (format!("m.f{n}"), Bson::from(1))).collect())),
        (72, "InvalidOptions", key(doc! { "m": "text" })),
        (72, "InvalidOptions", with("unique", true)),
        (72, "InvalidOptions", index(doc! { "key": { "x": 1 }, "name": "new", "sparse": true })),
        (72, "InvalidOptions", index(doc! { "key": { "t": 1 }, "name": "new", "expireAfterSeconds": 1 })),
        (72, "InvalidOptions", ttl(doc! { "t": 1 }, doc! { "x": 1 })),
        (72, "InvalidOptions", ttl(doc! { "m": 1 }, doc! { "m.a": 1 })),
        (72, "InvalidOptions", update(doc! { "x": 1 }, doc! { "$set": { "m": 1 } })),
        (72, "InvalidOptions", update(doc! { "$expr": true }, doc! { "$set": { "m": 1 } })),
        (72, "InvalidOptions", update(doc! {}, doc! { "$set": { "x": 1 } })),
        (72, "InvalidOptions", update(doc! {}, doc! { "$set": { "_id": 1 } })),
        (72, "InvalidOptions", update(doc! {}, doc! {})),
        (72, "InvalidOptions", update(doc! {}, vec![doc! { "$set": { "m": 1 } }])),
        (72, "InvalidOptions", doc! { "update": "c", "updates": [{ "q": {}, "u": { "$set": { "m": 1 } } }] }),
        (72, "InvalidOptions", doc! { "update": "c", "updates": [{ "q": {}, "u": { "$set": { "m": 1 } }, "multi": true, "upsert": true }] }),
        (72, "InvalidOptions", doc! { "update": "plain", "updates": [{ "q": {}, "u": { "$set": { "m": 1 } }, "multi": true }] }),
        (72, "InvalidOptions", collmod("validator", doc! {})),
        (72, "InvalidOptions", collmod("timeseries", doc! { "bucketMaxSpanSeconds": 60, "bucketRoundingSeconds": 60 })),
        (72, "InvalidOptions", collmod("index", doc! { "name": "x" })),
        (72, "InvalidOptions", collmod("index", doc! { "name": "x", "expireAfterSeconds": 1 })),
        (72, "InvalidOptions", collmod("index", doc! { "name": "x", "unique": true })),
        (72, "InvalidOptions", collmod("index", doc! { "name": "x", "prepareUnique": false })),
        (72, "InvalidOptions", doc! { "findAndModify": "c", "query": {}, "update": { "$set": { "m": 1 } } }),
        (73, "InvalidNamespace", doc! { "create": "a$b", "timeseries": { "timeField": "t" } }),
        (73, "InvalidNamespace", doc! { "find": "" }),
        (85, "IndexOptionsConflict", index(doc! { "key": { "x": 1 }, "name": "other" })),
        (85, "IndexOptionsConflict", index(doc! { "key": { "m.a": 1, "m.b": 1 }, "name": "two", "sparse": true })),
        (85, "IndexOptionsConflict", index(doc! { "key": { "y": 1 }, "name": "new", "collation": { "locale": "fr" }, "partialFilterExpression": {} })),
        (86, "IndexKeySpecsConflict", index(doc! { "key": { "y": 1 }, "name": "x" })),
        (121, "DocumentValidationFailure", raw_insert(|bucket| { bucket.insert("more", 1); })),
        (166, "CommandNotSupportedOnView", doc! { "renameCollection": "test.c", "to": "test.d" }),
        (166, "CommandNotSupportedOnView", doc! { "convertToCapped": "c", "size": 1 }),
        (168, "InvalidPipelineOperator", doc! { "find": "c", "projection": { "y": { "$what": 1 } } }),
        (171, "CannotIndexParallelArrays", insert(doc! { "t": at(9), "m": { "a": [1], "b": [1] } })),
        (171, "CannotIndexParallelArrays", update(doc! { "m.a": 1 }, doc! { "$set": { "m.a": [1], "m.b": [1] } })),
        (181, "AmbiguousIndexKeyPattern", doc! { "dropIndexes": "c", "index": { "m.s": 1 } }),
        (181, "AmbiguousIndexKeyPattern", collmod("index", doc! { "keyPattern": { "m.s": 1 }, "hidden": true })),
        (197, "InvalidIndexSpecificationOption", with("what", 1)),
        (197, "InvalidIndexSpecificationOption", with("originalSpec", doc! { "key": { "m.z": 1 }, "collation": { "locale": "fr" } })),
        (263, "OperationNotSupportedInTransaction", doc! { "insert": "c", "documents": [{ "t": at(1) }], "txnNumber": 1_i64, "autocommit": false, "startTransaction": true }),
        (263, "OperationNotSupportedInTransaction", doc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }], "txnNumber": 1_i64, "autocommit": false }),
        (361, "CollectionUUIDMismatch", doc! { "find": "c", "collectionUUID": Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: vec![7; 16] }) }),
        (14, "TypeMismatch", collmod("collectionUUID", 1)),
        (408, "CannotInsertTimeseriesBucketsWithMixedSchema", raw_insert(mixed)),
        (15, "Overflow", doc! { "find": "c", "filter": (0..180).fold(doc! {}, |inner, _| doc! { "a": inner }) }),
        (10065, "Location10065", with("partialFilterExpression", 123)),
        (11000, "DuplicateKey", doc! { "insert": "system.buckets.c", "documents": [bucket(), bucket()], "unsafeBucketWrites": true }),
        (16766, "Location16766", insert(doc! { "t": at(9), "m": { "h": [1] } })),
        (16766, "Location16766", update(doc! { "m.a": 1 }, doc! { "$push": { "m.h": 1 } })),
        (40414, "IDLFailedToParse", doc! { "createIndexes": "c" }),
        (40415, "IDLUnknownField", collmod("what", 1)),
        (40415, "IDLUnknownField", doc! { "listIndexes": "c", "what": 1 }),
        (5_626_500, "Location5626500", doc! { "find": "c", "filter": { "m": { "$near": [0, 0] } } }),
        (5_916_301, "Location5916301", partial(doc! { "x": { "$ne": 1 } })),
        (5_916_301, "Location5916301", partial(doc! { "t": { "$gt": 1 } })),
        (5_930_501, "Location5930501", insert(doc! { "t": at(9), "x": [1] })),
        (5_930_501, "Location5930501", key(doc! { "list": 1 })),
        (7_314_600, "Location7314600", doc! { "findAndModify": "c", "remove": true, "txnNumber": 1_i64 }),
    ]
}

#[test]
fn every_error_code_is_provoked_and_has_its_name() {
    block_on(async {
        let (_, db) = filled().await;
        let mut wrong = Vec::new();
        for (code, name, command) in commands() {
            let reply = db.command(raw(&command)).await;
            if error_of(&reply) != Some((code, name.to_owned())) {
                wrong.push(format!("{code} {name}: {command}\n{reply}\n"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    });
}

#[test]
fn failed_commands_change_nothing() {
    block_on(async {
        let (storage, db) = filled().await;
        let state = async || {
            let indexes = db.ok(rawdoc! { "listIndexes": "c" }).await;
            let options = db.ok(rawdoc! { "listCollections": 1 }).await;
            let rows =
                checks::sound_when_folded(&*storage, &db, "c", crate::support::valid_bucket::Writers::Several).await;
            (indexes, options, crate::support::multiset(&rows))
        };
        let before = state().await;
        for (code, _, command) in commands() {
            // Of two buckets with the same id, the first is stored.
            if code != 11000 {
                db.command(raw(&command)).await;
            }
        }
        assert_eq!(state().await, before);
    });
}

#[test]
fn a_duplicate_field_in_an_index_key_is_a_bad_value() {
    block_on(async {
        let (_, db) = filled().await;
        let twice = |name: &str| {
            let mut key = RawDocumentBuf::new();
            for direction in [1, -1] {
                key.append(bson::raw::CString::try_from(name).unwrap(), direction);
            }
            key
        };
        for name in ["x", "m.a", "t"] {
            let spec = rawdoc! { "key": twice(name), "name": "new" };
            let command = rawdoc! { "createIndexes": "c", "indexes": [spec] };
            assert_eq!(db.fails(command).await, (2, "BadValue".into()), "{name}");
        }
    });
}

#[test]
fn get_more_refuses_a_cursor_of_another_collection() {
    block_on(async {
        let (_, db) = filled().await;
        let reply = db.ok(rawdoc! { "find": "c", "batchSize": 1 }).await;
        let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
        let command = rawdoc! { "getMore": id, "collection": "plain" };
        assert_eq!(db.fails(command).await, (13, "Unauthorized".into()));
    });
}

#[test]
fn existing_arrays_prevent_an_index_in_every_form() {
    block_on(async {
        for folds in [false, true] {
            let storage = Rc::new(MemoryStorage::new());
            let db = Db::open(storage.clone(), TestEnv::new(1));
            db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
            db.insert("c", &[raw(&doc! { "t": at(1), "m": { "a": [1], "b": [1], "k": 2 } })]).await;
            if folds {
                db.ok(rawdoc! { "flush": 1 }).await;
            }
            let other = Db::open(storage, TestEnv::new(2));
            for db in [&db, &other] {
                for (code, name, command) in [
                    (171, "CannotIndexParallelArrays", key(doc! { "m.a": 1, "m.b": -1 })),
                    (16766, "Location16766", key(doc! { "m.a": "hashed" })),
                ] {
                    assert_eq!(db.fails(raw(&command)).await, (code, name.into()));
                }
                let listed = db.ok(rawdoc! { "listIndexes": "c" }).await;
                assert_eq!(listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap().len(), 1);
            }
            // Its partial filter excludes that metadata.
            let spec = doc! { "key": { "m.a": 1, "m.b": 1 }, "name": "new", "partialFilterExpression": { "m.k": { "$gt": 2 } } };
            db.ok(raw(&index(spec))).await;
            let row = |k: i32| raw(&doc! { "t": at(2), "m": { "a": [1], "b": [1], "k": k } });
            assert_eq!(error_of(&db.insert("c", &[row(2)]).await), None);
            assert_eq!(error_of(&db.insert("c", &[row(3)]).await).unwrap().0, 171);
        }
    });
}

#[test]
fn a_measurement_with_metadata_refused_by_an_index_does_not_affect_others() {
    block_on(async {
        let (_, db) = filled().await;
        let row = |h: Bson| raw(&doc! { "t": at(5), "m": { "h": h }, "n": 9 });
        let reply = db.insert("c", &[row(1.into()), row(bson!([1])), row(2.into())]).await;
        let errors = reply.get_array("writeErrors").unwrap();
        let error = errors[0].as_document().unwrap();
        assert_eq!((errors.len(), error.get_i32("index").unwrap(), error.get_i32("code").unwrap()), (1, 1, 16766));
        assert_eq!(db.find(rawdoc! { "find": "c", "filter": { "n": 9 } }).await.len(), 2);
    });
}

#[test]
fn validate_reports_findings_by_code() {
    block_on(async {
        for (code, damage) in [
            (53, (|bucket| drop(bucket.insert("_id", ObjectId::from_bytes([1; 12])))) as fn(&mut Document)),
            (121, |bucket| drop(bucket.insert("more", 1))),
            (2, |bucket| drop(bucket.get_document_mut("control").unwrap().insert("version", 4))),
            (14, |bucket| drop(bucket.get_document_mut("data").unwrap().insert("x", 1))),
            (22, |bucket| {
                let column = Binary { subtype: BinarySubtype::Column, bytes: vec![0x77, 1, 2, 0] };
                bucket.get_document_mut("data").unwrap().insert("x", column);
            }),
        ] {
            let (storage, db) = filled().await;
            let page = Page { entries_max: 1, keys_only: false };
            let entry = storage.scan(&[KeyRange::prefix(b"B")], page).await.unwrap().remove(0);
            let stored = StoredBucket::decode(entry.value).unwrap();
            let mut bucket = Document::from_reader(stored.document.view().as_bytes()).unwrap();
            damage(&mut bucket);
            let mut changes = Changeset::new();
            let bucket = raw(&bucket);
            changes.put(entry.key, StoredBucket::encode(&stored.coverage, Doc::parse(bucket.as_bytes()).unwrap()));
            storage.commit(changes).await.unwrap();
            let fresh = Db::open(storage, TestEnv::new(3));
            let reply = fresh.ok(rawdoc! { "validate": "c", "full": true }).await;
            let findings = reply.get_array("findings").unwrap();
            let has = findings.iter().any(|finding| finding.as_document().unwrap().get_i32("code").unwrap() == code);
            assert!(has && !reply.get_bool("valid").unwrap(), "{code}: {reply}");
            drop(db);
        }
    });
}
