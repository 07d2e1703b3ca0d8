//! The first measurements by time, or the last ones, are found without a look at all buckets.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::rc::Rc;

use bson::{DateTime, Document, RawDocumentBuf, rawdoc};
use futures::executor::block_on;
use support::{Db, TestEnv};
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Changeset, KeyRange, Page, Storage};

const HOUR_MS: i64 = 3_600_000;
const HOURS: i64 = 100;

/// Two series with a bucket an hour, and in the middle of each an hour two measurements.
async fn stored() -> Rc<MemoryStorage> {
    let storage = Rc::new(MemoryStorage::new());
    let db = Db::open(storage.clone(), TestEnv::new(1));
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    let readings: Vec<RawDocumentBuf> = (0..4 * HOURS)
        .map(|n| {
            let at = DateTime::from_millis(n / 4 * HOUR_MS + HOUR_MS / 2 + n % 2);
            rawdoc! { "t": at, "m": if n / 2 % 2 == 0 { "a" } else { "b" }, "n": n }
        })
        .collect();
    db.insert("c", &readings).await;
    db.ok(rawdoc! { "flush": 1 }).await;
    storage
}

/// Cuts every stored bucket in two that does not begin in one of `hours`.
async fn damage_all_but(storage: &MemoryStorage, hours: std::ops::Range<i64>) {
    let all = KeyRange { start: b"B".to_vec(), end: b"C".to_vec() };
    let mut changes = Changeset::new();
    for entry in storage.scan(std::slice::from_ref(&all), Page { entries_max: 1000, keys_only: false }).await.unwrap() {
        let id = entry.key[entry.key.len() - 12..].first_chunk::<4>().unwrap();
        if !hours.contains(&(i64::from(u32::from_be_bytes(*id)) / 3600)) {
            changes.put(entry.key, entry.value[..entry.value.len() / 2].to_vec());
        }
    }
    storage.commit(changes).await.unwrap();
}

fn numbers(rows: &[Document]) -> Vec<i64> {
    rows.iter().map(|row| row.get_i64("n").unwrap()).collect()
}

#[test]
fn the_newest_measurement_of_a_series_is_found_without_a_look_at_its_older_buckets() {
    block_on(async {
        let storage = stored().await;
        damage_all_but(&storage, HOURS - 4..HOURS).await;
        let db = Db::open(storage, TestEnv::new(2));
        let newest = rawdoc! { "find": "c", "filter": { "m": "a" }, "sort": { "t": -1 }, "limit": 1 };
        assert_eq!(numbers(&db.find(newest).await), [4 * HOURS - 3]);
        let more = rawdoc! { "find": "c", "filter": { "m": "b" }, "sort": { "t": -1 }, "skip": 1, "limit": 4 };
        assert_eq!(numbers(&db.find(more).await), [4 * HOURS - 2, 4 * HOURS - 5, 4 * HOURS - 6, 4 * HOURS - 9]);
        let all = rawdoc! { "find": "c", "filter": { "m": "a" }, "sort": { "t": -1 } };
        assert_eq!(db.fails(all).await.0, 246);
    });
}

#[test]
fn the_oldest_measurements_are_found_without_a_look_at_later_buckets() {
    block_on(async {
        let storage = stored().await;
        damage_all_but(&storage, 0..40).await;
        let db = Db::open(storage, TestEnv::new(2));
        let of_one = rawdoc! { "find": "c", "filter": { "m": "b" }, "sort": { "t": 1 }, "limit": 2 };
        assert_eq!(numbers(&db.find(of_one).await), [2, 3]);
        let of_all = rawdoc! { "find": "c", "sort": { "t": 1 }, "limit": 3 };
        assert_eq!(numbers(&db.find(of_all).await).len(), 3);
    });
}

#[test]
fn newer_rows_in_the_journal_and_filters_on_other_fields_are_heeded() {
    block_on(async {
        let storage = stored().await;
        let db = Db::open(storage, TestEnv::new(2));
        let late = rawdoc! { "t": DateTime::from_millis(HOURS * HOUR_MS), "m": "a", "n": 1000_i64 };
        db.insert("c", &[late, rawdoc! { "t": DateTime::from_millis(5), "m": "a", "n": 1001_i64 }]).await;
        let ask = async |filter: RawDocumentBuf, direction: i32, batch: i32| {
            let find =
                rawdoc! { "find": "c", "filter": filter, "sort": { "t": direction }, "limit": 2, "batchSize": batch };
            numbers(&db.find(find).await)
        };
        for batch in [0, 1, 5] {
            assert_eq!(ask(rawdoc! { "m": "a" }, -1, batch).await, [1000, 4 * HOURS - 3]);
            assert_eq!(ask(rawdoc! { "m": "a" }, 1, batch).await, [1001, 0]);
            assert_eq!(ask(rawdoc! { "m": "a", "n": { "$lt": 10 } }, -1, batch).await, [9, 8]);
            assert_eq!(ask(rawdoc! { "m": "b", "n": { "$gt": 390 } }, 1, batch).await, [391, 394]);
        }
    });
}

#[test]
fn buckets_of_one_start_are_all_looked_at_however_many_pages_they_take() {
    block_on(async {
        let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        // The buckets made last hold the earliest measurements.
        let readings: Vec<RawDocumentBuf> =
            (0..200_i64).map(|n| rawdoc! { "t": DateTime::from_millis(HOUR_MS + 200 - n), "m": n, "n": n }).collect();
        db.insert("c", &readings).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let first = db.find(rawdoc! { "find": "c", "sort": { "t": 1 }, "limit": 3 }).await;
        assert_eq!(numbers(&first), [199, 198, 197]);
    });
}
