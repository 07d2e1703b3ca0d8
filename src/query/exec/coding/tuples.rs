//! Numbers tuples of numbers.

use std::ops::Range;

use super::numbers::{Merging, Numbers, merge};
use super::pairs::Pairs;
use crate::listed::IntoList;

/// Numbers tuples from 0 on, in first-seen order.
///
/// Of three parts and more, those that are small together share a word. Looking words up in pairs then takes fewer tables
/// than looking parts up, and tables of many tuples are slow, because they fit into no cache.
pub struct Tuples {
    /// The parts of each word: how many bits they take, the first part in the upper ones.
    words: Vec<Vec<u32>>,
    /// Pairs of the number of the words so far, or of the first word, and the next word.
    pairs: Vec<Pairs>,
}

/// The parts of words, if the numbers of each part stay below a count, or grow to twice that.
fn words_of(counts: &[usize]) -> Vec<Vec<u32>> {
    let mut words: Vec<Vec<u32>> = Vec::new();
    for (part, count) in counts.iter().enumerate() {
        let bits = (usize::BITS - count.leading_zeros() + 1).min(u32::BITS);
        let may_share = counts.len() > 2 && (words.len() > 1 || part + 1 < counts.len());
        match words.last_mut() {
            Some(word) if may_share && word.iter().sum::<u32>() + bits <= u32::BITS => word.push(bits),
            _ => words.push(vec![bits]),
        }
    }
    words.iter_mut().filter(|word| word.len() == 1).for_each(|word| word.fill(u32::BITS));
    words
}

impl Tuples {
    /// Tuples of so many parts.
    pub fn new(parts: usize) -> Tuples {
        Tuples::of(&vec![0; parts])
    }

    fn of(counts: &[usize]) -> Tuples {
        let words = words_of(counts);
        Tuples { pairs: (1..words.len()).map(|_| Pairs::default()).listed(), words }
    }

    /// How many tuples are known; `None` for tuples of one part, which is their number, or of none.
    pub fn len(&self) -> Option<usize> {
        self.pairs.last().map(Pairs::len)
    }

    /// The numbers of the tuples of these parts of `rows` rows. The numbers of each part are below its count.
    pub fn numbers(&mut self, parts: Vec<Numbers>, counts: &[usize], rows: usize) -> Numbers {
        let mut widths = self.words.iter().flatten();
        let is_beyond = |count: &usize, width: &u32| count.saturating_sub(1) as u64 >> width != 0;
        if counts.iter().any(|count| widths.next().is_some_and(|width| is_beyond(count, width))) {
            let known = self.len().unwrap_or_default();
            let earlier = self.parts(0..known as u32);
            *self = Tuples::of(counts);
            self.merged(earlier.into_iter().map(Numbers::Each).listed(), known);
        }
        self.merged(parts, rows)
    }

    fn merged(&mut self, parts: Vec<Numbers>, rows: usize) -> Numbers {
        let mut parts = parts.into_iter();
        let mut pairs = self.pairs.iter_mut();
        let mut all: Option<Numbers> = None;
        for word in &self.words {
            let mut packed = parts.next().unwrap_or(Numbers::One(0));
            for (width, part) in word.iter().skip(1).zip(&mut parts) {
                packed = merge(&mut Merging::Shift(*width), packed, part, rows);
            }
            all = Some(match all {
                Some(all) => {
                    pairs.next().map_or(Numbers::One(0), |pairs| merge(&mut Merging::Pairs(pairs), all, packed, rows))
                }
                None => packed,
            });
        }
        all.unwrap_or(Numbers::One(0))
    }

    /// The parts of the tuples with these numbers, part by part.
    pub fn parts(&self, numbers: Range<u32>) -> Vec<Vec<u32>> {
        let mut parts = Vec::new();
        let mut pairs = self.pairs.iter().rev();
        let mut numbers: Vec<u32> = numbers.collect();
        for word in self.words.iter().rev() {
            let mut packed = numbers.clone();
            if let Some(pairs) = pairs.next() {
                for (number, packed) in numbers.iter_mut().zip(&mut packed) {
                    (*number, *packed) = pairs.pair(*number as usize).unwrap_or_default();
                }
            }
            for bits in word.iter().skip(1).rev() {
                parts.push(packed.iter().map(|packed| packed & ((1 << bits) - 1)).collect());
                packed.iter_mut().for_each(|packed| *packed >>= bits);
            }
            parts.push(packed);
        }
        parts.reverse();
        parts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn tuples_are_numbered_as_they_come_however_their_parts_grow(
            // The bits of each part in the first rows and in the last.
            bits in prop::collection::vec((0..4_u32, 0..25_u32), 0..7), seeds in prop::collection::vec(any::<[u32; 7]>(), 1..60),
            end in 1..20_usize,
        ) {
            let mut tuples = Tuples::new(bits.len());
            let mut known: Vec<Vec<u32>> = Vec::new();
            for (at, rows) in seeds.chunks(end).enumerate() {
                let wide = at * end * 2 > seeds.len();
                let column = |(part, (few, many)): (usize, &(u32, u32))| {
                    rows.iter().map(|row| row[part] % (1 << if wide { *many } else { *few })).collect::<Vec<u32>>()
                };
                let columns: Vec<Vec<u32>> = bits.iter().enumerate().map(column).collect();
                let counts: Vec<usize> = bits.iter().map(|(few, many)| 1 << if wide { (*few).max(*many) } else { *few }).collect();
                let parts = columns.iter().map(|part| Numbers::of_codes(part, &mut |code| code)).collect();
                let found = tuples.numbers(parts, &counts, rows.len()).into_each(rows.len());
                for (row, number) in found.into_iter().enumerate() {
                    let tuple: Vec<u32> = columns.iter().map(|part| part[row]).collect();
                    let place = known.iter().position(|known| *known == tuple).unwrap_or(known.len());
                    let expected = if bits.len() == 1 { tuple[0] as usize } else { place };
                    prop_assert_eq!(number as usize, expected);
                    if place == known.len() {
                        known.push(tuple);
                    }
                }
                if bits.len() > 1 {
                    prop_assert_eq!(tuples.len(), Some(known.len()));
                    let parts = tuples.parts(0..known.len() as u32);
                    let columns: Vec<Vec<u32>> = (0..bits.len()).map(|part| known.iter().map(|tuple| tuple[part]).collect()).collect();
                    prop_assert_eq!(parts, columns);
                }
            }
        }
    }

    #[test]
    fn parts_that_are_small_together_share_a_word_and_two_parts_share_none() {
        assert_eq!(words_of(&[100, 100, 20_000, 100, 100, 20_000]), [vec![8, 8, 16], vec![8, 8, 16]]);
        assert_eq!(words_of(&[100, 100]), [[32], [32]]);
        assert_eq!(words_of(&[3, 5, 6]), [vec![3, 4], vec![32]]);
        assert_eq!(words_of(&[1 << 40, 5, 6]), [vec![32], vec![4, 4]]);
        assert_eq!(words_of(&[]), [[0; 0]; 0]);
    }
}
