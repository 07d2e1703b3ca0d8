//! Storage whose commits end.

use std::cell::Cell;

use timepail::error::{Error, ErrorCode};
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Bytes, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};

/// Memory that refuses all commits when none is left.
pub struct Ending {
    pub inner: MemoryStorage,
    /// How many commits are left.
    pub left: Cell<usize>,
}

impl Storage for Ending {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
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
        self.inner.commit(changes)
    }
}
