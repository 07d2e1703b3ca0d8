//! `$unwind` of arrays that the pipeline makes.

use bson::{Bson, Document, doc};

use super::{code, explained::explain_of, list, row, with_rows};
use crate::support::pipelines::run;
use crate::support::{Random, multiset};

/// Values of several types; fields and whole objects that some rows lack.
fn rows() -> Vec<Document> {
    let random = Random::new(7);
    let one = |second: i64| {
        let n = random.below(9) as i32;
        let mut env = doc! { "t": f64::from(n) / 4.0, "h": n };
        if random.chance(70) {
            env.insert(
                "p",
                [Bson::from(f64::from(n)), Bson::from(n), "high".into(), Bson::Null][random.below(4) as usize].clone(),
            );
        }
        env.insert("in", doc! { "x": n % 3, "y": f64::from(n) });
        let mut more = doc! { "n": n, "v": f64::from(n) * 1.5, "s": if n % 2 == 0 { "calm" } else { "brisk" } };
        if random.chance(90) {
            more.insert("env", env);
        }
        if random.chance(60) {
            more.insert("w", n * 2);
        }
        row(second * 10, ["a", "b"][n as usize % 2], more)
    };
    (0..300).map(one).collect()
}

fn arrays() -> Vec<Bson> {
    vec![
        doc! { "$objectToArray": "$env" }.into(),
        doc! { "$objectToArray": "$env.in" }.into(),
        doc! { "$objectToArray": "$$ROOT" }.into(),
        doc! { "$objectToArray": { "a": "$n", "b": "$w", "c": { "d": "$v" } } }.into(),
        doc! { "$objectToArray": { "$mergeObjects": ["$env", { "n": "$n" }] } }.into(),
        list![doc! { "k": "n", "v": "$n" }, doc! { "k": "v", "v": "$v" }, doc! { "k": "w", "v": "$w" }].into(),
        list!["$n", "$w", "$v"].into(),
        list!["$v", doc! { "$add": ["$v", 1] }].into(),
        list!["$env.t", "$none", 3, Bson::Null, list!["$n"], doc! {}].into(),
        list![doc! { "o": "$env" }, doc! { "$cond": [{ "$gt": ["$n", 4] }, { "o": { "t": "$v" } }, "$$REMOVE"] }]
            .into(),
        Bson::Array(Vec::new()),
    ]
}

#[test]
fn unwinding_an_array_that_the_pipeline_makes_gives_the_rows_of_that_array() {
    with_rows(rows(), async |db| {
        for array in arrays() {
            for stage in ["$project", "$addFields"] {
                let make = || doc! { stage: { "kv": array.clone(), "n2": { "$add": ["$n", 1] } } };
                let wall = || doc! { "$_internalInhibitOptimization": {} };
                let behind = || {
                    [
                        vec![],
                        vec![doc! { "$match": { "kv.k": "t", "n2": { "$lt": 7 } } }],
                        vec![doc! { "$match": { "kv.k": { "$in": ["x", "n", "v"] }, "kv.v": { "$gt": 1 } } }],
                        vec![doc! { "$match": { "$or": [{ "kv.k": "x" }, { "kv.v": 1 }], "kv.k": { "$ne": "in" } } }],
                        vec![doc! { "$match": { "kv.k": "never" } }],
                        vec![
                            doc! { "$group": { "_id": "$kv.k", "sum": { "$sum": "$kv.v" }, "all": { "$push": "$kv" } } },
                        ],
                        vec![doc! { "$group": { "_id": "$kv", "n": { "$sum": "$n2" } } }],
                    ]
                };
                for ((fused, walled), index) in behind()
                    .into_iter()
                    .zip(behind())
                    .flat_map(|both| [None, Some("i"), Some("kv.i")].map(|index| (both.clone(), index)))
                {
                    let unwind = || match index {
                        None => doc! { "$unwind": "$kv" },
                        Some(index) => doc! { "$unwind": { "path": "$kv", "includeArrayIndex": index } },
                    };
                    let order = || doc! { "$sort": { "at": 1 } };
                    let found = run(db, [vec![order(), make(), unwind()], fused.clone()].concat()).await;
                    let expected = run(db, [vec![order(), make(), wall(), unwind()], walled].concat()).await;
                    assert_eq!(multiset(&found), multiset(&expected), "{array:?} {stage} {fused:?} {index:?}");
                    if fused.is_empty() {
                        assert_eq!(found, expected, "{array:?} {stage} {index:?}");
                    }
                }
            }
        }
    });
}

#[test]
fn the_fields_of_an_object_are_unwound_without_the_array() {
    with_rows(rows(), async |db| {
        for (array, is_fused) in
            arrays().into_iter().zip([true, true, true, true, true, true, true, true, true, true, false])
        {
            let pipeline = vec![doc! { "$project": { "kv": array.clone() } }, doc! { "$unwind": "$kv" }];
            let found = explain_of(db, pipeline, "queryPlanner").await;
            assert_eq!(found.names().contains(&"$_internalUnwindFields"), is_fused, "{array:?}");
        }
        let of_list = doc! { "$unwind": { "path": "$kv", "includeArrayIndex": "i" } };
        let pipeline = vec![doc! { "$project": { "kv": ["$n", "$none"] } }, of_list];
        assert!(explain_of(db, pipeline, "queryPlanner").await.names().contains(&"$_internalUnwindFields"));
        // With an index of pairs, or rows without elements, the array is made.
        for more in [doc! { "includeArrayIndex": "i" }, doc! { "preserveNullAndEmptyArrays": true }] {
            let mut unwind = doc! { "path": "$kv" };
            unwind.extend(more);
            let pipeline =
                vec![doc! { "$project": { "kv": { "$objectToArray": "$env" } } }, doc! { "$unwind": unwind }];
            assert!(explain_of(db, pipeline, "queryPlanner").await.names().contains(&"$unwind"));
        }
    });
}

#[test]
fn fields_of_what_is_no_object_are_refused_in_front_of_an_unwind_as_well() {
    with_rows(rows(), async |db| {
        let facet =
            doc! { "$facet": { "a": [{ "$project": { "kv": { "$objectToArray": "$n" } } }, { "$unwind": "$kv" }] } };
        assert_eq!(code(db, facet).await, 40390);
        let none = vec![doc! { "$project": { "kv": { "$objectToArray": "$none" } } }, doc! { "$unwind": "$kv" }];
        assert!(run(db, none).await.is_empty());
    });
}
