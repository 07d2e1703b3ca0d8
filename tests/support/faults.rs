//! Storage that lets others in around each of its calls, and fails some of them, before or after they were done.

use std::cell::Cell;
use std::rc::Rc;

use timepail::error::{Error, ErrorCode, Result};
use timepail::storage::{Bytes, Change, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};

use super::Random;
use super::ahead::two_ahead;

/// How often what goes wrong, in percent.
#[derive(Clone, Copy, Default)]
pub struct Rates {
    /// A commit that was not done.
    pub refused: u64,
    /// A commit that was done, although the answer says otherwise.
    pub ambiguous: u64,
    /// A commit after which the next call of anybody fails.
    pub cut_off: u64,
    /// A read.
    pub unread: u64,
}

/// Storage with faults, and with pauses.
pub struct Faulty {
    inner: Rc<dyn Storage>,
    random: Random,
    rates: Cell<Rates>,
    /// Whether other tasks run before and after each call.
    pauses: bool,
    fail_next: Cell<bool>,
    /// Refuses every commit that writes.
    full: Cell<bool>,
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
        })
    }

    /// Changes how often what goes wrong.
    pub fn set(&self, rates: Rates) {
        self.rates.set(rates);
        self.fail_next.set(false);
    }

    /// Takes away all room, or gives some back: without it, commits can only remove.
    pub fn set_full(&self, full: bool) {
        self.full.set(full);
    }

    /// True where there is no room.
    pub fn is_full(&self) -> bool {
        self.full.get()
    }

    /// Runs something without faults.
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
        // Now and then so long that others get through several operations.
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
        Box::pin(self.read(self.inner.get_many(keys)))
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
            self.inner.commit(changes).await?;
            self.pause().await;
            self.fail(rates.ambiguous, "has lost the answer to a commit")?;
            self.fail_next.set(rates.cut_off > 0 && self.random.chance(rates.cut_off));
            Ok(())
        })
    }
}
