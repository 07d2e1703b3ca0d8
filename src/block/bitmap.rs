//! A set of rows, one bit each: presence of cells and selections of predicates.

use std::ops::Range;
use std::slice;

use kernels::bits;

/// `len` bits; row `i` is bit `i % 64` of word `i / 64`. Spare bits of the last word are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bitmap {
    words: Vec<u64>,
    len: usize,
}

impl Bitmap {
    /// `len` bits, all `value`.
    pub fn filled(len: usize, value: bool) -> Bitmap {
        let mut bitmap = Bitmap { words: vec![if value { u64::MAX } else { 0 }; len.div_ceil(64)], len };
        bitmap.clear_spare();
        bitmap
    }

    /// Bit `i` is `f(i)`.
    #[inline]
    pub fn from_fn(len: usize, mut f: impl FnMut(usize) -> bool) -> Bitmap {
        let mut words = Vec::with_capacity(len.div_ceil(64));
        let mut row = 0;
        while row < len {
            let count = (len - row).min(64);
            let mut word = 0_u64;
            for bit in 0..count {
                word |= u64::from(f(row + bit)) << bit;
            }
            words.push(word);
            row += count;
        }
        Bitmap { words, len }
    }

    /// Bit `i` is `f(&items[i])`.
    #[inline]
    pub fn from_slice<T>(items: &[T], mut f: impl FnMut(&T) -> bool) -> Bitmap {
        let words = items
            .chunks(64)
            .map(|chunk| chunk.iter().enumerate().fold(0_u64, |word, (bit, item)| word | u64::from(f(item)) << bit))
            .collect();
        Bitmap { words, len: items.len() }
    }

    /// From the words of `kernels::bits`, whose spare bits are zero.
    pub fn from_words(words: Vec<u64>, len: usize) -> Bitmap {
        debug_assert_eq!(words.len(), len.div_ceil(64));
        Bitmap { words, len }
    }

    /// The words, for `kernels`.
    pub fn words(&self) -> &[u64] {
        &self.words
    }

    /// From bytes, row `i` at bit `i & 7` of byte `i >> 3`. `None` if the length is wrong or a spare bit is set.
    pub fn from_bytes(bytes: &[u8], len: usize) -> Option<Bitmap> {
        if bytes.len() != len.div_ceil(8) {
            return None;
        }
        let words = bytes
            .chunks(8)
            .map(|chunk| chunk.iter().enumerate().fold(0_u64, |word, (i, b)| word | u64::from(*b) << (8 * i)))
            .collect();
        let bitmap = Bitmap { words, len };
        let mut clean = bitmap.clone();
        clean.clear_spare();
        (clean == bitmap).then_some(bitmap)
    }

    /// Bytes, row `i` at bit `i & 7` of byte `i >> 3`.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.words.iter().flat_map(|w| w.to_le_bytes()).collect();
        bytes.truncate(self.len.div_ceil(8));
        bytes
    }

    fn clear_spare(&mut self) {
        let spare = self.words.len() * 64 - self.len;
        if spare > 0
            && let Some(last) = self.words.last_mut()
        {
            *last &= u64::MAX >> spare;
        }
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True for a bitmap over no rows.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Bit `row`; false beyond the end.
    #[inline]
    pub fn get(&self, row: usize) -> bool {
        self.words.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1)
    }

    /// Sets bit `row`, which must lie inside.
    #[inline]
    pub fn set(&mut self, row: usize, value: bool) {
        debug_assert!(row < self.len);
        if let Some(word) = self.words.get_mut(row / 64) {
            let bit = 1_u64 << (row % 64);
            if value { *word |= bit } else { *word &= !bit }
        }
    }

    /// Appends a bit.
    #[inline]
    pub fn push(&mut self, value: bool) {
        if self.len.is_multiple_of(64) {
            self.words.push(0);
        }
        self.len += 1;
        if value {
            self.set(self.len - 1, true);
        }
    }

    /// Appends `count` equal bits.
    pub fn push_many(&mut self, value: bool, count: usize) {
        let old = self.len;
        self.len += count;
        self.words.resize(self.len.div_ceil(64), 0);
        if value {
            let mut ones = u64::MAX << (old % 64);
            for word in self.words.iter_mut().skip(old / 64) {
                *word |= ones;
                ones = u64::MAX;
            }
            self.clear_spare();
        }
    }

    /// Appends the lowest `count` bits of `bits`, at most 64; those above must be zero.
    pub fn push_bits(&mut self, bits: u64, count: usize) {
        debug_assert!(count <= 64 && bits.checked_shr(count as u32).unwrap_or_default() == 0);
        let offset = self.len % 64;
        self.len += count;
        if offset > 0 {
            if let Some(last) = self.words.last_mut() {
                *last |= bits << offset;
            }
            if offset + count > 64 {
                self.words.push(bits >> (64 - offset));
            }
        } else if count > 0 {
            self.words.push(bits);
        }
    }

    /// Appends the bits of a range of another one.
    pub fn extend(&mut self, other: &Bitmap, range: Range<usize>) {
        let mut left = range.len();
        for word in bits::slice(&other.words, range.start, left) {
            self.push_bits(word, left.min(64));
            left = left.saturating_sub(64);
        }
    }

    /// How many bits are set.
    pub fn count(&self) -> usize {
        bits::count(&self.words)
    }

    /// True if every bit is set (also over no rows).
    pub fn all(&self) -> bool {
        self.count() == self.len
    }

    /// True if no bit is set.
    pub fn none(&self) -> bool {
        self.words.iter().all(|w| *w == 0)
    }

    /// Keeps only the rows that are also in `other`. Both bitmaps are over the same rows.
    pub fn and(&mut self, other: &Bitmap) {
        debug_assert_eq!(self.len, other.len);
        bits::and(&mut self.words, &other.words);
    }

    /// Adds the rows of `other`. Both bitmaps are over the same rows.
    pub fn or(&mut self, other: &Bitmap) {
        debug_assert_eq!(self.len, other.len);
        bits::or(&mut self.words, &other.words);
    }

    /// Flips every bit.
    pub fn invert(&mut self) {
        self.words.iter_mut().for_each(|w| *w = !*w);
        self.clear_spare();
    }

    /// The rows whose bit is set, ascending.
    pub fn iter(&self) -> SetRows<'_> {
        SetRows { words: self.words.iter(), rest: 0, end: 0 }
    }

    /// The rows whose bit is set, as the indices that `gather` takes.
    pub fn to_rows(&self) -> Vec<u32> {
        bits::rows(&self.words)
    }

    /// Rows `range` as a bitmap of their own.
    pub fn slice(&self, range: Range<usize>) -> Bitmap {
        Bitmap { words: bits::slice(&self.words, range.start, range.len()), len: range.len() }
    }
}

/// The rows whose bit is set, ascending.
#[derive(Clone, Debug, Default)]
pub struct SetRows<'a> {
    words: slice::Iter<'a, u64>,
    /// What is left of the word before these.
    rest: u64,
    /// The row behind that word.
    end: usize,
}

impl Iterator for SetRows<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        while self.rest == 0 {
            self.rest = *self.words.next()?;
            self.end += 64;
        }
        let bit = self.rest.trailing_zeros() as usize;
        self.rest &= self.rest - 1;
        Some(self.end + bit - 64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_operation_equals_that_of_a_vector_of_bools(
            bits in proptest::collection::vec(any::<(bool, bool)>(), 0..300), cut in 0_usize..300, many in 0_usize..200,
        ) {
            let (a, b): (Vec<bool>, Vec<bool>) = bits.iter().copied().unzip();
            let make = |v: &[bool]| Bitmap::from_slice(v, |x| *x);
            let read = |m: &Bitmap| (0..m.len()).map(|i| m.get(i)).collect::<Vec<_>>();
            let (x, y) = (make(&a), make(&b));
            let mut and = x.clone(); and.and(&y);
            let mut or = x.clone(); or.or(&y);
            let mut not = x.clone(); not.invert();
            prop_assert_eq!(read(&and), bits.iter().map(|(a, b)| a & b).collect::<Vec<_>>());
            prop_assert_eq!(read(&or), bits.iter().map(|(a, b)| a | b).collect::<Vec<_>>());
            prop_assert_eq!(read(&not), a.iter().map(|a| !a).collect::<Vec<_>>());
            prop_assert_eq!(x.count(), a.iter().filter(|b| **b).count());
            prop_assert_eq!(x.iter().collect::<Vec<_>>(), (0..a.len()).filter(|i| a[*i]).collect::<Vec<_>>());
            prop_assert_eq!(Bitmap::from_bytes(&x.to_bytes(), a.len()), Some(x.clone()));
            prop_assert_eq!(Bitmap::from_fn(a.len(), |i| a[i]), x.clone());
            let cut = cut.min(a.len());
            prop_assert_eq!(read(&x.slice(cut..a.len())), &a[cut..]);
            let mut extended = x.clone();
            extended.extend(&y, cut..a.len());
            prop_assert_eq!(read(&extended), [&a[..], &b[cut..]].concat());
            let mut pushed = Bitmap::filled(0, false);
            a.iter().for_each(|b| pushed.push(*b));
            prop_assert_eq!(&pushed, &x);
            pushed.push_many(true, many);
            pushed.push_many(false, many);
            let mut model = a.clone();
            model.extend(vec![true; many]);
            model.extend(vec![false; many]);
            pushed.push_bits(0b101, 3);
            pushed.push_bits(u64::MAX, 64);
            pushed.push_bits(0, 0);
            model.extend([true, false, true]);
            model.extend([true; 64]);
            prop_assert_eq!(read(&pushed), model);
        }
    }
}
