//! Which rows share a bucket, and the fields that a bucket has recorded.

use std::rc::Rc;

use bson::{Bson, RawBson, RawDocumentBuf, rawdoc};
use futures::executor::block_on;
use timepail::catalog::{CatalogOptions, Counter};
use timepail::storage::memory::MemoryStorage;

use super::harness::*;

#[test]
fn two_catalogs_of_one_namespace_have_separate_buckets() {
    block_on(async {
        let storage = Rc::new(MemoryStorage::new());
        let one = database(storage.clone(), CatalogOptions::default()).await;
        let other = open(storage, CatalogOptions::default());
        for db in [&one, &other, &one] {
            db.insert("c", &[at(0)]).await;
        }
        one.ok(rawdoc! { "flush": 1 }).await;
        let buckets = buckets(&other).await;
        let counts: Vec<_> =
            buckets.iter().map(|b| b.get_document("control").unwrap().get_i32("count").unwrap()).collect();
        assert!(counts == [1, 2] || counts == [2, 1], "{counts:?}");
    });
}

async fn metadata_of_buckets(metadata: &[RawBson]) -> Vec<Option<Bson>> {
    let db = database(Rc::new(MemoryStorage::new()), CatalogOptions::default()).await;
    db.insert("c", &metadata.iter().map(|meta| of(0, meta.clone())).collect::<Vec<_>>()).await;
    buckets(&db).await.into_iter().map(|bucket| bucket.get("meta").cloned()).collect()
}

#[test]
fn the_order_of_metadata_fields_does_not_matter_and_that_of_array_elements_does() {
    block_on(async {
        let alike = [
            rawdoc! { "l": [{ "a": 0, "b": { "x": 1, "y": [1, { "p": 1, "q": 2 }] } }] },
            rawdoc! { "l": [{ "b": { "y": [1, { "q": 2, "p": 1 }], "x": 1 }, "a": 0 }] },
        ];
        let shown = metadata_of_buckets(&alike.map(RawBson::from)).await;
        let sorted: bson::Document =
            rawdoc! { "l": [{ "a": 0, "b": { "x": 1, "y": [1, { "p": 1, "q": 2 }] } }] }.try_into().unwrap();
        assert_eq!(shown, [Some(Bson::Document(sorted))]);
        let list = |values: [i32; 2]| RawBson::from(rawdoc! { "l": [[values[0], values[1]]] });
        assert_eq!(metadata_of_buckets(&[list([1, 2]), list([2, 1])]).await.len(), 2);
    });
}

#[test]
fn null_metadata_and_missing_metadata_are_different_series() {
    block_on(async {
        let db = database(Rc::new(MemoryStorage::new()), CatalogOptions::default()).await;
        let mut without = RawDocumentBuf::new();
        at(0).iter().flatten().filter(|(name, _)| *name != "m").for_each(|(n, v)| without.append(n, RawBson::from(v)));
        db.insert("c", &[of(0, RawBson::Null), without, of(0, RawBson::Null)]).await;
        let buckets = buckets(&db).await;
        let mut kept: Vec<_> = buckets.iter().map(|bucket| bucket.get("meta")).collect();
        kept.sort_by_key(|meta| meta.is_some());
        assert_eq!(kept, [None, Some(&Bson::Null)]);
        let rows = db.find(rawdoc! { "find": "c" }).await;
        assert_eq!(rows.iter().filter(|row| row.get("m") == Some(&Bson::Null)).count(), 2);
        assert_eq!(rows.iter().filter(|row| !row.contains_key("m")).count(), 1);
    });
}

/// A field that is new to a bucket takes memory, and a known one does not.
#[test]
fn a_bucket_records_each_field_once_and_the_next_bucket_starts_over() {
    let mut catalog = catalog();
    let mut memory = 0;
    let mut grown = |catalog: &mut timepail::catalog::Catalog, docs: &[RawDocumentBuf]| {
        insert(catalog, docs);
        let before = std::mem::replace(&mut memory, catalog.stats().memory_bytes);
        memory as isize - before as isize
    };
    let (bucket, field) = (872 + "meta".len() as isize + 1 + 4 + 2, 110 + 1 + 8);
    assert_eq!(grown(&mut catalog, &[at(0)]), bucket + 2 * field);
    assert_eq!(grown(&mut catalog, &[at(1), at(2)]), 0);
    let wider = rawdoc! { "t": bson::DateTime::from_millis(3), "m": "a", "x": 1.0, "y": 2.0 };
    assert_eq!(grown(&mut catalog, std::slice::from_ref(&wider)), field);
    assert_eq!(grown(&mut catalog, &vec![wider.clone(); 996]), 0);
    assert_eq!(catalog.stats()[Counter::ClosedDueToCount], 0);
    // The bucket is full and closed, and its fields are forgotten.
    assert_eq!(grown(&mut catalog, &[wider]), 0);
    assert_eq!((catalog.stats()[Counter::ClosedDueToCount], catalog.stats()[Counter::BucketInserts]), (1, 2));
    assert_eq!(memory as isize, bucket + 3 * field);
}

#[test]
fn a_field_introduced_by_two_inserts_of_one_commit_is_recorded_once() {
    let memory = |docs: &[RawDocumentBuf]| {
        let mut catalog = catalog();
        insert(&mut catalog, docs);
        catalog.stats().memory_bytes
    };
    assert_eq!(memory(&[at(0), at(1)]), memory(&[at(0)]));
}
