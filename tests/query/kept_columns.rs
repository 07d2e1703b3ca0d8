//! Decoded columns stay in memory with their bucket: a query that is asked again gives the same, and what has changed meanwhile.

use std::rc::Rc;

use bson::{DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use timepail::bucket::BucketFormat;
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Changeset, KeyRange, Page, Storage};

use crate::support::pipelines::run;
use crate::support::{Db, TestEnv, canonical, raw};

/// Rows of some series; columns of each type, with absent cells and cells of another type.
fn rows(series: i32, from: i32, count: i32) -> Vec<RawDocumentBuf> {
    let row = |n: i32| {
        let mut row = doc! {
            "at": DateTime::from_millis(i64::from(n) * 10_000), "m": { "id": n % series, "name": format!("at {}", n % series / 2) }, "n": n, "v": f64::from(n * 7 % 50) / 4.0,
            "s": (["calm", "brisk"][n as usize % 2]), "mixed": n, "wind": { "speed": n % 9, "at": DateTime::from_millis(i64::from(n)) },
        };
        if n % 5 == 1 {
            row.remove("v");
        }
        if n % 7 == 1 {
            row.insert("mixed", [n, 1]);
        }
        raw(&row)
    };
    (from..from + count).map(row).collect()
}

fn pipelines() -> Vec<Vec<Document>> {
    let minute = doc! { "$dateTrunc": { "date": "$at", "unit": "minute" } };
    vec![
        vec![
            doc! { "$group": { "_id": { "id": "$m.id", "name": "$m.name", "at": minute }, "v": { "$avg": "$v" }, "n": { "$max": "$n" } } },
        ],
        vec![
            doc! { "$match": { "v": { "$gt": 6 }, "s": "calm" } },
            doc! { "$project": { "_id": 0, "n": 1, "mixed": 1 } },
        ],
        vec![
            doc! { "$sort": { "at": -1 } },
            doc! { "$group": { "_id": "$m.id", "last": { "$first": "$v" }, "n": { "$first": "$n" } } },
        ],
        vec![doc! { "$sort": { "at": 1 } }, doc! { "$limit": 3 }, doc! { "$project": { "_id": 0 } }],
        vec![doc! { "$group": { "_id": "$s", "speed": { "$sum": "$wind.speed" }, "n": { "$sum": 1 } } }],
        vec![doc! { "$match": { "n": { "$lt": 330 } } }, doc! { "$project": { "_id": 0 } }],
        vec![
            doc! { "$match": { "at": { "$gte": DateTime::from_millis(500_000), "$lt": DateTime::from_millis(5_000_000) } } },
            doc! { "$group": { "_id": "$s", "v": { "$sum": "$v" }, "ids": { "$max": "$m.id" } } },
        ],
        vec![doc! { "$match": { "m.id": { "$gt": 1 } } }, doc! { "$group": { "_id": "$m.id", "v": { "$sum": "$v" } } }],
        vec![doc! { "$project": { "_id": 0, "n": 1, "v": 1 } }, doc! { "$match": { "n": { "$gte": 0 } } }],
        // Most rows of most buckets match, so several buckets are filtered at once.
        vec![
            doc! { "$match": { "v": { "$ne": 3 }, "n": { "$nin": [444, 470, 9002] } } },
            doc! { "$group": { "_id": { "s": "$s", "id": "$m.id" }, "v": { "$sum": "$v" }, "n": { "$sum": 1 } } },
        ],
        vec![doc! { "$group": { "_id": null, "all": { "$addToSet": "$mixed" }, "at": { "$min": "$at" } } }],
    ]
}

async fn answers(db: &Db) -> Vec<Vec<Vec<u8>>> {
    let mut all = Vec::new();
    for pipeline in pipelines() {
        let told = |row: &Document| {
            let mut row = row.clone();
            if let Ok(all) = row.get_array_mut("all") {
                all.sort_by_key(|value| format!("{value:?}"));
            }
            canonical(&row)
        };
        let mut rows: Vec<Vec<u8>> = run(db, pipeline).await.iter().map(told).collect();
        rows.sort();
        all.push(rows);
    }
    all
}

#[test]
fn a_query_that_is_asked_again_gives_what_a_database_says_that_was_just_opened() {
    // Of many series, pipelines take the rows of several buckets together.
    let formats = [BucketFormat::Uncompressed, BucketFormat::Compressed];
    for (format, series) in formats.into_iter().flat_map(|format| [(format, 3), (format, 40)]) {
        block_on(async {
            let storage = Rc::new(MemoryStorage::new());
            let db = Db::open_as(format, Rc::clone(&storage) as _, TestEnv::new(1));
            db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "m" } }).await;
            let mut before = Vec::new();
            for step in 0..6 {
                match step {
                    // Later rows; earlier ones for the same buckets; rows for a new bucket; rows for one of many series; one row
                    // less in a bucket between others.
                    0 => db.insert("weather", &rows(series, 300, 300)).await,
                    1 => db.insert("weather", &rows(series, 100, 200)).await,
                    2 => db.insert("weather", &rows(series, 9000, 9)).await,
                    3 => {
                        db.insert("weather", &rows(series, 410, 200).into_iter().step_by(40).collect::<Vec<_>>()).await
                    }
                    4 => db.ok(rawdoc! { "delete": "weather", "deletes": [{ "q": { "n": 590 }, "limit": 0 }] }).await,
                    _ => {
                        db.ok(
                            rawdoc! { "delete": "weather", "deletes": [{ "q": { "n": { "$lt": 200 } }, "limit": 0 }] },
                        )
                        .await
                    }
                };
                for is_folded in [false, true] {
                    if is_folded {
                        db.ok(rawdoc! { "flush": 1 }).await;
                    }
                    let opened = Db::open_as(format, Rc::clone(&storage) as _, TestEnv::new(2));
                    let expected = answers(&opened).await;
                    for time in 0..4 {
                        assert_eq!(
                            answers(&db).await,
                            expected,
                            "{format:?}, {series} series, step {step}, folded: {is_folded}, time {time}"
                        );
                    }
                    assert!(expected.iter().all(|rows| !rows.is_empty()));
                    before.push(expected);
                }
            }
            assert!(
                before.chunks(2).all(|two| two[0] == two[1])
                    && before[1] != before[3]
                    && before[5] != before[7]
                    && before[7] != before[9]
                    && before[9] != before[11]
            );
        });
    }
}

#[test]
fn a_row_for_which_the_filter_fails_behind_the_rows_that_are_enough_is_no_error() {
    block_on(async {
        let db = Db::open_as(BucketFormat::Compressed, Rc::new(MemoryStorage::new()), TestEnv::new(1));
        db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "m" } }).await;
        db.insert("weather", &rows(40, 0, 600)).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        // Of the last series, the last row.
        let divided = doc! { "$divide": [1, { "$subtract": ["$n", 599] }] };
        let of = |limit: i32| {
            vec![
                doc! { "$match": { "$expr": { "$lt": [divided.clone(), 2] } } },
                doc! { "$project": { "_id": 0, "list": ["$n", "$v"] } },
                doc! { "$unwind": "$list" },
                doc! { "$limit": limit },
            ]
        };
        for _ in 0..3 {
            assert_eq!(run(&db, of(560)).await.len(), 560);
            let all = doc! { "aggregate": "weather", "pipeline": of(10_000), "cursor": { "batchSize": 10_000 } };
            db.fails(raw(&all)).await;
        }
    });
}

#[test]
fn damage_in_a_bucket_behind_the_rows_that_are_enough_is_no_error() {
    block_on(async {
        let storage = Rc::new(MemoryStorage::new());
        let db = Db::open_as(BucketFormat::Compressed, Rc::clone(&storage) as _, TestEnv::new(1));
        db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "m" } }).await;
        db.insert("weather", &rows(40, 0, 600)).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let all = KeyRange { start: b"B".to_vec(), end: b"C".to_vec() };
        let page = Page { entries_max: 1000, keys_only: false };
        let last = storage.scan(std::slice::from_ref(&all), page).await.unwrap().pop().unwrap();
        // The first byte of the column `n`, behind its length and subtype.
        let mut damaged = last.value;
        let place = damaged.windows(3).rposition(|bytes| bytes == [5, b'n', 0]).unwrap();
        damaged[place + 8] = 0x20;
        let mut changes = Changeset::new();
        changes.put(last.key, damaged);
        storage.commit(changes).await.unwrap();
        let opened = Db::open_as(BucketFormat::Compressed, storage as _, TestEnv::new(2));
        let of = |limit: i32| {
            vec![
                doc! { "$project": { "_id": 0, "list": ["$n", "$v"] } },
                doc! { "$unwind": "$list" },
                doc! { "$limit": limit },
            ]
        };
        for _ in 0..3 {
            assert_eq!(run(&opened, of(560)).await.len(), 560);
            let all = doc! { "aggregate": "weather", "pipeline": of(10_000), "cursor": { "batchSize": 10_000 } };
            assert_eq!(opened.fails(raw(&all)).await.1, "DataCorruptionDetected");
        }
    });
}
