//! Unpacks Simple-8b words.

use super::super::selector::{RLE_SELECTOR, RUN_UNIT, WordLayout};

/// A word whose selector does not exist.
pub const BAD_SELECTOR: &str = "a word has a selector that does not exist";

/// The word that a run repeats if no word came before it: a single zero.
pub const ZERO_WORD: u64 = 14;

/// The number in a slot, before its trailing zeros are restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RawSlot {
    value: u64,
    zeros: u32,
}

impl RawSlot {
    /// The raw value in a 64-bit stream.
    #[inline]
    pub fn narrow(self) -> u64 {
        // Here the format counts the zeros modulo 64.
        self.value << (self.zeros % 64)
    }

    /// The raw value in a 128-bit stream.
    #[inline]
    pub fn wide(self) -> u128 {
        u128::from(self.value) << (self.zeros % 128)
    }
}

/// The slots of a word, first to last; `None` is a missing element.
#[derive(Clone, Copy, Debug)]
pub struct Slots {
    rest: u64,
    layout: WordLayout,
}

impl Slots {
    /// The slots of `word`, whose layout is `layout`.
    #[inline]
    pub fn new(word: u64, layout: WordLayout) -> Slots {
        Slots { rest: word >> layout.first_bit(), layout }
    }

    /// The number of slots left.
    #[inline]
    pub fn left(&self) -> usize {
        usize::from(self.layout.slots)
    }
}

impl Iterator for Slots {
    type Item = Option<RawSlot>;

    #[inline]
    fn next(&mut self) -> Option<Option<RawSlot>> {
        self.layout.slots = self.layout.slots.checked_sub(1)?;
        let ones = ones(self.layout.slot_bits());
        let slot = self.rest & ones;
        self.rest >>= self.layout.slot_bits();
        if slot == ones {
            return Some(None);
        }
        let count_bits = u32::from(self.layout.count_bits);
        // At most 31 times 4.
        let zeros = (slot as u32 & ones_below(count_bits)) * self.layout.unit();
        Some(Some(RawSlot { value: slot >> count_bits, zeros }))
    }
}

/// A number whose lowest `bits` bits are ones; `bits` is 1 to 63.
#[inline]
pub fn ones(bits: u32) -> u64 {
    (1 << bits) - 1
}

#[inline]
fn ones_below(bits: u32) -> u32 {
    (1 << bits) - 1
}

/// The length of a run; `None` if the word holds slots.
#[inline(always)]
pub fn run_len(word: u64) -> Option<usize> {
    (word & 15 == RLE_SELECTOR).then(|| ((word >> 4 & 15) as usize + 1) * RUN_UNIT)
}

/// The last slot of `word`, which a run after it repeats.
pub fn last_slot(word: u64) -> Option<RawSlot> {
    WordLayout::of(word).and_then(|layout| Slots::new(word, layout).last()).flatten()
}

/// The words of a control.
#[inline]
pub fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    bytes.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word))
}

/// The number of elements in the words of a control.
///
/// Errors: `BAD_SELECTOR`.
pub fn elements(bytes: &[u8]) -> Result<usize, &'static str> {
    words(bytes).try_fold(0, |sum, word| {
        let slots = run_len(word).or_else(|| WordLayout::of(word).map(|layout| usize::from(layout.slots)));
        slots.map(|slots| sum + slots).ok_or(BAD_SELECTOR)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::read::forge::pack;
    use crate::column::selector::{BASE, EIGHT_LARGE, EIGHT_SMALL, SEVEN};

    #[test]
    fn every_layout_decodes_its_slots_and_missing_ones() {
        for layout in [&BASE[..], &SEVEN, &EIGHT_SMALL, &EIGHT_LARGE].concat() {
            for missing in 0..=usize::from(layout.slots) {
                let slots: Vec<Option<u64>> = (0..u64::from(layout.slots))
                    .map(|i| {
                        (i as usize != missing)
                            .then(|| i.wrapping_mul(0x1234_5678_9ABC_DEF1) % ones(layout.slot_bits()))
                    })
                    .collect();
                let word = pack(layout, &slots);
                let read: Vec<_> = Slots::new(word, layout).map(|slot| slot.map(RawSlot::wide)).collect();
                let expected: Vec<_> = slots
                    .iter()
                    .map(|slot| {
                        slot.map(|s| {
                            let count = s & ones_below(layout.count_bits.into()) as u64;
                            u128::from(s >> layout.count_bits) << (count as u32 * layout.unit())
                        })
                    })
                    .collect();
                assert_eq!(read, expected, "{layout:?}");
                assert_eq!(last_slot(word).map(RawSlot::wide), *expected.last().unwrap());
                assert_eq!(elements(&word.to_le_bytes()), Ok(slots.len()));
            }
        }
    }

    #[test]
    fn shifts_beyond_the_width_of_a_stream_wrap() {
        let slot = RawSlot { value: 5, zeros: 124 };
        assert_eq!(slot.narrow(), 5 << 60);
        assert_eq!(slot.wide(), 5 << 124);
    }

    #[test]
    fn runs_stand_for_steps_of_a_hundred_and_twenty() {
        assert_eq!(run_len(0x0F), Some(120));
        assert_eq!(run_len(0xFF), Some(1920));
        assert_eq!(run_len(0x0E), None);
        let mut control = 0x1F_u64.to_le_bytes().to_vec();
        control.extend(ZERO_WORD.to_le_bytes());
        assert_eq!(elements(&control), Ok(241));
    }

    #[test]
    fn selectors_that_do_not_exist_are_refused() {
        for word in [0, 0xA7, 0xF7, 0xE8, 0xF8_u64] {
            assert_eq!(elements(&word.to_le_bytes()), Err(BAD_SELECTOR), "{word:#x}");
        }
    }
}
