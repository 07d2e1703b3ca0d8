//! Storage that yields around each call and fails some calls, before or after they take effect.

use std::cell::Cell;
use std::rc::Rc;

use timepail::error::{Error, ErrorCode, Result};
use timepail::storage::{Bytes, Change, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};

use super::Random;
use super::ahead::two_ahead;

/// The probability of each fault, in percent.
#[derive(Clone, Copy, Default)]
pub struct Rates {
    /// A commit that fails.
    pub refused: u64,
    /// A commit that takes place but reports an error.
    pub ambiguous: u64,
    /// A commit after which the next call of any context fails.
    pub cut_off: u64,
    /// A read that fails.
    pub unread: u64,
}

/// Storage with faults, and with pauses.
pub struct Faulty {
    inner: Rc<dyn Storage>,
    random: Random,
    rates: Cell<Rates>,
    /// True if other tasks run before and after each call.
    pauses: bool,
    fail_next: Cell<bool>,
    /// Refuses every commit that writes.
    full: Cell<bool>,
    /// Keys can be listed, but no value is found by its key.
    unfetched: Cell<bool>,
}

impl Faulty {
    pub fn new(inner: Rc<dyn Storage>, random: Random, pauses: bool) -> Rc<Faulty> {
        Rc::new(Faulty {
            inner,
            random,
            rates: Cell::default(),
            pauses,
            fail_next: Cell::new(false),
            full: Cell::new(false),
            unfetched: Cell::new(false),
        })
    }

    /// Sets the probabilities of faults.
    pub fn set(&self, rates: Rates) {
        self.rates.set(rates);
        self.fail_next.set(false);
    }

    /// Makes the storage full, or not: a full one accepts only commits that remove.
    pub fn set_full(&self, full: bool) {
        self.full.set(full);
    }

    /// Fails each request for values by their keys, or none.
    pub fn set_unfetched(&self, unfetched: bool) {
        self.unfetched.set(unfetched);
    }

    /// True if the storage is full.
    pub fn is_full(&self) -> bool {
        self.full.get()
    }

    /// Runs a future without faults.
    pub async fn without<T>(&self, what: impl Future<Output = T>) -> T {
        let rates = self.rates.replace(Rates::default());
        let fail_next = self.fail_next.replace(false);
        let full = self.full.replace(false);
        let outcome = what.await;
        self.full.set(full);
        self.rates.set(rates);
        self.fail_next.set(fail_next);
        outcome
    }

    async fn pause(&self) {
        if !self.pauses {
            return;
        }
        // Sometimes long enough for others to complete several operations.
        let turns = if self.random.chance(4) { 60 } else { self.random.below(4) };
        for _ in 0..turns {
            timepail::engine::signal::yield_now().await;
        }
    }

    fn fail(&self, percent: u64, what: &str) -> Result<()> {
        if self.fail_next.take() || percent > 0 && self.random.chance(percent) {
            return Err(Error::new(ErrorCode::OperationFailed, format!("The test storage {what}")));
        }
        Ok(())
    }

    async fn read<T>(&self, call: LocalFuture<'_, T>) -> Result<T> {
        self.pause().await;
        self.fail(self.rates.get().unread, "has not read")?;
        let found = call.await;
        self.pause().await;
        found
    }
}

impl Storage for Faulty {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        Box::pin(async move {
            self.fail(if self.unfetched.get() { 100 } else { 0 }, "has not fetched")?;
            self.read(self.inner.get_many(keys)).await
        })
    }
    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        Box::pin(self.read(self.inner.scan(ranges, page)))
    }
    fn scan_ahead<'a>(
        &'a self,
        ranges: &'a [KeyRange],
        entries_max: usize,
        place: usize,
    ) -> LocalFuture<'a, Vec<Entry>> {
        Box::pin(self.read(Box::pin(two_ahead(&*self.inner, ranges, entries_max, place))))
    }
    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        Box::pin(async move {
            self.pause().await;
            let rates = self.rates.get();
            self.fail(rates.refused, "has refused a commit")?;
            let writes = |change: &Change| matches!(change, Change::Put(..) | Change::Insert(..));
            if self.full.get() && changes.changes().iter().any(writes) {
                return Err(Error::new(ErrorCode::OutOfDiskSpace, "The test storage has no room"));
            }
            let unguarded = without_expectations(&changes);
            if let Err(e) = self.inner.commit(changes).await {
                // A storage that does not wait for the answer about an expected key has put the rest by then.
                if let Some(rest) = unguarded.filter(|_| e.code == ErrorCode::WriteConflict && self.random.chance(70)) {
                    self.inner.commit(rest).await?;
                    self.pause().await;
                }
                return Err(e);
            }
            self.pause().await;
            self.fail(rates.ambiguous, "has lost the answer to a commit")?;
            self.fail_next.set(rates.cut_off > 0 && self.random.chance(rates.cut_off));
            Ok(())
        })
    }
}

/// The changes without the keys that are only expected; `None` if there are none.
fn without_expectations(changes: &Changeset) -> Option<Changeset> {
    let mut rest = Changeset::new();
    let is_expectation = |change: &&Change| matches!(change, Change::Expect(_));
    changes.changes().iter().filter(|change| !is_expectation(change)).for_each(|change| rest.push(change.clone()));
    (rest.changes().len() < changes.changes().len()).then_some(rest)
}
