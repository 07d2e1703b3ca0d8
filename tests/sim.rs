//! Random histories of several contexts on one storage against a plain list: what was acknowledged is found exactly once,
//! whatever was folded, restarted, deleted or interleaved.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bson::{DateTime, Document, rawdoc};
use futures::executor::{LocalPool, block_on};
use futures::task::LocalSpawnExt;
use support::rows::{a_filter, matching, measurement, times_of};
use support::{Db, Random, TestEnv, Unruly, multiset, raw, take_rows};
use timepail::bucket::BucketFormat;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

/// A context that writes buckets of some format: one database may hold them all.
fn open(storage: &Rc<dyn Storage>, env: &Rc<TestEnv>, random: &Random) -> Db {
    let format = if random.chance(25) { BucketFormat::Uncompressed } else { BucketFormat::Compressed };
    Db::open_as(format, Rc::clone(storage), Rc::clone(env))
}

async fn create(db: &Db, random: &Random) {
    let granularity = ["seconds", "minutes"][random.below(2) as usize];
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m", "granularity": granularity } })
        .await;
}

/// Every stored bucket bounds its measurements, and together they are the model.
async fn check(db: &Db, model: &[Document], seed: u64) {
    let found = db.find(rawdoc! { "find": "c" }).await;
    assert_eq!(multiset(&found), multiset(model), "seed {seed}: find");
    let n = db.ok(rawdoc! { "count": "c" }).await.get_i32("n").unwrap();
    assert_eq!(n as usize, model.len(), "seed {seed}: count");
    let mut in_buckets = 0;
    for bucket in db.find(rawdoc! { "find": "system.buckets.c" }).await {
        let control = bucket.get_document("control").unwrap();
        let times = times_of(&bucket, "t");
        let bound = |side: &str| control.get_document(side).unwrap().get_datetime("t").unwrap().timestamp_millis();
        assert!(times.len() <= 1000, "seed {seed}: a bucket of {} rows", times.len());
        in_buckets += times.len();
        assert!(times.iter().all(|t| bound("min") <= *t && *t <= bound("max")), "seed {seed}: control bounds");
        let version = control.get_i32("version").unwrap();
        assert!(version != 2 || times.is_sorted(), "seed {seed}: rows of version 2 out of order");
        assert!(version == 1 || control.get_i32("count").unwrap() as usize == times.len(), "seed {seed}: count");
    }
    assert_eq!(in_buckets, model.len(), "seed {seed}: rows in buckets");
}

async fn history(seed: u64) {
    let random = Random::new(seed);
    let env = TestEnv::new(seed);
    let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
    let mut dbs: Vec<Db> = (0..1 + random.below(3)).map(|_| open(&storage, &env, &random)).collect();
    create(&dbs[0], &random).await;
    let mut model: Vec<Document> = Vec::new();
    let mut next = 0;
    for _ in 0..60 {
        let at = random.below(dbs.len() as u64) as usize;
        let db = dbs[at].clone();
        match random.below(12) {
            0..=4 => {
                let docs: Vec<Document> = (0..1 + random.below(40))
                    .map(|_| {
                        next += 1;
                        measurement(&random, next)
                    })
                    .collect();
                let reply = db.insert("c", &docs.iter().map(raw).collect::<Vec<_>>()).await;
                assert_eq!(reply.get_i32("n").ok(), Some(docs.len() as i32), "seed {seed}: {reply}");
                model.extend(docs);
            }
            5 => drop(db.ok(rawdoc! { "flush": 1 }).await),
            6 => drop(db.ok(rawdoc! { "foldJournals": 1 }).await),
            7 => dbs[at] = open(&storage, &env, &random),
            8 => {
                let filter = a_filter(&random);
                let gone = multiset(matching(&model, &filter));
                let command = rawdoc! { "delete": "c", "deletes": [{ "q": raw(&filter), "limit": 0 }] };
                let n = db.ok(command).await.get_i32("n").unwrap();
                assert_eq!(n as usize, gone.len(), "seed {seed}: delete {filter}");
                model.retain(|d| gone.binary_search(&support::canonical(d)).is_err());
            }
            _ => {
                let filter = a_filter(&random);
                let found = db.find(rawdoc! { "find": "c", "filter": raw(&filter), "batchSize": 3 }).await;
                assert_eq!(multiset(&found), multiset(matching(&model, &filter)), "seed {seed}: find {filter}");
            }
        }
    }
    for db in &dbs {
        check(db, &model, seed).await;
    }
}

#[test]
fn random_histories_of_several_contexts_agree_with_a_plain_list() {
    for seed in 0..150 {
        block_on(history(seed));
    }
}

/// Several contexts write, fold and read at the same time, with other tasks let in at every storage operation.
fn interleaved(seed: u64, fail_percent: u64) {
    let random = Random::new(seed);
    let env = TestEnv::new(seed);
    let inner: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
    let unruly = Rc::new(Unruly { inner, random: random.clone(), fail_percent: Cell::new(0) });
    let storage: Rc<dyn Storage> = unruly.clone();
    let first = Db::open(Rc::clone(&storage), Rc::clone(&env));
    block_on(create(&first, &random));
    unruly.fail_percent.set(fail_percent);
    let acknowledged: Rc<RefCell<Vec<Document>>> = Rc::default();
    let mut pool = LocalPool::new();
    let spawner = pool.spawner();
    for task in 0..3_i64 {
        let db = open(&storage, &env, &random);
        let (acknowledged, random) = (Rc::clone(&acknowledged), Random::new(seed * 31 + task as u64));
        spawner
            .spawn_local(async move {
                for step in 0..12 {
                    if random.chance(70) {
                        let docs: Vec<Document> = (0..1 + random.below(9))
                            .map(|i| measurement(&random, task * 10_000 + step * 100 + i as i64))
                            .collect();
                        let reply = db.insert("c", &docs.iter().map(raw).collect::<Vec<_>>()).await;
                        if reply.get_f64("ok").ok() == Some(1.0) {
                            acknowledged.borrow_mut().extend(docs);
                        }
                    } else {
                        let command = if random.chance(50) {
                            rawdoc! { "flush": 1 }
                        } else {
                            rawdoc! { "foldJournals": 1 }
                        };
                        db.command(command).await;
                    }
                }
            })
            .unwrap();
    }
    // A context that deletes what it has inserted, while the others fold its journal: nothing comes back.
    let deleter = open(&storage, &env, &random);
    let own = rawdoc! { "who": "deleter" };
    let delete = rawdoc! { "delete": "c", "deletes": [{ "q": own.clone(), "limit": 0 }] };
    let task = {
        let (deleter, own, delete) = (deleter.clone(), own.clone(), delete.clone());
        async move {
            for step in 0..8 {
                let at = DateTime::from_millis(step * 1000);
                let docs: Vec<_> = (0..5)
                    .map(|i| rawdoc! { "t": at, "m": "d", "who": "deleter", "n": 1_000_000 + step * 10 + i })
                    .collect();
                deleter.insert("c", &docs).await;
                if !deleter.command(delete.clone()).await.contains_key("writeErrors") {
                    let left = deleter.find(rawdoc! { "find": "c", "filter": own.clone() }).await;
                    assert!(left.is_empty(), "seed {seed}: deleted rows are back: {left:?}");
                }
            }
        }
    };
    spawner.spawn_local(task).unwrap();
    // A reader with small batches: every row that was there when it began is seen exactly once, no row twice.
    let reader = Db::open(Rc::clone(&storage), Rc::clone(&env));
    let seen = Rc::clone(&acknowledged);
    spawner
        .spawn_local(async move {
            for _ in 0..6 {
                let before = seen.borrow().clone();
                let reply = reader.ok(rawdoc! { "find": "c", "batchSize": 2 }).await;
                let mut cursor = reply.get_document("cursor").unwrap().clone();
                let mut rows = take_rows(&mut cursor, "firstBatch");
                while cursor.get_i64("id").unwrap() != 0 {
                    let id = cursor.get_i64("id").unwrap();
                    let reply = reader.ok(rawdoc! { "getMore": id, "collection": "c", "batchSize": 3 }).await;
                    cursor = reply.get_document("cursor").unwrap().clone();
                    rows.extend(take_rows(&mut cursor, "nextBatch"));
                }
                let rows = multiset(&rows);
                assert!(rows.windows(2).all(|pair| pair[0] != pair[1]), "seed {seed}: a row was seen twice");
                for row in multiset(&before) {
                    assert!(rows.binary_search(&row).is_ok(), "seed {seed}: a row was hidden");
                }
            }
        })
        .unwrap();
    pool.run();
    unruly.fail_percent.set(0);
    if fail_percent > 0 {
        block_on(deleter.ok(delete));
    }
    let model = acknowledged.borrow().clone();
    block_on(check(&first, &model, seed));
    block_on(first.ok(rawdoc! { "foldJournals": 1 }));
    block_on(check(&Db::open(storage, env), &model, seed));
}

#[test]
fn contexts_that_write_fold_and_read_at_once_lose_and_double_nothing() {
    for seed in 0..150 {
        interleaved(seed, 0);
    }
}

#[test]
fn commits_that_fail_are_not_acknowledged_and_leave_nothing_behind() {
    for seed in 1000..1080 {
        interleaved(seed, 25);
    }
}
