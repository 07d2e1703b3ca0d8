//! `$lookup` and `$unionWith`: what pipelines read of other collections.

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, rawdoc};

use super::{code, list, row, run, values, with_rows};
use crate::support::explained::Explained;
use crate::support::{Db, raw, take_rows};

/// Shows `check` six measurements of three stations, and a second collection with what is known of the stations; both in the journal, then
/// in buckets.
fn with_stations(check: impl AsyncFn(&Db)) {
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

/// The heights of the stations that a `$lookup` finds for each row, upward.
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
fn equal_fields_join_rows_and_missing_ones_count_as_null() {
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
fn each_element_of_an_array_joins_for_itself() {
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
    });
}

#[test]
fn a_pipeline_that_reads_no_variable_is_the_same_for_all_rows_and_may_read_others_itself() {
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
fn rows_of_another_pipeline_come_behind_the_own_ones() {
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
fn a_missing_collection_is_an_empty_one_to_all_stages() {
    with_stations(async |db| {
        let pipeline = list![doc! { "$unionWith": "stations" }, doc! { "$count": "n" }];
        let of_nothing = raw(&doc! { "aggregate": "nowhere", "pipeline": pipeline, "cursor": {} });
        let mut cursor = db.ok(of_nothing).await.get_document("cursor").unwrap().clone();
        assert_eq!(take_rows(&mut cursor, "firstBatch"), [doc! { "n": 4 }]);
    });
}

#[test]
fn strings_join_by_the_collation_of_the_pipeline() {
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
fn lookups_and_unions_that_do_not_parse_are_refused_with_their_codes() {
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
                lookup(
                    doc! { "let": { "v": 1 }, "pipeline": [{ "$match": { "$expr": "$$v" } }, { "$unionWith": "weather" }] },
                ),
                2,
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
fn lookups_and_unions_are_explained_as_they_stand() {
    with_stations(async |db| {
        let lookup = doc! { "from": "stations", "localField": "station", "foreignField": "name", "as": "x" };
        let union = doc! { "coll": "stations", "pipeline": [] };
        let pipeline = list![doc! { "$lookup": lookup.clone() }, doc! { "$unionWith": union.clone() }];
        let command = doc! { "explain": { "aggregate": "weather", "pipeline": pipeline } };
        let found = Explained(db.ok(raw(&command)).await);
        assert_eq!((found.stage("$lookup"), found.stage("$unionWith"), found.returned()), (&lookup, &union, 10));
    });
}
