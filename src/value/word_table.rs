//! Numbers words.

use kernels::table::{self, Addable};

/// A word, and its number plus one, or 0 if the slot is free.
type WordSlot = (u64, u32);

/// A number for each known word, by open addressing.
#[derive(Clone, Debug, Default)]
pub struct WordTable {
    /// The slots that `kernels::table` searches. At most half of them are taken.
    slots: Vec<WordSlot>,
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
            self.grow();
        }
        self.take(word, number + 1);
        self.taken += 1;
    }

    fn grow(&mut self) {
        let mut grown = vec![(0, 0); (2 * self.slots.len()).max(16)];
        table::move_words(&self.slots, &mut grown);
        self.slots = grown;
    }

    /// Calls `append` with the slots and how many are taken, and again with more slots as long as half of them are taken and the number
    /// of `rows` that it returns is below all.
    fn adding(&mut self, rows: usize, append: &mut dyn FnMut(&mut [WordSlot], &mut usize) -> usize) {
        while append(&mut self.slots, &mut self.taken) < rows && 2 * self.taken >= self.slots.len() {
            self.grow();
        }
    }

    fn take(&mut self, word: u64, number: u32) {
        if let Err(free) = table::number(&self.slots, word) {
            self.slots.get_mut(free).into_iter().for_each(|slot| *slot = (word, number));
        }
    }

    /// Appends the numbers of the words at the front, up to the first unknown one. With `known`, where the place of a word is its
    /// number, all words become known that are `addable`.
    pub fn append_numbers(
        &mut self,
        words: &[u64],
        addable: Addable,
        mut known: Option<&mut Vec<u64>>,
        numbers: &mut Vec<u32>,
    ) {
        let begun = numbers.len();
        let adds = known.is_some();
        self.adding(if adds { words.len() } else { 0 }, &mut |slots, taken| {
            let rest = words.get(numbers.len() - begun..).unwrap_or_default();
            table::append_numbers(slots, taken, rest, addable, known.as_deref_mut(), numbers);
            numbers.len() - begun
        });
    }

    /// Puts the number of each pair in place of its first half. The words are pairs: the first half is above the second. Unknown ones
    /// are added to `known`, where their places are their numbers.
    pub fn number_pairs(&mut self, a: &mut [u32], b: &[u32], known: &mut Vec<u64>) {
        let mut done = 0;
        self.adding(a.len().min(b.len()), &mut |slots, taken| {
            if let (Some(a), Some(b)) = (a.get_mut(done..), b.get(done..)) {
                done += table::number_pairs(slots, taken, known, a, b);
            }
            done
        });
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
        let any = Addable { low: 0, span: u64::MAX, small: None };
        table.append_numbers(&words, any, None, &mut numbers);
        assert_eq!(numbers, (0..8998).collect::<Vec<u32>>());
        numbers.clear();
        table.append_numbers(&[60_000, 7, 0], any, None, &mut numbers);
        assert_eq!(numbers, [1]);
        let slots = &table.slots;
        let longest = (0..slots.len()).map(|at| slots[at..].iter().take_while(|slot| slot.1 > 0).count()).max();
        assert!(longest < Some(64), "words of one shape crowd the table: {longest:?}");
    }
}
