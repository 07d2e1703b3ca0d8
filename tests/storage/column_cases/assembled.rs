//! Columns built from items in an order that no encoder writes, for decoders only.

use super::objects;
use super::random::Random;
use super::scalars;

/// A column; every eleven bytes give an item, or several items of a section.
pub fn assembled(bytes: &[u8]) -> Vec<u8> {
    let mut column = Vec::new();
    for item in bytes.chunks(11) {
        let [what, kind, seed, number @ ..]: [u8; 11] =
            std::array::from_fn(|i| item.get(i).copied().unwrap_or_default());
        let mut random = Random::new(seed);
        let word = tame(u64::from_le_bytes(number), kind);
        match what % 8 {
            0 | 1 => column.extend(literal(&scalars::fresh(kind, &mut random))),
            2 => column.extend(literal(&objects::track(1, kind, &mut random)[0])),
            3 => column.extend(section(kind, word, &mut random)),
            4 => column.extend(control(0x90 + 0x10 * (kind % 5), word)),
            _ => column.extend(control(0x80, word)),
        }
    }
    column.push(0);
    column
}

/// A word that is mostly accepted: with few one bits, so that deltas are small.
fn tame(word: u64, how: u8) -> u64 {
    let extension = word & 0xF0;
    match how >> 5 {
        0 => word & 15,
        1 => word | !15,
        2 => 15 | extension,
        3 => word & 0x0303_0303_0303_0303_u64 | word & 0xFF,
        4 => 7 | extension | word & 0xFFFF_FF00,
        5 => 8 | extension | word & 0xFFFF_FF00,
        _ => word,
    }
}

/// An element with an empty name.
fn literal(element: &[u8]) -> Vec<u8> {
    [&[element[0], 0], &element[1..]].concat()
}

fn control(first: u8, word: u64) -> Vec<u8> {
    [&[first][..], &word.to_le_bytes()].concat()
}

/// A section whose streams have one word each, mostly with the same number of slots. Sometimes a stream has a literal as well.
fn section(kind: u8, word: u64, random: &mut Random) -> Vec<u8> {
    let object = objects::track(1, kind, random).swap_remove(0);
    let start = match object[0] {
        0x04 => 0xF2,
        _ if random.chance(30) => 0xF0,
        _ => 0xF1,
    };
    let scalars = objects::scalar_count(&object, start == 0xF0);
    let mut bytes = [&[start], &object[1..]].concat();
    if random.chance(20) {
        for _ in 0..scalars {
            bytes.extend(literal(&scalars::fresh(random.next() as u8, random)));
        }
    }
    for _ in 0..scalars {
        let word = match random.below(8) {
            // Only zeros, or only missing elements.
            0..5 => word & 15 | if matches!(word & 15, 7 | 8 | 15) { word & 0xF0 } else { 0 },
            5 | 6 => word | !15 ^ if matches!(word & 15, 7 | 8) { !word & 0xF0 } else { 0 },
            _ => word,
        };
        let scale = if random.chance(10) { 0x90 } else { 0x80 };
        bytes.extend(control(scale, word));
    }
    if !random.chance(3) {
        bytes.push(0);
    }
    bytes
}
