//! Small commands, and commands that are refused.

use std::rc::Rc;

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::memory::MemoryStorage;

use crate::support::{Db, TestEnv};

/// The sums of `dbStats`.
const FIELDS: [&str; 6] = ["objects", "dataSize", "storageSize", "indexes", "indexSize", "totalSize"];

fn open() -> Db {
    Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1))
}

fn command(name: &str, target: impl Into<bson::RawBson>) -> RawDocumentBuf {
    let mut command = RawDocumentBuf::new();
    command.append(bson::raw::CString::try_from(name).unwrap(), target.into());
    command
}

#[test]
fn unsupported_commands_are_refused_with_the_code_for_views() {
    block_on(async {
        let db = open();
        let names = "captrunc cloneCollectionAsCapped convertToCapped dataSize dbCheck emptycapped mapReduce \
                     planCacheClear planCacheClearFilters planCacheListFilters planCacheSetFilter renameCollection";
        for name in names.split_whitespace() {
            assert_eq!(db.fails(command(name, "c")).await, (166, "CommandNotSupportedOnView".to_owned()), "{name}");
        }
        for name in ["commitTransaction", "abortTransaction"] {
            assert_eq!(db.fails(command(name, 1)).await, (20, "IllegalOperation".to_owned()));
        }
        assert_eq!(db.fails(command("nothing", 1)).await, (59, "CommandNotFound".to_owned()));
    });
}

#[test]
fn session_commands_are_accepted_without_effect() {
    block_on(async {
        for name in ["startSession", "endSessions", "killSessions", "refreshSessions", "compact", "reIndex"] {
            open().ok(command(name, 1)).await;
        }
    });
}

#[test]
fn a_uuid_is_that_of_the_buckets_or_the_error_says_whose_it_is() {
    block_on(async {
        let db = open();
        for name in ["c", "d"] {
            db.ok(rawdoc! { "create": name, "timeseries": { "timeField": "t" } }).await;
        }
        let listed = db.ok(rawdoc! { "listCollections": 1, "filter": { "name": "system.buckets.c" } }).await;
        let first =
            listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap()[0].as_document().unwrap().clone();
        let uuid = first.get_document("info").unwrap().get("uuid").unwrap().clone();
        let unknown = Bson::Binary(Binary { subtype: BinarySubtype::Uuid, bytes: vec![7; 16] });
        let of = |uuid: &Bson| bson::RawBson::try_from(uuid.clone()).unwrap();
        let commands = |name: &str, uuid: &Bson| {
            vec![
                rawdoc! { "find": name, "collectionUUID": of(uuid) },
                rawdoc! { "aggregate": name, "pipeline": [], "cursor": {}, "collectionUUID": of(uuid) },
                rawdoc! { "count": name, "collectionUUID": of(uuid) },
                rawdoc! { "distinct": name, "key": "t", "collectionUUID": of(uuid) },
                rawdoc! { "listIndexes": name, "collectionUUID": of(uuid) },
                rawdoc! { "delete": name, "deletes": [{ "q": {}, "limit": 0 }], "unsafeBucketWrites": true, "collectionUUID": of(uuid) },
                rawdoc! { "insert": name, "documents": [{ "t": DateTime::from_millis(0) }], "collectionUUID": of(uuid) },
                rawdoc! { "collMod": name, "collectionUUID": of(uuid) },
                rawdoc! { "drop": name, "collectionUUID": of(uuid) },
            ]
        };
        for (name, uuid, actual) in [
            ("c", &unknown, Bson::Null),
            ("system.buckets.c", &unknown, Bson::Null),
            ("missing", &uuid, Bson::from("system.buckets.c")),
            ("d", &uuid, Bson::from("system.buckets.c")),
            ("system.buckets.d", &uuid, Bson::from("system.buckets.c")),
            // Measurements are a view, which has none.
            ("c", &uuid, Bson::from("system.buckets.c")),
        ] {
            for command in commands(name, uuid) {
                let reply = db.command(command.clone()).await;
                let expected = doc! {
                    "ok": 0.0, "errmsg": "Collection UUID does not match that specified", "code": 361, "codeName": "CollectionUUIDMismatch",
                    "db": "test", "collectionUUID": uuid, "expectedCollection": name, "actualCollection": &actual,
                };
                assert_eq!(reply, expected, "{command:?}");
            }
        }
        let accepted = commands("system.buckets.c", &uuid);
        for command in accepted
            .into_iter()
            .filter(|command| command.get_str("insert").is_err() && command.get_str("drop").is_err())
        {
            db.ok(command).await;
        }
        let wrong = [
            bson::rawbson!(1),
            bson::rawbson!("x"),
            of(&Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: vec![7; 16] })),
        ];
        for wrong in wrong {
            assert_eq!(db.fails(rawdoc! { "find": "c", "collectionUUID": wrong }).await.0, 14);
        }
    });
}

#[test]
fn whoever_creates_the_buckets_has_the_collection() {
    block_on(async {
        let db = open();
        let timeseries = || rawdoc! { "timeField": "t", "metaField": "m" };
        db.ok(rawdoc! { "create": "system.buckets.c", "timeseries": timeseries() }).await;
        for name in ["c", "system.buckets.c"] {
            db.ok(rawdoc! { "create": name, "timeseries": timeseries() }).await;
            let other = rawdoc! { "create": name, "timeseries": { "timeField": "other" } };
            assert_eq!(db.fails(other).await, (48, "NamespaceExists".to_owned()));
        }
        assert_eq!(db.fails(rawdoc! { "create": "system.buckets.d" }).await, (20, "IllegalOperation".to_owned()));
        assert_eq!(db.fails(rawdoc! { "create": "system.buckets.", "timeseries": timeseries() }).await.0, 73);
        assert_eq!(db.fails(rawdoc! { "create": "system.x", "timeseries": timeseries() }).await.0, 73);
        db.insert("c", &[rawdoc! { "t": DateTime::from_millis(0), "m": 1 }]).await;
        assert_eq!(db.find(rawdoc! { "find": "system.buckets.c" }).await.len(), 1);
        let listed = db.ok(rawdoc! { "listCollections": 1, "nameOnly": true }).await;
        assert_eq!(listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap().len(), 2);
    });
}

#[test]
fn a_time_limit_must_be_an_integer_whatever_the_command() {
    block_on(async {
        let db = open();
        let limits = [f64::NAN.into(), 1.5.into(), (-1).into(), 2_147_483_648_i64.into(), bson::Bson::from("5")];
        for limit in limits {
            for name in ["ping", "find", "getMore", "listCollections", "create"] {
                let mut command = command(name, "c");
                command.append(bson::cstr!("maxTimeMS"), bson::RawBson::try_from(limit.clone()).unwrap());
                assert_eq!(db.fails(command).await, (2, "BadValue".to_owned()), "{name}: {limit}");
            }
        }
        for limit in [bson::Bson::Null, 0.into(), 5.0.into(), 2_147_483_647_i64.into()] {
            db.ok(rawdoc! { "ping": 1, "maxTimeMS": bson::RawBson::try_from(limit).unwrap() }).await;
        }
    });
}

#[test]
fn hello_and_build_info_describe_a_standalone_without_retries() {
    block_on(async {
        let db = open();
        for name in ["hello", "isMaster", "ismaster", "buildInfo"] {
            let reply = db.ok(command(name, 1)).await;
            assert!(reply.get_bool("isWritablePrimary").unwrap() && reply.get_bool("ismaster").unwrap());
            assert_eq!(reply.get_i32("maxBsonObjectSize").unwrap(), 16_777_216);
            assert_eq!(reply.get_i32("maxWriteBatchSize").unwrap(), 100_000);
            assert_eq!(reply.get_i32("maxWireVersion").unwrap(), 21);
            assert_eq!(reply.get_str("version").unwrap(), env!("CARGO_PKG_VERSION"));
            // Drivers see a standalone server without retryable writes.
            assert!(!reply.contains_key("setName"));
        }
    });
}

#[test]
fn the_statistics_of_the_database_are_the_sums_of_those_of_its_collections() {
    block_on(async {
        let storage = Rc::new(MemoryStorage::new());
        let db = Db::open(storage.clone(), TestEnv::new(1));
        let stats = async |db: &Db, scale: i64| db.ok(rawdoc! { "dbStats": 1, "scale": scale }).await;
        let none = stats(&db, 1).await;
        for field in FIELDS.iter().chain(&["collections", "views", "avgObjSize"]) {
            assert_eq!(none.get_i64(field).unwrap(), 0, "{field}");
        }
        let names = ["a", "b", "c"];
        for (name, rows) in names.into_iter().zip(1..) {
            db.ok(rawdoc! { "create": name, "timeseries": { "timeField": "t", "metaField": "m" } }).await;
            let row = |n: i32| rawdoc! { "t": DateTime::from_millis(1000), "m": n, "x": "y".repeat(200) };
            db.insert(name, &(0..rows).map(row).collect::<Vec<_>>()).await;
            if name != "c" {
                db.ok(rawdoc! { "flush": 1 }).await;
            }
        }
        for db in [db, Db::open(storage, TestEnv::new(2))] {
            let mut sums = [0; 6];
            for name in names {
                let of = db.ok(rawdoc! { "collStats": name }).await;
                let buckets = of.get_document("timeseries").unwrap().get_i64("bucketCount").unwrap();
                let size = |field: &str| of.get_i64(field).unwrap();
                let indexes = i64::from(of.get_i32("nindexes").unwrap());
                let own =
                    [buckets, size("size"), size("storageSize"), indexes, size("totalIndexSize"), size("totalSize")];
                sums.iter_mut().zip(own).for_each(|(sum, n)| *sum += n);
            }
            let of_all = stats(&db, 1).await;
            assert_eq!(FIELDS.map(|field| of_all.get_i64(field).unwrap()), sums);
            assert_eq!(sums[0], 6, "a bucket for each series");
            assert_eq!(of_all.get_i64("avgObjSize").unwrap(), sums[1] / 6);
            assert_eq!(["collections", "views"].map(|field| of_all.get_i64(field).unwrap()), [4, 3]);
            assert_eq!(of_all.get_str("db").unwrap(), "test");
            let scaled = stats(&db, 100).await;
            assert_eq!(scaled.get_i64("scaleFactor").unwrap(), 100);
            for (field, by) in FIELDS.into_iter().zip([1, 100, 100, 1, 100, 100]) {
                assert_eq!(scaled.get_i64(field).unwrap(), of_all.get_i64(field).unwrap() / by, "{field}");
            }
        }
    });
}
