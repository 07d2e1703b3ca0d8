//! The accumulators of `$group`.

use bson::{Bson, DateTime, Document, RawDocumentBuf, bson, doc, rawdoc};
use futures::executor::block_on;

use crate::support::pipelines::{code, run, with_readings, with_values};
use crate::support::weather::database;
use crate::support::{Random, raw, take_rows};

#[test]
fn sets_have_one_of_several_strings_equal_by_the_collation() {
    // A regression: they were compared by bytes.
    block_on(async {
        let db = with_values(&["a".into(), "A".into(), "b".into(), "B".into(), "a".into()]).await;
        let pipeline =
            vec![doc! { "$sort": { "n": 1 } }, doc! { "$group": { "_id": 1, "all": { "$addToSet": "$v" } } }];
        let command = |strength: i32| {
            let collation = doc! { "locale": "en", "strength": strength };
            doc! { "aggregate": "weather", "pipeline": pipeline.clone(), "cursor": {}, "collation": collation }
        };
        for (strength, set) in [(2, vec!["a", "b"]), (3, vec!["a", "A", "b", "B"])] {
            let reply = db.ok(RawDocumentBuf::try_from(&command(strength)).unwrap()).await;
            let rows = take_rows(&mut reply.get_document("cursor").unwrap().clone(), "firstBatch");
            assert_eq!(rows, [doc! { "_id": 1, "all": set }]);
        }
    });
}

#[test]
fn lists_hold_values_of_any_type_in_the_order_of_their_rows() {
    block_on(async {
        let forms: [&dyn Fn(i64) -> Bson; 6] = [
            &|n| (n as f64 * 0.5).into(),
            &|n| (n as i32).into(),
            &|n| n.into(),
            &|n| DateTime::from_millis(n).into(),
            &|n| n.to_string().into(),
            &|n| if n % 2 == 0 { n.into() } else { Bson::Null },
        ];
        for form in forms {
            let values: Vec<Bson> = (0..150).map(form).collect();
            let db = with_values(&values).await;
            let group = |key: Bson| doc! { "$group": { "_id": key, "all": { "$push": "$v" } } };
            let sort = doc! { "$sort": { "n": 1 } };
            // The last row has no value.
            let one = run(&db, vec![sort.clone(), group(Bson::Null)]).await;
            assert_eq!(one, [doc! { "_id": Bson::Null, "all": values.clone() }]);
            for row in run(&db, vec![sort, group(bson!({ "$mod": ["$n", 3] }))]).await {
                let rest = row.get_i32("_id").unwrap();
                let of_group: Vec<Bson> = values.iter().skip(rest as usize).step_by(3).cloned().collect();
                assert_eq!(row.get("all"), Some(&Bson::from(of_group)));
            }
        }
    });
}

#[test]
fn groups_whose_ids_nobody_reads_are_the_same_groups() {
    block_on(async {
        let values: Vec<Bson> =
            (0..60).map(|n| if n % 2 == 0 { (n % 5).into() } else { f64::from(n % 5).into() }).collect();
        let db = with_values(&values).await;
        let list = doc! { "$firstN": { "n": { "$add": [{ "$ifNull": ["$k", 0] }, 1] }, "input": "$v" } };
        let single = doc! { "$topN": { "n": 1, "sortBy": { "v": 1 }, "output": "$v" } };
        let group = doc! { "$group": { "_id": { "k": "$v", "parity": { "$mod": ["$n", 2] } }, "list": list, "single": single, "n": { "$sum": 1 } } };
        let shown = run(&db, vec![group.clone()]).await;
        let without = |row: &Document| {
            let mut row = row.clone();
            row.remove("_id");
            row
        };
        let unread = run(&db, vec![group.clone(), doc! { "$project": { "_id": 0 } }]).await;
        assert_eq!(unread, shown.iter().map(without).collect::<Vec<_>>());
        let sum = run(&db, vec![group.clone(), doc! { "$group": { "_id": 1, "n": { "$sum": "$n" } } }]).await;
        assert_eq!(sum, [doc! { "_id": 1, "n": 61 }]);
        let count = i32::try_from(shown.len()).unwrap();
        for group in [group, doc! { "$group": { "_id": { "k": "$v", "parity": { "$mod": ["$n", 2] } } } }] {
            assert_eq!(run(&db, vec![group.clone(), doc! { "$count": "n" }]).await, [doc! { "n": count }]);
            let skipped = vec![group, doc! { "$skip": 2 }, doc! { "$count": "n" }];
            assert_eq!(run(&db, skipped).await, [doc! { "n": count - 2 }]);
        }
    });
}

#[test]
fn null_and_missing_values_make_no_difference_to_accumulators_that_skip_them() {
    let names = ["sum", "avg", "min", "max", "stdDevPop", "median", "maxN"];
    let mut fields = doc! {};
    for name in names {
        let argument: Bson = match name {
            "median" => bson!({ "input": "$v", "method": "approximate" }),
            "maxN" => bson!({ "input": "$v", "n": 2 }),
            _ => "$v".into(),
        };
        let mut field = Document::new();
        field.insert(format!("${name}"), argument);
        fields.insert(name, field);
    }
    block_on(async {
        let doubles = |n: i32| Bson::Double(f64::from(n) * 0.5);
        let dates = |n: i32| Bson::DateTime(DateTime::from_millis(n.into()));
        let forms: [&dyn Fn(i32) -> Bson; 5] = [&doubles, &|n| n.into(), &|n| i64::from(n).into(), &dates, &|n| {
            if n % 2 == 0 { n.into() } else { doubles(n) }
        }];
        for form in forms {
            for gap in [Some(Bson::Null), None] {
                let db = with_values(&[]).await;
                let rows = (0..200).map(|n| {
                    let mut row = doc! { "at": DateTime::from_millis(n.into()), "half": n / 100, "third": n % 3 };
                    if n % 7 > 2 {
                        row.insert("v", form(n));
                    } else if let Some(gap) = &gap {
                        row.insert("v", gap);
                    }
                    RawDocumentBuf::try_from(&row).unwrap()
                });
                db.insert("weather", &rows.collect::<Vec<_>>()).await;
                for key in ["$half", "$third", "$none"] {
                    let mut group = doc! { "_id": key };
                    group.extend(fields.clone());
                    let stages = vec![doc! { "$group": group }, doc! { "$sort": { "_id": 1 } }];
                    let mut with = vec![doc! { "$match": { "half": { "$gte": 0 } } }];
                    with.extend(stages.clone());
                    let mut without = vec![doc! { "$match": { "v": { "$ne": Bson::Null } } }];
                    without.extend(stages);
                    assert_eq!(run(&db, with).await, run(&db, without).await, "{key} {gap:?}");
                }
            }
        }
    });
}

#[test]
fn deviations_and_percentiles_of_decimals_are_doubles() {
    block_on(async {
        let decimal = |text: &str| Bson::Decimal128(text.parse().unwrap());
        let db = with_values(&[decimal("0.1"), 1.into(), decimal("1E-400"), decimal("NaN")]).await;
        let only = doc! { "$match": { "n": { "$lt": 3 } } };
        let median = doc! { "$median": { "input": "$v", "method": "approximate" } };
        let high = doc! { "$percentile": { "input": "$v", "p": [0.9], "method": "approximate" } };
        let group = doc! { "$group": { "_id": 1, "median": median, "high": high, "apart": { "$stdDevPop": "$v" } } };
        // sqrt(((1.1/3)² + (1.1/3 - 0.1)² + (1 - 1.1/3)²) / 3)
        let expected = doc! { "_id": 1, "median": 0.1, "high": [1.0], "apart": 0.449_691_252_107_735 };
        let mut found = run(&db, vec![only, group.clone()]).await;
        let apart = found[0].get_f64("apart").unwrap();
        found[0].insert("apart", (apart * 1e15).round() / 1e15);
        assert_eq!(found, [expected]);
        let all = run(&db, vec![group, doc! { "$project": { "apart": { "$toString": "$apart" } } }]).await;
        assert_eq!(all[0].get_str("apart").unwrap(), "NaN");
    });
}

#[test]
fn sums_of_doubles_and_int32s_that_stand_mixed_are_int32s_where_no_double_is() {
    block_on(async {
        // In every third row a double; before them, values that do not count.
        for others in [vec![], vec![Bson::Null, Bson::from("x"), Bson::from(7_i64)]] {
            let mut values: Vec<Bson> =
                (0..90).map(|n| if n % 3 == 0 { (f64::from(n) + 0.5).into() } else { n.into() }).collect();
            let before = others.len() as i32;
            values.splice(0..0, others.clone());
            let db = with_values(&values).await;
            let key = bson!({ "$mod": [{ "$subtract": ["$n", before] }, 3] });
            let sum_and_mean = doc! { "sum": { "$sum": "$v" }, "mean": { "$avg": "$v" } };
            let group = |key: Bson| {
                let stage = doc! { "_id": key }.into_iter().chain(sum_and_mean.clone()).collect::<Document>();
                doc! { "$group": stage }
            };
            let rows = doc! { "$match": { "n": { "$gte": before, "$lt": before + 90 } } };
            let by = run(&db, vec![rows.clone(), group(key), doc! { "$sort": { "_id": 1 } }]).await;
            assert_eq!(
                by,
                [
                    doc! { "_id": 0, "sum": 1320.0, "mean": 44.0 },
                    doc! { "_id": 1, "sum": 1335, "mean": 44.5 },
                    doc! { "_id": 2, "sum": 1365, "mean": 45.5 },
                ]
            );
            let all = run(&db, vec![rows, group(Bson::Null)]).await;
            assert_eq!(all, [doc! { "_id": Bson::Null, "sum": 4020.0, "mean": 4020.0 / 90.0 }]);
            let with_others = run(&db, vec![group(Bson::Null)]).await;
            let (more, count) = if others.is_empty() { (0.0, 90.0) } else { (7.0, 91.0) };
            assert_eq!(
                with_others,
                [doc! { "_id": Bson::Null, "sum": 4020.0 + more, "mean": (4020.0 + more) / count }]
            );
        }
    });
}

#[test]
fn sums_and_averages_with_decimals_are_decimals() {
    block_on(async {
        let decimal = |text: &str| Bson::Decimal128(text.parse().unwrap());
        let values = [decimal("0.1"), 2.into(), Bson::Null, decimal("0.2"), 0.5.into(), i64::MAX.into(), "x".into()];
        let db = with_values(&values).await;
        let group = doc! { "$group": { "_id": 1, "sum": { "$sum": "$v" }, "mean": { "$avg": "$v" } } };
        let expected = doc! { "_id": 1, "sum": decimal("9223372036854775809.800000000000000"), "mean": decimal("1844674407370955161.960000000000000") };
        assert_eq!(run(&db, vec![group]).await, [expected]);
        let window = |lowest: i32| {
            doc! { "$setWindowFields": { "sortBy": { "n": 1 }, "output": {
            "sum": { "$sum": "$v", "window": { "documents": [lowest, 0] } } } } }
        };
        let sums =
            |rows: Vec<bson::Document>| rows.iter().map(|row| row.get("sum").unwrap().clone()).collect::<Vec<_>>();
        let found = sums(run(&db, vec![window(-1)]).await);
        let expected = [
            decimal("0.1"),
            decimal("2.1"),
            2.into(),
            decimal("0.2"),
            decimal("0.700000000000000"),
            Bson::Double(9_223_372_036_854_775_808.0),
            i64::MAX.into(),
            0.into(),
        ];
        assert_eq!(found, expected);
    });
}

#[test]
fn first_n_last_n_min_n_max_n_and_top_n_keep_several_values() {
    block_on(async {
        let db = with_values(&[3.into(), Bson::Null, 1.into(), "x".into(), 2.into()]).await;
        let of = |operator: &str, n: i32| doc! { operator: { "input": "$v", "n": n } };
        let by = |operator: &str| doc! { operator: { "output": "$n", "sortBy": { "v": 1, "n": -1 } } };
        let some = |operator: &str, n: i32| doc! { operator: { "output": ["$v", "$n"], "sortBy": { "v": 1, "n": -1 }, "n": n } };
        let group = doc! { "$group": {
            "_id": 1, "first": of("$firstN", 2), "last": of("$lastN", 2), "low": of("$minN", 2), "high": of("$maxN", 9),
            "top": by("$top"), "bottom": by("$bottom"), "tops": some("$topN", 2), "bottoms": some("$bottomN", 2),
        } };
        let rows = run(&db, vec![doc! { "$sort": { "n": 1 } }, group]).await;
        let expected = doc! {
            "_id": 1, "first": [3, null], "last": [2, null], "low": [1, 2], "high": ["x", 3, 2, 1],
            "top": 5, "bottom": 3, "tops": [[null, 5], [null, 1]], "bottoms": [[3, 0], ["x", 3]],
        };
        assert_eq!(rows, [expected]);
    });
}

#[test]
fn the_n_of_an_accumulator_may_depend_on_the_group_id() {
    block_on(async {
        let db = with_values(&[1.into(), 2.into(), 3.into()]).await;
        let n = doc! { "$cond": [{ "$eq": ["$kind", "int"] }, 2, 1] };
        let group =
            doc! { "$group": { "_id": { "kind": { "$type": "$v" } }, "low": { "$minN": { "input": "$v", "n": n } } } };
        let rows = run(&db, vec![group, doc! { "$sort": { "_id": 1 } }]).await;
        let none: [i32; 0] = [];
        let expected =
            [doc! { "_id": { "kind": "int" }, "low": [1, 2] }, doc! { "_id": { "kind": "missing" }, "low": none }];
        assert_eq!(rows, expected);
    });
}

#[test]
fn percentiles_use_only_numbers_and_the_median_of_none_is_null() {
    block_on(async {
        let db = with_values(&[4.into(), 1_i64.into(), "x".into(), 2.5.into(), f64::NAN.into(), 3.into()]).await;
        let median = |input: &str, method: &str| doc! { "$median": { "input": input, "method": method } };
        let of = |input: &str| doc! { "$percentile": { "input": input, "p": [0, 0.5, 0.9], "method": "approximate" } };
        let group = doc! { "$group": {
            "_id": 1, "median": median("$v", "discrete"), "between": median("$v", "continuous"), "none": median("$t", "approximate"),
            "some": of("$v"), "nothing": of("$t"),
        } };
        let expected = doc! {
            "_id": 1, "median": 2.5, "between": 2.75, "none": null, "some": [1.0, 2.5, 4.0],
            "nothing": [null, null, null],
        };
        assert_eq!(run(&db, vec![group]).await, [expected]);
    });
}

#[test]
fn invalid_arguments_of_accumulators_are_refused_with_their_codes() {
    with_readings(async |db| {
        let percentile = |p: Bson| doc! { "$percentile": { "input": 1, "method": "approximate", "p": p } };
        let of_n = |n: Bson| doc! { "$firstN": { "input": 1, "n": n } };
        for (wanted, accumulation) in [
            (5787801, doc! { "$firstN": 1 }),
            (5787900, doc! { "$maxN": 1 }),
            (5787901, doc! { "$minN": { "input": 1, "n": 1, "x": 1 } }),
            (5787906, doc! { "$lastN": { "input": 1 } }),
            (5787907, doc! { "$lastN": { "n": 1 } }),
            (5787902, of_n("x".into())),
            (5787903, of_n(1.5.into())),
            (5787908, of_n(0.into())),
            (5788001, doc! { "$top": 1 }),
            (5788002, doc! { "$top": { "output": 1, "sortBy": { "at": 1 }, "n": 1 } }),
            (5788003, doc! { "$bottomN": { "output": 1, "sortBy": { "at": 1 } } }),
            (5788004, doc! { "$bottom": { "sortBy": { "at": 1 } } }),
            (5788005, doc! { "$bottom": { "output": 1 } }),
            (10065, doc! { "$bottom": { "output": 1, "sortBy": "at" } }),
            (15975, doc! { "$top": { "output": 1, "sortBy": { "at": 2 } } }),
            (7436100, doc! { "$median": 1 }),
            (7429703, doc! { "$percentile": 1 }),
            (40414, doc! { "$median": { "input": 1 } }),
            (40415, doc! { "$median": { "input": 1, "method": "approximate", "p": [0.5] } }),
            (2, doc! { "$median": { "input": 1, "method": "x" } }),
            (14, doc! { "$median": { "input": 1, "method": 1 } }),
            (7750300, percentile("$temp".into())),
            (7750301, percentile(Bson::Array(vec![]))),
            (7750302, percentile(vec!["x"].into())),
            (7750303, percentile(vec![1.5].into())),
        ] {
            let stage = doc! { "$group": { "_id": 1, "x": accumulation } };
            assert_eq!(code(db, stage.clone()).await, wanted, "{stage}");
        }
    });
}

#[test]
fn of_tied_rows_top_and_bottom_keep_the_first() {
    block_on(async {
        let db = with_values(&[1.into(), 1.into(), 1.into(), 0.into(), 2.into()]).await;
        let by = |operator: &str, direction: i32| doc! { operator: { "sortBy": { "v": direction }, "output": "$n", "n": 2 } };
        let group = doc! { "$group": { "_id": 1, "top": by("$topN", -1), "bottom": by("$bottomN", 1), "least": by("$bottomN", -1) } };
        let found =
            run(&db, vec![doc! { "$match": { "v": { "$exists": true } } }, doc! { "$sort": { "n": 1 } }, group]).await;
        assert_eq!(found, [doc! { "_id": 1, "top": [4, 0], "bottom": [0, 4], "least": [0, 3] }]);
    });
}

#[test]
fn rows_with_equal_times_have_one_order_for_all_accumulators_of_a_group() {
    block_on(async {
        let db = with_values(&[bson!(1.0), bson!(1), bson!(1_i64)]).await;
        let only = doc! { "$match": { "n": { "$lt": 3 } } };
        for direction in [1, -1] {
            let group = doc! { "$group": {
                "_id": "$v", "first": { "$first": "$v" }, "last": { "$last": "$v" }, "low": { "$min": "$v" },
            } };
            let found = run(&db, vec![only.clone(), doc! { "$sort": { "at": direction } }, group]).await;
            assert_eq!(found, [doc! { "_id": 1.0, "first": 1.0, "last": 1_i64, "low": 1.0 }], "{direction}");
        }
    });
}

#[test]
fn interpolated_percentiles_are_exact_for_extreme_numbers() {
    block_on(async {
        for (values, wanted) in [
            ([0.8, 9.5], 5.15),
            ([-1.5e308, 1.5e308], 0.0),
            // Half of the smallest double rounds to 0, so half of each does not add up.
            ([5e-324, 5e-324], 5e-324),
            ([f64::NEG_INFINITY, 1.0], f64::NEG_INFINITY),
            ([1.0, f64::INFINITY], f64::INFINITY),
            ([f64::NEG_INFINITY, f64::INFINITY], f64::NEG_INFINITY),
        ] {
            let db = with_values(&values.map(Bson::from)).await;
            let median = doc! { "$median": { "input": "$v", "method": "continuous" } };
            let found = run(&db, vec![doc! { "$group": { "_id": 1, "x": median } }]).await;
            assert_eq!(found, [doc! { "_id": 1, "x": wanted }]);
        }
    });
}

#[test]
fn after_a_sort_by_time_the_first_of_equal_values_is_returned() {
    // The rows themselves are not sorted.
    let mut untold = 0;
    for seed in 0..150 {
        let random = Random::new(seed);
        let pick = |from: &[Bson]| from[random.below(from.len() as u64) as usize].clone();
        let ones = [bson!(1), bson!(1.0), bson!(1_i64), Bson::Decimal128("1.0".parse().unwrap())];
        let zeros = [bson!(0.0), bson!(-0.0), bson!(0), bson!({ "z": 0 }), bson!({ "z": 0.0 }), Bson::Null];
        let row = |n: usize| {
            let kinds = if n.is_multiple_of(3) { &zeros[..2] } else { &zeros };
            let at = DateTime::from_millis((n * 7919 % 40 * 60_000) as i64);
            let s = random.below(3) as i32;
            let series = doc! { "one": pick(&ones), "s": s };
            // Each bucket has values of one type.
            let u = [bson!(0), pick(&zeros[..2]), bson!(0_i64)][s as usize].clone();
            doc! { "at": at, "m": series, "k": pick(&ones), "v": pick(kinds), "w": pick(&zeros[..2]), "u": u }
        };
        let rows: Vec<Document> = (0..40).map(row).collect();
        let fields = doc! {
            "n": { "$sum": 1 }, "low": { "$min": "$v" }, "high": { "$max": "$v" }, "w": { "$min": "$w" }, "x": { "$max": "$w" },
            "u": { "$min": "$u" }, "us": { "$max": "$u" },
            "lows": { "$minN": { "n": 3, "input": "$v" } }, "highs": { "$maxN": { "n": 3, "input": "$v" } },
        };
        let mut group =
            doc! { "_id": pick(&[Bson::Null, "$m.one".into(), "$k".into(), bson!({ "k": "$k", "s": "$m.s" })]) };
        // Keys alone are answered from whole buckets, which do not tell which of equal metadata came first.
        let by_meta = group.get_str("_id").is_ok_and(|id| id == "$m.one");
        group.extend(fields.into_iter().filter(|(name, _)| name == "low" && by_meta || random.chance(40)));
        let wall = doc! { "$_internalInhibitOptimization": {} };
        block_on(async {
            let db = database();
            db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "m" } }).await;
            db.insert("weather", &rows.iter().map(raw).collect::<Vec<_>>()).await;
            if random.chance(50) {
                db.ok(rawdoc! { "flush": 1 }).await;
            }
            for direction in [1, -1] {
                let sort = doc! { "$sort": { "at": direction } };
                let group = doc! { "$group": group.clone() };
                let text = |rows: Vec<Document>| {
                    let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
                    rows.sort_unstable();
                    rows
                };
                let together = text(run(&db, vec![sort.clone(), group.clone()]).await);
                let apart = text(run(&db, vec![sort.clone(), wall.clone(), group.clone()]).await);
                assert_eq!(together, apart, "seed {seed}: {direction} {group}");
                untold += usize::from(text(run(&db, vec![wall.clone(), group]).await) != apart);
            }
        });
    }
    assert!(untold > 100, "hardly any order that matters: {untold}");
}

#[test]
fn sums_of_doubles_and_integers_are_rounded_once() {
    block_on(async {
        let great = 1_000_000_000_000_000_000_i64;
        let cases: [(&[Bson], f64); 5] = [
            (&[2_147_483_648.0.into(), 0.1.into(), i32::MIN.into()], 0.1),
            (&[1e18.into(), 0.5.into(), (-great).into()], 0.5),
            (&[9_007_199_254_740_992.0.into(), 1.0.into(), 1.into()], 9_007_199_254_740_994.0),
            (&[9_007_199_254_740_993_i64.into(), 1.0.into()], 9_007_199_254_740_994.0),
            (&[f64::INFINITY.into(), 1.into(), 0.5.into()], f64::INFINITY),
        ];
        for (values, sum) in cases {
            let db = with_values(values).await;
            let mean = sum / values.len() as f64;
            let accumulators = doc! { "sum": { "$sum": "$v" }, "mean": { "$avg": "$v" } };
            let mut group = doc! { "_id": 1 };
            group.extend(accumulators.clone());
            assert_eq!(
                run(&db, vec![doc! { "$group": group }]).await,
                [doc! { "_id": 1, "sum": sum, "mean": mean }],
                "{values:?}"
            );
            let stages = [
                doc! { "$setWindowFields": { "output": accumulators } },
                doc! { "$limit": 1 },
                doc! { "$project": { "_id": 0, "sum": 1, "mean": 1 } },
            ];
            assert_eq!(run(&db, stages.to_vec()).await, [doc! { "sum": sum, "mean": mean }], "{values:?}");
        }
    });
}

#[test]
fn a_sum_of_the_integers_of_an_array_does_not_overflow_on_its_way() {
    block_on(async {
        let most = i64::MAX;
        let db = with_values(&[bson!([most, most, -most])]).await;
        let project = doc! { "$project": { "_id": 0, "sum": { "$sum": "$v" } } };
        assert_eq!(run(&db, vec![doc! { "$match": { "n": 0 } }, project]).await, [doc! { "sum": most }]);
    });
}

#[test]
fn an_infinity_among_decimals_stays_one() {
    block_on(async {
        let decimal = |text: &str| Bson::from(text.parse::<bson::Decimal128>().unwrap());
        let db = with_values(&[f64::INFINITY.into(), decimal("1"), 2.into()]).await;
        let group = doc! { "$group": { "_id": 1, "sum": { "$sum": "$v" }, "mean": { "$avg": "$v" } } };
        assert_eq!(
            run(&db, vec![group]).await,
            [doc! { "_id": 1, "sum": decimal("Infinity"), "mean": decimal("Infinity") }]
        );
    });
}
