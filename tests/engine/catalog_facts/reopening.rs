//! Stored buckets that are reopened, and those that never are.

use std::rc::Rc;

use bson::oid::ObjectId;
use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use timepail::catalog::CatalogOptions;
use timepail::engine::stored_bucket::StoredBucket;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Changeset, KeyRange, Page, Storage};
use timepail::value::Doc;

use super::harness::*;
use crate::support::Db;

/// A database with one stored bucket, of two measurements at 0 and 1 ms, as `change` leaves it, and a new context on it.
async fn with_stored(change: &dyn Fn(&mut Document)) -> Db {
    let storage = Rc::new(MemoryStorage::new());
    let db = database(storage.clone(), CatalogOptions::default()).await;
    db.insert("c", &[at(0), at(1)]).await;
    db.ok(rawdoc! { "flush": 1 }).await;
    let range = KeyRange { start: b"B".to_vec(), end: b"C".to_vec() };
    let entry = storage.scan(&[range], Page { entries_max: 9, keys_only: false }).await.unwrap().remove(0);
    let bucket = StoredBucket::decode(entry.value).unwrap();
    let mut document = Document::from_reader(bucket.document.view().as_bytes()).unwrap();
    change(&mut document);
    let document = RawDocumentBuf::try_from(&document).unwrap();
    let mut changes = Changeset::new();
    changes.put(entry.key, StoredBucket::encode(&bucket.coverage, Doc::parse(document.as_bytes()).unwrap()));
    storage.commit(changes).await.unwrap();
    open(storage, CatalogOptions::default())
}

fn control(bucket: &mut Document) -> &mut Document {
    bucket.get_document_mut("control").unwrap()
}

/// A counter of the catalog, without reading the stored buckets as `collStats` does.
async fn counted(db: &Db, name: &str) -> i64 {
    let status = db.ok(rawdoc! { "serverStatus": 1 }).await;
    status.get_document("bucketCatalog").unwrap().get_i64(name).unwrap()
}

/// An insert for the stored bucket goes to a new one, for the reason that is counted under `suffix`. A bucket that is
/// frozen for it is not even read again; another one is.
async fn assert_refused(change: &dyn Fn(&mut Document), suffix: &str, frozen: bool) {
    let db = with_stored(change).await;
    let counter = format!("numBucketReopeningsFailedDueTo{suffix}");
    assert_eq!(db.insert("c", &[at(2)]).await.get_i32("n").unwrap(), 1, "{suffix}");
    assert_eq!(counted(&db, "numBucketInserts").await, 1, "{suffix}");
    assert_eq!(counted(&db, &counter).await, 1, "{suffix}");
    assert_eq!(counted(&db, "numBucketsFrozen").await, i64::from(frozen), "{suffix}");
    // An earlier hour archives the new bucket; then a later time requests any stored bucket.
    db.insert("c", &[at(-HOUR)]).await;
    db.insert("c", &[at(3)]).await;
    assert_eq!(counted(&db, "numBucketsFrozen").await, i64::from(frozen), "{suffix}");
}

#[test]
fn a_bucket_without_an_object_id_is_malformed() {
    block_on(async {
        assert_refused(&|bucket| drop(bucket.remove("_id")), "MalformedIdField", false).await;
        assert_refused(&|bucket| drop(bucket.insert("_id", 5)), "MalformedIdField", false).await;
        let other = ObjectId::from_bytes([7; 12]);
        assert_refused(&|bucket| drop(bucket.insert("_id", other)), "MalformedIdField", false).await;
    });
}

#[test]
fn a_malformed_bucket_is_frozen() {
    block_on(async {
        let changes: [&dyn Fn(&mut Document); 13] = [
            &|bucket| drop(bucket.insert("control", 5)),
            &|bucket| drop(bucket.remove("control")),
            &|bucket| drop(control(bucket).insert("version", "2")),
            &|bucket| drop(control(bucket).remove("version")),
            &|bucket| drop(control(bucket).insert("min", 5)),
            &|bucket| drop(control(bucket).remove("min")),
            &|bucket| drop(control(bucket).insert("max", 5)),
            &|bucket| drop(control(bucket).remove("max")),
            &|bucket| drop(control(bucket).get_document_mut("min").unwrap().remove("t")),
            &|bucket| drop(control(bucket).get_document_mut("max").unwrap().remove("t")),
            &|bucket| drop(bucket.insert("data", 5)),
            &|bucket| drop(bucket.remove("data")),
            &|bucket| drop(bucket.insert("more", 5)),
        ];
        for change in changes {
            assert_refused(change, "Validator", true).await;
        }
    });
}

#[test]
fn unreadable_columns_freeze_a_bucket() {
    block_on(async {
        let data = |bucket: &mut Document, name: &str, value: Bson| {
            bucket.get_document_mut("data").unwrap().insert(name, value);
        };
        let rows = doc! { "0": DateTime::from_millis(0), "1": DateTime::from_millis(1) };
        assert_refused(&|bucket| data(bucket, "t", rows.clone().into()), "UncompressedTimeColumn", true).await;
        assert_refused(&|bucket| data(bucket, "x", Bson::Int32(5)), "CompressionFailure", true).await;
        let mixed = |bucket: &mut Document| {
            control(bucket).get_document_mut("max").unwrap().insert("x", "text");
        };
        assert_refused(&mixed, "SchemaGeneration", true).await;
    });
}

#[test]
fn a_closed_bucket_is_frozen_and_one_with_closed_false_is_reopened() {
    block_on(async {
        assert_refused(&|bucket| drop(control(bucket).insert("closed", true)), "MarkedClosed", true).await;
        for change in [&(|_: &mut Document| {}) as &dyn Fn(&mut Document), &|bucket| {
            drop(control(bucket).insert("closed", false));
        }] {
            let db = with_stored(change).await;
            db.insert("c", &[at(2)]).await;
            assert_eq!(statistic(&db, "numBucketsReopened").await, 1);
            assert_eq!(statistic(&db, "numBucketsFrozen").await, 0);
            assert_eq!(buckets(&db).await.len(), 1);
        }
    });
}

#[test]
fn a_frozen_bucket_keeps_its_rows_and_is_not_fetched_again() {
    block_on(async {
        let db = with_stored(&|bucket| drop(control(bucket).insert("closed", true))).await;
        for ms in [2, -HOUR, 3, -2 * HOUR, 4] {
            db.insert("c", &[at(ms)]).await;
        }
        assert_eq!(statistic(&db, "numBucketsFrozen").await, 1);
        assert_eq!(statistic(&db, "numBucketReopeningsFailedDueToMarkedClosed").await, 1);
        let buckets = buckets(&db).await;
        let closed: Vec<_> =
            buckets.iter().filter(|b| b.get_document("control").unwrap().contains_key("closed")).collect();
        assert_eq!((closed.len(), closed[0].get_document("control").unwrap().get_i32("count").unwrap()), (1, 2));
        assert_eq!(db.find(rawdoc! { "find": "c" }).await.len(), 7);
    });
}

#[test]
fn metadata_in_another_field_order_reopens_the_same_bucket() {
    block_on(async {
        let storage = Rc::new(MemoryStorage::new());
        let db = database(storage.clone(), CatalogOptions::default()).await;
        db.insert("c", &[of(0, rawdoc! { "a": 1, "b": 1 })]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let db = open(storage, CatalogOptions::default());
        db.insert("c", &[of(1, rawdoc! { "b": 1, "a": 1 })]).await;
        assert_eq!((statistic(&db, "numBucketsReopened").await, buckets(&db).await.len()), (1, 1));
        db.insert("c", &[of(1, rawdoc! { "b": 2, "a": 2 })]).await;
        assert_eq!((statistic(&db, "numBucketsReopened").await, buckets(&db).await.len()), (1, 2));
    });
}

#[test]
fn closed_buckets_and_those_of_other_times_or_metadata_are_not_reopened() {
    block_on(async {
        let century = 100 * 365 * 24 * HOUR;
        let closed: &dyn Fn(&mut Document) = &|bucket| drop(control(bucket).insert("closed", true));
        for (change, row) in [(closed, at(2)), (&|_: &mut Document| {}, at(century)), (&|_| {}, of(2, "b"))] {
            let db = with_stored(change).await;
            db.insert("c", &[row]).await;
            assert_eq!(statistic(&db, "numBucketsReopened").await, 0);
            assert_eq!((statistic(&db, "numBucketInserts").await, buckets(&db).await.len()), (1, 2));
        }
    });
}

#[test]
fn a_late_measurement_after_two_months_reopens_the_first_bucket() {
    block_on(async {
        let db = database(Rc::new(MemoryStorage::new()), CatalogOptions::default()).await;
        for ms in [0, 1440 * HOUR, MINUTE] {
            db.insert("c", &[at(ms)]).await;
        }
        assert_eq!((statistic(&db, "numBucketsReopened").await, buckets(&db).await.len()), (1, 2));
    });
}

#[test]
fn a_search_does_not_reopen_buckets_that_are_full_by_the_parameters() {
    block_on(async {
        for (options, reopened) in [
            (CatalogOptions { bucket_count_max: 3, ..CatalogOptions::default() }, 1),
            (CatalogOptions { bucket_count_max: 2, ..CatalogOptions::default() }, 0),
            (CatalogOptions { bucket_size_bytes_max: 100, ..CatalogOptions::default() }, 0),
        ] {
            let storage = Rc::new(MemoryStorage::new());
            let db = database(storage.clone(), CatalogOptions::default()).await;
            db.insert("c", &[at(0), at(1)]).await;
            db.ok(rawdoc! { "flush": 1 }).await;
            let db = open(storage, options);
            db.insert("c", &[at(2)]).await;
            assert_eq!(statistic(&db, "numBucketsReopened").await, reopened, "{options:?}");
        }
    });
}
