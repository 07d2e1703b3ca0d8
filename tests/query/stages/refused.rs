//! Stages that are refused, and codes that no other test provokes.

use bson::{Document, doc};

use super::{code, row, run, with_rows};
use crate::support::raw;

#[test]
fn unsupported_stages_are_refused_with_the_servers_codes() {
    with_rows(vec![row(0, "a", doc! {})], async |db| {
        for (name, wanted) in [
            ("$changeStream", 166),
            ("$planCacheStats", 166),
            ("$listCatalog", 166),
            ("$search", 10170100),
            ("$searchMeta", 10170100),
            ("$vectorSearch", 10170100),
            ("$scoreFusion", 10557300),
            ("$rankFusion", 10557301),
            ("$_internalSearchIdLookup", 10557302),
            ("$merge", 1074330),
            ("$nothing", 40324),
        ] {
            assert_eq!(code(db, doc! { name: {} }).await, wanted, "{name}");
            let behind = doc! { "aggregate": "weather", "pipeline": [{ "$limit": 1 }, { name: {} }], "cursor": {} };
            let wanted = if matches!(name, "$merge" | "$nothing") { wanted } else { 40602 };
            assert_eq!(db.fails(raw(&behind)).await.0, wanted, "{name}");
        }
    });
}

#[test]
fn fields_of_a_groups_key_are_refused_in_their_order_each_for_its_name_before_its_value() {
    with_rows(vec![row(0, "a", doc! {})], async |db| {
        let unknown = doc! { "$nothing": 1 };
        for (key, wanted) in [
            (doc! { "a.b": unknown.clone() }, 16412),
            (doc! { "a": unknown.clone(), "b.c": 1 }, 168),
            (doc! { "a": 1, "b.c": 1 }, 16412),
            (doc! { "a": { "b.c": 1 } }, 16412),
            (doc! { "a": "$x", "$b": unknown }, 16410),
            (doc! { "": 1 }, 15998),
        ] {
            assert_eq!(code(db, doc! { "$group": { "_id": key.clone() } }).await, wanted, "{key}");
        }
    });
}

#[test]
fn invalid_arguments_are_refused_with_their_codes() {
    with_rows(vec![row(0, "a", doc! {})], async |db| {
        let unwind = |more: Document| {
            let mut stage = doc! { "path": "$x" };
            stage.extend(more);
            doc! { "$unwind": stage }
        };
        let percentile = |arguments: Document| {
            doc! { "$setWindowFields": { "output": { "x": { "$percentile": arguments } } } }
        };
        for (stage, wanted) in [
            (unwind(doc! { "preserveNullAndEmptyArrays": 1 }), 28809),
            (unwind(doc! { "includeArrayIndex": "" }), 28810),
            (unwind(doc! { "includeArrayIndex": 1 }), 28810),
            (unwind(doc! { "includeArrayIndex": "$i" }), 28822),
            (doc! { "$count": "a\0b" }, 40159),
            (doc! { "$sortByCount": {} }, 40147),
            (doc! { "$sortByCount": { "a": 1 } }, 40147),
            (doc! { "$sortByCount": "a" }, 40148),
            (doc! { "$sortByCount": "" }, 40148),
            (doc! { "$sortByCount": 1 }, 40149),
            (doc! { "$sortByCount": "$" }, 16872),
            (percentile(doc! { "input": "$x", "method": "discrete" }), 7455900),
            (percentile(doc! { "input": "$x", "p": [0.5] }), 7455900),
            (percentile(doc! { "p": [2], "input": "$x", "method": "discrete" }), 7750303),
            (doc! { "$group": { "_id": 1, "x": { "$covariancePop": ["$x", "$y"] } } }, 15952),
            (doc! { "$group": { "_id": 1, "x": { "$covarianceSamp": ["$x", "$y"] } } }, 15952),
        ] {
            assert_eq!(code(db, stage.clone()).await, wanted, "{stage}");
        }
    });
}

#[test]
fn field_names_with_a_nul_byte_are_refused() {
    // A NUL would end the name, and the rest would be read as a value.
    with_rows(vec![row(0, "a", doc! { "x": 1, "list": [1] })], async |db| {
        let graph = |more: Document| {
            let mut graph =
                doc! { "from": "c", "startWith": "$x", "connectFromField": "x", "connectToField": "x", "as": "r" };
            graph.extend(more);
            doc! { "$graphLookup": graph }
        };
        let range = || doc! { "step": 1, "bounds": "full" };
        for stage in [
            doc! { "$set": { "y": "$a\0b" } },
            doc! { "$unset": ["a\0b"] },
            doc! { "$unset": "a\0b" },
            doc! { "$unwind": { "path": "$list", "includeArrayIndex": "i\0j" } },
            doc! { "$lookup": { "from": "c", "localField": "x", "foreignField": "x", "as": "a\0b" } },
            graph(doc! { "as": "a\0b" }),
            graph(doc! { "depthField": "a\0b" }),
            doc! { "$densify": { "field": "x\0y", "range": range() } },
            doc! { "$densify": { "field": "x", "partitionByFields": ["p\0q"], "range": range() } },
            doc! { "$fill": { "partitionByFields": ["p\0q"], "output": { "x": { "value": 1 } } } },
            doc! { "$geoNear": { "near": [0, 0], "key": "x", "distanceField": "d\0e" } },
            doc! { "$setWindowFields": { "partitionBy": "$p\0q", "output": { "r": { "$sum": "$x" } } } },
        ] {
            assert_eq!(code(db, stage.clone()).await, 16_411, "{stage}");
        }
        // Values may contain one.
        for stage in [
            graph(doc! { "restrictSearchWithMatch": { "x": "a\0b" } }),
            graph(doc! { "startWith": "a\0b" }),
            doc! { "$lookup": { "from": "c", "let": { "x": "a\0b" }, "pipeline": [], "as": "r" } },
        ] {
            run(db, vec![stage]).await;
        }
    });
}

#[test]
fn a_refusal_names_the_argument_at_fault() {
    with_rows(vec![row(0, "a", doc! {})], async |db| {
        let window =
            |function: Document| doc! { "$setWindowFields": { "sortBy": { "x": 1 }, "output": { "r": function } } };
        let computed = |operator: Document| doc! { "$project": { "r": operator } };
        for (stage, wanted) in [
            (doc! { "$lookup": { "from": "c", "field": "x", "as": "r" } }, "Unknown argument of $lookup: field"),
            (doc! { "$graphLookup": { "from": "c", "to": "x" } }, "Unknown argument of $graphLookup: to"),
            (window(doc! { "$sum": "$x", "windows": {} }), "$sum takes nothing beside it named windows"),
            (window(doc! { "$locf": "$x", "window": {} }), "$locf takes nothing beside it named window"),
            (window(doc! { "$shift": { "output": "$x", "by": 1, "of": 2 } }), "Unknown argument of $shift: of"),
            (computed(doc! { "$subtract": [1] }), "$subtract takes 2 arguments, not 1"),
            (computed(doc! { "$cond": [1] }), "$cond takes 3 arguments, not 1"),
            (computed(doc! { "$slice": [1] }), "'$slice' takes the array as well: ['$field', 2]"),
            (computed(doc! { "$substr": ["a"] }), "$substr takes 3 arguments, not 1"),
            (computed(doc! { "$slice": ["$x"] }), "$slice takes 2 to 3 arguments, not 1"),
        ] {
            let command = doc! { "aggregate": "weather", "pipeline": [stage], "cursor": {} };
            let reply = db.command(raw(&command)).await;
            let message = reply.get_str("errmsg").unwrap();
            assert!(message.contains(wanted), "{command}: {message}");
        }
    });
}
