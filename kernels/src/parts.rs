//! Cells in parts, one behind the other: part `i` ends in front of cell `ends[i]`, where the next one begins.

use crate::sortable::of_double;
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

/// Where the cells with some numbers are, the first one in the part `among[0]`, and so on; or, without `among`, one in each part. Numbers
/// count from the end if they are negative. `NOWHERE` where there is none. The second value is false if a number is no 32-bit integer.
#[inline(never)]
pub fn places_of(ends: &[u32], among: Option<&[u32]>, numbers: &[f64]) -> (Vec<u32>, bool) {
    let mut are_int32s = true;
    let place = |(part, number): (usize, &f64)| {
        let part = among.map_or(part, |among| among.get(part).map_or(usize::MAX, |part| *part as usize));
        let end = ends.get(part).copied().unwrap_or_default();
        let start = if part == 0 { 0 } else { ends.get(part - 1).copied().unwrap_or(end) };
        let whole = *number as i32;
        are_int32s &= f64::from(whole) == *number;
        let place = i64::from(if whole < 0 { end } else { start }) + i64::from(whole);
        if (i64::from(start)..i64::from(end)).contains(&place) { place as u32 } else { NOWHERE }
    };
    let places = numbers.iter().enumerate().map(place).collect();
    (places, are_int32s)
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

/// The parts of which a cell is in a set, as sets (see `bits`).
#[inline(never)]
pub fn with_any(ends: &[u32], words: &[u64]) -> Vec<u64> {
    let has = |cell: u32| words.get(cell as usize / 64).is_some_and(|word| word >> (cell % 64) & 1 == 1);
    let mut found = vec![0; ends.len().div_ceil(64)];
    for (part, (start, end)) in each(ends).enumerate() {
        if let Some(word) = found.get_mut(part / 64).filter(|_| (start..end).any(has)) {
            *word |= 1 << (part % 64);
        }
    }
    found
}

/// The standard deviation of each part, of a sample if `fewer` is 1, else 0. It means nothing for parts without more cells than that.
#[inline(never)]
pub fn deviations(cells: &[f64], ends: &[u32], fewer: f64) -> Vec<f64> {
    let of_part = |(start, end): (u32, u32)| {
        let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
        for x in cells.get(start as usize..end as usize).unwrap_or_default() {
            count += 1.0;
            let distance = x - mean;
            mean += distance / count;
            squares += distance * (x - mean);
        }
        f64::sqrt(squares / (count - fewer))
    };
    each(ends).map(of_part).collect()
}

/// Longer parts are not sorted here.
const SORTED_MAX: u32 = 128;

/// The places of the cells in the order of their values within each part. Of equal ones, the first one comes first. NaN comes before all
/// numbers, or last if they descend. `None` if a part is long.
#[inline(never)]
pub fn sorted(cells: &[f64], ends: &[u32], descend: bool) -> Option<Vec<u32>> {
    let mut places: Vec<u32> = Vec::with_capacity(cells.len());
    let mut words: Vec<u64> = Vec::new();
    for (start, end) in each(ends) {
        if end - start > SORTED_MAX {
            return None;
        }
        let (at_least, from) = (if descend { u64::MAX } else { 0 }, places.len());
        words.clear();
        for (x, place) in cells.get(start as usize..end as usize)?.iter().zip(start..) {
            let word = of_double(*x) ^ at_least;
            let mut at = words.len();
            while at > 0 && words.get(at - 1).is_some_and(|before| *before > word) {
                at -= 1;
            }
            words.insert(at, word);
            places.insert(from + at, place);
        }
    }
    Some(places)
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
    fn cells_are_found_by_a_number_for_each_part_or_for_each_of_some_parts() {
        let ends = [2, 2, 5];
        assert_eq!(places_of(&ends, None, &[1.0, 0.0, -3.0]), (vec![1, NOWHERE, 2], true));
        let among = Some(&[2, 0, 2, 0, 7][..]);
        assert_eq!(places_of(&ends, among, &[0.0, -2.0, 2.0, 2.0, 0.0]), (vec![2, 0, 4, NOWHERE, NOWHERE], true));
        for number in [0.5, f64::NAN, 3e9, -3e9, f64::INFINITY] {
            assert_eq!(places_of(&ends, among, &[-1.0, number]).0.first(), Some(&4));
            assert!(!places_of(&ends, among, &[-1.0, number]).1);
        }
        let extremes = [f64::from(i32::MIN), f64::from(i32::MAX)];
        assert_eq!(places_of(&ends, Some(&[2, 2]), &extremes), (vec![NOWHERE; 2], true));
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

    #[test]
    fn cells_of_a_part_are_sorted_and_equal_ones_stay_in_order() {
        let cells = [3.0, f64::NAN, -1.0, 0.0, -0.0, 3.0, 7.0];
        assert_eq!(sorted(&cells, &[6, 6, 7], false), Some(vec![1, 2, 3, 4, 0, 5, 6]));
        assert_eq!(sorted(&cells, &[6, 6, 7], true), Some(vec![0, 5, 3, 4, 2, 1, 6]));
        assert_eq!(sorted(&[0.0; 129], &[129], true), None);
    }

    #[test]
    fn parts_with_a_cell_of_a_set_are_found() {
        let ends: Vec<u32> = (0..70).map(|part| 2 * part).collect();
        // Cell 3 is in part 2, cell 130 in part 66.
        assert_eq!(with_any(&ends, &[1 << 3, 0, 1 << 2]), [1 << 2, 1 << 2]);
        assert_eq!(with_any(&[0, 3, 3], &[u64::MAX]), [0b010]);
    }

    #[test]
    fn deviations_are_those_of_each_part() {
        let cells = [2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0, 1.0, 3.0];
        assert_eq!(deviations(&cells, &[8, 10], 0.0), [2.0, 1.0]);
        assert_eq!(deviations(&cells, &[8, 8, 10], 1.0)[2], f64::sqrt(2.0));
    }
}
