//! Sums of cells.

/// Sums that are computed side by side. Each addition waits for the one before it in its lane only.
const LANES: usize = 8;

/// The sum of doubles, and what rounding has taken from it: together they are the sum as if computed with twice the digits, so that
/// the order of rows hardly matters. The second is NaN if an infinity or a NaN is among the cells, or if the sum overflows.
#[inline(never)]
pub fn compensated(cells: &[f64]) -> (f64, f64) {
    let (mut sums, mut lost) = ([0.0; LANES], [0.0; LANES]);
    let (chunks, rest) = cells.as_chunks::<LANES>();
    for chunk in chunks {
        for ((sum, lost), x) in sums.iter_mut().zip(&mut lost).zip(chunk) {
            add(sum, lost, *x);
        }
    }
    for ((sum, lost), x) in sums.iter_mut().zip(&mut lost).zip(rest) {
        add(sum, lost, *x);
    }
    // An empty sum is 0, not -0 as `Iterator::sum` has it.
    let (mut total, mut rounded) = (0.0, 0.0);
    for (sum, lost) in sums.iter().zip(&lost) {
        add(&mut total, &mut rounded, *sum);
        rounded += lost;
    }
    (total, rounded)
}

/// Adds `x` to `sum`, and what rounding takes from it to `lost`. Without a branch (Knuth's method), for the branch on which of both
/// is larger would keep the compiler from vectorising.
#[inline(always)]
pub fn add(sum: &mut f64, lost: &mut f64, x: f64) {
    let next = *sum + x;
    let of_x = next - *sum;
    *lost += (*sum - (next - of_x)) + (x - of_x);
    *sum = next;
}

/// A sum together with what rounding has taken from it.
#[inline(always)]
pub fn total(sum: f64, lost: f64) -> f64 {
    // With infinities, what was lost is NaN.
    if sum.is_finite() { sum + lost } else { sum }
}

/// Adds each cell to the sum of its group, as `add` does: cell `i` to `sums[groups[i]]`, a pair of a sum and what rounding has taken from it.
/// Cells whose group is not there are left out.
#[inline(never)]
pub fn compensated_by_group(cells: &[f64], groups: &[u32], sums: &mut [(f64, f64)]) {
    for (x, group) in cells.iter().zip(groups) {
        if let Some((sum, lost)) = sums.get_mut(*group as usize) {
            add(sum, lost, *x);
        }
    }
}

/// Adds cells to their count, their mean, and the sum of their squared deviations from it, by Welford's method.
#[inline(never)]
pub fn moments(cells: &[f64], so_far: (f64, f64, f64)) -> (f64, f64, f64) {
    cells.iter().fold(so_far, |(count, mean, squares), x| {
        let (count, delta) = (count + 1.0, x - mean);
        let mean = mean + delta / count;
        (count, mean, squares + delta * (x - mean))
    })
}

/// The sum of int32s; exact for less than 2^32 of them.
#[inline(never)]
pub fn int32s(cells: &[i32]) -> i64 {
    cells.iter().fold(0_i64, |sum, n| sum.wrapping_add(i64::from(*n)))
}

/// The sum of int64s; exact for less than 2^32 of them.
#[inline(never)]
pub fn int64s(cells: &[i64]) -> i128 {
    // Halves do not overflow.
    let (mut high, mut low) = (0_i64, 0_u64);
    for n in cells {
        high = high.wrapping_add(n >> 32);
        low = low.wrapping_add((n & 0xFFFF_FFFF).cast_unsigned());
    }
    (i128::from(high) << 32) + i128::from(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Sums of integers times a power of two, which are exact in 128 bits.
    fn any_units() -> impl Strategy<Value = Vec<i64>> {
        let wide = (any::<i64>(), 11..63_u32).prop_map(|(n, shift)| n >> shift << shift.saturating_sub(30));
        proptest::collection::vec(wide, 0..70)
    }

    proptest! {
        #[test]
        fn a_sum_and_what_it_has_lost_are_exact_where_twice_the_digits_suffice(units in any_units()) {
            let cells: Vec<f64> = units.iter().map(|n| *n as f64 / 1024.0).collect();
            let exact: i128 = units.iter().map(|n| i128::from((*n as f64) as i64)).sum();
            let (sum, lost) = compensated(&cells);
            prop_assert_eq!((sum * 1024.0) as i128 + (lost * 1024.0) as i128, exact);
            let mut groups = vec![(0.0, 0.0); 3];
            let numbers: Vec<u32> = (0..cells.len() as u32).map(|i| i % 4).collect();
            compensated_by_group(&cells, &numbers, &mut groups);
            for (group, (sum, lost)) in groups.iter().enumerate() {
                let exact: i128 = units.iter().skip(group).step_by(4).map(|n| i128::from((*n as f64) as i64)).sum();
                prop_assert_eq!((sum * 1024.0) as i128 + (lost * 1024.0) as i128, exact);
            }
        }

        #[test]
        fn sums_of_integers_are_exact(cells in proptest::collection::vec(any::<i64>(), 0..70)) {
            prop_assert_eq!(int64s(&cells), cells.iter().map(|n| i128::from(*n)).sum::<i128>());
            let narrow: Vec<i32> = cells.iter().map(|n| *n as i32).collect();
            prop_assert_eq!(int32s(&narrow), narrow.iter().map(|n| i64::from(*n)).sum::<i64>());
        }

        #[test]
        fn infinities_and_nans_come_out_as_one_by_one(cells in proptest::collection::vec(
            prop_oneof![6 => -9.0..9.0, 1 => Just(f64::INFINITY), 1 => Just(f64::NEG_INFINITY), 1 => Just(f64::NAN)], 0..40,
        )) {
            let plain: f64 = cells.iter().sum();
            let (sum, lost) = compensated(&cells);
            if plain.is_finite() {
                prop_assert!((sum + lost - plain).abs() < 1e-9);
            } else {
                prop_assert_eq!(sum.to_string(), plain.to_string());
                prop_assert!(lost.is_nan());
            }
        }
    }

    #[test]
    fn extreme_integers_do_not_overflow_a_sum() {
        for cell in [i64::MIN, i64::MAX, -1] {
            assert_eq!(int64s(&[cell; 33]), i128::from(cell) * 33);
        }
        assert_eq!(int32s(&[i32::MIN; 9]), i64::from(i32::MIN) * 9);
    }

    #[test]
    fn small_values_survive_beside_a_large_one() {
        let mut cells = vec![1e16];
        cells.extend([1.0; 1000]);
        cells.push(-1e16);
        let (sum, lost) = compensated(&cells);
        assert_eq!(sum + lost, 1000.0);
        assert_eq!(compensated(&[]), (0.0, 0.0));
    }
}
