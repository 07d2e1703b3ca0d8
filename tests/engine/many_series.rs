//! Ten thousand open series: how much memory the catalog needs.

use std::rc::Rc;

use bson::{DateTime, Document, RawDocumentBuf, rawdoc};
use futures::executor::block_on;
use timepail::catalog::CatalogOptions;
use timepail::engine::Engine;
use timepail::env::Env;
use timepail::storage::memory::MemoryStorage;

use crate::support::{Db, TestEnv};

const SERIES: i64 = 10_000;

fn database(threshold_bytes: usize) -> Db {
    let env = TestEnv::new(1);
    let context = env.random_u64().to_be_bytes();
    let options = CatalogOptions { memory_bytes_max: threshold_bytes, ..CatalogOptions::default() };
    let engine = Engine::new("test", Rc::new(MemoryStorage::new()), env, context).with_catalog_options(options);
    Db { engine: Rc::new(engine) }
}

/// The statistics of the catalog after each of three commits of one row per series; with `others`, each commit has different series.
async fn state_after_commits(db: &Db, others: bool) -> Vec<Document> {
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    let mut states = Vec::new();
    for second in 0..3 {
        let first = if others { second * SERIES } else { 0 };
        let row = |s| rawdoc! { "t": DateTime::from_millis(second * 1000), "m": { "id": s, "site": "hall" }, "x": 1.5 };
        let docs: Vec<RawDocumentBuf> = (first..first + SERIES).map(row).collect();
        assert!(!db.insert("c", &docs).await.contains_key("writeErrors"));
        let status = db.ok(rawdoc! { "serverStatus": 1 }).await;
        states.push(status.get_document("bucketCatalog").unwrap().clone());
    }
    states
}

fn gauge(state: &Document, name: &str) -> i64 {
    state.get_i64(name).unwrap()
}

#[test]
fn ten_thousand_open_series_stay_below_the_default_threshold() {
    block_on(async {
        let threshold = CatalogOptions::default().memory_bytes_max;
        let states = state_after_commits(&database(threshold), false).await;
        for state in &states {
            assert_eq!(gauge(state, "numOpenBuckets"), SERIES, "{state}");
            assert!(gauge(state, "memoryUsage") < threshold as i64, "{state}");
        }
        assert_eq!(
            (gauge(&states[2], "numBucketInserts"), gauge(&states[2], "numBucketUpdates")),
            (SERIES, 2 * SERIES)
        );
    });
}

#[test]
fn with_a_lower_threshold_idle_buckets_are_archived_and_every_measurement_is_found() {
    block_on(async {
        let db = database(1 << 20);
        let states = state_after_commits(&db, true).await;
        let last = states.last().unwrap();
        let gone =
            gauge(last, "numBucketsArchivedDueToMemoryThreshold") + gauge(last, "numBucketsClosedDueToMemoryThreshold");
        assert!(gone > SERIES, "{last}");
        // The buckets of a commit are in use until it ends; those of the previous commit are archived.
        assert!(gauge(last, "memoryUsage") <= gauge(&states[0], "memoryUsage") + (1 << 20), "{last}");
        let n = db.ok(rawdoc! { "count": "c" }).await.get_i32("n").unwrap();
        assert_eq!(i64::from(n), 3 * SERIES);
    });
}
