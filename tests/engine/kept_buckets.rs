//! Scans of cached buckets.

use std::cell::Cell;
use std::rc::Rc;

use bson::{DateTime, RawBson, RawDocumentBuf, rawdoc};
use futures::executor::block_on;
use timepail::bucket::BucketFormat;
use timepail::catalog::CatalogOptions;
use timepail::limits::{READ_CACHE_BYTES, scan_cache_bytes};
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Bytes, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};

use crate::support::{Db, Random, TestEnv};

/// Counts the values read, and the keys read without them.
#[derive(Default)]
struct Counting {
    inner: MemoryStorage,
    values: Cell<usize>,
    keys: Cell<usize>,
}

impl Storage for Counting {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        self.values.set(self.values.get() + keys.len());
        self.inner.get_many(keys)
    }
    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        Box::pin(async move {
            let entries = self.inner.scan(ranges, page).await?;
            let counter = if page.keys_only { &self.keys } else { &self.values };
            counter.set(counter.get() + entries.len());
            Ok(entries)
        })
    }
    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        self.inner.commit(changes)
    }
}

const HOUR_MS: i64 = 3_600_000;

/// A measurement of each of `series` series in the hour `hour`, with a text of `len` bytes that does not compress.
fn readings(hour: i64, series: i64, len: usize) -> Vec<RawDocumentBuf> {
    let random = Random::new(hour.cast_unsigned());
    let of = |n: i64| {
        let text: String = (0..len).map(|_| char::from(b'a' + random.below(26) as u8)).collect();
        rawdoc! { "t": DateTime::from_millis(hour * HOUR_MS), "m": n, "text": text, "n": hour * 10_000 + n }
    };
    (0..series).map(of).collect()
}

async fn insert(db: &Db, rows: &[RawDocumentBuf]) {
    assert!(db.insert("c", rows).await.get("writeErrors").is_none());
    db.ok(rawdoc! { "flush": 1 }).await;
}

async fn count(db: &Db, filter: RawDocumentBuf) -> usize {
    db.find(rawdoc! { "find": "c", "filter": filter, "projection": { "n": 1 } }).await.len()
}

/// Two contexts over one collection of 300 buckets, and how many values they have read.
async fn contexts(len: usize) -> (Db, Db, Rc<Counting>) {
    let storage = Rc::new(Counting::default());
    let [writer, reader] = [1, 2].map(|seed| Db::open(storage.clone(), TestEnv::new(seed)));
    writer.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    insert(&writer, &readings(1, 300, len)).await;
    (writer, reader, storage)
}

#[test]
fn a_bucket_that_was_scanned_is_not_read_again() {
    block_on(async {
        let (_, reader, storage) = contexts(10).await;
        assert_eq!(count(&reader, rawdoc! {}).await, 300);
        let read = storage.values.take();
        assert!(read >= 300, "{read}");
        for _ in 0..2 {
            assert_eq!(count(&reader, rawdoc! {}).await, 300);
            assert_eq!(count(&reader, rawdoc! { "t": { "$gte": DateTime::from_millis(HOUR_MS) } }).await, 300);
        }
        // Only the catalog entry may be read.
        assert!(storage.values.take() <= 4);
    });
}

#[test]
fn the_parameter_limits_the_buckets_that_stay_in_memory() {
    block_on(async {
        let (_, _, storage) = contexts(10).await;
        let mut read_again = Vec::new();
        for (seed, read_cache_bytes) in [(3, 0), (4, 200_000), (5, READ_CACHE_BYTES)] {
            let options = CatalogOptions { read_cache_bytes, ..CatalogOptions::default() };
            let reader = Db::open_with(BucketFormat::default(), options, storage.clone(), TestEnv::new(seed));
            assert_eq!(count(&reader, rawdoc! {}).await, 300);
            storage.values.take();
            assert_eq!(count(&reader, rawdoc! {}).await, 300);
            read_again.push(storage.values.take());
        }
        assert!(read_again[0] >= 300 && (100..300).contains(&read_again[1]) && read_again[2] <= 4, "{read_again:?}");
    });
}

#[test]
fn a_query_of_a_folded_collection_lists_no_epochs_in_reserve() {
    block_on(async {
        let (writer, reader, storage) = contexts(10).await;
        for db in [writer, reader] {
            assert_eq!(count(&db, rawdoc! {}).await, 300);
            storage.keys.take();
            assert_eq!(count(&db, rawdoc! {}).await, 300);
            assert_eq!(storage.keys.take(), 2, "the collection exists, and its epoch");
        }
    });
}

#[test]
fn scans_of_cached_buckets_see_changes_of_other_contexts() {
    block_on(async {
        let (writer, reader, storage) = contexts(10).await;
        assert_eq!(count(&reader, rawdoc! {}).await, 300);
        insert(&writer, &readings(2, 50, 10)).await;
        assert_eq!(count(&reader, rawdoc! {}).await, 350);
        writer.ok(rawdoc! { "delete": "c", "deletes": [{ "q": { "m": { "$lt": 100_i64 } }, "limit": 0 }] }).await;
        assert_eq!(count(&reader, rawdoc! {}).await, 200);
        // These rows are not folded yet.
        writer.insert("c", &readings(3, 20, 10)).await;
        assert_eq!(count(&reader, rawdoc! {}).await, 220);
        // The context does not read its own changes again.
        storage.values.take();
        insert(&reader, &readings(900, 5, 10)).await;
        reader.ok(rawdoc! { "delete": "c", "deletes": [{ "q": { "m": 200_i64 }, "limit": 0 }] }).await;
        assert_eq!(count(&reader, rawdoc! {}).await, 224);
        writer.ok(rawdoc! { "drop": "c" }).await;
        writer.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        insert(&writer, &readings(1, 7, 10)).await;
        assert_eq!(count(&reader, rawdoc! {}).await, 7);
    });
}

/// Where no row matches, a scan from the end comes to the start.
#[test]
fn scans_from_the_end_read_cached_buckets_without_listing_their_keys_and_see_changes_of_other_contexts() {
    block_on(async {
        let (writer, reader, storage) = contexts(10).await;
        let newest = async |least: i64| {
            let filter = rawdoc! { "n": { "$gte": least } };
            let command = rawdoc! { "find": "c", "filter": filter, "sort": { "t": -1 }, "limit": 1 };
            let found = reader.find(command).await;
            found.first().map(|row| row.get_i64("n").unwrap())
        };
        assert_eq!(newest(100_000).await, None);
        assert!(storage.values.take() >= 300 && storage.keys.take() >= 300);
        assert_eq!(newest(100_000).await, None);
        storage.keys.take();
        storage.values.take();
        assert_eq!(newest(100_000).await, None);
        assert!(storage.keys.take() <= 2 && storage.values.take() <= 4);
        insert(&writer, &readings(11, 1, 10)).await;
        for _ in 0..3 {
            assert_eq!(newest(100_000).await, Some(110_000));
        }
        // Not folded yet, and then folded by the context itself.
        writer.insert("c", &readings(12, 1, 10)).await;
        assert_eq!(newest(100_000).await, Some(120_000));
        insert(&reader, &readings(13, 1, 10)).await;
        writer.ok(rawdoc! { "delete": "c", "deletes": [{ "q": { "m": { "$gte": 1_i64 } }, "limit": 0 }] }).await;
        for least in [130_000, 130_001, 130_001, 130_001] {
            assert_eq!(newest(least).await, (least == 130_000).then_some(130_000));
        }
        writer.ok(rawdoc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] }).await;
        assert_eq!(newest(0).await, None);
    });
}

/// Rows of one series in hours before now, ascending: without gaps, or some of them long ago and some in the future.
#[test]
fn scans_from_the_end_list_only_the_last_of_many_buckets_and_find_every_row() {
    block_on(async {
        let now_hour = TestEnv::new(1).now_ms.get() / HOUR_MS;
        let scattered = [-200_000, -90_000, -89_999, -3000, -300, -40, -5, -4, -3, -2, -1, 0, 1, 9, 20_000];
        for hours in [(-1999..=0).collect::<Vec<i64>>(), scattered.to_vec()] {
            let storage = Rc::new(Counting::default());
            let [writer, reader] = [1, 2].map(|seed| Db::open(storage.clone(), TestEnv::new(seed)));
            writer.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
            let row = |hour: &i64| {
                let at = DateTime::from_millis((now_hour + hour) * HOUR_MS + 5);
                rawdoc! { "t": at, "m": 1, "n": *hour }
            };
            insert(&writer, &hours.iter().map(row).collect::<Vec<_>>()).await;
            let newest = async |limit: i64| {
                let mut found = Vec::new();
                // All buckets, and those of a series, which an index names.
                for filter in [rawdoc! {}, rawdoc! { "m": 1 }] {
                    let sort = rawdoc! { "t": -1 };
                    let command =
                        rawdoc! { "find": "c", "filter": filter, "sort": sort, "limit": limit, "batchSize": 100_000 };
                    let rows = reader.find(command).await;
                    found.push(rows.iter().map(|row| row.get_i64("n").unwrap()).collect::<Vec<_>>());
                }
                found
            };
            let expected = |limit: usize| vec![hours.iter().rev().take(limit).copied().collect::<Vec<_>>(); 2];
            storage.keys.take();
            assert_eq!(newest(2).await, expected(2));
            let listed = storage.keys.take();
            assert!(listed < 40, "{listed}");
            // Of a series as well, more are listed as more rows are wanted.
            let of_series = rawdoc! { "find": "c", "filter": { "m": 1 }, "sort": { "t": -1 }, "limit": 100 };
            assert_eq!(reader.find(of_series).await.len(), hours.len().min(100));
            let listed = storage.keys.take();
            assert!(listed < 400, "{listed}");
            for limit in [5, 13, 400, 5000] {
                assert_eq!(newest(limit).await, expected(limit as usize), "{limit}");
            }
        }
    });
}

#[test]
fn the_newest_of_many_buckets_that_ended_long_ago_are_found_without_a_list_of_all() {
    block_on(async {
        let now_hour = TestEnv::new(1).now_ms.get() / HOUR_MS;
        for ended_hours_ago in [5, 300, 20_000, 200_000] {
            let storage = Rc::new(Counting::default());
            let [writer, reader] = [1, 2].map(|seed| Db::open(storage.clone(), TestEnv::new(seed)));
            writer.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
            let last_hour = now_hour - ended_hours_ago;
            let row = |hour: i64| rawdoc! { "t": DateTime::from_millis(hour * HOUR_MS + 5), "m": hour % 2, "n": hour };
            insert(&writer, &(last_hour - 4999..=last_hour).map(row).collect::<Vec<_>>()).await;
            let newest = async |filter: RawDocumentBuf, limit: i64| {
                let command = rawdoc! { "find": "c", "filter": filter, "sort": { "t": -1 }, "limit": limit };
                let rows = reader.find(command).await;
                rows.iter().map(|row| row.get_i64("n").unwrap()).collect::<Vec<_>>()
            };
            storage.keys.take();
            assert_eq!(newest(rawdoc! {}, 3).await, [last_hour, last_hour - 1, last_hour - 2]);
            let listed = storage.keys.take();
            assert!(listed < 4000, "{listed} keys of data that ended {ended_hours_ago} hours ago");
            for time in 0..3 {
                assert_eq!(newest(rawdoc! {}, 3).await, [last_hour, last_hour - 1, last_hour - 2]);
                // The buckets of the end are in memory, and so is the knowledge that these are all of it.
                assert!(time < 2 || storage.keys.take() <= 2, "{ended_hours_ago}");
                assert_eq!(newest(rawdoc! { "m": 1_i64 - last_hour % 2 }, 1).await, [last_hour - 1]);
                let listed = storage.keys.take();
                assert!(listed < 40, "{listed} keys of data that ended {ended_hours_ago} hours ago");
            }
            // Rows of others, later and between, and the last ones deleted.
            insert(&writer, &[row(last_hour + 1), row(last_hour - 1)]).await;
            assert_eq!(newest(rawdoc! {}, 3).await, [last_hour + 1, last_hour, last_hour - 1]);
            let later = rawdoc! { "t": { "$gt": DateTime::from_millis((last_hour - 2000) * HOUR_MS + 5) } };
            writer.ok(rawdoc! { "delete": "c", "deletes": [{ "q": later, "limit": 0 }] }).await;
            assert_eq!(newest(rawdoc! {}, 1).await, [last_hour - 2000]);
            writer.ok(rawdoc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] }).await;
            assert!(newest(rawdoc! {}, 1).await.is_empty());
            insert(&writer, &[row(now_hour), row(now_hour + 900)]).await;
            assert_eq!(newest(rawdoc! {}, 3).await, [now_hour + 900, now_hour]);
        }
    });
}

#[test]
fn small_buckets_that_do_not_stay_in_memory_are_read_until_their_columns_do() {
    block_on(async {
        let storage = Rc::new(Counting::default());
        let options = CatalogOptions { read_cache_bytes: 1_500_000, ..CatalogOptions::default() };
        let writer = Db::open(storage.clone(), TestEnv::new(1));
        writer.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        let row = |n: i64| rawdoc! { "t": DateTime::from_millis(n / 20 * HOUR_MS), "m": { "id": n % 60 }, "n": n, "v": n % 7 };
        insert(&writer, &(0..6000).map(row).collect::<Vec<_>>()).await;
        let shift = rawdoc! { "w": { "$shift": { "output": "$n", "by": -1 } } };
        let window = rawdoc! { "$setWindowFields": { "partitionBy": "$m.id", "sortBy": { "t": 1 }, "output": shift } };
        let forty = rawdoc! { "n": 40, "sortBy": { "t": -1 }, "output": "$n" };
        let filter = rawdoc! { "$match": { "v": { "$gt": 2 } } };
        let pipelines = [
            vec![rawdoc! { "$group": { "_id": "$v", "n": { "$sum": "$n" } } }],
            vec![window.clone()],
            vec![filter.clone(), window],
            vec![rawdoc! { "$group": { "_id": "$m", "n": { "$topN": forty } } }, rawdoc! { "$unwind": "$n" }],
            vec![filter, rawdoc! { "$sort": { "t": 1 } }, rawdoc! { "$limit": 3300 }],
        ];
        let read = async |reader: &Db, stages: &[RawDocumentBuf]| {
            let count = rawdoc! { "$group": { "_id": null, "n": { "$sum": "$n" }, "w": { "$sum": "$w" } } };
            let stages: bson::RawArrayBuf = stages.iter().cloned().chain([count]).map(RawBson::Document).collect();
            storage.values.take();
            let reply = reader.ok(rawdoc! { "aggregate": "c", "pipeline": stages, "cursor": {} }).await;
            let rows = reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().clone();
            (rows, storage.values.take())
        };
        let reader = || Db::open_with(BucketFormat::default(), options, storage.clone() as Rc<_>, TestEnv::new(2));
        for stages in &pipelines {
            let mut answers = Vec::new();
            let reader = reader();
            // Now it knows that buckets are small.
            assert!(read(&reader, &pipelines[0]).await.1 > 4000);
            for _ in 0..4 {
                answers.push(read(&reader, stages).await);
            }
            let all: Vec<usize> = answers.iter().map(|(_, read)| *read).collect();
            assert!(answers.iter().all(|(rows, _)| *rows == answers[0].0), "{answers:?}");
            // A limit may be reached with the first buckets.
            let first = if stages.len() == 3 { 600 } else { 0 };
            assert!(all[3] <= first, "{all:?}: {stages:?}");
        }
        // A changed bucket is found, and only what lies around it is read.
        let reader = reader();
        for is_changed in [false, true] {
            if is_changed {
                insert(&writer, &[row(3001)]).await;
            }
            let changed = [
                read(&reader, &pipelines[0]).await,
                read(&reader, &pipelines[0]).await,
                read(&reader, &pipelines[0]).await,
            ];
            assert!(changed[2].1 == 0, "{changed:?}");
        }
        let fresh = Db::open(storage.clone(), TestEnv::new(3));
        assert_eq!(count(&fresh, rawdoc! {}).await, 6001);
    });
}

#[test]
fn a_filter_on_a_path_of_metadata_reads_a_bucket_of_each_series_and_those_that_match() {
    block_on(async {
        let storage = Rc::new(Counting::default());
        let [writer, reader] = [1, 2].map(|seed| Db::open(storage.clone(), TestEnv::new(seed)));
        writer.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        let (series, hours) = (20, 300);
        let row = |n: i64| {
            let at = DateTime::from_millis(n / series * HOUR_MS);
            rawdoc! { "t": at, "m": { "id": n % series, "site": n % 3 }, "n": n }
        };
        insert(&writer, &(0..series * hours).map(row).collect::<Vec<_>>()).await;
        storage.values.take();
        for round in 0..2 {
            let found = count(&reader, rawdoc! { "m.id": 7_i64 }).await;
            assert_eq!(found, hours as usize);
            let read = storage.values.take();
            assert!(read < (series + hours) as usize + 40, "{read} buckets in round {round}");
        }
        // A range of times with more buckets than stay in memory is read once.
        let options = CatalogOptions { read_cache_bytes: 4_000_000, ..CatalogOptions::default() };
        let small = Db::open_with(BucketFormat::default(), options, storage.clone(), TestEnv::new(3));
        let mut read = Vec::new();
        for _ in 0..3 {
            let late = rawdoc! { "m.id": 7_i64, "t": { "$gte": DateTime::from_millis(30 * HOUR_MS) } };
            assert_eq!(count(&small, late).await, 270);
            read.push(storage.values.take());
        }
        assert!(read[0] > 5000 && read[1] < 400 && read[2] < 300, "{read:?}");
        // Another filter, rows that are not folded, and series that are new.
        writer.insert("c", &[row(7), row(series * hours + 7)]).await;
        assert_eq!(count(&reader, rawdoc! { "m.id": 7_i64 }).await, hours as usize + 2);
        let new = |id: i64| rawdoc! { "t": DateTime::from_millis(HOUR_MS), "m": { "id": id, "site": 9 }, "n": 1 };
        insert(&writer, &[new(50), new(7)]).await;
        assert_eq!(count(&reader, rawdoc! { "m.site": 9 }).await, 2);
        assert_eq!(count(&reader, rawdoc! { "m.id": { "$in": [7_i64, 50_i64] } }).await, hours as usize + 4);
        writer.ok(rawdoc! { "delete": "c", "deletes": [{ "q": { "m.id": 7_i64 }, "limit": 0 }] }).await;
        assert_eq!(count(&reader, rawdoc! { "m.id": { "$in": [7_i64, 50_i64] } }).await, 1);
        assert_eq!(count(&reader, rawdoc! {}).await, ((series - 1) * hours) as usize + 1);
    });
}

#[test]
fn the_distinct_values_of_metadata_are_read_from_a_bucket_of_each_series() {
    block_on(async {
        let storage = Rc::new(Counting::default());
        let [writer, reader] = [1, 2].map(|seed| Db::open(storage.clone(), TestEnv::new(seed)));
        writer.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        let row = |hour: i64, meta: Option<RawBson>| {
            let mut row = rawdoc! { "t": DateTime::from_millis(hour * HOUR_MS), "n": hour % 3 };
            if let Some(meta) = meta {
                row.append(bson::raw::cstr!("m"), meta);
            }
            row
        };
        let object = |id: RawBson| Some(RawBson::Document(rawdoc! { "id": id }));
        let meta = |hour: i64| match hour % 6 {
            // Values that compare equal, and metadata that is null or missing: one series each.
            0 => object(RawBson::Int32(1)),
            1 => object(RawBson::Double(1.0)),
            2 => object(RawBson::String("a".to_owned())),
            3 => None,
            4 => Some(RawBson::Null),
            _ => object(RawBson::Null),
        };
        insert(&writer, &(0..600).map(|hour| row(hour, meta(hour))).collect::<Vec<_>>()).await;
        let distinct = async |key: &str, query: RawDocumentBuf| {
            let reply = reader.ok(rawdoc! { "distinct": "c", "key": key, "query": query }).await;
            reply.get_array("values").unwrap().iter().map(|value| format!("{value:?}")).collect::<Vec<_>>()
        };
        // A filter that all rows pass, but which metadata does not decide.
        let all = rawdoc! { "n": { "$gte": 0 } };
        storage.values.take();
        let found = [distinct("m.id", rawdoc! {}).await, distinct("m", rawdoc! {}).await];
        let read = storage.values.take();
        assert!(read < 330, "{read} of 600 buckets");
        assert_eq!(found, [distinct("m.id", all.clone()).await, distinct("m", all.clone()).await]);
        assert_eq!(found[0].len(), 3);
        let some = || rawdoc! { "m.id": { "$in": [1, "a"] } };
        let both = rawdoc! { "$and": [some(), all.clone()] };
        assert_eq!(distinct("m.id", some()).await, distinct("m.id", both).await);
        // Rows that are not folded, of old and new series; then a series whose first buckets are deleted.
        writer.insert("c", &[row(3, object(RawBson::String("z".to_owned()))), row(700, meta(0))]).await;
        assert_eq!(distinct("m.id", rawdoc! {}).await.len(), 4);
        insert(&writer, &[row(0, object(RawBson::String("y".to_owned())))]).await;
        let early = rawdoc! { "t": { "$lt": DateTime::from_millis(300 * HOUR_MS) } };
        writer.ok(rawdoc! { "delete": "c", "deletes": [{ "q": early, "limit": 0 }] }).await;
        for key in ["m.id", "m"] {
            assert_eq!(distinct(key, rawdoc! {}).await, distinct(key, all.clone()).await);
        }
        assert_eq!(distinct("m.id", rawdoc! {}).await.len(), 3);
    });
}

#[test]
fn the_newest_rows_of_a_series_about_now_are_those_of_all_its_rows() {
    block_on(async {
        let now_ms = TestEnv::new(1).now_ms.get();
        for seed in 0..40 {
            let random = Random::new(seed);
            let storage = Rc::new(Counting::default());
            let [writer, reader] = [1, 2].map(|seed| Db::open(storage.clone(), TestEnv::new(seed)));
            let timeseries = rawdoc! { "timeField": "t", "metaField": "m", "granularity": "seconds" };
            let create = rawdoc! { "create": "c", "timeseries": timeseries };
            let with_dedupe = {
                let mut create = create.clone();
                create.append(bson::raw::cstr!("dedupe"), rawdoc! {});
                create
            };
            writer.ok(if seed % 4 == 1 { with_dedupe } else { create }).await;
            let mut all: Vec<(i64, i64)> = Vec::new();
            if seed % 4 == 0 {
                // Of 1938 and 2096: ids of their buckets say nothing about order.
                all = vec![(-1_000_000_000_000, 0), (4_000_000_000_000, 0), (4_000_000_000_000, 1)];
                let documents = all.iter().map(|(ms, m)| rawdoc! { "t": DateTime::from_millis(*ms), "m": *m });
                insert(&writer, &documents.collect::<Vec<_>>()).await;
            }
            for _ in 0..4 {
                // Up to ten hours back, in no order, and some of them in the future.
                let ago = |_| 1000 * (random.below(36_000) as i64 - 3000) + random.below(1000) as i64;
                let rows: Vec<(i64, i64)> =
                    (0..15).map(ago).map(|ago| (now_ms - ago, random.below(3) as i64)).collect();
                let documents = rows.iter().map(|(ms, m)| rawdoc! { "t": DateTime::from_millis(*ms), "m": *m });
                let documents: Vec<_> = documents.collect();
                match random.below(3) {
                    0 => assert!(writer.insert("c", &documents).await.get("writeErrors").is_none()),
                    _ => insert(&writer, &documents).await,
                }
                all.extend(rows);
            }
            for m in 0..3 {
                let mut times: Vec<i64> = all.iter().filter(|(_, of)| *of == m).map(|(ms, _)| *ms).collect();
                times.sort_unstable_by(|a, b| b.cmp(a));
                for limit in [1, 3, 8, 100] {
                    let (filter, sort) = (rawdoc! { "m": m }, rawdoc! { "t": -1 });
                    let command = rawdoc! { "find": "c", "filter": filter, "sort": sort, "limit": limit as i64 };
                    let found = reader.find(command).await;
                    let found: Vec<i64> =
                        found.iter().map(|row| row.get_datetime("t").unwrap().timestamp_millis()).collect();
                    assert_eq!(found, times[..limit.min(times.len())], "{seed} {m} {limit}");
                }
            }
        }
    });
}

#[test]
fn a_scan_larger_than_the_cache_finds_every_row_and_reuses_the_beginning() {
    block_on(async {
        let (_, reader, storage) = contexts(3 * scan_cache_bytes(READ_CACHE_BYTES) / 300).await;
        let mut reads = Vec::new();
        for _ in 0..3 {
            storage.values.take();
            assert_eq!(count(&reader, rawdoc! {}).await, 300);
            reads.push(storage.values.take());
        }
        assert!(reads[1] < reads[0] && reads[1] > 150 && reads[2].abs_diff(reads[1]) <= 1, "{reads:?}");
    });
}

#[test]
fn journal_rows_of_a_bucket_after_the_cached_range_are_found_once() {
    block_on(async {
        let (writer, reader, _) = contexts(10).await;
        assert_eq!(count(&reader, rawdoc! { "t": { "$lt": DateTime::from_millis(0) } }).await, 0);
        // Into stored buckets, after the range that is known to be empty.
        writer.insert("c", &readings(1, 20, 10)).await;
        for direction in [1, -1] {
            let sorted = rawdoc! { "find": "c", "sort": { "t": direction }, "projection": { "n": 1 } };
            assert_eq!(reader.find(sorted).await.len(), 320, "{direction}");
        }
        assert_eq!(count(&reader, rawdoc! {}).await, 320);
    });
}
