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

/// Takes a free slot for the next word of `known`, and returns its number. `None` if no more slots may be taken: half of them are.
#[inline(always)]
fn add(slots: &mut [(u64, u32)], known: &mut Vec<u64>, word: u64, free: usize, taken: &mut usize) -> Option<u32> {
    let slot = slots.get_mut(free)?;
    let number = known.len() as u32;
    *slot = (word, number + 1);
    *taken += 1;
    known.push(word);
    Some(number)
}

/// Which words may be added to a table.
#[derive(Clone, Copy, Debug)]
pub struct Addable {
    /// The first of them.
    pub low: u64,
    /// How far above it the last one is.
    pub span: u64,
    /// If they are doubles: neither NaN, nor negative zero, nor an integer from 0 to below this.
    pub small: Option<u32>,
}

impl Addable {
    #[inline(always)]
    fn has(self, word: u64) -> bool {
        let is_plain = |small: u32| {
            let x = f64::from_bits(word);
            let code = x as u32;
            !x.is_nan() & (x != 0.0) & !((code < small) & (f64::from(code) == x))
        };
        word.wrapping_sub(self.low) <= self.span && self.small.is_none_or(is_plain)
    }
}

/// Appends the numbers of the words at the front, up to the first unknown one. With `known`, where the place of a word is its number, words become known if they
/// are `addable`, while less than half of the slots are taken.
#[inline(never)]
pub fn append_numbers(
    slots: &mut [(u64, u32)],
    taken: &mut usize,
    words: &[u64],
    addable: Addable,
    mut known: Option<&mut Vec<u64>>,
    numbers: &mut Vec<u32>,
) {
    numbers.extend(words.iter().map_while(|word| match (find(slots, *word), &mut known) {
        (Ok(number), _) => Some(number),
        (Err(free), Some(known)) if 2 * *taken < slots.len() && addable.has(*word) => {
            add(slots, known, *word, free, taken)
        }
        _ => None,
    }));
}

/// Puts all words of a table into a larger one, which is empty.
#[inline(never)]
pub fn move_words(slots: &[(u64, u32)], larger: &mut [(u64, u32)]) {
    for slot in slots.iter().filter(|slot| slot.1 > 0) {
        if let Some(free) = find(larger, slot.0).err().and_then(|free| larger.get_mut(free)) {
            *free = *slot;
        }
    }
}

/// A pair as a word: the first half is the upper one.
#[inline(always)]
fn pair_word(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

/// Puts the number of each pair in place of its first half, up to the first one for which there is no room. Returns how many there are. `slots` has the pairs
/// as words, the first half above the second. Unknown ones are added to it and to `known`, where their places are their numbers, while less than half of the
/// slots are taken.
#[inline(never)]
pub fn number_pairs(
    slots: &mut [(u64, u32)],
    taken: &mut usize,
    known: &mut Vec<u64>,
    a: &mut [u32],
    b: &[u32],
) -> usize {
    for (row, (a, b)) in a.iter_mut().zip(b).enumerate() {
        let word = pair_word(*a, *b);
        let number = match find(slots, word) {
            Ok(number) => Some(number),
            Err(free) if 2 * *taken < slots.len() => add(slots, known, word, free, taken),
            Err(_) => None,
        };
        let Some(number) = number else { return row };
        *a = number;
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

/// The same with a place for each pair: `places` has the number plus one at `a << width | b`, or 0. Pairs without a place are not added.
#[inline(never)]
pub fn number_placed_pairs(places: &mut [u32], width: u32, known: &mut Vec<u64>, a: &mut [u32], b: &[u32]) -> usize {
    for (row, (a, b)) in a.iter_mut().zip(b).enumerate() {
        let Some(place) = place_of(*a, *b, width).and_then(|place| places.get_mut(place)) else { return row };
        if *place == 0 {
            known.push(pair_word(*a, *b));
            *place = known.len() as u32;
        }
        *a = *place - 1;
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

    const ANY: Addable = Addable { low: 0, span: u64::MAX, small: None };
    const DOUBLES: Addable = Addable { small: Some(100), ..ANY };

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
        append_numbers(&mut slots, &mut 4, &[5, 0, 5 << 32, 7, 5], ANY, None, &mut numbers);
        assert_eq!(numbers, [9, 1, 0, 2]);
    }

    #[test]
    fn unknown_words_are_added_while_there_is_room() {
        let (mut slots, mut taken, mut known, mut numbers) = (vec![(0, 0); 8], 0, Vec::new(), Vec::new());
        let few = Addable { low: 5, span: 2, small: None };
        append_numbers(&mut slots, &mut taken, &[7, 5, 7, 3, 9], few, Some(&mut known), &mut numbers);
        assert_eq!((&numbers[..], &known[..], taken), (&[0, 1, 0][..], &[7, 5][..], 2));
        append_numbers(&mut slots, &mut taken, &[3, 5, 9, 8, 3], ANY, Some(&mut known), &mut numbers);
        assert_eq!((&numbers[3..], &known[2..], taken), (&[2, 1, 3][..], &[3, 9][..], 4));
        let mut larger = vec![(0, 0); 16];
        move_words(&slots, &mut larger);
        numbers.clear();
        append_numbers(&mut larger, &mut taken, &[9, 3, 5, 7, 8], ANY, None, &mut numbers);
        assert_eq!(numbers, [3, 2, 1, 0]);
    }

    #[test]
    fn doubles_that_may_have_another_form_are_not_added() {
        let (mut slots, mut taken) = (vec![(0, 0); 64], 0);
        for x in [f64::NAN, -0.0, 0.0, 1.0, 99.0] {
            let (mut known, mut numbers) = (Vec::new(), Vec::new());
            append_numbers(&mut slots, &mut taken, &[x.to_bits()], DOUBLES, Some(&mut known), &mut numbers);
            assert_eq!((known.len(), numbers.len()), (0, 0), "{x}");
        }
        let words = [100.0, 0.5, -1.0, f64::INFINITY, 5e9, 0.5].map(f64::to_bits);
        let (mut known, mut numbers) = (Vec::new(), Vec::new());
        append_numbers(&mut slots, &mut taken, &words, DOUBLES, Some(&mut known), &mut numbers);
        assert_eq!((numbers, known.len(), taken), (vec![0, 1, 2, 3, 4, 1], 5, 5));
    }

    #[test]
    fn pairs_are_added_while_there_is_room() {
        let (mut slots, mut taken, mut known) = (vec![(0, 0); 4], 0, Vec::new());
        let mut a = [0, 5, 0, 3, 0];
        assert_eq!(number_pairs(&mut slots, &mut taken, &mut known, &mut a, &[5, 0, 5, 3, 5]), 3);
        assert_eq!((a, &known[..]), ([0, 1, 0, 3, 0], &[5, 5 << 32][..]));
    }

    #[test]
    fn pairs_have_a_place_each_if_their_second_half_fits() {
        let (mut places, mut known) = (vec![1, 0, 0, 2], vec![0, 3]);
        let mut a = [0, 1, 0, 1];
        assert_eq!(number_placed_pairs(&mut places, 1, &mut known, &mut a, &[0, 1, 2, 1]), 2);
        assert_eq!(a, [0, 1, 0, 1]);
        let mut a = [0, 1, 0, 1, 2];
        assert_eq!(number_placed_pairs(&mut places, 1, &mut known, &mut a, &[0, 0, 0, 0, 0]), 4);
        assert_eq!((a, &known[2..], places), ([0, 2, 0, 2, 2], &[1 << 32][..], vec![1, 0, 3, 2]));
        assert_eq!(
            [place_of_pair(3, 1, 1), place_of_pair(3, 2, 1), place_of_pair(0, u32::MAX, 32)],
            [Some(7), None, Some(u32::MAX as usize)]
        );
        // Where addresses have 32 bits, this one is too large, and in no case is it that of another pair.
        assert_ne!(place_of_pair(1 << 24, 0, 8), Some(0));
    }
}
