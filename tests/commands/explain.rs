//! The `explain` command: its plans, and that they match the execution.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, oid::ObjectId, rawdoc};
use futures::executor::block_on;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Changeset, KeyRange, Page, Storage};

use crate::support::explained::{Explained, explain};
use crate::support::{Db, TestEnv};

const HOUR_MS: i64 = 3_600_000;
const HOURS: i64 = 100;

/// Two series with a bucket an hour, and in the middle of each an hour two measurements: `n` counts all of them, and `half` half of them.
async fn stored() -> (Rc<MemoryStorage>, Db) {
    let storage = Rc::new(MemoryStorage::new());
    let db = Db::open(storage.clone(), TestEnv::new(1));
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    let readings: Vec<RawDocumentBuf> = (0..4 * HOURS).map(reading).collect();
    db.insert("c", &readings).await;
    db.ok(rawdoc! { "flush": 1 }).await;
    (storage, db)
}

fn reading(n: i64) -> RawDocumentBuf {
    let at = DateTime::from_millis(n / 4 * HOUR_MS + HOUR_MS / 2 + n % 2);
    rawdoc! { "t": at, "m": if n / 2 % 2 == 0 { "a" } else { "b" }, "n": n, "half": n / 2 }
}

fn date(hours: i64) -> DateTime {
    DateTime::from_millis(hours * HOUR_MS)
}

/// The id of a bucket with that start.
fn id(hours: i64, counter: u8) -> ObjectId {
    let mut bytes = [counter; 12];
    bytes[..4].copy_from_slice(&((hours * 3600) as u32).to_be_bytes());
    ObjectId::from_bytes(bytes)
}

/// Truncates the columns of every stored bucket.
async fn damage_all(storage: &MemoryStorage) {
    let all = KeyRange { start: b"B".to_vec(), end: b"C".to_vec() };
    let mut changes = Changeset::new();
    for entry in storage.scan(std::slice::from_ref(&all), Page { entries_max: 1000, keys_only: false }).await.unwrap() {
        changes.put(entry.key, entry.value[..entry.value.len() / 2].to_vec());
    }
    storage.commit(changes).await.unwrap();
}

#[test]
fn a_series_is_found_by_the_index_without_reading_other_buckets() {
    block_on(async {
        let (_, db) = stored().await;
        let found =
            explain(&db, rawdoc! { "find": "c", "filter": { "m": "a", "t": { "$gte": date(10), "$lt": date(20) } } });
        let found = found.await;
        let start = format!("[new Date({}), new Date({})]", 9 * HOUR_MS, 20 * HOUR_MS - 1);
        let plan = doc! {
            "stage": "FETCH",
            "filter": { "$and": [
                { "meta": { "$eq": "a" } },
                { "$and": [
                    { "control.max.t": { "$_internalExprGte": date(10) } },
                    { "control.min.t": { "$_internalExprLt": date(20) } },
                ] },
            ] },
            "inputStage": {
                "stage": "IXSCAN",
                "keyPattern": { "meta": 1, "control.min.t": 1, "control.max.t": 1 },
                "indexName": "m_1_t_1",
                "isMultiKey": false,
                "multiKeyPaths": { "meta": [], "control.min.t": [], "control.max.t": [] },
                "isSparse": false,
                "isPartial": false,
                "direction": "forward",
                "indexBounds": {
                    "meta": ["[\"a\", \"a\"]"],
                    "control.min.t": [start],
                    "control.max.t": ["[MinKey, MaxKey]"],
                },
            },
        };
        assert_eq!(found.plan(), &plan);
        // The index has the starts of buckets: one that begins up to an hour earlier may contain the first time.
        assert_eq!(found.counts(), [11, 10, 10, 20]);
        assert_eq!(found.returned(), 20);
        let stats = found.stats();
        assert_eq!(stats.get_i64("totalKeysExamined").unwrap(), 11);
        assert!(stats.get_bool("executionSuccess").unwrap());
        assert!(stats.get_i64("executionTimeMillis").is_ok());
        let stages = stats.get_document("executionStages").unwrap();
        assert_eq!(["docsExamined", "nReturned"].map(|name| stages.get_i64(name).unwrap()), [11, 10]);
        assert_eq!(stages.get_document("inputStage").unwrap().get_i64("keysExamined").unwrap(), 11);
    });
}

#[test]
fn a_time_range_is_planned_as_an_id_range() {
    block_on(async {
        let (_, db) = stored().await;
        let found =
            explain(&db, rawdoc! { "find": "c", "filter": { "t": { "$gte": date(10), "$lt": date(20) } } }).await;
        let plan = found.plan();
        assert_eq!(plan.get_str("stage").unwrap(), "CLUSTERED_IXSCAN");
        assert_eq!(plan.get_object_id("minRecord").unwrap(), id(9, 0));
        assert_eq!(plan.get_object_id("maxRecord").unwrap(), id(20, 0));
        assert_eq!(plan.get_str("direction").unwrap(), "forward");
        assert_eq!(found.counts(), [22, 20, 20, 40]);
        assert_eq!(found.stats().get_i64("totalKeysExamined").unwrap(), 0);
        let open = explain(&db, rawdoc! { "find": "c", "filter": { "t": { "$lte": date(20) } } }).await;
        assert!(open.plan().get("minRecord").is_none() && open.plan().get("maxRecord").is_some());
        let all = explain(&db, rawdoc! { "find": "c" }).await;
        assert_eq!(all.plan(), &doc! { "stage": "COLLSCAN", "direction": "forward" });
        assert_eq!(all.counts(), [200, 200, 200, 400]);
        for _ in 0..3 {
            // Also if all buckets are kept as one run.
            explain(&db, rawdoc! { "find": "c" }).await;
            let none = explain(&db, rawdoc! { "find": "c", "filter": { "t": { "$lt": date(-1) } } }).await;
            assert_eq!(none.plan().get_str("stage").unwrap(), "EOF");
            assert_eq!(none.counts(), [0; 4]);
        }
    });
}

#[test]
fn buckets_excluded_by_their_summaries_are_read_but_not_unpacked() {
    block_on(async {
        let (_, db) = stored().await;
        let found = explain(&db, rawdoc! { "find": "c", "filter": { "n": { "$gt": 390 }, "x.y": { "$lt": 5 } } }).await;
        let differ = |path: &str| {
            doc! { "$expr": { "$ne": [
                { "$type": format!("$control.min.{path}") }, { "$type": format!("$control.max.{path}") },
            ] } }
        };
        let filter = doc! { "$and": [
            { "$or": [{ "control.max.n": { "$_internalExprGt": 390 } }, differ("n")] },
            { "$or": [{ "control.min.x.y": { "$_internalExprLt": 5 } }, differ("x"), differ("x.y")] },
        ] };
        assert_eq!(found.plan().get_document("filter").unwrap(), &filter);
        assert_eq!(found.counts(), [200, 5, 5, 10]);
        assert_eq!(found.returned(), 0);
        let events = doc! { "$and": [{ "n": { "$gt": 390 } }, { "x.y": { "$lt": 5 } }] };
        assert_eq!(found.unpack().get_document("eventFilter").unwrap(), &events);
        assert!(found.unpack().get("wholeBucketFilter").is_none());
        let of_set = explain(&db, rawdoc! { "find": "c", "filter": { "n": { "$in": [3, 500] } } }).await;
        let between = |n: i32| {
            doc! { "$and": [
                { "control.min.n": { "$_internalExprLte": n } }, { "control.max.n": { "$_internalExprGte": n } },
            ] }
        };
        let filter = doc! { "$or": [{ "$or": [between(3), between(500)] }, differ("n")] };
        assert_eq!(of_set.plan().get_document("filter").unwrap(), &filter);
        assert_eq!(of_set.counts(), [200, 1, 1, 2]);
    });
}

#[test]
fn a_bucket_inside_the_time_range_is_not_filtered_row_by_row() {
    block_on(async {
        let (_, db) = stored().await;
        let half = DateTime::from_millis(10 * HOUR_MS + HOUR_MS / 2 + 1);
        let filter = rawdoc! { "t": { "$gte": half } };
        let found = explain(&db, rawdoc! { "find": "c", "filter": filter.clone() }).await;
        let unpacking = doc! {
            "exclude": [], "timeField": "t", "metaField": "m", "bucketMaxSpanSeconds": 3600,
            "wholeBucketFilter": { "control.min.t": { "$gte": half } },
            "eventFilter": { "t": { "$gte": half } },
        };
        assert_eq!(found.unpack(), &unpacking);
        assert!(found.unpack().keys().eq(unpacking.keys()));
        // A count unpacks only the two buckets of that hour.
        let counted = explain(&db, rawdoc! { "count": "c", "query": filter }).await;
        assert_eq!(counted.counts()[1..], [180, 2, 4]);
        assert_eq!(counted.stages()[1].get_i64("nReturned").unwrap(), 358);
    });
}

#[test]
fn fixed_buckets_and_dates_outside_the_standard_range_are_shown() {
    block_on(async {
        let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
        let hours = rawdoc! { "timeField": "t", "bucketMaxSpanSeconds": 3600, "bucketRoundingSeconds": 3600 };
        db.ok(rawdoc! { "create": "f", "timeseries": hours }).await;
        let readings: Vec<RawDocumentBuf> =
            (0..40).map(|n| rawdoc! { "t": DateTime::from_millis(n * HOUR_MS / 4) }).collect();
        db.insert("f", &readings).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let filter = || rawdoc! { "find": "f", "filter": { "t": { "$gte": date(5) } } };
        let found = explain(&db, filter()).await;
        let unpacking = doc! { "exclude": [], "timeField": "t", "bucketMaxSpanSeconds": 3600, "fixedBuckets": true };
        assert_eq!(found.unpack(), &unpacking);
        assert!(found.plan().get("minRecord").is_some());
        assert_eq!(found.returned(), 20);
        db.insert("f", &[rawdoc! { "t": date(-5) }]).await;
        let extended = explain(&db, filter()).await;
        assert!(extended.unpack().get_bool("usesExtendedRange").unwrap());
        assert_eq!(extended.unpack().get_document("eventFilter").unwrap(), &doc! { "t": { "$gte": date(5) } });
        assert_eq!(extended.plan().get_str("stage").unwrap(), "COLLSCAN");
        assert!(extended.plan().get("minRecord").is_none());
        assert_eq!(extended.returned(), 20);
    });
}

#[test]
fn only_the_columns_that_are_read_are_decoded() {
    block_on(async {
        let (_, db) = stored().await;
        let find =
            rawdoc! { "find": "c", "filter": { "half": { "$gt": 1 }, "m": "b" }, "projection": { "n": 1, "_id": 0 } };
        let found = explain(&db, find).await;
        assert_eq!(found.unpack().get_array("include").unwrap(), &vec!["half".into(), "n".into()]);
        assert_eq!(found.names(), ["$cursor", "$_internalUnpackBucket", "$project"]);
        assert_eq!(found.stage("$project"), &doc! { "_id": false, "n": true });
        let find = rawdoc! { "find": "c", "projection": { "m.x": 1, "t": 1 } };
        let found = explain(&db, find).await;
        let columns: Vec<Bson> = ["_id", "t", "m"].into_iter().map(Bson::from).collect();
        assert_eq!(found.unpack().get_array("include").unwrap(), &columns);
        assert_eq!(found.stage("$project"), &doc! { "_id": true, "m.x": true, "t": true });
        let find = rawdoc! { "find": "c", "projection": { "_id": 0, "a.b": { "$add": ["$n", 1] }, "t": 1 } };
        let found = explain(&db, find).await;
        let sum = doc! { "$add": ["$n", { "$const": 1 }] };
        assert_eq!(found.stage("$project"), &doc! { "_id": false, "t": true, "a.b": sum });
        assert_eq!(found.unpack().get_array("include").unwrap(), &vec!["a".into(), "n".into(), "t".into()]);
        let found = explain(&db, rawdoc! { "find": "c", "projection": { "half": 0 } }).await;
        assert_eq!(found.unpack().get_array("exclude").unwrap(), &vec![]);
        assert_eq!(found.stage("$project"), &doc! { "half": false });
    });
}

#[test]
fn a_limited_sort_by_time_reads_few_buckets() {
    block_on(async {
        let (_, db) = stored().await;
        let find = rawdoc! { "find": "c", "filter": { "m": "a" }, "sort": { "t": -1 }, "skip": 1, "limit": 2 };
        let found = explain(&db, find).await;
        let bound = doc! { "base": "min", "offsetSeconds": 3600_i64 };
        let sorting = doc! { "sortKey": { "t": -1 }, "bound": bound, "limit": 3_i64 };
        assert_eq!(found.names(), ["$cursor", "$_internalUnpackBucket", "$_internalBoundedSort", "$skip"]);
        assert_eq!(found.stage("$_internalBoundedSort"), &sorting);
        assert_eq!(found.plan().get_document("inputStage").unwrap().get_str("direction").unwrap(), "backward");
        // The last buckets of the series are listed first.
        assert_eq!(found.stats().get_i64("totalKeysExamined").unwrap(), 5);
        // Two buckets give three rows; by their summaries, all others end earlier.
        assert_eq!(found.counts(), [4, 4, 2, 4]);
        assert_eq!(found.returned(), 2);
        let find = rawdoc! { "find": "c", "sort": { "n": 1 }, "limit": 2 };
        let found = explain(&db, find).await;
        assert_eq!(found.stage("$sort"), &doc! { "sortKey": { "n": 1 }, "limit": 2_i64 });
        assert_eq!(found.counts(), [200, 200, 200, 400]);
        assert_eq!(found.returned(), 2);
        let unsorted = explain(&db, rawdoc! { "find": "c", "skip": 1, "limit": 2 }).await;
        assert_eq!(unsorted.names(), ["$cursor", "$_internalUnpackBucket", "$skip", "$limit"]);
        assert_eq!(unsorted.counts()[2..], [2, 4]);
        assert_eq!(unsorted.returned(), 2);
        let last = rawdoc! { "find": "c", "filter": { "m": "a" }, "hint": { "$natural": -1 }, "limit": 1 };
        let last = explain(&db, last).await;
        let plan = doc! { "stage": "COLLSCAN", "filter": { "meta": { "$eq": "a" } }, "direction": "backward" };
        assert_eq!(last.plan(), &plan);
        assert_eq!(last.counts()[1..], [1, 1, 2]);
    });
}

#[test]
fn counts_and_distinct_metadata_unpack_nothing() {
    block_on(async {
        let (_, db) = stored().await;
        let count = explain(&db, rawdoc! { "count": "c", "query": { "m": "a" }, "limit": 150 }).await;
        assert_eq!(count.names(), ["$cursor", "$_internalUnpackBucket", "$limit", "$group"]);
        // Buckets are read page by page; of the last page only the first half is used.
        assert_eq!(count.counts(), [100, 75, 0, 0]);
        assert_eq!(count.stage("$group"), &doc! { "_id": null, "count": { "$sum": 1 } });
        assert_eq!(count.unpack().get_array("include").unwrap(), &vec![]);
        assert_eq!(count.stages()[2].get_i64("nReturned").unwrap(), 150);
        assert_eq!(count.returned(), 1);
        let distinct = explain(&db, rawdoc! { "distinct": "c", "key": "m" }).await;
        assert_eq!(distinct.counts(), [200, 200, 0, 0]);
        assert_eq!(distinct.stage("$group"), &doc! { "_id": null, "distinct": { "$addToSet": "$m" } });
        let distinct = explain(&db, rawdoc! { "distinct": "c", "key": "n", "query": { "m": "b" } }).await;
        assert_eq!(distinct.counts(), [100, 100, 100, 200]);
        assert_eq!(distinct.unpack().get_array("include").unwrap(), &vec!["n".into()]);
    });
}

#[test]
fn journal_rows_count_as_unpacked_buckets_and_no_stored_one_is_read() {
    block_on(async {
        let (_, db) = stored().await;
        let late: Vec<RawDocumentBuf> = (4 * HOURS..4 * HOURS + 4).map(reading).collect();
        db.insert("c", &late[..2]).await;
        db.insert("c", &late[2..]).await;
        let newer = rawdoc! { "t": { "$gte": date(HOURS) } };
        let found = explain(&db, rawdoc! { "find": "c", "filter": newer.clone() }).await;
        // By their ids, the buckets of the hour before may contain times of this one.
        assert_eq!(found.counts(), [2, 0, 2, 4]);
        assert_eq!(found.returned(), 4);
        // A stored bucket and two commits into it count as one bucket.
        db.insert("c", &[reading(4 * HOURS - 4), reading(4 * HOURS)]).await;
        db.insert("c", &[reading(4 * HOURS - 4)]).await;
        let found =
            explain(&db, rawdoc! { "find": "c", "filter": { "m": "a", "t": { "$gte": date(HOURS - 1) } } }).await;
        assert_eq!(found.counts(), [2, 1, 2, 7]);
    });
}

#[test]
fn planning_reads_no_bucket() {
    block_on(async {
        let (storage, _) = stored().await;
        damage_all(&storage).await;
        let db = Db::open(storage, TestEnv::new(2));
        for command in [
            rawdoc! { "find": "c", "filter": { "m": "a" } },
            rawdoc! { "count": "c", "query": { "n": 1 } },
            rawdoc! { "distinct": "c", "key": "n" },
        ] {
            let planned = db.ok(rawdoc! { "explain": command.clone(), "verbosity": "queryPlanner" }).await;
            let text = planned.to_string();
            assert!(text.contains("winningPlan"));
            for counted in ["executionStats", "nReturned", "xamined", "nBucketsUnpacked"] {
                assert!(!text.contains(counted), "{text}");
            }
            assert_eq!(db.fails(rawdoc! { "explain": command }).await.0, 246);
        }
    });
}

#[test]
fn the_explain_reply_has_the_command_and_the_requested_verbosity() {
    block_on(async {
        let (_, db) = stored().await;
        let command = rawdoc! { "find": "c", "filter": { "m": "a" }, "comment": "why" };
        for (verbosity, all_plans) in [(None, true), (Some("executionStats"), false), (Some("allPlansExecution"), true)]
        {
            let mut explain = rawdoc! { "explain": command.clone() };
            if let Some(verbosity) = verbosity {
                explain.append(bson::cstr!("verbosity"), verbosity);
            }
            let found = Explained(db.ok(explain).await);
            let shown = found.0.keys().map(String::as_str).collect::<Vec<_>>();
            assert_eq!(shown, ["explainVersion", "stages", "command", "serverInfo", "ok"]);
            assert_eq!(found.0.get_str("explainVersion").unwrap(), "1");
            assert_eq!(found.0.get_document("command").unwrap(), &Document::try_from(&*command).unwrap());
            assert_eq!(found.stats().contains_key("allPlansExecution"), all_plans);
        }
        let planner = explain(&db, command).await;
        let planner = planner.stage("$cursor").get_document("queryPlanner").unwrap();
        assert_eq!(planner.get_str("namespace").unwrap(), "test.system.buckets.c");
        assert!(!planner.get_bool("indexFilterSet").unwrap());
        assert_eq!(planner.get_array("rejectedPlans").unwrap(), &vec![]);
    });
}

#[test]
fn raw_bucket_queries_unpack_nothing_and_a_missing_collection_has_an_empty_plan() {
    block_on(async {
        let (_, db) = stored().await;
        let find = rawdoc! { "find": "system.buckets.c", "filter": { "meta": "a", "control.max.n": { "$lt": 8 } }, "sort": { "_id": 1 } };
        let raw = explain(&db, find).await.0;
        let planner = raw.get_document("queryPlanner").unwrap();
        let filter = doc! { "$and": [{ "meta": { "$eq": "a" } }, { "control.max.n": { "$lt": 8 } }] };
        assert_eq!(planner.get_document("parsedQuery").unwrap(), &filter);
        let scan = doc! { "stage": "COLLSCAN", "filter": filter, "direction": "forward" };
        let plan = doc! { "stage": "SORT", "sortPattern": { "_id": 1 }, "type": "simple", "inputStage": scan };
        assert_eq!(planner.get_document("winningPlan").unwrap(), &plan);
        let stats = raw.get_document("executionStats").unwrap();
        assert_eq!(["totalDocsExamined", "nReturned"].map(|name| stats.get_i64(name).unwrap()), [200, 2]);

        let missing = db.ok(rawdoc! { "explain": { "count": "none" } }).await;
        let planner = missing.get_document("queryPlanner").unwrap();
        assert_eq!(planner.get_str("namespace").unwrap(), "test.none");
        assert_eq!(planner.get_document("winningPlan").unwrap(), &doc! { "stage": "EOF" });
        let stats = missing.get_document("executionStats").unwrap();
        assert_eq!(["nReturned", "totalDocsExamined"].map(|name| stats.get_i64(name).unwrap()), [0, 0]);
        let planned = db.ok(rawdoc! { "explain": { "find": "none" }, "verbosity": "queryPlanner" }).await;
        assert!(planned.contains_key("queryPlanner") && !planned.contains_key("executionStats"));
    });
}

#[test]
fn commands_that_cannot_be_explained_are_refused() {
    block_on(async {
        let (_, db) = stored().await;
        for (command, code) in [
            (rawdoc! { "explain": "find" }, 14),
            (rawdoc! { "explain": {} }, 9),
            (rawdoc! { "explain": { "find": "c" }, "verbosity": "all" }, 2),
            (rawdoc! { "explain": { "find": "c" }, "verbosity": 1 }, 14),
            (rawdoc! { "explain": { "find": "c" }, "verbose": true }, 40415),
            (rawdoc! { "explain": { "insert": "c" } }, 59),
            (rawdoc! { "explain": { "explain": { "find": "c" } } }, 59),
            (rawdoc! { "explain": { "find": "c", "filter": { "a": { "$foo": 1 } } } }, 2),
            (rawdoc! { "explain": { "count": "c", "skip": -1 } }, 51024),
            (rawdoc! { "explain": { "distinct": "c" } }, 40414),
            (rawdoc! { "explain": { "find": 1 } }, 73),
            (rawdoc! { "explain": { "find": "c", "hint": "x" }, "verbosity": "queryPlanner" }, 2),
            (rawdoc! { "explain": { "find": "c", "hint": "x" } }, 2),
        ] {
            assert_eq!(db.fails(command.clone()).await.0, code, "{command:?}");
        }
        let reply = db.command(rawdoc! { "explain": { "insert": "c" } }).await;
        assert_eq!(reply.get_str("errmsg").unwrap(), "'insert' is not a command that can be explained");
    });
}

#[test]
fn an_index_is_shown_as_multikey_with_the_paths_of_arrays_in_metadata() {
    block_on(async {
        for folds in [false, true] {
            let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
            db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
            let index = rawdoc! { "key": { "m.a.b": 1, "t": 1 }, "name": "i" };
            let small = rawdoc! { "key": { "m.z": 1 }, "name": "z" };
            db.ok(rawdoc! { "createIndexes": "c", "indexes": [index, small] }).await;
            let shown = async |hint: &str| {
                let find = rawdoc! { "find": "c", "filter": { "m.a.b": 1 }, "hint": hint };
                let input = explain(&db, find).await.plan().get_document("inputStage").unwrap().clone();
                (input.get_bool("isMultiKey").unwrap(), input.get_document("multiKeyPaths").unwrap().clone())
            };
            let paths = |of: &[&str]| bson::doc! { "meta.a.b": of, "control.min.t": [], "control.max.t": [] };
            assert_eq!(shown("i").await, (false, paths(&[])));
            let row = |b: bson::RawBson| rawdoc! { "t": DateTime::from_millis(1), "m": { "a": [{ "b": b }] } };
            db.insert("c", &[row(1.into())]).await;
            if folds {
                db.ok(rawdoc! { "flush": 1 }).await;
            }
            assert_eq!(shown("i").await, (true, paths(&["meta.a"])));
            db.insert("c", &[row(bson::rawbson!([1]))]).await;
            assert_eq!(shown("i").await, (true, paths(&["meta.a", "meta.a.b"])));
            assert_eq!(shown("z").await, (false, bson::doc! { "meta.z": [] }));
        }
    });
}
