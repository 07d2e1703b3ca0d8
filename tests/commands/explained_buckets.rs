//! `explain` by the name of the buckets: the plan of a plain collection of bucket documents.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::memory::MemoryStorage;

use crate::support::{Db, TestEnv, raw};

const RAW: &str = "system.buckets.c";

/// Three buckets, one of them closed.
async fn filled() -> Db {
    let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    for (n, series) in ["a", "b", "c"].into_iter().enumerate() {
        db.insert("c", &[rawdoc! { "t": DateTime::from_millis(n as i64 * 60_000), "m": series, "x": n as i32 }]).await;
    }
    db.ok(rawdoc! { "flush": 1 }).await;
    let close = rawdoc! { "q": { "meta": "c" }, "u": { "$set": { "control.closed": true } } };
    db.ok(rawdoc! { "update": RAW, "updates": [close], "unsafeBucketWrites": true }).await;
    db
}

/// What is said of a command: the planner, and what was executed. It stands at the top, and closed buckets are as others.
async fn explained(db: &Db, command: Document) -> (Document, Document) {
    let reply = db.ok(rawdoc! { "explain": raw(&command), "verbosity": "executionStats" }).await;
    assert!(!reply.contains_key("stages"), "{reply}");
    let of = |name: &str| reply.get_document(name).unwrap().clone();
    let (planner, stats) = (of("queryPlanner"), of("executionStats"));
    assert_eq!(planner.get_str("namespace").unwrap(), "test.system.buckets.c");
    let shown = planner.to_string();
    assert!(!shown.contains("closed") && !shown.contains("Unpack"), "{shown}");
    (planner, stats)
}

/// The stages of the winning plan from the outside in.
fn stages(planner: &Document) -> Vec<String> {
    let mut names = Vec::new();
    let mut next = planner.get_document("winningPlan").ok();
    while let Some(stage) = next {
        names.push(stage.get_str("stage").unwrap().to_owned());
        next = stage.get_document("inputStage").ok();
    }
    names
}

#[test]
fn a_query_of_buckets_is_explained_as_one_of_a_plain_collection() {
    block_on(async {
        let db = filled().await;
        let some = || doc! { "meta": { "$in": ["b", "c"] } };
        for (command, expected, returned) in [
            (doc! { "find": RAW }, vec!["COLLSCAN"], 3),
            (doc! { "find": RAW, "filter": some() }, vec!["COLLSCAN"], 2),
            (doc! { "find": RAW, "limit": 2 }, vec!["LIMIT", "COLLSCAN"], 2),
            (doc! { "find": RAW, "sort": { "meta": -1 }, "limit": 2, "skip": 1 }, vec!["SKIP", "SORT", "COLLSCAN"], 2),
            (
                doc! { "find": RAW, "skip": 2, "projection": { "meta": 1 } },
                vec!["PROJECTION_DEFAULT", "SKIP", "COLLSCAN"],
                1,
            ),
            (doc! { "find": RAW, "hint": "m_1_t_1" }, vec!["FETCH", "IXSCAN"], 3),
            (doc! { "aggregate": RAW, "pipeline": [], "cursor": {} }, vec!["COLLSCAN"], 3),
            (
                doc! { "aggregate": RAW, "pipeline": [{ "$match": some() }, { "$sort": { "meta": 1 } }], "cursor": {} },
                vec!["SORT", "COLLSCAN"],
                2,
            ),
            (doc! { "count": RAW, "query": some() }, vec!["COUNT", "COLLSCAN"], 1),
            (doc! { "distinct": RAW, "key": "meta", "query": some() }, vec!["COLLSCAN"], 2),
        ] {
            let (planner, stats) = explained(&db, command.clone()).await;
            assert_eq!(stages(&planner), expected, "{command}");
            assert_eq!(stats.get_i64("nReturned").unwrap(), returned, "{command}");
            let asked = if command.to_string().contains("$in") {
                some()
            } else {
                doc! {}
            };
            assert_eq!(planner.get_document("parsedQuery").unwrap(), &asked, "{command}");
        }
        let (planner, stats) =
            explained(&db, doc! { "find": RAW, "sort": { "meta": -1 }, "limit": 1, "skip": 1 }).await;
        let scan = doc! { "stage": "COLLSCAN", "direction": "forward" };
        let sort = doc! { "stage": "SORT", "sortPattern": { "meta": -1 }, "limitAmount": 2_i64, "type": "simple", "inputStage": scan };
        let plan = doc! { "stage": "SKIP", "skipAmount": 1_i64, "inputStage": sort };
        assert_eq!(planner.get_document("winningPlan").unwrap(), &plan);
        let mut counts = Vec::new();
        let mut next = stats.get_document("executionStages").ok();
        while let Some(stage) = next {
            counts.push(stage.get_i64("nReturned").unwrap());
            next = stage.get_document("inputStage").ok();
        }
        assert_eq!(counts, [1, 2, 3]);
        let (_, stats) = explained(&db, doc! { "count": RAW, "limit": 2 }).await;
        assert_eq!(stats.get_document("executionStages").unwrap().get_i64("nCounted").unwrap(), 2);
    });
}

#[test]
fn stages_that_a_plain_collection_cannot_take_follow_its_cursor() {
    block_on(async {
        let db = filled().await;
        let pipeline = rawdoc! { "aggregate": RAW, "pipeline": [{ "$match": { "meta": "c" } }, { "$group": { "_id": "$meta" } }], "cursor": {} };
        let reply = db.ok(rawdoc! { "explain": pipeline }).await;
        let names: Vec<String> = reply
            .get_array("stages")
            .unwrap()
            .iter()
            .map(|stage| stage.as_document().unwrap().keys().next().unwrap().clone())
            .collect();
        assert_eq!(names, ["$cursor", "$group"]);
    });
}

#[test]
fn one_bucket_is_looked_at_for_its_id() {
    block_on(async {
        let db = filled().await;
        let ids: Vec<Bson> = db
            .find(rawdoc! { "find": RAW, "sort": { "_id": 1 } })
            .await
            .iter()
            .map(|b| b.get("_id").cloned().unwrap())
            .collect();
        for (filter, examined, found) in [
            (doc! { "_id": ids[1].clone() }, 1, 1),
            (doc! { "_id": { "$in": [ids[1].clone(), ids[2].clone()] } }, 2, 2),
            (doc! { "_id": { "$gte": ids[1].clone() } }, 2, 2),
            (doc! { "_id": { "$gt": ids[0].clone(), "$lt": ids[2].clone() } }, 3, 1),
            (doc! { "$and": [{ "_id": ids[2].clone() }, { "meta": "a" }] }, 1, 0),
            (doc! { "_id": { "$gt": ids[2].clone(), "$lt": ids[0].clone() } }, 1, 0),
            (doc! { "_id": 7 }, 3, 0),
            (doc! { "$or": [{ "_id": ids[0].clone() }, { "meta": "b" }] }, 3, 2),
        ] {
            let (planner, stats) = explained(&db, doc! { "find": RAW, "filter": filter.clone() }).await;
            let counts = ["totalDocsExamined", "nReturned"].map(|name| stats.get_i64(name).unwrap());
            assert_eq!(counts, [examined, found], "{filter}");
            let stage = if examined == 3 && found != 1 { "COLLSCAN" } else { "CLUSTERED_IXSCAN" };
            assert_eq!(stages(&planner), [stage], "{filter}");
            assert_eq!(
                db.find(raw(&doc! { "find": RAW, "filter": filter.clone() })).await.len() as i64,
                found,
                "{filter}"
            );
        }
    });
}

#[test]
fn writes_of_buckets_are_explained_without_being_done() {
    block_on(async {
        let db = filled().await;
        let delete =
            |limit: i32| doc! { "delete": RAW, "deletes": [{ "q": { "meta": { "$gte": "b" } }, "limit": limit }] };
        let update = |multi: bool| doc! { "update": RAW, "updates": [{ "q": { "meta": { "$gte": "b" } }, "u": { "$set": { "meta": "z" } }, "multi": multi }] };
        let query = || doc! { "meta": { "$gte": "b" } };
        for (command, expected, counted) in [
            (delete(0), vec!["DELETE", "COLLSCAN"], ("nWouldDelete", 2)),
            (delete(1), vec!["DELETE", "COLLSCAN"], ("nWouldDelete", 1)),
            (update(true), vec!["UPDATE", "COLLSCAN"], ("nWouldModify", 2)),
            (update(false), vec!["UPDATE", "COLLSCAN"], ("nWouldModify", 1)),
            (
                doc! { "findAndModify": RAW, "query": query(), "remove": true },
                vec!["DELETE", "COLLSCAN"],
                ("nWouldDelete", 1),
            ),
            (
                doc! { "findAndModify": RAW, "query": query(), "update": { "$set": { "meta": "z" } }, "sort": { "meta": 1 } },
                vec!["UPDATE", "SORT", "COLLSCAN"],
                ("nWouldModify", 1),
            ),
            (
                doc! { "findAndModify": RAW, "query": query(), "remove": true, "fields": { "meta": 1 } },
                vec!["PROJECTION_DEFAULT", "DELETE", "COLLSCAN"],
                ("nWouldDelete", 1),
            ),
        ] {
            let (planner, stats) = explained(&db, command.clone()).await;
            assert_eq!(stages(&planner), expected, "{command}");
            assert_eq!(planner.get_document("parsedQuery").unwrap(), &query());
            let mut stage = stats.get_document("executionStages").unwrap();
            if expected[0] == "PROJECTION_DEFAULT" {
                stage = stage.get_document("inputStage").unwrap();
            }
            assert_eq!(stage.get_i64(counted.0).unwrap(), counted.1, "{command}");
        }
        assert_eq!(db.ok(rawdoc! { "count": "c" }).await.get_i32("n").unwrap(), 3);
        assert_eq!(db.find(rawdoc! { "find": RAW, "filter": { "meta": "z" } }).await.len(), 0);
    });
}

#[test]
fn what_is_asked_of_buckets_is_shown_as_the_parsed_query() {
    block_on(async {
        let db = filled().await;
        let planner = async |command: Document| {
            let reply = db.ok(rawdoc! { "explain": raw(&command), "verbosity": "queryPlanner" }).await;
            let top = reply.get_document("queryPlanner").cloned();
            top.unwrap_or_else(|_| {
                let first = reply.get_array("stages").unwrap()[0].as_document().unwrap().clone();
                first.get_document("$cursor").unwrap().get_document("queryPlanner").unwrap().clone()
            })
        };
        for command in [
            doc! { "find": "c", "filter": { "m": "a", "x": { "$gt": 1 } } },
            doc! { "count": "c", "query": { "x": 1 } },
            doc! { "delete": "c", "deletes": [{ "q": { "m": "a" }, "limit": 0 }] },
            doc! { "update": "c", "updates": [{ "q": { "m": "a" }, "u": { "$set": { "m": 1 } }, "multi": true }] },
        ] {
            let planner = planner(command.clone()).await;
            let plan = planner.get_document("winningPlan").unwrap();
            let access = plan.get_document("inputStage").unwrap_or(plan);
            let filter = plan.get_document("filter").or(access.get_document("filter")).unwrap();
            assert_eq!(planner.get_document("parsedQuery").unwrap(), filter, "{command}");
        }
        for command in [doc! { "find": "c" }, doc! { "find": "none" }] {
            assert_eq!(planner(command).await.get_document("parsedQuery").unwrap(), &doc! {});
        }
    });
}
