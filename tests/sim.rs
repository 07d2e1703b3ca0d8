//! Random histories of several contexts on one storage against a plain list: what was acknowledged is found exactly once,
//! whatever was folded, restarted, deleted or interleaved.
#![allow(missing_docs, clippy::unwrap_used, clippy::indexing_slicing)]

mod support;

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bson::{DateTime, Document, rawdoc};
use futures::executor::{LocalPool, block_on};
use futures::task::LocalSpawnExt;
use support::rows::{a_filter, matching, measurement, numbers_of, times_of};
use support::{Db, Random, TestEnv, Unruly, multiset, raw, take_rows};
use timepail::bucket::BucketFormat;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

/// Where the clock of every history begins.
const FIRST_NOW_MS: i64 = 1_800_000_000_000;

/// A context that writes buckets of some format: one database may hold them all.
fn open(storage: &Rc<dyn Storage>, env: &Rc<TestEnv>, random: &Random) -> Db {
    let format = if random.chance(25) { BucketFormat::Uncompressed } else { BucketFormat::Compressed };
    Db::open_as(format, Rc::clone(storage), Rc::clone(env))
}

/// Measurements expire when they are as old as the clock's first time: those of the epoch at once, but for the span of a bucket.
async fn create(db: &Db, random: &Random) -> i64 {
    let (granularity, span_ms) = [("seconds", 3_600_000), ("minutes", 86_400_000)][random.below(2) as usize];
    db.ok(rawdoc! {
        "create": "c", "expireAfterSeconds": FIRST_NOW_MS / 1000,
        "timeseries": { "timeField": "t", "metaField": "m", "granularity": granularity },
    })
    .await;
    span_ms
}

/// The numbers of all measurements whose bucket began so long ago that it expires, by that rule and no other.
async fn expired_numbers(db: &Db, span_ms: i64, now_ms: i64) -> Vec<i64> {
    let buckets = db.find(rawdoc! { "find": "system.buckets.c" }).await;
    let start = |bucket: &Document| {
        let min = bucket.get_document("control").unwrap().get_document("min").unwrap();
        min.get_datetime("t").unwrap().timestamp_millis()
    };
    let expired = buckets.iter().filter(|bucket| start(bucket) + span_ms + FIRST_NOW_MS <= now_ms);
    expired.flat_map(numbers_of).collect()
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

/// Answers how many measurements have expired.
async fn history(seed: u64) -> usize {
    let random = Random::new(seed);
    let env = TestEnv::new(seed);
    let storage: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
    let mut dbs: Vec<Db> = (0..1 + random.below(3)).map(|_| open(&storage, &env, &random)).collect();
    let span_ms = create(&dbs[0], &random).await;
    let mut model: Vec<Document> = Vec::new();
    let (mut next, mut expired) = (0, 0);
    for _ in 0..60 {
        let at = random.below(dbs.len() as u64) as usize;
        let db = dbs[at].clone();
        match random.below(13) {
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
            9 => {
                env.now_ms.set(env.now_ms.get() + random.below(4 * 3_600_000) as i64);
                let gone = expired_numbers(&db, span_ms, env.now_ms.get()).await;
                let reply = db.ok(rawdoc! { "expire": 1 }).await;
                assert_eq!(reply.get_i64("nMeasurements").unwrap() as usize, gone.len(), "seed {seed}: {reply}");
                expired += gone.len();
                model.retain(|d| !gone.contains(&d.get_i64("n").unwrap()));
                check(&db, &model, seed).await;
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
    expired
}

#[test]
fn random_histories_of_several_contexts_agree_with_a_plain_list() {
    let expired: usize = (0..150).map(|seed| block_on(history(seed))).sum();
    assert!(expired > 1000, "only {expired} measurements have expired");
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
    // A context whose measurements have expired before they are written: from before 1970, so that ids do not sort by time.
    let expire = rawdoc! { "expire": 1 };
    if seed.is_multiple_of(3) {
        let (expirer, expire) = (open(&storage, &env, &random), expire.clone());
        let task = async move {
            for step in 0..6 {
                let at = |i: i64| DateTime::from_millis(-1 - step * 7_000_000 - i * 60_000);
                let docs: Vec<_> =
                    (0..5).map(|i| rawdoc! { "t": at(i), "m": "e", "who": "expirer", "n": 2_000_000 + step }).collect();
                expirer.insert("c", &docs).await;
                if expirer.command(expire.clone()).await.get_f64("ok").ok() == Some(1.0) {
                    let left = expirer.find(rawdoc! { "find": "c", "filter": { "who": "expirer" } }).await;
                    assert!(left.is_empty(), "seed {seed}: expired rows are back: {left:?}");
                }
            }
        };
        spawner.spawn_local(task).unwrap();
    }
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
        block_on(deleter.ok(expire));
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
