//! Numbers pairs of numbers.

use kernels::table;

use crate::value::WordTable;

/// A table with this many places may have a place for every pair, and a larger one if it has so many places a known pair: as much
/// memory as hashed pairs take.
const PLACES_MAX: usize = 1 << 16;
const PLACES_A_PAIR_MAX: usize = 16;

/// Numbers pairs of numbers from 0 on, in first-seen order. While both are small, a table has a place for each pair.
#[derive(Clone, Debug, Default)]
pub struct Pairs {
    /// The pairs by their numbers, as words: the first number in the upper half.
    known: Vec<u64>,
    /// The number of each pair plus one, or 0, at the place `a << width | b`. Empty if it would be too large.
    places: Vec<u32>,
    width: u32,
    /// The numbers of pairs that have no place.
    words: WordTable,
    is_hashed: bool,
}

fn word(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

fn halves(word: u64) -> (u32, u32) {
    ((word >> 32) as u32, word as u32)
}

impl Pairs {
    /// How many pairs are known.
    pub fn len(&self) -> usize {
        self.known.len()
    }

    /// The pair with this number.
    pub fn pair(&self, number: usize) -> Option<(u32, u32)> {
        self.known.get(number).map(|word| halves(*word))
    }

    /// The number of a pair, which is added if it is new.
    pub fn number(&mut self, a: u32, b: u32) -> u32 {
        if self.is_hashed {
            return match self.words.get(word(a, b)) {
                Some(number) => number,
                None => self.add(a, b),
            };
        }
        match self.place(a, b).and_then(|place| self.places.get(place)) {
            Some(number) if *number > 0 => number - 1,
            _ => self.add(a, b),
        }
    }

    /// The number of each pair, in place of its first number.
    pub fn number_all(&mut self, a: &mut [u32], b: &[u32]) {
        let mut done = 0;
        while let (Some(a @ [_, ..]), Some(b @ [_, ..])) = (a.get_mut(done..), b.get(done..)) {
            let known = match self.is_hashed {
                true => return self.words.number_pairs(a, b, &mut self.known),
                false => table::number_placed_pairs(&mut self.places, self.width, &mut self.known, a, b),
            };
            // The next one has no place.
            if let (Some(a), Some(b)) = (a.get_mut(known), b.get(known)) {
                *a = self.number(*a, *b);
            }
            done += known + 1;
        }
    }

    fn place(&self, a: u32, b: u32) -> Option<usize> {
        table::place_of_pair(a, b, self.width)
    }

    #[cold]
    #[inline(never)]
    fn add(&mut self, a: u32, b: u32) -> u32 {
        let number = u32::try_from(self.known.len()).unwrap_or(u32::MAX);
        self.known.push(word(a, b));
        if !self.is_hashed && !self.make_room(a, b) {
            (self.is_hashed, self.places) = (true, Vec::new());
            let earlier = self.known.iter().take(number as usize);
            (0..).zip(earlier).for_each(|(number, word)| self.words.insert(*word, number));
        }
        if self.is_hashed {
            self.words.insert(word(a, b), number);
        } else if let Some(slot) = self.place(a, b).and_then(|place| self.places.get_mut(place)) {
            *slot = number + 1;
        }
        number
    }

    /// Makes the table large enough for a pair; false if it would be too large.
    fn make_room(&mut self, a: u32, b: u32) -> bool {
        let width = self.width.max(u32::BITS - b.leading_zeros());
        let most_places = PLACES_MAX.max(PLACES_A_PAIR_MAX * self.known.len());
        let places = |a: u32| {
            let wanted = (u64::from(a) + 1).checked_mul(1 << width)?;
            usize::try_from(wanted).ok().filter(|wanted| *wanted <= most_places)
        };
        let Some(wanted) = places(a) else { return false };
        if width > self.width {
            self.width = width;
            self.places.clear();
            // The last pair is the new one.
            let earlier = self.known.len() - 1;
            let most = self.known.iter().take(earlier).map(|word| halves(*word).0).max().unwrap_or_default();
            let Some(all) = places(most) else { return false };
            self.places.resize(wanted.max(all).next_power_of_two(), 0);
            for (number, word) in (1..).zip(self.known.iter().take(earlier)) {
                let (a, b) = halves(*word);
                if let Some(slot) = self.place(a, b).and_then(|place| self.places.get_mut(place)) {
                    *slot = number;
                }
            }
        }
        if self.places.len() < wanted {
            self.places.resize(wanted.next_power_of_two(), 0);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    proptest! {
        #[test]
        fn pairs_are_numbered_as_they_come_however_large_their_numbers_grow(
            small in proptest::collection::vec((0..40_u32, 0..300_u32), 0..300),
            large in proptest::collection::vec((prop_oneof![0..9_u32, 60_000..70_000_u32], 0..70_000_u32), 0..100),
        ) {
            let mut pairs = Pairs::default();
            let mut model = HashMap::new();
            for (a, b) in small.iter().chain(&large).chain(&small) {
                let next = model.len() as u32;
                let expected = *model.entry((*a, *b)).or_insert(next);
                prop_assert_eq!(pairs.number(*a, *b), expected);
                prop_assert_eq!(pairs.pair(expected as usize), Some((*a, *b)));
            }
            prop_assert_eq!(pairs.len(), model.len());
            let all: Vec<(u32, u32)> = small.iter().chain(&large).copied().collect();
            for first in [0, all.len() / 2] {
                let (mut numbers, seconds): (Vec<u32>, Vec<u32>) = all[first..].iter().copied().unzip();
                let mut pairs = Pairs::default();
                pairs.number_all(&mut numbers, &seconds);
                let mut one_by_one = Pairs::default();
                let expected: Vec<u32> = all[first..].iter().map(|(a, b)| one_by_one.number(*a, *b)).collect();
                prop_assert_eq!(&numbers, &expected);
            }
        }
    }

    #[test]
    fn pairs_of_few_numbers_have_a_table_and_others_are_hashed() {
        let mut pairs = Pairs::default();
        (0..100).for_each(|a| (0..360).for_each(|b| assert_eq!(pairs.number(a, b), a * 360 + b)));
        assert!(!pairs.is_hashed);
        assert_eq!(pairs.number(0, 70_000), 36_000);
        assert!(pairs.is_hashed && pairs.places.is_empty());
        assert_eq!((pairs.number(99, 359), pairs.number(7, 7)), (35_999, 2527));
    }
}
