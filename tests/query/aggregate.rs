//! The `aggregate` command.

use bson::{Bson, DateTime, Document, RawDocumentBuf, bson, doc, rawdoc};
use futures::executor::block_on;

use crate::support::pipelines::{code, run, with_readings, with_values};
use crate::support::weather::{database, weather};

const HOUR_MS: i64 = 3_600_000;

fn sorted_by_id(mut rows: Vec<Document>) -> Vec<Document> {
    rows.sort_by_key(|row| row.get("_id").unwrap().to_string());
    rows
}

#[test]
fn groups_by_metadata_have_sums_averages_extremes_and_counts() {
    with_readings(async |db| {
        let group = doc! { "$group": {
            "_id": "$station", "n": { "$sum": 1 }, "rows": { "$count": {} }, "sum": { "$sum": "$temp" }, "mean": { "$avg": "$temp" },
            "low": { "$min": "$temp" }, "high": { "$max": "$temp" }, "last": { "$max": "$at" },
        } };
        let rows = sorted_by_id(run(db, vec![group]).await);
        let at = DateTime::from_millis(11 * HOUR_MS / 4);
        let of = |id: &str, sum: f64, low: f64| {
            doc! { "_id": id, "n": 12, "rows": 12, "sum": sum, "mean": sum / 12.0, "low": low, "high": low + 22.0, "last": at }
        };
        assert_eq!(rows, [of("a", 132.0, 0.0), of("b", 144.0, 1.0)]);
    });
}

#[test]
fn each_hour_of_each_station_is_a_group() {
    with_readings(async |db| {
        let hour = doc! { "$dateTrunc": { "date": "$at", "unit": "hour" } };
        let group = doc! { "$group": { "_id": { "s": "$station", "h": hour }, "mean": { "$avg": "$temp" } } };
        let rows = run(db, vec![group, doc! { "$sort": { "_id.s": 1, "_id.h": -1 } }]).await;
        let of = |s: &str, hour: i64, mean: f64| doc! { "_id": { "s": s, "h": DateTime::from_millis(hour * HOUR_MS) }, "mean": mean };
        assert_eq!(
            rows,
            [of("a", 2, 19.0), of("a", 1, 11.0), of("a", 0, 3.0), of("b", 2, 20.0), of("b", 1, 12.0), of("b", 0, 4.0),]
        );
    });
}

#[test]
fn the_stages_of_a_find_run_in_their_order() {
    with_readings(async |db| {
        let limited = vec![
            doc! { "$match": { "station": "a" } },
            doc! { "$sort": { "temp": -1 } },
            doc! { "$limit": 5 },
            doc! { "$skip": 1 },
            doc! { "$match": { "temp": { "$lt": 20 } } },
            doc! { "$project": { "_id": 0, "temp": 1 } },
        ];
        assert_eq!(run(db, limited).await, [18.0, 16.0, 14.0].map(|temp| doc! { "temp": temp }));
        let set = vec![
            doc! { "$set": { "twice": { "$multiply": ["$temp", 2] }, "at": "$$REMOVE" } },
            doc! { "$match": { "twice": { "$gte": 44 } } },
            doc! { "$unset": ["temp", "nothing"] },
            doc! { "$sort": { "twice": 1 } },
        ];
        let of = |station: &str, twice: f64| doc! { "station": station, "twice": twice };
        assert_eq!(run(db, set).await, [of("a", 44.0), of("b", 46.0)]);
        assert_eq!(
            run(db, vec![doc! { "$match": { "temp": { "$gt": 20 } } }, doc! { "$count": "n" }]).await,
            [doc! { "n": 3 }]
        );
        assert!(run(db, vec![doc! { "$match": { "temp": 100 } }, doc! { "$count": "n" }]).await.is_empty());
        let common = run(db, vec![doc! { "$limit": 7 }, doc! { "$sortByCount": { "$type": "$temp" } }]).await;
        assert_eq!(common, [doc! { "_id": "double", "count": 7 }]);
    });
}

#[test]
fn the_newest_measurement_of_each_series_is_its_first_in_descending_order() {
    with_readings(async |db| {
        let newest = vec![
            doc! { "$sort": { "at": -1 } },
            doc! { "$group": { "_id": "$station", "temp": { "$first": "$temp" }, "all": { "$first": "$$ROOT" } } },
        ];
        let rows = sorted_by_id(run(db, newest).await);
        assert_eq!([rows[0].get_f64("temp").unwrap(), rows[1].get_f64("temp").unwrap()], [22.0, 23.0]);
        assert_eq!(rows[1].get_document("all").unwrap().get_str("station").unwrap(), "b");
        let oldest = vec![
            doc! { "$sort": { "at": -1 } },
            doc! { "$group": { "_id": Bson::Null, "t": { "$last": "$temp" }, "none": { "$first": "$none" } } },
        ];
        let rows = run(db, oldest).await;
        assert!(rows[0].get_f64("t").unwrap() <= 1.0 && rows[0].get("none") == Some(&Bson::Null));
    });
}

#[test]
fn the_order_by_time_holds_for_filtered_rows_and_several_groups() {
    with_readings(async |db| {
        let by_time = |direction: i32, group: Document| {
            let filter = doc! { "temp": { "$gte": 4 }, "station": "a" };
            vec![doc! { "$match": filter }, doc! { "$sort": { "at": direction } }, doc! { "$group": group }]
        };
        let ends =
            doc! { "_id": "$station", "f": { "$first": "$temp" }, "l": { "$last": "$temp" }, "n": { "$sum": 1 } };
        assert_eq!(run(db, by_time(1, ends.clone())).await, [doc! { "_id": "a", "f": 4.0, "l": 22.0, "n": 10 }]);
        assert_eq!(run(db, by_time(-1, ends)).await, [doc! { "_id": "a", "f": 22.0, "l": 4.0, "n": 10 }]);
        let list = doc! { "_id": 1, "all": { "$push": "$temp" } };
        let all = run(db, by_time(-1, list)).await;
        let expected: Vec<Bson> = (2..12).rev().map(|n| Bson::Double(f64::from(2 * n))).collect();
        assert_eq!(all[0].get_array("all").unwrap(), &expected);
        // A group without a sort, and one with a sort by another field.
        let limited = vec![
            doc! { "$sort": { "at": -1 } },
            doc! { "$limit": 2 },
            doc! { "$group": { "_id": 1, "f": { "$last": "$at" } } },
        ];
        assert_eq!(run(db, limited).await[0].get_datetime("f").unwrap().timestamp_millis(), 11 * HOUR_MS / 4);
    });
}

#[test]
fn values_become_lists_sets_deviations_and_merged_objects() {
    with_readings(async |db| {
        let pipeline = vec![
            doc! { "$match": { "temp": { "$lt": 6 } } },
            doc! { "$sort": { "temp": 1 } },
            doc! { "$group": {
                "_id": "$station", "all": { "$push": "$temp" }, "kinds": { "$addToSet": { "$type": "$temp" } },
                "pop": { "$stdDevPop": "$temp" }, "samp": { "$stdDevSamp": "$temp" }, "one": { "$mergeObjects": { "x": "$temp" } },
            } },
            doc! { "$match": { "_id": "b" } },
        ];
        let samp = 2.0;
        let expected = doc! { "_id": "b", "all": [1.0, 3.0, 5.0], "kinds": ["double"], "pop": (8.0_f64 / 3.0).sqrt(), "samp": samp, "one": { "x": 5.0 } };
        assert_eq!(run(db, pipeline).await, [expected]);
    });
}

#[test]
fn equal_keys_are_one_group_and_a_missing_key_is_null() {
    block_on(async {
        let db = database();
        weather(&db).await;
        let at = DateTime::from_millis(0);
        db.insert(
            "weather",
            &[
                rawdoc! { "at": at, "k": 1 },
                rawdoc! { "at": at, "k": 1.0 },
                rawdoc! { "at": at, "k": 1_i64 },
                rawdoc! { "at": at, "k": bson::RawBson::Null },
                rawdoc! { "at": at },
                rawdoc! { "at": at, "k": "1" },
                rawdoc! { "at": at, "k": [1] },
            ],
        )
        .await;
        let count = |id: Bson| vec![doc! { "$group": { "_id": id, "n": { "$sum": 1 } } }];
        let mut counts: Vec<i32> =
            run(&db, count("$k".into())).await.iter().map(|row| row.get_i32("n").unwrap()).collect();
        counts.sort_unstable();
        assert_eq!(counts, [1, 1, 2, 3]);
        let one = run(&db, count(doc! { "x": "$none" }.into())).await;
        assert_eq!(one, [doc! { "_id": { "x": Bson::Null }, "n": 7 }]);
        let two = run(&db, count(doc! { "x": "$none", "y": 1 }.into())).await;
        assert_eq!(two, [doc! { "_id": { "y": 1 }, "n": 7 }]);
        assert_eq!(run(&db, count(5.into())).await, [doc! { "_id": 5, "n": 7 }]);
    });
}

#[test]
fn a_sum_has_the_widest_type_and_an_empty_sum_is_zero() {
    block_on(async {
        let db = database();
        weather(&db).await;
        let at = DateTime::from_millis(0);
        db.insert(
            "weather",
            &[
                rawdoc! { "at": at, "i": 1, "l": i64::MAX, "m": 2, "d": 0.1, "s": "x" },
                rawdoc! { "at": at, "i": i32::MAX, "l": 1_i64, "m": 3_i64, "d": 0.2, "s": "y" },
                rawdoc! { "at": at, "d": 1e100 },
                rawdoc! { "at": at, "d": -1e100 },
            ],
        )
        .await;
        let sum = |name: &str| doc! { "$sum": format!("${name}") };
        let rows = run(&db, vec![doc! { "$group": {
            "_id": 0, "i": sum("i"), "l": sum("l"), "m": sum("m"), "d": sum("d"), "s": sum("s"), "none": { "$avg": "$s" },
        } }]).await;
        let expected = doc! { "_id": 0, "i": 1_i64 << 31, "l": 9_223_372_036_854_775_808.0, "m": 5_i64, "d": 0.30000000000000004, "s": 0, "none": Bson::Null };
        assert_eq!(rows, [expected]);
    });
}

#[test]
fn arrays_unwind_to_a_row_for_each_element() {
    block_on(async {
        let db = database();
        weather(&db).await;
        let at = DateTime::from_millis(0);
        db.insert(
            "weather",
            &[
                rawdoc! { "at": at, "n": 1, "v": [10, 20] },
                rawdoc! { "at": at, "n": 2, "v": [] },
                rawdoc! { "at": at, "n": 3 },
                rawdoc! { "at": at, "n": 4, "v": 40 },
            ],
        )
        .await;
        let project = doc! { "$project": { "_id": 0, "n": 1, "v": 1, "i": 1 } };
        let plain = run(&db, vec![doc! { "$sort": { "n": 1 } }, doc! { "$unwind": "$v" }, project.clone()]).await;
        assert_eq!(plain, [doc! { "n": 1, "v": 10 }, doc! { "n": 1, "v": 20 }, doc! { "n": 4, "v": 40 }]);
        let unwind = doc! { "$unwind": { "path": "$v", "preserveNullAndEmptyArrays": true, "includeArrayIndex": "i" } };
        let kept = run(&db, vec![doc! { "$sort": { "n": 1 } }, unwind, project]).await;
        let none = Bson::Null;
        assert_eq!(
            kept,
            [
                doc! { "n": 1, "v": 10, "i": 0_i64 },
                doc! { "n": 1, "v": 20, "i": 1_i64 },
                doc! { "n": 2, "i": none.clone() },
                doc! { "n": 3, "i": none.clone() },
                doc! { "n": 4, "v": 40, "i": none },
            ]
        );
        let root = run(&db, vec![doc! { "$match": { "n": 1 } }, doc! { "$replaceWith": { "m": "$n" } }]).await;
        assert_eq!(root, [doc! { "m": 1 }]);
    });
}

#[test]
fn objects_that_are_merged_to_a_new_row_are_those_of_a_projection_unless_one_replaces_a_field_of_another() {
    block_on(async {
        let db = with_values(&[10.into(), Bson::Null, doc! { "w": 5 }.into()]).await;
        let merged = async |objects: Bson| {
            let replace = doc! { "$replaceWith": { "$mergeObjects": objects } };
            run(&db, vec![doc! { "$sort": { "n": 1 } }, replace]).await
        };
        let found = merged(bson!([{ "n": "$n" }, { "v": "$v", "x": "$none" }])).await;
        let first_three = [doc! { "n": 0, "v": 10 }, doc! { "n": 1, "v": null }, doc! { "n": 2, "v": { "w": 5 } }];
        assert_eq!(found.get(..3), Some(&first_three[..]));
        // What replaces a field is missing in the first two rows, and stays at the place of the first.
        let found = merged(bson!([{ "n": "$n", "v": 1 }, { "n": "$v.w" }, { "$mergeObjects": [{ "z": "$n" }] }])).await;
        let first_three =
            [doc! { "n": 0, "v": 1, "z": 0 }, doc! { "n": 1, "v": 1, "z": 1 }, doc! { "n": 5, "v": 1, "z": 2 }];
        assert_eq!(found.get(..3), Some(&first_three[..]));
    });
}

#[test]
fn unwinding_below_a_missing_field_creates_no_objects() {
    // A regression: a kept row got an empty object in place of its scalar or of nothing.
    block_on(async {
        let db = with_values(&[5.into(), Bson::Null, doc! { "w": [] }.into()]).await;
        let unwind = doc! { "path": "$v.w", "preserveNullAndEmptyArrays": true };
        let pipeline = vec![doc! { "$sort": { "n": 1 } }, doc! { "$unwind": unwind }, doc! { "$project": { "v": 1 } }];
        let rows = run(&db, pipeline).await;
        assert_eq!(rows, [doc! { "v": 5 }, doc! { "v": Bson::Null }, doc! { "v": {} }, doc! {}]);
    });
}

#[test]
fn a_missing_single_key_groups_with_null() {
    // A regression: rows without the field were a separate group from those with null.
    block_on(async {
        let db = with_values(&[Bson::Null]).await;
        let group = doc! { "$group": { "_id": { "x": "$v" }, "rows": { "$count": {} } } };
        assert_eq!(run(&db, vec![group]).await, [doc! { "_id": { "x": Bson::Null }, "rows": 2 }]);
    });
}

#[test]
fn a_set_field_keeps_its_position_in_its_object() {
    // A regression: the field moved to the end, which makes another object.
    block_on(async {
        let db = with_values(&[doc! { "a": 1, "b": { "c": 2, "d": 3 }, "e": 4 }.into()]).await;
        let set = |path: &str| {
            vec![doc! { "$match": { "n": 0 } }, doc! { "$set": { path: 9 } }, doc! { "$project": { "v": 1 } }]
        };
        let expected = doc! { "v": { "a": 1, "b": { "c": 9, "d": 3 }, "e": 4 } };
        assert_eq!(run(&db, set("v.b.c")).await, [expected]);
        let expected = doc! { "v": { "a": 1, "b": 9, "e": 4 } };
        assert_eq!(run(&db, set("v.b")).await, [expected]);
    });
}

#[test]
fn invalid_pipelines_are_refused_with_the_code_of_the_stage() {
    with_readings(async |db| {
        for (wanted, stage) in [
            (40324, doc! { "$nothing": 1 }),
            (40323, doc! { "$limit": 1, "$skip": 1 }),
            (40323, doc! {}),
            (15959, doc! { "$match": 1 }),
            (15958, doc! { "$limit": 0 }),
            (2107201, doc! { "$limit": "x" }),
            (5107200, doc! { "$skip": -1 }),
            (15969, doc! { "$project": 1 }),
            (51272, doc! { "$project": {} }),
            (40272, doc! { "$set": 1 }),
            (31002, doc! { "$unset": 1 }),
            (40177, doc! { "$set": {} }),
            (40180, doc! { "$set": { "a": { "b": {} } } }),
            (40181, doc! { "$set": { "a": { "$add": [1, 2], "b": 1 } } }),
            (40181, doc! { "$set": { "a": { "b": 1, "$add": [1, 2] } } }),
            (40183, doc! { "$set": { "a": { "b.c": 1 } } }),
            (40176, doc! { "$set": { "a": 1, "a.b": 1 } }),
            (40176, doc! { "$addFields": { "a.b": 1, "a": { "$literal": {} } } }),
            (31119, doc! { "$unset": [] }),
            (31120, doc! { "$unset": [1] }),
            (15947, doc! { "$group": 1 }),
            (15955, doc! { "$group": { "n": { "$sum": 1 } } }),
            (15952, doc! { "$group": { "_id": 1, "n": { "$nothing": 1 } } }),
            (40234, doc! { "$group": { "_id": 1, "n": 1 } }),
            (40235, doc! { "$group": { "_id": 1, "n.m": { "$sum": 1 } } }),
            (40236, doc! { "$group": { "_id": 1, "$n": { "$sum": 1 } } }),
            (40237, doc! { "$group": { "_id": 1, "n": { "$sum": [1, 2] } } }),
            (40238, doc! { "$group": { "_id": 1, "n": { "$sum": 1, "$avg": 1 } } }),
            (40156, doc! { "$count": 1 }),
            (40157, doc! { "$count": "" }),
            (40158, doc! { "$count": "$n" }),
            (40160, doc! { "$count": "a.b" }),
            (15981, doc! { "$unwind": 1 }),
            (28808, doc! { "$unwind": { "path": 1 } }),
            (28812, doc! { "$unwind": {} }),
            (28818, doc! { "$unwind": "v" }),
            (40352, doc! { "$unwind": "$" }),
            (40353, doc! { "$unwind": "$v." }),
            (15998, doc! { "$unwind": "$v..w" }),
            (16410, doc! { "$unwind": "$$v" }),
            (40353, doc! { "$unwind": { "path": "$v", "includeArrayIndex": "i." } }),
            (28811, doc! { "$unwind": { "path": "$v", "x": 1 } }),
            (40229, doc! { "$replaceRoot": 1 }),
            (40230, doc! { "$replaceRoot": { "x": 1 } }),
            (40231, doc! { "$replaceRoot": {} }),
            (40228, doc! { "$replaceWith": "$temp" }),
            (15976, doc! { "$sort": {} }),
            (15974, doc! { "$sort": { "a": "asc" } }),
            (15975, doc! { "$sort": { "a": 2 } }),
        ] {
            assert_eq!(code(db, stage.clone()).await, wanted, "{stage}");
        }
        let fails = async |command: RawDocumentBuf| db.fails(command).await.0;
        assert_eq!(fails(rawdoc! { "aggregate": "weather", "pipeline": [] }).await, 9);
        assert_eq!(fails(rawdoc! { "aggregate": "weather", "cursor": {} }).await, 40414);
        assert_eq!(fails(rawdoc! { "aggregate": "weather", "pipeline": {}, "cursor": {} }).await, 14);
        assert_eq!(fails(rawdoc! { "aggregate": "weather", "pipeline": [], "cursor": {}, "x": 1 }).await, 40415);
    });
}
