//! The layouts of a Simple-8b word.
//!
//! Bits 0 to 3 of a word are its selector. Selectors 7 and 8 have an extension in bits 4 to 7, and their slots begin at
//! bit 8; all other slots begin at bit 4. A slot is `value << count_bits | count`, and its raw value is `value <<
//! (count * unit)`. A slot of all ones is a missing element.

/// How the slots of a word are laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WordLayout {
    /// Bits 0 to 3.
    pub selector: u8,
    /// Bits 4 to 7, for selectors 7 and 8.
    pub extension: u8,
    /// Number of slots.
    pub slots: u8,
    /// Bits of a slot that hold the value, above the count.
    pub value_bits: u8,
    /// Bits of a slot that hold the count of trailing zeros, in units.
    pub count_bits: u8,
}

impl WordLayout {
    const fn base(selector: u8, extension: u8, slots: u8, value_bits: u8) -> WordLayout {
        WordLayout { selector, extension, slots, value_bits, count_bits: 0 }
    }

    const fn seven(extension: u8, slots: u8, value_bits: u8) -> WordLayout {
        WordLayout { selector: 7, extension, slots, value_bits, count_bits: 4 }
    }

    const fn eight(extension: u8, slots: u8, value_bits: u8, count_bits: u8) -> WordLayout {
        WordLayout { selector: 8, extension, slots, value_bits, count_bits }
    }

    /// Bits of a slot.
    #[inline]
    pub const fn slot_bits(self) -> u32 {
        self.value_bits as u32 + self.count_bits as u32
    }

    /// The bit where the first slot begins.
    #[inline]
    pub const fn first_bit(self) -> u32 {
        if self.selector == 7 || self.selector == 8 { 8 } else { 4 }
    }

    /// The number of trailing zeros per unit of the count.
    #[inline]
    pub const fn unit(self) -> u32 {
        if self.selector == 8 { 4 } else { 1 }
    }

    /// The selector and its extension, in their place in a word.
    #[inline]
    pub const fn head(self) -> u64 {
        self.selector as u64 | (self.extension as u64) << 4
    }

    /// The layout that `word` selects; `None` for a run (`RLE_SELECTOR`) and for selectors that do not exist.
    #[inline]
    pub fn of(word: u64) -> Option<WordLayout> {
        let selector = word & 15;
        let extension = (word >> 4 & 15) as usize;
        match (selector, extension) {
            (7, 1..) => SEVEN.get(extension - 1).copied(),
            (8, 1..=7) => EIGHT_SMALL.get(extension - 1).copied(),
            (8, 8..) => EIGHT_LARGE.get(extension - 8).copied(),
            // `BASE` holds selectors 1 to 14 in order.
            _ => BASE.get((selector as usize).wrapping_sub(1)).copied(),
        }
    }
}

/// The selector of a run. Bits 4 to 7, plus one, times `RUN_UNIT` is the number of repetitions of the last slot of the
/// last word that is not a run.
pub const RLE_SELECTOR: u64 = 15;
/// Elements that one step of a run stands for.
pub const RUN_UNIT: usize = 120;
/// Maximum steps of one run word.
pub const RUN_STEPS_MAX: usize = 16;

/// Words of plain values, by decreasing number of slots.
pub const BASE: [WordLayout; 14] = [
    WordLayout::base(1, 0, 60, 1),
    WordLayout::base(2, 0, 30, 2),
    WordLayout::base(3, 0, 20, 3),
    WordLayout::base(4, 0, 15, 4),
    WordLayout::base(5, 0, 12, 5),
    WordLayout::base(6, 0, 10, 6),
    WordLayout::base(7, 0, 8, 7),
    WordLayout::base(8, 0, 7, 8),
    WordLayout::base(9, 0, 6, 10),
    WordLayout::base(10, 0, 5, 12),
    WordLayout::base(11, 0, 4, 15),
    WordLayout::base(12, 0, 3, 20),
    WordLayout::base(13, 0, 2, 30),
    WordLayout::base(14, 0, 1, 60),
];
/// Values with a few trailing zeros, counted one by one.
pub const SEVEN: [WordLayout; 9] = [
    WordLayout::seven(1, 9, 2),
    WordLayout::seven(2, 8, 3),
    WordLayout::seven(3, 7, 4),
    WordLayout::seven(4, 6, 5),
    WordLayout::seven(5, 5, 7),
    WordLayout::seven(6, 4, 10),
    WordLayout::seven(7, 3, 14),
    WordLayout::seven(8, 2, 24),
    WordLayout::seven(9, 1, 52),
];
/// Values with many trailing zeros, counted in fours, up to 60.
pub const EIGHT_SMALL: [WordLayout; 7] = [
    WordLayout::eight(1, 7, 4, 4),
    WordLayout::eight(2, 6, 5, 4),
    WordLayout::eight(3, 5, 7, 4),
    WordLayout::eight(4, 4, 10, 4),
    WordLayout::eight(5, 3, 14, 4),
    WordLayout::eight(6, 2, 24, 4),
    WordLayout::eight(7, 1, 52, 4),
];
/// The same, up to 124.
pub const EIGHT_LARGE: [WordLayout; 6] = [
    WordLayout::eight(8, 6, 4, 5),
    WordLayout::eight(9, 5, 6, 5),
    WordLayout::eight(10, 4, 9, 5),
    WordLayout::eight(11, 3, 13, 5),
    WordLayout::eight(12, 2, 23, 5),
    WordLayout::eight(13, 1, 51, 5),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> Vec<WordLayout> {
        [&BASE[..], &SEVEN, &EIGHT_SMALL, &EIGHT_LARGE].concat()
    }

    #[test]
    fn a_layout_is_found_by_its_head_and_other_heads_have_none() {
        for layout in all() {
            assert_eq!(WordLayout::of(layout.head()), Some(layout));
        }
        let with_extension = (0..16).flat_map(|e| [7 | e << 4, 8 | e << 4]);
        let heads: Vec<u64> = (0..16).filter(|s| ![7, 8].contains(s)).chain(with_extension).collect();
        let known: Vec<u64> = all().iter().map(|layout| layout.head()).collect();
        for head in heads {
            assert_eq!(WordLayout::of(head).is_some(), known.contains(&head), "{head:#x}");
        }
    }

    #[test]
    fn the_slots_of_every_layout_lie_within_the_word() {
        for layout in all() {
            let end = layout.first_bit() + u32::from(layout.slots) * layout.slot_bits();
            assert!(end <= 64, "{layout:?}");
        }
    }
}
