//! Cells in parts, one behind the other: part `i` ends in front of cell `ends[i]`, where the next one begins.

use crate::sum::{add, total};

/// A place that is not there.
pub const NOWHERE: u32 = u32::MAX;

/// What is made of the cells of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fold {
    /// Their sum, as if computed with twice the digits.
    Sum,
    /// The least in the order of values, where NaN comes before all numbers. Of several that are equal, the first one.
    Least,
    /// The greatest.
    Greatest,
}

#[inline(always)]
fn each(ends: &[u32]) -> impl Iterator<Item = (u32, u32)> {
    std::iter::once(&0).chain(ends).zip(ends).map(|(start, end)| (*start, *end))
}

/// The number of cells in each part.
#[inline(never)]
pub fn lengths(ends: &[u32]) -> Vec<f64> {
    each(ends).map(|(start, end)| f64::from(end - start)).collect()
}

/// Where the cell with a number is in each part, counted from its end if the number is negative; `NOWHERE` if there is none.
#[inline(never)]
pub fn places(ends: &[u32], number: i64) -> Vec<u32> {
    let place = |(start, end): (u32, u32)| {
        let from = if number < 0 { end } else { start };
        let place = i64::from(from).saturating_add(number);
        if (i64::from(start)..i64::from(end)).contains(&place) { place as u32 } else { NOWHERE }
    };
    each(ends).map(place).collect()
}

/// A number of each part; 0 of parts without cells.
#[inline(never)]
pub fn folded(cells: &[f64], ends: &[u32], fold: Fold) -> Vec<f64> {
    let of_part = |(start, end): (u32, u32)| {
        let part = cells.get(start as usize..end as usize).unwrap_or_default();
        let Some((first, rest)) = part.split_first() else { return 0.0 };
        match fold {
            Fold::Sum => {
                let (mut sum, mut lost) = (0.0, 0.0);
                part.iter().for_each(|x| add(&mut sum, &mut lost, *x));
                total(sum, lost)
            }
            Fold::Least => {
                rest.iter().fold(*first, |best, x| if *x < best || x.is_nan() && !best.is_nan() { *x } else { best })
            }
            Fold::Greatest => {
                rest.iter().fold(*first, |best, x| if *x > best || best.is_nan() && !x.is_nan() { *x } else { best })
            }
        }
    };
    each(ends).map(of_part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_of_each_part_is_found_by_its_number() {
        let ends = [2, 2, 5];
        assert_eq!(lengths(&ends), [2.0, 0.0, 3.0]);
        assert_eq!(places(&ends, 0), [0, NOWHERE, 2]);
        assert_eq!(places(&ends, 2), [NOWHERE, NOWHERE, 4]);
        assert_eq!(places(&ends, -2), [0, NOWHERE, 3]);
        assert_eq!(places(&ends, -3), [NOWHERE, NOWHERE, 2]);
        assert_eq!(places(&ends, i64::MAX), [NOWHERE; 3]);
        assert_eq!(places(&ends, i64::MIN), [NOWHERE; 3]);
    }

    #[test]
    fn sums_keep_what_rounding_takes_and_extremes_the_first_of_equals() {
        let nan = f64::NAN;
        let cells = [1e16, 1.0, -1e16, nan, 2.0, 0.0, -0.0, f64::INFINITY, 1.0];
        let ends = [3, 3, 5, 7, 9];
        assert_eq!(folded(&cells, &ends, Fold::Sum)[..2], [1.0, 0.0]);
        let (least, greatest) = (folded(&cells, &ends, Fold::Least), folded(&cells, &ends, Fold::Greatest));
        assert!(least[2].is_nan() && greatest[2] == 2.0);
        assert!(least[3].is_sign_positive() && greatest[3].is_sign_positive(), "the first zero");
        assert_eq!((least[4], greatest[4], folded(&cells, &ends, Fold::Sum)[4]), (1.0, f64::INFINITY, f64::INFINITY));
    }
}
