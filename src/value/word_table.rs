//! Numbers words.

use kernels::table;

/// A number for each known word, by open addressing.
#[derive(Clone, Debug, Default)]
pub struct WordTable {
    /// The slots that `kernels::table` searches. At most half of them are taken.
    slots: Vec<(u64, u32)>,
    taken: usize,
}

impl WordTable {
    /// The number of a word.
    pub fn get(&self, word: u64) -> Option<u32> {
        table::number(&self.slots, word).ok()
    }

    /// Adds a word that is not known yet.
    pub fn insert(&mut self, word: u64, number: u32) {
        if 2 * (self.taken + 1) > self.slots.len() {
            let grown = vec![(0, 0); (2 * self.slots.len()).max(16)];
            let slots = std::mem::replace(&mut self.slots, grown);
            slots.into_iter().filter(|(_, number)| *number > 0).for_each(|(word, number)| self.take(word, number));
        }
        self.take(word, number + 1);
        self.taken += 1;
    }

    fn take(&mut self, word: u64, number: u32) {
        if let Err(free) = table::number(&self.slots, word) {
            self.slots.get_mut(free).into_iter().for_each(|slot| *slot = (word, number));
        }
    }

    /// Appends the numbers of the words at the front, up to the first unknown one.
    pub fn append_known(&self, words: &[u64], numbers: &mut Vec<u32>) {
        table::append_known(&self.slots, words, numbers);
    }

    /// Puts the number of each pair in place of its first half, up to the first unknown pair. Returns how many there are.
    /// The words are pairs: the first half is above the second.
    pub fn number_pairs(&self, a: &mut [u32], b: &[u32]) -> usize {
        table::number_pairs(&self.slots, a, b)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_keep_their_numbers_while_the_table_grows() {
        let mut table = WordTable::default();
        assert_eq!(table.get(0), None);
        // Times of one minute, and words whose lower halves are equal.
        let words: Vec<u64> = (0..3000).map(|n| n * 60_000).chain((1..3000).map(|n| n << 32)).collect();
        let words: Vec<u64> = words.into_iter().chain((1..3000).map(|n| f64::from(n).to_bits())).collect();
        for (number, word) in (0..).zip(&words) {
            assert_eq!(table.get(*word), None);
            table.insert(*word, number);
        }
        let mut numbers = Vec::new();
        table.append_known(&words, &mut numbers);
        assert_eq!(numbers, (0..8998).collect::<Vec<u32>>());
        numbers.clear();
        table.append_known(&[60_000, 7, 0], &mut numbers);
        assert_eq!(numbers, [1]);
        let slots = &table.slots;
        let longest = (0..slots.len()).map(|at| slots[at..].iter().take_while(|slot| slot.1 > 0).count()).max();
        assert!(longest < Some(64), "words of one shape crowd the table: {longest:?}");
    }
}
