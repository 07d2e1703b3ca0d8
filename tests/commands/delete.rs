//! Deletes: which columns they decode, what stays in the journal, the number of requests, and concurrent writers.

use std::cell::RefCell;
use std::rc::Rc;

use bson::spec::BinarySubtype;
use bson::{Binary, Bson, DateTime, Document, RawDocumentBuf, rawdoc};
use futures::executor::block_on;
use timepail::engine::stored_bucket::StoredBucket;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Bytes, Change, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};
use timepail::value::DocBuf;

use crate::support::{Db, TestEnv, raw};

const HOUR_MS: i64 = 3_600_000;

/// Keeps the last changeset, and runs something before the next fetch or commit.
struct Watched {
    inner: MemoryStorage,
    last: RefCell<Vec<Change>>,
    meanwhile: RefCell<Option<Changeset>>,
}

impl Watched {
    fn new(inner: MemoryStorage) -> Rc<Watched> {
        Rc::new(Watched { inner, last: RefCell::default(), meanwhile: RefCell::default() })
    }
}

impl Storage for Watched {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        let meanwhile = if keys.is_empty() { None } else { self.meanwhile.take() };
        Box::pin(async move {
            if let Some(meanwhile) = meanwhile {
                self.inner.commit(meanwhile).await?;
            }
            self.inner.get_many(keys).await
        })
    }
    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        self.inner.scan(ranges, page)
    }
    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        *self.last.borrow_mut() = changes.changes().to_vec();
        let meanwhile = self.meanwhile.take();
        Box::pin(async move {
            if let Some(meanwhile) = meanwhile {
                self.inner.commit(meanwhile).await?;
            }
            self.inner.commit(changes).await
        })
    }
}

async fn keys(storage: &dyn Storage, prefix: &[u8]) -> Vec<Entry> {
    let range = KeyRange { start: prefix.to_vec(), end: [prefix, &[0xFF; 9]].concat() };
    storage.scan(&[range], Page { entries_max: 10_000, keys_only: false }).await.unwrap()
}

fn reading(ms: i64, series: &str) -> RawDocumentBuf {
    rawdoc! { "t": DateTime::from_millis(ms), "m": series, "x": ms as f64 }
}

/// A collection of `series` times `hours` folded buckets of sixty measurements each.
async fn filled(db: &Db, series: &[&str], hours: i64) {
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    for hour in 0..hours {
        let docs: Vec<_> = (0..60)
            .flat_map(|minute| series.iter().map(move |s| reading(hour * HOUR_MS + minute * 60_000, s)))
            .collect();
        assert!(!db.insert("c", &docs).await.contains_key("writeErrors"));
    }
    db.ok(rawdoc! { "flush": 1 }).await;
}

async fn delete_before(db: &Db, ms: i64) -> i32 {
    let filter = rawdoc! { "t": { "$lt": DateTime::from_millis(ms) } };
    let reply = db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": filter, "limit": 0 }] }).await;
    assert!(!reply.contains_key("writeErrors"), "{reply}");
    reply.get_i32("n").unwrap()
}

/// Makes every column of the buckets that begin before `ms` unreadable, the time column included.
async fn damage_columns_before(storage: &dyn Storage, ms: i64) {
    for entry in keys(storage, b"B").await {
        let stored = StoredBucket::decode(entry.value).unwrap();
        let mut document = Document::from_reader(stored.document.view().as_bytes()).unwrap();
        let control = document.get_document("control").unwrap();
        if control.get_document("min").unwrap().get_datetime("t").unwrap().timestamp_millis() >= ms {
            continue;
        }
        for (_, column) in document.get_document_mut("data").unwrap().iter_mut() {
            let subtype = match column {
                Bson::Binary(Binary { subtype, .. }) => *subtype,
                _ => BinarySubtype::Generic,
            };
            *column = Bson::Binary(Binary { subtype, bytes: vec![0x7F, 1, 2, 3] });
        }
        let document = DocBuf::parse(raw(&document).into_bytes()).unwrap();
        let mut changes = Changeset::new();
        changes.put(entry.key, StoredBucket::encode(&stored.coverage, document.view()));
        storage.commit(changes).await.unwrap();
    }
}

#[test]
fn a_delete_by_time_decodes_only_the_buckets_that_it_rewrites() {
    block_on(async {
        let storage = MemoryStorage::new();
        let db = Db::open(Rc::new(storage.clone()), TestEnv::new(1));
        filled(&db, &["a", "b"], 6).await;
        damage_columns_before(&storage, 3 * HOUR_MS).await;
        assert_eq!(delete_before(&db, 3 * HOUR_MS + 20 * 60_000).await, 2 * (180 + 20));
        let found = db.find(rawdoc! { "find": "c", "sort": { "t": 1 } }).await;
        assert_eq!(found.len(), 2 * (40 + 120));
        assert_eq!(found[0].get_datetime("t").unwrap().timestamp_millis(), 3 * HOUR_MS + 20 * 60_000);
        let buckets = db.find(rawdoc! { "find": "system.buckets.c" }).await;
        let cut: Vec<_> = buckets.iter().map(|b| b.get_document("control").unwrap()).collect();
        let counts: Vec<_> = cut.iter().map(|control| control.get_i32("count").unwrap()).collect();
        assert_eq!(counts, [40, 40, 60, 60, 60, 60]);
        let min = cut[0].get_document("min").unwrap();
        assert_eq!(min.get_datetime("t").unwrap().timestamp_millis(), 3 * HOUR_MS, "the start of a cut bucket stays");
        assert_eq!(min.get_f64("x").unwrap(), (3 * HOUR_MS + 20 * 60_000) as f64);
        assert_eq!(keys(&storage, b"I").await.len(), 6);
    });
}

#[test]
fn adjacent_buckets_are_removed_with_one_range_and_their_index_entries_with_one_per_series() {
    block_on(async {
        let storage = Watched::new(MemoryStorage::new());
        let db = Db::open(storage.clone(), TestEnv::new(1));
        filled(&db, &["a", "b", "c"], 10).await;
        assert_eq!(delete_before(&db, 8 * HOUR_MS).await, 3 * 8 * 60);
        let last = storage.last.borrow().clone();
        let ranges = last.iter().filter(|c| matches!(c, Change::DeleteRange(_))).count();
        assert_eq!((last.len(), ranges), (7, 4), "the epoch, one range of buckets, one range a series: {last:?}");
        assert_eq!((keys(&*storage, b"B").await.len(), keys(&*storage, b"I").await.len()), (6, 6));
        for series in ["a", "b", "c"] {
            assert_eq!(db.find(rawdoc! { "find": "c", "filter": { "m": series } }).await.len(), 120);
        }
    });
}

#[test]
fn index_entries_of_remaining_buckets_split_the_deleted_ranges() {
    block_on(async {
        let storage = Watched::new(MemoryStorage::new());
        let db = Db::open(storage.clone(), TestEnv::new(1));
        filled(&db, &["a", "b"], 10).await;
        // Both series have the same hours, so that in `_id` order every second bucket stays.
        let filter = rawdoc! { "m": { "$in": ["a"] }, "t": { "$lt": DateTime::from_millis(8 * HOUR_MS) } };
        db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": filter, "limit": 0 }] }).await;
        assert_eq!((keys(&*storage, b"B").await.len(), keys(&*storage, b"I").await.len()), (12, 12));
        let hours = rawdoc! { "$or": [{ "t": { "$lt": DateTime::from_millis(3 * HOUR_MS) } },
        { "t": { "$gte": DateTime::from_millis(5 * HOUR_MS), "$lt": DateTime::from_millis(7 * HOUR_MS) } }] };
        db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": hours, "limit": 0 }] }).await;
        assert_eq!((keys(&*storage, b"B").await.len(), keys(&*storage, b"I").await.len()), (7, 7));
        assert_eq!(db.find(rawdoc! { "find": "c", "filter": { "m": "a" } }).await.len(), 120);
        assert_eq!(db.find(rawdoc! { "find": "c", "filter": { "m": "b" } }).await.len(), 300);
    });
}

#[test]
fn a_bucket_added_inside_a_deleted_range_is_examined_first() {
    block_on(async {
        let memory = MemoryStorage::new();
        let storage = Watched::new(memory.clone());
        let env = TestEnv::new(1);
        let db = Db::open(storage.clone(), Rc::clone(&env));
        filled(&db, &["a", "b"], 4).await;
        // Another context folds a bucket that spans the bound between the read and the commit.
        let other = MemoryStorage::new();
        let copy = keys(&memory, b"").await.into_iter().filter(|e| e.key[0] != b'B' && e.key[0] != b'I');
        let mut changes = Changeset::new();
        copy.for_each(|entry| changes.put(entry.key, entry.value));
        other.commit(changes).await.unwrap();
        let second = Db::open(Rc::new(other.clone()), env);
        second.insert("c", &[reading(HOUR_MS + 1000, "b"), reading(2 * HOUR_MS - 1000, "b")]).await;
        second.ok(rawdoc! { "flush": 1 }).await;
        let mut meanwhile = Changeset::new();
        meanwhile.delete_range(KeyRange::prefix(b"M"));
        for prefix in [b"M", b"B", b"I"] {
            keys(&other, prefix).await.into_iter().for_each(|entry| meanwhile.put(entry.key, entry.value));
        }
        *storage.meanwhile.borrow_mut() = Some(meanwhile);
        assert_eq!(delete_before(&db, 2 * HOUR_MS - 5000).await, 2 * 120 + 1);
        let left = db.find(rawdoc! { "find": "c", "filter": { "t": { "$lt": DateTime::from_millis(2 * HOUR_MS) } } });
        assert_eq!(left.await.len(), 1);
        assert_eq!(keys(&memory, b"I").await.len(), 5);
    });
}

#[test]
fn a_bucket_changed_by_others_is_not_rewritten_from_the_cache() {
    block_on(async {
        let memory = MemoryStorage::new();
        let storage = Watched::new(memory.clone());
        let env = TestEnv::new(1);
        filled(&Db::open(Rc::new(memory.clone()), Rc::clone(&env)), &["a"], 1).await;
        let other = MemoryStorage::new();
        let mut copy = Changeset::new();
        keys(&memory, b"").await.into_iter().for_each(|entry| copy.put(entry.key, entry.value));
        other.commit(copy).await.unwrap();
        let second = Db::open(Rc::new(other.clone()), Rc::clone(&env));
        second.insert("c", &[reading(HOUR_MS - 1000, "a")]).await;
        second.ok(rawdoc! { "flush": 1 }).await;
        let mut again = Changeset::new();
        again.delete_range(KeyRange::prefix(b"M"));
        for prefix in [b"M", b"B"] {
            keys(&other, prefix).await.into_iter().for_each(|entry| again.put(entry.key, entry.value));
        }
        // In memory it has sixty measurements.
        let db = Db::open(storage.clone(), env);
        assert_eq!(db.find(rawdoc! { "find": "c", "filter": { "m": "a" } }).await.len(), 60);
        *storage.meanwhile.borrow_mut() = Some(again);
        let filter = rawdoc! { "m": "a", "t": { "$lt": DateTime::from_millis(300_000) } };
        let reply = db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": filter, "limit": 0 }] }).await;
        assert_eq!(reply.get_i32("n").ok(), Some(5));
        assert_eq!(db.find(rawdoc! { "find": "c" }).await.len(), 61 - 5);
    });
}

#[test]
fn journal_rows_out_of_reach_of_a_delete_are_not_folded() {
    block_on(async {
        let storage = MemoryStorage::new();
        let db = Db::open(Rc::new(storage.clone()), TestEnv::new(1));
        filled(&db, &["a"], 2).await;
        db.insert("c", &[reading(10 * HOUR_MS, "a")]).await;
        db.insert("c", &[reading(11 * HOUR_MS, "a")]).await;
        assert_eq!(delete_before(&db, HOUR_MS).await, 60);
        assert_eq!(keys(&storage, b"J").await.len(), 2);
        // All rows of that commit match: its record is removed, and earlier records stay.
        db.insert("c", &[reading(1000, "z")]).await;
        assert_eq!(delete_before(&db, HOUR_MS).await, 1);
        assert_eq!(keys(&storage, b"J").await.len(), 2);
        // Half of the rows of this commit match.
        db.insert("c", &[reading(1000, "z"), reading(13 * HOUR_MS, "z")]).await;
        db.insert("c", &[reading(12 * HOUR_MS, "a")]).await;
        assert_eq!(delete_before(&db, HOUR_MS).await, 1);
        assert_eq!(keys(&storage, b"J").await.len(), 1);
        assert_eq!(db.find(rawdoc! { "find": "c" }).await.len(), 64);
    });
}

#[test]
fn records_behind_the_last_matching_row_are_not_folded() {
    block_on(async {
        let storage = MemoryStorage::new();
        let db = Db::open(Rc::new(storage.clone()), TestEnv::new(1));
        filled(&db, &["a"], 1).await;
        for n in 0..6 {
            let row = rawdoc! { "t": DateTime::from_millis(1000 * n), "m": "a", "v": n };
            db.insert("c", &[row]).await;
        }
        let delete = async |q: RawDocumentBuf, limit: i32| {
            let reply = db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": q, "limit": limit }] }).await;
            (reply.get_i32("n").unwrap(), keys(&storage, b"J").await.len())
        };
        assert_eq!(delete(rawdoc! { "v": 77 }, 0).await, (0, 6));
        assert_eq!(delete(rawdoc! { "v": { "$in": [1_i64, 2_i64] } }, 0).await, (2, 3));
        assert_eq!(delete(rawdoc! { "v": { "$gt": 0_i64, "$lt": 5_i64 } }, 1).await, (1, 1));
        assert_eq!(delete(rawdoc! { "v": 5_i64, "m": "a" }, 1).await, (1, 0));
        let left = db.find(rawdoc! { "find": "c", "filter": { "v": { "$gte": 0 } }, "sort": { "v": 1 } }).await;
        assert_eq!(left.iter().map(|row| row.get_i64("v").unwrap()).collect::<Vec<_>>(), [0, 4]);
    });
}

#[test]
fn buckets_not_touched_by_a_delete_stay_open() {
    block_on(async {
        let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
        filled(&db, &["a", "b"], 3).await;
        delete_before(&db, HOUR_MS).await;
        db.insert("c", &[reading(3 * HOUR_MS - 1, "a")]).await;
        assert_eq!(db.find(rawdoc! { "find": "system.buckets.c" }).await.len(), 4);
    });
}
