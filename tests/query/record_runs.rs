//! Rows that only journals have: where there are few in each bucket, they are taken with their records, in every query.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bson::{DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use futures::future::join;
use timepail::storage::memory::MemoryStorage;

use crate::support::ending::Ending;
use crate::support::explained::explain;
use crate::support::pipelines::run_in;
use crate::support::{ALWAYS_MS, Db, Random, TestEnv, raw};

const SERIES: i32 = 400;
const COMMITS: i32 = 6;
const WRITES: usize = 16;

async fn created(db: &Db) {
    db.ok(rawdoc! { "create": "weather", "timeseries": { "timeField": "at", "metaField": "m" } }).await;
}

/// A row whose number no other row has.
fn row(series: i32, n: i32) -> RawDocumentBuf {
    let at = DateTime::from_millis(i64::from(n % 50) * 120_000);
    let mut row = doc! { "at": at, "m": { "id": series, "odd": series % 2 == 1 }, "n": n };
    if series % 3 > 0 {
        row.insert("v", f64::from(n % 11));
    }
    row.insert("t", if n % 4 == 0 { "four" } else { "other" });
    raw(&row)
}

/// A commit of a row of each series, the numbers of which begin at `first`.
async fn add(db: &Db, first: i32) {
    let rows: Vec<_> = (0..SERIES).map(|series| row(series, first + series)).collect();
    db.insert("weather", &rows).await;
}

/// Queries of each kind that can take the rows of many buckets at once. Each tells the order of its rows.
fn pipelines() -> Vec<Vec<Document>> {
    let in_order = doc! { "$sort": { "_id": 1 } };
    let by_n = doc! { "$sort": { "n": 1 } };
    let count = |id: &str| doc! { "$group": { "_id": id, "rows": { "$sum": 1 }, "v": { "$sum": "$v" } } };
    let shown = doc! { "$project": { "_id": 0, "n": 1, "v": 1, "m": 1 } };
    let half = doc! { "$match": { "at": { "$gte": DateTime::from_millis(1_300_000), "$lt": DateTime::from_millis(4_000_000) } } };
    let window = doc! { "partitionBy": "$m", "sortBy": { "at": 1, "n": 1 }, "output": { "sum": { "$sum": "$n", "window": { "documents": ["unbounded", "current"] } } } };
    let product = doc! { "$expr": { "$gt": [{ "$multiply": ["$v", "$n"] }, 3000] } };
    vec![
        vec![count("$t"), in_order.clone()],
        vec![count("$m.odd"), in_order.clone()],
        vec![doc! { "$group": { "_id": null, "low": { "$min": "$v" }, "high": { "$max": "$at" } } }],
        vec![doc! { "$sort": { "v": -1, "n": 1 } }, doc! { "$limit": 10 }, shown.clone()],
        vec![doc! { "$match": { "v": { "$lt": 4 }, "m.odd": true } }, by_n.clone(), shown.clone()],
        vec![doc! { "$match": { "m.id": { "$in": [3, 44, 170] } } }, by_n.clone(), shown.clone()],
        vec![half.clone(), count("$m.odd"), in_order.clone()],
        vec![half, doc! { "$sort": { "at": 1, "n": 1 } }, shown.clone()],
        vec![doc! { "$match": &product }, by_n.clone(), shown.clone()],
        vec![doc! { "$match": product }, doc! { "$unset": "_id" }, by_n.clone()],
        vec![doc! { "$setWindowFields": &window }, by_n.clone(), doc! { "$project": { "_id": 0, "n": 1, "sum": 1 } }],
        vec![doc! { "$sort": { "m.id": 1, "n": 1 } }, shown],
        vec![doc! { "$unset": "_id" }, by_n.clone()],
        vec![doc! { "$match": { "v": { "$lt": 4 }, "m.odd": true } }, doc! { "$unset": "_id" }, by_n.clone()],
        vec![doc! { "$unset": "_id" }, doc! { "$sort": { "v": -1, "n": 1 } }, doc! { "$limit": 10 }],
        vec![doc! { "$setWindowFields": window }, by_n, doc! { "$unset": "_id" }],
        vec![doc! { "$match": { "t": "four" } }, doc! { "$count": "rows" }],
        vec![
            doc! { "$match": { "m.id": { "$lt": 4 } } },
            doc! { "$lookup": { "from": "weather", "localField": "n", "foreignField": "n", "as": "same" } },
            doc! { "$group": { "_id": "$m.id", "same": { "$sum": { "$size": "$same" } } } },
            in_order,
        ],
    ]
}

/// Commands that return no rows, and where their answer is.
fn commands() -> Vec<RawDocumentBuf> {
    vec![
        rawdoc! { "count": "weather", "query": {} },
        rawdoc! { "count": "weather", "query": { "v": { "$gt": 2 }, "m.odd": false } },
        rawdoc! { "distinct": "weather", "key": "v", "query": { "t": "four" } },
        rawdoc! { "distinct": "weather", "key": "m.id", "query": { "v": 2 } },
    ]
}

async fn answers(db: &Db) -> Vec<String> {
    let mut told = Vec::new();
    for pipeline in pipelines() {
        told.push(format!("{pipeline:?}: {:?}", run_in(db, pipeline.clone(), 10_000).await));
    }
    for command in commands() {
        let reply = db.ok(command.clone()).await;
        let mut values: Vec<String> =
            reply.get_array("values").into_iter().flatten().map(|value| format!("{value:?}")).collect();
        values.sort();
        told.push(format!("{command:?}: {:?} {values:?}", reply.get("n")));
    }
    told
}

#[test]
fn queries_find_the_same_whether_rows_are_folded_or_not_or_a_fold_was_interrupted() {
    block_on(async {
        let mut expected = None;
        // Rows before which a fold takes place; and how many commits of a second fold succeed.
        for (folded, steps) in
            [(COMMITS, 0), (0, usize::MAX), (3, usize::MAX), (0, 1), (0, 4), (3, 2), (3, 5), (COMMITS - 1, 3)]
        {
            let memory = MemoryStorage::new();
            let storage = Rc::new(Ending { inner: memory.clone(), left: Cell::new(usize::MAX) });
            let db = Db::open(Rc::clone(&storage) as _, TestEnv::new(1));
            created(&db).await;
            for commit in 0..COMMITS {
                add(&db, commit * SERIES).await;
                if commit + 1 == folded {
                    db.ok(rawdoc! { "flush": 1 }).await;
                }
            }
            if steps < usize::MAX {
                storage.left.set(steps);
                db.command(rawdoc! { "flush": 1 }).await;
            }
            let other = Db::open(Rc::new(memory), TestEnv::new(2));
            for (name, db) in [("the one that wrote", &db), ("the same again", &db), ("another", &other)] {
                let found = answers(db).await;
                let expected = expected.get_or_insert_with(|| found.clone());
                for (found, expected) in found.iter().zip(expected.iter()) {
                    assert_eq!(found, expected, "{folded} folded, {steps} steps, {name}");
                }
            }
        }
    });
}

#[test]
fn each_kind_of_query_takes_records_and_not_buckets() {
    block_on(async {
        for folded in [0, 2] {
            let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
            created(&db).await;
            for commit in 0..COMMITS {
                add(&db, commit * SERIES).await;
                if commit + 1 == folded {
                    db.ok(rawdoc! { "flush": 1 }).await;
                }
            }
            // Behind the first time, stored buckets are in memory, and so are their runs.
            answers(&db).await;
            answers(&db).await;
            for pipeline in pipelines() {
                let command = raw(&doc! { "aggregate": "weather", "pipeline": pipeline.clone(), "cursor": {} });
                let unpacked = explain(&db, command).await.counts()[2];
                let stored = if folded > 0 { i64::from(SERIES) } else { 0 };
                assert!(unpacked <= stored + i64::from(COMMITS), "{folded}: {unpacked} of {pipeline:?}");
            }
        }
    });
}

#[test]
fn rows_are_not_taken_together_before_a_filter_that_may_take_long() {
    block_on(async {
        let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
        created(&db).await;
        add(&db, 0).await;
        let among = |low: i32| doc! { "$in": ["$n", { "$range": [low, { "$add": ["$n", 1] }] }] };
        for (filter, together) in [(among(0), false), (doc! { "$gt": [{ "$add": ["$n", 1] }, 0] }, true)] {
            for rest in [vec![], vec![doc! { "$count": "rows" }]] {
                let pipeline =
                    [vec![doc! { "$match": { "$expr": &filter } }, doc! { "$sort": { "n": 1 } }], rest].concat();
                let command = raw(&doc! { "aggregate": "weather", "pipeline": pipeline, "cursor": {} });
                let unpacked = explain(&db, command).await.counts()[2];
                assert_eq!(unpacked, if together { 1 } else { i64::from(SERIES) }, "{filter}");
            }
        }
    });
}

#[test]
fn a_filter_that_fails_for_a_row_in_a_journal_fails_and_one_that_does_not_meet_that_row_does_not() {
    block_on(async {
        let db = Db::open(Rc::new(MemoryStorage::new()), TestEnv::new(1));
        created(&db).await;
        for commit in 0..COMMITS {
            add(&db, commit * SERIES).await;
        }
        let late = DateTime::from_millis(9_000_000);
        db.insert("weather", &[rawdoc! { "at": late, "m": { "id": 7, "odd": true }, "n": "text", "t": "bad" }]).await;
        let product = doc! { "$expr": { "$gt": [{ "$multiply": ["$n", 2] }, 100] } };
        let count = vec![doc! { "$match": &product }, doc! { "$count": "rows" }];
        let command = raw(&doc! { "aggregate": "weather", "pipeline": &count, "cursor": {} });
        let all = (0..COMMITS * SERIES).filter(|n| 2 * n > 100);
        let [others, with_v] = [7, -1].map(|but| all.clone().filter(move |n| n % SERIES != but));
        let with_v = with_v.filter(|n| n % SERIES % 3 > 0).count();
        for (filter, rows) in [
            (doc! { "at": { "$lt": late } }, all.clone().count()),
            (doc! { "m.id": { "$ne": 7 } }, others.count()),
            // The bucket with that row has no such field.
            (doc! { "v": { "$gte": 0 } }, with_v),
        ] {
            for parts in [[filter.clone(), product.clone()], [product.clone(), filter.clone()]] {
                let only = vec![doc! { "$match": { "$and": &parts[..] } }, doc! { "$count": "rows" }];
                for _ in 0..2 {
                    assert_eq!(db.command(command.clone()).await.get_f64("ok").unwrap(), 0.0);
                    let found = run_in(&db, only.clone(), 10).await;
                    assert_eq!(found[0].get_i32("rows").unwrap() as usize, rows, "{only:?}");
                }
            }
        }
    });
}

#[test]
fn what_stands_when_a_query_begins_is_found_once_while_others_insert_and_fold() {
    for seed in 1..4 {
        let storage = Rc::new(MemoryStorage::new());
        let env = TestEnv::new(seed);
        let db = Db::open(Rc::clone(&storage) as _, Rc::clone(&env));
        let other = Db::open(Rc::clone(&storage) as _, TestEnv::new(seed + 10));
        env.look_ms.set(ALWAYS_MS);
        let random = Random::new(seed);
        block_on(async {
            created(&db).await;
            add(&db, 0).await;
            let (next, is_done) = (RefCell::new(SERIES), Cell::new(false));
            let writes = async {
                for _ in 0..WRITES {
                    if is_done.get() {
                        break;
                    }
                    let writer = if random.chance(50) { &db } else { &other };
                    let first = *next.borrow();
                    add(writer, first).await;
                    *next.borrow_mut() = first + SERIES;
                    if random.chance(40) {
                        writer.ok(rawdoc! { "flush": 1 }).await;
                    }
                }
            };
            let queries = async {
                for round in 0..12 {
                    let known = *next.borrow();
                    let found = match round % 3 {
                        0 => vec![doc! { "$group": { "_id": "$n", "rows": { "$sum": 1 } } }],
                        1 => {
                            vec![doc! { "$sort": { "m": 1, "at": 1 } }, doc! { "$project": { "_id": "$n", "rows": 1 } }]
                        }
                        _ => vec![
                            doc! { "$match": { "n": { "$gte": 0 } } },
                            doc! { "$project": { "_id": "$n", "rows": 1 } },
                        ],
                    };
                    let rows = run_in(&db, found, 1_000_000).await;
                    let mut numbers: Vec<i32> = rows.iter().map(|row| row.get_i32("_id").unwrap()).collect();
                    assert!(rows.iter().all(|row| row.get_i32("rows").unwrap_or(1) == 1), "seed {seed}, round {round}");
                    numbers.sort_unstable();
                    let all = numbers.len();
                    numbers.dedup();
                    assert_eq!(numbers.len(), all, "seed {seed}, round {round}");
                    let before = numbers.iter().take_while(|n| **n < known).count();
                    assert_eq!(before as i32, known, "seed {seed}, round {round}");
                }
                is_done.set(true);
            };
            join(writes, queries).await;
        });
    }
}
