//! `serverStatus`, `getParameter`, and the counters of the catalog in `collStats`.

use std::rc::Rc;

use bson::{Bson, Document, rawdoc};
use futures::executor::block_on;
use timepail::catalog::{CatalogOptions, Counter};
use timepail::storage::memory::MemoryStorage;

use super::harness::*;
use crate::support::Db;

async fn bucket_catalog(db: &Db) -> Option<Document> {
    let status = db.ok(rawdoc! { "serverStatus": 1 }).await;
    status.get_document("bucketCatalog").ok().cloned()
}

fn numbers<const N: usize>(doc: &Document, names: [&str; N]) -> [i64; N] {
    names.map(|name| doc.get_i64(name).unwrap())
}

const GAUGES: [&str; 5] = ["numBuckets", "numOpenBuckets", "numIdleBuckets", "numArchivedBuckets", "numActiveBuckets"];

#[test]
fn server_status_shows_the_catalog_after_first_use_with_the_servers_fields() {
    block_on(async {
        let db = database(Rc::new(MemoryStorage::new()), CatalogOptions::default()).await;
        assert_eq!(bucket_catalog(&db).await, None);
        assert!(
            !db.ok(rawdoc! { "collStats": "c" }).await.get_document("timeseries").unwrap().contains_key("numCommits")
        );
        db.insert("c", &[at(0), of(0, "b")]).await;
        let shown = bucket_catalog(&db).await.unwrap();
        let names: Vec<_> = shown.keys().map(String::as_str).collect();
        assert_eq!(names[..5], ["numBuckets", "numOpenBuckets", "numIdleBuckets", "numArchivedBuckets", "memoryUsage"]);
        let stats = db.ok(rawdoc! { "collStats": "c" }).await;
        let stats = stats.get_document("timeseries").unwrap();
        let counters: Vec<_> =
            stats.keys().map(String::as_str).skip_while(|name| *name != "numActiveBuckets").collect();
        assert_eq!((names[5..names.len() - 1].to_vec(), names.last()), (counters, Some(&"stateManagement")));
        assert!(shown.iter().all(|(name, value)| name == "stateManagement" || matches!(value, Bson::Int64(_))));
        let state: Vec<_> = shown.get_document("stateManagement").unwrap().iter().collect();
        let expected = ["bucketsManaged", "currentEra", "erasWithRemainingBuckets", "trackedClearOperations"];
        assert_eq!(state.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), expected);
        assert_eq!(state.iter().map(|(_, n)| n.as_i64().unwrap()).collect::<Vec<_>>(), [2, 0, 1, 0]);
        let order = ["bucketsNs", "bucketCount", "numMeasurements", "avgBucketSize", "numActiveBuckets"];
        db.ok(rawdoc! { "flush": 1 }).await;
        let stats = db.ok(rawdoc! { "collStats": "c" }).await;
        assert_eq!(stats.get_document("timeseries").unwrap().keys().take(5).collect::<Vec<_>>(), order);
    });
}

#[test]
fn server_status_has_host_version_and_uptime() {
    block_on(async {
        let db = open(Rc::new(MemoryStorage::new()), CatalogOptions::default());
        let status = db.ok(rawdoc! { "serverStatus": 1, "repl": 0 }).await;
        let names: Vec<_> = status.keys().map(String::as_str).collect();
        assert_eq!(names, ["host", "version", "process", "uptime", "uptimeMillis", "localTime", "ok"]);
        assert_eq!((status.get_str("process").unwrap(), status.get_f64("uptime").unwrap()), ("timepail", 0.0));
        assert_eq!(status.get_str("version").unwrap(), env!("CARGO_PKG_VERSION"));
        assert_eq!((status.get_str("host").unwrap().len(), status.get_i64("uptimeMillis").unwrap()), (16, 0));
        assert_eq!(status.get_datetime("localTime").unwrap().timestamp_millis(), 1_800_000_000_000);
    });
}

#[test]
fn a_rollover_is_counted_per_collection_and_globally() {
    block_on(async {
        let db = database(Rc::new(MemoryStorage::new()), CatalogOptions::default()).await;
        db.ok(rawdoc! { "create": "d", "timeseries": { "timeField": "t" } }).await;
        db.insert("c", &[at(0), at(HOUR)]).await;
        db.insert("d", &[at(0), at(HOUR), at(2 * HOUR)]).await;
        let forward = "numBucketsClosedDueToTimeForward";
        assert_eq!(statistic(&db, forward).await, 1);
        let shown = bucket_catalog(&db).await.unwrap();
        assert_eq!(numbers(&shown, [forward, "numCommits", "numMeasurementsCommitted"]), [3, 5, 5]);
        assert_eq!(numbers(&shown, GAUGES), [2, 2, 2, 0, 2]);
    });
}

#[test]
fn dropping_a_collection_keeps_its_counters_in_the_totals() {
    block_on(async {
        let storage = Rc::new(MemoryStorage::new());
        let db = database(storage, CatalogOptions::default()).await;
        db.ok(rawdoc! { "create": "d", "timeseries": { "timeField": "t" } }).await;
        db.insert("c", &[at(0)]).await;
        db.insert("d", &[at(0)]).await;
        // An open cursor keeps the collection alive, but not its open buckets.
        db.ok(rawdoc! { "find": "d", "batchSize": 0 }).await;
        db.ok(rawdoc! { "drop": "d" }).await;
        let shown = bucket_catalog(&db).await.unwrap();
        assert_eq!(numbers(&shown, GAUGES), [1, 1, 1, 0, 1]);
        assert_eq!(numbers(&shown, ["numCommits", "numBucketInserts"]), [2, 2]);
        assert_eq!(numbers(shown.get_document("stateManagement").unwrap(), ["bucketsManaged", "currentEra"]), [1, 1]);
        db.ok(rawdoc! { "drop": "c" }).await;
        assert_eq!(bucket_catalog(&db).await, None);
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t" } }).await;
        assert_eq!(bucket_catalog(&db).await, None);
        db.insert("c", &[at(0)]).await;
        let shown = bucket_catalog(&db).await.unwrap();
        assert_eq!((numbers(&shown, GAUGES), numbers(&shown, ["numCommits"])), ([1, 1, 1, 0, 1], [3]));
    });
}

#[test]
fn the_counters_of_a_recreated_collection_start_at_zero() {
    block_on(async {
        let db = database(Rc::new(MemoryStorage::new()), CatalogOptions::default()).await;
        db.insert("c", &[at(0)]).await;
        db.ok(rawdoc! { "drop": "c" }).await;
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t" } }).await;
        assert!(
            !db.ok(rawdoc! { "collStats": "c" }).await.get_document("timeseries").unwrap().contains_key("numCommits")
        );
    });
}

#[test]
fn conversions_and_oversized_documents_of_folds_are_counted() {
    let mut catalog = catalog();
    catalog.count(Counter::ConvertedToUnsorted, 2);
    catalog.count(Counter::TooLargeInsert, 3);
    catalog.count(Counter::TooLargeUpdate, 4);
    let shown: Vec<_> = catalog.stats().counters().into_iter().filter(|(_, n)| *n > 0).collect();
    let expected = [
        ("numCompressedBucketsConvertedToUnsorted", 2),
        ("numBucketDocumentsTooLargeInsert", 3),
        ("numBucketDocumentsTooLargeUpdate", 4),
    ];
    assert_eq!(shown, expected);
}

#[test]
fn the_average_size_of_buckets_counts_the_rows_of_journals() {
    block_on(async {
        let db = open(Rc::new(MemoryStorage::new()), CatalogOptions::default());
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        let average = async || {
            let stats = db.ok(rawdoc! { "collStats": "c" }).await;
            let of = |name: &str| stats.get_i64(name).unwrap();
            let bytes = of("size") + of("journalSize");
            let timeseries = stats.get_document("timeseries").unwrap();
            assert_eq!(
                timeseries.get_i64("avgBucketSize").unwrap(),
                bytes / timeseries.get_i64("bucketCount").unwrap()
            );
            timeseries.get_i64("avgBucketSize").unwrap()
        };
        db.insert("c", &[rawdoc! { "t": bson::DateTime::from_millis(0), "m": 1, "text": "x".repeat(1000) }]).await;
        assert!(average().await > 1000);
        db.ok(rawdoc! { "flush": 1 }).await;
        assert!(average().await > 1000);
    });
}

#[test]
fn get_parameter_returns_one_or_all_parameters() {
    block_on(async {
        let options = CatalogOptions { bucket_count_max: 500, ..CatalogOptions::default() };
        let db = open(Rc::new(MemoryStorage::new()), options);
        let one = db.ok(rawdoc! { "getParameter": 1, "timeseriesBucketMaxCount": 1, "$db": "admin" }).await;
        assert_eq!((one.get_i32("timeseriesBucketMaxCount").unwrap(), one.len()), (500, 2));
        let all = db.ok(rawdoc! { "getParameter": "*" }).await;
        assert_eq!((all.len(), all.get_i32("timeseriesBucketMinCount").unwrap()), (12, 10));
        // As on the server, a size of memory is an int64, however small.
        let int64 = ["timeseriesIdleBucketExpiryMemoryUsageThreshold", "cacheBytes", "readCacheBytes"];
        let of_64_bits = all.iter().filter(|(_, value)| matches!(value, Bson::Int64(_))).map(|(name, _)| name.as_str());
        assert_eq!(of_64_bits.collect::<Vec<_>>(), int64);
        for nothing in [rawdoc! { "getParameter": 1 }, rawdoc! { "getParameter": 1, "logLevel": 1 }] {
            assert_eq!(db.fails(nothing).await, (72, "InvalidOptions".to_owned()));
        }
    });
}

#[test]
fn the_parameter_limits_the_measurements_of_a_bucket() {
    block_on(async {
        let options = CatalogOptions { bucket_count_max: 5, ..CatalogOptions::default() };
        let db = database(Rc::new(MemoryStorage::new()), options).await;
        db.insert("c", &(0..12).map(at).collect::<Vec<_>>()).await;
        let counts: Vec<_> =
            buckets(&db).await.iter().map(|b| b.get_document("control").unwrap().get_i32("count").unwrap()).collect();
        assert_eq!(counts, [5, 5, 2]);
    });
}
