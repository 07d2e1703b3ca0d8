//! Running, waiting and failing commits of one collection.

use std::cell::Cell;
use std::rc::Rc;

use bson::{Document, RawDocumentBuf, rawdoc};
use futures::FutureExt;
use futures::executor::{LocalPool, block_on};
use futures::task::LocalSpawnExt;
use timepail::bucket::BucketId;
use timepail::catalog::CatalogOptions;
use timepail::engine::signal::Signal;

use super::harness::*;
use crate::support::Db;

struct Scene {
    gate: Rc<Gate>,
    db: Db,
    pool: LocalPool,
}

type Running = futures::future::RemoteHandle<Document>;

impl Scene {
    fn new() -> Scene {
        let gate = Rc::new(Gate::default());
        let db = block_on(database(gate.clone(), CatalogOptions::default()));
        Scene { gate, db, pool: LocalPool::new() }
    }

    /// Starts an insert and polls it as far as it goes.
    fn send(&mut self, docs: &[RawDocumentBuf]) -> Running {
        let (db, docs) = (self.db.clone(), docs.to_vec());
        let running = self.pool.spawner().spawn_local_with_handle(async move { db.insert("c", &docs).await }).unwrap();
        self.pool.run_until_stalled();
        running
    }

    /// Starts a `flush` and polls it as far as it goes.
    fn flush(&mut self) -> Running {
        let db = self.db.clone();
        let flush = async move { db.command(rawdoc! { "flush": 1 }).await };
        let running = self.pool.spawner().spawn_local_with_handle(flush).unwrap();
        self.pool.run_until_stalled();
        running
    }

    fn answer(&mut self, running: Running) -> (f64, Option<i32>) {
        let reply = self.pool.run_until(running);
        (reply.get_f64("ok").unwrap(), reply.get_i32("n").ok())
    }

    fn statistics<const N: usize>(&self, names: [&str; N]) -> [i64; N] {
        names.map(|name| block_on(statistic(&self.db, name)))
    }
}

const COMMITS: [&str; 4] = ["numCommits", "numBucketInserts", "numBucketUpdates", "numMeasurementsCommitted"];

#[test]
fn two_inserts_before_a_commit_share_one_batch() {
    let mut scene = Scene::new();
    let before = scene.gate.commits.get();
    let spawner = scene.pool.spawner();
    let both = [0, 1].map(|ms| {
        let db = scene.db.clone();
        spawner.spawn_local_with_handle(async move { db.insert("c", &[at(ms)]).await }).unwrap()
    });
    for running in both {
        assert_eq!(scene.answer(running), (1.0, Some(1)));
    }
    assert_eq!(scene.statistics(COMMITS), [1, 1, 0, 2]);
    assert_eq!((scene.gate.commits.get() - before, scene.statistics(["numWaits"])), (1, [1]));
}

#[test]
fn an_insert_during_a_commit_is_committed_after_it() {
    let mut scene = Scene::new();
    scene.gate.shut();
    let first = scene.send(&[at(0)]);
    let second = scene.send(&[at(1)]);
    // Neither is acknowledged before it is stored.
    assert_eq!(scene.statistics(["numCommits"]), [0]);
    scene.gate.open();
    assert_eq!((scene.answer(first), scene.answer(second)), ((1.0, Some(1)), (1.0, Some(1))));
    assert_eq!(scene.statistics(COMMITS), [2, 1, 1, 2]);
    assert_eq!(block_on(buckets(&scene.db)).len(), 1);
}

#[test]
fn two_inserts_into_one_bucket_are_committed_one_after_the_other() {
    let mut scene = Scene::new();
    scene.gate.shut();
    let first = scene.send(&[at(0)]);
    let second = scene.send(&[at(1)]);
    let third = scene.send(&[at(2)]);
    scene.gate.open();
    let commits = scene.gate.commits.get();
    for running in [first, second, third] {
        assert_eq!(scene.answer(running), (1.0, Some(1)));
    }
    // The third insert joined the second, which waited for the first.
    assert_eq!((scene.gate.commits.get() - commits, scene.statistics(["numCommits", "numBucketUpdates"])), (2, [2, 1]));
}

#[test]
fn an_insert_abandoned_while_waiting_does_not_affect_the_running_commit() {
    let mut scene = Scene::new();
    scene.gate.shut();
    let first = scene.send(&[at(0)]);
    drop(scene.send(&[at(1)]));
    scene.pool.run_until_stalled();
    scene.gate.open();
    assert_eq!(scene.answer(first), (1.0, Some(1)));
    let next = scene.send(&[at(2)]);
    assert_eq!(scene.answer(next), (1.0, Some(1)));
    assert_eq!(scene.statistics(COMMITS), [2, 1, 1, 2]);
    assert_eq!(block_on(scene.db.find(rawdoc! { "find": "c" })).len(), 2);
}

#[test]
fn an_abandoned_commit_leaves_no_bucket_behind() {
    let mut scene = Scene::new();
    let first = scene.send(&[at(0)]);
    assert_eq!(scene.answer(first), (1.0, Some(1)));
    scene.gate.shut();
    drop(scene.send(&[at(1)]));
    scene.pool.run_until_stalled();
    assert_eq!(scene.statistics(["numActiveBuckets", "numCommits"]), [0, 1]);
    scene.gate.open();
    let next = scene.send(&[at(2)]);
    assert_eq!(scene.answer(next), (1.0, Some(1)));
    assert_eq!(scene.statistics(["numActiveBuckets", "numCommits"]), [1, 2]);
}

#[test]
fn an_abandoned_fold_fails_its_waiters_and_the_next_fold_finishes_it() {
    let mut scene = Scene::new();
    let insert = scene.send(&[at(0)]);
    assert_eq!(scene.answer(insert), (1.0, Some(1)));
    scene.gate.shut();
    let folding = scene.flush();
    let waiting = scene.flush();
    drop(folding);
    scene.pool.run_until_stalled();
    // The gate is still shut: the answer comes only from the end of the fold.
    let answer = waiting.now_or_never().expect("whoever waits has an answer");
    assert_eq!(answer.get_f64("ok").unwrap(), 0.0);
    scene.gate.open();
    let next = scene.flush();
    assert_eq!(scene.answer(next).0, 1.0);
    assert_eq!(block_on(scene.db.find(rawdoc! { "find": "c" })).len(), 1);
}

#[test]
fn only_the_inserts_of_a_failed_commit_get_its_error() {
    let mut scene = Scene::new();
    scene.gate.shut();
    let running = scene.send(&[at(0)]);
    scene.gate.fails.set(true);
    scene.gate.open();
    assert_eq!(scene.answer(running), (0.0, None));
    scene.gate.shut();
    let [first, joined] = [scene.send(&[at(1)]), scene.send(&[at(2)])];
    scene.gate.open();
    assert_eq!((scene.answer(first), scene.answer(joined)), ((0.0, None), (0.0, None)));
    assert_eq!(scene.statistics(["numActiveBuckets"]), [0]);
    scene.gate.fails.set(false);
    let next = scene.send(&[at(3)]);
    assert_eq!(scene.answer(next), (1.0, Some(1)));
    assert_eq!(scene.statistics(COMMITS), [1, 1, 0, 1]);
    assert_eq!(block_on(scene.db.find(rawdoc! { "find": "c" })).len(), 1);
}

/// Waiting rows have not touched a bucket yet, so a failed commit does not affect them. The server fails the second batch; here it
/// goes to a new bucket here.
#[test]
fn rows_waiting_behind_a_failed_commit_are_stored_in_a_new_bucket() {
    let mut scene = Scene::new();
    let first = scene.send(&[at(0)]);
    assert_eq!(scene.answer(first), (1.0, Some(1)));
    scene.gate.shut();
    let spoilt = scene.send(&[at(1)]);
    let waiting = scene.send(&[at(2)]);
    scene.gate.fails.set(true);
    scene.gate.open();
    scene.gate.shut();
    assert_eq!(scene.answer(spoilt), (0.0, None));
    scene.pool.run_until_stalled();
    scene.gate.fails.set(false);
    scene.gate.open();
    assert_eq!(scene.answer(waiting), (1.0, Some(1)));
    assert_eq!(scene.statistics(["numCommits", "numMeasurementsCommitted"]), [2, 2]);
    assert_eq!(block_on(scene.db.find(rawdoc! { "find": "c" })).len(), 2);
}

#[test]
fn a_direct_write_waits_for_running_commits_and_later_inserts_avoid_its_bucket() {
    let mut scene = Scene::new();
    let first = scene.send(&[at(0)]);
    assert_eq!(scene.answer(first), (1.0, Some(1)));
    let bucket = {
        let buckets = block_on(buckets(&scene.db));
        BucketId::from_bytes(buckets[0].get_object_id("_id").unwrap().bytes())
    };
    scene.gate.shut();
    let running = scene.send(&[at(1)]);
    let behind = scene.send(&[at(2)]);
    let collection = block_on(scene.db.engine.existing_collection("c")).unwrap();
    let (began, ends) = (Rc::new(Cell::new(false)), Signal::new());
    let write = {
        let (began, ends) = (Rc::clone(&began), ends.clone());
        async move {
            let held = collection.direct_writes(vec![bucket]).await;
            began.set(true);
            ends.wait().await.unwrap();
            drop(held);
        }
    };
    let write = scene.pool.spawner().spawn_local_with_handle(write).unwrap();
    scene.pool.run_until_stalled();
    assert!(!began.get());
    scene.gate.open();
    assert_eq!((scene.answer(running), scene.answer(behind)), ((1.0, Some(1)), (1.0, Some(1))));
    scene.pool.run_until_stalled();
    assert!(began.get());
    // The first two inserts share the bucket; the third gets another one.
    assert_eq!(scene.statistics(["numBucketInserts", "numBucketUpdates"]), [2, 1]);
    ends.resolve(Ok(()));
    scene.pool.run_until(write);
    assert_eq!(block_on(buckets(&scene.db)).len(), 2);
}

#[test]
fn a_commit_fails_if_its_collection_is_dropped_meanwhile() {
    let mut scene = Scene::new();
    let gate = Rc::clone(&scene.gate);
    let other = open(gate.clone(), CatalogOptions::default());
    gate.shut();
    let running = scene.send(&[at(0)]);
    block_on(gate.inner_drop(&other));
    gate.open();
    let reply = scene.pool.run_until(running);
    assert_eq!(reply.get_str("codeName").unwrap(), "NamespaceNotFound");
}

impl Gate {
    /// Drops the collection without passing the gate.
    async fn inner_drop(&self, db: &Db) {
        let shut = std::mem::take(&mut *self.gate_mut());
        db.ok(rawdoc! { "drop": "c" }).await;
        *self.gate_mut() = shut;
    }
}
