//! The storage of tests, of Node, and of whoever needs nothing kept: a map in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Bound;
use std::rc::Rc;

use super::{Bytes, Change, Changeset, Entry, KeyRange, LocalFuture, Page, Storage, guard};
use crate::error::Result;

/// A map in memory. A clone is a second handle on the same map, as a second tab is on one database.
///
/// ```
/// use timepail::storage::memory::MemoryStorage;
/// let first_tab = MemoryStorage::new();
/// let second_tab = first_tab.clone();
/// ```
#[derive(Clone, Debug, Default)]
pub struct MemoryStorage {
    map: Rc<RefCell<BTreeMap<Bytes, Bytes>>>,
}

impl MemoryStorage {
    /// An empty map.
    pub fn new() -> Self {
        Self::default()
    }

    fn apply(&self, changes: Changeset) -> Result<()> {
        let mut map = self.map.borrow_mut();
        // Every guard is judged before anything changes: that is the atomicity, and the meaning of a guard.
        for change in changes.changes() {
            match change {
                Change::Insert(key, _) if map.contains_key(key) => return Err(guard::exists_already(key)),
                Change::Require(key) | Change::Expect(key) if !map.contains_key(key) => {
                    return Err(guard::is_gone(key));
                }
                _ => {}
            }
        }
        for change in changes.into_changes() {
            apply(&mut map, change);
        }
        Ok(())
    }

    fn page(&self, ranges: &[KeyRange], page: Page) -> Vec<Entry> {
        let map = self.map.borrow();
        ranges
            .iter()
            .flat_map(|range| keys_within(&map, range))
            .take(page.entries_max)
            .map(|(key, value)| Entry {
                key: key.clone(),
                value: if page.keys_only { Bytes::new() } else { value.clone() },
            })
            .collect()
    }
}

fn keys_within<'a>(
    map: &'a BTreeMap<Bytes, Bytes>,
    range: &'a KeyRange,
) -> impl Iterator<Item = (&'a Bytes, &'a Bytes)> {
    // A range whose start lies behind its end makes `BTreeMap::range` panic.
    let bounds =
        (!range.is_empty()).then_some((Bound::Included(range.start.as_slice()), Bound::Excluded(range.end.as_slice())));
    bounds.into_iter().flat_map(|bounds| map.range::<[u8], _>(bounds))
}

/// One write, its guard aside.
pub(super) fn apply(map: &mut BTreeMap<Bytes, Bytes>, change: Change) {
    match change {
        Change::Put(key, value) | Change::Insert(key, value) => {
            map.insert(key, value);
        }
        Change::Delete(key) => {
            map.remove(&key);
        }
        Change::DeleteRange(range) => delete_range(map, &range),
        Change::Require(_) | Change::Expect(_) => {}
    }
}

fn delete_range(map: &mut BTreeMap<Bytes, Bytes>, range: &KeyRange) {
    let doomed: Vec<Bytes> = keys_within(map, range).map(|(key, _)| key.clone()).collect();
    for key in doomed {
        map.remove(&key);
    }
}

impl Storage for MemoryStorage {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        Box::pin(async move {
            let map = self.map.borrow();
            Ok(keys.iter().map(|key| map.get(key).cloned()).collect())
        })
    }

    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        Box::pin(async move { Ok(self.page(ranges, page)) })
    }

    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        Box::pin(async move { self.apply(changes) })
    }
}
