//! Groups of time-ordered rows, which are returned as soon as no later row can belong to them.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, bson, doc, rawdoc};
use futures::executor::block_on;
use timepail::block::{Block, Column, ColumnData};
use timepail::bucket::BucketFormat;
use timepail::storage::memory::MemoryStorage;

use crate::support::explained::{Explained, explain};
use crate::support::pipelines::run_in;
use crate::support::{Db, Random, TestEnv, raw};

pub const MINUTE_MS: i64 = 60_000;

pub fn trunc(unit: &str, size: i32, zone: &str) -> Bson {
    bson!({ "$dateTrunc": { "date": "$at", "unit": unit, "binSize": size, "timezone": zone } })
}

/// Inserts rows of one series: their times and numbers.
pub async fn insert(db: &Db, meta: i32, of: Vec<(i64, i32)>) {
    let mut rows = Block::new(of.len());
    rows.set_column("at", Column::new(ColumnData::Date(of.iter().map(|row| row.0).collect()), None));
    rows.set_column("n", Column::new(ColumnData::I32(of.iter().map(|row| row.1).collect()), None));
    let reply = db.command_with(rawdoc! { "insert": "weather", "columns": true, "meta": meta }, Some(&rows)).await;
    assert_eq!(reply.get_i32("n").unwrap() as usize, of.len());
}

/// Rows of two series with distinct times, in buckets and in the journal.
pub async fn stored(random: &Random, count: i64, start_ms: i64, step_ms: i64) -> Db {
    let format = [BucketFormat::Uncompressed, BucketFormat::Compressed][random.below(2) as usize];
    let db = Db::open_as(format, Rc::new(MemoryStorage::new()), TestEnv::new(random.next()));
    db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "m" } }).await;
    let mut numbers: Vec<i64> = (0..count).collect();
    for at in (1..numbers.len()).rev() {
        numbers.swap(at, random.below(at as u64 + 1) as usize);
    }
    for part in numbers.chunks(1 + numbers.len() / 3) {
        for series in 0..2 {
            let own: Vec<i64> = part.iter().copied().filter(|n| n % 2 == series).collect();
            insert(&db, series as i32, own.iter().map(|n| (start_ms + n * step_ms, *n as i32)).collect()).await;
        }
        if random.chance(70) {
            db.ok(rawdoc! { "flush": 1 }).await;
        }
    }
    db
}

#[test]
fn streaming_groups_equal_groups_over_all_rows() {
    let (mut streamed, mut groups) = (0, 0);
    for seed in 0..60 {
        let random = Random::new(seed);
        // Sometimes around a clock change in St. John's.
        let start_ms = [0, 1_289_090_400_000][random.below(2) as usize];
        let keys = [
            bson!("$at"),
            trunc("hour", 1, "UTC"),
            trunc("minute", 90, "America/St_Johns"),
            trunc("day", 1, "America/St_Johns"),
            bson!({ "m": "$m", "hour": trunc("hour", 2, "+05:45") }),
            bson!({ "hour": trunc("hour", 1, "UTC"), "day": trunc("day", 1, "UTC"), "n": { "$mod": ["$n", 3] } }),
            bson!({ "$add": ["$at", 1000] }),
            bson!({ "$subtract": [DateTime::from_millis(5), "$at"] }),
            bson!({ "$hour": "$at" }),
            bson!({ "$subtract": ["$at", "$at"] }),
            Bson::Null,
        ];
        let key = keys[random.below(keys.len() as u64) as usize].clone();
        let mut group = doc! { "_id": key };
        let names = [("all", "$push"), ("first", "$first"), ("set", "$addToSet"), ("sum", "$sum"), ("high", "$max")];
        for (name, operator) in names {
            if random.chance(50) {
                group.insert(name, doc! { operator: "$n" });
            }
        }
        let direction = [1, -1][random.below(2) as usize];
        let sort = if random.chance(50) {
            doc! { "at": direction }
        } else {
            doc! { "at": direction, "n": 1 }
        };
        let mut pipeline = vec![doc! { "$sort": sort }, doc! { "$group": group }];
        if random.chance(30) {
            pipeline.insert(0, doc! { "$match": { "n": { "$gte": random.below(3000) as i64 } } });
        }
        block_on(async {
            let db = stored(&random, 1 + random.below(5000) as i64, start_ms, MINUTE_MS / 2).await;
            let mut apart = pipeline.clone();
            apart.insert(0, doc! { "$_internalInhibitOptimization": {} });
            let text = |rows: Vec<Document>| {
                let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
                rows.sort_unstable();
                rows
            };
            let wanted = text(run_in(&db, apart, 1000).await);
            for batch in [3, 1000] {
                assert_eq!(text(run_in(&db, pipeline.clone(), batch).await), wanted, "seed {seed}: {pipeline:?}");
            }
            groups += wanted.len();
            streamed += usize::from(streaming(&explained(&db, pipeline).await).is_some());
        });
    }
    assert!(streamed > 20 && groups > 5000, "{streamed} {groups}");
}

pub async fn explained(db: &Db, pipeline: Vec<Document>) -> Explained {
    explain(db, raw(&doc! { "aggregate": "weather", "pipeline": pipeline })).await
}

/// The fields of the id that show when a group is complete, if groups stream.
fn streaming(explained: &Explained) -> Option<Vec<&str>> {
    let stage = explained.stages().into_iter().find_map(|stage| stage.get_document("$_internalStreamingGroup").ok())?;
    Some(stage.get_array("$monotonicIdFields").unwrap().iter().map(|name| name.as_str().unwrap()).collect())
}

#[test]
fn a_group_streams_if_part_of_its_key_is_monotonic_in_the_sorted_time() {
    block_on(async {
        let db = stored(&Random::new(1), 20, 0, MINUTE_MS).await;
        let by = |sort: Document, key: Bson, operator: &str| {
            vec![doc! { "$sort": sort }, doc! { "$group": { "_id": key, "all": { operator: "$n" } } }]
        };
        let time = || doc! { "at": 1 };
        let named = |pipeline: Vec<Document>| {
            let db = &db;
            async move {
                let explained = explained(db, pipeline).await;
                streaming(&explained).map(|names| names.join(" "))
            }
        };
        let id = Some("_id".to_owned());
        assert_eq!(named(by(time(), "$at".into(), "$push")).await, id);
        assert_eq!(named(by(doc! { "at": -1 }, trunc("week", 1, "UTC"), "$push")).await, id);
        assert_eq!(named(by(time(), trunc("hour", 1, "Europe/London"), "$push")).await, id);
        assert_eq!(named(by(doc! { "at": 1, "n": 1 }, trunc("hour", 1, "UTC"), "$sum")).await, id);
        let parts = bson!({ "m": "$m", "a": trunc("hour", 1, "UTC"), "b": { "$add": ["$at", 1] } });
        assert_eq!(named(by(time(), parts, "$push")).await, Some("a b".to_owned()));
        for (sort, key, operator) in [
            // If clocks go back across midnight, a day occurs twice.
            (time(), trunc("day", 1, "Europe/London"), "$push"),
            (time(), bson!({ "$hour": "$at" }), "$push"),
            (time(), bson!("$m"), "$push"),
            (time(), Bson::Null, "$push"),
            (doc! { "m": 1, "at": 1 }, trunc("hour", 1, "UTC"), "$push"),
            (doc! { "n": 1 }, trunc("hour", 1, "UTC"), "$push"),
            // If no order is needed, nothing is sorted.
            (time(), trunc("hour", 1, "UTC"), "$sum"),
        ] {
            assert_eq!(named(by(sort.clone(), key.clone(), operator)).await, None, "{sort} {key} {operator}");
        }
        let mut apart = by(time(), "$at".into(), "$push");
        apart.insert(0, doc! { "$_internalInhibitOptimization": {} });
        assert_eq!(named(apart).await, None);
    });
}

#[test]
fn the_first_groups_come_before_the_last_buckets_are_unpacked() {
    block_on(async {
        let db = stored(&Random::new(2), 1, 0, MINUTE_MS).await;
        insert(&db, 1, (0..100_000).map(|n| (i64::from(n) * MINUTE_MS, n)).collect()).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let unpacked = async |direction: i32, more: Option<Document>| {
            let group = doc! { "_id": trunc("hour", 1, "UTC"), "all": { "$push": "$n" } };
            let mut pipeline = vec![doc! { "$sort": { "at": direction } }, doc! { "$group": group }];
            pipeline.extend(more);
            let explained = explained(&db, pipeline).await;
            explained.stages()[1].get_i64("nBucketsUnpacked").unwrap()
        };
        for direction in [1, -1] {
            let all = unpacked(direction, None).await;
            let some = unpacked(direction, Some(doc! { "$limit": 2 })).await;
            assert!(all > 1500 && some * 2 < all, "{some} of {all}");
        }
    });
}
