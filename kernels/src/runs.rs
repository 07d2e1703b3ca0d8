//! Runs of equal cells.

/// Cells that are compared at once.
const CHUNK: usize = 32;

/// Where the runs of equal cells end. `None` if there are more than `most` of them.
#[inline(always)]
fn ends<T: Copy + PartialEq>(cells: &[T], most: usize) -> Option<Vec<u32>> {
    let mut ends = Vec::new();
    let (mut end, rows) = (0, cells.len() as u32);
    let behind = cells.get(1..).unwrap_or_default();
    for (chunk, next) in cells.chunks(CHUNK).zip(behind.chunks(CHUNK)) {
        let pairs = || chunk.iter().zip(next);
        // Vectorised, and false for all chunks within long runs.
        if pairs().fold(false, |differ, (a, b)| differ | (a != b)) {
            let (mut found, mut count) = ([0; CHUNK], 0);
            for ((a, b), here) in pairs().zip(end + 1..) {
                if let Some(slot) = found.get_mut(count) {
                    *slot = here;
                }
                count += usize::from(a != b);
            }
            ends.extend_from_slice(found.get(..count).unwrap_or_default());
            if ends.len() >= most {
                return None;
            }
        }
        end += CHUNK as u32;
    }
    if rows > 0 {
        ends.push(rows);
    }
    Some(ends).filter(|ends| ends.len() <= most)
}

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
    for chunk in rest.chunks_exact(CHUNK) {
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
            let (mut filled, mut codes) = (cells.clone(), vec![7]);
            fill(&mut filled, expected, low);
            fill_codes(&mut codes, expected, 9);
            prop_assert_eq!(filled, [cells, vec![low; expected]].concat());
            prop_assert_eq!(codes, [vec![7], vec![9; expected]].concat());
        }
    }
}
