//! Simple-8b words as slots.

/// An unsigned number, or `None` for a missing element.
pub type Slot = Option<u128>;

/// Selector, slots, bits of a slot. The slots begin at bit 4.
const PLAIN: [(u64, u32, u32); 12] = [
    (1, 60, 1),
    (2, 30, 2),
    (3, 20, 3),
    (4, 15, 4),
    (5, 12, 5),
    (6, 10, 6),
    (9, 6, 10),
    (10, 5, 12),
    (11, 4, 15),
    (12, 3, 20),
    (13, 2, 30),
    (14, 1, 60),
];

/// Selector, extension, slots, bits of the value, bits of the count, zeros per count. The slots begin at bit 8.
const EXTENDED: [(u64, u64, u32, u32, u32, u32); 24] = [
    (7, 0, 8, 7, 0, 0),
    (7, 1, 9, 2, 4, 1),
    (7, 2, 8, 3, 4, 1),
    (7, 3, 7, 4, 4, 1),
    (7, 4, 6, 5, 4, 1),
    (7, 5, 5, 7, 4, 1),
    (7, 6, 4, 10, 4, 1),
    (7, 7, 3, 14, 4, 1),
    (7, 8, 2, 24, 4, 1),
    (7, 9, 1, 52, 4, 1),
    (8, 0, 7, 8, 0, 0),
    (8, 1, 7, 4, 4, 4),
    (8, 2, 6, 5, 4, 4),
    (8, 3, 5, 7, 4, 4),
    (8, 4, 4, 10, 4, 4),
    (8, 5, 3, 14, 4, 4),
    (8, 6, 2, 24, 4, 4),
    (8, 7, 1, 52, 4, 4),
    (8, 8, 6, 4, 5, 4),
    (8, 9, 5, 6, 5, 4),
    (8, 10, 4, 9, 5, 4),
    (8, 11, 3, 13, 5, 4),
    (8, 12, 2, 23, 5, 4),
    (8, 13, 1, 51, 5, 4),
];

/// The slots of a word, in a stream of 128 bits if `wide`, else of 64 bits. A run repeats `last`, the last slot of the last
/// word other than a run.
pub fn slots(word: u64, wide: bool, last: Slot) -> Result<Vec<Slot>, String> {
    let selector = word & 15;
    let extension = word >> 4 & 15;
    if selector == 15 {
        return Ok(vec![last; 120 * (extension as usize + 1)]);
    }
    if let Some((_, slots, bits)) = PLAIN.into_iter().find(|row| row.0 == selector) {
        return Ok((0..slots).map(|i| number(word >> (4 + i * bits), bits, 0, 0, wide)).collect());
    }
    if let Some((.., slots, value, count, unit)) =
        EXTENDED.into_iter().find(|row| (row.0, row.1) == (selector, extension))
    {
        return Ok((0..slots).map(|i| number(word >> (8 + i * (value + count)), value, count, unit, wide)).collect());
    }
    Err(format!("no selector {selector} with extension {extension}"))
}

/// The number in the lowest `bits` bits.
fn number(bits: u64, value_bits: u32, count_bits: u32, unit: u32, wide: bool) -> Slot {
    let all_ones = (1 << (value_bits + count_bits)) - 1;
    let slot = bits & all_ones;
    if slot == all_ones {
        return None;
    }
    let count = slot & ((1 << count_bits) - 1);
    let value = slot >> count_bits;
    let shift = count as u32 * unit;
    Some(if wide { u128::from(value) << shift } else { u128::from(value << (shift % 64)) })
}
