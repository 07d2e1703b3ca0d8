//! Sets of places from which the least ones are read again and again.

/// A set of numbers below a limit: a bit for each number, a bit for each of these words that is not zero, and so on up to a single word.
#[derive(Debug)]
pub struct Places {
    levels: Vec<Vec<u64>>,
}

impl Places {
    /// The empty set of numbers below `end`.
    #[inline(never)]
    pub fn new(end: usize) -> Places {
        let mut levels = vec![vec![0; end.div_ceil(64).max(1)]];
        while let Some(len) = levels.last().map(Vec::len).filter(|len| *len > 1) {
            levels.push(vec![0; len.div_ceil(64)]);
        }
        Places { levels }
    }

    /// Adds a number.
    #[inline(never)]
    pub fn insert(&mut self, number: u32) {
        let mut at = number as usize;
        for level in &mut self.levels {
            let Some(word) = level.get_mut(at / 64) else { return };
            let was_empty = *word == 0;
            *word |= 1 << (at % 64);
            if !was_empty {
                return;
            }
            at /= 64;
        }
    }

    /// Removes a number.
    #[inline(never)]
    pub fn remove(&mut self, number: u32) {
        let mut at = number as usize;
        for level in &mut self.levels {
            let Some(word) = level.get_mut(at / 64) else { return };
            *word &= !(1 << (at % 64));
            if *word != 0 {
                return;
            }
            at /= 64;
        }
    }

    /// Appends the `most` least numbers, ascending.
    #[inline(never)]
    pub fn least(&self, most: usize, out: &mut Vec<u32>) {
        let mut from = 0;
        for _ in 0..most {
            let Some(number) = self.next(from) else { return };
            out.push(number as u32);
            from = number + 1;
        }
    }

    /// The least number from `from` on.
    #[inline(always)]
    fn next(&self, from: usize) -> Option<usize> {
        let mut at = from;
        for (height, level) in self.levels.iter().enumerate() {
            let word = level.get(at / 64)? & (u64::MAX << (at % 64));
            if word != 0 {
                let found = at / 64 * 64 + word.trailing_zeros() as usize;
                // Down again, by the first bit of each word.
                return self.levels.get(..height)?.iter().rev().try_fold(found, |at, level| {
                    let word = level.get(at)?;
                    Some(at * 64 + word.trailing_zeros() as usize)
                });
            }
            // What lies beyond this word.
            at = at / 64 + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn places_are_a_sorted_set(
            end in prop_oneof![1..200_u32, 4000..4200_u32, 262_000..263_000_u32], steps in proptest::collection::vec((any::<u32>(), any::<bool>(), 0..5_usize), 0..200),
        ) {
            let (mut places, mut known) = (Places::new(end as usize), BTreeSet::new());
            for (number, adds, most) in steps {
                // Most numbers come up again.
                let number = if number % 3 == 0 { number % end } else { number / 3 % end.min(40) };
                if adds {
                    places.insert(number);
                    known.insert(number);
                } else {
                    places.remove(number);
                    known.remove(&number);
                }
                let mut found = Vec::new();
                places.least(most, &mut found);
                prop_assert_eq!(found, known.iter().copied().take(most).collect::<Vec<_>>());
            }
            let mut found = Vec::new();
            places.least(usize::MAX, &mut found);
            prop_assert_eq!(found, known.into_iter().collect::<Vec<_>>());
        }
    }
}
