//! Cells of rows that are picked out. A row that is not there gives zero.

use crate::operand::{CHUNK, Operand, repeated};

macro_rules! gathers {
    ($(#[$doc:meta] $name:ident $type:ty;)*) => {$(
        #[$doc]
        #[inline(never)]
        pub fn $name(cells: &[$type], rows: &[u32]) -> Vec<$type> {
            rows.iter().map(|row| cells.get(*row as usize).copied().unwrap_or_default()).collect()
        }
    )*};
}

gathers! {
    /// Doubles.
    doubles f64;
    /// 32-bit integers.
    int32s i32;
    /// 64-bit integers, and dates.
    int64s i64;
    /// Bytes, and booleans.
    bytes u8;
    /// Codes of a dictionary.
    codes u32;
    /// ObjectIds.
    object_ids [u8; 12];
}

/// Appends the entries of `table` at `codes`, up to the first one that is `none` or not there. Returns how many.
#[inline(never)]
pub fn known_codes(table: &[u32], codes: &[u32], none: u32, out: &mut Vec<u32>) -> usize {
    let before = out.len();
    out.extend(codes.iter().map_while(|code| table.get(*code as usize).copied().filter(|entry| *entry != none)));
    out.len() - before
}

/// The cells of parts that lie one behind the other, each up to one of `ends`. For each cell of the parts with these `numbers`: the place of the
/// number, and which cell it is.
#[inline(never)]
pub fn parts(ends: &[u32], numbers: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let (mut places, mut cells) = (Vec::with_capacity(numbers.len()), Vec::with_capacity(numbers.len()));
    for (place, number) in (0..).zip(numbers) {
        let before = number.checked_sub(1).and_then(|before| ends.get(before as usize));
        let end = ends.get(*number as usize).copied().unwrap_or_default();
        for cell in before.copied().unwrap_or_default()..end {
            places.push(place);
            cells.push(cell);
        }
    }
    (places, cells)
}

/// How many codes there are, if each comes for the first time behind all that are less.
#[inline(never)]
pub fn count_in_order(codes: &[u32]) -> Option<usize> {
    let mut count = 0;
    for code in codes {
        if *code > count {
            return None;
        }
        count += u32::from(*code == count);
    }
    Some(count as usize)
}

/// The integer that a double is: not of negative ones, nor of negative zero.
#[inline(always)]
fn whole_of(x: f64) -> Option<u32> {
    let code = x as u32;
    (f64::from(code).to_bits() == x.to_bits()).then_some(code)
}

/// The integer that a double is: not of negative ones, nor of negative zero.
#[inline(never)]
pub fn whole(x: f64) -> Option<u32> {
    whole_of(x)
}

/// As `known_codes` of doubles, up to the first that is no integer.
#[inline(never)]
pub fn known_whole(table: &[u32], cells: &[f64], none: u32, out: &mut Vec<u32>) {
    out.extend(cells.iter().map_while(|x| table.get(whole_of(*x)? as usize).copied().filter(|entry| *entry != none)));
}

/// Takes the cells of the rows in a bitmap from somewhere else.
#[inline(never)]
pub fn blend(cells: &mut [f64], rows: &[u64], from: Operand<'_, f64>) {
    blended(cells, rows, from);
}

/// The same of int64s.
#[inline(never)]
pub fn blend_int64s(cells: &mut [i64], rows: &[u64], from: Operand<'_, i64>) {
    blended(cells, rows, from);
}

#[inline(always)]
fn blended<T: Copy + Default>(cells: &mut [T], rows: &[u64], from: Operand<'_, T>) {
    let same = repeated(from.any().unwrap_or_default());
    for (number, (word, cells)) in rows.iter().zip(cells.chunks_mut(CHUNK)).enumerate() {
        let start = number * CHUNK;
        let from = from.part(start..start + cells.len(), &same);
        let mut word = *word;
        for (cell, other) in cells.iter_mut().zip(from) {
            *cell = if word & 1 == 1 { *other } else { *cell };
            word >>= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_cells_of_the_rows_come_in_their_order(cells in proptest::collection::vec(any::<i64>(), 0..40), rows in proptest::collection::vec(0..50_u32, 0..90)) {
            let pick = |row: &u32| cells.get(*row as usize).copied().unwrap_or_default();
            let expected: Vec<i64> = rows.iter().map(pick).collect();
            prop_assert_eq!(&int64s(&cells, &rows), &expected);
            let narrow: Vec<i32> = cells.iter().map(|n| *n as i32).collect();
            prop_assert_eq!(int32s(&narrow, &rows), expected.iter().map(|n| *n as i32).collect::<Vec<_>>());
            let doubles_of: Vec<f64> = cells.iter().map(|n| *n as f64).collect();
            prop_assert_eq!(doubles(&doubles_of, &rows), expected.iter().map(|n| *n as f64).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_cells_of_parts_come_with_the_places_of_the_parts() {
        let ends = [2, 2, 5];
        assert_eq!(parts(&ends, &[2, 1, 0, 2]), (vec![0, 0, 0, 2, 2, 3, 3, 3], vec![2, 3, 4, 0, 1, 2, 3, 4]));
        assert_eq!(parts(&ends, &[u32::MAX, 3, 0]), (vec![2, 2], vec![0, 1]));
        assert_eq!(parts(&[], &[0]), (vec![], vec![]));
    }

    #[test]
    fn codes_are_counted_if_they_come_in_their_order() {
        let counts = [&[0, 0, 1, 0, 2, 1, 2][..], &[], &[0], &[1], &[0, 2, 1]].map(count_in_order);
        assert_eq!(counts, [Some(3), Some(0), Some(1), None, None]);
    }

    #[test]
    fn doubles_are_looked_up_as_integers_to_the_first_that_is_none_or_unknown() {
        let mut numbers = vec![9];
        known_whole(&[5, 6, 99], &[1.0, 0.0, 1.0, 2.0, 0.0], 99, &mut numbers);
        assert_eq!(numbers, [9, 6, 5, 6]);
        for other in [-0.0, 0.5, -1.0, f64::NAN, f64::INFINITY, 4_294_967_296.0, 3.0] {
            numbers.clear();
            known_whole(&[5, 6, 99], &[0.0, other, 1.0], 99, &mut numbers);
            assert_eq!(numbers, [5]);
        }
        assert_eq!(
            [whole(4_294_967_295.0), whole(7.0), whole(-0.0), whole(f64::NAN)],
            [Some(u32::MAX), Some(7), None, None]
        );
    }

    proptest! {
        #[test]
        fn rows_in_the_bitmap_have_the_other_cells(rows in proptest::collection::vec((any::<f64>(), any::<f64>(), any::<bool>()), 0..200), same in any::<f64>()) {
            let mut words = vec![0_u64; rows.len().div_ceil(64)];
            rows.iter().enumerate().filter(|(_, row)| row.2).for_each(|(at, _)| words[at / 64] |= 1 << (at % 64));
            let cells: Vec<f64> = rows.iter().map(|row| row.0).collect();
            let others: Vec<f64> = rows.iter().map(|row| row.1).collect();
            let bits = |cells: &[f64]| cells.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            let mut blended = cells.clone();
            blend(&mut blended, &words, Operand::Cells(&others));
            prop_assert_eq!(bits(&blended), rows.iter().map(|row| if row.2 { row.1 } else { row.0 }.to_bits()).collect::<Vec<_>>());
            let mut blended = cells;
            blend(&mut blended, &words, Operand::Same(same));
            prop_assert_eq!(bits(&blended), rows.iter().map(|row| if row.2 { same } else { row.0 }.to_bits()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn entries_are_appended_up_to_the_first_unknown_one() {
        let mut out = vec![7];
        assert_eq!(known_codes(&[5, 6, 9], &[1, 0, 1, 2, 0], 9, &mut out), 3);
        assert_eq!(known_codes(&[5, 6, 9], &[0, 3], 9, &mut out), 1);
        assert_eq!(known_codes(&[], &[], 9, &mut out), 0);
        assert_eq!(out, [7, 6, 5, 6, 5]);
    }
}
