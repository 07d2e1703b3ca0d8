//! Invariants of a collection at any time, and after a complete fold.

use std::rc::Rc;

use bson::{Bson, Document, RawDocumentBuf, rawdoc};
use timepail::bucket::TimeseriesOptions;
use timepail::storage::{Entry, KeyRange, Page, Storage};

use super::valid_bucket::{Writers, index_entries_of, measurements_of_valid};
use super::{Db, multiset, raw};

/// A batch large enough for everything: many small ones would take longer than the checks.
const ALL: i32 = 1_000_000;

/// The options stored by `create`.
pub async fn options_of(db: &Db, name: &str) -> TimeseriesOptions {
    db.engine.existing_collection(name).await.unwrap().entry().options.timeseries.clone()
}

/// Every measurement, after checking that buckets are valid and agree with `find`, `count` and `collStats`.
pub async fn sound(db: &Db, name: &str, writers: Writers) -> Vec<Document> {
    let found = db.find(rawdoc! { "find": name, "batchSize": ALL }).await;
    // A context learns only from a read that the collection was recreated.
    let options = options_of(db, name).await;
    let n = db.ok(rawdoc! { "count": name }).await.get_i32("n").unwrap();
    assert_eq!(n as usize, found.len(), "count and find differ");
    let buckets = buckets(db, name).await;
    let mut in_buckets = Vec::new();
    for bucket in &buckets {
        in_buckets.extend(measurements_of_valid(bucket, &options, writers).unwrap_or_else(|what| panic!("{what}")));
    }
    assert_eq!(multiset(&in_buckets), multiset(&found), "what the buckets hold is not what is found");
    let checked = db.ok(rawdoc! { "validate": name, "full": true }).await;
    assert_eq!(found_wrong(&checked, writers), Vec::<&Document>::new(), "{checked}");
    assert_eq!(
        (checked.get_bool("valid").unwrap(), checked.get_i64("nrecords").unwrap()),
        (true, buckets.len() as i64),
        "{checked}"
    );
    let stats = db.ok(rawdoc! { "collStats": name }).await;
    let of = |field: &str| stats.get_document("timeseries").unwrap().get_i64(field).unwrap() as usize;
    assert_eq!((of("bucketCount"), of("numMeasurements")), (buckets.len(), found.len()), "{stats}");
    found
}

/// The findings of `validate`, except those that concurrent contexts or other settings may cause.
fn found_wrong(checked: &Document, writers: Writers) -> Vec<&Document> {
    let wrong = |finding: &&Document| {
        let may_be = writers == Writers::Several || finding.get_str("rule").unwrap() == "COUNT";
        !(may_be && finding.get_bool("warning").unwrap())
    };
    checked.get_array("findings").unwrap().iter().map(|of| of.as_document().unwrap()).filter(wrong).collect()
}

/// As `sound`, after a fold: sizes are those of the buckets, and the index has exactly one entry per bucket.
pub async fn sound_when_folded(storage: &dyn Storage, db: &Db, name: &str, writers: Writers) -> Vec<Document> {
    db.ok(rawdoc! { "flush": 1 }).await;
    db.ok(rawdoc! { "foldJournals": 1 }).await;
    let found = sound(db, name, writers).await;
    let options = options_of(db, name).await;
    let buckets = buckets(db, name).await;
    let bytes: usize = buckets.iter().map(|bucket| raw(bucket).as_bytes().len()).sum();
    let stats = db.ok(rawdoc! { "collStats": name }).await;
    assert_eq!((stats.get_i64("size").unwrap(), stats.get_i64("journalSize").unwrap()), (bytes as i64, 0), "{stats}");
    let entries: usize = buckets.iter().map(|bucket| index_entries_of(bucket, &options)).sum();
    // Entries of other indexes are checked by `validate`.
    let of_default = keys(storage, b"I").await.iter().filter(|entry| entry.key[9..11] == [0, 1]).count();
    assert_eq!(of_default, entries, "entries of the index and those that its buckets should have");
    for bucket in buckets {
        let rows = measurements_of_valid(&bucket, &options, writers).unwrap();
        let way = by_series_and_time(&bucket, &options);
        let by_index = multiset(&db.find(rawdoc! { "find": name, "filter": way, "batchSize": ALL }).await);
        let all = multiset(&rows).iter().all(|row| by_index.binary_search(row).is_ok());
        assert!(all, "the index does not lead to {bucket}");
    }
    found
}

/// A filter that uses the default index and that every measurement of a bucket matches.
fn by_series_and_time(bucket: &Document, options: &TimeseriesOptions) -> RawDocumentBuf {
    let control = bucket.get_document("control").unwrap();
    let bound = |side: &str| control.get_document(side).unwrap().get(&options.time_field).unwrap().clone();
    let mut filter = Document::new();
    filter.insert(options.time_field.clone(), bson::doc! { "$gte": bound("min"), "$lte": bound("max") });
    if let Some(field) = &options.meta_field {
        let meta = bucket.get("meta").cloned();
        filter.insert(field.clone(), meta.unwrap_or_else(|| Bson::Document(bson::doc! { "$exists": false })));
    }
    raw(&filter)
}

/// The bucket documents of a collection, including journal rows.
pub async fn buckets(db: &Db, name: &str) -> Vec<Document> {
    db.find(rawdoc! { "find": format!("system.buckets.{name}"), "batchSize": ALL }).await
}

/// The entries of a storage with this key prefix.
pub async fn keys(storage: &dyn Storage, prefix: &[u8]) -> Vec<Entry> {
    let range = KeyRange { start: prefix.to_vec(), end: [prefix, &[0xFF; 9]].concat() };
    storage.scan(&[range], Page { entries_max: 1_000_000, keys_only: true }).await.unwrap()
}

/// Every key of a storage, except those that remain in an empty one after a collection was created and dropped.
pub async fn left_behind(storage: &dyn Storage, open: impl Fn(Rc<dyn Storage>) -> Db) -> Vec<Vec<u8>> {
    let fresh: Rc<dyn Storage> = Rc::new(timepail::storage::memory::MemoryStorage::new());
    let db = open(Rc::clone(&fresh));
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    db.ok(rawdoc! { "drop": "c" }).await;
    let usual: Vec<Entry> = keys(&*fresh, b"").await;
    let all = keys(storage, b"").await.into_iter().map(|entry| entry.key);
    all.filter(|key| !usual.iter().any(|entry| entry.key == *key)).collect()
}
