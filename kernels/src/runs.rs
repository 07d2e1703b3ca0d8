//! Runs of equal cells.

/// Cells that are compared at once.
const CHUNK: usize = 32;

/// Where the runs of equal cells end. `None` if there are more than `most` of them.
#[inline(always)]
fn ends<T: Copy + PartialEq>(cells: &[T], most: usize) -> Option<Vec<u32>> {
    let mut ends = Vec::new();
    let mut start = 0;
    while let Some(behind @ [first, ..]) = cells.get(start..) {
        if ends.len() == most {
            return None;
        }
        start += leading(behind, |cell| cell == *first);
        ends.push(start as u32);
    }
    Some(ends)
}

/// How many cells at the front pass a test. Chunks without a branch are vectorised; within the first one that does not pass, cells are looked at one by
/// one.
#[inline(always)]
fn leading<T: Copy>(cells: &[T], passes: impl Fn(T) -> bool) -> usize {
    let mut count = 0;
    for chunk in cells.chunks_exact(CHUNK) {
        if !chunk.iter().fold(true, |all, cell| all & passes(*cell)) {
            break;
        }
        count += CHUNK;
    }
    let rest = cells.get(count..).unwrap_or_default();
    count + rest.iter().position(|cell| !passes(*cell)).unwrap_or(rest.len())
}

/// Where the runs of equal words end. `None` if there are more than `most` of them.
#[inline(never)]
pub fn ends_of_words(cells: &[u64], most: usize) -> Option<Vec<u32>> {
    ends(cells, most)
}

/// Where the runs of equal codes end. `None` if there are more than `most` of them.
#[inline(never)]
pub fn ends_of_codes(cells: &[u32], most: usize) -> Option<Vec<u32>> {
    ends(cells, most)
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
        fn runs_end_where_a_cell_differs_from_the_next(cells in any_runs(), most in 0..9_usize) {
            let expected: Vec<u32> =
                (1..=cells.len()).filter(|end| cells.get(*end) != cells.get(end - 1)).map(|end| end as u32).collect();
            let expected = Some(expected).filter(|ends| ends.len() <= most);
            let codes: Vec<u32> = cells.iter().map(|cell| *cell as u32).collect();
            prop_assert_eq!(ends_of_words(&cells, most), expected.clone());
            prop_assert_eq!(ends_of_codes(&codes, most), expected);
        }

        #[test]
        fn cells_at_the_front_lie_within_bounds(cells in any_runs(), low in 0..3_i64, end in 0..4_i64) {
            let cells: Vec<i64> = cells.iter().map(|cell| *cell as i64).collect();
            let expected = cells.iter().take_while(|n| (low..end).contains(*n)).count();
            prop_assert_eq!(leading_within(&cells, low, end), expected);
        }
    }
}
