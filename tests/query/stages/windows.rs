//! `$setWindowFields`.

use bson::{Bson, DateTime, Document, doc};

use super::{at, code, list, row, run, values, with_rows};
use crate::support::{Db, Random};

/// Five measurements of `a` at seconds 0, 1, 2, 4, 8 and two of `b`, unsorted.
fn with_readings(check: impl AsyncFn(&Db)) {
    let reading = |second, station, n: i32| row(second, station, doc! { "n": n, "s": second });
    with_rows(
        vec![
            reading(4, "a", 40),
            reading(0, "a", 10),
            reading(5, "b", 7),
            reading(1, "a", 20),
            reading(8, "a", 80),
            reading(3, "b", 5),
            reading(2, "a", 30),
        ],
        check,
    );
}

fn stage(output: Document) -> Document {
    doc! { "$setWindowFields": { "partitionBy": "$station", "sortBy": { "at": 1 }, "output": output } }
}

/// The values of a field that a window function computes.
async fn of(db: &Db, function: Document) -> Vec<Bson> {
    values(&run(db, vec![stage(doc! { "x": function })]).await, "x")
}

#[test]
fn accumulators_that_keep_several_values_work_in_windows() {
    let rows = (0..).zip([4, 1, 5, 2, 6, 3]).map(|(second, n)| row(second, "a", doc! { "n": n })).collect();
    with_rows(rows, async |db| {
        let window = doc! { "documents": [-2, 0] };
        let rows = run(
            db,
            vec![doc! { "$setWindowFields": { "sortBy": { "at": 1 }, "output": {
                "top": { "$topN": { "n": 2, "sortBy": { "n": -1 }, "output": "$n" }, "window": window.clone() },
                "least": { "$minN": { "n": 1, "input": "$n" }, "window": window.clone() },
                "bottom": { "$bottom": { "sortBy": { "n": -1 }, "output": "$at" }, "window": window.clone() },
                "median": { "$median": { "input": "$n", "method": "approximate" }, "window": window.clone() },
                "edges": { "$percentile": { "p": [0.0, 1.0], "input": "$n", "method": "discrete" }, "window": window },
            } } }],
        )
        .await;
        let top = [vec![4], vec![4, 1], vec![5, 4], vec![5, 2], vec![6, 5], vec![6, 3]];
        assert_eq!(values(&rows, "top"), top.map(Bson::from));
        assert_eq!(values(&rows, "least"), [4, 1, 1, 1, 2, 2].map(|n| Bson::from(vec![n])));
        assert_eq!(values(&rows, "bottom"), [0, 1, 1, 1, 3, 3].map(|n| Bson::from(at(n))));
        assert_eq!(values(&rows, "median"), list![4.0, 1.0, 4.0, 2.0, 5.0, 3.0]);
        let edges = [[4.0, 4.0], [1.0, 4.0], [1.0, 5.0], [1.0, 5.0], [2.0, 6.0], [2.0, 6.0]];
        assert_eq!(values(&rows, "edges"), edges.map(|pair| Bson::from(pair.to_vec())));
        let none = doc! { "x": { "$maxN": { "n": 0, "input": "$n" } } };
        assert_eq!(code(db, doc! { "$setWindowFields": { "output": none } }).await, 5787908);
    });
}

#[test]
fn rows_are_ordered_by_partition_and_keep_their_fields() {
    with_readings(async |db| {
        let rows = run(db, vec![stage(doc! { "n": { "$sum": "$n" }, "more.count": { "$count": {} } })]).await;
        assert_eq!(values(&rows, "s"), list![0_i64, 1_i64, 2_i64, 4_i64, 8_i64, 3_i64, 5_i64]);
        assert_eq!(values(&rows, "n"), list![180, 180, 180, 180, 180, 12, 12]);
        assert_eq!(rows[6], doc! { "at": at(5), "station": "b", "n": 12, "s": 5_i64, "more": { "count": 2 } });
    });
}

#[test]
fn document_windows_extend_by_a_number_of_rows() {
    with_readings(async |db| {
        let sum = |low: Bson, high: Bson| doc! { "$sum": "$n", "window": { "documents": [low, high] } };
        let (all, here): (Bson, Bson) = ("unbounded".into(), "current".into());
        assert_eq!(of(db, sum((-1).into(), 0.into())).await, list![10, 30, 50, 70, 120, 5, 12]);
        assert_eq!(of(db, sum(all.clone(), here.clone())).await, list![10, 30, 60, 100, 180, 5, 12]);
        assert_eq!(of(db, sum(here, all.clone())).await, list![180, 170, 150, 120, 80, 12, 7]);
        assert_eq!(of(db, sum(1.into(), 2.into())).await, list![50, 70, 120, 80, 0, 7, 0]);
        assert_eq!(of(db, sum((-9).into(), (-2).into())).await, list![0, 0, 10, 30, 60, 0, 0]);
        assert_eq!(of(db, sum(all.clone(), all)).await, list![180, 180, 180, 180, 180, 12, 12]);
        assert_eq!(of(db, doc! { "$sum": "$n", "window": {} }).await, list![180, 180, 180, 180, 180, 12, 12]);
    });
}

#[test]
fn range_windows_contain_rows_within_a_distance() {
    with_readings(async |db| {
        let seconds = doc! { "$sum": "$n", "window": { "range": [-2, 0], "unit": "second" } };
        assert_eq!(of(db, seconds).await, list![10, 30, 60, 70, 80, 5, 12]);
        let month = doc! { "$count": {}, "window": { "range": ["current", 1], "unit": "month" } };
        assert_eq!(of(db, month).await, list![5, 4, 3, 2, 1, 2, 1]);
        let numbers = |range: Bson| {
            let output = doc! { "x": { "$sum": "$n", "window": { "range": range } } };
            vec![doc! { "$setWindowFields": { "sortBy": { "s": 1 }, "output": output } }]
        };
        let x = async |range: Vec<Bson>| values(&run(db, numbers(range.into())).await, "x");
        assert_eq!(x(list![-0.5, 1]).await, list![30, 50, 35, 45, 47, 7, 80]);
        assert_eq!(x(list!["unbounded", -1]).await, list![0, 10, 30, 60, 65, 105, 112]);
    });
}

#[test]
fn range_windows_near_the_last_integers_hold_the_rows_that_exist() {
    let rows = [i64::MAX - 9, i64::MAX - 4, i64::MAX].map(|k| row(0, "a", doc! { "k": k, "n": 1 }));
    with_rows(rows.to_vec(), async |db| {
        let window = async |range: Vec<Bson>| {
            let output = doc! { "x": { "$sum": "$n", "window": { "range": range } } };
            values(&run(db, vec![doc! { "$setWindowFields": { "sortBy": { "k": 1 }, "output": output } }]).await, "x")
        };
        // The ends of the first windows are integers; those of the second ones are not.
        assert_eq!(window(list![-5, 0]).await, list![1, 2, 2]);
        assert_eq!(window(list![0, 2000]).await, list![3, 2, 1]);
    });
}

#[test]
fn a_range_window_that_ends_beyond_all_dates_is_an_error() {
    let rows = [i64::MAX - 100_000, i64::MAX - 4].map(|ms| row(0, "a", doc! { "d": DateTime::from_millis(ms) }));
    with_rows(rows.to_vec(), async |db| {
        let windows = |high: i64| {
            let output = doc! { "x": { "$count": {}, "window": { "range": [-100, high], "unit": "second" } } };
            doc! { "$setWindowFields": { "sortBy": { "d": 1 }, "output": output } }
        };
        assert_eq!(values(&run(db, vec![windows(0)]).await, "x"), list![1, 2]);
        for high in [1, i64::MAX] {
            assert_eq!(code(db, windows(high)).await, 5166406);
        }
    });
}

#[test]
fn tied_rows_share_range_windows() {
    with_rows((0..6).map(|n| row(n, "a", doc! { "k": n / 2, "n": 1 })).collect(), async |db| {
        let output = doc! { "x": { "$sum": "$n", "window": { "range": ["unbounded", "current"] } } };
        let stage = doc! { "$setWindowFields": { "sortBy": { "k": 1 }, "output": output } };
        assert_eq!(values(&run(db, vec![stage]).await, "x"), list![2, 2, 4, 4, 6, 6]);
    });
}

#[test]
fn every_accumulator_but_merge_objects_works_in_windows() {
    with_readings(async |db| {
        let here = |function: &str| doc! { function: "$n", "window": { "documents": [-1, 1] } };
        assert_eq!(of(db, here("$avg")).await, list![15.0, 20.0, 30.0, 50.0, 60.0, 6.0, 6.0]);
        assert_eq!(of(db, here("$min")).await, list![10, 10, 20, 30, 40, 5, 5]);
        assert_eq!(of(db, here("$max")).await, list![20, 30, 40, 80, 80, 7, 7]);
        assert_eq!(of(db, here("$first")).await, list![10, 10, 20, 30, 40, 5, 5]);
        assert_eq!(of(db, here("$last")).await, list![20, 30, 40, 80, 80, 7, 7]);
        let lists = of(db, here("$push")).await;
        assert_eq!(lists[1..3], list![list![10, 20, 30], list![20, 30, 40]]);
        assert_eq!(of(db, here("$stdDevPop")).await[0], Bson::from(5.0));
        assert_eq!(of(db, here("$stdDevSamp")).await[1], Bson::from(10.0));
        let set = doc! { "$addToSet": { "$type": "$n" }, "window": { "documents": [-1, 1] } };
        assert_eq!(of(db, set).await[3], Bson::from(list!["int"]));
        assert_eq!(code(db, stage(doc! { "x": here("$mergeObjects") })).await, 9);
    });
}

/// Subtracting 1e100 from a sum would cancel all small numbers.
#[test]
fn a_large_number_that_leaves_a_window_does_not_affect_the_sum() {
    let numbers = [0.25, 1e100, 1.5, f64::INFINITY, 2.0, 4.0, 8.0];
    let rows = numbers.iter().zip(0..).map(|(x, second)| row(second, "a", doc! { "x": *x })).collect();
    with_rows(rows, async |db| {
        let sum = doc! { "$sum": "$x", "window": { "documents": [-1, 0] } };
        assert_eq!(of(db, sum).await, list![0.25, 1e100, 1e100, f64::INFINITY, f64::INFINITY, 6.0, 12.0]);
    });
}

#[test]
fn random_sliding_windows_equal_those_computed_from_their_rows() {
    let random = Random::new(7);
    let below = |n: u64| i64::try_from(random.below(n)).unwrap();
    let numbers: Vec<i32> = (0..300).map(|_| i32::try_from(below(100)).unwrap() - 50).collect();
    // Seconds between one row and the next are from 0 to 3.
    let mut second = 0;
    let seconds: Vec<i64> = numbers
        .iter()
        .map(|_| {
            second += below(4);
            second
        })
        .collect();
    let rows = numbers.iter().zip(&seconds).map(|(n, second)| row(*second, "a", doc! { "n": *n })).collect();
    let bounds: Vec<(i64, i64)> = (0..12).map(|_| below(14) - 9).map(|low| (low, low + below(12))).collect();
    with_rows(rows, async |db| {
        for (low, high) in &bounds {
            for by_time in [false, true] {
                let window = match by_time {
                    true => doc! { "range": [low, high], "unit": "second" },
                    false => doc! { "documents": [low, high] },
                };
                let output: Document = ["$sum", "$avg", "$min", "$max", "$push", "$first", "$last", "$stdDevPop"]
                    .map(|function| {
                        (function[1..].to_owned(), doc! { function: "$n", "window": window.clone() }.into())
                    })
                    .into_iter()
                    .collect();
                let found = run(db, vec![stage(output)]).await;
                // Tied rows come in any order, which the result shows.
                let numbers: Vec<i32> = found.iter().map(|row| row.get_i32("n").unwrap()).collect();
                for (place, row) in found.iter().enumerate() {
                    let is_in = |other: usize| {
                        let (from, to) =
                            if by_time { (seconds[place], seconds[other]) } else { (place as i64, other as i64) };
                        (from + low..=from + high).contains(&to)
                    };
                    let inside: Vec<i32> =
                        (0..numbers.len()).filter(|other| is_in(*other)).map(|at| numbers[at]).collect();
                    let sum: i32 = inside.iter().sum();
                    let mean = f64::from(sum) / inside.len() as f64;
                    let or_null = |value: Option<i32>| value.map_or(Bson::Null, Bson::from);
                    assert_eq!(row.get("push"), Some(&list_of(&inside)), "{window} of row {place}");
                    assert_eq!(row.get("sum"), Some(&sum.into()));
                    assert_eq!(row.get("min"), Some(&or_null(inside.iter().copied().min())));
                    assert_eq!(row.get("max"), Some(&or_null(inside.iter().copied().max())));
                    assert_eq!(row.get("first"), Some(&or_null(inside.first().copied())));
                    assert_eq!(row.get("last"), Some(&or_null(inside.last().copied())));
                    if inside.is_empty() {
                        assert_eq!([row.get("avg"), row.get("stdDevPop")], [Some(&Bson::Null); 2]);
                        continue;
                    }
                    assert_eq!(row.get_f64("avg").unwrap(), mean);
                    let squares: f64 = inside.iter().map(|n| (f64::from(*n) - mean).powi(2)).sum();
                    let deviation = (squares / inside.len() as f64).sqrt();
                    assert!((row.get_f64("stdDevPop").unwrap() - deviation).abs() < 1e-9);
                }
            }
        }
    });
}

fn list_of(numbers: &[i32]) -> Bson {
    numbers.iter().map(|n| Bson::from(*n)).collect::<Vec<Bson>>().into()
}

#[test]
fn rank_and_dense_rank_count_ties_differently() {
    let rows = [3, 1, 2, 2, 9, 1].iter().zip(0..).map(|(n, second)| row(second, "a", doc! { "n": *n }));
    with_rows(rows.collect(), async |db| {
        let output =
            doc! { "rank": { "$rank": {} }, "dense": { "$denseRank": {} }, "number": { "$documentNumber": {} } };
        let stage = doc! { "$setWindowFields": { "sortBy": { "n": -1 }, "output": output } };
        let rows = run(db, vec![stage]).await;
        assert_eq!(values(&rows, "n"), list![9, 3, 2, 2, 1, 1]);
        assert_eq!(values(&rows, "rank"), list![1_i64, 2_i64, 3_i64, 3_i64, 5_i64, 5_i64]);
        assert_eq!(values(&rows, "dense"), list![1_i64, 2_i64, 3_i64, 3_i64, 4_i64, 4_i64]);
        assert_eq!(values(&rows, "number"), list![1_i64, 2_i64, 3_i64, 4_i64, 5_i64, 6_i64]);
    });
}

#[test]
fn shifts_take_the_value_of_another_row_of_the_partition() {
    with_readings(async |db| {
        let none = Bson::Null;
        let shift = |by: i32| doc! { "$shift": { "output": "$n", "by": by } };
        assert_eq!(of(db, shift(-1)).await, list![none.clone(), 10, 20, 30, 40, none.clone(), 5]);
        assert_eq!(of(db, shift(2)).await, list![30, 40, 80, none.clone(), none.clone(), none.clone(), none.clone()]);
        let with_default = doc! { "$shift": { "output": { "$add": ["$n", 1] }, "by": 1, "default": "end" } };
        assert_eq!(of(db, with_default).await, list![21, 31, 41, 81, "end", 8, "end"]);
        let missing = doc! { "$shift": { "output": "$none", "by": 0, "default": 1 } };
        assert_eq!(of(db, missing).await, vec![none; 7]);
    });
}

#[test]
fn derivatives_and_integrals_use_the_unit() {
    with_readings(async |db| {
        let window = doc! { "documents": [-1, 0] };
        let slope = |unit: &str| doc! { "$derivative": { "input": "$n", "unit": unit }, "window": window.clone() };
        let none = Bson::Null;
        assert_eq!(of(db, slope("second")).await, list![none.clone(), 10.0, 10.0, 5.0, 10.0, none.clone(), 1.0]);
        assert_eq!(of(db, slope("minute")).await[1], Bson::from(600.0));
        let area = |window: Document| doc! { "$integral": { "input": "$n", "unit": "second" }, "window": window };
        let so_far = of(db, area(doc! { "documents": ["unbounded", "current"] })).await;
        assert_eq!(so_far, list![0.0, 15.0, 40.0, 110.0, 350.0, 0.0, 12.0]);
        assert_eq!(of(db, area(window.clone())).await, list![0.0, 15.0, 25.0, 70.0, 240.0, 0.0, 12.0]);
        let ahead = area(doc! { "range": [1, 2], "unit": "second" });
        assert_eq!(of(db, ahead).await, list![25.0, 0.0, 0.0, none.clone(), none.clone(), 0.0, none.clone()]);
        let whole = of(db, doc! { "$integral": { "input": "$n", "unit": "hour" } }).await;
        assert_eq!(whole[0], Bson::from(350_000.0 / 3_600_000.0));
        let by_number = doc! { "$setWindowFields": { "partitionBy": "$station", "sortBy": { "s": 1 }, "output": {
            "d": { "$derivative": { "input": "$n" }, "window": window.clone() },
            "i": { "$integral": { "input": "$n" }, "window": window.clone() },
        } } };
        let rows = run(db, vec![by_number]).await;
        assert_eq!(values(&rows, "d"), list![none.clone(), 10.0, 10.0, 5.0, 10.0, none, 1.0]);
        assert_eq!(values(&rows, "i"), list![0, 15.0, 25.0, 70.0, 240.0, 0, 12.0]);
    });
}

#[test]
fn moving_averages_start_at_the_first_number_and_skip_other_values() {
    let values_of_x = list!["text", 8, Bson::Null, 4.0, 2];
    let rows = values_of_x.into_iter().zip(0..).map(|(x, second)| row(second, "a", doc! { "x": x }));
    with_rows(rows.collect(), async |db| {
        let by_alpha = of(db, doc! { "$expMovingAvg": { "input": "$x", "alpha": 0.5 } }).await;
        assert_eq!(by_alpha, list![Bson::Null, 8.0, 8.0, 6.0, 4.0]);
        assert_eq!(of(db, doc! { "$expMovingAvg": { "input": "$x", "N": 3 } }).await, by_alpha);
        let newest = of(db, doc! { "$expMovingAvg": { "input": "$x", "N": 1 } }).await;
        assert_eq!(newest, list![Bson::Null, 8.0, 8.0, 4.0, 2.0]);
    });
}

#[test]
fn locf_and_linear_fill_fill_gaps() {
    let values_of_x = [(0, None), (1, Some(10)), (2, None), (5, None), (6, Some(20)), (9, None)];
    let rows = values_of_x.map(|(second, x)| match x {
        Some(x) => row(second, "a", doc! { "x": x }),
        None if second == 2 => row(second, "a", doc! { "x": Bson::Null }),
        None => row(second, "a", doc! {}),
    });
    with_rows(rows.to_vec(), async |db| {
        let none = Bson::Null;
        assert_eq!(of(db, doc! { "$locf": "$x" }).await, list![none.clone(), 10, 10, 10, 20, 20]);
        assert_eq!(of(db, doc! { "$linearFill": "$x" }).await, list![none.clone(), 10, 12.0, 18.0, 20, none]);
    });
}

#[test]
fn partitions_take_any_expression_and_treat_null_as_missing() {
    let keys = [Bson::Null, 1.into(), 1.0.into(), "x".into(), Bson::Undefined, 1.into()];
    let rows = keys.iter().zip(0..).map(|(key, second)| match key {
        Bson::Undefined => row(second, "a", doc! {}),
        key => row(second, "a", doc! { "k": key.clone() }),
    });
    with_rows(rows.collect(), async |db| {
        let count = |partition: Bson| {
            let output = doc! { "x": { "$count": {} } };
            vec![doc! { "$setWindowFields": { "partitionBy": partition, "sortBy": { "at": 1 }, "output": output } }]
        };
        assert_eq!(values(&run(db, count("$k".into())).await, "x"), list![2, 2, 3, 3, 3, 1]);
        let by_type = run(db, count(doc! { "$type": "$k" }.into())).await;
        assert_eq!(values(&by_type, "x"), list![1, 2, 2, 1, 1, 1]);
        assert_eq!(by_type[0].keys().collect::<Vec<_>>(), ["at", "station", "k", "x"]);
        assert_eq!(values(&run(db, count(5.into())).await, "x"), list![6, 6, 6, 6, 6, 6]);
        let unsorted = doc! { "$setWindowFields": { "output": { "x": { "$max": "$at" } } } };
        assert_eq!(values(&run(db, vec![unsorted]).await, "x"), vec![Bson::from(at(5)); 6]);
        assert_eq!(code(db, count(list![1].into()).remove(0)).await, 14);
        assert_eq!(code(db, count(doc! { "$concatArrays": [["$k"]] }.into()).remove(0)).await, 14);
    });
}

#[test]
fn windows_see_the_rows_of_the_stages_before() {
    with_readings(async |db| {
        let pipeline = vec![
            doc! { "$match": { "station": "a" } },
            doc! { "$group": { "_id": { "$mod": ["$s", 2] }, "n": { "$sum": "$n" } } },
            doc! { "$setWindowFields": { "sortBy": { "_id": 1 }, "output": { "all": { "$sum": "$n", "window": { "documents": ["unbounded", 0] } } } } },
            doc! { "$match": { "_id": 1 } },
        ];
        assert_eq!(run(db, pipeline).await, [doc! { "_id": 1_i64, "n": 20, "all": 180 }]);
    });
}

#[test]
fn invalid_windows_are_refused_with_their_codes() {
    with_readings(async |db| {
        let sorted =
            |sort: Document, x: Document| doc! { "$setWindowFields": { "sortBy": sort, "output": { "x": x } } };
        let by_s = |x: Document| sorted(doc! { "s": 1 }, x);
        let unsorted = |x: Document| doc! { "$setWindowFields": { "output": { "x": x } } };
        let window = |window: Document| by_s(doc! { "$sum": "$n", "window": window });
        for (wanted, stage) in [
            (9, doc! { "$setWindowFields": 1 }),
            (40414, doc! { "$setWindowFields": {} }),
            (40415, doc! { "$setWindowFields": { "output": {}, "x": 1 } }),
            (14, doc! { "$setWindowFields": { "output": 1 } }),
            (14, doc! { "$setWindowFields": { "output": {}, "sortBy": 1 } }),
            (15976, doc! { "$setWindowFields": { "output": {}, "sortBy": {} } }),
            (6307900, doc! { "$setWindowFields": { "output": { "a": { "$sum": 1 }, "a.b": { "$sum": 1 } } } }),
            (16410, doc! { "$setWindowFields": { "output": { "a.$b": { "$sum": 1 } } } }),
            (15998, doc! { "$setWindowFields": { "output": { "a..b": { "$sum": 1 } } } }),
            (40353, doc! { "$setWindowFields": { "output": { "a.": { "$sum": 1 } } } }),
            (9, doc! { "$setWindowFields": { "output": { "a": 1 } } }),
            (9, unsorted(doc! {})),
            (9, unsorted(doc! { "window": {} })),
            (9, unsorted(doc! { "$nothing": 1 })),
            (9, unsorted(doc! { "$sum": 1, "$avg": 1 })),
            (9, unsorted(doc! { "$sum": 1, "x": 1 })),
            (9, unsorted(doc! { "$count": 1 })),
            (9, unsorted(doc! { "$sum": 1, "window": 1 })),
            (9, window(doc! { "documents": [0, 1], "range": [0, 1] })),
            (9, window(doc! { "documents": [0, 1], "unit": "second" })),
            (9, window(doc! { "documents": [0, 1], "x": 1 })),
            (9, window(doc! { "unit": "second" })),
            (9, window(doc! { "documents": [0] })),
            (9, window(doc! { "documents": [0, 1, 2] })),
            (9, window(doc! { "documents": 1 })),
            (9, window(doc! { "documents": ["first", 1] })),
            (9, window(doc! { "documents": [0, "$n"] })),
            (9, window(doc! { "documents": [0, 1.5] })),
            (9, window(doc! { "range": [0, true] })),
            (9, window(doc! { "range": [0, 1.5], "unit": "second" })),
            (9, window(doc! { "range": [0, 1], "unit": "moment" })),
            (9, window(doc! { "range": [0, 1], "unit": 1 })),
            (5339900, window(doc! { "documents": [1, 0] })),
            (5339900, window(doc! { "range": [0.5, "current"] })),
            (5339901, unsorted(doc! { "$sum": 1, "window": { "documents": [0, 1] } })),
            (5339902, unsorted(doc! { "$sum": 1, "window": { "range": [0, 1] } })),
            (5339902, sorted(doc! { "s": 1, "n": 1 }, doc! { "$sum": 1, "window": { "range": [0, 1] } })),
            (8947401, sorted(doc! { "s": -1 }, doc! { "$sum": 1, "window": { "range": [0, 1] } })),
            (5429413, sorted(doc! { "at": 1 }, doc! { "$sum": 1, "window": { "range": [0, 1] } })),
            (5429414, sorted(doc! { "station": 1 }, doc! { "$sum": 1, "window": { "range": [0, 1] } })),
            (5429513, by_s(doc! { "$sum": 1, "window": { "range": [0, 1], "unit": "day" } })),
            (5371601, by_s(doc! { "$rank": {}, "window": {} })),
            (5371603, by_s(doc! { "$denseRank": 1 })),
            (5371602, unsorted(doc! { "$documentNumber": {} })),
            (9, by_s(doc! { "$shift": 1 })),
            (9, by_s(doc! { "$shift": { "output": "$n" } })),
            (9, by_s(doc! { "$shift": { "by": 1 } })),
            (9, by_s(doc! { "$shift": { "output": "$n", "by": 1.5 } })),
            (9, by_s(doc! { "$shift": { "output": "$n", "by": 1, "x": 1 } })),
            (9, by_s(doc! { "$shift": { "output": "$n", "by": 1, "default": "$n" } })),
            (9, by_s(doc! { "$shift": { "output": "$n", "by": 1 }, "window": {} })),
            (9, unsorted(doc! { "$shift": { "output": "$n", "by": 1 } })),
            (9, by_s(doc! { "$derivative": { "input": "$n" } })),
            (9, by_s(doc! { "$derivative": { "unit": "day" }, "window": {} })),
            (9, by_s(doc! { "$derivative": { "input": "$n", "x": 1 }, "window": {} })),
            (9, unsorted(doc! { "$integral": { "input": "$n" } })),
            (5490710, by_s(doc! { "$integral": { "input": "$n", "unit": "month" } })),
            (5624900, by_s(doc! { "$derivative": { "input": "$n", "unit": "day" }, "window": {} })),
            (5624901, sorted(doc! { "at": 1 }, doc! { "$derivative": { "input": "$n" }, "window": {} })),
            (5624902, sorted(doc! { "station": 1 }, doc! { "$derivative": { "input": "$n" }, "window": {} })),
            (5624903, by_s(doc! { "$derivative": { "input": "$none" }, "window": {} })),
            (14, by_s(doc! { "$derivative": { "input": "$station" }, "window": {} })),
            (5423900, by_s(doc! { "$integral": { "input": "$station" } })),
            (5423900, sorted(doc! { "station": 1 }, doc! { "$integral": { "input": "$n" } })),
            (5423901, by_s(doc! { "$integral": { "input": "$n", "unit": "day" } })),
            (5423902, sorted(doc! { "at": 1 }, doc! { "$integral": { "input": "$n" } })),
            (9, by_s(doc! { "$expMovingAvg": { "input": "$n" } })),
            (9, by_s(doc! { "$expMovingAvg": { "input": "$n", "N": 0 } })),
            (9, by_s(doc! { "$expMovingAvg": { "input": "$n", "N": 1.5 } })),
            (9, by_s(doc! { "$expMovingAvg": { "input": "$n", "alpha": 1 } })),
            (9, by_s(doc! { "$expMovingAvg": { "input": "$n", "alpha": 0 } })),
            (9, by_s(doc! { "$expMovingAvg": { "input": "$n", "alpha": 0.5, "N": 1 } })),
            (9, by_s(doc! { "$expMovingAvg": { "N": 1, "alpha": 0.5 } })),
            (9, by_s(doc! { "$expMovingAvg": { "input": "$n", "N": 1 }, "window": {} })),
            (9, unsorted(doc! { "$expMovingAvg": { "input": "$n", "N": 1 } })),
            (9, by_s(doc! { "$locf": "$n", "window": {} })),
            (9, by_s(doc! { "$linearFill": "$n", "window": {} })),
            (605001, unsorted(doc! { "$linearFill": "$n" })),
            (14, by_s(doc! { "$linearFill": "$station" })),
            (14, sorted(doc! { "station": 1 }, doc! { "$linearFill": "$n" })),
            (14, sorted(doc! { "none": 1 }, doc! { "$linearFill": "$n" })),
        ] {
            assert_eq!(code(db, stage.clone()).await, wanted, "{stage}");
        }
    });
    with_rows(vec![row(0, "a", doc! { "s": 1 }), row(1, "a", doc! { "s": 1.0 })], async |db| {
        let fill = doc! { "$setWindowFields": { "sortBy": { "s": 1 }, "output": { "x": { "$linearFill": "$n" } } } };
        assert_eq!(code(db, fill).await, 6050106);
    });
}
