//! A full storage: which deletes still work, how many, and what they leave behind.

use std::cell::Cell;
use std::rc::Rc;

use bson::{Bson, DateTime, Document, RawDocumentBuf, rawdoc};
use futures::executor::block_on;
use timepail::error::{Error, ErrorCode};
use timepail::limits::FOLD_STEP_BUCKETS;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Bytes, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};

use crate::support::faults::Faulty;
use crate::support::valid_bucket::Writers;
use crate::support::{Db, Random, TestEnv, checks, raw};

const HOUR_MS: i64 = 3_600_000;
const OUT_OF_DISK_SPACE: i32 = 14031;
/// A round hour, the clock of every context.
const NOW_MS: i64 = 1_800_000_000_000;
/// Epochs in reserve.
const RESERVE: usize = 16;

/// A database whose storage can be full.
struct Disk {
    memory: MemoryStorage,
    faulty: Rc<Faulty>,
    env: Rc<TestEnv>,
}

impl Disk {
    /// A disk with a collection `c`, whose buckets last an hour; `options` are added to `create`.
    async fn new(options: RawDocumentBuf) -> (Disk, Db) {
        let memory = MemoryStorage::new();
        let faulty = Faulty::new(Rc::new(memory.clone()), Random::new(1), false);
        let disk = Disk { memory, faulty, env: TestEnv::new(1) };
        let db = disk.open();
        let mut create = rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } };
        options.iter().for_each(|field| {
            let (name, value) = field.unwrap();
            create.append(bson::raw::CString::try_from(name.as_str()).unwrap(), bson::RawBson::from(value));
        });
        db.ok(create).await;
        (disk, db)
    }

    fn open(&self) -> Db {
        Db::open(self.faulty.clone(), Rc::clone(&self.env))
    }

    async fn entries(&self, prefix: &[u8]) -> Vec<Entry> {
        let page = Page { entries_max: 10_000, keys_only: false };
        let range = KeyRange { start: prefix.to_vec(), end: [prefix, &[0xFF; 9]].concat() };
        self.memory.scan(&[range], page).await.unwrap()
    }

    async fn count(&self, prefix: &[u8]) -> usize {
        self.entries(prefix).await.len()
    }

    /// Makes room, checks the whole collection, and returns what a new context finds.
    async fn sound(&self) -> Vec<i64> {
        self.faulty.set_full(false);
        numbers(&checks::sound_when_folded(&self.memory, &self.open(), "c", Writers::Several).await)
    }
}

fn row(n: i64, ms: i64, series: &str) -> RawDocumentBuf {
    rawdoc! { "t": DateTime::from_millis(ms), "m": series, "n": n }
}

/// One insert of measurements of these series at that time, numbered from `first`.
async fn add(db: &Db, first: i64, ms: i64, series: &[&str]) {
    let rows: Vec<_> = series.iter().zip(first..).map(|(series, n)| row(n, ms + n, series)).collect();
    let reply = db.insert("c", &rows).await;
    assert_eq!(reply.get_i32("n").ok(), Some(rows.len() as i32), "{reply}");
}

async fn flush(db: &Db) {
    db.ok(rawdoc! { "flush": 1 }).await;
}

async fn delete(db: &Db, filter: RawDocumentBuf) -> Document {
    db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": filter, "limit": 0 }] }).await
}

/// The number of deleted measurements; the delete must succeed.
async fn deleted(db: &Db, filter: RawDocumentBuf) -> i32 {
    let reply = delete(db, filter).await;
    assert!(!reply.contains_key("writeErrors"), "{reply}");
    reply.get_i32("n").unwrap()
}

/// The error message of a delete without room.
async fn refused(db: &Db, filter: RawDocumentBuf) -> String {
    let reply = delete(db, filter).await;
    let Ok([Bson::Document(error)]) = reply.get_array("writeErrors").map(|errors| &errors[..]) else {
        panic!("{reply}")
    };
    assert_eq!(error.get_i32("code").ok(), Some(OUT_OF_DISK_SPACE), "{error}");
    error.get_str("errmsg").unwrap().to_owned()
}

fn numbers(found: &[Document]) -> Vec<i64> {
    let mut numbers: Vec<i64> = found.iter().map(|row| row.get_i64("n").unwrap()).collect();
    numbers.sort_unstable();
    numbers
}

async fn left(db: &Db) -> Vec<i64> {
    numbers(&db.find(rawdoc! { "find": "c" }).await)
}

fn before(ms: i64) -> RawDocumentBuf {
    rawdoc! { "t": { "$lt": DateTime::from_millis(ms) } }
}

#[test]
fn without_room_a_whole_series_can_be_deleted_which_makes_room_for_inserts() {
    block_on(async {
        let (disk, db) = Disk::new(rawdoc! {}).await;
        for hour in 0..6 {
            add(&db, 10 * hour, hour * HOUR_MS, &["a", "b"]).await;
        }
        flush(&db).await;
        let other = disk.open();
        assert_eq!(left(&other).await.len(), 12);
        disk.faulty.set_full(true);
        assert_eq!(deleted(&db, rawdoc! { "m": "a" }).await, 6);
        for db in [&db, &other, &disk.open()] {
            assert_eq!(left(db).await, [1, 11, 21, 31, 41, 51]);
        }
        assert_eq!((disk.count(b"B").await, disk.count(b"I").await), (6, 6));
        disk.faulty.set_full(false);
        add(&other, 100, HOUR_MS, &["a"]).await;
        add(&db, 101, HOUR_MS, &["b"]).await;
        flush(&db).await;
        assert_eq!(left(&db).await, [1, 11, 21, 31, 41, 51, 100, 101]);
        assert_eq!(disk.count(b"M").await, 2 + RESERVE, "an epoch, and the reserve is full again");
        assert_eq!(disk.sound().await, [1, 11, 21, 31, 41, 51, 100, 101]);
    });
}

#[test]
fn without_room_a_time_range_can_be_deleted_from_buckets_and_journals() {
    block_on(async {
        let (disk, db) = Disk::new(rawdoc! {}).await;
        add(&db, 0, 0, &["a", "b"]).await;
        flush(&db).await;
        let other = disk.open();
        add(&other, 10, HOUR_MS, &["a", "b", "c"]).await;
        add(&db, 20, 2 * HOUR_MS, &["a", "b"]).await;
        add(&db, 30, 3 * HOUR_MS, &["a", "b"]).await;
        disk.faulty.set_full(true);
        assert_eq!(deleted(&db, before(3 * HOUR_MS)).await, 7);
        assert_eq!((disk.count(b"J").await, disk.count(b"B").await), (1, 0));
        // The context that wrote the record has it in memory.
        assert_eq!(left(&other).await, [30, 31]);
        assert_eq!(left(&db).await, [30, 31]);
        assert_eq!(disk.sound().await, [30, 31]);
    });
}

#[test]
fn without_room_records_of_one_series_are_deleted_and_mixed_ones_are_reported() {
    block_on(async {
        let (disk, db) = Disk::new(rawdoc! {}).await;
        add(&db, 0, 0, &["a", "a"]).await;
        add(&db, 10, HOUR_MS, &["a", "b"]).await;
        add(&db, 20, 2 * HOUR_MS, &["a"]).await;
        disk.faulty.set_full(true);
        let message = refused(&db, rawdoc! { "m": "a" }).await;
        assert!(message.contains("; 3 measurements were deleted, those whose removal writes nothing; "), "{message}");
        assert_eq!(left(&db).await, [10, 11]);
        // It is deleted together with the remaining rows.
        assert_eq!(deleted(&db, before(2 * HOUR_MS)).await, 2);
        assert_eq!(disk.sound().await, Vec::<i64>::new());
    });
}

#[test]
fn a_delete_refused_without_room_succeeds_once_there_is_room() {
    block_on(async {
        let (disk, db) = Disk::new(rawdoc! {}).await;
        add(&db, 0, 0, &["a", "b"]).await;
        disk.faulty.set_full(true);
        let message = refused(&db, rawdoc! { "m": "a" }).await;
        assert!(message.contains("; 0 measurements were deleted"), "{message}");
        assert_eq!(disk.count(b"M").await, 2 + RESERVE, "nothing was taken from the reserve");
        disk.faulty.set_full(false);
        assert_eq!(deleted(&db, rawdoc! { "m": "a" }).await, 1);
        assert_eq!(disk.sound().await, [1]);
    });
}

#[test]
fn without_room_a_bucket_is_deleted_if_all_rows_match() {
    block_on(async {
        let (disk, db) = Disk::new(rawdoc! {}).await;
        for n in [2, 4, 8] {
            add(&db, n, 0, &["even"]).await;
        }
        for n in [2, 3] {
            add(&db, n, 0, &["both"]).await;
        }
        flush(&db).await;
        disk.faulty.set_full(true);
        // Of the second bucket only a part matches.
        refused(&db, rawdoc! { "n": { "$mod": [2, 0] } }).await;
        assert_eq!(left(&db).await, [2, 3]);
        assert_eq!(disk.sound().await, [2, 3]);
    });
}

/// Fails every commit but the first.
struct Stops {
    inner: MemoryStorage,
    commits: Cell<usize>,
}

impl Storage for Stops {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        self.inner.get_many(keys)
    }
    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        self.inner.scan(ranges, page)
    }
    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        self.commits.set(self.commits.get() + 1);
        if self.commits.get() > 1 {
            return Box::pin(async { Err(Error::new(ErrorCode::OperationFailed, "The test storage has stopped")) });
        }
        self.inner.commit(changes)
    }
}

/// A number of series whose record is folded in two steps.
const SERIES: usize = FOLD_STEP_BUCKETS + 10;

/// A record with a measurement of each series, of which only the first ones are folded.
async fn half_folded() -> (Disk, Db) {
    let (disk, db) = Disk::new(rawdoc! {}).await;
    let series: Vec<String> = (0..SERIES).map(|n| format!("s{n}")).collect();
    add(&db, 0, 0, &series.iter().map(String::as_str).collect::<Vec<_>>()).await;
    let stops = Rc::new(Stops { inner: disk.memory.clone(), commits: Cell::new(0) });
    Db::open(stops, Rc::clone(&disk.env)).command(rawdoc! { "foldJournals": 1 }).await;
    assert_eq!((disk.count(b"B").await, disk.count(b"J").await), (FOLD_STEP_BUCKETS, 1));
    (disk, db)
}

#[test]
fn a_half_folded_bucket_is_deleted_with_its_records_or_not_at_all() {
    block_on(async {
        let (disk, db) = half_folded().await;
        let all: Vec<i64> = (0..SERIES as i64).collect();
        assert_eq!(left(&db).await, all);
        let (folded, unfolded) = all.split_at(FOLD_STEP_BUCKETS);
        disk.faulty.set_full(true);
        // Without the bucket, the record would show its rows again.
        refused(&db, rawdoc! { "n": folded[0] }).await;
        assert_eq!(left(&db).await, all);
        // The record is removed, and the rows that are in buckets stay.
        assert_eq!(deleted(&db, rawdoc! { "n": { "$gte": unfolded[0] } }).await, unfolded.len() as i32);
        assert_eq!((disk.count(b"B").await, disk.count(b"J").await), (FOLD_STEP_BUCKETS, 0));
        assert_eq!(left(&db).await, folded);
        assert_eq!(deleted(&db, rawdoc! { "n": folded[0] }).await, 1);
        assert_eq!(disk.sound().await, folded[1..]);
    });
}

#[test]
fn buckets_and_their_covered_records_are_deleted_together() {
    block_on(async {
        let (disk, db) = half_folded().await;
        disk.faulty.set_full(true);
        assert_eq!(deleted(&db, rawdoc! { "n": { "$gte": 3 } }).await, SERIES as i32 - 3);
        assert_eq!((disk.count(b"B").await, disk.count(b"J").await), (3, 0));
        assert_eq!(disk.sound().await, [0, 1, 2]);
    });
}

#[test]
fn a_large_collection_is_deleted_with_one_epoch() {
    block_on(async {
        let (disk, db) = Disk::new(rawdoc! {}).await;
        let series: Vec<String> = (0..300).map(|n| format!("s{n}")).collect();
        let series: Vec<&str> = series.iter().map(String::as_str).collect();
        for hour in 0..3 {
            add(&db, 1000 * hour, hour * HOUR_MS, &series).await;
        }
        flush(&db).await;
        disk.faulty.set_full(true);
        assert_eq!(deleted(&db, before(2 * HOUR_MS)).await, 600);
        assert_eq!(disk.count(b"M").await, 1 + RESERVE);
        assert_eq!(deleted(&db, rawdoc! {}).await, 300);
        assert_eq!((disk.count(b"B").await, disk.count(b"I").await), (0, 0));
        assert_eq!(disk.count(b"M").await, RESERVE);
    });
}

#[test]
fn without_room_there_are_as_many_deletes_as_reserve_epochs() {
    block_on(async {
        let (disk, db) = Disk::new(rawdoc! {}).await;
        for n in 0..40 {
            add(&db, n, 0, &[&format!("s{n}")]).await;
        }
        flush(&db).await;
        disk.faulty.set_full(true);
        for n in 0..16 {
            assert_eq!(deleted(&db, rawdoc! { "n": n }).await, 1, "{n}");
        }
        refused(&db, rawdoc! { "n": 16 }).await;
        assert_eq!(left(&disk.open()).await, (16..40).collect::<Vec<_>>());
        assert_eq!(disk.count(b"M").await, 2, "the collection exists, and its epoch, which was the last in reserve");
        disk.faulty.set_full(false);
        assert_eq!(deleted(&db, rawdoc! { "n": 16 }).await, 1);
        disk.faulty.set_full(true);
        for n in 17..33 {
            assert_eq!(deleted(&db, rawdoc! { "n": n }).await, 1, "{n}");
        }
        assert_eq!(disk.sound().await, (33..40).collect::<Vec<_>>());
    });
}

/// The keys of a database of an older version, without a reserve: its first epoch is 0.
async fn without_reserve(disk: &Disk) {
    let mut changes = Changeset::new();
    for entry in disk.entries(b"M").await {
        match entry.key[9] {
            2 => {
                let mut old: Bytes = entry.key.clone();
                old.truncate(10);
                old.extend_from_slice(&7_u64.to_be_bytes());
                changes.delete(entry.key);
                changes.put(old, entry.value);
            }
            4 => changes.delete(entry.key),
            _ => {}
        }
    }
    disk.memory.commit(changes).await.unwrap();
}

#[test]
fn a_database_without_a_reserve_gets_one_with_its_next_change() {
    block_on(async {
        let (disk, db) = Disk::new(rawdoc! {}).await;
        add(&db, 0, 0, &["a", "b"]).await;
        flush(&db).await;
        without_reserve(&disk).await;
        let db = disk.open();
        disk.faulty.set_full(true);
        refused(&db, rawdoc! { "m": "a" }).await;
        assert_eq!(left(&db).await, [0, 1]);
        disk.faulty.set_full(false);
        add(&db, 10, HOUR_MS, &["c"]).await;
        flush(&db).await;
        assert_eq!(disk.count(b"M").await, 2 + RESERVE);
        disk.faulty.set_full(true);
        assert_eq!(deleted(&db, rawdoc! { "m": "a" }).await, 1);
        assert_eq!(disk.sound().await, [1, 10]);
    });
}

#[test]
fn of_two_deletes_without_room_one_conflicts_and_retries() {
    block_on(async {
        let (disk, db) = Disk::new(rawdoc! {}).await;
        for n in 0..9 {
            add(&db, n, 0, &[&format!("s{}", n % 3)]).await;
        }
        flush(&db).await;
        let paused = Faulty::new(Rc::new(disk.memory.clone()), Random::new(7), true);
        paused.set_full(true);
        let contexts = [1, 2].map(|_| Db::open(paused.clone(), Rc::clone(&disk.env)));
        let deletes = [("s0", &contexts[0]), ("s1", &contexts[1])];
        let deletes = deletes.map(|(series, db)| deleted(db, rawdoc! { "m": series }));
        assert_eq!(futures::future::join_all(deletes).await, [3, 3]);
        for db in &contexts {
            assert_eq!(left(db).await, [2, 5, 8]);
        }
        assert_eq!(disk.sound().await, [2, 5, 8]);
    });
}

#[test]
fn an_open_cursor_finds_each_remaining_measurement_once() {
    block_on(async {
        let (disk, db) = Disk::new(rawdoc! {}).await;
        for hour in 0..4 {
            add(&db, 10 * hour, hour * HOUR_MS, &["a", "b"]).await;
            if hour == 1 {
                flush(&db).await;
            }
        }
        let reply = db.ok(rawdoc! { "find": "c", "batchSize": 1 }).await;
        let mut cursor = reply.get_document("cursor").unwrap().clone();
        disk.faulty.set_full(true);
        assert_eq!(deleted(&disk.open(), before(3 * HOUR_MS)).await, 6);
        let mut found = numbers(&crate::support::take_rows(&mut cursor, "firstBatch"));
        let id = cursor.get_i64("id").unwrap();
        let reply = db.ok(rawdoc! { "getMore": id, "collection": "c" }).await;
        cursor = reply.get_document("cursor").unwrap().clone();
        found.extend(numbers(&crate::support::take_rows(&mut cursor, "nextBatch")));
        found.sort_unstable();
        assert!(found.ends_with(&[30, 31]) && found.is_sorted_by(|a, b| a < b), "{found:?}");
        assert_eq!(left(&db).await, [30, 31]);
    });
}

#[test]
fn a_single_measurement_is_not_deleted_without_room() {
    block_on(async {
        let (disk, db) = Disk::new(rawdoc! {}).await;
        add(&db, 0, 0, &["a"]).await;
        disk.faulty.set_full(true);
        let reply = db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": {}, "limit": 1 }] }).await;
        assert!(reply.contains_key("writeErrors"), "{reply}");
        assert_eq!(left(&db).await, [0]);
    });
}

#[test]
fn without_room_a_raw_delete_removes_buckets_without_journal_rows() {
    block_on(async {
        let (disk, db) = Disk::new(rawdoc! {}).await;
        add(&db, 0, 0, &["a", "b", "c"]).await;
        flush(&db).await;
        add(&db, 10, 0, &["b"]).await;
        disk.faulty.set_full(true);
        let statement = rawdoc! { "q": { "meta": { "$in": ["a", "b"] } }, "limit": 0 };
        let delete = rawdoc! { "delete": "system.buckets.c", "deletes": [statement], "unsafeBucketWrites": true };
        let reply = db.ok(delete).await;
        assert!(reply.contains_key("writeErrors"), "{reply}");
        assert_eq!(left(&db).await, [1, 2, 10]);
        assert_eq!(disk.sound().await, [1, 2, 10]);
    });
}

#[test]
fn without_room_retention_deletes_whole_buckets_and_old_records() {
    block_on(async {
        let (disk, db) = Disk::new(rawdoc! { "expireAfterSeconds": 86_400_i64 }).await;
        let old = NOW_MS - 90 * HOUR_MS;
        add(&db, 0, old, &["a", "b"]).await;
        flush(&db).await;
        add(&db, 10, old + HOUR_MS, &["a", "b"]).await;
        add(&db, 20, NOW_MS - HOUR_MS, &["a", "b"]).await;
        disk.faulty.set_full(true);
        let reply = db.ok(rawdoc! { "expire": 1 }).await;
        assert_eq!((reply.get_i64("nBuckets").ok(), reply.get_i64("nMeasurements").ok()), (Some(4), Some(4)));
        assert_eq!(left(&db).await, [20, 21]);
        let reply = db.ok(rawdoc! { "expire": 1 }).await;
        assert_eq!(reply.get_i64("nBuckets").ok(), Some(0));
        assert_eq!(disk.sound().await, [20, 21]);
    });
}

#[test]
fn retention_of_a_collection_does_not_depend_on_one_that_needs_room() {
    block_on(async {
        let (disk, db) = Disk::new(rawdoc! { "expireAfterSeconds": 86_400_i64 }).await;
        let old = NOW_MS - 90 * HOUR_MS;
        // One insert with old and new measurements.
        let mixed = [row(0, old, "a"), row(1, NOW_MS, "a")];
        db.insert("c", &mixed).await;
        let options = rawdoc! { "timeField": "t", "metaField": "m" };
        db.ok(rawdoc! { "create": "d", "timeseries": options, "expireAfterSeconds": 86_400_i64 }).await;
        db.insert("d", &[row(2, old, "a")]).await;
        disk.faulty.set_full(true);
        let reply = db.ok(rawdoc! { "expire": 1 }).await;
        assert_eq!(reply.get_i64("nMeasurements").ok(), Some(1), "{reply}");
        assert!(db.find(rawdoc! { "find": "d" }).await.is_empty());
        assert_eq!(db.fails(rawdoc! { "expire": 1 }).await.0, OUT_OF_DISK_SPACE);
        disk.faulty.set_full(false);
        db.ok(rawdoc! { "expire": 1 }).await;
        assert_eq!(disk.sound().await, [1]);
    });
}

#[test]
fn without_room_the_oldest_buckets_beyond_max_bytes_are_deleted() {
    block_on(async {
        let (disk, db) = Disk::new(rawdoc! { "maxBytes": 1_i64 }).await;
        for hour in 0..3 {
            add(&db, 10 * hour, hour * HOUR_MS, &["a"]).await;
        }
        flush(&db).await;
        disk.faulty.set_full(true);
        db.ok(rawdoc! { "expire": 1 }).await;
        assert!(left(&db).await.is_empty());
        assert_eq!(disk.count(b"B").await, 0);
    });
}

#[test]
fn without_room_collections_and_databases_can_be_dropped() {
    block_on(async {
        let (disk, db) = Disk::new(rawdoc! {}).await;
        db.ok(rawdoc! { "create": "d", "timeseries": { "timeField": "t" } }).await;
        add(&db, 0, 0, &["a", "b"]).await;
        flush(&db).await;
        add(&db, 10, 0, &["a", "b"]).await;
        disk.faulty.set_full(true);
        db.ok(rawdoc! { "drop": "c" }).await;
        assert_eq!(disk.entries(b"").await.iter().filter(|entry| entry.key[0] != b'C').count(), 2 + RESERVE);
        db.ok(rawdoc! { "dropDatabase": 1 }).await;
        assert!(disk.entries(b"").await.is_empty());
        disk.faulty.set_full(false);
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t" } }).await;
        let reply = db.insert("c", &[raw(&bson::doc! { "t": DateTime::from_millis(0), "n": 1_i64 })]).await;
        assert_eq!(reply.get_i32("n").ok(), Some(1));
    });
}
