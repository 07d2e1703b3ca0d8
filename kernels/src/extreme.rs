//! The least and the greatest of cells.

use crate::texts::Texts;

/// The least of doubles in the order of values, where NaN comes before all numbers. Of several that are equal, such as 0 and -0, the first one.
#[inline(never)]
pub fn least_double(cells: &[f64]) -> Option<f64> {
    // Comparisons with NaN are false, so it is never the least here.
    let (mut least, mut nan) = (f64::INFINITY, false);
    for x in cells {
        least = if *x < least { *x } else { least };
        nan |= x.is_nan();
    }
    if nan { cells.iter().copied().find(|x| x.is_nan()) } else { first_equal(cells, least) }
}

/// The greatest of doubles in the order of values, where NaN comes before all numbers. Of several that are equal, such as 0 and -0, the first one.
#[inline(never)]
pub fn greatest_double(cells: &[f64]) -> Option<f64> {
    let mut greatest = f64::NEG_INFINITY;
    for x in cells {
        greatest = if *x > greatest { *x } else { greatest };
    }
    if greatest == f64::NEG_INFINITY {
        return cells.iter().copied().find(|x| *x == greatest).or(cells.first().copied());
    }
    first_equal(cells, greatest)
}

/// `best`, with the sign of the first zero if it is zero; `None` if there are no cells.
#[inline(always)]
fn first_equal(cells: &[f64], best: f64) -> Option<f64> {
    if best == 0.0 { cells.iter().copied().find(|x| *x == best) } else { cells.first().map(|_| best) }
}

macro_rules! integers {
    ($($least:ident $greatest:ident $type:ty;)*) => {$(
        /// The least cell.
        #[inline(never)]
        pub fn $least(cells: &[$type]) -> Option<$type> {
            let least = cells.iter().fold(<$type>::MAX, |best, n| if *n < best { *n } else { best });
            cells.first().map(|_| least)
        }

        /// The greatest cell.
        #[inline(never)]
        pub fn $greatest(cells: &[$type]) -> Option<$type> {
            let greatest = cells.iter().fold(<$type>::MIN, |best, n| if *n > best { *n } else { best });
            cells.first().map(|_| greatest)
        }
    )*};
}

integers! {
    least_int32 greatest_int32 i32;
    least_int64 greatest_int64 i64;
}

/// Of each of so many groups, the first row with its least or its greatest text, byte by byte; `None` for groups without a text. Row `start + i`
/// belongs to the group `groups[i]`. `present` has a bit for each row (see `bits`); without it, all have a text.
#[inline(never)]
pub fn texts(
    texts: Texts<'_>,
    present: Option<&[u64]>,
    start: usize,
    groups: &[u32],
    count: usize,
    is_max: bool,
) -> Vec<Option<usize>> {
    let mut best: Vec<Option<(usize, &[u8])>> = vec![None; count];
    let is_present =
        |row: usize| present.is_none_or(|words| words.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1));
    for (row, group) in (start..).zip(groups).filter(|(row, _)| is_present(*row)) {
        let text = texts.get(row);
        if let Some(best) = best.get_mut(*group as usize)
            && best.is_none_or(|(_, known)| if is_max { text > known } else { text < known })
        {
            *best = Some((row, text));
        }
    }
    best.into_iter().map(|best| best.map(|(row, _)| row)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// One by one, in the order of values.
    fn naive(cells: &[f64], is_max: bool) -> Option<f64> {
        let gives_way = |x: f64, y: f64| {
            if is_max { x < y || x.is_nan() && !y.is_nan() } else { y < x || y.is_nan() && !x.is_nan() }
        };
        cells.iter().copied().reduce(|x, y| if gives_way(x, y) { y } else { x })
    }

    proptest! {
        #[test]
        fn extremes_of_doubles_are_those_that_come_first_in_the_order_of_values(cells in proptest::collection::vec(
            prop_oneof![any::<f64>(), -2.0..2.0, Just(0.0), Just(-0.0), Just(f64::NAN), Just(f64::INFINITY), Just(f64::NEG_INFINITY)], 0..40,
        ), with_nan in any::<bool>()) {
            let cells: Vec<f64> = cells.into_iter().filter(|x| with_nan || !x.is_nan()).collect();
            let bits = |x: Option<f64>| x.map(f64::to_bits);
            prop_assert_eq!(bits(least_double(&cells)), bits(naive(&cells, false)));
            prop_assert_eq!(bits(greatest_double(&cells)), bits(naive(&cells, true)));
        }

        #[test]
        fn signs_of_zeros_are_those_of_the_first(cells in proptest::collection::vec(prop_oneof![Just(0.0), Just(-0.0)], 1..40)) {
            prop_assert_eq!(least_double(&cells).map(f64::to_bits), Some(cells[0].to_bits()));
            prop_assert_eq!(greatest_double(&cells).map(f64::to_bits), Some(cells[0].to_bits()));
        }

        #[test]
        fn extremes_of_integers_are_those_of_the_standard_library(cells in proptest::collection::vec(any::<i64>(), 0..40)) {
            prop_assert_eq!(least_int64(&cells), cells.iter().copied().min());
            prop_assert_eq!(greatest_int64(&cells), cells.iter().copied().max());
            let narrow: Vec<i32> = cells.iter().map(|n| *n as i32).collect();
            prop_assert_eq!(least_int32(&narrow), narrow.iter().copied().min());
            prop_assert_eq!(greatest_int32(&narrow), narrow.iter().copied().max());
        }
    }

    #[test]
    fn of_nothing_but_nan_it_is_the_extreme() {
        assert!(least_double(&[f64::NAN; 9]).is_some_and(f64::is_nan));
        assert!(greatest_double(&[f64::NAN; 9]).is_some_and(f64::is_nan));
        assert_eq!(greatest_double(&[f64::NAN, f64::NEG_INFINITY]), Some(f64::NEG_INFINITY));
    }

    #[test]
    fn of_equal_texts_of_a_group_the_first_row_is_found() {
        let cells = Texts { offsets: &[0, 1, 2, 2, 4, 5, 6], bytes: b"babab" };
        let cells = Texts { bytes: b"baabab", ..cells };
        // "b", "a", "", "ab", "a", "b"
        assert_eq!(texts(cells, None, 0, &[0, 1, 0, 1, 1, 0], 3, true), [Some(0), Some(3), None]);
        assert_eq!(texts(cells, None, 1, &[0, 1, 0, 0, 1], 2, false), [Some(1), Some(2)]);
        assert_eq!(texts(cells, Some(&[0b11_1010]), 0, &[0; 6], 1, false), [Some(1)]);
        assert_eq!(texts(cells, Some(&[0b00_0100]), 0, &[0, 0, 0, 0, 0, 0], 1, true), [Some(2)]);
        assert_eq!(texts(cells, Some(&[0]), 0, &[0; 6], 1, true), [None]);
    }
}
