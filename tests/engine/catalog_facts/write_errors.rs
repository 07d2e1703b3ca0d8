//! Measurements that cannot be stored, and those inserted with them.

use std::rc::Rc;

use bson::{DateTime, Document, RawArrayBuf, RawDocumentBuf, rawdoc};
use futures::executor::{LocalPool, block_on};
use futures::task::LocalSpawnExt;
use timepail::catalog::CatalogOptions;
use timepail::storage::memory::MemoryStorage;

use super::harness::*;
use crate::support::Db;

async fn memory() -> Db {
    database(Rc::new(MemoryStorage::new()), CatalogOptions::default()).await
}

async fn insert_as(db: &Db, docs: &[RawDocumentBuf], ordered: bool) -> Document {
    let documents: RawArrayBuf = docs.iter().cloned().collect();
    db.command(rawdoc! { "insert": "c", "documents": documents, "ordered": ordered }).await
}

/// The number of stored measurements, and index and code of every error.
fn outcome(reply: &Document) -> (i32, Vec<(i32, i32)>) {
    assert_eq!(reply.get_f64("ok").unwrap(), 1.0, "{reply}");
    let errors = reply.get_array("writeErrors").cloned().unwrap_or_default();
    let number = |error: &bson::Bson, name| error.as_document().unwrap().get_i32(name).unwrap();
    (reply.get_i32("n").unwrap(), errors.iter().map(|e| (number(e, "index"), number(e, "code"))).collect())
}

fn bad() -> RawDocumentBuf {
    rawdoc! { "t": "today", "m": "a" }
}

#[test]
fn an_ordered_insert_stores_all_before_the_first_error_and_reports_only_that() {
    block_on(async {
        for at_index in 0..4_usize {
            let db = memory().await;
            let mut docs: Vec<_> = (0..4).map(|ms| of(ms, format!("s{}", ms % 2))).collect();
            docs[at_index] = bad();
            docs.push(bad());
            let reply = insert_as(&db, &docs, true).await;
            assert_eq!(outcome(&reply), (at_index as i32, vec![(at_index as i32, 2)]));
            let stored = db.find(rawdoc! { "find": "c", "sort": { "t": 1 } }).await;
            let times: Vec<_> = stored.iter().map(|row| row.get_datetime("t").unwrap().timestamp_millis()).collect();
            assert_eq!(times, (0..at_index as i64).collect::<Vec<_>>());
        }
    });
}

#[test]
fn an_unordered_insert_stores_what_it_can_and_reports_every_error_by_index() {
    block_on(async {
        let db = memory().await;
        let docs = [bad(), of(5, "b"), bad(), of(3, "a"), rawdoc! { "m": 1 }, of(4, "b")];
        assert_eq!(outcome(&insert_as(&db, &docs, false).await), (3, vec![(0, 2), (2, 2), (4, 2)]));
        assert_eq!(db.find(rawdoc! { "find": "c" }).await.len(), 3);
    });
}

#[test]
fn inserts_sharing_a_commit_report_only_their_own_errors() {
    let gate = Rc::new(Gate::default());
    let db = block_on(database(gate.clone(), CatalogOptions::default()));
    let before = gate.commits.get();
    let mut pool = LocalPool::new();
    let inserts = [
        (vec![at(0), bad(), at(1)], true, (1, vec![(1, 2)])),
        (vec![at(2), at(3)], true, (2, vec![])),
        (vec![bad(), at(4), bad()], false, (1, vec![(0, 2), (2, 2)])),
        (vec![bad()], true, (0, vec![(0, 2)])),
        (vec![at(5)], false, (1, vec![])),
    ];
    let running: Vec<_> = inserts
        .iter()
        .map(|(docs, ordered, _)| {
            let (db, docs, ordered) = (db.clone(), docs.clone(), *ordered);
            pool.spawner().spawn_local_with_handle(async move { insert_as(&db, &docs, ordered).await }).unwrap()
        })
        .collect();
    for (running, (_, _, expected)) in running.into_iter().zip(inserts) {
        assert_eq!(outcome(&pool.run_until(running)), expected);
    }
    assert_eq!(gate.commits.get() - before, 1);
    assert_eq!(block_on(db.find(rawdoc! { "find": "c" })).len(), 5);
    assert_eq!(block_on(statistic(&db, "numMeasurementsCommitted")), 5);
}

/// A thousand fields of eight thousand bytes: the measurement fits in a document, its bucket does not.
fn wide() -> RawDocumentBuf {
    let mut doc = rawdoc! { "t": DateTime::from_millis(1), "m": "a" };
    for n in 0..1000 {
        doc.append(bson::raw::CString::try_from(format!("f{n}")).unwrap(), "y".repeat(8000));
    }
    doc
}

#[test]
fn a_measurement_whose_bucket_would_be_too_large_is_refused() {
    block_on(async {
        let db = memory().await;
        let large_meta = of(1, "y".repeat(16_777_216 + 1));
        for (number, refused) in [wide(), large_meta].into_iter().enumerate() {
            let docs = [at(0), refused, at(2)];
            assert_eq!(outcome(&insert_as(&db, &docs, true).await), (1, vec![(1, 10334)]));
            assert_eq!(outcome(&insert_as(&db, &docs, false).await), (2, vec![(1, 10334)]));
            assert_eq!(statistic(&db, "numBucketDocumentsTooLargeInsert").await, 2 * (number as i64 + 1));
        }
        // The other measurements can be folded.
        assert_eq!(buckets(&db).await.len(), 1);
        assert_eq!(db.find(rawdoc! { "find": "c" }).await.len(), 6);
    });
}

#[test]
fn a_measurement_just_below_the_largest_document_is_stored_and_can_be_folded() {
    block_on(async {
        let db = memory().await;
        let row = |bytes: usize| rawdoc! { "t": DateTime::from_millis(1), "m": "a", "x": "y".repeat(bytes) };
        let most = (16_777_216 - 128 - 10 - (3 * (2 + 1 + 8) + 10) - 7) / 3 - (2 + 1 + 5);
        assert_eq!(outcome(&insert_as(&db, &[row(most + 8)], false).await), (0, vec![(0, 10334)]));
        assert_eq!(outcome(&insert_as(&db, &[row(most)], false).await), (1, vec![]));
        assert_eq!(buckets(&db).await.len(), 1);
    });
}

#[test]
fn a_failed_create_leaves_nothing_behind() {
    block_on(async {
        let db = memory().await;
        for (timeseries, code) in [
            (rawdoc! { "timeField": "a.b" }, 72),
            (rawdoc! { "timeField": 100 }, 14),
            (rawdoc! { "timeField": "t", "metaField": "t" }, 72),
            (rawdoc! { "timeField": "t", "bucketMaxSpanSeconds": 0 }, 2),
        ] {
            assert_eq!(db.fails(rawdoc! { "create": "d", "timeseries": timeseries }).await.0, code);
        }
        let listed = db.ok(rawdoc! { "listCollections": 1 }).await;
        let listed = listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap();
        let mut names: Vec<_> = listed.iter().map(|d| d.as_document().unwrap().get_str("name").unwrap()).collect();
        names.sort_unstable();
        assert_eq!(names, ["c", "system.buckets.c"]);
        assert_eq!(db.fails(rawdoc! { "collStats": "d" }).await.0, 26);
    });
}
