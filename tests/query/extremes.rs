//! Counts and extremes of whole series, which buckets answer without their columns.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, bson, doc, rawdoc};
use futures::executor::block_on;
use timepail::bucket::{BucketDoc, BucketFormat, CollectionOptions, extreme_rows};
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;
use timepail::value::{Doc, FieldSet};

use crate::support::closing::close_buckets;
use crate::support::explained::explain;
use crate::support::pipelines::{run, run_in};
use crate::support::{Db, Random, TestEnv, raw};

/// A value that summaries and accumulators may treat differently.
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

/// The rows in every stored state: folded, in the journal, or both in one bucket; some deleted, some with
/// other metadata, some in buckets that are closed.
async fn stored(format: BucketFormat, random: &Random, rows: &[Document]) -> Db {
    let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
    let mut db = Db::open_as(format, Rc::clone(&storage), TestEnv::new(random.next()));
    let mut create = doc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "m" } };
    if random.chance(30) {
        create.insert("collation", doc! { "locale": "en", "strength": 2 });
    }
    if random.chance(30) {
        let timeseries = create.get_document_mut("timeseries").unwrap();
        timeseries.insert("bucketMaxSpanSeconds", 3600);
        timeseries.insert("bucketRoundingSeconds", 3600);
    }
    db.ok(raw(&create)).await;
    for part in rows.chunks(1 + rows.len() / 3) {
        db.insert("weather", &part.iter().map(raw).collect::<Vec<_>>()).await;
        if random.chance(60) {
            db.ok(rawdoc! { "flush": 1 }).await;
        }
        let number = random.below(rows.len() as u64 + 1) as i64;
        let delete = async |filter: Document| {
            db.ok(rawdoc! { "delete": "weather", "deletes": [{ "q": raw(&filter), "limit": 0 }] }).await
        };
        match random.below(7) {
            0 => drop(delete(doc! { "n": { "$gte": number, "$lt": number + 5 } }).await),
            1 => drop(delete(doc! { "at": { "$lt": DateTime::from_millis(number * 30_000) } }).await),
            2 => drop(delete(doc! { "m.s": 2 }).await),
            3 => {
                let change = rawdoc! { "q": { "m.s": 1 }, "u": { "$set": { "m.s": 0 } }, "multi": true };
                db.ok(rawdoc! { "update": "weather", "updates": [change] }).await;
            }
            4 => {
                close_buckets(&*storage, &|| random.chance(50)).await;
                // Another context, which may write another bucket version.
                db = Db::open_as(FORMATS[random.below(2) as usize], Rc::clone(&storage), TestEnv::new(random.next()));
            }
            _ => {}
        }
    }
    db
}

const FORMATS: [BucketFormat; 2] = [BucketFormat::Uncompressed, BucketFormat::Compressed];

/// A pipeline that groups by `keys`, sometimes with a filter, or only counts.
fn grouping(random: &Random, keys: &[Bson]) -> Vec<Document> {
    let mut group = doc! { "_id": keys[random.below(keys.len() as u64) as usize].clone() };
    let names = [
        ("low", "$min", bson!("$a")),
        ("high", "$max", bson!("$a")),
        ("other", "$max", bson!("$b")),
        ("count", "$sum", bson!(1)),
        ("also", "$count", bson!({})),
        ("long", "$sum", bson!(1_i64)),
        ("double", "$sum", bson!(1.0)),
        ("twice", "$sum", bson!(2)),
        ("last", "$max", bson!("$at")),
        ("first", "$min", bson!("$at")),
        ("series", "$min", bson!("$m")),
    ];
    for (name, operator, input) in names {
        let percent = if ["long", "twice", "first"].contains(&name) { 5 } else { 45 };
        if random.chance(percent) {
            group.insert(name, doc! { operator: input });
        }
    }
    let mut pipeline = vec![doc! { "$group": group }];
    if random.chance(20) {
        pipeline = vec![doc! { "$count": "n" }];
    } else if random.chance(20) {
        let direction = [1, -1][random.below(2) as usize];
        pipeline.insert(0, doc! { "$sort": { "at": direction } });
    }
    if random.chance(40) {
        let from = DateTime::from_millis(random.below(200) as i64 * 60_000);
        let filters = [doc! { "at": { "$gte": from } }, doc! { "m.s": { "$gte": 1 } }, doc! { "n": { "$lt": 40 } }];
        pipeline.insert(0, doc! { "$match": filters[random.below(3) as usize].clone() });
    }
    pipeline
}

/// Asserts that a pipeline gives the same rows without optimisation; returns their number.
async fn answers_alike(db: &Db, pipeline: Vec<Document>, what: &dyn std::fmt::Display) -> usize {
    let mut apart = pipeline.clone();
    apart.insert(0, doc! { "$_internalInhibitOptimization": {} });
    // Of equal values any may come: 2 or 2.0, and either zero.
    let text = |rows: Vec<Document>| -> Vec<String> {
        let rows = numbers_alike(rows).into_iter().map(|row| format!("{row:?}").replace("Double(-0.0)", "Double(0.0)"));
        let mut rows: Vec<String> = rows.collect();
        rows.sort_unstable();
        rows
    };
    let found = text(run_in(db, pipeline.clone(), 3).await);
    assert_eq!(found, text(run_in(db, apart, 101).await), "{what}: {pipeline:?}");
    found.len()
}

#[test]
fn counts_and_extremes_of_series_equal_those_of_their_rows_in_every_form() {
    let keys = [bson!("$m"), bson!("$m.s"), Bson::Null, bson!({ "s": "$m.s", "k": 1 }), bson!("$at")];
    let mut answered = 0;
    for seed in 0..200 {
        let random = Random::new(seed);
        let rows = rows(&random);
        let format = FORMATS[random.below(2) as usize];
        block_on(async {
            let db = stored(format, &random, &rows).await;
            for _ in 0..2 {
                answered += answers_alike(&db, grouping(&random, &keys), &format_args!("seed {seed}")).await;
            }
        });
    }
    assert!(answered > 500, "hardly any group: {answered}");
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

/// Sixty folded rows of two series, six per hour, in buckets of an hour.
async fn sixty(format: BucketFormat) -> Db {
    let db = Db::open_as(format, Rc::new(MemoryStorage::new()), TestEnv::new(1));
    db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "m" } }).await;
    let row = |n: i64| rawdoc! { "at": DateTime::from_millis(n * 600_000), "m": n % 2, "x": n as f64, "text": "a" };
    db.insert("weather", &(0..60).map(row).collect::<Vec<_>>()).await;
    db.ok(rawdoc! { "flush": 1 }).await;
    db
}

/// How many buckets a pipeline unpacks.
async fn unpacked(db: &Db, pipeline: Vec<Document>) -> i64 {
    let explained = explain(db, raw(&doc! { "aggregate": "weather", "pipeline": pipeline })).await;
    let stages = explained.stages();
    assert!(!stages.iter().any(|stage| stage.to_string().contains('\0')), "{stages:?}");
    stages.iter().find_map(|stage| stage.get_i64("nBucketsUnpacked").ok()).unwrap()
}

#[test]
fn counts_and_extremes_of_whole_buckets_unpack_nothing() {
    for format in FORMATS {
        block_on(async {
            let db = sixty(format).await;
            let count = doc! { "$count": "n" };
            let after = |hour: i64| doc! { "$match": { "at": { "$gte": DateTime::from_millis(hour * 3_600_000) } } };
            let group = |fields: Document| {
                let mut group = doc! { "_id": "$m" };
                group.extend(fields);
                doc! { "$group": group }
            };
            for pipeline in [
                vec![count.clone()],
                vec![doc! { "$match": { "m": 1 } }, count.clone()],
                vec![after(3), count.clone()],
                vec![doc! { "$sortByCount": "$m" }],
                vec![group(doc! { "n": { "$sum": 1 } })],
                vec![group(doc! { "n": { "$sum": 1.0 }, "long": { "$sum": 1_i64 } })],
                vec![group(doc! { "n": { "$count": {} }, "low": { "$min": "$x" }, "last": { "$max": "$at" } })],
                vec![doc! { "$sort": { "at": 1 } }, group(doc! { "n": { "$sum": 1 }, "last": { "$max": "$at" } })],
            ] {
                assert_eq!(unpacked(&db, pipeline.clone()).await, 0, "{pipeline:?}");
                answers_alike(&db, pipeline, &"sixty").await;
            }
            // One bucket at the border of the range has some matching rows.
            let at = doc! { "$match": { "at": { "$gte": DateTime::from_millis(3 * 3_600_000 + 600_000) } } };
            assert_eq!(unpacked(&db, vec![at, count.clone()]).await, 1);
            for pipeline in [
                vec![doc! { "$match": { "x": { "$gte": 7 } } }, count.clone()],
                vec![doc! { "$limit": 7 }, count.clone()],
                vec![group(doc! { "n": { "$sum": Bson::Decimal128("1".parse().unwrap()) } })],
                vec![group(doc! { "n": { "$sum": 2 } })],
                vec![group(doc! { "n": { "$sum": 1.5 } })],
                vec![group(doc! { "n": { "$avg": 1 } })],
                // Summaries do not tell which of the equal values 1 and 1.0 comes first by the sort.
                vec![doc! { "$sort": { "at": 1 } }, group(doc! { "n": { "$sum": 1 }, "high": { "$max": "$x" } })],
                vec![group(doc! { "n": { "$sum": 1 }, "x": { "$sum": "$x" } })],
                vec![group(doc! { "n": { "$sum": 1 }, "text": { "$max": "$text" } })],
            ] {
                assert!(unpacked(&db, pipeline.clone()).await > 0, "{pipeline:?}");
                answers_alike(&db, pipeline, &"sixty").await;
            }
        });
    }
}

/// Time bins; a bucket lies inside one bin, or in several.
fn bins() -> Vec<Bson> {
    let trunc = |unit: &str, size: i32, zone: &str| bson!({ "$dateTrunc": { "date": "$at", "unit": unit, "binSize": size, "timezone": zone } });
    vec![
        trunc("hour", 1, "UTC"),
        trunc("minute", 90, "+05:45"),
        trunc("day", 1, "America/St_Johns"),
        trunc("minute", 1, "UTC"),
        bson!({ "m": "$m", "day": trunc("day", 1, "Europe/London"), "kind": "x" }),
        bson!({ "s": "$m.s", "hour": { "$hour": "$at" } }),
        bson!({ "$dateToString": { "date": trunc("hour", 2, "UTC"), "format": "%H" } }),
        bson!({ "hour": trunc("hour", 1, "UTC"), "a": "$a" }),
        bson!({ "hour": trunc("hour", 1, "UTC"), "at": "$at" }),
    ]
}

#[test]
fn counts_and_extremes_of_time_bins_equal_those_of_their_rows_in_every_form() {
    let mut answered = 0;
    for seed in 1000..1200 {
        let random = Random::new(seed);
        let mut rows = rows(&random);
        // Around the epoch, around a clock change in St. John's, or at another time.
        let shift = [0, -3_600_000, 1_289_090_400_000, 1_700_000_000_000][random.below(4) as usize];
        for row in &mut rows {
            let at = row.get_datetime("at").unwrap().timestamp_millis();
            row.insert("at", DateTime::from_millis(at + shift));
        }
        let format = FORMATS[random.below(2) as usize];
        block_on(async {
            let db = stored(format, &random, &rows).await;
            for _ in 0..2 {
                answered += answers_alike(&db, grouping(&random, &bins()), &format_args!("seed {seed}")).await;
            }
        });
    }
    assert!(answered > 1000, "hardly any group: {answered}");
}

#[test]
fn a_bucket_inside_one_time_bin_is_not_unpacked() {
    for format in FORMATS {
        block_on(async {
            let db = sixty(format).await;
            let by = |id: Bson| {
                let fields = doc! { "_id": id, "n": { "$sum": 1 }, "low": { "$min": "$x" }, "last": { "$max": "$at" } };
                vec![doc! { "$group": fields }]
            };
            let trunc =
                |unit: &str, size: i32| bson!({ "$dateTrunc": { "date": "$at", "unit": unit, "binSize": size } });
            let all = unpacked(&db, vec![doc! { "$group": { "_id": "$x" } }]).await;
            for id in [
                trunc("day", 1),
                bson!({ "m": "$m", "day": trunc("day", 1) }),
                bson!({ "y": { "$year": "$at" }, "d": { "$dayOfYear": "$at" }, "one": 1 }),
            ] {
                assert_eq!(unpacked(&db, by(id.clone())).await, 0, "{id}");
                answers_alike(&db, by(id), &"sixty").await;
            }
            // Some buckets lie inside one of these bins, some in two.
            let some = unpacked(&db, by(trunc("minute", 100))).await;
            assert!(0 < some && some < all, "{some} of {all}");
            answers_alike(&db, by(trunc("minute", 100)), &"sixty").await;
            let mut first = by(trunc("day", 1));
            first[0].get_document_mut("$group").unwrap().insert("first", doc! { "$min": "$at" });
            for pipeline in [by(trunc("minute", 1)), by(bson!({ "d": trunc("day", 1), "at": "$at" })), first] {
                assert_eq!(unpacked(&db, pipeline.clone()).await, all, "{pipeline:?}");
                answers_alike(&db, pipeline, &"sixty").await;
            }
            // Other contexts round times before 1970 up.
            let early = rawdoc! { "at": DateTime::from_millis(-1), "m": 5 };
            db.insert("weather", &[early]).await;
            db.ok(rawdoc! { "flush": 1 }).await;
            assert_eq!(unpacked(&db, by(trunc("day", 1))).await, all + 1);
            assert_eq!(unpacked(&db, by(bson!("$m"))).await, 0);
        });
    }
}

#[test]
fn a_count_has_the_type_of_the_summed_constant() {
    block_on(async {
        let db = sixty(BucketFormat::Compressed).await;
        let mut counts = doc! { "_id": null, "n": { "$sum": 1.0 }, "long": { "$sum": 1_i64 }, "int": { "$sum": 1 } };
        let mut wanted = doc! { "n": 60.0, "long": 60_i64, "int": 60 };
        for unpacks in [false, true] {
            let pipeline = vec![doc! { "$group": counts.clone() }, doc! { "$project": { "_id": 0 } }];
            assert_eq!(unpacked(&db, pipeline.clone()).await > 0, unpacks);
            assert_eq!(run(&db, pipeline).await, [wanted.clone()]);
            for (name, number, sum) in [("three", 3.0, 180.0), ("none", 0.0, 0.0), ("some", 0.25, 15.0)] {
                counts.insert(name, doc! { "$sum": number });
                wanted.insert(name, sum);
            }
        }
    });
}

#[test]
fn journal_rows_are_counted_beside_the_count_of_their_stored_bucket() {
    block_on(async {
        let db = sixty(BucketFormat::Compressed).await;
        let late = |n: i64| rawdoc! { "at": DateTime::from_millis(n * 600_000 + 1), "m": 1, "x": 1000 };
        db.insert("weather", &[late(1), late(3), late(5)]).await;
        let by_series = doc! { "$group": { "_id": "$m", "n": { "$sum": 1 }, "high": { "$max": "$x" } } };
        let found = run(&db, vec![by_series, doc! { "$match": { "_id": 1 } }]).await;
        assert_eq!(found, [doc! { "_id": 1_i64, "n": 33, "high": 1000 }]);
        assert_eq!(run(&db, vec![doc! { "$count": "n" }]).await, [doc! { "n": 63 }]);
    });
}

#[test]
fn extremes_of_series_unpack_no_bucket_inside_the_time_range() {
    block_on(async {
        let db = sixty(BucketFormat::Compressed).await;
        let unpacked = async |group: Document, filter: Document| {
            unpacked(&db, vec![doc! { "$match": filter }, doc! { "$group": group }]).await
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
fn summaries_that_may_not_be_values_of_a_row_are_not_used_as_extremes() {
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
        extreme_rows(&view, &FieldSet::one("a"), "at", false).unwrap().map(|rows| rows.columns().len())
    };
    assert_eq!(known(Some(bson!(1)), Some(bson!(2.5))), Some(1));
    assert_eq!(known(Some(bson!(1)), Some(bson!(true))), Some(1));
    assert_eq!(known(None, None), Some(0));
    for (least, greatest) in [
        // The minimum in the summary is null, and the least value other than null is unknown.
        (Some(Bson::Null), Some(bson!(5))),
        (Some(bson!([4, 1])), Some(bson!([9, 4]))),
        (Some(bson!({ "x": 1, "y": 1 })), Some(bson!({ "x": 2, "y": 5 }))),
        (Some(bson!(1)), Some(bson!([2]))),
        // Summaries use the collation of the collection, which may differ from that of the query.
        (Some(bson!("A")), Some(bson!("b"))),
        (Some(bson!(1)), Some(bson!("b"))),
        (None, Some(bson!(1))),
    ] {
        assert_eq!(known(least.clone(), greatest.clone()), None, "{least:?} {greatest:?}");
    }
}
