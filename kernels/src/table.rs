//! Looks words and pairs of numbers up in tables.
//!
//! A slot has a word, and its number plus one, or 0 if it is free. The number of slots is a power of two, and some are free.

/// Where the search for a word begins. Words often differ only in their upper bits, like doubles, or only in their lower ones; the product has all of these in
/// its upper bits.
#[inline(always)]
fn start(slots: &[(u64, u32)], word: u64) -> usize {
    let product = (word ^ word >> 32).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (product >> 32) as usize >> u32::BITS.saturating_sub(slots.len().trailing_zeros())
}

#[inline(always)]
fn find(slots: &[(u64, u32)], word: u64) -> Result<u32, usize> {
    let mask = slots.len().wrapping_sub(1);
    let mut place = start(slots, word) & mask;
    loop {
        match slots.get(place) {
            Some((known, number)) if *known == word && *number > 0 => return Ok(number - 1),
            Some((_, 1..)) => place = (place + 1) & mask,
            _ => return Err(place),
        }
    }
}

/// The number of a word, or else the slot that is free for it.
#[inline(never)]
pub fn number(slots: &[(u64, u32)], word: u64) -> Result<u32, usize> {
    find(slots, word)
}

/// Appends the numbers of the words at the front, up to the first unknown one.
#[inline(never)]
pub fn append_known(slots: &[(u64, u32)], words: &[u64], numbers: &mut Vec<u32>) {
    numbers.extend(words.iter().map_while(|word| find(slots, *word).ok()));
}

/// A pair as a word: the first half is the upper one.
#[inline(always)]
fn pair_word(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

/// Puts the number of each pair in place of its first half, up to the first unknown pair. Returns how many there are. `slots` has the pairs as words, the first
/// half above the second.
#[inline(never)]
pub fn number_pairs(slots: &[(u64, u32)], a: &mut [u32], b: &[u32]) -> usize {
    for (row, (a, b)) in a.iter_mut().zip(b).enumerate() {
        match find(slots, pair_word(*a, *b)) {
            Ok(number) => *a = number,
            Err(_) => return row,
        }
    }
    b.len()
}

/// The place `a << width | b` of a pair, if its second half has at most that many bits. `None` if it lies outside of memory.
#[inline(always)]
fn place_of(a: u32, b: u32, width: u32) -> Option<usize> {
    // Addresses may have 32 bits.
    let place = u64::from(a) << width | u64::from(b);
    usize::try_from(place).ok().filter(|_| u64::from(b) >> width == 0)
}

/// The place `a << width | b` of a pair, if its second half has at most that many bits, which are 32 at most. `None` if it lies outside of memory.
#[inline(never)]
pub fn place_of_pair(a: u32, b: u32, width: u32) -> Option<usize> {
    place_of(a, b, width)
}

/// The same with a place for each pair: `places` has the number plus one at `a << width | b`, or 0.
#[inline(never)]
pub fn number_placed_pairs(places: &[u32], width: u32, a: &mut [u32], b: &[u32]) -> usize {
    for (row, (a, b)) in a.iter_mut().zip(b).enumerate() {
        match place_of(*a, *b, width).and_then(|place| places.get(place)) {
            Some(number) if *number > 0 => *a = number - 1,
            _ => return row,
        }
    }
    b.len()
}

/// Shifts each number to the left by so many bits, and puts another one there, which must fit.
#[inline(never)]
pub fn shift_together(a: &mut [u32], b: &[u32], bits: u32) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a = a.wrapping_shl(bits) | b);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_looked_up_to_the_first_unknown_one() {
        let mut slots = vec![(0, 0); 16];
        assert!(number(&[], 5).is_err());
        for (at, word) in (1..).zip([0, 5, 5 << 32, 1.5_f64.to_bits()]) {
            let free = number(&slots, word).unwrap_err();
            slots[free] = (word, at);
        }
        assert_eq!(number(&slots, 5 << 32), Ok(2));
        let mut numbers = vec![9];
        append_known(&slots, &[5, 0, 5 << 32, 7, 5], &mut numbers);
        assert_eq!(numbers, [9, 1, 0, 2]);
        let mut a = [0, 5, 3, 0];
        assert_eq!(number_pairs(&slots, &mut a, &[5, 0, 3, 0]), 2);
        assert_eq!(a, [1, 2, 3, 0]);
    }

    #[test]
    fn pairs_have_a_place_each_if_their_second_half_fits() {
        let mut a = [0, 1, 0, 1];
        assert_eq!(number_placed_pairs(&[1, 0, 3, 2], 1, &mut a, &[0, 1, 2, 1]), 2);
        assert_eq!(a, [0, 1, 0, 1]);
        assert_eq!(number_placed_pairs(&[1, 0, 3, 2], 1, &mut a, &[0, 0, 0, 0]), 4);
        assert_eq!(a, [0, 2, 0, 2]);
        assert_eq!(
            [place_of_pair(3, 1, 1), place_of_pair(3, 2, 1), place_of_pair(0, u32::MAX, 32)],
            [Some(7), None, Some(u32::MAX as usize)]
        );
        // Where addresses have 32 bits, this one is too large, and in no case is it that of another pair.
        assert_ne!(place_of_pair(1 << 24, 0, 8), Some(0));
    }
}
