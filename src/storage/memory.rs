//! A map in memory: for tests, for Node, and for data that need not persist.
//!
//! Entries are kept in a sorted list.

use std::cell::RefCell;
use std::rc::Rc;

use super::sorted_parts::{PartPlace, SortedParts};
use super::{Bytes, Change, Changeset, Entry, KeyRange, LocalFuture, Page, Storage, guard};
use crate::error::Result;
use crate::listed::IntoList;

/// A map in memory. A clone is a second handle to the same map, as a second tab is to one database.
///
/// ```
/// use timepail::storage::memory::MemoryStorage;
/// let first_tab = MemoryStorage::new();
/// let second_tab = first_tab.clone();
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryStorage {
    /// Ascending by key.
    entries: Rc<RefCell<SortedParts<Entry>>>,
}

impl MemoryStorage {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    fn apply(&self, changes: Changeset) -> Result<()> {
        let mut entries = self.entries.borrow_mut();
        // Every guard is judged before anything changes: this makes the changeset atomic (I32).
        for change in changes.changes() {
            match change {
                Change::Insert(key, _) if get(&entries, key).is_some() => return Err(guard::exists_already(key)),
                Change::Require(key) | Change::Expect(key) if get(&entries, key).is_none() => {
                    return Err(guard::is_gone(key));
                }
                _ => {}
            }
        }
        for change in changes.into_changes() {
            apply(&mut entries, change);
        }
        Ok(())
    }

    fn page(&self, ranges: &[KeyRange], page: Page) -> Vec<Entry> {
        let entries = self.entries.borrow();
        let mut found = Vec::new();
        for range in ranges {
            entries.visit(place(&entries, &range.start), &mut |entry| {
                let is_in = found.len() < page.entries_max && entry.key < range.end;
                if is_in {
                    let value = if page.keys_only { Bytes::new() } else { entry.value.clone() };
                    found.push(Entry { key: entry.key.clone(), value });
                }
                is_in
            });
        }
        found
    }
}

/// The place of the first entry whose key is `key` or behind it.
fn place(entries: &SortedParts<Entry>, key: &[u8]) -> PartPlace {
    entries.place(&|entry| entry.key.as_slice() < key)
}

/// The value of `key` in a sorted list.
pub(super) fn get<'a>(entries: &'a SortedParts<Entry>, key: &[u8]) -> Option<&'a Bytes> {
    entries.get(place(entries, key)).filter(|entry| entry.key == key).map(|entry| &entry.value)
}

/// Applies one write to a sorted list, without its guard.
pub(super) fn apply(entries: &mut SortedParts<Entry>, change: Change) {
    match change {
        Change::Put(key, value) | Change::Insert(key, value) => {
            let place = place(entries, &key);
            match entries.get_mut(place).filter(|entry| entry.key == key) {
                Some(entry) => entry.value = value,
                None => entries.insert(place, Entry { key, value }),
            }
        }
        Change::Delete(key) => {
            let place = place(entries, &key);
            if entries.get(place).is_some_and(|entry| entry.key == key) {
                entries.remove(place);
            }
        }
        Change::DeleteRange(range) => {
            entries.remove_before(place(entries, &range.end), &mut |entry| entry.key >= range.start);
        }
        Change::Require(_) | Change::Expect(_) => {}
    }
}

impl Storage for MemoryStorage {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        Box::pin(async move {
            let entries = self.entries.borrow();
            Ok(keys.iter().map(|key| get(&entries, key).cloned()).listed())
        })
    }

    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        Box::pin(async move { Ok(self.page(ranges, page)) })
    }

    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        Box::pin(async move { self.apply(changes) })
    }
}
