//! A sorted map of bytes with atomic batches. Nothing more, and no word of BSON.
//!
//! Keys sort by bytes; ranges are half-open; pages are owned data. No cursor or transaction lives across an await.

#[cfg(target_arch = "wasm32")]
mod evidence;
pub(crate) mod guard;
// What the host keeps its entries in, such as SQLite.
#[cfg(target_arch = "wasm32")]
pub mod host;
// IndexedDB, in pages and workers of a browser.
#[cfg(target_arch = "wasm32")]
pub mod idb;
// A map in memory, for tests and for runtimes that keep nothing.
pub mod memory;
#[cfg(target_arch = "wasm32")]
mod thrown;

use std::future::Future;
use std::pin::Pin;

use crate::error::Result;

/// A key or a value.
pub type Bytes = Vec<u8>;

/// What a storage method returns. Not `Send`: a realm of JavaScript has one thread.
pub type LocalFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;

/// Keys in `[start, end)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// First key of the range.
    pub start: Bytes,
    /// First key behind the range.
    pub end: Bytes,
}

impl KeyRange {
    /// Every key that begins with `prefix`: ends at the prefix counted up by one.
    ///
    /// A prefix of 0xFF bytes alone has no such end; the key space has no such prefix.
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

/// How much of a scan to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Page {
    /// At most this many entries; above zero.
    pub entries_max: usize,
    /// Answer empty values: the caller wants to know the keys only.
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
    /// Remove the key; absent is fine.
    Delete(Bytes),
    /// Remove every key of the range.
    DeleteRange(KeyRange),
    /// Set the key, which must not exist when the commit begins.
    Insert(Bytes, Bytes),
    /// The key must exist when the commit begins.
    Require(Bytes),
    /// As `Require`, but what the changeset puts may be there all the same when it has failed.
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

/// One atomic write: all of it or nothing. Guards are judged against the state before the changeset.
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
    /// The commit fails with `WriteConflict` if `key` does not exist, and what it puts may then be there all the same.
    ///
    /// For puts that mean nothing without that key: a backend need not keep the transaction open until it knows.
    pub fn expect(&mut self, key: Bytes) {
        self.changes.push(Change::Expect(key));
    }
    /// Adds a change.
    pub fn push(&mut self, change: Change) {
        self.changes.push(change);
    }
    /// True if nothing would happen.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }
    /// The writes, in the order given; a later one wins over an earlier one on the same key.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }
    /// The writes, by value.
    pub fn into_changes(self) -> Vec<Change> {
        self.changes
    }
}

/// A backend: a sorted map of bytes with atomic batches. Every backend passes `tests/contract/`.
pub trait Storage {
    /// Values of `keys`, in the order asked; `None` if absent. One consistent snapshot.
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>>;

    /// Entries of `ranges`, range after range in the order given, keys ascending inside each; at most `page.entries_max`
    /// in all; fewer means that every range is done. One consistent snapshot.
    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>>;

    /// A scan for keys only, which may bring values of the range at `place` along: of as many of its first entries as the backend likes. An
    /// empty value was not brought, so no value of that range is empty in storage. For backends to which every turn is dear.
    fn scan_ahead<'a>(
        &'a self,
        ranges: &'a [KeyRange],
        entries_max: usize,
        place: usize,
    ) -> LocalFuture<'a, Vec<Entry>> {
        let _ = place;
        self.scan(ranges, Page { entries_max, keys_only: true })
    }

    /// All of `changes` or none of them; resolves when durable. A failed guard is `WriteConflict`.
    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()>;
}
