//! Buckets that several contexts fill at once, each counting its own rows and what was stored when it began.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;

use bson::{DateTime, Document, RawDocumentBuf, rawdoc};
use futures::executor::block_on;
use timepail::bucket::BucketFormat;
use timepail::catalog::CatalogOptions;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use crate::support::ending::Ending;
use crate::support::valid_bucket::Writers;
use crate::support::{Db, TestEnv, checks, take_rows};

const COUNT_MAX: usize = 20;

fn open(storage: Rc<dyn Storage>, seed: u64) -> Db {
    let options = CatalogOptions { bucket_count_max: COUNT_MAX, ..CatalogOptions::default() };
    Db::open_with(BucketFormat::default(), options, storage, TestEnv::new(seed))
}

fn row(n: i64, series: i32) -> RawDocumentBuf {
    rawdoc! { "t": DateTime::from_millis(n * 1000), "m": series, "n": n }
}

/// Inserts rows from `n` on into each of `series` series, with a commit for each.
async fn add(db: &Db, rows: std::ops::Range<i64>, series: i32) {
    for n in rows {
        let rows: Vec<_> = (0..series).map(|series| row(n, series)).collect();
        assert!(!db.insert("c", &rows).await.contains_key("writeErrors"));
    }
}

/// Four contexts that have filled one bucket of each series without knowing of each other, and the numbers of their rows.
async fn crowd(storage: &Rc<Ending>, series: i32) -> (Vec<Db>, Vec<i64>) {
    let first = open(storage.clone(), 1);
    first.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    add(&first, 0..1, series).await;
    first.ok(rawdoc! { "flush": 1 }).await;
    let contexts: Vec<Db> = (1..5).map(|seed| open(storage.clone(), seed * 7)).collect();
    for (db, from) in contexts.iter().zip((100..).step_by(100)) {
        add(db, from..from + 1, series).await;
    }
    for (db, from) in contexts.iter().zip((100..).step_by(100)) {
        add(db, from + 1..from + COUNT_MAX as i64 - 4, series).await;
    }
    let numbers = (100..).step_by(100).take(4).flat_map(|from| from..from + COUNT_MAX as i64 - 4);
    (contexts, std::iter::once(0).chain(numbers).collect())
}

fn ending() -> Rc<Ending> {
    Rc::new(Ending { inner: MemoryStorage::new(), left: Cell::new(usize::MAX) })
}

async fn numbers(db: &Db, series: i32, sort: i32) -> Vec<i64> {
    let rows = db.find(rawdoc! { "find": "c", "filter": { "m": series }, "sort": { "t": sort }, "batchSize": 7 }).await;
    rows.iter().map(|row| row.get_i64("n").unwrap()).collect()
}

/// The sizes of the buckets.
async fn counts(db: &Db) -> Vec<i32> {
    let buckets = checks::buckets(db, "c").await;
    buckets.iter().map(|bucket| bucket.get_document("control").unwrap().get_i32("count").unwrap()).collect()
}

#[test]
fn contexts_that_fill_one_bucket_together_take_no_bucket_beyond_its_count() {
    block_on(async {
        for together in [false, true] {
            let storage = ending();
            let (contexts, expected) = crowd(&storage, 2).await;
            for db in &contexts {
                assert_eq!(numbers(db, 0, 1).await, expected);
                if !together {
                    db.ok(rawdoc! { "flush": 1 }).await;
                    assert_eq!(numbers(db, 1, 1).await, expected);
                }
            }
            if together {
                contexts[0].ok(rawdoc! { "foldJournals": 1 }).await;
                contexts[0].ok(rawdoc! { "flush": 1 }).await;
            }
            for db in &contexts {
                let counts = counts(db).await;
                assert!(counts.iter().all(|count| *count <= COUNT_MAX as i32), "{counts:?}");
                assert_eq!(counts.iter().sum::<i32>(), 2 * expected.len() as i32);
                // No bucket for each record: what leaves together stays together.
                assert!(counts.len() <= 2 * 8, "{counts:?}");
                let mut backwards = numbers(db, 0, -1).await;
                backwards.reverse();
                assert_eq!(backwards, expected);
            }
            // They go on, with these buckets and others.
            for (db, n) in contexts.iter().zip(900..) {
                add(db, n..n + 1, 2).await;
            }
            checks::sound_when_folded(&*storage, &contexts[1], "c", Writers::Several).await;
            assert!(counts(&contexts[1]).await.iter().all(|count| *count <= COUNT_MAX as i32));
            assert_eq!(numbers(&contexts[2], 1, 1).await.len(), expected.len() + 4);
        }
    });
}

#[test]
fn a_cursor_from_before_a_fold_that_opens_another_bucket_finds_every_row_once() {
    block_on(async {
        for sort in
            [rawdoc! {}, rawdoc! { "t": 1 }, rawdoc! { "t": -1 }, rawdoc! { "m": 1, "t": 1 }, rawdoc! { "n": 1 }]
        {
            for folder in 0..5 {
                let storage = ending();
                let (contexts, expected) = crowd(&storage, 1).await;
                let reader = open(storage.clone(), 99);
                let find = rawdoc! { "find": "c", "sort": sort.clone(), "batchSize": 0 };
                let id = reader.ok(find).await.get_document("cursor").unwrap().get_i64("id").unwrap();
                // Journals of which the reader has only the first records, of some contexts and not of others.
                add(&contexts[1], 500..503, 1).await;
                for db in contexts.iter().skip(folder).take(2) {
                    db.ok(rawdoc! { "flush": 1 }).await;
                }
                if folder == 4 {
                    reader.ok(rawdoc! { "foldJournals": 1 }).await;
                }
                add(&contexts[3], 503..506, 1).await;
                contexts[3].ok(rawdoc! { "flush": 1 }).await;
                let mut seen: Vec<i64> =
                    rest_of(&reader, id).await.iter().map(|row| row.get_i64("n").unwrap()).collect();
                seen.sort_unstable();
                assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "{seen:?}");
                seen.retain(|n| *n < 500);
                assert_eq!(seen, expected, "{sort:?}, {folder}");
            }
        }
    });
}

#[test]
fn rows_of_two_contexts_that_leave_a_full_bucket_at_once_are_found_once_by_a_cursor_that_knew_of_one() {
    block_on(async {
        for order in [[0, 1], [1, 0]] {
            let storage = ending();
            let contexts: Vec<Db> = (1..4).map(|seed| open(storage.clone(), seed)).collect();
            contexts[0].ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
            for (db, n) in contexts.iter().zip(0..) {
                add(db, n..n + 1, 1).await;
                db.ok(rawdoc! { "flush": 1 }).await;
            }
            add(&contexts[2], 3..COUNT_MAX as i64, 1).await;
            contexts[2].ok(rawdoc! { "flush": 1 }).await;
            assert_eq!(counts(&contexts[2]).await, [COUNT_MAX as i32]);
            // The other two do not know that the bucket is full.
            let [known, unknown] = order;
            add(&contexts[known], 100..101, 1).await;
            let reader = open(storage.clone(), 99);
            let id = reader.ok(rawdoc! { "find": "c", "batchSize": 0 }).await;
            let id = id.get_document("cursor").unwrap().get_i64("id").unwrap();
            add(&contexts[unknown], 200..201, 1).await;
            contexts[2].ok(rawdoc! { "foldJournals": 1 }).await;
            assert_eq!(counts(&contexts[2]).await.iter().max(), Some(&(COUNT_MAX as i32)));
            let mut seen: Vec<i64> = rest_of(&reader, id).await.iter().map(|row| row.get_i64("n").unwrap()).collect();
            seen.retain(|n| *n != 200);
            seen.sort_unstable();
            assert_eq!(seen, (0..COUNT_MAX as i64).chain([100]).collect::<Vec<_>>());
        }
    });
}

async fn rest_of(db: &Db, mut id: i64) -> Vec<Document> {
    let mut rows = Vec::new();
    while id != 0 {
        let mut reply = db.ok(rawdoc! { "getMore": id, "collection": "c", "batchSize": 3 }).await;
        let cursor = reply.get_document_mut("cursor").unwrap();
        rows.extend(take_rows(cursor, "nextBatch"));
        id = cursor.get_i64("id").unwrap();
    }
    rows
}

#[test]
fn a_fold_that_opens_other_buckets_may_be_broken_off_and_gone_on_with() {
    block_on(async {
        // So many series that a fold takes several steps.
        let series = 60;
        let mut outcomes = BTreeSet::new();
        for steps in 0..6 {
            let storage = ending();
            let (contexts, expected) = crowd(&storage, series).await;
            contexts[0].ok(rawdoc! { "flush": 1 }).await;
            storage.left.set(steps);
            let outcome = contexts[1].command(rawdoc! { "flush": 1 }).await.get_f64("ok").unwrap();
            outcomes.insert(outcome as i32);
            storage.left.set(usize::MAX);
            for series in [0, series - 1] {
                assert_eq!(numbers(&contexts[1], series, 1).await, expected);
                assert_eq!(numbers(&contexts[2], series, 1).await, expected);
            }
            // Another context continues.
            contexts[2].ok(rawdoc! { "foldJournals": 1 }).await;
            assert_eq!(numbers(&contexts[1], 0, 1).await, expected);
            add(&contexts[1], 900..901, series).await;
            contexts[1].ok(rawdoc! { "flush": 1 }).await;
            contexts[1].ok(rawdoc! { "foldJournals": 1 }).await;
            contexts[2].ok(rawdoc! { "flush": 1 }).await;
            let counts = counts(&contexts[3]).await;
            assert!(counts.iter().all(|count| *count <= COUNT_MAX as i32), "{counts:?}");
            assert_eq!(counts.iter().sum::<i32>(), series * (expected.len() as i32 + 1));
        }
        assert_eq!(outcomes.len(), 2, "some folds are broken off, and some are not");
    });
}

#[test]
fn rows_that_together_are_too_large_for_a_document_get_buckets_of_their_own() {
    block_on(async {
        let storage = ending();
        let first = open(storage.clone(), 1);
        first.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        add(&first, 0..1, 1).await;
        first.ok(rawdoc! { "flush": 1 }).await;
        // The column and both summaries hold them: one fits into a document, and two do not.
        let large = |seed: u64| -> String {
            let mut state = seed;
            let mut letter = || {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                char::from(b'a' + (state >> 60) as u8)
            };
            (0..4_300_000).map(|_| letter()).collect()
        };
        let contexts: Vec<Db> = (2..4).map(|seed| open(storage.clone(), seed)).collect();
        for (db, n) in contexts.iter().zip(1_i64..) {
            add(db, n..n + 1, 1).await;
        }
        for (db, n) in contexts.iter().zip(3_i64..) {
            let row = rawdoc! { "t": DateTime::from_millis(n * 1000), "m": 0, "n": n, "text": large(n as u64) };
            assert!(!db.insert("c", &[row]).await.contains_key("writeErrors"));
        }
        for db in &contexts {
            db.ok(rawdoc! { "flush": 1 }).await;
        }
        assert_eq!(numbers(&contexts[0], 0, 1).await, [0, 1, 2, 3, 4]);
        assert_eq!(counts(&contexts[1]).await.iter().sum::<i32>(), 5);
        checks::sound_when_folded(&*storage, &contexts[1], "c", Writers::Several).await;
    });
}
