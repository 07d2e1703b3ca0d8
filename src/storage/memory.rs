//! A map in memory: for tests, for Node, and for data that need not persist.
//!
//! Entries are kept in one sorted list. An insert moves all entries after it, some 50 bytes each: with twenty thousand
//! entries, as many as buckets of twenty million measurements, that is a twentieth of a millisecond. A tree would add
//! three kilobytes to the module.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use super::{Bytes, Change, Changeset, Entry, KeyRange, LocalFuture, Page, Storage, guard};
use crate::error::Result;

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
    entries: Rc<RefCell<Vec<Entry>>>,
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
        ranges
            .iter()
            .flat_map(|range| entries.get(within(&entries, range)).unwrap_or_default())
            .take(page.entries_max)
            .map(|entry| match page.keys_only {
                true => Entry { key: entry.key.clone(), value: Bytes::new() },
                false => entry.clone(),
            })
            .collect()
    }
}

/// The position of `key` in a sorted list, or where it would be inserted.
fn place(entries: &[Entry], key: &[u8]) -> std::result::Result<usize, usize> {
    entries.binary_search_by(|entry| entry.key.as_slice().cmp(key))
}

/// The positions of the entries in `range`, which may be empty.
fn within(entries: &[Entry], range: &KeyRange) -> Range<usize> {
    let [start, end] = [&range.start, &range.end].map(|key| place(entries, key).unwrap_or_else(|at| at));
    start..end.max(start)
}

/// The value of `key` in a sorted list.
pub(super) fn get<'a>(entries: &'a [Entry], key: &[u8]) -> Option<&'a Bytes> {
    entries.get(place(entries, key).ok()?).map(|entry| &entry.value)
}

/// Applies one write to a sorted list, without its guard.
pub(super) fn apply(entries: &mut Vec<Entry>, change: Change) {
    match change {
        Change::Put(key, value) | Change::Insert(key, value) => match place(entries, &key) {
            Ok(at) => {
                if let Some(entry) = entries.get_mut(at) {
                    entry.value = value;
                }
            }
            Err(at) => entries.insert(at, Entry { key, value }),
        },
        Change::Delete(key) => {
            if let Ok(at) = place(entries, &key) {
                entries.remove(at);
            }
        }
        Change::DeleteRange(range) => {
            let doomed = within(entries, &range);
            entries.drain(doomed);
        }
        Change::Require(_) | Change::Expect(_) => {}
    }
}

impl Storage for MemoryStorage {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        Box::pin(async move {
            let entries = self.entries.borrow();
            Ok(keys.iter().map(|key| get(&entries, key).cloned()).collect())
        })
    }

    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        Box::pin(async move { Ok(self.page(ranges, page)) })
    }

    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        Box::pin(async move { self.apply(changes) })
    }
}
