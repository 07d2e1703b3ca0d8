//! The variables of `$lookup`: their scope in nested pipelines, and their values.

use bson::{Bson, Document, doc};

use super::others::with_stations;
use super::{code, list, run, values};
use crate::support::{Db, raw, take_rows};

/// The results of a `$lookup` for the first rows by number.
async fn found(db: &Db, rows: i32, more: Document) -> Vec<Bson> {
    let mut spec = doc! { "from": "stations", "as": "found" };
    spec.extend(more);
    let stages = vec![doc! { "$sort": { "n": 1 } }, doc! { "$limit": rows }, doc! { "$lookup": spec }];
    values(&run(db, stages).await, "found")
}

/// The same `$documents` for each row, so that only variables can tell one row from another.
fn one_row(more: Document) -> Document {
    doc! { "$documents": [more] }
}

fn eq(field: &str, variable: &str) -> Document {
    doc! { "$match": { "$expr": { "$eq": [format!("${field}"), format!("$${variable}")] } } }
}

// A regression: a field named like a binding argument was taken for that argument, and its siblings for variables.
#[test]
fn fields_named_like_operator_arguments_bind_no_variables() {
    with_stations(async |db| {
        let names = ["let", "vars", "in", "as", "input", "cond", "initialValue", "value", "this", "pipeline"];
        for name in names {
            let shown = doc! { "_id": 0, name: { "$literal": "value" }, "hit": "$$value" };
            for stages in [
                vec![doc! { "$limit": 1 }, doc! { "$project": shown.clone() }],
                vec![doc! { "$limit": 1 }, doc! { "$replaceWith": { name: "$$value", "hit": "$$value" } }],
                vec![
                    doc! { "$limit": 1 },
                    doc! { "$replaceWith": { name: { "value": 1 }, "in": "$$value", "hit": "$$value" } },
                ],
                vec![doc! { "$group": { "_id": "$$value", "hit": { "$first": "$$value" } } }],
                vec![
                    doc! { "$limit": 1 },
                    doc! { "$set": { "x": { "let": { "value": 1 }, "as": "value", "cond": 1 }, "hit": "$$value" } },
                ],
            ] {
                let found = found(db, 2, doc! { "let": { "value": "$n" }, "pipeline": &stages }).await;
                for (n, found) in found.iter().enumerate() {
                    let found = found.as_array().unwrap();
                    assert!(!found.is_empty(), "{stages:?}");
                    for row in found {
                        assert_eq!(row.as_document().unwrap().get("hit"), Some(&Bson::Int64(n as i64)), "{stages:?}");
                    }
                }
            }
            let input = doc! { "$project": { "_id": 0, name: 1, "hit": "$$value" } };
            let of_one = vec![doc! { "$limit": 1 }, input];
            let found = found(db, 2, doc! { "let": { "value": "$n" }, "pipeline": of_one }).await;
            assert_eq!(found, [0_i64, 1].map(|n| Bson::from(list![doc! { "hit": n }])), "{name}");
        }
    });
}

#[test]
fn one_object_may_have_all_such_names_as_fields() {
    with_stations(async |db| {
        let object =
            doc! { "let": "$$v", "vars": { "v": "$$v" }, "in": "$$as", "as": "$$v", "input": "$$let", "cond": "$$in" };
        let variables = doc! { "v": "$n", "as": "$station", "let": 7, "in": { "$add": ["$n", 1] } };
        let stages = vec![doc! { "$limit": 1 }, doc! { "$replaceWith": object }];
        let wanted = |n: i64, station: &str| {
            Bson::from(list![doc! { "let": n, "vars": { "v": n }, "in": station, "as": n, "input": 7, "cond": n + 1 }])
        };
        let found = found(db, 2, doc! { "let": variables, "pipeline": stages }).await;
        assert_eq!(found, [wanted(0, "a"), wanted(1, "b")]);
    });
}

#[test]
fn a_nested_pipeline_sees_the_variables_of_both_levels() {
    with_stations(async |db| {
        // For each row its station, and for the station the measurements with the number of the row.
        let inner = doc! { "from": "weather", "let": { "name": "$name" }, "as": "rows", "pipeline": [
            eq("station", "name"), eq("n", "n"), { "$project": { "_id": 0, "sum": { "$add": ["$n", "$$n", 10] }, "by": "$$name" } },
        ] };
        let stages = list![
            eq("name", "s"),
            {
                doc! { "$lookup": inner }
            },
            doc! { "$unwind": "$rows" },
            doc! { "$replaceWith": "$rows" }
        ];
        let found = found(db, 3, doc! { "let": { "s": "$station", "n": "$n" }, "pipeline": stages }).await;
        let row = |sum: i64, by: &str| doc! { "sum": sum, "by": by };
        assert_eq!(found, [list![row(10, "a")], list![row(12, "b"), row(12, "b")], list![]].map(Bson::from));
        // Three levels, with the outermost variable used only in the innermost pipeline.
        let mut stages = list![one_row(doc! { "n": "$$n", "deep": "$$deep" })];
        for depth in (0..3).rev() {
            stages = list![
                one_row(doc! { "depth": depth }),
                doc! { "$lookup": { "let": { "deep": "$depth" }, "pipeline": stages, "as": "x" } }
            ];
        }
        let spec = doc! { "let": { "n": "$n" }, "pipeline": stages, "as": "found" };
        let rows = run(db, vec![doc! { "$sort": { "n": 1 } }, doc! { "$limit": 2 }, doc! { "$lookup": spec }]).await;
        let innermost = |n: i64| {
            let mut row = doc! { "n": n, "deep": 2 };
            for depth in (0..3).rev() {
                row = doc! { "depth": depth, "x": [row] };
            }
            Bson::from(list![row])
        };
        assert_eq!(values(&rows, "found"), [innermost(0), innermost(1)]);
    });
}

#[test]
fn a_variable_of_the_inner_pipeline_shadows_outer_ones() {
    with_stations(async |db| {
        let inner = doc! { "let": { "v": { "$concat": ["$$v", "!"] } }, "pipeline": [one_row(doc! { "v": "$$v" })], "as": "in" };
        let stages =
            list![one_row(doc! { "v": "$$v" }), doc! { "$lookup": inner }, doc! { "$set": { "after": "$$v" } }];
        let found = |n: &str| Bson::from(list![doc! { "v": n, "in": [{ "v": format!("{n}!") }], "after": n }]);
        let spec = doc! { "let": { "v": "$station" }, "pipeline": stages, "as": "found" };
        let pipeline = vec![doc! { "$sort": { "n": 1 } }, doc! { "$limit": 2 }, doc! { "$lookup": spec }];
        assert_eq!(values(&run(db, pipeline.clone()).await, "found"), [found("a"), found("b")]);
        // A variable of the command is the outermost one.
        let command = doc! { "aggregate": "weather", "pipeline": pipeline, "cursor": {}, "let": { "v": 1 } };
        let mut cursor = db.ok(raw(&command)).await.get_document("cursor").unwrap().clone();
        assert_eq!(values(&take_rows(&mut cursor, "firstBatch"), "found"), [found("a"), found("b")]);
        // Variables bound by operators are inner ones.
        let map = doc! { "$map": { "input": [1, 2], "as": "v", "in": { "$add": ["$$v", { "$let": { "vars": { "v": "$$w" }, "in": "$$v" } }] } } };
        let stages = list![one_row(doc! { "mapped": map, "v": "$$v" })];
        let spec = doc! { "let": { "v": "$station", "w": "$n" }, "pipeline": stages, "as": "found" };
        let rows = run(db, vec![doc! { "$match": { "n": 4 } }, doc! { "$lookup": spec }]).await;
        assert_eq!(values(&rows, "found"), [Bson::from(list![doc! { "mapped": [5_i64, 6_i64], "v": "b" }])]);
    });
}

#[test]
fn stages_nested_in_a_lookup_see_its_variables() {
    with_stations(async |db| {
        let union = doc! { "$unionWith": { "coll": "weather", "pipeline": [eq("n", "in"), { "$project": { "_id": 0, "n": 1, "in": "$$in" } }] } };
        let sides = doc! { "$facet": {
            "as": [eq("name", "as"), { "$sort": { "height": 1 } }, { "$project": { "_id": 0, "height": 1, "input": "$$in" } }, union],
            "in": [{ "$match": { "height": 40 } }, { "$project": { "_id": 0, "let": "$$in" } }],
        } };
        let spec = doc! { "let": { "as": "$station", "in": "$n" }, "pipeline": [sides] };
        let row = |n: i64, heights: &[i32]| {
            let mut own: Vec<Bson> = heights.iter().map(|h| doc! { "height": *h, "input": n }.into()).collect();
            own.push(doc! { "n": n, "in": n }.into());
            Bson::from(list![doc! { "as": own, "in": [{ "let": n }] }])
        };
        assert_eq!(found(db, 3, spec).await, [row(0, &[10]), row(1, &[20, 30]), row(2, &[])]);
        let graph = doc! { "$graphLookup": { "from": "weather", "startWith": "$$start", "connectFromField": "none", "connectToField": "station",
        "restrictSearchWithMatch": { "$expr": { "$gt": ["$n", "$$n"] } }, "as": "later" } };
        let spec = doc! { "let": { "start": "$station", "n": "$n" }, "pipeline": [one_row(doc! {}), graph, { "$set": { "later": "$later.n" } }], "as": "found" };
        let rows = run(db, vec![doc! { "$sort": { "n": 1 } }, doc! { "$limit": 4 }, doc! { "$lookup": spec }]).await;
        let later = [list![3_i64], list![4_i64], list![5_i64], list![]];
        assert_eq!(values(&rows, "found"), later.map(|numbers| Bson::from(list![doc! { "later": numbers }])));
    });
}

#[test]
fn operators_take_a_missing_lookup_variable_as_they_take_a_missing_field() {
    with_stations(async |db| {
        let shown = doc! { "_id": 0, "sum": { "$add": ["$height", "$$gone"] }, "text": { "$concat": ["$name", "$$gone"] }, "else": { "$ifNull": ["$$gone", 7] } };
        let spec = doc! { "let": { "gone": "$absent" }, "pipeline": [{ "$limit": 2 }, { "$project": shown }] };
        let row = Bson::from(doc! { "sum": Bson::Null, "text": Bson::Null, "else": 7 });
        assert_eq!(found(db, 1, spec).await, [Bson::from(vec![row.clone(), row])]);
    });
}

#[test]
fn every_stage_with_expressions_can_use_lookup_variables() {
    with_stations(async |db| {
        let upward = doc! { "$sort": { "height": 1 } };
        for (stages, wanted) in [
            (
                list![
                    doc! { "$match": { "height": { "$gt": 15 }, "$expr": { "$or": [{ "$eq": ["$name", "$$s"] }, { "$gt": ["$$n", 0] }] } } }
                ],
                [0, 3],
            ),
            (
                list![doc! { "$bucket": { "groupBy": { "$add": ["$height", "$$n"] }, "boundaries": [0, 11, 50] } }],
                [2, 1],
            ),
            (list![doc! { "$bucketAuto": { "groupBy": { "$multiply": ["$height", "$$n"] }, "buckets": 4 } }], [1, 4]),
            (
                list![
                    doc! { "$group": { "_id": { "x": { "$gt": ["$height", { "$multiply": ["$$n", 100] }] }, "y": "$$n" } } }
                ],
                [1, 1],
            ),
            (list![doc! { "$sortByCount": { "$cond": ["$$n", "$height", "$$s"] } }], [1, 4]),
            (list![doc! { "$redact": { "$cond": ["$$n", "$$KEEP", "$$PRUNE"] } }], [0, 4]),
            (
                list![
                    doc! { "$unionWith": { "pipeline": [{ "$documents": { "$slice": [[{ "a": 1 }, { "a": 2 }], { "$add": ["$$n", 1] }] } }] } }
                ],
                [5, 6],
            ),
            (
                list![
                    doc! { "$setWindowFields": { "partitionBy": { "$cond": ["$$n", "$height", 1] }, "sortBy": { "height": 1 }, "output": { "r": { "$documentNumber": {} }, "s": { "$sum": "$$n" } } } },
                    doc! { "$match": { "r": 1, "$expr": { "$or": [{ "$gt": ["$$n", 0] }, { "$eq": ["$s", 0] }] } } }
                ],
                [1, 4],
            ),
            (
                list![doc! { "$fill": { "output": { "tags": { "value": "$$n" } } } }, doc! { "$match": { "tags": 1 } }],
                [0, 2],
            ),
            (
                list![
                    upward,
                    doc! { "$group": { "_id": 1, "all": { "$firstN": { "n": { "$add": ["$$n", 1] }, "input": "$height" } } } },
                    doc! { "$unwind": "$all" }
                ],
                [1, 2],
            ),
        ] {
            let spec = doc! { "let": { "s": "$station", "n": "$n" }, "pipeline": &stages };
            let counts: Vec<usize> =
                found(db, 2, spec).await.iter().map(|found| found.as_array().unwrap().len()).collect();
            assert_eq!(counts, wanted, "{stages:?}");
        }
    });
}

#[test]
fn system_variables_refer_to_the_row_of_the_inner_pipeline() {
    with_stations(async |db| {
        let shown = doc! { "$project": { "_id": 0, "root": "$$ROOT.height", "current": "$$CURRENT.height", "same": { "$eq": ["$$NOW", "$$now"] }, "gone": "$$REMOVE", "as": "$$root.n" } };
        let spec =
            doc! { "let": { "now": "$$NOW", "root": "$$ROOT" }, "pipeline": [{ "$match": { "name": "a" } }, shown] };
        let row = |n: i64| Bson::from(list![doc! { "root": 10, "current": 10, "same": true, "as": n }]);
        assert_eq!(found(db, 2, spec).await, [row(0), row(1)]);
        // A variable may be missing, and so may paths below it.
        let spec = doc! { "let": { "none": "$none" }, "pipeline": [{ "$limit": 1 }, { "$replaceWith": { "a": "$$none", "b": "$$none.c", "type": { "$type": "$$none" } } }] };
        assert_eq!(found(db, 1, spec).await, [Bson::from(list![doc! { "type": "missing" }])]);
    });
}

#[test]
fn an_unbound_variable_is_refused_before_the_first_row() {
    with_stations(async |db| {
        let lookup = |from: &str, stages: Vec<Bson>| doc! { "$lookup": { "from": from, "let": { "v": "$n" }, "pipeline": stages, "as": "x" } };
        let unknown = doc! { "$set": { "as": "$$w" } };
        for from in ["stations", "nowhere"] {
            let read_once = lookup(from, list![unknown.clone()]);
            let by_row = lookup(from, list![eq("n", "v"), unknown.clone()]);
            let inner = lookup(from, list![lookup(from, list![doc! { "$set": { "a": ["$$v", "$$in"] } }])]);
            // A variable does not exist beside or after the stage that binds it.
            let bound = doc! { "from": from, "let": { "w": "$n" }, "pipeline": [eq("n", "w")], "as": "x" };
            let behind = lookup(from, list![eq("n", "v"), doc! { "$lookup": bound }, unknown.clone()]);
            let operator = doc! { "$set": { "a": { "$map": { "input": "$$w", "as": "w", "in": 1 } } } };
            for stage in [read_once, by_row, inner, behind, lookup(from, list![operator])] {
                assert_eq!(code(db, stage.clone()).await, 17276, "{stage}");
            }
            // A variable of a nested pipeline does not exist in the outer one.
            let around = doc! { "$lookup": { "from": from, "let": { "w": 1, "v": "$$w" }, "pipeline": [], "as": "x" } };
            assert_eq!(code(db, around).await, 17276);
        }
        let none = lookup("stations", list![eq("n", "v"), doc! { "$limit": 0 }]);
        assert_eq!(code(db, doc! { "$facet": { "x": [{ "$match": { "n": 77 } }, none] } }).await, 15958);
    });
}

#[test]
fn arguments_that_must_be_constant_refuse_lookup_variables() {
    with_stations(async |db| {
        let lookup = |stage: Document| doc! { "$lookup": { "from": "stations", "let": { "v": "$n" }, "pipeline": [stage], "as": "x" } };
        let bucket = doc! { "$bucket": { "groupBy": "$height", "boundaries": ["$$v", 100] } };
        assert_eq!(code(db, lookup(bucket)).await, 40191);
        let median = doc! { "$group": { "_id": 1, "x": { "$percentile": { "input": "$height", "method": "approximate", "p": ["$$v"] } } } };
        assert_eq!(code(db, lookup(median)).await, 7750300);
    });
}
