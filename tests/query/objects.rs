//! Paths into objects of measurements: whether objects are stored whole or as columns of their scalars, the answers are the same.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, bson, doc, rawdoc};
use futures::executor::block_on;
use timepail::bucket::BucketFormat;
use timepail::storage::memory::MemoryStorage;

use crate::support::pipelines::run;
use crate::support::{Db, TestEnv, raw};

/// Objects of one shape that differ from row to row; in `mixed` ones, some are missing, arrays, scalars or of another shape.
fn rows(mixed: bool) -> Vec<Document> {
    let row = |n: i32| {
        let mut wind = doc! { "speed": f64::from(n * 7 % 50) / 4.0, "max": { "gust": n * 3 % 40, "at": DateTime::from_millis(i64::from(n) * 1000) } };
        wind.insert("text", ["calm", "brisk", "strong"][n as usize % 3]);
        if n % 5 == 0 {
            wind.remove("speed");
        }
        if n % 11 == 0 {
            wind.get_document_mut("max").unwrap().remove("gust");
        }
        if n % 13 == 0 {
            wind.remove("max");
        }
        let wind = match n % 40 {
            7 if mixed => bson!([{ "speed": 3.5 }, { "speed": n }]),
            8 if mixed => Bson::Double(f64::from(n)),
            9 if mixed => bson!({ "max": { "gust": [1, n] }, "speed": "none" }),
            10 if mixed => Bson::Null,
            _ => Bson::Document(wind),
        };
        let mut row = doc! { "at": DateTime::from_millis(i64::from(n) * 10_000), "m": n % 2, "n": n, "wind": wind };
        if mixed && n % 40 == 12 {
            row.remove("wind");
        }
        row
    };
    // The first object of each series has every field.
    (1..301).map(row).collect()
}

fn pipelines() -> Vec<Vec<Document>> {
    let in_order = || doc! { "$sort": { "n": 1 } };
    let matching = |filter: Document| {
        vec![doc! { "$match": filter }, in_order(), doc! { "$group": { "_id": null, "n": { "$push": "$n" } } }]
    };
    let mean =
        |value: Bson| vec![doc! { "$group": { "_id": "$m", "a": { "$avg": value.clone() }, "b": { "$max": value } } }];
    let list = |value: Bson| vec![in_order(), doc! { "$group": { "_id": "$m", "c": { "$push": value } } }];
    let last = doc! { "$last": "$wind.max.gust", "window": { "documents": [-2, 0] } };
    let window = doc! { "partitionBy": "$m", "sortBy": { "at": 1 }, "output": { "w": last } };
    let is_object = || doc! { "$match": { "$expr": { "$eq": [{ "$type": "$wind" }, "object"] } } };
    let mixed = doc! { "$cond": [{ "$isNumber": "$wind.speed" }, "$wind.speed", null] };
    vec![
        mean("$wind.speed".into()),
        mean("$wind.max.gust".into()),
        mean(bson!({ "$add": [{ "$ifNull": [mixed, 0.5] }, "$n"] })),
        list("$wind.speed".into()),
        list("$wind.max".into()),
        list("$wind".into()),
        list("$wind.none".into()),
        list(bson!({ "$getField": { "field": "speed", "input": "$wind" } })),
        list(bson!({ "$getField": { "field": "max", "input": "$wind" } })),
        list(
            bson!({ "$getField": { "field": "gust", "input": { "$getField": { "field": "max", "input": "$wind" } } } }),
        ),
        list(bson!({ "$getField": { "field": "max.gust", "input": "$wind" } })),
        list("$wind.speed.none".into()),
        list(bson!({ "$type": "$wind.max.at" })),
        vec![
            in_order(),
            doc! { "$group": { "_id": "$wind.text", "n": { "$sum": 1 }, "first": { "$first": "$wind" } } },
        ],
        vec![doc! { "$group": { "_id": "$wind.max", "n": { "$sum": "$wind.speed" } } }],
        matching(doc! { "wind.speed": { "$gt": 6 } }),
        matching(doc! { "wind.max.gust": { "$in": [3, 6, 9, null] } }),
        matching(doc! { "wind.speed": { "$exists": false } }),
        matching(doc! { "wind.max.gust": { "$not": { "$mod": [2, 0] } } }),
        matching(doc! { "wind.text": "calm", "wind.max.at": { "$gte": DateTime::from_millis(60_000) } }),
        matching(doc! { "wind": { "$type": "object" }, "wind.0.speed": null }),
        matching(doc! { "wind.max": { "$exists": true } }),
        matching(doc! { "wind.max": { "$exists": false } }),
        matching(doc! { "wind.max": null, "wind": { "$type": "object" } }),
        matching(doc! { "wind.max": { "$type": "object" } }),
        matching(doc! { "wind.max": { "$not": { "$gt": 5 } } }),
        matching(doc! { "wind.max": { "$gt": { "gust": 5 } } }),
        matching(doc! { "wind.max": { "$ne": Bson::MinKey }, "wind": { "$lt": Bson::MaxKey } }),
        matching(doc! { "$expr": { "$gt": ["$wind.speed", "$wind.max.gust"] } }),
        vec![doc! { "$sort": { "wind.speed": 1, "n": 1 } }, doc! { "$project": { "wind.speed": 1, "n": 1 } }],
        vec![
            doc! { "$sort": { "wind.max.gust": -1, "n": 1 } },
            doc! { "$limit": 20 },
            doc! { "$project": { "wind.max": 0 } },
        ],
        vec![doc! { "$sort": { "wind.text": 1, "n": -1 } }, doc! { "$project": { "n": 1 } }],
        vec![
            doc! { "$match": { "n": { "$lt": 7 } } },
            doc! { "$addFields": { "wind.sum": { "$concat": ["$wind.text", "!"] } } },
        ],
        vec![doc! { "$setWindowFields": window }, doc! { "$project": { "w": 1 } }],
        vec![doc! { "$addFields": { "wind.max.n": "$n", "wind.speed": "$wind.text", "wind.new": "$n" } }],
        vec![
            doc! { "$addFields": { "wind.twice": { "$multiply": ["$n", 2] }, "wind.max.gust": "$wind.none" } },
            doc! { "$group": { "_id": "$wind.text", "n": { "$sum": "$wind.twice" }, "max": { "$max": "$wind.max" } } },
        ],
        vec![
            doc! { "$unset": ["wind.max.at", "wind.speed"] },
            doc! { "$group": { "_id": "$wind.text", "n": { "$sum": "$wind.max.gust" } } },
        ],
        vec![doc! { "$project": { "wind.max.gust": 1, "wind.text": 1 } }, in_order()],
        vec![
            doc! { "$project": { "wind.max": { "gust": 1 }, "n": 1 } },
            doc! { "$sort": { "wind.max.gust": 1, "n": 1 } },
        ],
        vec![
            is_object(),
            doc! { "$replaceRoot": { "newRoot": "$wind" } },
            doc! { "$group": { "_id": { "s": "$speed", "m": "$max", "t": "$text" }, "n": { "$sum": 1 } } },
        ],
        vec![
            is_object(),
            doc! { "$replaceWith": "$wind" },
            doc! { "$group": { "_id": "$max.gust", "n": { "$sum": "$speed" }, "t": { "$addToSet": "$text" } } },
            doc! { "$project": { "n": 1, "t": { "$size": "$t" } } },
        ],
        vec![
            in_order(),
            doc! { "$unwind": "$wind" },
            doc! { "$group": { "_id": null, "n": { "$push": "$wind.speed" } } },
        ],
        vec![
            doc! { "$facet": { "a": [{ "$sort": { "wind.speed": 1, "n": 1 } }, { "$limit": 2 }], "b": [{ "$count": "n" }] } },
        ],
    ]
}

/// `_id` is made by chance, and keys may come in any order.
fn told(rows: &[Document]) -> Vec<String> {
    let mut told: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
    told.sort();
    told
}

#[test]
fn paths_into_objects_give_the_same_in_journals_and_in_every_form_of_bucket() {
    for mixed in [false, true] {
        let mut expected: Option<Vec<_>> = None;
        for format in [BucketFormat::Uncompressed, BucketFormat::Compressed] {
            block_on(async {
                let db = Db::open_as(format, Rc::new(MemoryStorage::new()), TestEnv::new(1));
                db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "m" } }).await;
                let rows: Vec<_> = rows(mixed).iter().map(raw).collect();
                for part in rows.chunks(70) {
                    db.insert("weather", part).await;
                }
                for is_folded in [false, true] {
                    if is_folded {
                        db.ok(rawdoc! { "flush": 1 }).await;
                    }
                    let mut found = Vec::new();
                    for pipeline in pipelines() {
                        let mut rows = run(&db, pipeline.clone()).await;
                        rows.iter_mut()
                            .filter(|row| row.get_object_id("_id").is_ok())
                            .for_each(|row| drop(row.remove("_id")));
                        found.push((pipeline, told(&rows)));
                    }
                    for ((pipeline, found), (_, expected)) in found.iter().zip(expected.as_ref().unwrap_or(&found)) {
                        assert_eq!(
                            found,
                            expected,
                            "{format:?}, folded: {is_folded}, mixed: {mixed}: {}",
                            bson!(pipeline.clone())
                        );
                    }
                    assert!(found.iter().all(|(_, rows)| !rows.is_empty()));
                    expected.get_or_insert(found);
                }
            });
        }
    }
}
