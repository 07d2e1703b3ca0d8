//! Values of several types, back to back: a type byte of BSON and the bytes of the value. A missing value has no bytes at all.

use crate::kinds::{BOOL, DATE, DOUBLE, INT32, INT64, NULL};

/// Bytes of a word.
const WORD: usize = 8;

/// How many entries are remembered to recognise repetitions.
const SEEN: usize = 256;

/// So many values may differ before the first one repeats.
const FEW: usize = 32;

/// How many bytes the values of a type have, as far as `join` writes them: doubles, dates, int64s, int32s, booleans and null.
#[inline(always)]
fn len_of(kind: u8) -> usize {
    match kind {
        DOUBLE | DATE | INT64 => 8,
        INT32 => 4,
        BOOL => 1,
        _ => 0,
    }
}

/// The type byte of each value, 0 if it is missing, and its first eight bytes as a word, filled up with zeros.
#[inline(never)]
pub fn parts(offsets: &[u32], bytes: &[u8]) -> (Vec<u8>, Vec<u64>) {
    let ends = offsets.get(1..).unwrap_or_default();
    let (mut kinds, mut words) = (Vec::with_capacity(ends.len()), Vec::with_capacity(ends.len()));
    for (start, end) in offsets.iter().zip(ends) {
        let (start, end) = (*start as usize, *end as usize);
        // Eight bytes are read; the bytes behind a shorter value are masked out.
        let whole = bytes
            .get(start..)
            .and_then(|rest| rest.split_first())
            .and_then(|(kind, rest)| Some((*kind, rest.first_chunk::<WORD>()?)));
        let (kind, word) = match whole {
            Some((_, _)) if start == end => (0, 0),
            Some((kind, word)) => {
                let missing = WORD.saturating_sub(end.wrapping_sub(start + 1)) as u32;
                (kind, u64::from_le_bytes(*word) & u64::MAX.checked_shr(8 * missing).unwrap_or_default())
            }
            None => {
                let (kind, rest) = bytes.get(start..end).and_then(<[u8]>::split_first).unwrap_or((&0, &[]));
                let mut word = [0; WORD];
                word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                (*kind, u64::from_le_bytes(word))
            }
        };
        kinds.push(kind);
        words.push(word);
    }
    (kinds, words)
}

/// Leaves of each word what belongs to a value of its type: the low half of an int32, which the format lets wrap around, and 0 or 1 of a boolean.
#[inline(never)]
pub fn narrow(kinds: &[u8], words: &mut [u64]) {
    for (kind, word) in kinds.iter().zip(words) {
        *word = match *kind {
            BOOL => u64::from(*word != 0),
            INT32 => *word & u64::from(u32::MAX),
            _ => *word,
        };
    }
}

/// Values with these type bytes and words as numbers of entries, and the entries: 0 for missing ones, whose type byte is 0. `None` if more than half of the values
/// are entries; also if more than half of those before some row are, and a few more. Values that do not repeat soon may have several entries.
#[inline(never)]
pub fn entries(kinds: &[u8], words: &[u64]) -> Option<(Vec<u32>, Vec<u8>, Vec<u64>)> {
    let mut index: Vec<u32> = Vec::with_capacity(kinds.len());
    let (mut entry_kinds, mut entry_words) = (Vec::new(), Vec::new());
    // Numbers of entries by their hashes, each plus one.
    let mut seen = [0_u32; SEEN];
    let mut present = 0;
    for (kind, word) in kinds.iter().zip(words) {
        if *kind == 0 {
            index.push(0);
            continue;
        }
        present += 1;
        let hash = (word ^ u64::from(*kind)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56;
        let slot = seen.get_mut(hash as usize)?;
        let known = (*slot as usize).wrapping_sub(1);
        if entry_words.get(known) != Some(word) || entry_kinds.get(known) != Some(kind) {
            if entry_words.len() > present / 2 + FEW {
                return None;
            }
            entry_words.push(*word);
            entry_kinds.push(*kind);
            *slot = entry_words.len() as u32;
        }
        index.push(*slot - 1);
    }
    (entry_words.len() <= present / 2).then_some((index, entry_kinds, entry_words))
}

/// Doubles and integers of several types.
pub struct NumbersApart {
    /// The doubles, with zeros in place of all other values.
    pub doubles: Vec<f64>,
    /// The integers, with zeros in place of all other values.
    pub integers: Vec<i64>,
    /// How many values are doubles, int32s and int64s.
    pub counts: [u64; 3],
}

/// Takes doubles and integers apart. `None` if there are values of other types than these and null.
#[inline(never)]
pub fn numbers_apart(kinds: &[u8], words: &[u64]) -> Option<NumbersApart> {
    let (mut doubles, mut integers) = (Vec::with_capacity(kinds.len()), Vec::with_capacity(kinds.len()));
    let (mut counts, mut others) = ([0; 3], false);
    for (kind, word) in kinds.iter().zip(words) {
        let [is_double, is_int32, is_int64] = [DOUBLE, INT32, INT64].map(|wanted| u64::from(*kind == wanted));
        doubles.push(f64::from_bits(word & is_double.wrapping_neg()));
        let narrow = i64::from(*word as i32).cast_unsigned() & is_int32.wrapping_neg();
        integers.push((narrow | word & is_int64.wrapping_neg()).cast_signed());
        let [of_doubles, of_int32s, of_int64s] = counts;
        counts = [of_doubles + is_double, of_int32s + is_int32, of_int64s + is_int64];
        others |= !matches!(*kind, 0 | DOUBLE | NULL | INT32 | INT64);
    }
    (!others).then_some(NumbersApart { doubles, integers, counts })
}

/// Doubles and integers as the nearest doubles, with zeros in place of null and missing values. `None` if there are values of other types.
#[inline(never)]
pub fn near_doubles(kinds: &[u8], words: &[u64]) -> Option<Vec<f64>> {
    let mut cells = Vec::with_capacity(kinds.len());
    let mut others = false;
    for (kind, word) in kinds.iter().zip(words) {
        cells.push(match *kind {
            DOUBLE => f64::from_bits(*word),
            INT32 => f64::from(*word as i32),
            INT64 => word.cast_signed() as f64,
            _ => 0.0,
        });
        others |= !matches!(*kind, 0 | NULL | DOUBLE | INT32 | INT64);
    }
    (!others).then_some(cells)
}

/// Makes the words of int32s those of doubles. False if there are values of other types than these and null.
#[inline(never)]
pub fn make_doubles(kinds: &[u8], words: &mut [u64]) -> bool {
    let mut others = false;
    for (kind, word) in kinds.iter().zip(words) {
        let double = f64::from(*word as i32).to_bits();
        *word = if *kind == INT32 { double } else { *word };
        others |= !matches!(*kind, 0 | DOUBLE | NULL | INT32);
    }
    !others
}

/// Appends ends of values, which are counted from `from`, as if they were counted from `to`.
#[inline(never)]
pub fn move_ends(ends: &[u32], from: u32, to: u32, moved: &mut Vec<u32>) {
    moved.extend(ends.iter().map(|end| end.wrapping_sub(from).wrapping_add(to)));
}

/// The offsets and the bytes of values with these type bytes, 0 for missing ones, and these words.
#[inline(never)]
pub fn join(kinds: &[u8], words: &[u64]) -> (Vec<u32>, Vec<u8>) {
    let mut offsets = Vec::with_capacity(kinds.len() + 1);
    // Each value is written with a whole word, and the next one over what is too much of it.
    let mut bytes = vec![0; kinds.len() * (1 + WORD) + WORD];
    let mut end = 0;
    offsets.push(0);
    for (kind, word) in kinds.iter().zip(words) {
        if let Some((first, rest)) = bytes.get_mut(end..end + 1 + WORD).and_then(<[u8]>::split_first_mut) {
            *first = *kind;
            rest.copy_from_slice(&word.to_le_bytes());
        }
        end += usize::from(*kind != 0) + len_of(*kind);
        offsets.push(end as u32);
    }
    bytes.truncate(end);
    (offsets, bytes)
}

/// Appends values of one type, of which these are the cells: doubles, dates, int64s, int32s or booleans; or that many nulls.
#[inline(never)]
pub fn append(offsets: &mut Vec<u32>, bytes: &mut Vec<u8>, kind: u8, cells: &[u8], count: usize) {
    fn fill<const LEN: usize>(values: &mut [u8], cells: &[u8]) {
        let cells = cells.as_chunks::<LEN>().0;
        for (value, cell) in values.chunks_exact_mut(1 + LEN).zip(cells) {
            value.iter_mut().skip(1).zip(cell).for_each(|(to, from)| *to = *from);
        }
    }
    let (start, len) = (bytes.len(), 1 + len_of(kind));
    bytes.resize(start + count * len, kind);
    let values = bytes.get_mut(start..).unwrap_or_default();
    match len_of(kind) {
        8 => fill::<8>(values, cells),
        4 => fill::<4>(values, cells),
        1 => fill::<1>(values, cells),
        _ => {}
    }
    offsets.extend((1..=count).map(|number| (start + number * len) as u32));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn joined_values_have_the_parts_that_they_are_joined_from(rows in proptest::collection::vec((prop::sample::select(vec![0_u8, 1, 8, 9, 10, 16, 18]), any::<u64>()), 0..40)) {
            let (kinds, words): (Vec<u8>, Vec<u64>) = rows.iter().copied().unzip();
            let (offsets, bytes) = join(&kinds, &words);
            let mut expected = Vec::new();
            for (row, (kind, word)) in rows.iter().enumerate() {
                prop_assert_eq!(offsets[row] as usize, expected.len());
                if *kind > 0 {
                    expected.push(*kind);
                    expected.extend_from_slice(&word.to_le_bytes()[..len_of(*kind)]);
                }
            }
            prop_assert_eq!(offsets[rows.len()] as usize, expected.len());
            prop_assert_eq!(&bytes, &expected);
            let cut = |(kind, word): &(u8, u64)| if len_of(*kind) == WORD { *word } else { word & ((1 << (8 * len_of(*kind))) - 1) };
            prop_assert_eq!(parts(&offsets, &bytes), (kinds, rows.iter().map(cut).collect::<Vec<_>>()));
        }
    }

    proptest! {
        #[test]
        fn appended_values_are_those_that_are_joined(
            runs in proptest::collection::vec((prop::sample::select(vec![1_u8, 8, 9, 10, 16, 18]), proptest::collection::vec(any::<u64>(), 0..20)), 0..6),
        ) {
            let (mut offsets, mut bytes) = (vec![0], Vec::new());
            let (mut kinds, mut all) = (Vec::new(), Vec::new());
            for (kind, words) in &runs {
                let cells: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()[..len_of(*kind)].to_vec()).collect();
                append(&mut offsets, &mut bytes, *kind, &cells, words.len());
                kinds.extend(words.iter().map(|_| *kind));
                all.extend(words);
            }
            prop_assert_eq!((offsets, bytes), join(&kinds, &all));
        }
    }

    proptest! {
        #[test]
        fn entries_stand_for_the_values_that_they_were_made_of(
            rows in proptest::collection::vec((prop::sample::select(vec![0_u8, 1, 10, 16]), prop_oneof![9 => 0..3_u64, 1 => any::<u64>()]), 0..200),
        ) {
            let (kinds, words): (Vec<u8>, Vec<u64>) = rows.iter().copied().unzip();
            let Some(all) = entries(&kinds, &words) else { return Ok(()) };
            let value = |(row, kind): (usize, &u8)| if *kind == 0 { (0, words[row]) } else { (all.1[all.0[row] as usize], all.2[all.0[row] as usize]) };
            prop_assert_eq!(kinds.iter().enumerate().map(value).collect::<Vec<_>>(), rows.clone());
            prop_assert_eq!(all.0.len(), rows.len());
            let distinct: std::collections::HashSet<_> = rows.iter().filter(|(kind, _)| *kind != 0).collect();
            prop_assert!(all.1.len() >= distinct.len());
        }
    }

    #[test]
    fn values_of_which_most_differ_have_no_entries() {
        let words: Vec<u64> = (0..200).collect();
        assert!(entries(&[1; 200], &words).is_none());
        // A few may differ before the first one repeats.
        assert!(entries(&[1; 30], &words[..30]).is_none());
        assert!(entries(&[1; 60], &[&words[..30], &words[..30]].concat()).is_some());
        assert!(entries(&[1; 200], &[&words[..100], &words[..100]].concat()).is_none());
        let doubled: Vec<u64> = (0..200).map(|n| n / 2).collect();
        assert!(entries(&[1; 200], &doubled).is_some());
    }

    #[test]
    fn words_are_narrowed_to_their_types() {
        let mut words = [u64::MAX, u64::MAX, 0, u64::MAX, u64::MAX];
        narrow(&[1, 8, 8, 16, 18], &mut words);
        assert_eq!(words, [u64::MAX, 1, 0, u64::from(u32::MAX), u64::MAX]);
    }

    proptest! {
        #[test]
        fn doubles_and_integers_are_taken_apart_and_no_other_type(
            rows in proptest::collection::vec((prop::sample::select(vec![0_u8, 1, 10, 16, 18]), any::<u64>()), 0..40),
            other in proptest::option::of(prop::sample::select(vec![2_u8, 8, 9])),
        ) {
            let (mut kinds, words): (Vec<u8>, Vec<u64>) = rows.iter().copied().unzip();
            let count = |wanted: u8| kinds.iter().filter(|kind| **kind == wanted).count() as u64;
            let integer = |(kind, word): &(u8, u64)| match kind {
                16 => i64::from(*word as i32),
                18 => *word as i64,
                _ => 0,
            };
            let bits: Vec<u64> = rows.iter().map(|(kind, word)| if *kind == 1 { *word } else { 0 }).collect();
            let apart = numbers_apart(&kinds, &words).unwrap();
            prop_assert_eq!(apart.doubles.iter().map(|double| double.to_bits()).collect::<Vec<_>>(), bits);
            prop_assert_eq!(apart.integers, rows.iter().map(integer).collect::<Vec<_>>());
            prop_assert_eq!(apart.counts, [1, 16, 18].map(count));
            let near: Vec<f64> = rows.iter().map(|row| if row.0 == 1 { f64::from_bits(row.1) } else { integer(row) as f64 }).collect();
            let found = near_doubles(&kinds, &words).unwrap();
            prop_assert!(found.iter().zip(&near).all(|(x, y)| x.to_bits() == y.to_bits()) && found.len() == near.len());
            let mut made = words.clone();
            prop_assert_eq!(make_doubles(&kinds, &mut made), count(18) == 0);
            for ((kind, word), made) in rows.iter().zip(&made) {
                prop_assert_eq!(*made, if *kind == 16 { f64::from(*word as i32).to_bits() } else { *word });
            }
            if let (Some(kind), Some(last)) = (other, kinds.last_mut()) {
                *last = kind;
                prop_assert!(numbers_apart(&kinds, &words).is_none() && near_doubles(&kinds, &words).is_none());
                prop_assert!(!make_doubles(&kinds, &mut made));
            }
        }
    }

    #[test]
    fn of_longer_values_the_first_bytes_are_the_word() {
        let bytes = [2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
        assert_eq!(parts(&[0, 12, 12], &bytes), (vec![2, 0], vec![u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8]), 0]));
        assert_eq!(parts(&[], &[]), (vec![], vec![]));
        // A value of one byte in front of others.
        let bytes = [8, 1, 2, 1, 2, 3, 4, 5, 6, 7, 8, 9];
        assert_eq!(parts(&[0, 2, 2, 12], &bytes).0, [8, 0, 2]);
        assert_eq!(parts(&[0, 2, 2, 12], &bytes).1, [1, 0, u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8])]);
        let mut ends = vec![0];
        move_ends(&[7, 7, 12], 5, 100, &mut ends);
        assert_eq!(ends, [0, 102, 102, 107]);
    }
}
