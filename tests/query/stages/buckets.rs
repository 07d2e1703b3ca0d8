//! `$bucket` and `$bucketAuto`.

use bson::{Bson, Document, doc};

use super::{code, list, row, run, values, with_rows};

/// Measurements with `n` from 0 to 9, unsorted.
fn rows() -> Vec<Document> {
    (0..10_i32).map(|n| row(n.into(), "a", doc! { "n": n * 7 % 10, "one": 1 })).collect()
}

fn bucket(low: i32, count: i32) -> Document {
    doc! { "_id": low, "count": count }
}

#[test]
fn values_belong_to_the_boundary_at_or_below_them() {
    with_rows(rows(), async |db| {
        let stage = doc! { "$bucket": { "groupBy": "$n", "boundaries": [0, 2, 7, 10] } };
        assert_eq!(run(db, vec![stage]).await, [bucket(0, 2), bucket(2, 5), bucket(7, 3)]);
        let stage = doc! { "$bucket": {
            "groupBy": { "$add": ["$n", 0.5] }, "boundaries": [3, 5.5], "default": "$other",
            "output": { "count": { "$sum": "$one" }, "low": { "$min": "$n" } },
        } };
        assert_eq!(code(db, stage.clone()).await, 40195);
        let stage = doc! { "$bucket": {
            "groupBy": { "$add": ["$n", 0.5] }, "boundaries": [3, 5.5], "default": "other",
            "output": { "count": { "$sum": "$one" }, "low": { "$min": "$n" } },
        } };
        let rows = run(db, vec![stage]).await;
        assert_eq!(rows, [doc! { "_id": 3, "count": 2, "low": 3 }, doc! { "_id": "other", "count": 8, "low": 0 }]);
        let outside = doc! { "$bucket": { "groupBy": "$n", "boundaries": [0, 9] } };
        assert_eq!(code(db, outside).await, 40066);
    });
}

#[test]
fn strings_that_look_like_paths_are_valid_boundaries() {
    with_rows(vec![row(0, "$b", doc! {}), row(1, "a", doc! {})], async |db| {
        let literal = |text: &str| doc! { "$literal": text };
        let stage = doc! { "$bucket": { "groupBy": "$station", "boundaries": [literal("$a"), "a", "b"] } };
        assert_eq!(run(db, vec![stage]).await, [doc! { "_id": "$a", "count": 1 }, doc! { "_id": "a", "count": 1 }]);
    });
}

#[test]
fn automatic_buckets_begin_with_rows_without_a_value_and_go_on_with_nan() {
    let auto = doc! { "$bucketAuto": { "groupBy": "$x", "buckets": 3 } };
    let id = |min: Bson, max: Bson, count: i32| doc! { "_id": { "min": min, "max": max }, "count": count };
    let second = |values: [Option<Bson>; 6]| {
        (0..).zip(values).map(|(at, x)| row(at, "a", x.map_or_else(|| doc! {}, |x| doc! { "x": x }))).collect()
    };
    let doubles =
        [Some(1.0.into()), Some(Bson::Null), Some(f64::NAN.into()), None, Some((-1.0).into()), Some(7.0.into())];
    with_rows(second(doubles), async |db| {
        // As strings, for NaN does not equal itself.
        let text = |path: &str| doc! { "$ifNull": [{ "$toString": path }, "nothing"] };
        let shown = doc! { "$project": { "_id": 0, "min": text("$_id.min"), "max": text("$_id.max"), "count": 1 } };
        let expected = [("nothing", "NaN"), ("NaN", "1"), ("1", "7")];
        let expected = expected.map(|(min, max)| doc! { "count": 2, "min": min, "max": max });
        assert_eq!(run(db, vec![auto.clone(), shown]).await, expected);
    });
    // The least int64 is behind null.
    let least: Bson = i64::MIN.into();
    let longs = [Some(5_i64.into()), None, Some(least.clone()), None, Some(least.clone()), Some(7_i64.into())];
    with_rows(second(longs), async |db| {
        let expected =
            [id(Bson::Null, least.clone(), 2), id(least.clone(), 5_i64.into(), 2), id(5_i64.into(), 7_i64.into(), 2)];
        assert_eq!(run(db, vec![auto.clone()]).await, expected);
    });
}

#[test]
fn automatic_buckets_are_of_equal_size_and_keep_equal_values_together() {
    let auto = |by: &str, buckets: i32| doc! { "$bucketAuto": { "groupBy": by, "buckets": buckets } };
    let id = |min: i32, max: i32, count: i32| doc! { "_id": { "min": min, "max": max }, "count": count };
    with_rows(rows(), async |db| {
        assert_eq!(run(db, vec![auto("$n", 3)]).await, [id(0, 3, 3), id(3, 6, 3), id(6, 9, 4)]);
        assert_eq!(run(db, vec![auto("$n", 4)]).await, [id(0, 3, 3), id(3, 6, 3), id(6, 9, 3), id(9, 9, 1)]);
        assert_eq!(run(db, vec![auto("$n", 1)]).await, [id(0, 9, 10)]);
        assert_eq!(run(db, vec![auto("$n", 100)]).await.len(), 10);
        assert_eq!(run(db, vec![auto("$one", 4)]).await, [id(1, 1, 10)]);
        let none = run(db, vec![auto("$none", 2)]).await;
        assert_eq!(none, [doc! { "_id": { "min": Bson::Null, "max": Bson::Null }, "count": 10 }]);
        let all = doc! { "$bucketAuto": { "groupBy": "$n", "buckets": 2, "output": {
            "all": { "$push": "$n" }, "root": { "$first": "$$ROOT" },
        } } };
        let rows = run(db, vec![doc! { "$sort": { "at": 1 } }, all]).await;
        // In the order of the rows.
        assert_eq!(values(&rows, "all"), list![list![0, 4, 1, 2, 3], list![7, 8, 5, 9, 6]]);
        assert_eq!(rows[0].get_document("root").unwrap().keys().collect::<Vec<_>>(), ["at", "station", "n", "one"]);
        let empty = doc! { "$bucketAuto": { "groupBy": "$n", "buckets": 1, "output": {} } };
        assert_eq!(run(db, vec![empty]).await, [id(0, 9, 10)]);
        assert!(run(db, vec![doc! { "$match": { "n": 100 } }, auto("$n", 3)]).await.is_empty());
    });
    let ties = [1, 1, 1, 2, 3, 3].iter().zip(0..).map(|(n, at)| row(at, "a", doc! { "n": *n }));
    with_rows(ties.collect(), async |db| {
        assert_eq!(run(db, vec![auto("$n", 3)]).await, [id(1, 2, 3), id(2, 3, 3)]);
    });
}

#[test]
fn invalid_bucket_stages_are_refused_with_their_codes() {
    with_rows(rows(), async |db| {
        let bucket = |more: Document| {
            let mut argument = doc! { "groupBy": "$n", "boundaries": [0, 100] };
            argument.extend(more);
            doc! { "$bucket": argument }
        };
        let auto = |more: Document| {
            let mut argument = doc! { "groupBy": "$n", "buckets": 2 };
            argument.extend(more);
            doc! { "$bucketAuto": argument }
        };
        for (wanted, stage) in [
            (40201, doc! { "$bucket": 1 }),
            (40198, doc! { "$bucket": {} }),
            (40198, doc! { "$bucket": { "groupBy": "$n" } }),
            (40202, bucket(doc! { "groupBy": "n" })),
            (40202, bucket(doc! { "groupBy": { "a": 1 } })),
            (40200, bucket(doc! { "boundaries": 1 })),
            (40191, bucket(doc! { "boundaries": ["$n", 1] })),
            (40192, bucket(doc! { "boundaries": [1] })),
            (40193, bucket(doc! { "boundaries": [1, "x"] })),
            (40194, bucket(doc! { "boundaries": [1, 1] })),
            (40195, bucket(doc! { "default": "$n" })),
            (40199, bucket(doc! { "default": 50 })),
            (40196, bucket(doc! { "output": 1 })),
            (40197, bucket(doc! { "x": 1 })),
            (15948, bucket(doc! { "output": { "_id": 1 } })),
            (40240, doc! { "$bucketAuto": 1 }),
            (40246, doc! { "$bucketAuto": {} }),
            (40239, auto(doc! { "groupBy": "n" })),
            (40239, auto(doc! { "groupBy": "$" })),
            (40241, auto(doc! { "buckets": "x" })),
            (40242, auto(doc! { "buckets": 1.5 })),
            (40242, auto(doc! { "buckets": 1_i64 << 40 })),
            (40243, auto(doc! { "buckets": 0 })),
            (40244, auto(doc! { "output": 1 })),
            (40245, auto(doc! { "x": 1 })),
            (40261, auto(doc! { "granularity": 1 })),
            (40257, auto(doc! { "granularity": "R6" })),
            (40258, auto(doc! { "granularity": "R5", "groupBy": "$station" })),
            (40258, auto(doc! { "granularity": "R5", "groupBy": "$gone" })),
            (40259, auto(doc! { "granularity": "R5", "groupBy": { "$multiply": ["$n", f64::NAN] } })),
            (40260, auto(doc! { "granularity": "R5", "groupBy": { "$subtract": ["$n", 5] } })),
        ] {
            assert_eq!(code(db, stage.clone()).await, wanted, "{stage}");
        }
    });
}

#[test]
fn boundaries_with_a_granularity_are_preferred_numbers() {
    // The example of the manual.
    let rows =
        (0..100_i32).map(|n| row(n.into(), "a", doc! { "n": n, "few": ([0, 0, 0, 7, 8][n as usize % 5]) })).collect();
    with_rows(rows, async |db| {
        let auto =
            |by: &str, series: &str| doc! { "$bucketAuto": { "groupBy": by, "buckets": 5, "granularity": series } };
        let shown = async |stage: Document| -> Vec<(f64, f64, i32)> {
            let rows = run(db, vec![stage]).await;
            let number = |id: &Document, name: &str| id.get_f64(name).unwrap();
            let bucket = |row: &Document| {
                let id = row.get_document("_id").unwrap();
                (number(id, "min"), number(id, "max"), row.get_i32("count").unwrap())
            };
            rows.iter().map(bucket).collect()
        };
        let renard = [(0.0, 20.0, 20), (20.0, 40.0, 20), (40.0, 63.0, 23), (63.0, 90.0, 27), (90.0, 100.0, 10)];
        assert_eq!(shown(auto("$n", "R20")).await, renard);
        let resistors = [(0.0, 20.0, 20), (20.0, 43.0, 23), (43.0, 68.0, 25), (68.0, 91.0, 23), (91.0, 100.0, 9)];
        assert_eq!(shown(auto("$n", "E24")).await, resistors);
        assert_eq!(shown(auto("$n", "1-2-5")).await, [(0.0, 20.0, 20), (20.0, 50.0, 30), (50.0, 100.0, 50)]);
        assert_eq!(shown(auto("$n", "POWERSOF2")).await, [(0.0, 32.0, 32), (32.0, 64.0, 32), (64.0, 128.0, 36)]);
        let zeros = shown(auto("$few", "R5")).await;
        assert_eq!(zeros.iter().map(|(.., count)| count).sum::<i32>(), 100);
        assert_eq!(zeros.last().map(|(_, max, _)| *max), Some(10.0));
    });
}
