//! Refreshes that overtake each other, and inserts that are answered late.

use std::cell::Cell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use bson::{DateTime, RawDocumentBuf, rawdoc};
use futures::executor::block_on;

use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Bytes, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};

use crate::support::{Db, TestEnv};

/// Delays answers: requests are read at once, and answered when the gate opens.
struct Gated {
    inner: MemoryStorage,
    hold_scan: Cell<bool>,
    hold_get: Cell<bool>,
    scan_open: Rc<Cell<bool>>,
    get_open: Rc<Cell<bool>>,
    hold_commit: Cell<bool>,
    commit_open: Rc<Cell<bool>>,
}

impl Gated {
    fn new(inner: &MemoryStorage) -> Rc<Gated> {
        let [hold_scan, hold_get, hold_commit] = [0; 3].map(|_| Cell::new(false));
        let [scan_open, get_open, commit_open] = [0; 3].map(|_| Rc::default());
        Rc::new(Gated { inner: inner.clone(), hold_scan, hold_get, scan_open, get_open, hold_commit, commit_open })
    }
}

async fn wait(open: Rc<Cell<bool>>) {
    poll_fn(move |_| if open.get() { Poll::Ready(()) } else { Poll::Pending }).await;
}

impl Storage for Gated {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        let hold = self.hold_get.replace(false);
        Box::pin(async move {
            let found = self.inner.get_many(keys).await;
            if hold {
                wait(Rc::clone(&self.get_open)).await;
            }
            found
        })
    }
    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        let hold = self.hold_scan.replace(false);
        Box::pin(async move {
            let found = self.inner.scan(ranges, page).await;
            if hold {
                wait(Rc::clone(&self.scan_open)).await;
            }
            found
        })
    }
    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        let hold = self.hold_commit.replace(false);
        Box::pin(async move {
            let done = self.inner.commit(changes).await;
            if hold {
                wait(Rc::clone(&self.commit_open)).await;
            }
            done
        })
    }
}

fn row(n: i64) -> RawDocumentBuf {
    rawdoc! { "t": DateTime::from_millis(1_000_000 + n * 1000), "m": n as i32, "x": n as f64 }
}

async fn pends<F: Future + Unpin>(f: &mut F) -> bool {
    poll_fn(|context| Poll::Ready(std::pin::Pin::new(&mut *f).poll(context).is_pending())).await
}

async fn seen(db: &Db) -> usize {
    db.find(rawdoc! { "find": "c", "filter": {} }).await.len()
}

#[test]
fn refreshes_that_overtake_each_other_lose_no_record() {
    block_on(async {
        let memory = MemoryStorage::new();
        let gated = Gated::new(&memory);
        let here = Db::open(Rc::clone(&gated) as Rc<dyn Storage>, TestEnv::new(1));
        let other = Db::open(Rc::new(memory.clone()), TestEnv::new(2));
        here.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;

        gated.hold_scan.set(true);
        let mut a = Box::pin(seen(&here));
        assert!(pends(&mut a).await);
        other.insert("c", &[row(1)]).await;
        assert_eq!(seen(&here).await, 1);
        other.insert("c", &[row(2)]).await;
        gated.hold_get.set(true);
        let mut b = Box::pin(seen(&here));
        assert!(pends(&mut b).await);
        gated.scan_open.set(true);
        a.await;
        gated.get_open.set(true);
        assert_eq!(b.await, 2);
        assert_eq!(seen(&here).await, 2);
        // A fold up to a record takes all records before it.
        let nothing = rawdoc! { "delete": "c", "deletes": [{ "q": { "m": 2, "x": 7.0 }, "limit": 0 }] };
        assert_eq!(here.ok(nothing).await.get_i32("n").unwrap(), 0);
        let fresh = Db::open(Rc::new(memory.clone()), TestEnv::new(3));
        assert_eq!((seen(&fresh).await, seen(&other).await, seen(&here).await), (2, 2, 2));
    });
}

#[test]
fn an_insert_answered_after_the_delete_of_its_rows_restores_none() {
    block_on(async {
        let memory = MemoryStorage::new();
        let gated = Gated::new(&memory);
        let here = Db::open(Rc::clone(&gated) as Rc<dyn Storage>, TestEnv::new(1));
        let other = Db::open(Rc::new(memory.clone()), TestEnv::new(2));
        here.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
        gated.hold_commit.set(true);
        let rows = [row(1)];
        let mut insert = Box::pin(here.insert("c", &rows));
        while gated.hold_commit.get() {
            assert!(pends(&mut insert).await);
        }
        assert_eq!((seen(&other).await, seen(&here).await), (1, 1));
        let all = rawdoc! { "delete": "c", "deletes": [{ "q": {}, "limit": 0 }] };
        assert_eq!(here.ok(all).await.get_i32("n").unwrap(), 1);
        assert_eq!((seen(&other).await, seen(&here).await), (0, 0));
        gated.commit_open.set(true);
        insert.await;
        assert_eq!((seen(&other).await, seen(&here).await), (0, 0));
        here.ok(rawdoc! { "flush": 1 }).await;
        assert_eq!((seen(&other).await, seen(&here).await), (0, 0));
    });
}
