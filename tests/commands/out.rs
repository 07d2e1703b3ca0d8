//! `$out`: the result of a pipeline replaces the content of a collection atomically. `$merge` is refused.

use std::rc::Rc;

use bson::{Bson, DateTime, Document, RawDocumentBuf, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use crate::support::explained::Explained;
use crate::support::faults::{Faulty, Rates};
use crate::support::{Db, Random, TestEnv, raw, take_rows};

struct Place {
    storage: Rc<dyn Storage>,
    env: Rc<TestEnv>,
}

impl Place {
    fn new() -> Place {
        Place { storage: Rc::new(MemoryStorage::new()), env: TestEnv::new(7) }
    }
    fn open(&self) -> Db {
        Db::open(Rc::clone(&self.storage), Rc::clone(&self.env))
    }
}

async fn fill(db: &Db, name: &str, count: i64) {
    let rows: Vec<RawDocumentBuf> = (0..count)
        .map(|n| rawdoc! { "at": DateTime::from_millis(n * 60_000), "of": if n % 2 == 0 { "a" } else { "b" }, "n": n })
        .collect();
    db.insert(name, &rows).await;
}

/// A collection `from` of ten rows, and `to` of three with an index and a bound on its size.
async fn prepare(db: &Db) {
    db.ok(rawdoc! { "create": "from", "timeseries": { "timeField": "at", "metaField": "of" } }).await;
    fill(db, "from", 10).await;
    let to = rawdoc! { "timeField": "at", "metaField": "of", "granularity": "hours" };
    db.ok(rawdoc! { "create": "to", "timeseries": to, "maxBytes": 1_000_000_000_i64 }).await;
    let index = rawdoc! { "key": { "n": 1 }, "name": "by_n" };
    db.ok(rawdoc! { "createIndexes": "to", "indexes": [index] }).await;
    fill(db, "to", 3).await;
}

fn out(pipeline: Vec<Document>, to: impl Into<Bson>) -> RawDocumentBuf {
    let mut pipeline = pipeline;
    pipeline.push(doc! { "$out": to.into() });
    raw(&doc! { "aggregate": "from", "pipeline": pipeline, "cursor": {} })
}

/// The `n` of every measurement, in order of time.
async fn numbers(db: &Db, name: &str) -> Vec<i64> {
    let rows = db.find(rawdoc! { "find": name, "sort": { "at": 1 } }).await;
    rows.iter().map(|row| row.get_i64("n").unwrap()).collect()
}

async fn names(db: &Db) -> Vec<String> {
    let mut cursor = db.ok(rawdoc! { "listCollections": 1 }).await.get_document("cursor").unwrap().clone();
    let mut names: Vec<String> =
        take_rows(&mut cursor, "firstBatch").iter().map(|row| row.get_str("name").unwrap().to_owned()).collect();
    names.retain(|name| !name.starts_with("system."));
    names.sort();
    names
}

/// Asserts that every access path finds everything and that `validate` reports nothing.
async fn is_whole(db: &Db, name: &str, wanted: &[i64]) {
    assert_eq!(numbers(db, name).await, wanted);
    let report = db.ok(rawdoc! { "validate": name, "full": true }).await;
    assert_eq!(report.get_bool("valid").ok(), Some(true), "{report}");
}

#[test]
fn out_replaces_the_content_and_keeps_options_and_indexes() {
    block_on(async {
        let place = Place::new();
        let (db, other) = (place.open(), place.open());
        prepare(&db).await;
        for _ in 0..2 {
            assert_eq!(numbers(&other, "to").await.len(), 3);
            let options = async || db.ok(rawdoc! { "listCollections": 1, "filter": { "name": "to" } }).await;
            let shown = |reply: Document| {
                let mut cursor = reply.get_document("cursor").unwrap().clone();
                take_rows(&mut cursor, "firstBatch")[0].get_document("options").unwrap().clone()
            };
            let indexes = async || db.ok(rawdoc! { "listIndexes": "to" }).await;
            let before = (shown(options().await), indexes().await);
            let keep = vec![
                doc! { "$match": { "n": { "$gte": 4 } } },
                doc! { "$set": { "n": { "$multiply": ["$n", 2_i64] } } },
            ];
            let reply = db.ok(out(keep, "to")).await;
            let mut cursor = reply.get_document("cursor").unwrap().clone();
            assert!(take_rows(&mut cursor, "firstBatch").is_empty() && cursor.get_i64("id").ok() == Some(0));
            assert_eq!((shown(options().await), indexes().await), before);
            for db in [&db, &other, &place.open()] {
                is_whole(db, "to", &[8, 10, 12, 14, 16, 18]).await;
                let through = rawdoc! { "find": "to", "filter": { "n": { "$gt": 12_i64 } }, "hint": "by_n" };
                assert_eq!(db.find(through).await.len(), 3);
            }
            assert_eq!(names(&db).await, ["from", "to"]);
            db.ok(rawdoc! { "delete": "to", "deletes": [{ "q": { "of": "a" }, "limit": 0 }] }).await;
            db.ok(rawdoc! { "delete": "to", "deletes": [{ "q": {}, "limit": 0 }] }).await;
            fill(&db, "to", 3).await;
            db.ok(rawdoc! { "flush": 1 }).await;
        }
    });
}

#[test]
fn measurements_inserted_after_out_stay() {
    block_on(async {
        let place = Place::new();
        let db = place.open();
        prepare(&db).await;
        db.ok(out(vec![], "to")).await;
        let row = rawdoc! { "at": DateTime::from_millis(9_000_000), "of": "a", "n": 99_i64 };
        db.insert("to", &[row]).await;
        let wanted: Vec<i64> = (0..10).chain([99]).collect();
        is_whole(&db, "to", &wanted).await;
        is_whole(&place.open(), "to", &wanted).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        is_whole(&db, "to", &wanted).await;
        is_whole(&place.open(), "to", &wanted).await;
    });
}

#[test]
fn out_creates_a_missing_collection_with_the_options_of_the_stage() {
    block_on(async {
        let place = Place::new();
        let db = place.open();
        prepare(&db).await;
        let options = doc! { "timeField": "hour", "metaField": "of", "granularity": "minutes" };
        let hourly = vec![
            doc! { "$group": { "_id": { "of": "$of", "hour": { "$dateTrunc": { "date": "$at", "unit": "minute", "binSize": 5 } } }, "n": { "$sum": "$n" } } },
            doc! { "$project": { "_id": 0, "of": "$_id.of", "hour": "$_id.hour", "n": 1 } },
        ];
        let to = doc! { "db": "test", "coll": "hourly", "timeseries": options };
        db.ok(out(hourly.clone(), to.clone())).await;
        let by_series = rawdoc! { "find": "hourly", "filter": { "of": "a" }, "sort": { "hour": 1 } };
        let rows = place.open().find(by_series).await;
        let row = |minute: i64, n: i64| doc! { "hour": DateTime::from_millis(minute * 60_000), "of": "a", "n": n };
        assert_eq!(rows.len(), 2);
        for (found, wanted) in rows.iter().zip([row(0, 6), row(5, 14)]) {
            assert!(wanted.iter().all(|(name, value)| found.get(name) == Some(value)), "{found}");
        }
        db.ok(out(hourly.clone(), to.clone())).await;
        assert_eq!(names(&db).await, ["from", "hourly", "to"], "the same options again");
        let other = doc! { "db": "test", "coll": "hourly", "timeseries": { "timeField": "hour" } };
        assert_eq!(db.fails(out(hourly, other)).await.0, 7406103);
    });
}

#[test]
fn a_collection_may_replace_itself_and_an_empty_result_empties_it() {
    block_on(async {
        let place = Place::new();
        let db = place.open();
        prepare(&db).await;
        db.ok(out(vec![doc! { "$match": { "of": "b" } }], "from")).await;
        is_whole(&db, "from", &[1, 3, 5, 7, 9]).await;
        db.ok(out(vec![doc! { "$match": { "of": "c" } }], "to")).await;
        is_whole(&place.open(), "to", &[]).await;
        let many =
            doc! { "$unionWith": { "pipeline": [{ "$documents": [{ "at": DateTime::from_millis(1), "n": 1_i64 }] }] } };
        db.ok(out(vec![many], "to")).await;
        is_whole(&db, "to", &[1, 1, 3, 5, 7, 9]).await;
    });
}

#[test]
fn a_large_result_is_written_in_many_changesets() {
    /// Storage that measures the largest changeset.
    struct Measured(MemoryStorage, std::cell::Cell<usize>);
    impl Storage for Measured {
        fn get_many<'a>(&'a self, keys: &'a [Vec<u8>]) -> timepail::storage::LocalFuture<'a, Vec<Option<Vec<u8>>>> {
            self.0.get_many(keys)
        }
        fn scan<'a>(
            &'a self,
            ranges: &'a [timepail::storage::KeyRange],
            page: timepail::storage::Page,
        ) -> timepail::storage::LocalFuture<'a, Vec<timepail::storage::Entry>> {
            self.0.scan(ranges, page)
        }
        fn commit(&self, changes: timepail::storage::Changeset) -> timepail::storage::LocalFuture<'_, ()> {
            self.1.set(self.1.get().max(changes.changes().len()));
            self.0.commit(changes)
        }
    }
    block_on(async {
        let storage = Rc::new(Measured(MemoryStorage::new(), std::cell::Cell::new(0)));
        let db = Db::open(Rc::clone(&storage) as Rc<dyn Storage>, TestEnv::new(1));
        db.ok(rawdoc! { "create": "from", "timeseries": { "timeField": "at", "metaField": "of" } }).await;
        for day in 0..4 {
            let rows: Vec<RawDocumentBuf> = (0..9000_i64)
                .map(|n| rawdoc! { "at": DateTime::from_millis(day * 86_400_000 + n * 9000), "of": n % 30, "n": n })
                .collect();
            db.insert("from", &rows).await;
        }
        db.ok(rawdoc! { "flush": 1 }).await;
        storage.1.set(0);
        let to = doc! { "db": "test", "coll": "new", "timeseries": { "timeField": "at", "metaField": "of" } };
        db.ok(out(vec![], to)).await;
        assert_eq!(db.ok(rawdoc! { "count": "new" }).await.get_i32("n").ok(), Some(36_000));
        assert!((1..250).contains(&storage.1.get()), "{} changes at once", storage.1.get());
    });
}

#[test]
fn a_failing_out_keeps_the_old_content() {
    block_on(async {
        let place = Place::new();
        let db = place.open();
        prepare(&db).await;
        for (stage, wanted) in [
            (doc! { "$set": { "at": { "$cond": [{ "$eq": ["$n", 7_i64] }, "never", "$at"] } } }, 2),
            (doc! { "$unset": ["at"] }, 2),
            (doc! { "$set": { "n": { "$cond": [{ "$eq": ["$n", 7_i64] }, [1, 2], "$n"] } } }, 5930501),
            (doc! { "$set": { "n": { "$divide": ["$n", { "$subtract": ["$n", 7_i64] }] } } }, 2),
        ] {
            assert_eq!(db.fails(out(vec![stage.clone()], "to")).await.0, wanted, "{stage}");
            assert_eq!(names(&db).await, ["from", "to"]);
            is_whole(&db, "to", &[0, 1, 2]).await;
        }
    });
}

#[test]
fn if_storage_fails_readers_find_either_the_old_or_the_new_content() {
    let (mut done, mut undone) = (0, 0);
    for seed in 0..60 {
        block_on(async {
            let place = Place::new();
            let faulty = Faulty::new(Rc::clone(&place.storage), Random::new(seed), false);
            let db = Db::open(Rc::clone(&faulty) as Rc<dyn Storage>, Rc::clone(&place.env));
            prepare(&db).await;
            faulty.set(Rates { refused: 12, ambiguous: 12, cut_off: 5, unread: 5 });
            let reply = db.command(out(vec![], "to")).await;
            let acknowledged = reply.get_f64("ok").ok() == Some(1.0);
            faulty.set(Rates::default());
            let (old, new) = (vec![0, 1, 2], (0..10).collect::<Vec<i64>>());
            let found = numbers(&place.open(), "to").await;
            assert!(found == new || found == old && !acknowledged, "{seed}: {found:?}, {reply}");
            (done, undone) = if found == new { (done + 1, undone) } else { (done, undone + 1) };
            is_whole(&place.open(), "to", &found).await;
            is_whole(&db, "to", &found).await;
            // Leftovers are removed by a later `$out`.
            place.env.now_ms.set(place.env.now_ms.get() + 1_800_001);
            db.ok(out(vec![], "to")).await;
            assert_eq!(names(&db).await, ["from", "to"], "{seed}");
            is_whole(&db, "to", &new).await;
            is_whole(&place.open(), "to", &new).await;
        });
    }
    assert!(done > 5 && undone > 5, "{done} and {undone}");
}

#[test]
fn a_cursor_on_the_replaced_content_ends() {
    block_on(async {
        let place = Place::new();
        let (db, other) = (place.open(), place.open());
        prepare(&db).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        let opened = other.ok(rawdoc! { "find": "to", "batchSize": 1 }).await;
        let id = opened.get_document("cursor").unwrap().get_i64("id").unwrap();
        db.ok(out(vec![], "to")).await;
        // It may still return rows that it has in memory, but none of the new content.
        let next = other.command(rawdoc! { "getMore": id, "collection": "to" }).await;
        if let Ok(cursor) = next.get_document("cursor") {
            assert!(take_rows(&mut cursor.clone(), "nextBatch").len() <= 2);
        }
        assert_eq!(numbers(&other, "to").await.len(), 10);
    });
}

#[test]
fn an_index_created_during_out_is_not_lost() {
    block_on(async {
        let place = Place::new();
        let faulty = Faulty::new(Rc::clone(&place.storage), Random::new(3), true);
        let db = Db::open(faulty as Rc<dyn Storage>, Rc::clone(&place.env));
        let other = place.open();
        prepare(&db).await;
        let index = rawdoc! { "createIndexes": "to", "indexes": [{ "key": { "m": 1 }, "name": "by_m" }] };
        let changed = async {
            // After `$out` has begun.
            while names(&other).await.len() < 3 {
                timepail::engine::signal::yield_now().await;
            }
            other.ok(index).await
        };
        let (reply, _) = futures::future::join(db.command(out(vec![], "to")), changed).await;
        assert_eq!(reply.get_i32("code").ok(), Some(125), "{reply}");
        is_whole(&db, "to", &[0, 1, 2]).await;
        assert_eq!(names(&db).await, ["from", "to"]);
    });
}

#[test]
fn out_is_refused_where_it_is_not_allowed() {
    block_on(async {
        let place = Place::new();
        let db = place.open();
        prepare(&db).await;
        let inner = vec![doc! { "$out": "to" }];
        let lookup = doc! { "from": "to", "as": "x", "pipeline": inner.clone() };
        for (pipeline, wanted) in [
            (vec![doc! { "$out": "to" }, doc! { "$limit": 1 }], 40601),
            (vec![doc! { "$merge": "to" }, doc! { "$limit": 1 }], 40601),
            (vec![doc! { "$merge": "to" }], 1074330),
            (vec![doc! { "$merge": { "into": "nowhere" } }], 1074330),
            (vec![doc! { "$out": 1 }], 16990),
            (vec![doc! { "$out": { "coll": "to" } }], 40414),
            (vec![doc! { "$out": { "db": "test", "coll": "to", "other": 1 } }], 40415),
            (vec![doc! { "$out": { "db": "test", "coll": 1 } }], 14),
            (vec![doc! { "$out": { "db": "elsewhere", "coll": "to" } }], 73),
            (vec![doc! { "$out": "system.buckets.to" }], 73),
            (vec![doc! { "$out": "" }], 73),
            (vec![doc! { "$out": "nowhere" }], 26),
            (vec![doc! { "$out": { "db": "test", "coll": "new", "timeseries": { "metaField": "of" } } }], 40414),
            (vec![doc! { "$out": { "db": "test", "coll": "new", "timeseries": { "timeField": "$at" } } }], 72),
            (vec![doc! { "$out": { "db": "test", "coll": "new", "timeseries": 1 } }], 14),
            (vec![doc! { "$facet": { "a": inner.clone() } }], 40600),
            (vec![doc! { "$facet": { "a": [{ "$merge": "to" }] } }], 40600),
            (vec![doc! { "$lookup": lookup }], 51047),
            (vec![doc! { "$unionWith": { "coll": "to", "pipeline": inner } }], 31441),
        ] {
            let command = doc! { "aggregate": "from", "pipeline": pipeline, "cursor": {} };
            assert_eq!(db.fails(raw(&command)).await.0, wanted, "{command}");
        }
        assert_eq!(names(&db).await, ["from", "to"]);
        is_whole(&db, "to", &[0, 1, 2]).await;
    });
}

#[test]
fn explain_shows_out_and_writes_nothing() {
    block_on(async {
        let place = Place::new();
        let db = place.open();
        prepare(&db).await;
        for verbosity in ["queryPlanner", "executionStats"] {
            let pipeline = vec![doc! { "$match": { "n": 1 } }, doc! { "$out": "to" }];
            let command = doc! { "explain": { "aggregate": "from", "pipeline": pipeline }, "verbosity": verbosity };
            let found = Explained(db.ok(raw(&command)).await);
            assert_eq!(found.stages().last().unwrap().get_str("$out").ok(), Some("to"));
        }
        is_whole(&db, "to", &[0, 1, 2]).await;
    });
}
