//! `$lookup`, `$unionWith` and `$graphLookup`: pipelines that read other collections.

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, rawdoc};

use super::{code, list, row, run, values, with_rows};
use crate::support::explained::Explained;
use crate::support::{Db, raw, take_rows};

/// Calls `check` with six measurements of three stations and a second collection of stations; both in the journal, then
/// in buckets.
pub(super) fn with_stations(check: impl AsyncFn(&Db)) {
    let rows = (0..6).zip(["a", "b", "c", "a", "b", "c"]).map(|(n, station)| row(n, station, doc! { "n": n }));
    with_rows(rows.collect(), async |db| {
        if db.ok(rawdoc! { "count": "stations" }).await.get("n").and_then(Bson::as_i32) == Some(0) {
            db.ok(rawdoc! { "create": "stations", "timeseries": { "timeField": "since", "metaField": "zone" } }).await;
            let station = |n: i64, more: Document| {
                let mut station = doc! { "since": DateTime::from_millis(n), "zone": n % 2 };
                station.extend(more);
                RawDocumentBuf::try_from(&station).unwrap()
            };
            let stations = [
                station(1, doc! { "name": "a", "height": 10, "tags": ["x", "y"] }),
                station(2, doc! { "name": "b", "height": 20, "tags": ["y"] }),
                station(3, doc! { "name": "b", "height": 30 }),
                station(4, doc! { "height": 40, "in": [{ "n": 1 }, { "n": 2 }] }),
            ];
            db.insert("stations", &stations).await;
        }
        check(db).await;
        db.ok(rawdoc! { "flush": 1 }).await;
    });
}

/// The heights of the stations that a `$lookup` finds for each row, ascending.
async fn heights(db: &Db, lookup: Document) -> Vec<Vec<i32>> {
    let mut spec = doc! { "from": "stations", "as": "found" };
    spec.extend(lookup);
    let rows = run(db, vec![doc! { "$sort": { "at": 1 } }, doc! { "$lookup": spec }]).await;
    let heights = |row: &Document| {
        let found = row.get_array("found").unwrap().iter();
        let mut heights: Vec<i32> =
            found.map(|found| found.as_document().unwrap().get_i32("height").unwrap()).collect();
        heights.sort_unstable();
        heights
    };
    rows.iter().map(heights).collect()
}

#[test]
fn lookup_joins_equal_fields_and_treats_missing_ones_as_null() {
    with_stations(async |db| {
        let found = heights(db, doc! { "localField": "station", "foreignField": "name" }).await;
        assert_eq!(found, [vec![10], vec![20, 30], vec![], vec![10], vec![20, 30], vec![]]);
        let found = heights(db, doc! { "localField": "nothing", "foreignField": "name" }).await;
        assert_eq!(found, vec![vec![40]; 6], "missing is null, and so is a missing name");
        let found = heights(db, doc! { "localField": "n", "foreignField": "in.n" }).await;
        assert_eq!(found, [vec![], vec![40], vec![40], vec![], vec![], vec![]]);
    });
}

#[test]
fn lookup_joins_patterns_and_operator_objects_as_plain_values() {
    with_stations(async |db| {
        let pattern =
            Bson::RegularExpression(bson::Regex { pattern: bson::cstr!("b").into(), options: bson::cstr!("").into() });
        for (local, expected) in [(pattern, 0), (bson::bson!({ "$gt": "" }), 0), (bson::bson!({ "n": 1 }), 1)] {
            // They are computed, because documents with such names cannot be stored.
            let made = doc! { "$addFields": { "local": { "$literal": local.clone() } } };
            let lookup = doc! { "from": "stations", "localField": "local", "foreignField": "name", "as": "found" };
            let nested = doc! { "from": "stations", "localField": "local", "foreignField": "in", "as": "nested" };
            let rows =
                run(db, vec![doc! { "$limit": 1 }, made, doc! { "$lookup": lookup }, doc! { "$lookup": nested }]).await;
            assert_eq!(rows[0].get_array("found").unwrap().len(), 0, "{local}");
            assert_eq!(rows[0].get_array("nested").unwrap().len(), expected, "{local}");
        }
    });
}

#[test]
fn lookup_joins_each_array_element_separately() {
    with_stations(async |db| {
        let join = |local: Bson| {
            let local = doc! { "$addFields": { "local": { "$literal": local } } };
            let lookup = doc! { "from": "stations", "localField": "local", "foreignField": "tags", "as": "found" };
            let names = doc! { "$project": { "_id": 0, "heights": "$found.height" } };
            async move {
                let rows = run(db, vec![doc! { "$limit": 1 }, local, doc! { "$lookup": lookup }, names]).await;
                let mut heights: Vec<_> =
                    rows[0].get_array("heights").unwrap().iter().map(|n| n.as_i32().unwrap()).collect();
                heights.sort_unstable();
                heights
            }
        };
        assert_eq!(join(Bson::from("y")).await, [10, 20]);
        assert_eq!(join(Bson::from(list!["x", "z"])).await, [10]);
        assert_eq!(join(Bson::Array(Vec::new())).await, [30, 40], "no value at all is null");
        assert_eq!(join(Bson::from(list![list!["x", "y"]])).await, [10], "an array in the array is a value");
        let pattern =
            Bson::RegularExpression(bson::Regex { pattern: "y".try_into().unwrap(), options: "".try_into().unwrap() });
        assert_eq!(join(pattern.clone()).await, [0; 0], "a regular expression is no pattern");
        assert_eq!(join(Bson::from(list![pattern, "x"])).await, [10]);
    });
}

#[test]
fn a_pipeline_sees_the_variables_of_its_row() {
    with_stations(async |db| {
        let by_name = doc! { "$match": { "$expr": { "$eq": ["$name", "$$s"] } } };
        let higher = doc! { "$match": { "$expr": { "$gte": ["$height", { "$multiply": ["$$n", 10] }] } } };
        let found = heights(db, doc! { "let": { "s": "$station" }, "pipeline": [by_name.clone()] }).await;
        assert_eq!(found, [vec![10], vec![20, 30], vec![], vec![10], vec![20, 30], vec![]]);
        let variables = doc! { "s": "$station", "n": "$n" };
        let found = heights(
            db,
            doc! { "let": variables.clone(), "pipeline": [{ "$match": { "height": { "$ne": 30 } } }, by_name, higher.clone()] },
        );
        assert_eq!(found.await, [vec![10], vec![20], vec![], vec![], vec![], vec![]]);
        let both = doc! { "localField": "station", "foreignField": "name", "let": variables, "pipeline": [higher] };
        assert_eq!(heights(db, both).await, [vec![10], vec![20, 30], vec![], vec![], vec![], vec![]]);
        let counted = doc! { "from": "stations", "let": { "s": "$station" }, "as": "x.y", "pipeline": [
            { "$match": { "$expr": { "$eq": ["$name", "$$s"] } } }, { "$count": "n" },
        ] };
        let rows = run(db, vec![doc! { "$sort": { "n": 1 } }, doc! { "$limit": 3 }, doc! { "$lookup": counted }]).await;
        let counts =
            [list![doc! { "n": 1 }], list![doc! { "n": 2 }], list![]].map(|list| Bson::from(doc! { "y": list }));
        assert_eq!(values(&rows, "x"), counts);
        // What does not depend on the row may be run once for all rows.
        let highest = doc! { "from": "stations", "let": { "s": "$station" }, "as": "x", "pipeline": [
            { "$group": { "_id": "$name", "top": { "$max": "$height" } } },
            { "$match": { "$expr": { "$eq": ["$_id", "$$s"] } } },
            { "$project": { "_id": 0, "top": 1 } },
        ] };
        let rows = run(db, vec![doc! { "$sort": { "n": 1 } }, doc! { "$limit": 3 }, doc! { "$lookup": highest }]).await;
        let tops = [list![doc! { "top": 10 }], list![doc! { "top": 30 }], list![]].map(Bson::from);
        assert_eq!(values(&rows, "x"), tops);
    });
}

/// Asks about many rows together and about each one alone, for which all other rows are looked at.
#[test]
fn many_rows_find_together_what_each_finds_alone() {
    let decimal = Bson::Decimal128("1.0".parse().unwrap());
    let mut kinds = list![1, 1.0, 1_i64, decimal, 2, "1", "a", Bson::Null, 2.5, true, list![1, "a"], doc! { "x": 1 }];
    // Enough for some of them to be found by number.
    kinds.extend((10..22).map(Bson::from));
    let rows = (0..480).map(|n: usize| {
        let mut more = doc! { "n": n as i64, "o": { "k": kinds[n % 23].clone() } };
        if !n.is_multiple_of(13) {
            more.insert("k", kinds[n % kinds.len()].clone());
        }
        row(n as i64, ["a", "b", "c"][n % 3], more)
    });
    with_rows(rows.collect(), async |db| {
        let equal = |field: &str| doc! { "$match": { "$expr": { "$eq": [field, "$$k"] } } };
        let both = doc! { "$match": { "$expr": { "$and": [{ "$gt": ["$n", "$$n"] }, { "$eq": ["$k", "$$k"] }, { "$eq": ["$station", "$$s"] }] } } };
        let guarded =
            doc! { "$match": { "$expr": { "$and": [{ "$ne": ["$$s", null] }, { "$eq": ["$o.k", "$$k"] }] } } };
        let beside = doc! { "$match": { "n": { "$lt": 200 }, "$expr": { "$eq": ["$k", "$$k"] } } };
        let variables = doc! { "k": "$k", "n": "$n", "s": "$station" };
        let lookups = [
            doc! { "localField": "k", "foreignField": "k" },
            doc! { "localField": "k", "foreignField": "o.k" },
            doc! { "let": variables.clone(), "pipeline": [equal("$k")] },
            doc! { "let": variables.clone(), "pipeline": [equal("$o.k"), { "$project": { "o": 1, "n": 1 } }] },
            doc! { "let": variables.clone(), "pipeline": [both] },
            doc! { "let": variables.clone(), "pipeline": [beside] },
            doc! { "let": variables.clone(), "pipeline": [guarded] },
            doc! { "localField": "station", "foreignField": "station", "let": variables, "pipeline": [equal("$k")] },
        ];
        let mut stages: Vec<Document> = lookups
            .into_iter()
            .map(|mut spec| {
                spec.extend(doc! { "from": "weather", "as": "found" });
                doc! { "$lookup": spec }
            })
            .collect();
        stages.push(doc! { "$graphLookup": {
            "from": "weather", "startWith": "$k", "connectFromField": "o.k", "connectToField": "k", "maxDepth": 1, "as": "found",
        } });
        for stage in stages {
            let sorted = [doc! { "$match": { "n": { "$lt": 30 } } }, doc! { "$sort": { "at": 1 } }];
            let shown = doc! { "$project": { "_id": 0, "found": 1 } };
            let together = run(db, [&sorted[..], &[stage.clone(), shown.clone()]].concat()).await;
            assert!(together.iter().any(|row| row.get_array("found").unwrap().len() > 20), "{stage}");
            for (at, row) in together.iter().enumerate().step_by(3) {
                let one = [doc! { "$skip": at as i64 }, doc! { "$limit": 1 }, stage.clone(), shown.clone()];
                assert_eq!(run(db, [&sorted[..], &one].concat()).await[0].to_string(), row.to_string(), "{stage}");
            }
        }
    });
}

#[test]
fn a_row_without_matches_fails_by_its_variables_however_many_rows_came_before() {
    let rows = (0..300).map(|n| row(n, "a", doc! { "n": n, "z": i32::from(n != 19) }));
    with_rows(rows.collect(), async |db| {
        let lookup = doc! { "from": "weather", "let": { "k": { "$add": ["$n", 1000] }, "z": "$z" }, "as": "found", "pipeline": [
            { "$match": { "$expr": { "$eq": ["$n", "$$k"] } } }, { "$project": { "x": { "$divide": [1, "$$z"] } } },
        ] };
        for first in [0, 19] {
            let asked = doc! { "$match": { "n": { "$gte": first, "$lt": 20 } } };
            let pipeline = list![asked, doc! { "$sort": { "at": 1 } }, doc! { "$lookup": lookup.clone() }];
            let command = doc! { "aggregate": "weather", "pipeline": pipeline, "cursor": {} };
            assert_eq!(db.fails(raw(&command)).await.0, 2, "from {first}");
        }
    });
}

#[test]
fn an_uncorrelated_lookup_pipeline_runs_once_and_may_contain_lookups() {
    with_stations(async |db| {
        let inner =
            doc! { "$lookup": { "from": "weather", "localField": "name", "foreignField": "station", "as": "rows" } };
        let highest = list![doc! { "$match": { "name": "a" } }, inner, doc! { "$project": { "_id": 0, "rows.n": 1 } }];
        let lookup = doc! { "from": "stations", "pipeline": highest, "as": "found" };
        let rows = run(db, vec![doc! { "$match": { "station": "c" } }, doc! { "$lookup": lookup }]).await;
        let found = doc! { "rows": [{ "n": 0_i64 }, { "n": 3_i64 }] };
        assert_eq!(values(&rows, "found"), vec![Bson::from(list![found]); 2]);
        let missing = doc! { "from": "nowhere", "localField": "n", "foreignField": "n", "as": "found" };
        let rows = run(db, vec![doc! { "$lookup": missing }]).await;
        assert_eq!(values(&rows, "found"), vec![Bson::Array(Vec::new()); 6]);
    });
}

#[test]
fn a_correlated_lookup_pipeline_may_contain_lookups() {
    with_stations(async |db| {
        let of_row = |expr: Document| doc! { "$match": { "$expr": expr } };
        let asked = async |more: Document, shown: &str| {
            let mut spec = doc! { "from": "stations", "as": "found" };
            spec.extend(more);
            let names = doc! { "$project": { "_id": 0, "found": shown } };
            let stages = vec![doc! { "$sort": { "n": 1 } }, doc! { "$limit": 3 }, doc! { "$lookup": spec }, names];
            values(&run(db, stages).await, "found")
        };
        // The earlier measurements of the station, by a nested pipeline.
        let before = doc! { "from": "weather", "let": { "name": "$name" }, "as": "rows", "pipeline": [
            of_row(doc! { "$and": [{ "$eq": ["$station", "$$name"] }, { "$lt": ["$n", { "$add": ["$$n", 1] }] }] }),
            { "$count": "n" },
        ] };
        let found = asked(
            doc! { "let": { "n": "$n", "s": "$station" }, "pipeline": [
                of_row(doc! { "$eq": ["$name", "$$s"] }), { "$lookup": before }, { "$unwind": "$rows" },
            ] },
            "$found.rows.n",
        );
        assert_eq!(found.await, [list![1], list![1, 1], list![]].map(Bson::from));
        // Equal fields, with nested lookups, correlated and uncorrelated.
        let union = |more: Document| {
            let mut both = doc! { "localField": "station", "foreignField": "name" };
            both.extend(more);
            both
        };
        let heights = doc! { "$project": { "height": 1 } };
        let upward = doc! { "$sort": { "height": 1 } };
        let found = asked(
            union(
                doc! { "pipeline": [upward.clone(), heights.clone(), { "$unionWith": { "coll": "weather", "pipeline": [{ "$limit": 1 }, { "$set": { "height": 7 } }] } }] },
            ),
            "$found.height",
        );
        assert_eq!(found.await, [list![10, 7], list![20, 30, 7], list![7]].map(Bson::from));
        let found = asked(
            union(doc! { "let": { "n": "$n" }, "pipeline": [upward, heights, { "$facet": { "x": [
                { "$unionWith": { "coll": "weather", "pipeline": [of_row(doc! { "$eq": ["$n", "$$n"] }), { "$set": { "height": "$$n" } }] } },
            ] } }] }),
            "$found.x.height",
        );
        let each = [list![10, 0_i64], list![20, 30, 1_i64], list![2_i64]].map(|heights| Bson::from(vec![heights]));
        assert_eq!(found.await, each);
        let spec = doc! { "let": { "n": "$n" }, "pipeline": [{ "$documents": [{ "m": "$$n" }] }], "as": "found" };
        let rows = run(db, vec![doc! { "$sort": { "n": 1 } }, doc! { "$limit": 2 }, doc! { "$lookup": spec }]).await;
        assert_eq!(values(&rows, "found"), [0_i64, 1].map(|n| Bson::from(list![doc! { "m": n }])));
    });
}

#[test]
fn variables_bound_inside_a_stage_do_not_correlate_it() {
    with_stations(async |db| {
        let bound = list![
            doc! { "$set": { "h": { "$sum": { "$map": { "input": ["$height", 1], "as": "h", "in": { "$add": ["$$h", "$$this"] } } } } } },
        ];
        let unbound = doc! { "$unionWith": { "coll": "stations", "pipeline": bound } };
        assert_eq!(code(db, unbound).await, 17276, "with a name of its own there is no other");
        let bound = list![
            doc! { "$set": { "h": { "$sum": { "$map": { "input": ["$height", 1], "as": "h", "in": { "$let": { "vars": { "x": "$$h" }, "in": "$$x" } } } } } } },
            doc! { "$match": { "$expr": { "$gt": [{ "$size": { "$filter": { "input": ["$height"], "cond": "$$this" } } }, 0] } } },
            doc! { "$unionWith": "stations" },
        ];
        let lookup = doc! { "from": "stations", "pipeline": bound, "as": "found" };
        let rows = run(db, vec![doc! { "$limit": 1 }, doc! { "$lookup": lookup }]).await;
        assert_eq!(rows[0].get_array("found").unwrap().len(), 8);
    });
}

#[test]
fn union_with_appends_the_rows_of_the_other_pipeline() {
    with_stations(async |db| {
        let high = list![doc! { "$match": { "height": { "$gt": 15 } } }, doc! { "$sort": { "height": 1 } }];
        let own = list![doc! { "$match": { "n": { "$lt": 2 } } }, doc! { "$sort": { "n": 1 } }];
        let with = |stage: Document| {
            let mut stages: Vec<Document> = own.iter().map(|stage| stage.as_document().unwrap().clone()).collect();
            stages.push(doc! { "$unionWith": stage });
            stages.push(doc! { "$project": { "_id": 0, "n": { "$ifNull": ["$n", "$height"] } } });
            stages
        };
        let rows = run(db, with(doc! { "coll": "stations", "pipeline": high })).await;
        assert_eq!(values(&rows, "n"), list![0_i64, 1_i64, 20, 30, 40]);
        let mut whole = with(doc! {});
        whole[2] = doc! { "$unionWith": "stations" };
        assert_eq!(run(db, whole).await.len(), 6);
        let rows = run(db, with(doc! { "coll": "nowhere" })).await;
        assert_eq!(values(&rows, "n"), list![0_i64, 1_i64]);
        let nested =
            list![doc! { "$limit": 1 }, doc! { "$unionWith": { "coll": "weather", "pipeline": [{ "$limit": 2 }] } }];
        assert_eq!(run(db, with(doc! { "coll": "stations", "pipeline": nested })).await.len(), 5);
        let sides =
            doc! { "$facet": { "all": [{ "$unionWith": "stations" }, { "$count": "n" }], "own": [{ "$count": "n" }] } };
        let counts = doc! { "all": [{ "n": 10 }], "own": [{ "n": 6 }] };
        assert_eq!(run(db, vec![sides]).await, [counts]);
    });
}

#[test]
fn every_stage_treats_a_missing_collection_as_empty() {
    with_stations(async |db| {
        let pipeline = list![doc! { "$unionWith": "stations" }, doc! { "$count": "n" }];
        let of_nothing = raw(&doc! { "aggregate": "nowhere", "pipeline": pipeline, "cursor": {} });
        let mut cursor = db.ok(of_nothing).await.get_document("cursor").unwrap().clone();
        assert_eq!(take_rows(&mut cursor, "firstBatch"), [doc! { "n": 4 }]);
    });
}

#[test]
fn lookup_joins_strings_by_the_collation_of_the_pipeline() {
    with_stations(async |db| {
        let upper = doc! { "$addFields": { "s": { "$toUpper": "$station" } } };
        let lookup =
            doc! { "$lookup": { "from": "stations", "localField": "s", "foreignField": "name", "as": "found" } };
        let count = doc! { "$group": { "_id": null, "n": { "$sum": { "$size": "$found" } } } };
        for (collation, n) in [(doc! { "locale": "simple" }, 0), (doc! { "locale": "en", "strength": 2 }, 6)] {
            let pipeline = list![upper.clone(), lookup.clone(), count.clone()];
            let command = doc! { "aggregate": "weather", "pipeline": pipeline, "cursor": {}, "collation": collation };
            let mut cursor = db.ok(raw(&command)).await.get_document("cursor").unwrap().clone();
            assert_eq!(take_rows(&mut cursor, "firstBatch"), [doc! { "_id": null, "n": n }]);
        }
    });
}

#[test]
fn invalid_lookups_and_unions_are_refused_with_their_codes() {
    with_stations(async |db| {
        let lookup = |more: Document| {
            let mut spec = doc! { "from": "stations", "as": "x" };
            spec.extend(more);
            doc! { "$lookup": spec }
        };
        for (stage, wanted) in [
            (doc! { "$lookup": 1 }, 9),
            (doc! { "$lookup": { "from": "stations", "localField": "a", "foreignField": "b" } }, 9),
            (doc! { "$lookup": { "as": "x", "localField": "a", "foreignField": "b" } }, 9),
            (lookup(doc! {}), 9),
            (lookup(doc! { "localField": "a" }), 9),
            (lookup(doc! { "localField": "a", "foreignField": 1 }), 9),
            (lookup(doc! { "localField": "a", "foreignField": "$b" }), 16410),
            (lookup(doc! { "pipeline": 1 }), 14),
            (lookup(doc! { "pipeline": [], "other": 1 }), 9),
            (lookup(doc! { "pipeline": [], "let": 1 }), 9),
            (lookup(doc! { "pipeline": [], "let": { "X": 1 } }), 9),
            (lookup(doc! { "pipeline": [{ "$nothing": 1 }] }), 40324),
            (lookup(doc! { "pipeline": [{ "$match": { "$expr": "$$unknown" } }] }), 17276),
            (
                lookup(doc! { "let": { "v": 1 }, "pipeline": [{ "$match": { "$expr": "$$v" } }, { "$unionWith": 1 }] }),
                9,
            ),
            (doc! { "$unionWith": 1 }, 9),
            (doc! { "$unionWith": { "coll": 1 } }, 14),
            (doc! { "$unionWith": { "coll": "x", "pipeline": 1 } }, 14),
            (doc! { "$unionWith": { "coll": "x", "other": 1 } }, 40415),
            (doc! { "$unionWith": { "pipeline": [] } }, 9),
            (doc! { "$unionWith": { "coll": "x", "pipeline": [{ "$limit": 0 }] } }, 15958),
        ] {
            assert_eq!(code(db, stage.clone()).await, wanted, "{stage}");
        }
    });
}

#[test]
fn explain_shows_lookups_and_unions_as_written() {
    with_stations(async |db| {
        let lookup = doc! { "from": "stations", "localField": "station", "foreignField": "name", "as": "x" };
        let union = doc! { "coll": "stations", "pipeline": [] };
        let pipeline = list![doc! { "$lookup": lookup.clone() }, doc! { "$unionWith": union.clone() }];
        let command = doc! { "explain": { "aggregate": "weather", "pipeline": pipeline } };
        let found = Explained(db.ok(raw(&command)).await);
        assert_eq!((found.stage("$lookup"), found.stage("$unionWith"), found.returned()), (&lookup, &union, 10));
    });
}

#[test]
fn a_lookup_that_has_run_says_how_it_has_read_the_other_collection() {
    with_stations(async |db| {
        let explained = async |lookup: Document, verbosity: &str| {
            let pipeline = list![doc! { "$lookup": lookup.clone() }, doc! { "$unionWith": "stations" }];
            let command = doc! { "explain": { "aggregate": "weather", "pipeline": pipeline }, "verbosity": verbosity };
            let found = Explained(db.ok(raw(&command)).await);
            let stage = found.stages().into_iter().find(|stage| stage.contains_key("$lookup")).unwrap().clone();
            assert_eq!(stage.get_document("$lookup").unwrap(), &lookup);
            let shown = ["collectionScans", "totalDocsExamined", "totalKeysExamined"];
            let counts = shown.map(|name| stage.get_i64(name).ok());
            (counts, stage.get_array("indexesUsed").ok().cloned())
        };
        let whole = doc! { "from": "stations", "localField": "station", "foreignField": "name", "as": "x" };
        assert_eq!(explained(whole.clone(), "queryPlanner").await, ([None; 3], None));
        let ([scans, examined, entries], used) = explained(whole, "executionStats").await;
        assert_eq!((scans, entries, used), (Some(1), Some(0), Some(vec![])));
        assert!(examined.is_some());
        let nothing = doc! { "from": "none", "localField": "station", "foreignField": "name", "as": "x" };
        assert_eq!(explained(nothing, "executionStats").await, ([Some(0); 3], Some(vec![])));
    });
}

#[test]
fn a_lookup_by_metadata_says_which_index_it_has_used() {
    with_rows(vec![row(0, "a", doc! { "n": 1 }), row(1, "b", doc! { "n": 2 })], async |db| {
        let filter = doc! { "$match": { "station": "a" } };
        let lookup = doc! { "from": "weather", "pipeline": list![filter], "as": "x" };
        let command = doc! { "explain": { "aggregate": "weather", "pipeline": list![doc! { "$lookup": lookup }] }, "verbosity": "executionStats" };
        let found = Explained(db.ok(raw(&command)).await);
        let stage = found.stages().into_iter().find(|stage| stage.contains_key("$lookup")).unwrap().clone();
        assert_eq!(stage.get_i64("collectionScans").unwrap(), 0);
        assert_eq!(stage.get_array("indexesUsed").unwrap(), &vec!["station_1_at_1".into()]);
    });
}

#[test]
fn explain_shows_with_each_lookup_what_that_lookup_has_read() {
    with_rows(vec![row(0, "a", doc! { "n": 1 }), row(1, "b", doc! { "n": 2 })], async |db| {
        let of = |station: &str| list![doc! { "$match": { "station": station } }];
        let own = list![doc! { "$documents": [{ "n": 1 }] }];
        let inner = doc! { "from": "weather", "pipeline": of("a"), "as": "y" };
        let pipeline = list![
            doc! { "$unionWith": "weather" },
            doc! { "$lookup": { "from": "weather", "pipeline": of("a"), "as": "x" } },
            doc! { "$lookup": { "pipeline": own.clone(), "as": "own" } },
            doc! { "$lookup": { "from": "weather", "let": { "n": "$n" }, "pipeline": list![
                doc! { "$match": { "n": { "$gt": 0 } } },
                doc! { "$lookup": inner },
                doc! { "$match": { "$expr": { "$eq": ["$n", "$$n"] } } },
            ], "as": "z" } },
            doc! { "$unionWith": { "pipeline": own } },
        ];
        let command =
            doc! { "explain": { "aggregate": "weather", "pipeline": pipeline }, "verbosity": "executionStats" };
        let found = Explained(db.ok(raw(&command)).await);
        let stages = found.stages();
        let reads = |name: &str| -> Vec<(Option<i64>, Option<usize>)> {
            let of_name = stages.iter().filter(|stage| stage.contains_key(name));
            of_name
                .map(|stage| (stage.get_i64("collectionScans").ok(), stage.get_array("indexesUsed").ok().map(Vec::len)))
                .collect()
        };
        // By an index; nothing, because the documents are its own; all rows of the collection.
        assert_eq!(reads("$lookup"), [(Some(0), Some(1)), (None, None), (Some(1), Some(0))]);
        assert_eq!(reads("$unionWith"), [(None, None); 2]);
    });
}

/// Flights of `a` to `b` to `c` and back, and one to nowhere, over the collection of stations.
fn with_flights(check: impl AsyncFn(&Db)) {
    let flight = |n: i64, from: &str, to: Bson| row(n, from, doc! { "n": n, "to": to });
    let flights = vec![
        flight(0, "a", "b".into()),
        flight(1, "b", list!["c", "d"].into()),
        flight(2, "c", "a".into()),
        flight(3, "d", Bson::Null),
        flight(4, "e", "a".into()),
        row(5, "f", doc! { "n": 5_i64 }),
    ];
    with_rows(flights, check);
}

/// Numbers and depths of the flights reachable from each one.
async fn reached(db: &Db, more: Document) -> Vec<Vec<(i64, i64)>> {
    let mut spec = doc! { "from": "weather", "startWith": "$to", "connectFromField": "to", "connectToField": "station", "as": "then", "depthField": "depth" };
    spec.extend(more);
    let rows = run(db, vec![doc! { "$sort": { "at": 1 } }, doc! { "$graphLookup": spec }]).await;
    let numbers = |row: &Document| {
        let found = row.get_array("then").unwrap().iter().map(|found| found.as_document().unwrap());
        let mut numbers: Vec<_> =
            found.map(|found| (found.get_i64("n").unwrap(), found.get_i64("depth").unwrap())).collect();
        numbers.sort_unstable();
        numbers
    };
    rows.iter().map(numbers).collect()
}

#[test]
fn graph_lookup_lists_each_document_once_with_its_minimum_depth() {
    with_flights(async |db| {
        let all = reached(db, doc! {}).await;
        assert_eq!(all[0], [(0, 2), (1, 0), (2, 1), (3, 1)]);
        assert_eq!(all[1], [(0, 1), (1, 2), (2, 0), (3, 0)]);
        assert_eq!((&all[3][..], &all[5][..]), (&[][..], &[][..]), "null is no station, and what is missing nothing");
        let near = reached(db, doc! { "maxDepth": 1.0 }).await;
        assert_eq!(near[0], [(1, 0), (2, 1), (3, 1)]);
        let first = reached(db, doc! { "maxDepth": 0 }).await;
        assert_eq!(first[4], [(0, 0)]);
        let some = reached(db, doc! { "restrictSearchWithMatch": { "n": { "$ne": 1 } } }).await;
        assert_eq!(some[4], [(0, 0)], "nothing goes through what is left out");
        let fixed = reached(db, doc! { "startWith": { "$literal": ["c", "d", "x"] } }).await;
        assert_eq!(fixed[5], [(0, 1), (1, 2), (2, 0), (3, 0)]);
        let of_null = reached(db, doc! { "startWith": "$to", "connectToField": "to", "maxDepth": 0 }).await;
        assert_eq!(of_null[3], [(3, 0), (5, 0)], "a null meets null and what is missing");
    });
}

#[test]
fn graph_lookup_works_in_nested_pipelines_and_uses_the_collation() {
    with_flights(async |db| {
        let graph = |filter: Document| {
            doc! { "$graphLookup": {
                "from": "weather", "startWith": "$to", "connectFromField": "to", "connectToField": "station", "as": "then",
                "restrictSearchWithMatch": filter,
            } }
        };
        let below = doc! { "$match": { "$expr": { "$lt": ["$n", "$$n"] } } };
        let lookup = doc! { "from": "weather", "let": { "n": "$n" }, "as": "found", "pipeline": [
            below, { "$match": { "n": 0 } }, graph(doc! { "$expr": { "$lte": ["$n", "$$n"] } }),
        ] };
        let sizes = doc! { "$project": { "n": { "$map": { "input": "$found", "in": { "$size": "$$this.then" } } } } };
        let rows = run(db, vec![doc! { "$sort": { "n": 1 } }, doc! { "$lookup": lookup }, sizes]).await;
        assert_eq!(values(&rows, "n")[..4], [list![], list![1], list![3], list![4]].map(Bson::from));
        let upper = doc! { "$set": { "to": "B" } };
        for (collation, n) in [(doc! { "locale": "simple" }, 0), (doc! { "locale": "en", "strength": 2 }, 4)] {
            let pipeline = list![
                doc! { "$limit": 1 },
                upper.clone(),
                graph(doc! {}),
                doc! { "$project": { "n": { "$size": "$then" } } }
            ];
            let command = doc! { "aggregate": "weather", "pipeline": pipeline, "cursor": {}, "collation": collation };
            let mut cursor = db.ok(raw(&command)).await.get_document("cursor").unwrap().clone();
            assert_eq!(take_rows(&mut cursor, "firstBatch")[0].get_i32("n").unwrap(), n);
        }
    });
}

#[test]
fn invalid_graph_lookups_are_refused_with_their_codes() {
    with_flights(async |db| {
        let whole = doc! { "from": "weather", "startWith": "$to", "connectFromField": "to", "connectToField": "station", "as": "x" };
        let wrong = |name: &str, value: Option<Bson>| {
            let mut spec = whole.clone();
            match value {
                Some(value) => spec.insert(name, value),
                None => spec.remove(name),
            };
            doc! { "$graphLookup": spec }
        };
        for (stage, wanted) in [
            (doc! { "$graphLookup": 1 }, 9),
            (wrong("maxDepth", Some("1".into())), 40100),
            (wrong("maxDepth", Some((-1).into())), 40101),
            (wrong("maxDepth", Some(1.5.into())), 40102),
            (wrong("maxDepth", Some(1e30.into())), 40102),
            (wrong("as", Some(1.into())), 40103),
            (wrong("other", Some("x".into())), 40104),
            (wrong("startWith", None), 40105),
            (wrong("from", None), 40105),
            (wrong("connectToField", None), 40105),
            (wrong("connectFromField", Some("$x".into())), 16410),
            (wrong("restrictSearchWithMatch", Some(1.into())), 40185),
            (wrong("restrictSearchWithMatch", Some(doc! { "$nothing": 1 }.into())), 2),
            (wrong("startWith", Some("$$nothing".into())), 17276),
        ] {
            assert_eq!(code(db, stage.clone()).await, wanted, "{stage}");
        }
        let command = doc! { "explain": { "aggregate": "weather", "pipeline": [{ "$graphLookup": whole.clone() }] } };
        let found = Explained(db.ok(raw(&command)).await);
        assert_eq!((found.stage("$graphLookup"), found.returned()), (&whole, 6));
    });
}
