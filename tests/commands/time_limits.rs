//! `maxTimeMS` and `killOp`: long commands end at a turn, and say what they had changed.

use std::rc::Rc;

use bson::{DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use futures::future::join;
use timepail::engine::signal::yield_now;
use timepail::storage::memory::MemoryStorage;

use crate::support::{ALWAYS_MS, Db, TestEnv, raw};

const HOUR_MS: i64 = 3_600_000;
/// More than a page of buckets.
const BUCKETS: i64 = 300;

/// A collection with some measurements in each hour, all of them in buckets. Each look at the clock moves it on by `look_ms`.
async fn filled(look_ms: f64) -> (Rc<TestEnv>, Db) {
    let env = TestEnv::new(1);
    let db = Db::open(Rc::new(MemoryStorage::new()), env.clone());
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" }, "expireAfterSeconds": 60 })
        .await;
    let row = |n: i64| rawdoc! { "t": DateTime::from_millis(n / 3 * HOUR_MS + n % 3), "m": 1, "x": n };
    db.insert("c", &(0..3 * BUCKETS).map(row).collect::<Vec<_>>()).await;
    db.ok(rawdoc! { "flush": 1 }).await;
    env.look_ms.set(look_ms);
    (env, db)
}

/// A command with another argument.
fn with(command: &Document, name: &str, value: i64) -> RawDocumentBuf {
    let mut command = command.clone();
    command.insert(name, value);
    raw(&command)
}

fn delete() -> Document {
    doc! { "delete": "c", "deletes": [{ "q": { "x": { "$gte": 0 } }, "limit": 0 }] }
}

/// Commands that take long, those that change something last.
fn long_commands() -> Vec<Document> {
    let filter = || doc! { "x": { "$gte": 0 } };
    let update = doc! { "q": { "m": 1 }, "u": { "$set": { "m": 2 } }, "multi": true };
    vec![
        doc! { "find": "c", "filter": filter(), "batchSize": 10_000 },
        doc! { "find": "c", "sort": { "x": 1 } },
        doc! { "find": "system.buckets.c", "batchSize": 10_000 },
        doc! { "count": "c", "query": filter() },
        doc! { "distinct": "c", "key": "x" },
        doc! { "aggregate": "c", "pipeline": [{ "$group": { "_id": "$m", "n": { "$sum": "$x" } } }], "cursor": {} },
        doc! { "aggregate": "other", "pipeline": [{ "$unionWith": "c" }], "cursor": {} },
        doc! { "explain": { "find": "c", "filter": filter() }, "verbosity": "executionStats" },
        doc! { "collStats": "c" },
        doc! { "validate": "c", "full": true },
        doc! { "createIndexes": "c", "indexes": [{ "key": { "m": 1, "x": 1 }, "name": "i" }] },
        doc! { "update": "c", "updates": [update] },
        delete(),
        doc! { "expire": 1 },
    ]
}

#[test]
fn every_long_command_ends_when_its_time_is_over() {
    for command in long_commands() {
        block_on(async {
            let (_, db) = filled(1.0).await;
            assert_eq!(
                db.fails(with(&command, "maxTimeMS", 1)).await,
                (50, "MaxTimeMSExpired".to_owned()),
                "{command}"
            );
            db.ok(with(&command, "maxTimeMS", 1_000_000)).await;
            let (_, db) = filled(1.0).await;
            db.ok(with(&command, "maxTimeMS", 0)).await;
        });
    }
}

#[test]
fn killop_ends_a_command_at_its_next_turn_and_leaves_others_alone() {
    for command in long_commands() {
        block_on(async {
            let (_, db) = filled(ALWAYS_MS).await;
            let kill = async {
                yield_now().await;
                db.ok(rawdoc! { "killOp": 1, "op": 7 }).await
            };
            let (killed, _) = join(db.fails(with(&command, "opKey", 7)), kill).await;
            assert_eq!(killed, (11601, "Interrupted".to_owned()), "{command}");
            join(db.ok(with(&command, "opKey", 7)), db.ok(rawdoc! { "killOp": 1, "op": 8 })).await;
        });
    }
}

#[test]
fn a_lookup_can_be_ended_between_two_rows() {
    let pipeline = doc! { "from": "few", "let": { "x": "$x" }, "pipeline": [{ "$match": { "$expr": { "$lt": ["$x", "$$x"] } } }], "as": "l" };
    let by_fields = doc! { "from": "few", "localField": "x", "foreignField": "x", "as": "l" };
    let graph = doc! { "from": "few", "startWith": "$x", "connectFromField": "next", "connectToField": "x", "as": "l" };
    for stage in [doc! { "$lookup": pipeline }, doc! { "$lookup": by_fields }, doc! { "$graphLookup": graph }] {
        block_on(async {
            let (env, db) = filled(0.0).await;
            db.ok(rawdoc! { "create": "few", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
            let row = |n: i64| rawdoc! { "t": DateTime::from_millis(n), "x": n, "next": n + 1 };
            db.insert("few", &(0..5).map(row).collect::<Vec<_>>()).await;
            // The rows of one block, of which five are looked up in front of the limit, and all behind it.
            let of =
                |stages: &[Document]| doc! { "aggregate": "c", "pipeline": stages, "cursor": { "batchSize": 10_000 } };
            let (limit, sort) = (doc! { "$limit": 5 }, doc! { "$sort": { "x": 1 } });
            let expected = db.ok(raw(&of(&[sort.clone(), stage.clone()]))).await;
            env.look_ms.set(ALWAYS_MS);
            let turns = |db: Db, command: Document| {
                let env = Rc::clone(&env);
                async move {
                    let before = env.turns.get();
                    (db.ok(raw(&command)).await, env.turns.get() - before)
                }
            };
            let (found, all) = turns(db.clone(), of(&[sort.clone(), stage.clone()])).await;
            assert_eq!(found, expected);
            // Rows of many buckets are taken at once, unless there is a limit.
            let (_, without) = turns(db.clone(), of(&[sort.clone(), doc! { "$unwind": "$x" }])).await;
            assert!(all >= without + 3 * BUCKETS as usize, "{stage}: {all} turns, {without} without it");
            let (_, without) = turns(db.clone(), of(&[sort.clone(), limit.clone()])).await;
            let (_, few) = turns(db.clone(), of(&[sort, limit, stage.clone()])).await;
            assert!(few < without + 20, "{stage}: {few} turns for five rows, {without} without it");
        });
    }
}

#[test]
fn where_rows_take_long_the_clock_is_looked_at_after_fewer_of_them() {
    block_on(async {
        let count = doc! { "count": "c", "query": { "x": { "$gte": 0 } } };
        // Each look takes as long as the work before it.
        let turns_at = async |look_ms: f64| {
            let (env, db) = filled(look_ms).await;
            env.looks_seldom.set(true);
            let before = env.turns.get();
            db.ok(raw(&count)).await;
            env.turns.get() - before
        };
        // Eight buckets count as the work between two looks.
        let (quick, slow) = (turns_at(0.001).await, turns_at(ALWAYS_MS).await);
        assert_eq!(quick, 0);
        assert!(slow > 2 * BUCKETS as usize / 8, "{slow} turns");
    });
}

#[test]
fn a_cursor_has_its_time_for_all_of_its_batches_and_none_passes_in_between() {
    block_on(async {
        let (env, db) = filled(1.0).await;
        let mut reply = db.ok(rawdoc! { "find": "c", "batchSize": 30, "maxTimeMS": 200 }).await;
        let mut batches = 1;
        loop {
            env.elapsed_ms.set(env.elapsed_ms.get() + 1_000_000.0);
            let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
            let more = || rawdoc! { "getMore": id, "collection": "c", "batchSize": 30 };
            reply = db.command(more()).await;
            if reply.get_f64("ok").ok() == Some(0.0) {
                assert_eq!(reply.get_i32("code").ok(), Some(50));
                assert_eq!(reply.get_str("errmsg").ok(), Some("operation exceeded time limit"));
                // Its cursor is gone.
                assert_eq!(db.fails(more()).await.0, 43);
                break;
            }
            batches += 1;
        }
        assert!((5..29).contains(&batches), "{batches}");
    });
}

#[test]
fn getmore_takes_no_time_limit_of_its_own() {
    block_on(async {
        let (_, db) = filled(0.0).await;
        let reply = db.ok(rawdoc! { "find": "c", "batchSize": 2 }).await;
        let id = reply.get_document("cursor").unwrap().get_i64("id").unwrap();
        for limit in [0, 5] {
            let more = rawdoc! { "getMore": id, "collection": "c", "maxTimeMS": limit };
            assert_eq!(db.fails(more).await, (2, "BadValue".to_owned()));
        }
        db.ok(rawdoc! { "getMore": id, "collection": "c" }).await;
    });
}

#[test]
fn what_a_delete_has_deleted_when_it_is_ended_stays_deleted() {
    let mut partly = 0;
    for limit in (10..800).step_by(60) {
        block_on(async {
            let (_, db) = filled(1.0).await;
            let reply = db.command(with(&delete(), "maxTimeMS", limit)).await;
            let left = db.find(rawdoc! { "find": "c" }).await.len() as i64;
            if reply.get_f64("ok").ok() == Some(1.0) {
                return assert_eq!((left, reply.get_i32("n").ok()), (0, Some(3 * BUCKETS as i32)));
            }
            assert_eq!(reply.get_i32("code").ok(), Some(50));
            assert_eq!(reply.get_str("errmsg").ok(), Some("operation exceeded time limit"));
            partly += i32::from(left < 3 * BUCKETS);
        });
    }
    assert!(partly > 0);
}

#[test]
fn an_index_whose_build_is_ended_is_gone() {
    block_on(async {
        let (env, db) = filled(1.0).await;
        let make = doc! { "createIndexes": "c", "indexes": [{ "key": { "m": 1, "x": 1 }, "name": "i" }] };
        assert_eq!(db.fails(with(&make, "maxTimeMS", 1)).await.0, 50);
        env.look_ms.set(0.0);
        let listed = db.ok(rawdoc! { "listIndexes": "c" }).await;
        assert_eq!(listed.get_document("cursor").unwrap().get_array("firstBatch").unwrap().len(), 1);
        db.ok(raw(&make)).await;
    });
}

#[test]
fn killop_needs_the_key_of_an_operation() {
    block_on(async {
        let (_, db) = filled(0.0).await;
        assert_eq!(db.fails(rawdoc! { "killOp": 1 }).await.0, 40414);
        assert_eq!(db.fails(rawdoc! { "killOp": 1, "op": "x" }).await.0, 14);
        assert_eq!(db.fails(rawdoc! { "ping": 1, "opKey": "x" }).await.0, 14);
    });
}
