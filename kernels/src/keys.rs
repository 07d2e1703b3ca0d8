//! Looks byte strings up in a hash table.

/// Byte strings, numbered from 0 on.
#[derive(Clone, Copy)]
pub struct Keys<'a> {
    /// The keys, end to end.
    pub bytes: &'a [u8],
    /// Where each key ends.
    pub ends: &'a [u32],
    /// The number of a key plus one, below the hash of the key, or 0 in a free slot. The length is a power of two, and some slots are free. With the hash, keys
    /// are hardly ever read to be told apart.
    pub table: &'a [u64],
}

impl<'a> Keys<'a> {
    /// The key with this number; empty if there is none.
    #[inline(always)]
    fn key(self, number: usize) -> &'a [u8] {
        let start = number.checked_sub(1).and_then(|before| self.ends.get(before)).copied().unwrap_or_default();
        let end = self.ends.get(number).copied().unwrap_or_default();
        self.bytes.get(start as usize..end as usize).unwrap_or_default()
    }

    #[inline(always)]
    fn find(self, hash: u32, key: &[u8]) -> Result<usize, usize> {
        let mask = self.table.len().wrapping_sub(1);
        let mut place = hash as usize & mask;
        while let Some(slot) = self.table.get(place).filter(|slot| **slot != 0) {
            let number = (*slot as u32 - 1) as usize;
            if (*slot >> 32) as u32 == hash && same(self.key(number), key) {
                return Ok(number);
            }
            place = (place + 1) & mask;
        }
        Err(place)
    }
}

/// True if both have the same bytes. Keys are short, and the standard comparison is a call of a loop over bytes.
#[inline(always)]
fn same(a: &[u8], b: &[u8]) -> bool {
    let ((words, rest), (other_words, other_rest)) = (a.as_chunks::<8>(), b.as_chunks::<8>());
    a.len() == b.len() && tail(rest) == tail(other_rest) && words.iter().zip(other_words).all(|(a, b)| a == b)
}

/// Up to seven bytes as a word. Without a loop, which the compiler would unroll.
#[inline(always)]
fn tail(bytes: &[u8]) -> u64 {
    let (fours, rest) = bytes.as_chunks::<4>();
    let (twos, rest) = rest.as_chunks::<2>();
    let four = fours.first().map_or(0, |four| u64::from(u32::from_le_bytes(*four)));
    let two = twos.first().map_or(0, |two| u64::from(u16::from_le_bytes(*two)));
    let one = rest.first().map_or(0, |byte| u64::from(*byte));
    four << 24 | two << 8 | one
}

/// A hash in which every bit of the key reaches the lower bits.
#[inline(always)]
fn hashed(key: &[u8]) -> u32 {
    const PRIME: u64 = 0x9E37_79B9_7F4A_7C15;
    let mix = |hash: u64, word: u64| {
        let product = (hash ^ word).wrapping_mul(PRIME);
        product ^ product >> 32
    };
    let (words, rest) = key.as_chunks::<8>();
    let hash = words.iter().fold(key.len() as u64, |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let tail = tail(rest);
    // A bit above the fortieth would not reach the lowest ones: ids often differ in nothing but their last byte.
    mix(hash, tail ^ tail >> 24) as u32
}

/// The hash of a key.
#[inline(never)]
pub fn hash(key: &[u8]) -> u32 {
    hashed(key)
}

/// The number of a key with this hash, or else the free slot of the table for it.
#[inline(never)]
pub fn place(keys: Keys<'_>, hash: u32, key: &[u8]) -> Result<usize, usize> {
    keys.find(hash, key)
}

/// A set to which byte strings may be added.
pub struct KeysMut<'a> {
    /// As in `Keys`.
    pub bytes: &'a mut Vec<u8>,
    /// As in `Keys`.
    pub ends: &'a mut Vec<u32>,
    /// As in `Keys`.
    pub table: &'a mut [u64],
}

/// Appends what `numbers` has for each of the cells, up to the first that is no key. If it `adds`, cells become keys, with their own numbers in `numbers`, while
/// less than half of the slots are taken. Cell `i` is `bytes[offsets[i]..offsets[i + 1]]`.
#[inline(never)]
pub fn append_numbers(
    keys: KeysMut<'_>,
    numbers: &mut Vec<u32>,
    adds: bool,
    offsets: &[u32],
    bytes: &[u8],
    out: &mut Vec<u32>,
) {
    let mut last: (&[u8], u32) = (&[], u32::MAX);
    let ends = offsets.get(1..).unwrap_or_default();
    out.extend(offsets.iter().zip(ends).map_while(|(start, end)| {
        let cell = bytes.get(*start as usize..*end as usize).unwrap_or_default();
        if last.1 == u32::MAX || !same(last.0, cell) {
            let (hash, known) = (hashed(cell), Keys { bytes: keys.bytes, ends: keys.ends, table: keys.table });
            let number = match known.find(hash, cell) {
                Ok(known) => numbers.get(known).copied()?,
                Err(place) => {
                    let number = keys.ends.len() as u32;
                    let has_room = adds && 2 * (number as usize) < keys.table.len();
                    let slot = keys.table.get_mut(place).filter(|_| has_room)?;
                    *slot = u64::from(hash) << 32 | u64::from(number + 1);
                    keys.bytes.extend_from_slice(cell);
                    keys.ends.push(keys.bytes.len() as u32);
                    numbers.push(number);
                    number
                }
            };
            last = (cell, number);
        }
        Some(last.1)
    }));
}

/// Puts the keys of a table into a larger one, which is empty.
#[inline(never)]
pub fn move_keys(table: &[u64], larger: &mut [u64]) {
    let mask = larger.len().wrapping_sub(1);
    for slot in table.iter().filter(|slot| **slot != 0) {
        let mut place = (*slot >> 32) as usize & mask;
        while larger.get(place).is_some_and(|taken| *taken != 0) {
            place = (place + 1) & mask;
        }
        larger.get_mut(place).into_iter().for_each(|free| *free = *slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_looked_up_to_the_first_unknown_one() {
        let words: [&[u8]; 4] = [b"", b"seven", b"exactly8", b"more than eight"];
        let (mut bytes, mut ends, mut table) = (Vec::new(), Vec::new(), vec![0; 16]);
        for (number, word) in (1..).zip(words) {
            let keys = Keys { bytes: &bytes, ends: &ends, table: &table };
            let free = place(keys, hash(word), word).unwrap_err();
            table[free] = u64::from(hash(word)) << 32 | number;
            bytes.extend_from_slice(word);
            ends.push(bytes.len() as u32);
        }
        let keys = Keys { bytes: &bytes, ends: &ends, table: &table };
        for (number, word) in words.iter().enumerate() {
            assert_eq!(place(keys, hash(word), word), Ok(number));
        }
        let cells = [2, 2, 0, 1, 3].map(|at: usize| words[at]);
        let text = [cells.concat(), b"other".to_vec(), b"seven".to_vec()].concat();
        let mut offsets = vec![0];
        for len in cells.iter().map(|cell| cell.len()).chain([5, 5]) {
            offsets.push(offsets.last().unwrap() + len as u32);
        }
        let mut out = vec![1];
        let mut numbers = vec![10, 11, 12, 13];
        let mut append = |numbers: &mut Vec<u32>, offsets: &[u32], out: &mut Vec<u32>| {
            let keys = KeysMut { bytes: &mut bytes, ends: &mut ends, table: &mut table };
            append_numbers(keys, numbers, false, offsets, &text, out);
        };
        append(&mut numbers, &offsets, &mut out);
        assert_eq!(out, [1, 12, 12, 10, 11, 13]);
        append(&mut numbers, &offsets[6..], &mut out);
        assert_eq!(out, [1, 12, 12, 10, 11, 13, 11]);
        let none = KeysMut { bytes: &mut Vec::new(), ends: &mut Vec::new(), table: &mut [] };
        append_numbers(none, &mut numbers, true, &offsets, &text, &mut out);
        assert_eq!(out.len(), 7);
    }

    #[test]
    fn keys_that_differ_in_any_byte_have_hashes_that_differ_in_their_lowest_bits() {
        for len in 1..30 {
            for place in 0..len {
                let mut key = vec![7; len];
                let mut is_met = [false; 256];
                for byte in 0..=255 {
                    key[place] = byte;
                    is_met[hash(&key) as usize % 256] = true;
                }
                let count = is_met.iter().filter(|is_met| **is_met).count();
                assert!(count > 64, "{count} in byte {place} of {len}");
            }
        }
    }

    #[test]
    fn cells_become_keys_while_there_is_room() {
        let words: [&[u8]; 6] = [b"one", b"", b"one", b"three", b"more than eight", b"one"];
        let (mut offsets, text) = (vec![0], words.concat());
        words.iter().for_each(|word| offsets.push(offsets.last().unwrap() + word.len() as u32));
        let (mut bytes, mut ends, mut table, mut out) = (Vec::new(), Vec::new(), vec![0; 4], Vec::new());
        let (mut numbers, keys) = (Vec::new(), KeysMut { bytes: &mut bytes, ends: &mut ends, table: &mut table });
        append_numbers(keys, &mut numbers, true, &offsets, &text, &mut out);
        assert_eq!((&out[..], &ends[..], &bytes[..]), (&[0, 1, 0][..], &[3, 3][..], &b"one"[..]));
        let mut larger = vec![0; 16];
        move_keys(&table, &mut larger);
        let keys = KeysMut { bytes: &mut bytes, ends: &mut ends, table: &mut larger };
        append_numbers(keys, &mut numbers, true, &offsets[3..], &text, &mut out);
        assert_eq!((&out[3..], ends.len(), numbers), (&[2, 3, 0][..], 4, vec![0, 1, 2, 3]));
    }
}
