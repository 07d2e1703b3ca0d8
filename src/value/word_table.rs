//! Numbers words.

/// A number for each known word, by open addressing.
#[derive(Clone, Debug, Default)]
pub struct WordTable {
    /// A word, and its number plus one, or 0 in a free slot. The length is a power of two, and at most half of the
    /// slots are taken.
    slots: Vec<(u64, u32)>,
    taken: usize,
}

impl WordTable {
    /// Where the search for a word begins. Words often differ only in their upper bits, like doubles, or only in their
    /// lower ones; the product has all of these in its upper bits.
    #[inline]
    fn start(&self, word: u64) -> usize {
        let product = (word ^ word >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (product >> 32) as usize >> u32::BITS.saturating_sub(self.slots.len().trailing_zeros())
    }

    /// The number of a word.
    #[inline]
    pub fn get(&self, word: u64) -> Option<u32> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut place = self.start(word) & mask;
        while let Some((known, number)) = self.slots.get(place) {
            if *known == word && *number > 0 {
                return Some(number - 1);
            }
            if *number == 0 {
                return None;
            }
            place = (place + 1) & mask;
        }
        None
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
        let mask = self.slots.len().wrapping_sub(1);
        let mut place = self.start(word) & mask;
        while self.slots.get(place).is_some_and(|(_, number)| *number > 0) {
            place = (place + 1) & mask;
        }
        if let Some(slot) = self.slots.get_mut(place) {
            *slot = (word, number);
        }
    }

    /// Appends the numbers of the words at the front, up to the first unknown one.
    pub fn append_known(&self, words: &[u64], numbers: &mut Vec<u32>) {
        for word in words {
            match self.get(*word) {
                Some(number) => numbers.push(number),
                None => return,
            }
        }
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
