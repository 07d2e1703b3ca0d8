//! A storage that wraps another one, counts requests, and makes chosen commits fail or wait.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use timepail::error::{Error, ErrorCode};
use timepail::storage::{Bytes, Change, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};

/// What happens to a commit.
#[derive(Clone, Debug)]
pub enum Fault {
    /// The commit fails before anything is written.
    Refuse(ErrorCode),
    /// The commit takes place, but its answer is lost: it reports an error.
    Lose(ErrorCode),
    /// The commit yields to other tasks this many times, then takes place.
    Delay(usize),
}

/// Counts of requests, faults included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls of `commit`, empty changesets included.
    pub commits: usize,
    /// Changes of all commits, guards included.
    pub changes: usize,
    /// Keys and values that commits were to write.
    pub bytes_written: usize,
    /// Calls of `get_many` and `scan`.
    pub reads: usize,
    /// Keys and ranges asked for.
    pub requests: usize,
    /// Keys and values answered.
    pub bytes_read: usize,
}

/// A storage around `inner`.
pub struct FaultyStorage {
    inner: Rc<dyn Storage>,
    counts: Cell<Counts>,
    faults: RefCell<BTreeMap<usize, Fault>>,
}

impl FaultyStorage {
    /// A storage that only counts.
    pub fn new(inner: Rc<dyn Storage>) -> Rc<Self> {
        Rc::new(FaultyStorage { inner, counts: Cell::default(), faults: RefCell::default() })
    }

    /// The counts since the beginning, or since `reset`.
    pub fn counts(&self) -> Counts {
        self.counts.get()
    }

    /// Resets all counts and the numbering of commits.
    pub fn reset(&self) {
        self.counts.set(Counts::default());
    }

    /// Applies `fault` to commit number `commit`, counted from zero.
    pub fn inject(&self, commit: usize, fault: Fault) {
        self.faults.borrow_mut().insert(commit, fault);
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }
}

impl Storage for FaultyStorage {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        Box::pin(async move {
            let found = self.inner.get_many(keys).await?;
            self.count(|counts| {
                counts.reads += 1;
                counts.requests += keys.len();
                counts.bytes_read += found.iter().flatten().map(Vec::len).sum::<usize>();
            });
            Ok(found)
        })
    }

    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        Box::pin(async move {
            let entries = self.inner.scan(ranges, page).await?;
            self.count(|counts| {
                counts.reads += 1;
                counts.requests += ranges.len();
                counts.bytes_read += entries.iter().map(|entry| entry.key.len() + entry.value.len()).sum::<usize>();
            });
            Ok(entries)
        })
    }

    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        let number = self.counts.get().commits;
        self.count(|counts| {
            counts.commits += 1;
            counts.changes += changes.changes().len();
            counts.bytes_written += changes.changes().iter().map(written_bytes).sum::<usize>();
        });
        let fault = self.faults.borrow_mut().remove(&number);
        Box::pin(async move {
            match fault {
                None => self.inner.commit(changes).await,
                Some(Fault::Refuse(code)) => Err(Error::new(code, "Injected: nothing is written")),
                Some(Fault::Lose(code)) => {
                    self.inner.commit(changes).await?;
                    Err(Error::new(code, "Injected: everything is written"))
                }
                Some(Fault::Delay(turns)) => {
                    give_way(turns).await;
                    self.inner.commit(changes).await
                }
            }
        })
    }
}

fn written_bytes(change: &Change) -> usize {
    match change {
        Change::Put(key, value) | Change::Insert(key, value) => key.len() + value.len(),
        Change::Delete(_) | Change::DeleteRange(_) | Change::Require(_) | Change::Expect(_) => 0,
    }
}

/// Yields to other tasks `turns` times.
pub async fn give_way(mut turns: usize) {
    poll_fn(|context| {
        if turns == 0 {
            return Poll::Ready(());
        }
        turns -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
