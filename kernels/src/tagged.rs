//! Values of several types, back to back: a type byte of BSON and the bytes of the value. A missing value has no bytes at all.

/// Bytes of a word.
const WORD: usize = 8;

/// How many bytes the values of a type have, as far as `join` writes them: doubles, dates, int64s, int32s, booleans and null.
#[inline(always)]
fn len_of(kind: u8) -> usize {
    match kind {
        1 | 9 | 18 => 8,
        16 => 4,
        8 => 1,
        _ => 0,
    }
}

/// The type byte of each value, 0 if it is missing, and its first eight bytes as a word, filled up with zeros.
#[inline(never)]
pub fn parts(offsets: &[u32], bytes: &[u8]) -> (Vec<u8>, Vec<u64>) {
    let ends = offsets.get(1..).unwrap_or_default();
    let (mut kinds, mut words) = (Vec::with_capacity(ends.len()), Vec::with_capacity(ends.len()));
    for (start, end) in offsets.iter().zip(ends) {
        let value = bytes.get(*start as usize..*end as usize).unwrap_or_default();
        let (kind, rest) = value.split_first().unwrap_or((&0, &[]));
        // Most values have eight bytes.
        let word = rest.first_chunk::<WORD>().copied().unwrap_or_else(|| {
            let mut word = [0; WORD];
            word.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
            word
        });
        kinds.push(*kind);
        words.push(u64::from_le_bytes(word));
    }
    (kinds, words)
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

    #[test]
    fn of_longer_values_the_first_bytes_are_the_word() {
        let bytes = [2, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11];
        assert_eq!(parts(&[0, 12, 12], &bytes), (vec![2, 0], vec![u64::from_le_bytes([1, 2, 3, 4, 5, 6, 7, 8]), 0]));
        assert_eq!(parts(&[], &[]), (vec![], vec![]));
    }
}
