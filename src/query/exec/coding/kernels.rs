//! Tight loops over plain words.

use crate::value::WordTable;

/// A pair as a word: the first half is the upper one.
#[inline]
pub fn pair_word(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

/// Puts the number of each pair in place of its first half, up to the first unknown pair. Returns how many there are. The
/// number plus one stands at the place `a << width | b`; 0 stands for none.
pub fn number_pairs(places: &[u32], width: u32, a: &mut [u32], b: &[u32]) -> usize {
    for (row, (a, b)) in a.iter_mut().zip(b).enumerate() {
        match places.get((*a as usize) << width | *b as usize) {
            Some(number) if *number > 0 && *b >> width == 0 => *a = number - 1,
            _ => return row,
        }
    }
    b.len()
}

/// The same with a table of the pairs as words.
pub fn number_word_pairs(table: &WordTable, a: &mut [u32], b: &[u32]) -> usize {
    for (row, (a, b)) in a.iter_mut().zip(b).enumerate() {
        match table.get(pair_word(*a, *b)) {
            Some(number) => *a = number,
            None => return row,
        }
    }
    b.len()
}
