//! A map for hundreds of entries: a vector in key order.
//!
//! A hash map or a tree costs kilobytes of code for each pair of types, this one a few hundred bytes; a deque in place of the vector, half a
//! kilobyte more.

use std::borrow::Borrow;

/// Entries in ascending key order.
///
/// Adding and removing moves the entries behind. Journals add records at the back, and drop those that are folded together.
#[derive(Clone, Debug)]
pub struct SortedMap<K, V> {
    entries: Vec<(K, V)>,
}

impl<K, V> Default for SortedMap<K, V> {
    fn default() -> Self {
        SortedMap { entries: Vec::new() }
    }
}

impl<K: Ord, V> SortedMap<K, V> {
    fn place<Q: Ord + ?Sized>(&self, key: &Q) -> Result<usize, usize>
    where
        K: Borrow<Q>,
    {
        self.entries.binary_search_by(|(known, _)| known.borrow().cmp(key))
    }

    /// The value of `key`.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        self.entries.get(self.place(key).ok()?).map(|(_, value)| value)
    }

    /// The value of `key`, mutable.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        let at = self.place(key).ok()?;
        self.entries.get_mut(at).map(|(_, value)| value)
    }

    /// True if `key` has a value.
    pub fn contains_key(&self, key: &K) -> bool {
        self.place(key).is_ok()
    }

    /// Sets the value of `key`.
    pub fn insert(&mut self, key: K, value: V) {
        match self.place(&key) {
            Ok(at) => {
                if let Some(entry) = self.entries.get_mut(at) {
                    entry.1 = value;
                }
            }
            Err(at) => self.entries.insert(at, (key, value)),
        }
    }

    /// Removes `key` and its value, if present.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        if let Ok(at) = self.place(key) {
            self.entries.remove(at);
        }
    }

    /// Keeps the entries for which `is_kept` is true.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&K, &V) -> bool) {
        self.entries.retain(|(key, value)| is_kept(key, value));
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// The first key at or after `key`.
    pub fn first_from(&self, key: &K) -> Option<&K> {
        let at = self.entries.partition_point(|(known, _)| known < key);
        self.entries.get(at).map(|(key, _)| key)
    }

    /// The last key at or before `key`.
    pub fn last_up_to(&self, key: &K) -> Option<&K> {
        let end = self.entries.partition_point(|(known, _)| known <= key);
        self.entries.get(end.checked_sub(1)?).map(|(key, _)| key)
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.entries.clear();
    }

    /// Keys and values, in key order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.entries.iter().map(|(key, value)| (key, value))
    }

    /// The values, in key order.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn answers_like_a_tree(steps in prop::collection::vec((0_u8..4, 0_u8..20, any::<u16>()), 0..200)) {
            let (mut map, mut tree) = (SortedMap::default(), BTreeMap::new());
            for (step, key, value) in steps {
                match step {
                    0 => {
                        map.remove(&key);
                        tree.remove(&key);
                    }
                    1 => {
                        map.retain(|k, v| k % 7 != key % 7 || v % 2 == 0);
                        tree.retain(|k, v| k % 7 != key % 7 || *v % 2 == 0);
                    }
                    _ => {
                        map.insert(key, value);
                        tree.insert(key, value);
                    }
                }
                prop_assert_eq!(map.get(&key), tree.get(&key));
                prop_assert_eq!(map.get_mut(&key), tree.get_mut(&key));
                prop_assert_eq!(map.contains_key(&key), tree.contains_key(&key));
                prop_assert!(map.values().eq(tree.values()));
            }
        }
    }
}
