//! A sorted map of bytes with atomic batches. It knows nothing of BSON.
//!
//! Keys sort by bytes; ranges are half-open; a page is a copy of its entries. No cursor or transaction lives across an
//! await.

#[cfg(target_arch = "wasm32")]
mod evidence;
pub(crate) mod guard;
// Storage objects of the host, such as SQLite.
#[cfg(target_arch = "wasm32")]
pub mod host;
// IndexedDB, in pages and workers of a browser.
#[cfg(target_arch = "wasm32")]
pub mod idb;
// A map in memory, for tests and for runtimes without persistence.
pub mod memory;
mod sorted_parts;
#[cfg(target_arch = "wasm32")]
mod thrown;

use std::future::Future;
use std::pin::Pin;

use crate::error::Result;

pub(crate) use sorted_parts::{PartPlace, SortedParts};

/// A key or a value.
pub type Bytes = Vec<u8>;

/// The result of a storage method. Not `Send`: a JavaScript realm has one thread.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;

/// Keys in `[start, end)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// First key of the range.
    pub start: Bytes,
    /// The first key after the range.
    pub end: Bytes,
}

impl KeyRange {
    /// All keys that begin with `prefix`. The range ends at the prefix counted up by one.
    ///
    /// A prefix of only 0xFF bytes has no such end; the key space has no such prefix.
    pub fn prefix(prefix: &[u8]) -> KeyRange {
        let mut end = prefix.to_vec();
        while let Some(last) = end.pop() {
            if last < 0xFF {
                end.push(last + 1);
                break;
            }
        }
        KeyRange { start: prefix.to_vec(), end }
    }

    /// True if no key can lie inside. IndexedDB refuses such a range, so adapters answer it themselves.
    pub fn is_empty(&self) -> bool {
        self.start >= self.end
    }
}

/// The limits of one page of a scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// At most this many entries; above zero.
    pub entries_max: usize,
    /// Return empty values, because the caller needs only the keys.
    pub keys_only: bool,
}

/// A key and its value (empty if only keys were asked for).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: Bytes,
    /// The value.
    pub value: Bytes,
}

/// One write of a changeset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Set the key, whether it exists or not.
    Put(Bytes, Bytes),
    /// Remove the key, if it exists.
    Delete(Bytes),
    /// Remove every key of the range.
    DeleteRange(KeyRange),
    /// Set the key, which must not exist when the commit begins.
    Insert(Bytes, Bytes),
    /// The key must exist when the commit begins.
    Require(Bytes),
    /// As `Require`, but if it fails, what the changeset puts may still be written.
    Expect(Bytes),
}

impl Change {
    /// The key that must not exist.
    #[cfg(target_arch = "wasm32")]
    fn inserted_key(&self) -> Option<&[u8]> {
        match self {
            Change::Insert(key, _) => Some(key),
            _ => None,
        }
    }
}

/// One atomic write: all of it or nothing. Guards are judged against the state before the changeset (I32).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Changeset {
    changes: Vec<Change>,
}

impl Changeset {
    /// An empty changeset.
    pub fn new() -> Self {
        Self::default()
    }
    /// Sets `key`.
    pub fn put(&mut self, key: Bytes, value: Bytes) {
        self.changes.push(Change::Put(key, value));
    }
    /// Removes `key`.
    pub fn delete(&mut self, key: Bytes) {
        self.changes.push(Change::Delete(key));
    }
    /// Removes every key of `range`.
    pub fn delete_range(&mut self, range: KeyRange) {
        self.changes.push(Change::DeleteRange(range));
    }
    /// Sets `key`; the commit fails with `WriteConflict` if it exists already.
    pub fn insert(&mut self, key: Bytes, value: Bytes) {
        self.changes.push(Change::Insert(key, value));
    }
    /// The commit fails with `WriteConflict` if `key` does not exist.
    pub fn require(&mut self, key: Bytes) {
        self.changes.push(Change::Require(key));
    }
    /// The commit fails with `WriteConflict` if `key` does not exist; what it puts may still be written then.
    ///
    /// For puts that mean nothing without that key: a backend need not keep the transaction open to wait for the guard.
    pub fn expect(&mut self, key: Bytes) {
        self.changes.push(Change::Expect(key));
    }
    /// Adds a change.
    pub fn push(&mut self, change: Change) {
        self.changes.push(change);
    }
    /// True if the changeset does nothing.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
    /// The changes in the given order; a later one wins over an earlier one on the same key.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }
    /// The changes, by value.
    pub fn into_changes(self) -> Vec<Change> {
        self.changes
    }
}

/// A storage backend: a sorted map of bytes with atomic batches. Every backend passes `tests/contract/`.
pub trait Storage {
    /// Values of `keys` in the given order; `None` if absent. Reads one consistent snapshot.
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>>;

    /// Entries of `ranges`, range after range in the given order, with keys ascending inside each. At most
    /// `page.entries_max` in all; fewer means that every range is exhausted. Reads one consistent snapshot.
    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>>;

    /// Scans keys, and may also return the values of the first entries of the range at `place`; the backend decides of how
    /// many. An empty value means that it was not read, so the values in storage must not be empty. This is for backends
    /// with expensive requests.
    fn scan_ahead<'a>(
        &'a self,
        ranges: &'a [KeyRange],
        entries_max: usize,
        place: usize,
    ) -> LocalFuture<'a, Vec<Entry>> {
        let _ = place;
        self.scan(ranges, Page { entries_max, keys_only: true })
    }

    /// Commits all of `changes` or none of them; resolves when durable. Errors: `WriteConflict` if a guard fails.
    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()>;

    /// True if a commit that succeeds is answered by an event of the host, whose event loop has had a turn by then.
    fn answers_by_event(&self) -> bool {
        false
    }
}
