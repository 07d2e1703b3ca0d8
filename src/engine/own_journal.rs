//! The unfolded records of this context, and what they take together: every command asks for that.

use super::sorted_map::SortedMap;

/// Seqs with the size of their records in memory.
#[derive(Clone, Debug, Default)]
pub struct OwnJournal {
    sizes: SortedMap<u64, usize>,
    size_bytes: usize,
}

impl OwnJournal {
    /// The size of all records.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// The seqs, ascending.
    pub fn keys(&self) -> impl Iterator<Item = &u64> {
        self.sizes.keys()
    }

    /// Adds a record, or says another size of it.
    pub fn insert(&mut self, seq: u64, size_bytes: usize) {
        self.remove(&seq);
        self.sizes.insert(seq, size_bytes);
        self.size_bytes += size_bytes;
    }

    /// Removes a record; absent is fine.
    pub fn remove(&mut self, seq: &u64) {
        self.size_bytes -= self.sizes.get(seq).copied().unwrap_or_default();
        self.sizes.remove(seq);
    }

    /// Keeps the records that `is_kept` says.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&u64) -> bool) {
        self.sizes.retain(|seq, _| is_kept(seq));
        self.size_bytes = self.sizes.values().sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_that_of_what_is_there() {
        let mut own = OwnJournal::default();
        for (seq, size_bytes) in [(1, 10), (3, 30), (2, 20), (3, 33)] {
            own.insert(seq, size_bytes);
        }
        assert_eq!((own.size_bytes(), own.keys().copied().collect::<Vec<_>>()), (63, vec![1, 2, 3]));
        own.remove(&2);
        own.remove(&7);
        assert_eq!(own.size_bytes(), 43);
        own.retain(|seq| *seq < 3);
        assert_eq!((own.size_bytes(), own.keys().count()), (10, 1));
    }
}
