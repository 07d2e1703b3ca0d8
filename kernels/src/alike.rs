//! Rows that are alike: those with the same code.

/// How many rows with codes of their own are too many.
#[derive(Clone, Copy, Debug)]
pub struct TooMany {
    /// So many may differ in any case.
    pub free: usize,
    /// Beyond these, one of so many rows.
    pub share: usize,
}

/// For each row, the number of its code, and for each number, the first row that has it. Numbers are given as codes appear. `None` if
/// too many rows have codes of their own.
#[inline(never)]
pub fn by_codes(codes: &[u32], too_many: TooMany) -> Option<(Vec<u32>, Vec<u32>)> {
    const UNSEEN: u32 = u32::MAX;
    let mut numbers = vec![UNSEEN; codes.iter().max().map_or(0, |last| *last as usize + 1)];
    let (mut index, mut firsts) = (Vec::with_capacity(codes.len()), Vec::new());
    for (row, code) in codes.iter().enumerate() {
        let number = numbers.get_mut(*code as usize)?;
        if *number == UNSEEN {
            *number = firsts.len() as u32;
            firsts.push(row as u32);
            if firsts.len() > too_many.free + row / too_many.share {
                return None;
            }
        }
        index.push(*number);
    }
    Some((index, firsts))
}

/// A code for each pair of codes, of which the second is below `width`.
#[inline(never)]
pub fn pairs(a: &[u32], b: &[u32], width: u32) -> Vec<u32> {
    a.iter().zip(b).map(|(a, b)| a.wrapping_mul(width).wrapping_add(*b)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOST: TooMany = TooMany { free: 3, share: 4 };

    #[test]
    fn rows_are_numbered_as_their_codes_appear() {
        assert_eq!(by_codes(&[7, 2, 7, 7, 0, 2], MOST), Some((vec![0, 1, 0, 0, 2, 1], vec![0, 1, 4])));
        assert_eq!(by_codes(&[], MOST), Some((vec![], vec![])));
    }

    #[test]
    fn too_many_codes_have_no_numbers() {
        assert_eq!(by_codes(&[0, 1, 2, 3], MOST), None);
        // One more may differ after four rows.
        assert_eq!(by_codes(&[0, 1, 2, 0, 3], MOST).map(|(_, firsts)| firsts), Some(vec![0, 1, 2, 4]));
    }

    #[test]
    fn pairs_have_one_code_each() {
        assert_eq!(pairs(&[0, 0, 2, 1], &[0, 4, 1, 4], 5), [0, 4, 11, 9]);
    }
}
