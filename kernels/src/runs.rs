//! Runs of equal cells.

use crate::bits;

/// Cells that are compared at once.
const CHUNK: usize = 32;

/// How many cells at the front pass a test. Chunks without a branch are vectorised; the first cells, and those of a chunk that does not pass, are looked
/// at one by one.
#[inline(always)]
fn leading<T: Copy>(cells: &[T], passes: impl Fn(T) -> bool) -> usize {
    const FEW: usize = 8;
    let (few, rest) = cells.split_at_checked(FEW).unwrap_or((cells, &[]));
    if let Some(count) = few.iter().position(|cell| !passes(*cell)) {
        return count;
    }
    let mut count = few.len();
    // Chunks of any length: of chunks that are known to have so many cells, the compiler writes down all steps.
    for chunk in rest.chunks(CHUNK) {
        if !chunk.iter().fold(true, |all, cell| all & passes(*cell)) {
            break;
        }
        count += chunk.len();
    }
    let rest = cells.get(count..).unwrap_or_default();
    count + rest.iter().position(|cell| !passes(*cell)).unwrap_or(rest.len())
}

/// Where the runs of equal words end. `None` if there are more than `most` of them.
#[inline(never)]
pub fn ends_of_words(cells: &[i64], most: usize) -> Option<Vec<u32>> {
    let behind = cells.get(1..).unwrap_or_default();
    ends(&bits::of_pairs(cells, behind, |n, next| n != next), cells.len(), most)
}

/// Where the runs of equal codes end. `None` if there are more than `most` of them.
#[inline(never)]
pub fn ends_of_codes(cells: &[u32], most: usize) -> Option<Vec<u32>> {
    let behind = cells.get(1..).unwrap_or_default();
    ends(&bits::of_pairs(cells, behind, |code, next| code != next), cells.len(), most)
}

/// The ends of runs of `rows` cells; `last` has the rows that differ from the next.
fn ends(last: &[u64], rows: usize, most: usize) -> Option<Vec<u32>> {
    if bits::count(last) + usize::from(rows > 0) > most {
        return None;
    }
    let mut ends = bits::rows(last);
    ends.iter_mut().for_each(|row| *row += 1);
    if rows > 0 {
        ends.push(rows as u32);
    }
    Some(ends)
}

/// Appends an integer `count` times.
#[inline(never)]
pub fn fill(cells: &mut Vec<i64>, count: usize, n: i64) {
    cells.extend(std::iter::repeat_n(n, count));
}

/// Appends a code `count` times.
#[inline(never)]
pub fn fill_codes(cells: &mut Vec<u32>, count: usize, code: u32) {
    cells.extend(std::iter::repeat_n(code, count));
}

/// A code for each row of runs: those of the runs, which end there.
#[inline(never)]
pub fn spread(runs: &[(u32, usize)]) -> Vec<u32> {
    /// Most runs are short. So many codes are written at once, and the next run writes over what is too much.
    const FEW: usize = 8;
    let rows = runs.last().map_or(0, |(_, end)| *end);
    let mut codes = vec![0; rows + FEW];
    let mut start = 0;
    for (code, end) in runs {
        while start < *end {
            if let Some(few) = codes.get_mut(start..).and_then(<[u32]>::first_chunk_mut::<FEW>) {
                *few = [*code; FEW];
            }
            start += FEW;
        }
        start = *end;
    }
    codes.truncate(rows);
    codes
}

/// How many integers at the front lie from `low` to below `end`.
#[inline(never)]
pub fn leading_within(cells: &[i64], low: i64, end: i64) -> usize {
    leading(cells, |n| (low <= n) & (n < end))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_runs() -> impl Strategy<Value = Vec<u64>> {
        let run = (0..3_u64, prop_oneof![1..4_usize, 20..80_usize]);
        proptest::collection::vec(run, 0..8)
            .prop_map(|runs| runs.into_iter().flat_map(|(cell, count)| vec![cell; count]).collect())
    }

    proptest! {
        #[test]
        fn runs_end_where_a_cell_differs_from_the_next(cells in any_runs(), most in 1..9_usize) {
            let expected: Vec<u32> =
                (1..=cells.len()).filter(|end| cells.get(*end) != cells.get(end - 1)).map(|end| end as u32).collect();
            let expected = Some(expected).filter(|ends| ends.len() <= most);
            let codes: Vec<u32> = cells.iter().map(|cell| *cell as u32).collect();
            let words: Vec<i64> = cells.iter().map(|cell| *cell as i64).collect();
            prop_assert_eq!(ends_of_words(&words, most), expected.clone());
            prop_assert_eq!(ends_of_codes(&codes, most), expected);
        }

        #[test]
        fn runs_are_spread_over_their_rows(cells in any_runs()) {
            let codes: Vec<u32> = cells.iter().map(|cell| *cell as u32).collect();
            let ends = ends_of_codes(&codes, codes.len() + 1).unwrap();
            let runs: Vec<(u32, usize)> = ends.iter().map(|end| (codes[*end as usize - 1], *end as usize)).collect();
            prop_assert_eq!(spread(&runs), codes);
        }

        #[test]
        fn cells_at_the_front_lie_within_bounds(cells in any_runs(), low in 0..3_i64, end in 0..4_i64) {
            let cells: Vec<i64> = cells.iter().map(|cell| *cell as i64).collect();
            let expected = cells.iter().take_while(|n| (low..end).contains(*n)).count();
            prop_assert_eq!(leading_within(&cells, low, end), expected);
            let (mut filled, mut codes) = (cells.clone(), vec![7]);
            fill(&mut filled, expected, low);
            fill_codes(&mut codes, expected, 9);
            prop_assert_eq!(filled, [cells, vec![low; expected]].concat());
            prop_assert_eq!(codes, [vec![7], vec![9; expected]].concat());
        }
    }
}
