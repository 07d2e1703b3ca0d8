//! Which of the classes between ascending bounds a cell is in.

/// For each cell, the entry of `codes` at the number of bounds that are not above it.
#[inline(always)]
fn codes_of<T: PartialOrd>(cells: &[T], bounds: &[T], codes: &[u32]) -> Vec<u32> {
    // Without a branch that depends on a cell.
    let count = |cell: &T| bounds.partition_point(|bound| bound <= cell);
    cells.iter().map(|cell| codes.get(count(cell)).copied().unwrap_or_default()).collect()
}

/// Classes of doubles. No bound is below a NaN.
#[inline(never)]
pub fn doubles(cells: &[f64], bounds: &[f64], codes: &[u32]) -> Vec<u32> {
    codes_of(cells, bounds, codes)
}

/// Classes of int64s and dates.
#[inline(never)]
pub fn int64s(cells: &[i64], bounds: &[i64], codes: &[u32]) -> Vec<u32> {
    codes_of(cells, bounds, codes)
}

/// Puts a code in place of those of the rows in a bitmap.
#[inline(never)]
pub fn set(codes: &mut [u32], rows: &[u64], code: u32) {
    for (word, codes) in rows.iter().zip(codes.chunks_mut(64)) {
        let mut rest = *word;
        while rest != 0 {
            codes.get_mut(rest.trailing_zeros() as usize).into_iter().for_each(|slot| *slot = code);
            rest &= rest - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_class_is_the_number_of_bounds_that_are_not_above(
            cells in proptest::collection::vec(-9..40_i64, 0..200), mut bounds in proptest::collection::vec(-5..30_i64, 0..30),
        ) {
            bounds.sort();
            let of_counts: Vec<u32> = (0..=bounds.len() as u32).map(|count| 100 - count).collect();
            let count = |cell: &i64| bounds.iter().filter(|bound| *bound <= cell).count();
            let expected: Vec<u32> = cells.iter().map(|cell| of_counts[count(cell)]).collect();
            prop_assert_eq!(int64s(&cells, &bounds, &of_counts), &expected[..]);
            let [cells, bounds] = [&cells, &bounds].map(|all| all.iter().map(|n| *n as f64).collect::<Vec<_>>());
            prop_assert_eq!(doubles(&cells, &bounds, &of_counts), expected);
        }

        #[test]
        fn rows_in_the_bitmap_get_the_code(rows in proptest::collection::vec(any::<bool>(), 0..200)) {
            let mut words = vec![0_u64; rows.len().div_ceil(64)];
            rows.iter().enumerate().filter(|(_, is)| **is).for_each(|(at, _)| words[at / 64] |= 1 << (at % 64));
            let mut codes: Vec<u32> = (0..rows.len() as u32).collect();
            set(&mut codes, &words, 999);
            let expected: Vec<u32> = rows.iter().zip(0..).map(|(is, row)| if *is { 999 } else { row }).collect();
            prop_assert_eq!(codes, expected);
        }
    }

    #[test]
    fn a_nan_is_below_all_bounds() {
        assert_eq!(doubles(&[f64::NAN, -0.0, f64::NEG_INFINITY], &[0.0, 1.0], &[5, 6, 7]), [5, 6, 5]);
    }
}
