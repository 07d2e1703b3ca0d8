//! `$downsample`.

use bson::{Bson, Decimal128, Document, doc};

use super::{at, code, list, row, run, values, with_rows};
use crate::support::explained::Explained;
use crate::support::{Random, raw};

fn stage(more: Document) -> Document {
    let mut stage = doc! { "field": "y", "sortBy": { "at": 1 }, "points": 4 };
    stage.extend(more);
    doc! { "$downsample": stage }
}

/// One row per second with these numbers.
fn line(numbers: &[i32]) -> Vec<Document> {
    (0..).zip(numbers).map(|(second, y)| row(second, "a", doc! { "y": *y, "s": second })).collect()
}

#[test]
fn lttb_keeps_both_ends_and_the_largest_triangle_of_each_group() {
    with_rows(line(&[0, 1, 9, 1, 0, -8, 0, 1, 0, 2]), async |db| {
        let rows = run(db, vec![stage(doc! { "method": "lttb" })]).await;
        assert_eq!(values(&rows, "s"), list![0_i64, 2_i64, 5_i64, 9_i64]);
        assert_eq!(rows[1], doc! { "at": at(2), "station": "a", "y": 9, "s": 2_i64 }, "the whole row");
        assert_eq!(run(db, vec![stage(doc! {})]).await, rows, "the method that is meant where none is named");
        let ends = run(db, vec![stage(doc! { "points": 2.0 })]).await;
        assert_eq!(values(&ends, "s"), list![0_i64, 9_i64]);
    });
}

#[test]
fn lttb_keeps_no_row_twice_if_the_sums_of_values_overflow() {
    // Without an area there was no largest one, and the row of the group before was taken again.
    let rows = (0..40).map(|second| row(second, "a", doc! { "y": f64::MAX, "s": second })).collect();
    with_rows(rows, async |db| {
        let rows = run(db, vec![stage(doc! { "points": 12 })]).await;
        let seconds: Vec<i64> = values(&rows, "s").iter().map(number).collect();
        assert!(seconds.len() == 12 && seconds.is_sorted_by(|a, b| a < b), "{seconds:?}");
    });
}

#[test]
fn minmax_keeps_the_lowest_and_the_highest_row_of_each_time_slice() {
    // The second half of the time has only two rows.
    let mut rows = line(&[3, 5, 5, 1, 1, 3]);
    rows.extend([row(90, "a", doc! { "y": 7, "s": 90 }), row(100, "a", doc! { "y": 6, "s": 100 })]);
    with_rows(rows, async |db| {
        let rows = run(db, vec![stage(doc! { "method": "minmax" })]).await;
        assert_eq!(values(&rows, "s").iter().map(number).collect::<Vec<_>>(), [1, 3, 90, 100]);
        let rows = run(db, vec![stage(doc! { "method": "minmax", "points": 3 })]).await;
        assert_eq!(values(&rows, "s").iter().map(number).collect::<Vec<_>>(), [3, 90], "one slice, for two rows");
    });
}

#[test]
fn m4_also_keeps_the_first_and_the_last_row_of_each_time_slice() {
    let mut rows = line(&[3, 5, 5, 1, 1, 3]);
    rows.extend([row(90, "a", doc! { "y": 7, "s": 90 }), row(100, "a", doc! { "y": 6, "s": 100 })]);
    with_rows(rows, async |db| {
        let rows = run(db, vec![stage(doc! { "method": "m4", "points": 7 })]).await;
        assert_eq!(values(&rows, "s").iter().map(number).collect::<Vec<_>>(), [0, 3, 90, 100]);
        let m4 = stage(doc! { "method": "m4", "points": 8, "field": "s" });
        let few = run(db, vec![doc! { "$match": { "s": { "$lt": 9 } } }, m4]).await;
        assert_eq!(few.len(), 6, "no more rows than points: all stay");
    });
}

fn number(value: &Bson) -> i64 {
    value.as_i64().unwrap_or_else(|| value.as_i32().unwrap().into())
}

#[test]
fn rows_without_a_finite_number_or_a_time_are_left_out() {
    let values_of = list![1, "2", Bson::Null, f64::NAN, f64::INFINITY, list![3], at(4), true, 5_i64, 6.5];
    let mut rows: Vec<Document> =
        (0..).zip(values_of).map(|(second, y)| row(second, "a", doc! { "y": y, "s": second })).collect();
    rows.push(row(20, "a", doc! { "s": 20 }));
    rows.push(row(21, "a", doc! { "y": "7.5".parse::<Decimal128>().unwrap(), "s": 21 }));
    with_rows(rows, async |db| {
        for method in ["lttb", "minmax", "m4"] {
            let found = run(db, vec![stage(doc! { "method": method, "points": 50 })]).await;
            assert_eq!(values(&found, "s").iter().map(number).collect::<Vec<_>>(), [0, 8, 9, 21]);
            let by_y = stage(doc! { "method": method, "points": 50, "field": "s", "sortBy": { "y": 1 } });
            let found = run(db, vec![by_y]).await;
            let seconds: Vec<i64> = values(&found, "s").iter().map(number).collect();
            assert_eq!(seconds, [0, 8, 9, 21, 6], "numbers and dates are places: {method}");
        }
        assert!(run(db, vec![stage(doc! { "field": "gone" })]).await.is_empty());
    });
}

#[test]
fn downsample_can_follow_or_precede_other_stages() {
    with_rows(line(&[0, 1, 9, 1, 0, -8, 0, 1, 0, 2]), async |db| {
        let wanted = list![0_i64, 2_i64, 5_i64, 9_i64];
        let narrow = doc! { "$project": { "at": 1, "y": 1, "s": 1 } };
        let rows = run(db, vec![narrow, stage(doc! {}), doc! { "$set": { "y": "$s" } }]).await;
        assert_eq!(values(&rows, "y"), wanted);
        let moved = doc! { "$project": { "at": { "$subtract": ["$at", "$$NOW"] }, "y": 1, "s": 1 } };
        assert_eq!(values(&run(db, vec![moved, stage(doc! {})]).await, "s"), wanted, "by numbers");
        let each = doc! { "$group": { "_id": { "$dateTrunc": { "date": "$at", "unit": "second" } }, "m": { "$avg": "$y" }, "s": { "$first": "$s" } } };
        let rows = run(db, vec![each, stage(doc! { "field": "m", "sortBy": { "_id": 1 } })]).await;
        assert_eq!(values(&rows, "s"), wanted);
        let back = run(db, vec![stage(doc! {}), doc! { "$sort": { "at": -1 } }, doc! { "$limit": 1 }]).await;
        assert_eq!(values(&back, "s"), list![9_i64]);
        let below = vec![
            doc! { "$project": { "o.y": "$y", "o.at": "$at", "s": 1 } },
            stage(doc! { "field": "o.y", "sortBy": { "o.at": 1 } }),
        ];
        assert_eq!(values(&run(db, below).await, "s"), wanted);
    });
}

#[test]
fn invalid_arguments_are_refused_with_their_codes() {
    with_rows(line(&[1]), async |db| {
        for (wrong, wanted) in [
            (doc! { "$downsample": 1 }, 9),
            (doc! { "$downsample": { "field": "y", "points": 4 } }, 40414),
            (doc! { "$downsample": { "sortBy": { "at": 1 }, "points": 4 } }, 40414),
            (stage(doc! { "other": 1 }), 40415),
            (stage(doc! { "sortBy": { "at": -1 } }), 9),
            (stage(doc! { "sortBy": { "at": 1, "y": 1 } }), 9),
            (stage(doc! { "sortBy": "at" }), 15973),
            (stage(doc! { "sortBy": {} }), 15976),
            (stage(doc! { "points": 1 }), 9),
            (stage(doc! { "points": 2.5 }), 9),
            (stage(doc! { "points": "4" }), 9),
            (stage(doc! { "points": 3, "method": "m4" }), 9),
            (stage(doc! { "method": "mean" }), 9),
            (stage(doc! { "method": 1 }), 9),
            (stage(doc! { "field": "$y" }), 9),
            (stage(doc! { "field": 1 }), 9),
            (stage(doc! { "field": "" }), 40352),
            (stage(doc! { "field": "a..b" }), 15998),
            (stage(doc! { "partitionBy": [1] }), 14),
        ] {
            assert_eq!(code(db, wrong.clone()).await, wanted, "{wrong}");
        }
    });
}

#[test]
fn the_sort_of_downsample_is_pushed_down_and_explain_shows_the_stage() {
    with_rows(line(&[0, 1, 9, 1, 0, -8, 0, 1, 0, 2]), async |db| {
        let narrow = doc! { "$project": { "at": 1, "y": 1, "_id": 0 } };
        let command = doc! { "explain": { "aggregate": "weather", "pipeline": [narrow, stage(doc! {})] } };
        let found = Explained(db.ok(raw(&command)).await);
        let names = ["$cursor", "$_internalUnpackBucket", "$_internalBoundedSort", "$project", "$downsample"];
        assert_eq!((found.names().as_slice(), found.returned()), (&names[..], 4));
        assert_eq!(&doc! { "$downsample": found.stage("$downsample") }, &stage(doc! {}));
    });
}

/// The stage as described in the manual, on sorted rows.
fn plain(rows: &[Document], points: usize, method: &str) -> Vec<Document> {
    let finite = |value: Option<&Bson>| match value {
        Some(Bson::Double(y)) if y.is_finite() => Some(*y),
        Some(Bson::Int32(y)) => Some(f64::from(*y)),
        Some(Bson::Int64(y)) => Some(*y as f64),
        _ => None,
    };
    let drawn: Vec<(f64, f64, &Document)> = rows
        .iter()
        .filter_map(|row| Some((row.get_datetime("at").unwrap().timestamp_millis() as f64, finite(row.get("y"))?, row)))
        .collect();
    let count = drawn.len();
    if count <= points {
        return drawn.iter().map(|(.., row)| (*row).clone()).collect();
    }
    let (start, end) = (drawn[0].0, drawn[count - 1].0);
    let mut chosen = vec![];
    if method == "lttb" {
        let edge = |group: usize| 1 + group * (count - 2) / (points - 2).max(1);
        chosen.push(0);
        for group in 0..points - 2 {
            let next = if group + 3 == points { count - 1..count } else { edge(group + 1)..edge(group + 2) };
            let size = next.len() as f64;
            let mean = next.fold((0.0, 0.0), |sum, n| (sum.0 + (drawn[n].0 - start), sum.1 + drawn[n].1));
            let (c, a) = ((mean.0 / size, mean.1 / size), &drawn[*chosen.last().unwrap()]);
            let area = |n: &usize| {
                let (x, y) = (drawn[*n].0 - start, drawn[*n].1);
                ((a.0 - start - c.0) * (y - a.1) - (a.0 - start - x) * (c.1 - a.1)).abs()
            };
            let largest = (edge(group)..edge(group + 1)).map(|n| area(&n)).fold(0.0, f64::max);
            chosen.push((edge(group)..edge(group + 1)).find(|n| area(n) == largest).unwrap());
        }
        chosen.push(count - 1);
    } else {
        let slices = points / if method == "m4" { 4 } else { 2 };
        for slice in 0..slices {
            let of = |x: f64| (((x - start) / (end - start) * slices as f64) as usize).min(slices - 1);
            let mut here: Vec<usize> = (0..count).filter(|n| of(drawn[*n].0) == slice).collect();
            let (first, last) = (here.first().copied(), here.last().copied());
            here.sort_by(|a, b| drawn[*a].1.total_cmp(&drawn[*b].1));
            let least = here.first().copied();
            here.sort_by(|a, b| drawn[*b].1.total_cmp(&drawn[*a].1));
            let mut kept = vec![least, here.first().copied()];
            if method == "m4" {
                kept.extend([first, last]);
            }
            chosen.extend(kept.into_iter().flatten());
        }
        chosen.sort_unstable();
        chosen.dedup();
    }
    chosen.into_iter().map(|n| drawn[n].2.clone()).collect()
}

#[test]
fn downsample_of_random_rows_equals_that_of_a_plain_list() {
    for seed in 0..40 {
        let random = Random::new(seed);
        let clean = random.chance(30);
        let mut second = 0;
        let count = 1 + random.below(120);
        let rows: Vec<Document> = (0..count)
            .map(|n| {
                second += 1 + if random.chance(10) { random.below(3000) as i64 } else { random.below(3) as i64 };
                let station = ["a", "b", "c"][random.below(3) as usize];
                let y: Bson = match random.below(if clean { 1 } else { 12 }) {
                    0..=5 => (random.below(20) as f64 / 2.0).into(),
                    6 | 7 => (random.below(9) as i32).into(),
                    8 => (random.below(9) as i64).into(),
                    9 => Bson::Null,
                    10 => "x".into(),
                    _ => f64::NAN.into(),
                };
                let mut row = row(second, station, doc! { "n": n as i64 });
                if clean || !random.chance(5) {
                    row.insert("y", y);
                }
                row
            })
            .collect();
        let questions: Vec<(&str, usize)> =
            ["lttb", "minmax", "m4"].iter().map(|method| (*method, 4 + random.below(20) as usize)).collect();
        // In any order.
        let mut shuffled = rows.clone();
        (1..shuffled.len()).for_each(|at| shuffled.swap(at, random.below(at as u64 + 1) as usize));
        with_rows(shuffled, async |db| {
            for (method, points) in &questions {
                let asked = doc! { "method": *method, "points": *points as i32 };
                let numbers = |rows: &[Document]| values(rows, "n");
                let found = run(db, vec![stage(asked.clone())]).await;
                assert_eq!(numbers(&found), numbers(&plain(&rows, *points, method)), "{seed}: {asked}");
                let wanted: Vec<Document> = ["a", "b", "c"]
                    .iter()
                    .flat_map(|station| {
                        let own: Vec<Document> =
                            rows.iter().filter(|row| row.get_str("station").unwrap() == *station).cloned().collect();
                        plain(&own, *points, method)
                    })
                    .collect();
                for partition in [Bson::from("$station"), doc! { "$concat": ["$station", "!"] }.into()] {
                    let mut asked = asked.clone();
                    asked.insert("partitionBy", partition);
                    let found = run(db, vec![stage(asked.clone())]).await;
                    assert_eq!(numbers(&found), numbers(&wanted), "{seed}: {asked}");
                    assert_eq!(found, wanted, "whole rows, and nothing that was made for them");
                }
            }
        });
    }
}
