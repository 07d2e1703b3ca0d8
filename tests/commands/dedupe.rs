//! Collections in which a measurement that is sent again is one measurement.

use std::cell::Cell;
use std::rc::Rc;

use bson::{DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use timepail::bucket::BucketFormat;
use timepail::catalog::CatalogOptions;
use timepail::engine::signal::yield_now;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{KeyRange, Page, Storage};

use crate::support::faults::Faulty;
use crate::support::{Db, Random, TestEnv, checks, raw};

fn contexts(count: u64) -> Vec<Db> {
    let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
    let env = TestEnv::new(5);
    (0..count).map(|_| Db::open(Rc::clone(&storage), Rc::clone(&env))).collect()
}

fn row(second: i64, series: &str, n: i32) -> RawDocumentBuf {
    rawdoc! { "t": DateTime::from_millis(1000 * second), "m": series, "n": n }
}

async fn create(db: &Db, dedupe: Document) {
    let timeseries = doc! { "timeField": "t", "metaField": "m" };
    db.ok(raw(&doc! { "create": "c", "timeseries": timeseries, "dedupe": dedupe })).await;
}

async fn insert(db: &Db, rows: &[RawDocumentBuf]) {
    let reply = db.insert("c", rows).await;
    assert_eq!(reply.get_i32("n").ok(), Some(rows.len() as i32), "{reply}");
}

/// The values of `n`, by series and time.
async fn numbers(db: &Db) -> Vec<i32> {
    let rows = db.find(rawdoc! { "find": "c", "sort": { "m": 1, "t": 1, "c": 1 } }).await;
    rows.iter().map(|row| row.get_i32("n").unwrap()).collect()
}

async fn stat(db: &Db, name: &str) -> i64 {
    let reply = db.ok(rawdoc! { "collStats": "c" }).await;
    reply.get_document("timeseries").unwrap().get_i64(name).unwrap()
}

#[test]
fn a_resent_measurement_replaces_the_first_one_or_is_ignored() {
    block_on(async {
        for (keep, expected) in [("last", [2, 20, 30]), ("first", [1, 20, 30])] {
            for folds in [false, true] {
                let db = contexts(1).remove(0);
                create(&db, doc! { "keep": keep }).await;
                insert(&db, &[row(1, "a", 1), row(2, "a", 20)]).await;
                if folds {
                    db.ok(rawdoc! { "flush": 1 }).await;
                }
                insert(&db, &[row(1, "a", 2), row(1, "b", 30)]).await;
                assert_eq!(numbers(&db).await, expected);
                db.ok(rawdoc! { "flush": 1 }).await;
                assert_eq!((numbers(&db).await, stat(&db, "numDuplicatesRemoved").await), (expected.to_vec(), 1));
                assert_eq!(db.ok(rawdoc! { "count": "c" }).await.get_i32("n").ok(), Some(3));
            }
        }
    });
}

#[test]
fn measurements_whose_buckets_would_have_equal_ids_are_all_kept() {
    block_on(async {
        for span in [64, 3600] {
            // Two buckets in each window: the second one begins in the second of its only row.
            let options = CatalogOptions { bucket_count_max: 1, ..CatalogOptions::default() };
            let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
            let db = Db::open_with(BucketFormat::Compressed, options, storage, TestEnv::new(5));
            let timeseries = doc! { "timeField": "t", "metaField": "m", "bucketMaxSpanSeconds": span, "bucketRoundingSeconds": span };
            db.ok(raw(&doc! { "create": "c", "timeseries": timeseries, "dedupe": {} })).await;
            // From 2038 on, ids repeat after 2^32 seconds.
            let seconds = [1_i64 << 31, 1 << 32, 3 << 31];
            let rows: Vec<_> = seconds.iter().flat_map(|s| [row(s + 30, "a", 1), row(s + 59, "a", 2)]).collect();
            insert(&db, &rows).await;
            for _ in 0..2 {
                assert_eq!(numbers(&db).await, [1, 2, 1, 2, 1, 2], "{span}");
                db.ok(rawdoc! { "flush": 1 }).await;
                assert_eq!(numbers(&db).await, [1, 2, 1, 2, 1, 2], "{span}");
                // They are the same measurements.
                insert(&db, &rows).await;
            }
        }
    });
}

#[test]
fn a_batch_that_is_sent_again_as_it_was_rewrites_no_bucket() {
    block_on(async {
        let storage = Rc::new(MemoryStorage::new());
        let db = Db::open(storage.clone(), TestEnv::new(5));
        create(&db, doc! {}).await;
        let rows: Vec<_> = (0..200).map(|n| row(i64::from(n / 2), if n % 2 == 0 { "a" } else { "b" }, n)).collect();
        let stored = async || {
            db.ok(rawdoc! { "flush": 1 }).await;
            let all = KeyRange { start: b"B".to_vec(), end: b"C".to_vec() };
            storage.scan(std::slice::from_ref(&all), Page { entries_max: 100, keys_only: false }).await.unwrap()
        };
        insert(&db, &rows).await;
        let before = stored().await;
        // The value says which records its rows come from, so a rewritten one differs.
        insert(&db, &rows[..77]).await;
        assert_eq!(stored().await, before);
        insert(&db, &[row(3, "a", 1000)]).await;
        let after = stored().await;
        assert_eq!(after.iter().zip(&before).filter(|(after, before)| after != before).count(), 1);
        assert_eq!((stat(&db, "numDuplicatesRemoved").await, numbers(&db).await.len()), (78, 200));
    });
}

#[test]
fn fields_in_by_tell_measurements_of_the_same_time_apart() {
    block_on(async {
        let db = contexts(1).remove(0);
        create(&db, doc! { "by": ["c"] }).await;
        let row = |c: i32, n: i32| rawdoc! { "t": DateTime::from_millis(0), "m": "a", "c": c, "n": n };
        insert(&db, &[row(1, 1), row(2, 2), row(1, 3)]).await;
        insert(&db, &[row(2, 4)]).await;
        assert_eq!(numbers(&db).await, [3, 4]);
    });
}

#[test]
fn of_two_contexts_the_later_commit_counts() {
    block_on(async {
        let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
        let env = TestEnv::new(5);
        let dbs: Vec<Db> = (0..3).map(|_| Db::open(Rc::clone(&storage), Rc::clone(&env))).collect();
        create(&dbs[0], doc! {}).await;
        for (n, at) in [0, 1, 2, 1, 0].into_iter().enumerate() {
            env.now_ms.set(env.now_ms.get() + 1);
            insert(&dbs[at], &[row(1, "a", n as i32)]).await;
            for db in &dbs {
                assert_eq!(numbers(db).await, [n as i32]);
            }
            if n == 2 {
                dbs[0].ok(rawdoc! { "flush": 1 }).await;
            }
        }
    });
}

#[test]
fn the_option_is_shown_and_compared() {
    block_on(async {
        let db = contexts(1).remove(0);
        create(&db, doc! { "by": ["c"], "keep": "first" }).await;
        let listed = db.ok(rawdoc! { "listCollections": 1 }).await;
        let batch = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone();
        let options = batch[0].as_document().unwrap().get_document("options").unwrap().clone();
        assert_eq!(options.get_document("dedupe").unwrap(), &doc! { "by": ["c"], "keep": "first" });
        create(&db, doc! { "by": ["c"], "keep": "first" }).await;
        let other = rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } };
        assert_eq!(db.fails(other).await.0, 48);
        for wrong in [doc! { "by": ["t"] }, doc! { "by": ["m.x"] }, doc! { "keep": "all" }] {
            let create = doc! { "create": "d", "timeseries": { "timeField": "t", "metaField": "m" }, "dedupe": wrong };
            assert_eq!(db.fails(raw(&create)).await, (72, "InvalidOptions".to_owned()));
        }
    });
}

/// Rows of which some are measured twice, some folded and some not, in buckets that overlap.
async fn doubled(db: &Db) -> Vec<i32> {
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    for round in 0..4 {
        let rows: Vec<_> =
            (0..300).map(|n| row(n * 7, if n % 3 == 0 { "a" } else { "b" }, (1000 * round + n) as i32)).collect();
        insert(db, &rows).await;
        if round != 2 {
            db.ok(rawdoc! { "flush": 1 }).await;
        }
    }
    numbers(db).await
}

#[test]
fn dedupe_can_be_turned_on_for_a_collection_with_duplicates_and_off_again() {
    block_on(async {
        for keep in ["first", "last"] {
            let dbs = contexts(2);
            assert_eq!(doubled(&dbs[0]).await.len(), 1200);
            // Another context knows the collection as it was.
            assert_eq!(numbers(&dbs[1]).await.len(), 1200);
            dbs[0].ok(rawdoc! { "collMod": "c", "dedupe": { "keep": keep } }).await;
            insert(&dbs[1], &[row(0, "a", -1), row(7, "b", -1), row(1, "a", 5)]).await;
            for db in &dbs {
                let found = numbers(db).await;
                assert_eq!(found.len(), 301);
                assert_eq!(found.iter().filter(|n| **n == -1).count(), if keep == "first" { 0 } else { 2 });
            }
            dbs[1].ok(rawdoc! { "flush": 1 }).await;
            assert_eq!(numbers(&dbs[0]).await.len(), 301);
            let checked = dbs[0].ok(rawdoc! { "validate": "c", "full": true }).await;
            assert_eq!(checked.get_bool("valid").ok(), Some(true), "{checked}");

            dbs[0].ok(rawdoc! { "collMod": "c", "dedupe": "off" }).await;
            insert(&dbs[1], &[row(0, "a", 9), row(0, "a", 9)]).await;
            assert_eq!(numbers(&dbs[0]).await.len(), 303);
            // On again, by other paths: every value of `n` is a measurement.
            dbs[1].ok(rawdoc! { "collMod": "c", "dedupe": { "by": ["n"] } }).await;
            assert_eq!(numbers(&dbs[0]).await.len(), 302);
            dbs[0].ok(rawdoc! { "collMod": "c", "dedupe": "off" }).await;
            dbs[1].ok(rawdoc! { "collMod": "c", "dedupe": { "keep": keep } }).await;
            assert_eq!(numbers(&dbs[0]).await.len(), 301);
            let rows = checks::sound(&dbs[0], "c", crate::support::valid_bucket::Writers::Several).await;
            assert_eq!(rows.len(), 301);
        }
    });
}

#[test]
fn collstats_counts_the_buckets_that_are_left_while_dedupe_is_turned_on() {
    block_on(async {
        let storage: Rc<dyn Storage> = Faulty::new(Rc::new(MemoryStorage::new()), Random::new(1), true);
        let db = Db::open(storage, TestEnv::new(5));
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        let rows: Vec<_> = (0..500).map(|n| row(i64::from(n), &n.to_string(), n)).collect();
        insert(&db, &rows).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let left = async || {
            let reply = db.ok(rawdoc! { "collStats": "c" }).await;
            reply.get_document("timeseries").unwrap().get_i64("numBucketsToMove").ok()
        };
        let is_done = Cell::new(false);
        let change = async {
            db.ok(rawdoc! { "collMod": "c", "dedupe": {} }).await;
            is_done.set(true);
        };
        let watch = async {
            let mut seen = Vec::new();
            while !is_done.get() {
                seen.extend(left().await);
                yield_now().await;
            }
            seen
        };
        let (_, seen) = futures::future::join(change, watch).await;
        assert!(seen.len() > 2 && seen.is_sorted_by(|a, b| a >= b) && seen[0] > seen[seen.len() - 1], "{seen:?}");
        assert_eq!(left().await, None);
    });
}

#[test]
fn rows_stored_before_dedupe_was_turned_on_count_as_earlier_than_all_others() {
    block_on(async {
        let db = contexts(1).remove(0);
        let before = doubled(&db).await;
        let first = before.iter().copied().filter(|n| *n < 1000).count();
        assert_eq!(first, 300);
        db.ok(rawdoc! { "collMod": "c", "dedupe": { "keep": "first" } }).await;
        insert(&db, &(0..300).map(|n| row(n * 7, if n % 3 == 0 { "a" } else { "b" }, -1)).collect::<Vec<_>>()).await;
        assert!(numbers(&db).await.iter().all(|n| *n >= 0));
        db.ok(rawdoc! { "collMod": "c", "dedupe": { "keep": "last" } }).await;
        insert(&db, &[row(7, "b", -2)]).await;
        assert_eq!(numbers(&db).await.iter().filter(|n| **n == -2).count(), 1);
    });
}

#[test]
fn options_that_would_break_windows_are_refused() {
    block_on(async {
        let db = contexts(1).remove(0);
        let timeseries = rawdoc! { "timeField": "t", "bucketMaxSpanSeconds": 1000, "bucketRoundingSeconds": 1000 };
        db.ok(rawdoc! { "create": "c", "timeseries": timeseries, "dedupe": {} }).await;
        let change = |seconds: i32| rawdoc! { "collMod": "c", "timeseries": { "bucketMaxSpanSeconds": seconds, "bucketRoundingSeconds": seconds } };
        assert_eq!(db.fails(change(1500)).await.0, 72);
        db.ok(change(3000)).await;
        assert_eq!(db.fails(rawdoc! { "collMod": "c", "dedupe": "off", "maxBytes": 5 }).await.0, 72);
        assert_eq!(db.fails(rawdoc! { "collMod": "system.buckets.c", "dedupe": "off" }).await.0, 73);
    });
}

#[test]
fn imported_buckets_and_results_of_out_are_measured_once() {
    block_on(async {
        let db = contexts(1).remove(0);
        create(&db, doc! {}).await;
        insert(&db, &[row(1, "a", 1), row(2, "a", 2)]).await;
        let bucket = checks::buckets(&db, "c").await.remove(0);
        insert(&db, &[row(2, "a", 3)]).await;
        let again = rawdoc! { "insert": "system.buckets.c", "documents": [raw(&bucket)], "unsafeBucketWrites": true };
        assert_eq!(db.ok(again).await.get_i32("n").ok(), Some(1));
        assert_eq!(numbers(&db).await, [1, 2]);
        let change = rawdoc! { "update": "system.buckets.c", "unsafeBucketWrites": true,
        "updates": [{ "q": {}, "u": { "$set": { "control.closed": true } } }] };
        let reply = db.command(change).await;
        let error = reply.get_array("writeErrors").unwrap()[0].as_document().unwrap().clone();
        assert_eq!(error.get_i32("code").ok(), Some(20));

        // The result keeps the option of the collection that it replaces.
        db.ok(rawdoc! { "create": "from", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        db.insert("from", &[row(5, "a", 7), row(5, "a", 8), row(6, "a", 9)]).await;
        db.ok(rawdoc! { "aggregate": "from", "pipeline": [{ "$out": "c" }], "cursor": {} }).await;
        assert_eq!(numbers(&db).await, [8, 9]);
        insert(&db, &[row(6, "a", 10)]).await;
        assert_eq!(numbers(&db).await, [8, 10]);
    });
}

#[test]
fn a_bucket_with_a_measurement_twice_is_found_and_repaired() {
    block_on(async {
        let db = contexts(1).remove(0);
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        insert(&db, &[row(1, "a", 1), row(1, "a", 2), row(2, "a", 3)]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let collection = db.engine.existing_collection("c").await.unwrap();
        // As if the buckets had been moved.
        let mut change = |entry: &mut timepail::engine::CollectionEntry, _: &mut timepail::storage::Changeset| {
            let command = rawdoc! { "collMod": "c", "dedupe": {} };
            let command = timepail::value::Doc::parse(command.as_bytes()).unwrap();
            entry.options = entry.options.modified(command, 0).unwrap();
            Ok(true)
        };
        db.engine.change_entry(&collection, &mut change).await.unwrap();
        let checked = db.ok(rawdoc! { "validate": "c", "full": true }).await;
        let rules = |checked: &Document| -> Vec<String> {
            let findings = checked.get_array("findings").unwrap().iter();
            findings.map(|of| of.as_document().unwrap().get_str("rule").unwrap().to_owned()).collect()
        };
        assert_eq!(
            (checked.get_bool("valid").ok(), rules(&checked)),
            (Some(false), vec!["DEDUPE".to_owned()]),
            "{checked}"
        );
        let repaired = db.ok(rawdoc! { "validate": "c", "full": true, "repair": true }).await;
        assert_eq!(repaired.get_bool("repaired").ok(), Some(true), "{repaired}");
        assert_eq!(numbers(&db).await, [2, 3]);
        assert!(rules(&db.ok(rawdoc! { "validate": "c", "full": true }).await).is_empty());
    });
}
