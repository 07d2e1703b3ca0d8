//! Stored buckets take further measurements that fit, after a restart and for late measurements.

use std::cell::Cell;
use std::rc::Rc;

use bson::{Bson, DateTime, Document, RawDocumentBuf, rawdoc};
use futures::executor::block_on;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Bytes, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};

use crate::support::{Db, TestEnv, multiset};

const MINUTE_MS: i64 = 60_000;

/// One database, opened again and again: each opening is a context without memory.
struct Disk {
    storage: Rc<MemoryStorage>,
    env: Rc<TestEnv>,
}

impl Disk {
    fn new() -> Disk {
        Disk { storage: Rc::new(MemoryStorage::new()), env: TestEnv::new(1) }
    }
    fn open(&self) -> Db {
        Db::open(self.storage.clone(), Rc::clone(&self.env))
    }
    async fn with_weather() -> (Disk, Db) {
        let disk = Disk::new();
        let db = disk.open();
        db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "station" } }).await;
        (disk, db)
    }
}

fn reading(minute: i64, station: impl Into<bson::RawBson>, temp: impl Into<bson::RawBson>) -> RawDocumentBuf {
    rawdoc! { "at": DateTime::from_millis(minute * MINUTE_MS), "station": station.into(), "temp": temp.into() }
}

/// How many measurements each bucket holds, in order of `_id`, after everything was folded.
async fn counts(db: &Db) -> Vec<i32> {
    db.ok(rawdoc! { "flush": 1 }).await;
    db.ok(rawdoc! { "foldJournals": 1 }).await;
    let buckets = db.find(rawdoc! { "find": "system.buckets.weather" }).await;
    buckets.iter().map(|bucket| bucket.get_document("control").unwrap().get_i32("count").unwrap()).collect()
}

async fn statistic(db: &Db, name: &str) -> i64 {
    let stats = db.ok(rawdoc! { "collStats": "weather" }).await;
    stats.get_document("timeseries").unwrap().get_i64(name).unwrap()
}

async fn all(db: &Db) -> Vec<Document> {
    db.find(rawdoc! { "find": "weather" }).await
}

#[test]
fn the_first_insert_after_a_restart_reopens_the_stored_bucket_of_its_series() {
    block_on(async {
        let (disk, db) = Disk::with_weather().await;
        db.insert("weather", &[reading(1, "a", 1.0), reading(2, "b", 1.0)]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let db = disk.open();
        db.insert("weather", &[reading(3, "a", 2.0), reading(4, "b", 2.0), reading(5, "c", 2.0)]).await;
        assert_eq!(counts(&db).await.iter().sum::<i32>(), 5);
        assert_eq!(counts(&db).await.len(), 3);
        assert_eq!(statistic(&db, "numBucketsReopened").await, 2);
        assert_eq!(all(&disk.open()).await.len(), 5);
    });
}

#[test]
fn a_bucket_with_unfolded_rows_of_another_context_is_not_reopened() {
    block_on(async {
        let (disk, db) = Disk::with_weather().await;
        db.insert("weather", &[reading(1, "a", 1.0)]).await;
        disk.open().insert("weather", &[reading(2, "a", 2.0)]).await;
        let db = disk.open();
        assert_eq!(counts(&db).await, [1, 1]);
        disk.open().insert("weather", &[reading(3, "a", 3.0)]).await;
        assert_eq!(counts(&db).await.iter().sum::<i32>(), 3);
        assert_eq!(counts(&db).await.len(), 2);
        assert_eq!(all(&db).await.len(), 3);
    });
}

#[test]
fn a_late_measurement_goes_to_the_bucket_of_its_time() {
    block_on(async {
        let (_, db) = Disk::with_weather().await;
        for minute in [10, 70, 130, 190] {
            db.insert("weather", &[reading(minute, "a", 1.0)]).await;
        }
        db.ok(rawdoc! { "flush": 1 }).await;
        db.insert("weather", &[reading(75, "a", 2.0)]).await;
        assert_eq!(counts(&db).await, [1, 2, 1, 1]);
        assert_eq!(statistic(&db, "numBucketsReopened").await, 1);
        // If time moves forward, no stored bucket is searched, as on the server.
        db.insert("weather", &[reading(135, "a", 2.0)]).await;
        assert_eq!(counts(&db).await, [1, 2, 1, 1, 1]);
    });
}

#[test]
fn alternating_late_and_current_measurements_open_no_new_buckets() {
    block_on(async {
        let (_, db) = Disk::with_weather().await;
        // The bucket that was archived for a late measurement is remembered, folded or not.
        for minute in [10, 70, 130, 15, 135, 20, 140, 25] {
            db.insert("weather", &[reading(minute, "a", 1.0)]).await;
        }
        assert_eq!(counts(&db).await, [4, 1, 3]);
    });
}

#[test]
fn metadata_of_another_type_or_none_is_another_series() {
    block_on(async {
        let (disk, db) = Disk::with_weather().await;
        db.insert("weather", &[reading(1, 1, 1.0)]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let none = rawdoc! { "at": DateTime::from_millis(2 * MINUTE_MS), "temp": 1.0 };
        let db = disk.open();
        db.insert("weather", &[reading(2, 1.0, 1.0), reading(2, Bson::Null.to_string(), 1.0), none.clone()]).await;
        assert_eq!(counts(&db).await, [1, 1, 1, 1]);
        assert_eq!(statistic(&db, "numBucketReopeningsFailedDueToHashCollision").await, 1);
        let db = disk.open();
        db.insert("weather", &[reading(3, 1, 1.0), reading(3, 1.0, 1.0), none]).await;
        let mut counts = counts(&db).await;
        counts.sort_unstable();
        assert_eq!(counts, [1, 2, 2, 2]);
    });
}

#[test]
fn a_bucket_in_which_a_field_has_another_type_is_not_reopened() {
    block_on(async {
        let (disk, db) = Disk::with_weather().await;
        db.insert("weather", &[reading(1, "a", 1.0)]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let db = disk.open();
        db.insert("weather", &[reading(2, "a", "warm")]).await;
        assert_eq!(counts(&db).await, [1, 1]);
    });
}

#[test]
fn a_full_bucket_is_not_reopened_and_a_nearly_full_one_is() {
    block_on(async {
        let (disk, db) = Disk::with_weather().await;
        let rows = |from: i64, count: i64| -> Vec<RawDocumentBuf> {
            let at = |n: i64| DateTime::from_millis(n);
            (from..from + count).map(|n| rawdoc! { "at": at(n), "station": "a", "temp": n as f64 }).collect()
        };
        db.insert("weather", &rows(0, 990)).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let db = disk.open();
        db.insert("weather", &rows(990, 15)).await;
        assert_eq!(counts(&db).await, [1000, 5]);
        let db = disk.open();
        db.insert("weather", &rows(2000, 1)).await;
        assert_eq!(counts(&db).await, [1000, 6]);
    });
}

#[test]
fn a_damaged_bucket_is_not_reopened_and_the_insert_succeeds() {
    block_on(async {
        let (disk, db) = Disk::with_weather().await;
        db.insert("weather", &[reading(1, "a", 1.0), reading(2, "a", 2.5)]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let range = KeyRange { start: b"B".to_vec(), end: b"C".to_vec() };
        let page = Page { entries_max: 9, keys_only: false };
        let bucket = disk.storage.scan(&[range], page).await.unwrap().remove(0);
        let mut value = bucket.value;
        // The last column is that of the temperatures; its end byte and the ends of the documents follow.
        let at = value.len() - 12;
        value[at] ^= 0xFF;
        let mut changes = Changeset::new();
        changes.put(bucket.key, value);
        disk.storage.commit(changes).await.unwrap();
        let db = disk.open();
        let reply = db.insert("weather", &[reading(3, "a", 3.0)]).await;
        assert_eq!(reply.get_i32("n").ok(), Some(1));
        db.ok(rawdoc! { "flush": 1 }).await;
        let later = db.find(rawdoc! { "find": "weather", "filter": { "at": DateTime::from_millis(0) } }).await;
        assert!(later.is_empty());
        let of = |name| statistic(&db, name);
        assert_eq!(of("numBucketReopeningsFailedDueToCompressionFailure").await, 1);
        assert_eq!(of("numBucketsReopened").await, 0);
    });
}

#[test]
fn buckets_are_reopened_without_a_meta_field() {
    block_on(async {
        let disk = Disk::new();
        let db = disk.open();
        db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at" } }).await;
        let row = |minute: i64| rawdoc! { "at": DateTime::from_millis(minute * MINUTE_MS), "x": 1.0 };
        db.insert("weather", &[row(5), row(65)]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let db = disk.open();
        db.insert("weather", &[row(10)]).await;
        assert_eq!(counts(&db).await, [2, 1]);
        let db = disk.open();
        db.insert("weather", &[row(70)]).await;
        assert_eq!(counts(&db).await, [2, 2]);
    });
}

/// Counts reads.
struct Calls {
    inner: MemoryStorage,
    reads: Cell<usize>,
}

impl Storage for Calls {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        self.reads.set(self.reads.get() + usize::from(!keys.is_empty()));
        self.inner.get_many(keys)
    }
    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        self.reads.set(self.reads.get() + usize::from(!ranges.is_empty()));
        self.inner.scan(ranges, page)
    }
    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        self.inner.commit(changes)
    }
}

#[test]
fn a_commit_of_many_new_series_makes_few_requests_and_later_ones_none() {
    block_on(async {
        let calls = Rc::new(Calls { inner: MemoryStorage::new(), reads: Cell::new(0) });
        let env = TestEnv::new(1);
        let create = rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "station" } };
        Db::open(calls.clone(), Rc::clone(&env)).ok(create).await;
        let rows = |minute| (0..500).map(|n| reading(minute, format!("s{n}"), 1.0)).collect::<Vec<_>>();
        for round in 0..2 {
            let db = Db::open(calls.clone(), Rc::clone(&env));
            db.ok(rawdoc! { "count": "weather" }).await;
            calls.reads.set(0);
            db.insert("weather", &rows(round)).await;
            assert!(calls.reads.get() <= 6, "{} calls in round {round}", calls.reads.get());
            calls.reads.set(0);
            db.insert("weather", &rows(round)).await;
            assert_eq!(calls.reads.get(), 0);
            db.ok(rawdoc! { "flush": 1 }).await;
        }
        let db = Db::open(calls, env);
        let found = all(&db).await;
        assert_eq!((found.len(), multiset(&found).len()), (2000, 2000));
        assert_eq!(counts(&db).await, [4; 500]);
    });
}
