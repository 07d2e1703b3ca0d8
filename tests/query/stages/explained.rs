//! `explain` of pipelines.

use bson::{Bson, Document, RawDocumentBuf, doc, rawdoc};

use super::{row, with_rows};
use crate::support::Db;
use crate::support::explained::Explained;

pub(super) async fn explain_of(db: &Db, pipeline: Vec<Document>, verbosity: &str) -> Explained {
    let command = doc! { "explain": { "aggregate": "weather", "pipeline": pipeline }, "verbosity": verbosity };
    Explained(db.ok(RawDocumentBuf::try_from(&command).unwrap()).await)
}

/// Six measurements of three stations.
fn six() -> Vec<Document> {
    (0..6).zip(["a", "b", "c", "a", "b", "c"]).map(|(n, station)| row(n, station, doc! { "n": n, "m": 1 })).collect()
}

/// The names of stages, with the number of output rows if it was counted.
fn counted(found: &Explained) -> Vec<(&str, Option<i64>)> {
    found.names().into_iter().zip(found.stages().iter().map(|stage| stage.get_i64("nReturned").ok())).collect()
}

#[test]
fn no_stage_after_an_inhibitor_is_pushed_down() {
    with_rows(six(), async |db| {
        let wall = || doc! { "$_internalInhibitOptimization": {} };
        let pipeline = vec![wall(), doc! { "$match": { "n": { "$gte": 1 } } }, wall(), doc! { "$sort": { "n": 1 } }];
        let found = explain_of(db, pipeline, "executionStats").await;
        assert!(!found.unpack().contains_key("eventFilter"), "{:?}", found.0);
        assert_eq!(found.stages()[1].get_i64("nReturned").unwrap(), 6);
        assert_eq!(found.stage("$match"), &doc! { "n": { "$gte": 1 } });
        let wrong = doc! { "aggregate": "weather", "pipeline": [{ "$_internalInhibitOptimization": { "x": 1 } }], "cursor": {} };
        assert_eq!(db.fails(RawDocumentBuf::try_from(&wrong).unwrap()).await.0, 9);
    });
}

#[test]
fn pushed_down_stages_are_in_the_plan_and_the_others_follow() {
    with_rows(six(), async |db| {
        let pipeline = vec![
            doc! { "$match": { "n": { "$gte": 1 } } },
            doc! { "$group": { "_id": "$station", "sum": { "$sum": "$n" } } },
            doc! { "$match": { "sum": { "$gt": 3 } } },
            doc! { "$sort": { "_id": 1 } },
            doc! { "$limit": 1 },
            doc! { "$addFields": { "x": 1 } },
            doc! { "$unwind": "$sum" },
            doc! { "$replaceWith": { "y": "$sum" } },
        ];
        let found = explain_of(db, pipeline.clone(), "executionStats").await;
        let stages = [
            ("$cursor", found.stages()[0].get_i64("nReturned").ok()),
            ("$_internalUnpackBucket", Some(5)),
            ("$group", Some(3)),
            ("$match", None),
            ("$sort", None),
            ("$addFields", Some(1)),
            ("$unwind", Some(1)),
            ("$project", Some(1)),
        ];
        assert_eq!(counted(&found), stages);
        let names = found.unpack().get_array("include").unwrap();
        assert!(names.contains(&Bson::from("n")) && !names.contains(&Bson::from("m")), "{names:?}");
        assert_eq!(found.unpack().get_document("eventFilter").unwrap(), &doc! { "n": { "$gte": 1 } });
        assert_eq!(found.stage("$group"), &doc! { "_id": "$station", "sum": { "$sum": "$n" } });
        assert_eq!(found.stage("$match"), &doc! { "sum": { "$gt": 3 } });
        assert_eq!(found.stage("$sort"), &doc! { "sortKey": { "_id": 1 }, "limit": 1_i64 });
        assert_eq!(found.stage("$addFields"), &doc! { "x": { "$const": 1 } });
        assert_eq!(found.stage("$project"), &doc! { "_id": false, "y": "$sum" });
        let planned = explain_of(db, pipeline, "queryPlanner").await;
        assert_eq!(planned.names(), found.names());
        assert!(counted(&planned).iter().all(|(_, rows)| rows.is_none()));
    });
}

#[test]
fn stage_aliases_are_shown_as_the_stages_they_stand_for() {
    with_rows(six(), async |db| {
        let found = async |stage: Document| {
            explain_of(db, vec![doc! { "$project": { "n": 1 } }, stage], "executionStats").await
        };
        let counts = found(doc! { "$count": "n" }).await;
        assert_eq!(counts.stage("$group"), &doc! { "_id": null, "n": { "$sum": 1 } });
        assert_eq!(&counted(&counts)[2..], [("$group", Some(1)), ("$project", Some(1))]);
        let by_count = found(doc! { "$sortByCount": "$n" }).await;
        assert_eq!(&counted(&by_count)[2..], [("$group", Some(6)), ("$sort", Some(6))]);
        let filled = found(doc! { "$fill": { "sortBy": { "n": 1 }, "output": { "m": { "method": "locf" } } } }).await;
        let windows = doc! { "output": { "m": { "$locf": "$m" } }, "sortBy": { "n": 1 } };
        assert_eq!(filled.stage("$_internalSetWindowFields"), &windows);
        let range = doc! { "step": 2, "bounds": "full" };
        let densified = found(doc! { "$densify": { "field": "n", "range": range } }).await;
        let behind = ["$sort", "$project", "$_internalDensify"];
        assert_eq!(densified.names()[2..], behind, "the sort needs no field that the projection touches");
        let sides = doc! { "one": [{ "$limit": 1 }], "two": [] };
        let facet = found(doc! { "$facet": sides.clone() }).await;
        assert_eq!((facet.stage("$facet"), facet.returned()), (&sides, 1));
        let cut = found(doc! { "$bucket": { "groupBy": "$n", "boundaries": [0, 3, 9] } }).await;
        assert_eq!(&counted(&cut)[2..], [("$group", Some(2)), ("$sort", Some(2))]);
    });
}

#[test]
fn aggregate_with_explain_only_plans() {
    with_rows(six(), async |db| {
        let group = doc! { "$group": { "_id": "$n" } };
        let planned = explain_of(db, vec![group.clone()], "queryPlanner").await;
        let command = doc! { "aggregate": "weather", "pipeline": [group], "explain": true };
        let itself = Explained(db.ok(RawDocumentBuf::try_from(&command).unwrap()).await);
        assert_eq!(itself.stages(), planned.stages());
        assert!(itself.0.get("cursor").is_none());
        let run = rawdoc! { "aggregate": "weather", "pipeline": [], "explain": false, "cursor": {} };
        assert!(db.ok(run).await.get("cursor").is_some());
        assert_eq!(
            db.fails(rawdoc! { "aggregate": "weather", "pipeline": [], "explain": "yes", "cursor": {} }).await.0,
            14
        );
    });
}

#[test]
fn a_pipeline_that_fails_fails_when_it_is_run_and_not_when_it_is_planned() {
    with_rows(six(), async |db| {
        let fails = vec![doc! { "$unwind": "$n" }, doc! { "$replaceWith": "$n" }];
        assert_eq!(explain_of(db, fails.clone(), "queryPlanner").await.names()[2..], ["$unwind", "$replaceRoot"]);
        let command = doc! { "explain": { "aggregate": "weather", "pipeline": fails } };
        assert_eq!(db.fails(RawDocumentBuf::try_from(&command).unwrap()).await.0, 40228);
        let command = doc! { "explain": { "aggregate": "weather", "pipeline": [{ "$nothing": 1 }] } };
        assert_eq!(db.fails(RawDocumentBuf::try_from(&command).unwrap()).await.0, 40324);
    });
}

#[test]
fn document_sources_and_missing_collections_have_no_bucket_plan() {
    with_rows(six(), async |db| {
        let found =
            explain_of(db, vec![doc! { "$indexStats": {} }, doc! { "$match": { "name": "x" } }], "executionStats")
                .await;
        assert_eq!(found.names(), ["$indexStats", "$match"]);
        let command = rawdoc! { "aggregate": "nowhere", "pipeline": [{ "$group": { "_id": null } }] };
        let nowhere = Explained(db.ok(rawdoc! { "explain": command }).await);
        assert_eq!(nowhere.names(), ["$cursor", "$group"]);
        assert_eq!(nowhere.plan(), &doc! { "stage": "EOF" });
    });
}

#[test]
fn columns_that_no_stage_reads_are_not_decoded() {
    let grouped = || doc! { "$group": { "_id": "$station", "sum": { "$sum": "$x" } } };
    let cases: [(Vec<Document>, Option<&[&str]>); 22] = [
        (vec![doc! { "$addFields": { "x": { "$add": ["$n", 1] } } }, grouped()], Some(&["n", "station"])),
        (vec![doc! { "$project": { "x": "$n", "station": 1 } }, grouped()], Some(&["n", "station"])),
        (vec![doc! { "$project": { "x": 1, "n": 1 } }, grouped()], Some(&["x"])),
        (vec![doc! { "$unset": "n" }, grouped()], Some(&["x", "station"])),
        (vec![doc! { "$unset": "x" }, grouped()], Some(&["station"])),
        (vec![doc! { "$addFields": { "x.y": "$n" } }, grouped()], Some(&["n", "x", "station"])),
        (vec![doc! { "$addFields": { "x": "$$ROOT" } }, grouped()], None),
        (vec![doc! { "$unwind": "$l" }, grouped()], Some(&["l", "x", "station"])),
        (vec![doc! { "$unwind": "$l" }], None),
        (vec![doc! { "$unwind": "$l.k" }, doc! { "$project": { "x": 1 } }], Some(&["_id", "l", "x"])),
        (
            vec![doc! { "$sample": { "size": 3 } }, doc! { "$match": { "n": 1 } }, grouped()],
            Some(&["n", "x", "station"]),
        ),
        (vec![doc! { "$replaceWith": { "x": "$n" } }], Some(&["n"])),
        (vec![doc! { "$bucketAuto": { "groupBy": "$n", "buckets": 2 } }], Some(&["n"])),
        (
            vec![doc! { "$facet": { "a": [{ "$sortByCount": "$n" }], "b": [{ "$unwind": "$l" }, { "$count": "c" }] } }],
            Some(&["l", "n"]),
        ),
        (vec![doc! { "$facet": { "a": [{ "$sortByCount": "$n" }], "b": [{ "$skip": 1 }] } }], None),
        (
            vec![
                doc! { "$setWindowFields": { "partitionBy": "$station", "sortBy": { "at": 1 }, "output": { "x": { "$avg": "$n", "window": { "documents": [-1, 0] } } } } },
                grouped(),
            ],
            Some(&["at", "n", "x", "station"]),
        ),
        (
            vec![
                doc! { "$densify": { "field": "at", "partitionByFields": ["station"], "range": { "step": 1, "unit": "hour", "bounds": "full" } } },
                grouped(),
            ],
            Some(&["at", "x", "station"]),
        ),
        (vec![doc! { "$redact": { "$cond": ["$n", "$$KEEP", "$$DESCEND"] } }, grouped()], Some(&["n", "x", "station"])),
        (vec![doc! { "$redact": { "$cond": ["$$ROOT", "$$KEEP", "$$DESCEND"] } }, grouped()], None),
        (vec![doc! { "$redact": { "$cond": ["$n", "$$PRUNE", "$$KEEP"] } }, grouped()], Some(&["n", "x", "station"])),
        (
            vec![doc! { "$replaceWith": { "$mergeObjects": ["$$ROOT", { "x": "$n" }] } }, grouped()],
            Some(&["n", "x", "station"]),
        ),
        (vec![doc! { "$addFields": { "x": 1 } }, doc! { "$_internalInhibitOptimization": {} }, grouped()], None),
    ];
    with_rows(six(), async |db| {
        for (pipeline, expected) in &cases {
            let found = explain_of(db, pipeline.clone(), "queryPlanner").await;
            let include = found.unpack().get_array("include").ok();
            let include = include.map(|names| names.iter().map(|name| name.as_str().unwrap()).collect::<Vec<_>>());
            assert_eq!(include.as_deref(), *expected, "{pipeline:?}");
        }
    });
}
