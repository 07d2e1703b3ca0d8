//! Buckets of every version: their documents, and equal answers to every query.

use std::rc::Rc;

use bson::spec::BinarySubtype;
use bson::{Binary, DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use timepail::bucket::BucketFormat;
use timepail::storage::memory::MemoryStorage;

use crate::support::rows::{a_filter, matching, measurement, times_of};
use crate::support::{Db, Random, TestEnv, canonical, multiset, raw};

fn plain() -> Db {
    Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1))
}

async fn weather(db: &Db) {
    db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "station" } }).await;
}

fn reading(ms: i64, station: &str, temp: f64) -> RawDocumentBuf {
    rawdoc! { "at": DateTime::from_millis(ms), "station": station, "temp": temp }
}

/// The only bucket of two readings, before and after a fold.
async fn bucket_of_two_readings(db: &Db) -> Document {
    weather(db).await;
    db.insert("weather", &[reading(61_000, "a", 1.5), reading(62_000, "a", -2.5)]).await;
    let before = db.find(rawdoc! { "find": "system.buckets.weather" }).await;
    db.ok(rawdoc! { "flush": 1 }).await;
    let after = db.find(rawdoc! { "find": "system.buckets.weather" }).await;
    assert_eq!((before.len(), &before), (1, &after));
    let id = before[0].get_object_id("_id").unwrap();
    assert_eq!(&id.bytes()[..4], &60_u32.to_be_bytes());
    before[0].clone()
}

#[test]
fn a_bucket_document_has_the_servers_shape_and_is_the_same_before_and_after_a_fold() {
    block_on(async {
        let bucket = bucket_of_two_readings(&plain()).await;
        let column = |bytes: &str| Binary { subtype: BinarySubtype::Column, bytes: unhex(bytes) };
        assert_eq!(
            bucket,
            doc! {
                "_id": bucket.get_object_id("_id").unwrap(),
                "control": {
                    "version": 2,
                    "min": { "at": DateTime::from_millis(60_000), "temp": -2.5 },
                    "max": { "at": DateTime::from_millis(62_000), "temp": 1.5 },
                    "count": 2,
                },
                "meta": "a",
                "data": {
                    // 61000; then one word: the delta grew by 1000, which is zigzag 2000 in sixty bits.
                    "at": column("0900 48ee000000000000 80 0e7d000000000000 00"),
                    // 1.5; then one word in tenths: -40, zigzag 79.
                    "temp": column("0100 000000000000f83f a0 fe04000000000000 00"),
                },
            }
        );
    });
}

#[test]
fn a_database_opened_for_version_1_writes_uncompressed_buckets() {
    block_on(async {
        let db = Db::open_as(BucketFormat::Uncompressed, Rc::new(MemoryStorage::new()), TestEnv::new(1));
        let bucket = bucket_of_two_readings(&db).await;
        assert_eq!(
            bucket,
            doc! {
                "_id": bucket.get_object_id("_id").unwrap(),
                "control": {
                    "version": 1,
                    "min": { "at": DateTime::from_millis(60_000), "temp": -2.5 },
                    "max": { "at": DateTime::from_millis(62_000), "temp": 1.5 },
                },
                "meta": "a",
                "data": {
                    "at": { "0": DateTime::from_millis(61_000), "1": DateTime::from_millis(62_000) },
                    "temp": { "0": 1.5, "1": -2.5 },
                },
            }
        );
    });
}

#[test]
fn a_batch_that_begins_before_the_last_row_of_a_bucket_makes_it_version_3() {
    block_on(async {
        let db = plain();
        weather(&db).await;
        let versions = |buckets: Vec<Document>| {
            let control = buckets.iter().map(|bucket| bucket.get_document("control").unwrap());
            control.map(|control| control.get_i32("version").unwrap()).collect::<Vec<_>>()
        };
        // Rows of one batch are sorted.
        db.insert("weather", &[reading(63_000, "a", 1.0), reading(61_000, "a", 2.0)]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        assert_eq!(versions(db.find(rawdoc! { "find": "system.buckets.weather" }).await), [2]);
        for (at, expected) in [(63_000, 2), (62_000, 3), (70_000, 3)] {
            db.insert("weather", &[reading(at, "a", 3.0)]).await;
            db.ok(rawdoc! { "flush": 1 }).await;
            let buckets = db.find(rawdoc! { "find": "system.buckets.weather" }).await;
            assert_eq!(versions(buckets), [expected], "at {at}");
        }
        let buckets = db.find(rawdoc! { "find": "system.buckets.weather" }).await;
        assert_eq!(times_of(&buckets[0], "at"), [61_000, 63_000, 63_000, 62_000, 70_000]);
    });
}

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| *b != b' ').collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// A database with `docs` in buckets, inserted in batches of `batch`, with a fold after each.
async fn database(format: BucketFormat, docs: &[Document], batch: usize, seed: u64) -> Db {
    let db = Db::open_as(format, Rc::new(MemoryStorage::new()), TestEnv::new(seed));
    let timeseries = rawdoc! { "timeField": "t", "metaField": "m", "granularity": "hours" };
    db.ok(rawdoc! { "create": "c", "timeseries": timeseries }).await;
    for docs in docs.chunks(batch) {
        db.insert("c", &docs.iter().map(raw).collect::<Vec<_>>()).await;
        db.ok(rawdoc! { "flush": 1 }).await;
    }
    db
}

async fn versions(db: &Db) -> Vec<i32> {
    let buckets = db.find(rawdoc! { "find": "system.buckets.c" }).await;
    let mut found: Vec<i32> =
        buckets.iter().map(|b| b.get_document("control").unwrap().get_i32("version").unwrap()).collect();
    found.sort_unstable();
    found.dedup();
    found
}

async fn compare(seed: u64) {
    let random = Random::new(seed);
    let docs: Vec<Document> = (0..300).map(|n| measurement(&random, n)).collect();
    let mut in_order = docs.clone();
    in_order.sort_by_key(|d| d.get_datetime("t").unwrap().timestamp_millis());
    let dbs = [
        database(BucketFormat::Uncompressed, &docs, 50, seed).await,
        database(BucketFormat::Compressed, &in_order, 300, seed).await,
        database(BucketFormat::Compressed, &docs, 20, seed).await,
    ];
    assert_eq!(versions(&dbs[0]).await, [1], "seed {seed}");
    assert_eq!(versions(&dbs[1]).await, [2], "seed {seed}");
    assert!(versions(&dbs[2]).await.contains(&3), "seed {seed}");
    for _ in 0..12 {
        let filter = a_filter(&random);
        let expected = multiset(matching(&docs, &filter));
        let sort = if random.chance(50) {
            doc! { "t": 1, "n": 1 }
        } else {
            doc! { "x": -1, "n": 1 }
        };
        let projection = if random.chance(50) {
            doc! {}
        } else {
            doc! { "x": 1, "n": 1, "_id": 0 }
        };
        let command = rawdoc! {
            "find": "c", "filter": raw(&filter), "sort": raw(&sort), "projection": raw(&projection), "skip": 3,
        };
        let count = rawdoc! { "count": "c", "query": raw(&filter) };
        let mut sorted: Vec<Vec<Vec<u8>>> = Vec::new();
        for db in &dbs {
            let found = db.find(rawdoc! { "find": "c", "filter": raw(&filter) }).await;
            assert_eq!(multiset(&found), expected, "seed {seed}: {filter}");
            let n = db.ok(count.clone()).await.get_i32("n").unwrap();
            assert_eq!(n as usize, expected.len(), "seed {seed}: count {filter}");
            // The numbers make the order unique.
            sorted.push(db.find(command.clone()).await.iter().map(canonical).collect());
        }
        assert_eq!(sorted[0].len(), expected.len().saturating_sub(3));
        assert!(sorted.windows(2).all(|pair| pair[0] == pair[1]), "seed {seed}: {filter} by {sort}");
    }
    let filter = a_filter(&random);
    for db in &dbs {
        db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": raw(&filter), "limit": 0 }] }).await;
    }
    let gone = multiset(matching(&docs, &filter));
    let left = multiset(docs.iter().filter(|d| gone.binary_search(&canonical(d)).is_err()));
    for db in &dbs {
        assert_eq!(multiset(&db.find(rawdoc! { "find": "c" }).await), left, "seed {seed}: after deleting {filter}");
    }
}

#[test]
fn versions_1_2_and_3_of_the_same_rows_answer_every_query_alike() {
    for seed in 0..25 {
        block_on(compare(seed));
    }
}
