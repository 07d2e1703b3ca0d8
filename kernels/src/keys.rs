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
    mix(hash, tail(rest)) as u32
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

/// Appends what `numbers` has for each of the cells, up to the first that is no key. Cell `i` is `bytes[offsets[i]..offsets[i + 1]]`.
#[inline(never)]
pub fn append_known(keys: Keys<'_>, numbers: &[u32], offsets: &[u32], bytes: &[u8], out: &mut Vec<u32>) {
    let mut last: (&[u8], u32) = (&[], u32::MAX);
    let ends = offsets.get(1..).unwrap_or_default();
    out.extend(offsets.iter().zip(ends).map_while(|(start, end)| {
        let cell = bytes.get(*start as usize..*end as usize).unwrap_or_default();
        if last.1 == u32::MAX || !same(last.0, cell) {
            let known = keys.find(hashed(cell), cell).ok()?;
            last = (cell, numbers.get(known).copied()?);
        }
        Some(last.1)
    }));
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
        append_known(keys, &[10, 11, 12, 13], &offsets, &text, &mut out);
        assert_eq!(out, [1, 12, 12, 10, 11, 13]);
        append_known(keys, &[10, 11, 12, 13], &offsets[6..], &text, &mut out);
        assert_eq!(out, [1, 12, 12, 10, 11, 13, 11]);
        append_known(keys, &[], &[], &text, &mut out);
        assert_eq!(out.len(), 7);
    }
}
