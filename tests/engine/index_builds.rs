//! Index builds that are interrupted or overtaken.

use std::future::Future;
use std::rc::Rc;
use std::task::{Context, Poll};

use bson::{DateTime, Document, RawDocumentBuf, rawdoc};
use futures::executor::block_on;
use futures::task::noop_waker;
use timepail::limits::INDEX_BUILD_MS_MAX;
use timepail::storage::memory::MemoryStorage;

use crate::support::faults::Faulty;
use crate::support::valid_bucket::Writers;
use crate::support::{Db, Random, TestEnv, checks};

fn row(n: i64, x: impl Into<bson::RawBson>) -> RawDocumentBuf {
    rawdoc! { "t": DateTime::from_millis(n * 1000), "m": n % 3, "n": n, "x": x.into() }
}

fn make(name: &str) -> RawDocumentBuf {
    rawdoc! { "createIndexes": "c", "indexes": [{ "key": { "x": 1 }, "name": name }] }
}

/// A context that advances when polled, and another one that runs to the end, each with its own clock.
struct Two {
    storage: Rc<MemoryStorage>,
    builder: Db,
    other: Db,
    clock: Rc<TestEnv>,
}

impl Two {
    async fn new() -> Two {
        let storage = Rc::new(MemoryStorage::new());
        let paused = Faulty::new(storage.clone(), Random::new(1), true);
        let clock = TestEnv::new(2);
        let (builder, other) = (Db::open(paused, TestEnv::new(1)), Db::open(storage.clone(), Rc::clone(&clock)));
        other.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        other.insert("c", &(0..30).map(|n| row(n, n)).collect::<Vec<_>>()).await;
        other.ok(rawdoc! { "flush": 1 }).await;
        Two { storage, builder, other, clock }
    }

    async fn listed(&self) -> usize {
        let reply = self.other.ok(rawdoc! { "listIndexes": "c" }).await;
        reply.get_document("cursor").unwrap().get_array("firstBatch").unwrap().len()
    }

    /// The number of incomplete indexes in the catalog entry.
    async fn unfinished(&self) -> usize {
        let fresh = Db::open(self.storage.clone(), TestEnv::new(3));
        let entry = fresh.engine.existing_collection("c").await.unwrap().entry();
        entry.specs.iter().filter(|spec| !spec.ready).count()
    }

    /// The error code of a measurement with an array on the indexed path.
    async fn array_is_refused_with(&self) -> Option<i32> {
        let reply = self.other.insert("c", &[row(99, bson::rawbson!([1]))]).await;
        let errors = reply.get_array("writeErrors").ok()?;
        Some(errors[0].as_document().unwrap().get_i32("code").unwrap())
    }

    async fn entries_of_other_indexes(&self) -> usize {
        let entries = checks::keys(&*self.storage, b"I").await;
        entries.iter().filter(|entry| entry.key[9..11] != [0, 1]).count()
    }
}

/// Polls a command a number of times, or until it is done.
fn poll(running: &mut std::pin::Pin<Box<impl Future<Output = Document>>>, times: usize) -> Option<Document> {
    let waker = noop_waker();
    let mut context = Context::from_waker(&waker);
    (0..times).find_map(|_| match running.as_mut().poll(&mut context) {
        Poll::Ready(reply) => Some(reply),
        Poll::Pending => None,
    })
}

#[test]
fn an_interrupted_index_build_is_removed_by_a_later_index_command() {
    let (mut broken, mut done) = (0, false);
    for times in (0..).take_while(|times| *times < 2000) {
        if done {
            break;
        }
        block_on(async {
            let two = Two::new().await;
            let mut building = Box::pin(two.builder.command(make("x")));
            done = poll(&mut building, times).is_some();
            drop(building);
            if done || two.unfinished().await == 0 {
                return;
            }
            broken += 1;
            assert_eq!((two.listed().await, two.unfinished().await), (1, 1), "it may still be built");
            assert_eq!(two.array_is_refused_with().await, Some(5_930_501));
            two.clock.now_ms.set(two.clock.now_ms.get() + INDEX_BUILD_MS_MAX + 1);
            match broken % 3 {
                0 => assert_eq!(two.listed().await, 1),
                1 => drop(two.other.ok(rawdoc! { "dropIndexes": "c", "index": "m_1_t_1" }).await),
                _ => {
                    let index = rawdoc! { "key": { "y": 1 }, "name": "y" };
                    two.other.ok(rawdoc! { "createIndexes": "c", "indexes": [index] }).await;
                    two.other.ok(rawdoc! { "dropIndexes": "c", "index": "y" }).await;
                }
            }
            assert_eq!((two.unfinished().await, two.entries_of_other_indexes().await), (0, 0));
            assert_eq!(two.array_is_refused_with().await, None);
            checks::sound_when_folded(&*two.storage, &two.other, "c", Writers::Several).await;
        });
    }
    assert!(done && broken > 2, "{broken} builds were broken off");
}

#[test]
fn an_interrupted_index_build_is_restarted_by_the_next_create_indexes() {
    for times in [20, 30, 40, 60] {
        block_on(async {
            let two = Two::new().await;
            drop(poll(&mut Box::pin(two.builder.command(make("x"))), times));
            two.other.ok(make("x")).await;
            assert_eq!((two.listed().await, two.unfinished().await), (2, 0));
            assert_eq!(two.other.find(rawdoc! { "find": "c", "hint": "x" }).await.len(), 30);
        });
    }
}

#[test]
fn a_builder_that_exceeds_its_time_ends_with_a_conflict_or_a_complete_index() {
    let mut outcomes = [0, 0];
    for times in 0..150 {
        block_on(async {
            let two = Two::new().await;
            let mut building = Box::pin(two.builder.command(make("x")));
            let early = poll(&mut building, times);
            two.clock.now_ms.set(two.clock.now_ms.get() + INDEX_BUILD_MS_MAX + 1);
            two.listed().await;
            let reply = early.or_else(|| poll(&mut building, 10_000)).unwrap();
            let succeeded = reply.get_f64("ok").unwrap() == 1.0;
            assert!(succeeded || reply.get_i32("code").unwrap() == 112, "{reply}");
            outcomes[usize::from(succeeded)] += 1;
            assert_eq!((two.listed().await, two.unfinished().await), (1 + usize::from(succeeded), 0));
            if succeeded {
                assert_eq!(two.other.find(rawdoc! { "find": "c", "hint": "x" }).await.len(), 30);
            }
            checks::sound(&two.other, "c", Writers::Several).await;
        });
    }
    assert!(outcomes.iter().all(|n| *n > 0), "{outcomes:?}");
}

#[test]
fn two_contexts_that_create_the_same_index_at_once_both_succeed() {
    // The later one replaced the index that the earlier one was building, which then ended with a conflict.
    for times in (0..150).step_by(3) {
        block_on(async {
            let two = Two::new().await;
            let mut building = Box::pin(two.builder.command(make("x")));
            let early = poll(&mut building, times);
            two.other.ok(make("x")).await;
            two.other.insert("c", &[row(30, 30)]).await;
            two.other.ok(rawdoc! { "flush": 1 }).await;
            let reply = early.or_else(|| poll(&mut building, 10_000)).unwrap();
            assert!(reply.get_f64("ok").is_ok_and(|ok| ok == 1.0), "after {times} steps: {reply}");
            assert_eq!((two.listed().await, two.unfinished().await), (2, 0));
            assert_eq!(two.other.find(rawdoc! { "find": "c", "hint": "x" }).await.len(), 31);
            checks::sound(&two.other, "c", Writers::Several).await;
        });
    }
}
