//! Key ranges that a scan reads one after another.

use crate::storage::KeyRange;
use crate::value::sort_by;

/// The same keys as ascending, disjoint ranges: a scan that continues after a key must know which range it is in.
pub fn apart(mut ranges: Vec<KeyRange>) -> Vec<KeyRange> {
    ranges.retain(|range| !range.is_empty());
    sort_by(&mut ranges, |a, b| a.start.cmp(&b.start));
    ranges.dedup_by(|next, last| {
        let touches = next.start <= last.end;
        if touches && last.end < next.end {
            std::mem::swap(&mut last.end, &mut next.end);
        }
        touches
    });
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u8, end: u8) -> KeyRange {
        KeyRange { start: vec![start], end: vec![end] }
    }

    #[test]
    fn adjacent_ranges_are_joined_and_empty_ones_removed() {
        let mixed =
            [range(7, 9), range(1, 3), range(5, 5), range(2, 6), range(4, 5), range(8, 9), range(9, 10), range(6, 2)];
        assert_eq!(apart(mixed.to_vec()), [range(1, 6), range(7, 10)]);
        assert_eq!(apart(vec![range(3, 3)]), []);
    }
}
