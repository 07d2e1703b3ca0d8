//! Live queries: every result equals that of a fresh query, and most are made of new rows alone.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use crate::support::{Db, TestEnv, multiset, raw, take_rows};

const MINUTE_MS: i64 = 60_000;

/// A live query, and its last result.
struct Live {
    db: Db,
    id: i32,
    query: Document,
    mode: String,
    rows: Vec<Document>,
}

impl Live {
    async fn open(db: &Db, query: Document) -> Live {
        let reply = db.ok(rawdoc! { "liveQuery": 1, "query": raw(&query), "$db": "test" }).await;
        let (id, mode) = (reply.get_i32("id").unwrap(), reply.get_str("mode").unwrap().to_owned());
        assert!(reply.get_str("why").unwrap().len() > 10);
        Live { db: db.clone(), id, query, mode, rows: Vec::new() }
    }

    /// Opens a live query, and reads its first result.
    async fn begun(db: &Db, query: Document) -> Live {
        let mut live = Live::open(db, query).await;
        assert_eq!(live.refresh().await, "fresh");
        live
    }

    /// Brings it up to date; says how.
    async fn refresh(&mut self) -> String {
        let mut reply = self.db.ok(rawdoc! { "liveRefresh": self.id, "$db": "test" }).await;
        let live = reply.get_document("live").unwrap().clone();
        let (changed, how) = (live.get_bool("changed").unwrap(), live.get_str("how").unwrap().to_owned());
        assert_eq!(changed, how != "nothing");
        let cursor = reply.get_document_mut("cursor").unwrap();
        let rows = all_batches(&self.db, cursor).await;
        match changed {
            true => self.rows = rows,
            false => assert_eq!((rows.len(), cursor.get_i64("id").unwrap()), (0, 0)),
        }
        self.check().await;
        how
    }

    /// The last result must equal that of a fresh query.
    async fn check(&self) {
        let mut reply = self.db.ok(raw(&self.query)).await;
        let fresh = all_batches(&self.db, reply.get_document_mut("cursor").unwrap()).await;
        let (known, fresh) = (rounded(&self.rows), rounded(&fresh));
        if is_ordered(&self.query) {
            assert_eq!(known, fresh, "{}", self.query);
        }
        assert_eq!(multiset(&known), multiset(&fresh), "{}", self.query);
    }
}

/// True if the query defines the order of its result.
fn is_ordered(query: &Document) -> bool {
    let Ok(pipeline) = query.get_array("pipeline") else { return query.contains_key("sort") };
    let has = |stage: &Bson, name: &str| stage.as_document().unwrap().contains_key(name);
    let sort = pipeline.iter().rposition(|stage| has(stage, "$sort"));
    sort.is_some() && pipeline.iter().rposition(|stage| has(stage, "$group")) < sort
}

/// Doubles to twelve digits: the order in which they were added shows in the last ones.
fn rounded(rows: &[Document]) -> Vec<Document> {
    let round = |value: &mut Bson| {
        if let Bson::Double(x) = value {
            *value = Bson::String(format!("{x:.11e}"));
        }
    };
    let mut rows = rows.to_vec();
    rows.iter_mut().for_each(|row| row.iter_mut().for_each(|(_, value)| round(value)));
    rows
}

async fn all_batches(db: &Db, cursor: &mut Document) -> Vec<Document> {
    let mut rows = take_rows(cursor, "firstBatch");
    let ns = cursor.get_str("ns").unwrap().strip_prefix("test.").unwrap().to_owned();
    let mut id = cursor.get_i64("id").unwrap();
    while id != 0 {
        let mut reply = db.ok(rawdoc! { "getMore": id, "collection": ns.as_str(), "batchSize": 5 }).await;
        let cursor = reply.get_document_mut("cursor").unwrap();
        rows.extend(take_rows(cursor, "nextBatch"));
        id = cursor.get_i64("id").unwrap();
    }
    rows
}

fn find(filter: Document) -> Document {
    doc! { "find": "c", "filter": filter }
}

fn aggregate(pipeline: Vec<Document>) -> Document {
    doc! { "aggregate": "c", "pipeline": pipeline, "cursor": {} }
}

/// The minute, the series, and a number.
fn row(minute: i64, series: &str, n: i64) -> RawDocumentBuf {
    rawdoc! { "t": DateTime::from_millis(minute * MINUTE_MS), "m": { "id": series }, "n": n, "x": n as f64 / 4.0 }
}

async fn add(db: &Db, rows: &[RawDocumentBuf]) {
    let reply = db.insert("c", rows).await;
    assert_eq!(reply.get_i32("n").unwrap() as usize, rows.len(), "{reply}");
}

async fn create(db: &Db) {
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m", "granularity": "minutes" } })
        .await;
}

/// Contexts on one storage, with some rows of two series.
async fn contexts<const N: usize>() -> [Db; N] {
    let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
    let dbs = std::array::from_fn(|n| Db::open(Rc::clone(&storage), TestEnv::new(n as u64 + 1)));
    create(&dbs[0]).await;
    add(&dbs[0], &first_rows()).await;
    dbs
}

fn first_rows() -> [RawDocumentBuf; 4] {
    [row(0, "a", 1), row(1, "b", 2), row(2, "a", 3), row(3, "b", 4)]
}

/// Queries of every kind that take new rows.
fn following() -> Vec<Document> {
    let hourly = doc! { "_id": { "s": "$m.id", "at": { "$dateTrunc": { "date": "$t", "unit": "hour" } } },
    "n": { "$sum": "$n" }, "mean": { "$avg": "$x" }, "min": { "$min": "$x" }, "max": { "$max": "$n" }, "rows": { "$count": {} } };
    let mut limited = find(doc! { "m.id": "a" });
    limited.extend(doc! { "sort": { "t": -1, "n": 1 }, "limit": 3, "skip": 1, "projection": { "n": 1, "_id": 0 } });
    let mut all = find(doc! {});
    all.extend(doc! { "sort": { "n": 1 }, "batchSize": 2 });
    let mut computed = find(doc! { "n": { "$gt": 2 } });
    computed.extend(doc! { "projection": { "y": { "$add": ["$n", "$x"] }, "m.id": 1 } });
    vec![
        find(doc! { "m.id": "b" }),
        limited,
        all,
        computed,
        aggregate(vec![doc! { "$match": { "n": { "$gt": 1 } } }, doc! { "$group": hourly.clone() }]),
        aggregate(vec![
            doc! { "$group": hourly },
            doc! { "$sort": { "_id": -1 } },
            doc! { "$limit": 2 },
            doc! { "$project": { "n": 1 } },
        ]),
        aggregate(vec![
            doc! { "$sort": { "t": 1 } },
            doc! { "$group": { "_id": "$m.id", "first": { "$first": "$n" }, "last": { "$last": "$x" } } },
        ]),
        aggregate(vec![
            doc! { "$group": { "_id": "$m", "top": { "$top": { "sortBy": { "t": -1 }, "output": "$n" } } } },
        ]),
        aggregate(vec![
            doc! { "$group": { "_id": null, "b": { "$bottomN": { "n": 2, "sortBy": { "n": 1 }, "output": "$n" } }, "d": { "$stdDevPop": "$n" } } },
        ]),
        aggregate(vec![
            doc! { "$sort": { "t": -1, "n": 1 } },
            doc! { "$limit": 3 },
            doc! { "$group": { "_id": null, "n": { "$sum": "$n" } } },
        ]),
        aggregate(vec![doc! { "$count": "rows" }]),
    ]
}

async fn refresh_all(all: &mut [Live]) -> Vec<String> {
    let mut how = Vec::new();
    for live in all {
        how.push(live.refresh().await);
    }
    how
}

async fn begun_all(db: &Db, queries: Vec<Document>) -> Vec<Live> {
    let mut all = Vec::new();
    for query in queries {
        all.push(Live::begun(db, query).await);
        let live = all.last().unwrap();
        assert_eq!(live.mode, "newRows", "{}", live.query);
    }
    all
}

#[test]
fn new_rows_are_added_to_the_results_of_finds_and_groups() {
    block_on(async {
        let [db] = contexts().await;
        let mut all = begun_all(&db, following()).await;
        assert!(refresh_all(&mut all).await.iter().all(|how| how == "nothing"));
        for round in 0..6 {
            // Later ones, late ones, and several series at once.
            let minute = if round % 2 == 0 { 10 * round } else { -10 * round };
            let new: Vec<_> =
                (0..3 + round).map(|n| row(minute + n, ["a", "b", "c"][n as usize % 3], 10 * round + n)).collect();
            add(&db, &new).await;
            let how = refresh_all(&mut all).await;
            assert!(how.iter().all(|how| how != "fresh"), "{how:?}");
            assert_eq!(how[0], "newRows");
            if round == 3 {
                db.ok(rawdoc! { "flush": 1 }).await;
                assert!(refresh_all(&mut all).await.iter().all(|how| how == "nothing"));
            }
        }
    });
}

#[test]
fn rows_that_do_not_match_change_nothing() {
    block_on(async {
        let [db] = contexts().await;
        let queries = vec![
            find(doc! { "m.id": "a" }),
            find(doc! { "t": { "$lt": DateTime::from_millis(9 * MINUTE_MS) } }),
            aggregate(vec![
                doc! { "$match": { "n": { "$lt": 50 } } },
                doc! { "$group": { "_id": null, "n": { "$sum": 1 } } },
            ]),
            // These run again if a row matches.
            aggregate(vec![
                doc! { "$match": { "m.id": "a" } },
                doc! { "$group": { "_id": null, "n": { "$push": "$n" } } },
            ]),
            aggregate(vec![doc! { "$match": { "m.id": "a" } }, doc! { "$unwind": "$n" }]),
        ];
        let mut all = Vec::new();
        for query in queries {
            all.push(Live::begun(&db, query).await);
        }
        add(&db, &[row(20, "b", 99), row(21, "b", 98)]).await;
        assert_eq!(refresh_all(&mut all).await, ["nothing"; 5]);
        add(&db, &[row(5, "a", 6)]).await;
        assert_eq!(refresh_all(&mut all).await, ["newRows", "newRows", "newRows", "fresh", "fresh"]);
    });
}

#[test]
fn a_row_that_comes_behind_the_limit_changes_nothing() {
    block_on(async {
        let [db] = contexts().await;
        let mut query = find(doc! {});
        query.extend(doc! { "sort": { "t": -1 }, "limit": 2 });
        let mut live = Live::begun(&db, query).await;
        add(&db, &[row(9, "a", 9)]).await;
        assert_eq!(live.refresh().await, "newRows");
        add(&db, &[row(1, "a", 9)]).await;
        assert_eq!(live.refresh().await, "nothing");
    });
}

#[test]
fn a_fold_of_rows_that_were_seen_changes_nothing_whoever_folds() {
    block_on(async {
        let [reader, writer, folder] = contexts().await;
        let mut all = begun_all(&reader, following()).await;
        for round in 0..4 {
            add(&writer, &[row(10 + round, "a", 10 + round), row(12 + round, "b", 30 + round)]).await;
            add(&reader, &[row(11 + round, "a", 20 + round)]).await;
            assert!(refresh_all(&mut all).await.iter().all(|how| how != "fresh"));
            let by = [&reader, &writer, &folder][round as usize % 3];
            by.ok(rawdoc! { "foldJournals": 1 }).await;
            by.ok(rawdoc! { "flush": 1 }).await;
            assert!(refresh_all(&mut all).await.iter().all(|how| how == "nothing"), "round {round}");
        }
    });
}

#[test]
fn rows_of_this_context_that_were_folded_before_they_were_seen_are_new_rows() {
    block_on(async {
        let [db] = contexts().await;
        let mut all = begun_all(&db, following()).await;
        // Whether the first result was made of one moment shows in the next refresh.
        refresh_all(&mut all).await;
        add(&db, &[row(30, "a", 30), row(31, "b", 31)]).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        add(&db, &[row(32, "a", 32)]).await;
        let how = refresh_all(&mut all).await;
        assert!(how.iter().all(|how| how != "fresh") && how[0] == "newRows", "{how:?}");
    });
}

#[test]
fn rows_of_others_that_were_folded_before_they_were_seen_are_found_by_a_fresh_query() {
    block_on(async {
        let [reader, writer] = contexts().await;
        let mut all = begun_all(&reader, following()).await;
        add(&writer, &[row(30, "a", 30), row(31, "b", 31)]).await;
        writer.ok(rawdoc! { "flush": 1 }).await;
        assert!(refresh_all(&mut all).await.iter().all(|how| how == "fresh"));
        add(&writer, &[row(40, "a", 40), row(41, "b", 41)]).await;
        assert_eq!(all[0].refresh().await, "newRows");
    });
}

#[test]
fn whatever_is_no_new_row_makes_the_query_run_again() {
    block_on(async {
        let [reader, writer] = contexts().await;
        for db in [&reader, &writer] {
            let others = doc! { "create": "d", "timeseries": { "timeField": "t", "metaField": "m" } };
            db.command(raw(&others)).await;
            let statements = [
                doc! { "delete": "c", "deletes": [{ "q": { "n": 3 }, "limit": 1 }] },
                doc! { "delete": "c", "deletes": [{ "q": { "m.id": "b" }, "limit": 0 }] },
                doc! { "update": "c", "updates": [{ "q": {}, "u": { "$set": { "m.id": "b" } }, "multi": true }] },
                doc! { "collMod": "c", "timeseries": { "granularity": "hours" } },
                doc! { "createIndexes": "c", "indexes": [{ "key": { "n": 1 }, "name": "n" }] },
                doc! { "collMod": "c", "expireAfterSeconds": 1_800_000_000 - 600 },
                doc! { "expire": 1 },
                doc! { "aggregate": "c", "pipeline": [{ "$set": { "n": 7 } }, { "$out": { "db": "test", "coll": "c", "timeseries": { "timeField": "t", "metaField": "m", "granularity": "hours" } } }], "cursor": {} },
                doc! { "drop": "c" },
            ];
            let mut all = begun_all(&reader, following()).await;
            for (statement, n) in statements.into_iter().zip((50..).step_by(2)) {
                if statement.contains_key("expire") {
                    add(&reader, &[row(-200_000, "a", 5)]).await;
                    refresh_all(&mut all).await;
                }
                let reply = db.command(raw(&statement)).await;
                assert_eq!(reply.get_f64("ok").ok(), Some(1.0), "{statement}: {reply}");
                let how = refresh_all(&mut all).await;
                assert!(how.iter().all(|how| how == "fresh"), "{statement}: {how:?}");
                assert!(refresh_all(&mut all).await.iter().all(|how| how == "nothing"), "{statement}");
                if !statement.contains_key("drop") {
                    add(&writer, &[row(n, "a", n), row(n + 1, "b", n + 1)]).await;
                    assert!(refresh_all(&mut all).await.iter().all(|how| how != "fresh"), "{statement}");
                }
            }
            create(db).await;
            add(db, &first_rows()).await;
            assert!(refresh_all(&mut all).await.iter().all(|how| how == "fresh"));
        }
    });
}

#[test]
fn a_bucket_that_is_inserted_makes_the_query_run_again() {
    block_on(async {
        let [db] = contexts().await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let buckets = db.find(rawdoc! { "find": "system.buckets.c" }).await;
        db.ok(rawdoc! { "drop": "c" }).await;
        create(&db).await;
        let mut live = Live::begun(&db, find(doc! {})).await;
        let buckets: Vec<_> = buckets.iter().map(raw).collect();
        let list: bson::RawArrayBuf = buckets.into_iter().collect();
        let insert = rawdoc! { "insert": "system.buckets.c", "documents": list, "unsafeBucketWrites": true };
        let reply = db.command(insert).await;
        assert_eq!(reply.get_i32("n").ok(), Some(2), "{reply}");
        assert_eq!((live.refresh().await.as_str(), live.rows.len()), ("fresh", 4));
    });
}

#[test]
fn what_cannot_take_new_rows_says_why_and_runs_again() {
    block_on(async {
        let [db] = contexts().await;
        let now = doc! { "$expr": { "$lt": ["$t", "$$NOW"] } };
        let always = vec![
            find(now),
            aggregate(vec![doc! { "$lookup": { "from": "c", "pipeline": [{ "$count": "n" }], "as": "all" } }]),
            aggregate(vec![doc! { "$unionWith": "c" }]),
            aggregate(vec![doc! { "$match": { "$expr": { "$lt": [{ "$rand": {} }, 2.0] } } }]),
            aggregate(vec![doc! { "$collStats": { "count": {} } }, doc! { "$project": { "count": 1 } }]),
            aggregate(vec![doc! { "$sample": { "size": 100 } }]),
            find(doc! { "$sampleRate": 1.0 }),
        ];
        let named_alike = doc! { "$group": { "_id": "$random", "mean": { "$avg": "$sample" } } };
        assert_eq!(Live::open(&db, aggregate(vec![named_alike])).await.mode, "newRows");
        for query in always {
            let mut live = Live::begun(&db, query).await;
            assert_eq!((&*live.mode.clone(), &*live.refresh().await), ("fresh", "fresh"));
        }
        let window = doc! { "partitionBy": "$m", "sortBy": { "t": 1 }, "output": { "s": { "$sum": "$n", "window": { "documents": [-1, 0] } } } };
        let mut hinted = find(doc! {});
        hinted.insert("hint", doc! { "m": 1, "t": 1 });
        let changing = vec![
            aggregate(vec![doc! { "$facet": { "a": [{ "$count": "n" }] } }]),
            aggregate(vec![doc! { "$setWindowFields": window }]),
            aggregate(vec![doc! { "$group": { "_id": "$m.id", "f": { "$first": "$n" } } }]),
            aggregate(vec![doc! { "$group": { "_id": "$m.id", "f": { "$addToSet": "$n" } } }]),
            aggregate(vec![
                doc! { "$sort": { "n": 1 } },
                doc! { "$group": { "_id": "$m.id", "f": { "$last": "$n" } } },
            ]),
            hinted,
            doc! { "find": "system.buckets.c" },
        ];
        for (at, query) in changing.into_iter().enumerate() {
            let mut live = Live::begun(&db, query).await;
            assert_eq!((&*live.mode.clone(), &*live.refresh().await), ("fresh", "nothing"));
            add(&db, &[row(60 + at as i64, "a", 60)]).await;
            assert_eq!(live.refresh().await, "fresh", "{}", live.query);
        }
    });
}

#[test]
fn bucket_documents_are_read_again_after_a_fold() {
    block_on(async {
        let [db] = contexts().await;
        let mut live = Live::begun(&db, doc! { "find": "system.buckets.c" }).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        assert_eq!(live.refresh().await, "fresh");
        assert_eq!(live.refresh().await, "nothing");
    });
}

#[test]
fn in_a_collection_with_dedupe_every_new_row_makes_the_query_run_again() {
    block_on(async {
        let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
        let shape = rawdoc! { "timeField": "t", "metaField": "m" };
        db.ok(rawdoc! { "create": "c", "timeseries": shape, "dedupe": { "keep": "last" } }).await;
        add(&db, &[row(0, "a", 1), row(1, "a", 2)]).await;
        let mut live = Live::begun(&db, find(doc! { "n": { "$lt": 10 } })).await;
        assert_eq!((&*live.mode.clone(), &*live.refresh().await), ("fresh", "nothing"));
        // It does not match, and replaces a row that does.
        add(&db, &[row(0, "a", 50)]).await;
        assert_eq!((live.refresh().await.as_str(), live.rows.len()), ("fresh", 1));
    });
}

#[test]
fn turning_dedupe_on_ends_the_taking_of_new_rows() {
    block_on(async {
        let [db] = contexts().await;
        let mut live = Live::begun(&db, find(doc! { "n": { "$lt": 10 } })).await;
        db.ok(rawdoc! { "collMod": "c", "dedupe": { "keep": "last" } }).await;
        live.refresh().await;
        add(&db, &[row(0, "a", 50)]).await;
        assert_eq!((live.refresh().await.as_str(), live.rows.len()), ("fresh", 3));
    });
}

#[test]
fn a_live_query_may_begin_before_its_collection() {
    block_on(async {
        let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
        let mut live = Live::begun(&db, find(doc! { "m.id": "a" })).await;
        assert_eq!((&*live.mode.clone(), &*live.refresh().await), ("fresh", "nothing"));
        create(&db).await;
        assert_eq!(live.refresh().await, "fresh");
        add(&db, &[row(0, "a", 1)]).await;
        assert_eq!((live.refresh().await.as_str(), live.rows.len()), ("newRows", 1));
    });
}

#[test]
fn an_expression_that_fails_on_a_new_row_fails_as_in_a_fresh_query() {
    block_on(async {
        let [db] = contexts().await;
        let group = doc! { "$group": { "_id": null, "s": { "$sum": { "$divide": [12, "$n"] } } } };
        let mut live = Live::begun(&db, aggregate(vec![group])).await;
        add(&db, &[row(1, "a", 0)]).await;
        let fails = db.fails(raw(&live.query)).await;
        assert_eq!(db.fails(rawdoc! { "liveRefresh": live.id }).await, fails);
        assert_eq!(db.fails(rawdoc! { "liveRefresh": live.id }).await, fails);
        db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": { "n": 0 }, "limit": 0 }] }).await;
        assert_eq!(live.refresh().await, "fresh");
    });
}

#[test]
fn refreshes_at_once_wait_for_each_other() {
    block_on(async {
        let [db] = contexts().await;
        let live = Live::begun(&db, find(doc! {})).await;
        add(&db, &[row(9, "a", 9)]).await;
        let refresh = || db.ok(rawdoc! { "liveRefresh": live.id });
        let (first, second) = futures::future::join(refresh(), refresh()).await;
        let how = |reply: &Document| reply.get_document("live").unwrap().get_str("how").unwrap().to_owned();
        assert_eq!([how(&first), how(&second)], ["newRows", "nothing"]);
    });
}

#[test]
fn a_live_query_is_refused_as_its_command_is() {
    block_on(async {
        let [db] = contexts().await;
        let wrong = [
            doc! { "find": "c", "filter": { "$nonsense": 1 } },
            doc! { "find": "c", "sort": 7 },
            doc! { "find": "c", "unknown": 7 },
            doc! { "find": 3 },
            doc! { "aggregate": "c", "pipeline": [{ "$nonsense": 1 }], "cursor": {} },
            doc! { "aggregate": "c", "pipeline": [] },
            doc! { "aggregate": "c", "pipeline": [{ "$group": { "n": 1 } }], "cursor": {} },
        ];
        for query in wrong {
            let code = db.fails(raw(&query)).await;
            assert_eq!(db.fails(rawdoc! { "liveQuery": 1, "query": raw(&query) }).await, code, "{query}");
        }
        let bad = |query: Document| db.fails(rawdoc! { "liveQuery": 1, "query": raw(&query) });
        assert_eq!(bad(doc! { "count": "c" }).await.0, 2);
        let out = doc! { "$out": { "db": "test", "coll": "d" } };
        assert_eq!(bad(aggregate(vec![out])).await.0, 2);
        assert_eq!(db.fails(rawdoc! { "liveQuery": 1 }).await.0, 40414);
        assert_eq!(db.fails(rawdoc! { "liveQuery": 1, "query": 3 }).await.0, 14);
        assert_eq!(db.fails(rawdoc! { "liveRefresh": "x" }).await.0, 14);
    });
}

#[test]
fn a_closed_live_query_is_unknown() {
    block_on(async {
        let [db] = contexts().await;
        let live = Live::begun(&db, find(doc! {})).await;
        assert_eq!(db.fails(rawdoc! { "liveRefresh": live.id + 1 }).await, (43, "CursorNotFound".to_owned()));
        db.ok(rawdoc! { "liveClose": live.id }).await;
        assert_eq!(db.fails(rawdoc! { "liveRefresh": live.id }).await.0, 43);
        assert_eq!(db.fails(rawdoc! { "liveClose": live.id }).await.0, 43);
    });
}

#[test]
fn the_number_of_live_queries_is_limited() {
    block_on(async {
        let [db] = contexts().await;
        let mut last = Bson::Null;
        for _ in 0..1000 {
            last = db.ok(rawdoc! { "liveQuery": 1, "query": { "find": "c" } }).await.remove("id").unwrap();
        }
        assert_eq!(db.fails(rawdoc! { "liveQuery": 1, "query": { "find": "c" } }).await.0, 146);
        db.ok(raw(&doc! { "liveClose": last })).await;
        db.ok(rawdoc! { "liveQuery": 1, "query": { "find": "c" } }).await;
    });
}

#[test]
fn a_result_that_is_too_large_to_keep_is_read_again() {
    block_on(async {
        let [db] = contexts().await;
        let text = "x".repeat(1 << 20);
        for n in 0..18 {
            add(&db, &[rawdoc! { "t": DateTime::from_millis(n * MINUTE_MS), "m": "large", "text": text.as_str() }])
                .await;
        }
        let mut live = Live::begun(&db, find(doc! { "m": "large" })).await;
        assert_eq!(live.mode, "newRows");
        add(&db, &[row(60, "a", 60)]).await;
        assert_eq!(live.refresh().await, "nothing");
        add(&db, &[rawdoc! { "t": DateTime::from_millis(0), "m": "large" }]).await;
        assert_eq!((live.refresh().await.as_str(), live.rows.len()), ("fresh", 19));
    });
}
