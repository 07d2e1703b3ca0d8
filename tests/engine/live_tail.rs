//! Rows that are not folded yet: how they are read, and when they are folded.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bson::{DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use timepail::limits::{FOLD_BYTES_A_ROW_MAX, JOURNAL_RECORDS_MAX};
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Bytes, Change, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};

use crate::support::{Db, Random, TestEnv, multiset, take_rows};

/// Counts keys that are listed, values that are fetched, and bytes that are put.
struct Metered {
    inner: MemoryStorage,
    listed: Cell<usize>,
    fetched: Cell<usize>,
    put_bytes: Cell<usize>,
}

impl Metered {
    fn new(inner: &MemoryStorage) -> Rc<Metered> {
        let (listed, fetched, put_bytes) = (Cell::new(0), Cell::new(0), Cell::new(0));
        Rc::new(Metered { inner: inner.clone(), listed, fetched, put_bytes })
    }
}

impl Storage for Metered {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        self.fetched.set(self.fetched.get() + keys.len());
        self.inner.get_many(keys)
    }
    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        Box::pin(async move {
            let entries = self.inner.scan(ranges, page).await?;
            self.listed.set(self.listed.get() + entries.len());
            Ok(entries)
        })
    }
    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        let put = |change: &Change| match change {
            Change::Put(key, value) | Change::Insert(key, value) => key.len() + value.len(),
            _ => 0,
        };
        self.put_bytes.set(self.put_bytes.get() + changes.changes().iter().map(put).sum::<usize>());
        self.inner.commit(changes)
    }
}

async fn created(db: &Db) {
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
}

/// Inserts a row, and folds if the reply asks for it.
async fn add(db: &Db, series: usize, seconds: i64) -> bool {
    let row = rawdoc! { "t": DateTime::from_millis(seconds * 1000), "m": { "id": series as i32 }, "x": seconds as f64 };
    assert!(!db.insert("c", &[row]).await.contains_key("writeErrors"));
    let due = db.engine.maintenance_due();
    if due {
        db.ok(rawdoc! { "maintain": 1 }).await;
    }
    due
}

async fn records(storage: &dyn Storage) -> usize {
    let page = Page { entries_max: 100_000, keys_only: true };
    storage.scan(&[KeyRange::prefix(b"J")], page).await.unwrap().len()
}

#[test]
fn a_journal_of_many_small_commits_is_folded_at_a_number_of_records() {
    block_on(async {
        let storage = MemoryStorage::new();
        let db = Db::open(Rc::new(storage.clone()), TestEnv::new(1));
        created(&db).await;
        // The first command of a context asks for a pass of retention.
        db.ok(rawdoc! { "maintain": 1 }).await;
        for at in 0..3 * JOURNAL_RECORDS_MAX {
            let due = add(&db, at % 5, at as i64).await;
            assert_eq!(due, (at + 1) % JOURNAL_RECORDS_MAX == 0, "behind {} commits", at + 1);
        }
        assert_eq!(records(&storage).await, 0);
        let n = db.ok(rawdoc! { "count": "c", "query": {} }).await.get_i32("n").unwrap();
        assert_eq!(n as usize, 3 * JOURNAL_RECORDS_MAX);
    });
}

#[test]
fn folds_by_the_number_of_records_write_a_limited_number_of_bytes_per_row() {
    block_on(async {
        for series in [1, 20, 300] {
            let storage = Metered::new(&MemoryStorage::new());
            let db = Db::open(storage.clone(), TestEnv::new(1));
            created(&db).await;
            let rows = 4000;
            let (mut folds, mut bytes) = (0, 0);
            for at in 0..rows {
                let row = rawdoc! {
                    "t": DateTime::from_millis(at * 1000), "m": { "id": at as i32 * 7 % series }, "x": (at * 37 % 101) as f64 / 8.0,
                };
                db.insert("c", &[row]).await;
                let before = storage.put_bytes.get();
                if db.engine.maintenance_due() {
                    db.ok(rawdoc! { "maintain": 1 }).await;
                    folds += 1;
                }
                bytes += storage.put_bytes.get() - before;
            }
            assert!(folds > 0);
            // Rewriting a bucket with half new rows writes twice its size, plus wrappers and index entries.
            assert!(
                bytes as i64 <= 3 * rows * FOLD_BYTES_A_ROW_MAX as i64,
                "{bytes} bytes of {rows} rows of {series} series"
            );
        }
    });
}

#[test]
fn a_query_fetches_only_what_others_added_since_the_last_one() {
    block_on(async {
        let storage = MemoryStorage::new();
        let writer = Db::open(Rc::new(storage.clone()), TestEnv::new(1));
        created(&writer).await;
        let metered = Metered::new(&storage);
        let reader = Db::open(metered.clone(), TestEnv::new(2));
        let count = async || reader.ok(rawdoc! { "count": "c", "query": {} }).await.get_i32("n").unwrap();
        let spent = || (metered.listed.replace(0), metered.fetched.replace(0));
        for at in 0..100 {
            add(&writer, at % 5, at as i64).await;
        }
        assert_eq!(count().await, 100);
        spent();
        assert_eq!(count().await, 100);
        // The markers of the collection.
        let nothing_new = spent();
        assert!(nothing_new.0 <= 4 && nothing_new.1 == 0, "{nothing_new:?}");
        add(&writer, 3, 100).await;
        add(&writer, 4, 101).await;
        assert_eq!(count().await, 102);
        assert_eq!(spent(), (nothing_new.0 + 2, 2));
        // The context has its own rows in memory.
        add(&reader, 3, 102).await;
        spent();
        assert_eq!(count().await, 103);
        assert_eq!(spent(), nothing_new);
    });
}

#[test]
fn a_delete_of_whole_journal_records_writes_no_bucket() {
    block_on(async {
        let storage = Metered::new(&MemoryStorage::new());
        let [db, other] = [1, 2].map(|seed| Db::open(storage.clone(), TestEnv::new(seed)));
        created(&db).await;
        let delete = async |filter: RawDocumentBuf| {
            let reply = db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": filter, "limit": 0 }] }).await;
            assert!(!reply.contains_key("writeErrors"), "{reply}");
            reply.get_i32("n").unwrap()
        };
        let count = async |db: &Db| db.ok(rawdoc! { "count": "c", "query": {} }).await.get_i32("n").unwrap();
        let buckets = async || {
            let page = Page { entries_max: 100_000, keys_only: true };
            storage.scan(&[KeyRange::prefix(b"B")], page).await.unwrap().len()
        };
        for at in 0..100_i64 {
            let db = if at % 3 == 0 { &other } else { &db };
            let row = |id: i32| rawdoc! { "t": DateTime::from_millis(at * 1000), "m": { "id": id }, "x": at as f64 };
            db.insert("c", &[row(1), row(2), row(3)]).await;
        }
        assert_eq!((count(&db).await, count(&other).await), (300, 300));
        storage.put_bytes.set(0);
        let half = DateTime::from_millis(50_000);
        assert_eq!(delete(rawdoc! { "t": { "$lt": half } }).await, 150);
        assert!(storage.put_bytes.get() < 100, "the epoch, and nothing else");
        assert_eq!((buckets().await, records(&*storage).await), (0, 50));
        assert_eq!((count(&db).await, count(&other).await), (150, 150));
        // A delete of one series matches a part of each record, so these are folded.
        assert_eq!(delete(rawdoc! { "m.id": 2, "t": { "$lt": DateTime::from_millis(60_000) } }).await, 10);
        assert!(buckets().await > 0);
        assert_eq!((count(&db).await, count(&other).await), (140, 140));
        assert_eq!(delete(rawdoc! {}).await, 140);
        assert_eq!((count(&db).await, count(&other).await, records(&*storage).await), (0, 0, 0));
        // Later rows go to buckets that stayed open, and are found.
        db.insert("c", &[rawdoc! { "t": DateTime::from_millis(100_000), "m": { "id": 1 }, "x": 1.5 }]).await;
        assert_eq!((count(&db).await, count(&other).await), (1, 1));
        assert!(db.ok(rawdoc! { "validate": "c", "full": true }).await.get_bool("valid").unwrap());
        db.ok(rawdoc! { "flush": 1 }).await;
        assert_eq!((count(&other).await, records(&*storage).await), (1, 0));
    });
}

#[test]
fn a_delete_of_one_series_removes_its_records_and_keeps_those_between() {
    block_on(async {
        let storage = Metered::new(&MemoryStorage::new());
        let db = Db::open(storage.clone(), TestEnv::new(1));
        created(&db).await;
        for at in 0..60 {
            add(&db, at % 3, at as i64).await;
        }
        let delete = async |filter: RawDocumentBuf| {
            storage.put_bytes.set(0);
            let reply = db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": filter, "limit": 0 }] }).await;
            assert!(storage.put_bytes.get() < 100, "the epoch, and nothing else");
            reply.get_i32("n").unwrap()
        };
        assert_eq!(delete(rawdoc! { "m.id": 1 }).await, 20);
        assert_eq!(delete(rawdoc! { "m": { "id": 2 }, "t": { "$lt": DateTime::from_millis(30_000) } }).await, 10);
        assert_eq!(delete(rawdoc! { "m.id": 7 }).await, 0);
        assert_eq!(records(&*storage).await, 30);
        for db in [&db, &Db::open(storage.clone(), TestEnv::new(2))] {
            let left = db.find(rawdoc! { "find": "c", "sort": { "t": 1 } }).await;
            let left: Vec<f64> = left.iter().map(|row| row.get_f64("x").unwrap()).collect();
            let stays = |at: &i32| at % 3 == 0 || at % 3 == 2 && *at >= 30;
            assert_eq!(left, (0..60).filter(stays).map(f64::from).collect::<Vec<_>>());
        }
    });
}

#[test]
fn the_newest_row_of_a_series_is_found_without_listing_buckets_of_other_series() {
    block_on(async {
        let storage = MemoryStorage::new();
        let writer = Db::open(Rc::new(storage.clone()), TestEnv::new(1));
        created(&writer).await;
        let (series, hours) = (12, 80);
        for hour in 0..hours {
            let at = DateTime::from_millis(i64::from(hour) * 3_600_000);
            let rows: Vec<_> =
                (0..series).map(|id| rawdoc! { "t": at, "m": { "id": id }, "x": f64::from(hour) }).collect();
            writer.insert("c", &rows).await;
        }
        writer.ok(rawdoc! { "flush": 1 }).await;
        let metered = Metered::new(&storage);
        let reader = Db::open(metered.clone(), TestEnv::new(2));
        let newest = async |filter: RawDocumentBuf| {
            let group = rawdoc! { "_id": "$m.id", "x": { "$first": "$x" } };
            let pipeline =
                [rawdoc! { "$match": filter }, rawdoc! { "$sort": { "t": -1 } }, rawdoc! { "$group": group }];
            let pipeline: bson::RawArrayBuf = pipeline.into_iter().collect();
            metered.listed.set(0);
            let mut reply = reader.ok(rawdoc! { "aggregate": "c", "pipeline": pipeline, "cursor": {} }).await;
            take_rows(reply.get_document_mut("cursor").unwrap(), "firstBatch")
        };
        assert_eq!(newest(rawdoc! { "m": { "id": 5 } }).await, [doc! { "_id": 5, "x": 79.0 }]);
        assert!(metered.listed.get() < 6 * hours as usize, "{} keys", metered.listed.get());
        // A query for all series lists all buckets once, and later queries for one series use that list.
        assert_eq!(newest(rawdoc! {}).await.len(), series as usize);
        assert!(metered.listed.get() >= (series * hours) as usize);
        metered.fetched.set(0);
        assert_eq!(newest(rawdoc! { "m": { "id": 6 } }).await, [doc! { "_id": 6, "x": 79.0 }]);
        assert!(metered.listed.get() < 2 * hours as usize && metered.fetched.get() <= 2);
    });
}

/// The rows of a query.
async fn answer(db: &Db, command: &RawDocumentBuf) -> Vec<Vec<u8>> {
    let mut reply = db.ok(command.clone()).await;
    let rows: Vec<Document> = match reply.get_document_mut("cursor") {
        Ok(cursor) => take_rows(cursor, "firstBatch"),
        // `distinct` returns values in the order of the rows.
        Err(_) => match reply.get_array("values") {
            Ok(values) => values.iter().map(|value| doc! { "value": value.clone() }).collect(),
            Err(_) => vec![doc! { "n": reply.get_i32("n").unwrap() }],
        },
    };
    multiset(&rows)
}

#[test]
fn rows_in_journals_answer_queries_like_the_same_rows_in_buckets() {
    let at = |seconds: i64| DateTime::from_millis(seconds * 1000);
    let group = |by: RawDocumentBuf| rawdoc! { "aggregate": "c", "pipeline": [{ "$group": by }], "cursor": {} };
    let mut queries = vec![
        rawdoc! { "find": "c", "filter": {}, "batchSize": 10_000 },
        rawdoc! { "find": "c", "filter": { "m.id": 2 }, "batchSize": 10_000 },
        rawdoc! { "find": "c", "filter": { "m": { "id": 2.0 } }, "batchSize": 10_000 },
        rawdoc! { "find": "c", "filter": { "m": { "id": 2 }, "t": { "$gte": at(900), "$lt": at(4000) } }, "batchSize": 10_000 },
        rawdoc! { "find": "c", "filter": { "t": { "$gte": at(900), "$lt": at(4000) } }, "batchSize": 10_000 },
        rawdoc! { "find": "c", "filter": { "x": { "$gt": 95 } }, "projection": { "x": 1, "t": 1 }, "batchSize": 10_000 },
        rawdoc! { "find": "c", "filter": { "y": { "$exists": true } }, "batchSize": 10_000 },
        rawdoc! { "find": "c", "filter": { "y": null }, "batchSize": 10_000 },
        rawdoc! { "find": "c", "filter": {}, "sort": { "t": -1, "m.id": 1, "x": 1, "y": 1 }, "limit": 7 },
        rawdoc! { "count": "c", "query": {} },
        rawdoc! { "count": "c", "query": { "t": { "$gte": at(900) } } },
        rawdoc! { "distinct": "c", "key": "m.id" },
        rawdoc! { "distinct": "c", "key": "x", "query": { "m.id": 1 } },
        group(
            rawdoc! { "_id": "$m.id", "n": { "$sum": 1 }, "low": { "$min": "$x" }, "high": { "$max": "$x" }, "last": { "$max": "$t" } },
        ),
    ];
    queries.push(rawdoc! { "aggregate": "c", "cursor": {}, "pipeline": [
    { "$sort": { "t": -1 } }, { "$group": { "_id": "$m.id", "newest": { "$first": "$t" } } } ] });
    queries.push(rawdoc! { "aggregate": "c", "cursor": {}, "pipeline": [
        { "$group": { "_id": { "id": "$m.id", "hour": { "$dateTrunc": { "date": "$t", "unit": "hour" } } }, "sum": { "$sum": "$x" } } } ] });
    block_on(async {
        for seed in 0..12 {
            let random = Random::new(seed);
            let storage = MemoryStorage::new();
            let dbs = [1, 2].map(|context| Db::open(Rc::new(storage.clone()), TestEnv::new(100 * seed + context)));
            let plain = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(7));
            created(&dbs[0]).await;
            created(&plain).await;
            let asked = RefCell::new(0);
            for commit in 0..60 {
                let rows: Vec<RawDocumentBuf> = (0..=random.below(12))
                    .map(|_| {
                        let mut row = rawdoc! {
                            "t": at(commit * 100 + random.below(150) as i64), "m": { "id": random.below(4) as i32 },
                        };
                        match random.below(12) {
                            0 => row.append(bson::cstr!("x"), "text"),
                            1 => {}
                            _ => row.append(bson::cstr!("x"), random.below(100) as f64),
                        }
                        if random.chance(20) {
                            row.append(bson::cstr!("y"), random.below(3) as i32);
                        }
                        row
                    })
                    .collect();
                let db = &dbs[random.below(2) as usize];
                db.insert("c", &rows).await;
                plain.insert("c", &rows).await;
                // Tails grow between two queries, some of them after a part was folded.
                if random.chance(8) {
                    db.ok(rawdoc! { "flush": 1 }).await;
                }
                if random.chance(30) {
                    let query = &queries[random.below(queries.len() as u64) as usize];
                    let other = &dbs[random.below(2) as usize];
                    plain.ok(rawdoc! { "flush": 1 }).await;
                    assert_eq!(answer(other, query).await, answer(&plain, query).await, "seed {seed}, {query:?}");
                    *asked.borrow_mut() += 1;
                }
            }
            assert!(*asked.borrow() > 0);
            plain.ok(rawdoc! { "flush": 1 }).await;
            for query in &queries {
                for db in &dbs {
                    assert_eq!(answer(db, query).await, answer(&plain, query).await, "seed {seed}, {query:?}");
                }
            }
        }
    });
}
