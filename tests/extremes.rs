//! The least and the greatest values of whole series, which buckets know without their columns.
#![cfg(not(target_arch = "wasm32"))]
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::rc::Rc;

use bson::{Bson, DateTime, Document, bson, doc, rawdoc};
use futures::executor::block_on;
use support::pipelines::run;
use support::{Db, Random, TestEnv, raw};
use timepail::bucket::{BucketDoc, BucketFormat, CollectionOptions, ColumnSet, extreme_rows};
use timepail::storage::memory::MemoryStorage;
use timepail::value::Doc;

/// A value that summaries and accumulators may look at differently.
fn value(random: &Random, kind: u64) -> Option<Bson> {
    let number = random.below(40) as i32 - 20;
    Some(match if random.chance(70) { kind } else { random.below(14) } {
        0..=2 => bson!(f64::from(number) / 4.0),
        3 => bson!(number),
        4 => bson!(i64::from(number)),
        5 => bson!(DateTime::from_millis(i64::from(number) * 1000)),
        6 => bson!(number > 0),
        7 => bson!(["a", "B", "c"][random.below(3) as usize]),
        8 => Bson::Null,
        9 => bson!([f64::NAN, f64::INFINITY, -0.0][random.below(3) as usize]),
        10 => bson!([number, 1]),
        11 => bson!({ "a": number, "b": 2 }),
        12 => Bson::Decimal128(number.to_string().parse().unwrap()),
        _ => return None,
    })
}

fn rows(random: &Random) -> Vec<Document> {
    let kinds = [random.below(14), random.below(14)];
    let row = |n: i64| {
        let mut row = doc! { "at": DateTime::from_millis(random.below(200) as i64 * 60_000), "n": n };
        if random.chance(90) {
            row.insert("m", bson!({ "s": random.below(3) as i32, "t": "x" }));
        }
        for (name, kind) in ["a", "b"].into_iter().zip(kinds) {
            row.extend(value(random, kind).map(|value| (name.to_owned(), value)));
        }
        row
    };
    (0..1 + random.below(80) as i64).map(row).collect()
}

async fn stored(format: BucketFormat, random: &Random, rows: &[Document]) -> Db {
    let db = Db::open_as(format, Rc::new(MemoryStorage::new()), TestEnv::new(random.next()));
    let mut create = doc! { "create": "c", "timeseries": { "timeField": "at", "metaField": "m" } };
    if random.chance(30) {
        create.insert("collation", doc! { "locale": "en", "strength": 2 });
    }
    db.ok(raw(&create)).await;
    let folded = random.below(rows.len() as u64 + 1) as usize;
    for (part, folds) in [(&rows[..folded], true), (&rows[folded..], random.chance(50))] {
        if !part.is_empty() {
            db.insert("c", &part.iter().map(raw).collect::<Vec<_>>()).await;
        }
        if folds {
            db.ok(rawdoc! { "flush": 1 }).await;
        }
    }
    db
}

#[test]
fn extremes_of_series_are_those_of_their_rows_whatever_the_values() {
    let text = |rows: Vec<Document>| {
        let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
        rows.sort_unstable();
        rows
    };
    for seed in 0..400 {
        let random = Random::new(seed);
        let rows = rows(&random);
        let format = [BucketFormat::Uncompressed, BucketFormat::Compressed][random.below(2) as usize];
        let key = [bson!("$m"), bson!("$m.s"), Bson::Null, bson!({ "s": "$m.s", "k": 1 }), bson!("$at")]
            [random.below(5) as usize]
            .clone();
        let mut group = doc! { "_id": key };
        let names = [("low", "$min", "$a"), ("high", "$max", "$a"), ("other", "$max", "$b"), ("time", "$min", "$at")];
        for (name, operator, path) in names {
            if random.chance(60) && (path != "$at" || random.chance(20)) {
                group.insert(name, doc! { operator: path });
            }
        }
        let mut pipeline = vec![doc! { "$group": group }];
        if random.chance(40) {
            let from = DateTime::from_millis(random.below(200) as i64 * 60_000);
            let filters = [doc! { "at": { "$gte": from } }, doc! { "m.s": { "$gte": 1 } }, doc! { "n": { "$lt": 40 } }];
            pipeline.insert(0, doc! { "$match": filters[random.below(3) as usize].clone() });
        }
        block_on(async {
            let db = stored(format, &random, &rows).await;
            let mut apart = pipeline.clone();
            apart.insert(0, doc! { "$_internalInhibitOptimization": {} });
            // Of values that are equal any may come: 2, 2.0, and both zeros.
            let same = |text: Vec<String>| -> Vec<String> {
                text.iter().map(|row| row.replace("Double(-0.0)", "Double(0.0)")).collect()
            };
            let found = same(text(numbers_alike(run(&db, pipeline.clone()).await)));
            assert_eq!(found, same(text(numbers_alike(run(&db, apart).await))), "seed {seed}: {pipeline:?}\n{rows:?}");
        });
    }
}

/// All numbers as doubles.
fn numbers_alike(rows: Vec<Document>) -> Vec<Document> {
    fn alike(value: Bson) -> Bson {
        match value {
            Bson::Int32(n) => Bson::Double(f64::from(n)),
            Bson::Int64(n) => Bson::Double(n as f64),
            Bson::Decimal128(n) => Bson::Double(n.to_string().parse().unwrap()),
            Bson::Array(items) => Bson::Array(items.into_iter().map(alike).collect()),
            Bson::Document(fields) => {
                Bson::Document(fields.into_iter().map(|(name, field)| (name, alike(field))).collect())
            }
            other => other,
        }
    }
    rows.into_iter().map(|row| row.into_iter().map(|(name, value)| (name, alike(value))).collect()).collect()
}

#[test]
fn extremes_of_series_unpack_no_bucket_that_lies_wholly_within() {
    block_on(async {
        let db = Db::open_as(BucketFormat::Compressed, Rc::new(MemoryStorage::new()), TestEnv::new(1));
        db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "at", "metaField": "m" } }).await;
        let row = |n: i64| rawdoc! { "at": DateTime::from_millis(n * 600_000), "m": n % 2, "x": n as f64, "text": "a" };
        db.insert("c", &(0..60).map(row).collect::<Vec<_>>()).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let unpacked = async |group: Document, filter: Document| {
            let pipeline = vec![doc! { "$match": filter }, doc! { "$group": group }];
            let command = doc! { "explain": { "aggregate": "c", "pipeline": pipeline }, "verbosity": "executionStats" };
            let found = db.ok(raw(&command)).await;
            let stages = found.get_array("stages").unwrap();
            stages[1].as_document().unwrap().get_i64("nBucketsUnpacked").unwrap()
        };
        let all = doc! {};
        let extremes = doc! { "_id": "$m", "low": { "$min": "$x" }, "high": { "$max": "$x" } };
        assert_eq!(unpacked(extremes.clone(), all.clone()).await, 0);
        assert_eq!(unpacked(doc! { "_id": "$m" }, all.clone()).await, 0);
        assert_eq!(unpacked(extremes.clone(), doc! { "m": 1 }).await, 0);
        assert!(unpacked(extremes, doc! { "x": { "$gte": 5 } }).await > 0);
        for group in [
            doc! { "_id": "$m", "first": { "$min": "$at" } },
            doc! { "_id": "$m", "low": { "$min": "$text" } },
            doc! { "_id": "$m", "low": { "$min": { "$add": ["$x", 1] } } },
            doc! { "_id": "$m", "low": { "$min": "$x" }, "sum": { "$sum": "$x" } },
            doc! { "_id": "$x", "low": { "$min": "$x" } },
        ] {
            assert!(unpacked(group.clone(), all.clone()).await > 0, "{group}");
        }
    });
}

#[test]
fn summaries_that_need_not_be_the_value_of_a_row_are_not_taken_for_one() {
    let create = rawdoc! { "create": "c", "timeseries": { "timeField": "at", "metaField": "m" } };
    let create = CollectionOptions::parse_create(Doc::parse(create.as_bytes()).unwrap(), 0).unwrap();
    let options = create.timeseries;
    let known = |least: Option<Bson>, greatest: Option<Bson>| {
        let end = |value: Option<Bson>| {
            let mut end = doc! { "at": DateTime::from_millis(0) };
            end.extend(value.map(|value| ("a".to_owned(), value)));
            end
        };
        let bucket = raw(&doc! {
            "_id": bson::oid::ObjectId::from_bytes([0; 12]),
            "control": { "version": 1, "min": end(least), "max": end(greatest) },
            "data": { "at": { "0": DateTime::from_millis(0) } },
        });
        let view = BucketDoc::parse(Doc::parse(bucket.as_bytes()).unwrap(), &options).unwrap();
        extreme_rows(&view, &ColumnSet::Only(vec!["a".into()])).map(|rows| rows.columns().len())
    };
    assert_eq!(known(Some(bson!(1)), Some(bson!(2.5))), Some(1));
    assert_eq!(known(Some(bson!(1)), Some(bson!(true))), Some(1));
    assert_eq!(known(None, None), Some(0));
    for (least, greatest) in [
        // The least value that is not null is something else.
        (Some(Bson::Null), Some(bson!(5))),
        (Some(bson!([4, 1])), Some(bson!([9, 4]))),
        (Some(bson!({ "x": 1, "y": 1 })), Some(bson!({ "x": 2, "y": 5 }))),
        (Some(bson!(1)), Some(bson!([2]))),
        // By the collation of the collection, which the query need not have.
        (Some(bson!("A")), Some(bson!("b"))),
        (Some(bson!(1)), Some(bson!("b"))),
        (None, Some(bson!(1))),
    ] {
        assert_eq!(known(least.clone(), greatest.clone()), None, "{least:?} {greatest:?}");
    }
}
