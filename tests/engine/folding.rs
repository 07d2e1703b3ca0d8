//! Folds in steps, interrupted and resumed, and what readers and deletes see meanwhile.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bson::{DateTime, RawDocumentBuf, rawdoc};
use futures::executor::block_on;
use timepail::engine::keyspace::{FIRST_EPOCH, folded_between};
use timepail::error::{Error, ErrorCode};
use timepail::limits::{CURSOR_IDLE_MS_MAX, FOLD_STEP_BUCKETS, FOLD_STEP_ROWS};
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Bytes, Change, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};

use crate::support::{Db, TestEnv};

/// Counts the changes of each commit, and refuses all commits from a given one on.
struct Metered {
    inner: MemoryStorage,
    commits: RefCell<Vec<usize>>,
    left: Cell<usize>,
    reads: Cell<usize>,
}

impl Metered {
    fn new(inner: &MemoryStorage) -> Rc<Metered> {
        let (commits, left, reads) = (RefCell::default(), Cell::new(usize::MAX), Cell::new(0));
        Rc::new(Metered { inner: inner.clone(), commits, left, reads })
    }
}

impl Storage for Metered {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        self.reads.set(self.reads.get() + keys.len());
        self.inner.get_many(keys)
    }
    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        self.inner.scan(ranges, page)
    }
    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        if self.left.get() == 0 {
            return Box::pin(async { Err(Error::new(ErrorCode::InterruptedAtShutdown, "No more commits")) });
        }
        self.left.set(self.left.get() - 1);
        self.commits.borrow_mut().push(changes.changes().len());
        self.inner.commit(changes)
    }
}

async fn keys(storage: &dyn Storage, prefix: &[u8]) -> Vec<Bytes> {
    let range = KeyRange::prefix(prefix);
    let page = Page { entries_max: 100_000, keys_only: true };
    storage.scan(&[range], page).await.unwrap().into_iter().map(|entry| entry.key).collect()
}

fn reading(series: usize, seconds: i64) -> RawDocumentBuf {
    rawdoc! { "t": DateTime::from_millis(seconds * 1000), "m": format!("s{series}"), "x": seconds as f64 }
}

async fn created(db: &Db) {
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
}

/// One row of each of `series` series.
async fn add(db: &Db, series: usize, seconds: i64) {
    let docs: Vec<_> = (0..series).map(|s| reading(s, seconds)).collect();
    assert!(!db.insert("c", &docs).await.contains_key("writeErrors"));
}

async fn count(db: &Db, filter: RawDocumentBuf) -> usize {
    db.find(rawdoc! { "find": "c", "filter": filter, "batchSize": 10_000 }).await.len()
}

async fn delete(db: &Db, filter: RawDocumentBuf) -> i32 {
    let reply = db.ok(rawdoc! { "delete": "c", "deletes": [{ "q": filter, "limit": 0 }] }).await;
    assert!(!reply.contains_key("writeErrors"), "{reply}");
    reply.get_i32("n").unwrap()
}

const SERIES: usize = 3 * FOLD_STEP_BUCKETS;

#[test]
fn a_fold_of_many_buckets_commits_in_steps_between_which_inserts_run() {
    block_on(async {
        let storage = Metered::new(&MemoryStorage::new());
        let db = Db::open(storage.clone(), TestEnv::new(1));
        created(&db).await;
        add(&db, SERIES, 0).await;
        storage.commits.borrow_mut().clear();
        db.ok(rawdoc! { "flush": 1 }).await;
        let commits = storage.commits.borrow().clone();
        assert_eq!(commits.len(), 3);
        // The epoch, a bucket with its index entry each, and the records.
        assert!(commits.iter().all(|changes| *changes <= 3 + 2 * FOLD_STEP_BUCKETS + 1), "{commits:?}");
        assert!(keys(&*storage, b"J").await.is_empty());
    });
}

#[test]
fn a_step_of_a_fold_has_a_maximum_number_of_rows() {
    block_on(async {
        let storage = Metered::new(&MemoryStorage::new());
        let db = Db::open(storage.clone(), TestEnv::new(1));
        created(&db).await;
        for series in 0..20 {
            let docs: Vec<_> = (0..1000).map(|n| reading(series, n)).collect();
            db.insert("c", &docs).await;
        }
        storage.commits.borrow_mut().clear();
        db.ok(rawdoc! { "flush": 1 }).await;
        assert_eq!(storage.commits.borrow().len(), 20_000_usize.div_ceil(FOLD_STEP_ROWS));
        assert_eq!(count(&db, rawdoc! {}).await, 20_000);
    });
}

#[test]
fn adding_rows_to_a_bucket_is_one_put_and_keeps_its_index_entry() {
    block_on(async {
        let storage = Metered::new(&MemoryStorage::new());
        let db = Db::open(storage.clone(), TestEnv::new(1));
        created(&db).await;
        add(&db, 10, 0).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        add(&db, 10, 60).await;
        storage.commits.borrow_mut().clear();
        storage.reads.set(0);
        db.ok(rawdoc! { "flush": 1 }).await;
        assert_eq!(*storage.commits.borrow(), [3 + 10 + 1], "the epoch, ten buckets, the records");
        assert_eq!(storage.reads.get(), 0, "buckets that this context wrote are in memory");
    });
}

#[test]
fn buckets_opened_by_this_context_are_folded_without_a_fetch() {
    block_on(async {
        let storage = Metered::new(&MemoryStorage::new());
        let db = Db::open(storage.clone(), TestEnv::new(1));
        created(&db).await;
        storage.reads.set(0);
        add(&db, 50, 0).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        assert_eq!(storage.reads.get(), 0);
    });
}

#[test]
fn a_fold_interrupted_after_any_step_hides_and_doubles_nothing_and_can_be_resumed() {
    block_on(async {
        for steps in 0..3 {
            let memory = MemoryStorage::new();
            let storage = Metered::new(&memory);
            let env = TestEnv::new(1);
            let db = Db::open(storage.clone(), Rc::clone(&env));
            created(&db).await;
            add(&db, SERIES, 0).await;
            add(&db, SERIES, 1).await;
            storage.left.set(steps);
            assert_eq!(db.command(rawdoc! { "flush": 1 }).await.get_f64("ok").unwrap(), 0.0);
            assert_eq!(keys(&memory, b"B").await.len(), steps * FOLD_STEP_BUCKETS);
            assert_eq!(count(&db, rawdoc! {}).await, 2 * SERIES);
            let second = Db::open(Rc::new(memory.clone()), Rc::clone(&env));
            assert_eq!(count(&second, rawdoc! {}).await, 2 * SERIES);
            assert_eq!(count(&second, rawdoc! { "m": "s0" }).await, 2);
            // The first context resumes, unaware of the other context's fold.
            second.ok(rawdoc! { "foldJournals": 1 }).await;
            assert!(keys(&memory, b"J").await.is_empty());
            storage.left.set(usize::MAX);
            add(&db, SERIES, 2).await;
            for db in [&db, &second] {
                assert_eq!(count(db, rawdoc! {}).await, 3 * SERIES);
                assert_eq!(count(db, rawdoc! { "m": "s0" }).await, 3);
            }
        }
    });
}

#[test]
fn measurements_beside_an_interrupted_fold_are_found_once_by_each_time_range() {
    block_on(async {
        let storage = Metered::new(&MemoryStorage::new());
        let db = Db::open(storage.clone(), TestEnv::new(1));
        let series = rawdoc! { "timeField": "t", "metaField": "m" };
        db.ok(rawdoc! { "create": "c", "timeseries": series, "dedupe": { "keep": "last" } }).await;
        add(&db, SERIES, 1).await;
        db.ok(rawdoc! { "flush": 1 }).await;
        add(&db, SERIES, 2).await;
        // The generation, then one step of the fold.
        storage.left.set(2);
        assert_eq!(db.command(rawdoc! { "flush": 1 }).await.get_f64("ok").unwrap(), 0.0);
        let second = DateTime::from_millis(2000);
        // What the first of these has found out about measurements, the others must not take for theirs.
        for _ in 0..2 {
            assert_eq!(count(&db, rawdoc! {}).await, 2 * SERIES);
            assert_eq!(count(&db, rawdoc! { "t": { "$lt": second } }).await, SERIES);
            assert_eq!(count(&db, rawdoc! { "t": { "$gte": second } }).await, SERIES);
        }
    });
}

#[test]
fn records_of_a_fold_interrupted_long_ago_are_not_folded_twice() {
    block_on(async {
        let memory = MemoryStorage::new();
        let storage = Metered::new(&memory);
        let env = TestEnv::new(1);
        let db = Db::open(storage.clone(), Rc::clone(&env));
        created(&db).await;
        add(&db, SERIES, 0).await;
        storage.left.set(1);
        db.command(rawdoc! { "flush": 1 }).await;
        // Much later, other contexts reopen its buckets.
        env.now_ms.set(env.now_ms.get() + 3 * CURSOR_IDLE_MS_MAX);
        let second = Db::open(Rc::new(memory.clone()), Rc::clone(&env));
        add(&second, SERIES, 1).await;
        second.ok(rawdoc! { "flush": 1 }).await;
        env.now_ms.set(env.now_ms.get() + 3 * CURSOR_IDLE_MS_MAX);
        add(&second, SERIES, 2).await;
        second.ok(rawdoc! { "flush": 1 }).await;
        second.ok(rawdoc! { "foldJournals": 1 }).await;
        assert_eq!(count(&second, rawdoc! {}).await, 3 * SERIES);
    });
}

#[test]
fn a_half_folded_bucket_is_folded_before_it_is_deleted() {
    block_on(async {
        for steps in 1..3 {
            let memory = MemoryStorage::new();
            let storage = Metered::new(&memory);
            let env = TestEnv::new(1);
            let db = Db::open(storage.clone(), Rc::clone(&env));
            created(&db).await;
            add(&db, SERIES, 0).await;
            storage.left.set(steps);
            db.command(rawdoc! { "flush": 1 }).await;
            let second = Db::open(Rc::new(memory.clone()), Rc::clone(&env));
            assert_eq!(delete(&second, rawdoc! { "m": { "$in": ["s0", "s1"] } }).await, 2);
            assert_eq!(count(&second, rawdoc! {}).await, SERIES - 2);
            storage.left.set(usize::MAX);
            db.ok(rawdoc! { "flush": 1 }).await;
            assert_eq!(count(&db, rawdoc! {}).await, SERIES - 2);
            assert_eq!(count(&second, rawdoc! { "m": "s0" }).await, 0);
        }
    });
}

#[test]
fn a_flush_during_a_fold_also_folds_later_inserts() {
    block_on(async {
        let storage = Metered::new(&MemoryStorage::new());
        let db = Db::open(storage.clone(), TestEnv::new(1));
        created(&db).await;
        add(&db, 2, 0).await;
        let (first, second) = (db.engine.flush(), async {
            add(&db, 2, 1).await;
            db.engine.flush().await
        });
        let (first, second) = futures::future::join(first, second).await;
        first.and(second).unwrap();
        assert!(keys(&*storage, b"J").await.is_empty());
        assert_eq!(count(&db, rawdoc! {}).await, 4);
    });
}

#[test]
fn every_commit_that_changes_a_bucket_increments_the_epoch() {
    block_on(async {
        let memory = MemoryStorage::new();
        let db = Db::open(Rc::new(memory.clone()), TestEnv::new(1));
        let epoch = async || {
            let markers = keys(&memory, b"M").await;
            assert_eq!(markers.len(), 2 + 16, "the collection exists, its epoch, and those in reserve");
            let epoch = &markers[1];
            u64::from_be_bytes(epoch[epoch.len() - 8..].try_into().unwrap())
        };
        created(&db).await;
        assert_eq!(epoch().await, FIRST_EPOCH);
        add(&db, 2, 0).await;
        assert_eq!(epoch().await, FIRST_EPOCH, "an insert changes no bucket");
        db.ok(rawdoc! { "flush": 1 }).await;
        let folded = epoch().await;
        assert_eq!(folded_between(FIRST_EPOCH, folded), Some(1), "a fold of one record");
        assert!(folded > FIRST_EPOCH);
        assert_eq!(delete(&db, rawdoc! { "m": "s0" }).await, 1);
        let deleted = epoch().await;
        assert!(deleted > folded && folded_between(folded, deleted).is_none());
        assert_eq!(delete(&db, rawdoc! { "m": "s0" }).await, 0);
        db.ok(rawdoc! { "flush": 1 }).await;
        assert_eq!(epoch().await, deleted, "nothing was to do");
    });
}

#[test]
fn of_two_writers_at_the_same_epoch_one_conflicts_and_retries() {
    /// Another context folds before the first commit.
    struct Overtaken {
        inner: MemoryStorage,
        other: RefCell<Option<Db>>,
        conflicts: Cell<usize>,
    }
    impl Storage for Overtaken {
        fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
            self.inner.get_many(keys)
        }
        fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
            self.inner.scan(ranges, page)
        }
        fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
            let other =
                self.other.borrow_mut().take_if(|_| changes.changes().iter().any(|c| matches!(c, Change::Insert(..))));
            Box::pin(async move {
                if let Some(other) = other {
                    other.ok(rawdoc! { "foldJournals": 1 }).await;
                }
                let outcome = self.inner.commit(changes).await;
                self.conflicts.set(self.conflicts.get() + usize::from(outcome.is_err()));
                outcome
            })
        }
    }
    block_on(async {
        let (inner, env) = (MemoryStorage::new(), TestEnv::new(1));
        let storage = Rc::new(Overtaken { inner: inner.clone(), other: RefCell::default(), conflicts: Cell::new(0) });
        let db = Db::open(storage.clone(), Rc::clone(&env));
        created(&db).await;
        add(&db, 3, 0).await;
        *storage.other.borrow_mut() = Some(Db::open(Rc::new(inner), env));
        db.ok(rawdoc! { "flush": 1 }).await;
        assert_eq!(storage.conflicts.get(), 1);
        assert_eq!(count(&db, rawdoc! {}).await, 3);
        assert_eq!(db.find(rawdoc! { "find": "system.buckets.c" }).await.len(), 3);
    });
}

#[test]
fn an_epoch_identifies_the_changeset_that_began_it() {
    block_on(async {
        // Two contexts begin the same epoch: one whose answer was lost must not mistake the other's changeset for its own.
        let mut values = Vec::new();
        for seed in [1, 2] {
            let storage = Rc::new(MemoryStorage::new());
            let db = Db::open(storage.clone(), TestEnv::new(seed));
            db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t" } }).await;
            db.insert("c", &[rawdoc! { "t": DateTime::from_millis(0), "n": 1 }]).await;
            db.ok(rawdoc! { "flush": 1 }).await;
            let markers = [KeyRange::prefix(b"M")];
            let page = Page { entries_max: 100, keys_only: false };
            let entries = storage.scan(&markers, page).await.unwrap();
            values.extend(entries.into_iter().map(|entry| entry.value).filter(|value| value.len() == 8));
        }
        assert_eq!(values.len(), 2, "an epoch each");
        assert_ne!(values[0], values[1]);
    });
}
