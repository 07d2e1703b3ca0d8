//! Sets of rows as words: row `i` is bit `i % 64` of word `i / 64`. Spare bits of the last word are zero.

/// One bit for each cell, in which `holds` is true.
#[inline(always)]
pub(crate) fn of<T: Copy>(cells: &[T], holds: impl Fn(T) -> bool) -> Vec<u64> {
    // Chunks of any length: of chunks that are known to have 64 cells, the compiler writes down all 64 steps.
    let chunks = cells.chunks(64).map(|chunk| {
        let mut flags = [0_u8; 64];
        flags.iter_mut().zip(chunk).for_each(|(flag, cell)| *flag = u8::from(holds(*cell)));
        packed(&flags)
    });
    chunks.collect()
}

/// One bit for each pair of cells.
#[inline(always)]
pub(crate) fn of_pairs<T: Copy>(a: &[T], b: &[T], holds: impl Fn(T, T) -> bool) -> Vec<u64> {
    let rows = a.len().min(b.len());
    let mut words = Vec::with_capacity(rows.div_ceil(64));
    words.extend(a.chunks(64).zip(b.chunks(64)).map(|(a, b)| word_of_pairs(a, b, &holds)));
    words
}

/// One bit for each of up to 64 pairs of cells.
#[inline(always)]
pub(crate) fn word_of_pairs<T: Copy>(a: &[T], b: &[T], holds: impl Fn(T, T) -> bool) -> u64 {
    let mut flags = [0_u8; 64];
    flags.iter_mut().zip(a.iter().zip(b)).for_each(|(flag, (x, y))| *flag = u8::from(holds(*x, *y)));
    packed(&flags)
}

/// A word of 64 bytes that are 0 or 1.
#[inline(never)]
fn packed(flags: &[u8; 64]) -> u64 {
    /// Moves the lowest bit of byte `i` to bit `56 + i`.
    const GATHER: u64 = 0x0102_0408_1020_4080;
    let (eights, _) = flags.as_chunks::<8>();
    eights.iter().rev().fold(0, |word, eight| word << 8 | u64::from_le_bytes(*eight).wrapping_mul(GATHER) >> 56)
}

/// Keeps the rows of `a` that are also in `b`.
#[inline(never)]
pub fn and(a: &mut [u64], b: &[u64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a &= b);
}

/// Adds the rows of `b` to `a`.
#[inline(never)]
pub fn or(a: &mut [u64], b: &[u64]) {
    a.iter_mut().zip(b).for_each(|(a, b)| *a |= b);
}

/// The number of rows.
#[inline(never)]
pub fn count(words: &[u64]) -> usize {
    words.iter().map(|word| word.count_ones() as usize).sum()
}

/// The `len` bits from bit `start` on, with the first at bit 0. Bits beyond the words are zero.
#[inline(never)]
pub fn slice(words: &[u64], start: usize, len: usize) -> Vec<u64> {
    let count = len.div_ceil(64);
    let (shift, words) = (start % 64, words.get(start / 64..).unwrap_or_default());
    let mut out: Vec<u64> = if shift == 0 {
        words.iter().take(count).copied().collect()
    } else {
        let above = words.iter().skip(1).copied().chain([0]);
        words.iter().zip(above).take(count).map(|(low, high)| low >> shift | high << (64 - shift)).collect()
    };
    out.resize(count, 0);
    if !len.is_multiple_of(64)
        && let Some(last) = out.last_mut()
    {
        *last &= u64::MAX >> (64 - len % 64);
    }
    out
}

/// The numbers of the rows, ascending.
#[inline(never)]
pub fn rows(words: &[u64]) -> Vec<u32> {
    let mut rows = Vec::with_capacity(count(words));
    let mut first = 0_u32;
    for word in words {
        if *word == u64::MAX {
            rows.extend(first..first + 64);
        } else {
            let mut rest = *word;
            while rest != 0 {
                rows.push(first + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
        first = first.wrapping_add(64);
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(words: &[u64], len: usize) -> Vec<bool> {
        (0..len).map(|i| words[i / 64] >> (i % 64) & 1 == 1).collect()
    }

    proptest! {
        #[test]
        fn words_do_what_vectors_of_bools_do(pairs in proptest::collection::vec(any::<(bool, bool)>(), 0..300), start in 0_usize..300, len in 0_usize..300) {
            let (a, b): (Vec<bool>, Vec<bool>) = pairs.iter().copied().unzip();
            let (x, y) = (of(&a, |bit| bit), of(&b, |bit| bit));
            prop_assert_eq!(read(&x, a.len()), &a[..]);
            prop_assert_eq!(x.len(), a.len().div_ceil(64));
            prop_assert_eq!(read(&of_pairs(&a, &b, |x, y| x != y), a.len()), pairs.iter().map(|(x, y)| x != y).collect::<Vec<_>>());
            let mut both = x.clone();
            and(&mut both, &y);
            prop_assert_eq!(read(&both, a.len()), pairs.iter().map(|(x, y)| *x && *y).collect::<Vec<_>>());
            let mut any = x.clone();
            or(&mut any, &y);
            prop_assert_eq!(read(&any, a.len()), pairs.iter().map(|(x, y)| *x || *y).collect::<Vec<_>>());
            prop_assert_eq!(count(&x), a.iter().filter(|bit| **bit).count());
            prop_assert_eq!(rows(&x), (0..a.len() as u32).filter(|i| a[*i as usize]).collect::<Vec<_>>());
            let cut = slice(&x, start, len);
            prop_assert_eq!(cut.len(), len.div_ceil(64));
            prop_assert_eq!(read(&cut, len), (start..start + len).map(|i| a.get(i) == Some(&true)).collect::<Vec<_>>());
            prop_assert!(len.is_multiple_of(64) || cut[len / 64] >> (len % 64) == 0);
        }
    }

    #[test]
    fn full_words_are_all_rows() {
        assert_eq!(rows(&[u64::MAX, 1]), (0..65).collect::<Vec<_>>());
        assert_eq!(slice(&[u64::MAX], 60, 10), [0b1111]);
    }
}
