//! `$densify` and `$fill`.

use bson::{Bson, DateTime, Document, doc};

use super::{at, code, list, row, run, values, with_rows};
use crate::support::Db;

/// Seconds 1, 4 and 6 of `a`, 3 and 8 of `b`, and one of `a` without a number.
fn with_gaps(check: impl AsyncFn(&Db)) {
    let reading = |second: i32, station| row(second.into(), station, doc! { "n": second, "x": second * 10 });
    let mut rows = vec![reading(4, "a"), reading(8, "b"), reading(1, "a"), reading(6, "a"), reading(3, "b")];
    rows.push(row(9, "a", doc! { "x": 90 }));
    with_rows(rows, check);
}

fn densify(field: &str, partition: &[&str], range: Document) -> Document {
    doc! { "$densify": { "field": field, "partitionByFields": partition, "range": range } }
}

/// Station and number of each row, and whether it was stored: created rows have no `x`.
async fn numbers(db: &Db, stage: Document) -> Vec<(String, Bson, bool)> {
    let told = |row: &Document| {
        let station = row.get_str("station").unwrap_or_default().to_owned();
        (station, row.get("n").cloned().unwrap_or(Bson::Null), row.contains_key("x"))
    };
    run(db, vec![stage]).await.iter().map(told).collect()
}

fn told(rows: &[(&str, Option<i32>, bool)]) -> Vec<(String, Bson, bool)> {
    rows.iter()
        .map(|(station, n, is_real)| ((*station).to_owned(), n.map_or(Bson::Null, Bson::from), *is_real))
        .collect()
}

#[test]
fn each_partition_is_filled_from_its_first_to_its_last_value() {
    with_gaps(async |db| {
        let found = numbers(db, densify("n", &["station"], doc! { "step": 2, "bounds": "partition" })).await;
        let expected = told(&[
            ("a", None, true),
            ("a", Some(1), true),
            ("a", Some(3), false),
            ("a", Some(4), true),
            ("a", Some(5), false),
            ("a", Some(6), true),
            ("b", Some(3), true),
            ("b", Some(5), false),
            ("b", Some(7), false),
            ("b", Some(8), true),
        ]);
        assert_eq!(found, expected);
    });
}

#[test]
fn full_bounds_span_the_values_of_all_partitions() {
    with_gaps(async |db| {
        let all = numbers(db, densify("n", &[], doc! { "step": 3, "bounds": "full" })).await;
        let expected = told(&[
            ("a", None, true),
            ("a", Some(1), true),
            ("b", Some(3), true),
            ("a", Some(4), true),
            ("a", Some(6), true),
            ("", Some(7), false),
            ("b", Some(8), true),
        ]);
        assert_eq!(all, expected);
        let each = numbers(db, densify("n", &["station"], doc! { "step": 3, "bounds": "full" })).await;
        let expected = told(&[
            ("a", None, true),
            ("a", Some(1), true),
            ("a", Some(4), true),
            ("a", Some(6), true),
            ("a", Some(7), false),
            ("b", Some(1), false),
            ("b", Some(3), true),
            ("b", Some(4), false),
            ("b", Some(7), false),
            ("b", Some(8), true),
        ]);
        assert_eq!(each, expected);
    });
}

#[test]
fn explicit_bounds_include_the_first_and_exclude_the_second() {
    with_gaps(async |db| {
        let inside = numbers(db, densify("n", &["station"], doc! { "step": 2, "bounds": [2, 8] })).await;
        let expected = told(&[
            ("a", None, true),
            ("a", Some(1), true),
            ("a", Some(2), false),
            ("a", Some(4), true),
            ("a", Some(6), true),
            ("b", Some(2), false),
            ("b", Some(3), true),
            ("b", Some(4), false),
            ("b", Some(6), false),
            ("b", Some(8), true),
        ]);
        assert_eq!(inside, expected);
        let nothing = doc! { "$match": { "n": 100 } };
        let found = run(db, vec![nothing.clone(), densify("n", &[], doc! { "step": 0.5, "bounds": [0.0, 1.5] })]).await;
        assert_eq!(found, [doc! { "n": 0.0 }, doc! { "n": 0.5 }, doc! { "n": 1.0 }]);
        let found = run(db, vec![nothing, densify("n", &["station"], doc! { "step": 1, "bounds": [0, 2] })]).await;
        assert!(found.is_empty());
    });
}

#[test]
fn dates_step_by_units_of_the_calendar() {
    let day = |text: &str| DateTime::parse_rfc3339_str(format!("{text}T00:00:00Z")).unwrap();
    let of = |date: DateTime| doc! { "at": date, "station": { "id": 1 } };
    with_rows(vec![of(day("2024-01-31")), of(day("2024-04-01"))], async |db| {
        let stage = densify("at", &["station.id"], doc! { "step": 1, "unit": "month", "bounds": "partition" });
        let rows = run(db, vec![stage]).await;
        assert_eq!(
            values(&rows, "at"),
            list![day("2024-01-31"), day("2024-02-29"), day("2024-03-29"), day("2024-04-01")]
        );
        assert_eq!(rows[1].get_document("station").unwrap(), &doc! { "id": 1 });
        let bounds = list![day("2024-01-30"), day("2024-02-02")];
        let stage = densify("at", &[], doc! { "step": 1, "unit": "day", "bounds": bounds });
        let rows = run(db, vec![stage, doc! { "$limit": 3 }]).await;
        assert_eq!(values(&rows, "at"), list![day("2024-01-30"), day("2024-01-31"), day("2024-02-01")]);
    });
}

#[test]
fn densify_creates_a_nested_field_in_its_position() {
    let of = |second: i64, b: i32| row(second, "a", doc! { "o": { "b": b } });
    with_rows(vec![of(0, 1), of(1, 3)], async |db| {
        let stage = densify("o.b", &["station"], doc! { "step": 1, "bounds": "partition" });
        assert_eq!(run(db, vec![stage]).await[1], doc! { "station": "a", "o": { "b": 2 } });
    });
}

/// A partition by an array, inside which the field would have to be created.
#[test]
fn densify_creates_nothing_inside_a_value_that_is_no_object() {
    let rows = vec![row(0, "a", doc! { "o": [{ "b": 1 }, 2], "p": 5 })];
    with_rows(rows, async |db| {
        let making = |partition: &str, field: &str| densify(field, &[partition], doc! { "step": 1, "bounds": [0, 2] });
        // No row has the field.
        assert_eq!(run(db, vec![making("p", "p.b")]).await.len(), 1);
        assert_eq!(code(db, making("o", "o.b")).await, 5733201);
    });
}

#[test]
fn fill_applies_methods_and_then_values() {
    let of = |second: i64, station: &str, more: Document| row(second, station, more);
    let rows = vec![
        of(0, "a", doc! { "l": 0, "v": 1, "c": "x" }),
        of(1, "a", doc! { "l": Bson::Null }),
        of(4, "a", doc! { "l": 8, "c": "y" }),
        of(5, "b", doc! {}),
    ];
    with_rows(rows, async |db| {
        let output = doc! {
            "l": { "method": "linear" }, "c": { "method": "locf" }, "v": { "value": { "$add": [1, 1] } },
        };
        let by = |partition: Document| {
            let mut fill = doc! { "sortBy": { "at": 1 }, "output": output.clone() };
            fill.extend(partition);
            vec![doc! { "$fill": fill }]
        };
        let rows = run(db, by(doc! { "partitionBy": "$station" })).await;
        assert_eq!(values(&rows, "l"), list![0, 2.0, 8, Bson::Null]);
        assert_eq!(values(&rows, "c"), list!["x", "x", "y", Bson::Null]);
        assert_eq!(values(&rows, "v"), list![1, 2, 2, 2]);
        assert_eq!(run(db, by(doc! { "partitionByFields": ["station"] })).await, rows);
        assert_eq!(run(db, by(doc! { "partitionBy": { "s": "$station" } })).await, rows);
        assert_eq!(values(&run(db, by(doc! {})).await, "c"), list!["x", "x", "y", "y"]);
        let values_only = run(db, vec![doc! { "$fill": { "output": { "v": { "value": "$c" } } } }]).await;
        assert_eq!(values_only.len(), 4);
    });
}

#[test]
fn densify_and_fill_give_a_series_without_gaps() {
    with_gaps(async |db| {
        let pipeline = vec![
            doc! { "$match": { "n": { "$exists": true } } },
            densify("at", &["station"], doc! { "step": 1, "unit": "second", "bounds": "partition" }),
            doc! { "$fill": { "partitionBy": "$station", "sortBy": { "at": 1 }, "output": { "x": { "method": "linear" } } } },
            doc! { "$project": { "_id": 0, "x": 1 } },
        ];
        let rows = run(db, pipeline).await;
        assert_eq!(values(&rows, "x"), list![10, 20.0, 30.0, 40, 50.0, 60, 30, 40.0, 50.0, 60.0, 70.0, 80]);
    });
}

#[test]
fn invalid_densify_and_fill_stages_are_refused_with_their_codes() {
    with_gaps(async |db| {
        let range = |range: Document| densify("n", &[], range);
        let bounds = |bounds: Bson| range(doc! { "step": 1, "bounds": bounds });
        let fill = |x: Bson| doc! { "$fill": { "sortBy": { "n": 1 }, "output": { "x": x } } };
        for (wanted, stage) in [
            (9, doc! { "$densify": 1 }),
            (40414, doc! { "$densify": { "field": "n" } }),
            (40414, range(doc! { "step": 1 })),
            (40415, range(doc! { "step": 1, "bounds": "full", "x": 1 })),
            (14, doc! { "$densify": { "field": 1, "range": {} } }),
            (14, doc! { "$densify": { "field": "n", "range": 1 } }),
            (
                14,
                doc! { "$densify": { "field": "n", "range": { "step": 1, "bounds": "full" }, "partitionByFields": [1] } },
            ),
            (5733401, range(doc! { "step": 0, "bounds": "full" })),
            (5733401, range(doc! { "step": "x", "bounds": "full" })),
            (6586400, range(doc! { "step": 0.5, "unit": "day", "bounds": "full" })),
            (9, range(doc! { "step": 1, "unit": "moment", "bounds": "full" })),
            (5946802, bounds("all".into())),
            (5733404, bounds(1.into())),
            (5733403, bounds(list![1].into())),
            (5733402, bounds(list![2, 1].into())),
            (5733406, bounds(list![1, at(1)].into())),
            (5876900, bounds(list![1, 2.0].into())),
            (5876900, bounds(list![1.0, 2.0].into())),
            (5733410, bounds(list![at(1), at(2)].into())),
            (
                5733405,
                range(
                    doc! { "step": 1, "unit": "day", "bounds": [at(1), Bson::Timestamp(bson::Timestamp { time: 1, increment: 1 })] },
                ),
            ),
            (5946800, bounds(list!["a", "b"].into())),
            (5733409, range(doc! { "step": 1, "unit": "day", "bounds": [1, 2] })),
            (5733408, bounds("partition".into())),
            (16410, doc! { "$densify": { "field": "$n", "range": { "step": 1, "bounds": "full" } } }),
            (5733201, densify("station", &[], doc! { "step": 1, "bounds": "full" })),
            (6053600, range(doc! { "step": 1, "unit": "day", "bounds": "full" })),
            (6053601, densify("at", &[], doc! { "step": 1, "bounds": "full" })),
            (5897900, bounds(list![0, 500_010].into())),
            (9, doc! { "$fill": 1 }),
            (40414, doc! { "$fill": {} }),
            (40415, doc! { "$fill": { "output": { "x": { "value": 1 } }, "y": 1 } }),
            (14, doc! { "$fill": { "output": 1 } }),
            (6050203, doc! { "$fill": { "output": {} } }),
            (6050200, fill(1.into())),
            (40415, fill(doc! { "x": 1 }.into())),
            (6050201, fill(doc! { "value": 1, "method": "locf" }.into())),
            (6050202, fill(doc! { "method": "next" }.into())),
            (14, fill(doc! { "method": 1 }.into())),
            (
                6050204,
                doc! { "$fill": { "output": { "x": { "value": 1 } }, "partitionBy": "$n", "partitionByFields": ["n"] } },
            ),
            (14, doc! { "$fill": { "output": { "x": { "value": 1 } }, "partitionBy": 1 } }),
            (14, doc! { "$fill": { "output": { "x": { "value": 1 } }, "partitionByFields": "n" } }),
            (605001, doc! { "$fill": { "output": { "x": { "method": "linear" } } } }),
        ] {
            assert_eq!(code(db, stage.clone()).await, wanted, "{stage}");
        }
    });
}
