//! Unpacks words of differences: 64 bits that a selector divides into slots of equal width (Simple-8b, docs/internals/columns.md).

/// Where a stream of differences stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The last value.
    pub value: i64,
    /// What the last difference was.
    pub slope: i64,
}

/// What a slot adds to the values before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The difference from the value before.
    Difference,
    /// The change of that difference.
    Change,
}

/// How a word is divided.
#[derive(Clone, Copy)]
struct Layout {
    /// 0 for what is no layout.
    slots: u8,
    /// Bits of a slot: above those of the count, the value.
    width: u8,
    /// Bits of the count of trailing zeros that the value has lost, and how many each of them stands for.
    count_bits: u8,
    unit: u8,
    /// Where the first slot begins.
    first_bit: u8,
    /// The lowest bit of every slot, with the first slot at bit 0.
    lowest: u64,
}

const NONE: Layout = Layout { slots: 0, width: 1, count_bits: 0, unit: 0, first_bit: 4, lowest: 0 };

/// By selector; those of selectors 7 and 8 with an extension stand behind, from 16 and 32 on.
const LAYOUTS: [Layout; 48] = {
    const fn all_of(
        all: &mut [Layout; 48],
        from: usize,
        slots: &[(u8, u8)],
        (count_bits, unit, first_bit): (u8, u8, u8),
    ) {
        let mut i = 0;
        // Evaluated at compile time, where indexing is checked.
        #[allow(clippy::indexing_slicing)]
        while i < slots.len() {
            let (slots, value_bits) = slots[i];
            let width = value_bits + count_bits;
            let (mut lowest, mut slot) = (0, 0);
            while slot < slots as u32 {
                lowest |= 1 << (slot * width as u32);
                slot += 1;
            }
            all[from + i] = Layout { slots, width, count_bits, unit, first_bit, lowest };
            i += 1;
        }
    }
    let mut all = [NONE; 48];
    all_of(&mut all, 1, &[(60, 1), (30, 2), (20, 3), (15, 4), (12, 5), (10, 6)], (0, 0, 4));
    all_of(&mut all, 9, &[(6, 10), (5, 12), (4, 15), (3, 20), (2, 30), (1, 60)], (0, 0, 4));
    all_of(&mut all, 16, &[(8, 7)], (0, 0, 8));
    all_of(&mut all, 17, &[(9, 2), (8, 3), (7, 4), (6, 5), (5, 7), (4, 10), (3, 14), (2, 24), (1, 52)], (4, 1, 8));
    all_of(&mut all, 32, &[(7, 8)], (0, 0, 8));
    all_of(&mut all, 33, &[(7, 4), (6, 5), (5, 7), (4, 10), (3, 14), (2, 24), (1, 52)], (4, 4, 8));
    all_of(&mut all, 40, &[(6, 4), (5, 6), (4, 9), (3, 13), (2, 23), (1, 51)], (5, 4, 8));
    all
};

/// How `word` is divided, by its number in `LAYOUTS`.
#[inline(always)]
fn index_of(word: u64) -> usize {
    let (selector, extension) = ((word & 15) as usize, (word >> 4 & 15) as usize);
    match selector {
        7 => 16 + extension,
        8 => 32 + extension,
        _ => selector,
    }
}

/// The number of slots of `word`; 0 if it is a run, if a slot is missing, or if there is no such layout.
#[inline(always)]
pub(crate) fn slots_of(word: u64) -> usize {
    let layout = LAYOUTS.get(index_of(word)).unwrap_or(&NONE);
    // After inversion, a slot of ones is a slot of zeros. Subtracting one from each slot borrows only from a zero, and then sets its
    // highest bit, which was clear.
    let turned = !word >> layout.first_bit;
    let missing = turned.wrapping_sub(layout.lowest) & !turned & layout.lowest << (layout.width - 1);
    if missing == 0 { layout.slots.into() } else { 0 }
}

/// Appends the values of the first of `words` to `rows`, at most `room` of them. Returns how many words it has read: it stops at the first one that is
/// a run, has a missing slot or an unknown layout, or does not fit.
#[inline(never)]
pub fn read_full(words: &[[u8; 8]], slot: Slot, at: &mut Position, room: usize, rows: &mut Vec<i64>) -> usize {
    let (mut read, mut count) = (0, 0);
    for word in words {
        let slots = slots_of(u64::from_le_bytes(*word));
        if slots == 0 || count + slots > room {
            break;
        }
        count += slots;
        read += 1;
    }
    if read == 0 {
        return 0;
    }
    // Once for all words.
    let before = rows.len();
    rows.resize(before + count + FEW, 0);
    let out = rows.get_mut(before..).unwrap_or_default();
    let words = words.get(..read).unwrap_or_default();
    match slot {
        Slot::Difference => unpack(words, out, at, |here, delta| {
            here.slope = delta;
            here.value = here.value.wrapping_add(delta);
        }),
        Slot::Change => unpack(words, out, at, |here, change| {
            here.slope = here.slope.wrapping_add(change);
            here.value = here.value.wrapping_add(here.slope);
        }),
    }
    rows.truncate(before + count);
    read
}

/// Slots are read so many at a time, the last ones with some that are not there: numbers of slots change from word to word, and a loop of just as many
/// steps takes longer. Rows take no more memory while they are read if they have room for so many more.
pub const FEW: usize = 8;

/// Makes of each slot a cell of `out`: the value where `step` has taken the position. Behind the cells, `out` has room for `FEW` more.
#[inline(always)]
fn unpack(words: &[[u8; 8]], out: &mut [i64], at: &mut Position, step: impl Fn(&mut Position, i64)) {
    let (mut here, mut done) = (*at, 0);
    for word in words {
        let word = u64::from_le_bytes(*word);
        let layout = LAYOUTS.get(index_of(word)).unwrap_or(&NONE);
        let slots = usize::from(layout.slots);
        let mut rest = word >> layout.first_bit;
        let ones = (1_u64 << layout.width) - 1;
        let Some(behind) = out.get_mut(done..) else { break };
        done += slots;
        if layout.count_bits == 0 {
            let before = here.value;
            let Some(cells) = behind.get_mut(..slots.next_multiple_of(FEW)) else { break };
            for few in cells.as_chunks_mut::<FEW>().0 {
                for cell in few {
                    step(&mut here, signed(rest & ones));
                    *cell = here.value;
                    rest >>= layout.width;
                }
            }
            let cell = |at: usize| cells.get(at).copied();
            let value = cell(slots.wrapping_sub(1)).unwrap_or_default();
            here = Position { value, slope: value.wrapping_sub(cell(slots.wrapping_sub(2)).unwrap_or(before)) };
        } else {
            let counts = (1_u64 << layout.count_bits) - 1;
            for cell in behind.iter_mut().take(slots) {
                let slot = rest & ones;
                // The format counts the zeros modulo 64.
                let zeros = (slot & counts) as u32 * u32::from(layout.unit) % 64;
                step(&mut here, signed(slot >> layout.count_bits << zeros));
                *cell = here.value;
                rest >>= layout.width;
            }
        }
    }
    *at = here;
}

/// Passes the values of the slots of one word to `push`; `slots_of` must not be 0. For words of few slots, among other items.
#[inline(always)]
pub(crate) fn take_apart(word: u64, slot: Slot, at: &mut Position, mut push: impl FnMut(i64)) {
    let layout = LAYOUTS.get(index_of(word)).unwrap_or(&NONE);
    let (ones, counts) = ((1_u64 << layout.width) - 1, (1_u64 << layout.count_bits) - 1);
    let mut rest = word >> layout.first_bit;
    for _ in 0..layout.slots {
        let bits = rest & ones;
        // The format counts the zeros modulo 64.
        let zeros = (bits & counts) as u32 * u32::from(layout.unit) % 64;
        let delta = signed(bits >> layout.count_bits << zeros);
        at.slope = if slot == Slot::Change { at.slope.wrapping_add(delta) } else { delta };
        at.value = at.value.wrapping_add(at.slope);
        push(at.value);
        rest >>= layout.width;
    }
}

/// Zigzag: the lowest bit is the sign.
#[inline(always)]
fn signed(raw: u64) -> i64 {
    (raw >> 1).cast_signed() ^ -(raw & 1).cast_signed()
}

/// A string of at most sixteen bytes as an integer, and the number of its entry plus one; 0 in a free place.
pub type KnownText = (i128, u32);

/// How many strings are known, each in a place of its own.
pub const TEXTS: usize = 64;

/// The place of a string among those that are known.
#[inline(always)]
pub fn place_of_text(text: i128) -> usize {
    let folded = text as u64 ^ (text >> 64) as u64;
    (folded.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % TEXTS
}

/// Appends the entries of the strings in the first of `words` to `entries`, at most `room` of them; `at` is the string before them and its entry. Returns how
/// many words it has read: it stops where `read_full` does, and at the first word with a string that is not in `known`.
#[inline(never)]
pub fn read_texts(
    words: &[[u8; 8]],
    known: &[KnownText],
    (text, entry): (&mut i128, &mut u32),
    room: usize,
    entries: &mut Vec<u32>,
) -> usize {
    let begin = entries.len();
    for (read, word) in words.iter().enumerate() {
        let word = u64::from_le_bytes(*word);
        let (slots, before) = (slots_of(word), entries.len());
        if slots == 0 || before - begin + slots > room {
            return read;
        }
        let layout = LAYOUTS.get(index_of(word)).unwrap_or(&NONE);
        let mut rest = word >> layout.first_bit;
        let (ones, counts) = ((1_u64 << layout.width) - 1, (1_u64 << layout.count_bits) - 1);
        let (mut here, mut number) = (*text, *entry);
        for _ in 0..slots {
            let slot = rest & ones;
            rest >>= layout.width;
            // To shift 128 bits is a call.
            let zeros = (slot & counts) as u32 * u32::from(layout.unit) % 128;
            let short = slot >> layout.count_bits;
            if short > 0 {
                here = here.wrapping_add(match zeros {
                    0 => ((short >> 1).cast_signed() ^ -(short & 1).cast_signed()).into(),
                    _ => {
                        let raw = u128::from(short) << zeros;
                        (raw >> 1).cast_signed() ^ -(raw & 1).cast_signed()
                    }
                });
                match known.get(place_of_text(here)) {
                    Some((same, found @ 1..)) if *same == here => number = found - 1,
                    _ => {
                        entries.truncate(before);
                        return read;
                    }
                }
            }
            entries.push(number);
        }
        (*text, *entry) = (here, number);
    }
    words.len()
}

/// Appends `count` values of which each has the difference that the last one had, or a change of it by `change`.
#[inline(never)]
pub fn run(count: usize, change: i64, at: &mut Position, rows: &mut Vec<i64>) {
    let mut here = *at;
    rows.extend((0..count).map(|_| {
        here.slope = here.slope.wrapping_add(change);
        here.value = here.value.wrapping_add(here.slope);
        here.value
    }));
    *at = here;
}

/// Appends the literals at the start of `bytes` that have the type byte `tag`, no name, and eight bytes, at most `room` of them. Returns how many.
#[inline(never)]
pub fn literals(bytes: &[u8], tag: u8, room: usize, rows: &mut Vec<i64>) -> usize {
    let (items, _) = bytes.as_chunks::<10>();
    let before = rows.len();
    rows.extend(items.iter().take(room).map_while(|item| {
        let [kind, name, b0, b1, b2, b3, b4, b5, b6, b7] = *item;
        (kind == tag && name == 0).then_some(i64::from_le_bytes([b0, b1, b2, b3, b4, b5, b6, b7]))
    }));
    rows.len() - before
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One slot after the other; `None` for what is not full.
    fn naive(word: u64) -> Option<Vec<i64>> {
        const BASE: [(u32, u32); 14] = [
            (60, 1),
            (30, 2),
            (20, 3),
            (15, 4),
            (12, 5),
            (10, 6),
            (8, 7),
            (7, 8),
            (6, 10),
            (5, 12),
            (4, 15),
            (3, 20),
            (2, 30),
            (1, 60),
        ];
        const SEVEN: [(u32, u32); 9] = [(9, 2), (8, 3), (7, 4), (6, 5), (5, 7), (4, 10), (3, 14), (2, 24), (1, 52)];
        const EIGHT: [(u32, u32); 13] = [
            (7, 4),
            (6, 5),
            (5, 7),
            (4, 10),
            (3, 14),
            (2, 24),
            (1, 52),
            (6, 4),
            (5, 6),
            (4, 9),
            (3, 13),
            (2, 23),
            (1, 51),
        ];
        let (selector, extension) = ((word & 15) as usize, (word >> 4 & 15) as usize);
        let ((slots, value_bits), count_bits, unit, first_bit) = match (selector, extension) {
            (7, 1..) => (*SEVEN.get(extension - 1)?, 4, 1, 8),
            (8, 1..) => (*EIGHT.get(extension - 1)?, if extension < 8 { 4 } else { 5 }, 4, 8),
            _ => (*BASE.get(selector.wrapping_sub(1))?, 0, 0, if matches!(selector, 7 | 8) { 8 } else { 4 }),
        };
        let width = value_bits + count_bits;
        let ones = (1_u64 << width) - 1;
        let raw = |slot: u64| {
            let zeros = (slot & ((1 << count_bits) - 1)) * unit;
            slot >> count_bits << (zeros % 64)
        };
        let value = |raw: u64| if raw & 1 == 1 { !((raw >> 1) as i64) } else { (raw >> 1) as i64 };
        (0..slots)
            .map(|i| Some(word >> (first_bit + i * width) & ones).filter(|slot| *slot != ones).map(raw).map(value))
            .collect()
    }

    fn any_word() -> impl Strategy<Value = u64> {
        prop_oneof![
            1 => any::<u64>(),
            6 => (1..15_u64, any::<u64>(), any::<u64>()).prop_map(|(selector, a, b)| selector | (a & b) >> 8 << 8),
            3 => (7..9_u64, 0..16_u64, any::<u64>(), any::<u64>()).prop_map(|(selector, extension, a, b)| selector | extension << 4 | (a & b) >> 8 << 8),
            1 => (0..16_u64).prop_map(|selector| selector | u64::MAX << 8),
        ]
    }

    proptest! {
        #[test]
        fn full_words_give_the_running_sums_of_their_slots(words in proptest::collection::vec(any_word(), 0..20), room in 0..400_usize, by_change in any::<bool>(), value in any::<i64>(), slope in any::<i64>()) {
            let slot = if by_change { Slot::Change } else { Slot::Difference };
            let (mut at, mut rows, mut read) = (Position { value, slope }, vec![7], 0);
            for slots in words.iter().map_while(|word| naive(*word)) {
                if rows.len() - 1 + slots.len() > room {
                    break;
                }
                for n in slots {
                    at.slope = if by_change { at.slope.wrapping_add(n) } else { n };
                    at.value = at.value.wrapping_add(at.slope);
                    rows.push(at.value);
                }
                read += 1;
            }
            let bytes: Vec<[u8; 8]> = words.iter().map(|word| word.to_le_bytes()).collect();
            let (mut found_at, mut found) = (Position { value, slope }, vec![7]);
            prop_assert_eq!(read_full(&bytes, slot, &mut found_at, room, &mut found), read);
            prop_assert_eq!((found_at, found), (at, rows));
        }

        #[test]
        fn known_texts_are_read_up_to_the_first_word_with_another(picks in proptest::collection::vec(0..5_usize, 0..60), unknown in 0..80_usize, room in 0..70_usize) {
            // Words of two slots of thirty bits, between strings that are known, until one is not.
            let texts = [0x61, 0x6162, 0x6263, 0x7A, 0x6161];
            let mut known = [(0, 0); TEXTS];
            for (number, text) in (1..).zip(texts) {
                known[place_of_text(text)] = (text, number);
            }
            prop_assert!(texts.iter().zip(1..).all(|(text, number)| known[place_of_text(*text)] == (*text, number)));
            let (mut here, mut words) = (texts[0], Vec::new());
            for (at, two) in picks.as_chunks::<2>().0.iter().enumerate() {
                let slots = two.map(|pick| {
                    let next = if 2 * at + 1 > unknown { 0x70 } else { texts[pick] };
                    let delta = next - here;
                    here = next;
                    (delta << 1 ^ delta >> 127) as u64
                });
                words.push((13 | slots[0] << 4 | slots[1] << 34).to_le_bytes());
            }
            let (mut text, mut entry, mut found) = (texts[0], 0, vec![9]);
            let read = read_texts(&words, &known, (&mut text, &mut entry), room, &mut found);
            let wanted = (picks.len() / 2).min(room / 2).min(unknown.div_ceil(2));
            let expected: Vec<u32> = picks.iter().take(2 * wanted).map(|pick| *pick as u32).collect();
            prop_assert_eq!((read, &found[1..]), (wanted, &expected[..]));
            let last = expected.last().copied().unwrap_or_default();
            prop_assert_eq!((text, entry), (texts[last as usize], last));
        }

        #[test]
        fn a_run_goes_on_with_the_difference_or_its_change(count in 0..300_usize, change in any::<i64>(), value in any::<i64>(), slope in any::<i64>()) {
            let (mut at, mut rows) = (Position { value, slope }, vec![7]);
            run(count, change, &mut at, &mut rows);
            let (mut expected, mut value, mut slope) = (vec![7], value, slope);
            for _ in 0..count {
                slope = slope.wrapping_add(change);
                value = value.wrapping_add(slope);
                expected.push(value);
            }
            prop_assert_eq!((at, rows), (Position { value, slope }, expected));
        }

        #[test]
        fn literals_are_read_up_to_the_first_that_is_something_else(cells in proptest::collection::vec(any::<i64>(), 0..20), room in 0..25_usize, tail in proptest::collection::vec(any::<u8>(), 0..12), odd in 0..25_usize) {
            let mut bytes = Vec::new();
            for (i, cell) in cells.iter().enumerate() {
                bytes.extend([if i == odd { 2 } else { 1 }, 0]);
                bytes.extend(cell.to_le_bytes());
            }
            bytes.extend(tail.iter().map(|b| b | 0x80));
            let mut rows = vec![7];
            let count = cells.len().min(room).min(odd);
            prop_assert_eq!(literals(&bytes, 1, room, &mut rows), count);
            prop_assert_eq!(&rows[1..], &cells[..count]);
        }
    }

    #[test]
    fn every_layout_has_its_slots_within_the_word() {
        for layout in LAYOUTS {
            assert!(u32::from(layout.slots) * u32::from(layout.width) + u32::from(layout.first_bit) <= 64);
        }
    }
}
