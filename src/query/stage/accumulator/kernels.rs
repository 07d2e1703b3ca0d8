//! Tight loops over the cells of typed columns, for a range of rows that belong to one group.

/// Independent sums, which do not wait for each other.
const LANES: usize = 4;

/// The sum of two doubles, and what rounding has taken from it.
#[inline(always)]
pub fn two_sum(a: f64, b: f64) -> (f64, f64) {
    let sum = a + b;
    let taken = sum - a;
    (sum, (a - (sum - taken)) + (b - taken))
}

/// The sum of all cells, and what rounding has taken from it.
pub fn sum_of_doubles(cells: &[f64]) -> (f64, f64) {
    let (chunks, rest) = cells.as_chunks::<LANES>();
    let (mut sums, mut lost) = ([0.0; LANES], [0.0; LANES]);
    for chunk in chunks {
        for ((sum, lost), x) in sums.iter_mut().zip(&mut lost).zip(chunk) {
            let (next, taken) = two_sum(*sum, *x);
            *sum = next;
            *lost += taken;
        }
    }
    let (mut total, mut total_lost) = (0.0, lost.iter().sum::<f64>());
    for x in sums.iter().chain(rest) {
        let (next, taken) = two_sum(total, *x);
        total = next;
        total_lost += taken;
    }
    (total, total_lost)
}

/// The sum of all cells, of which there are less than 2³².
pub fn sum_of_int32s(cells: &[i32]) -> i64 {
    cells.iter().map(|n| i64::from(*n)).sum()
}

/// The sum of all cells.
pub fn sum_of_int64s(cells: &[i64]) -> i128 {
    cells.iter().map(|n| i128::from(*n)).sum()
}

/// The greatest double, or the least one; of equal ones, such as zeros of both signs, the first. NaN is below all others.
pub fn extreme_of_doubles(cells: &[f64], is_max: bool) -> Option<f64> {
    let mut has_nan = false;
    let mut lanes = [if is_max { f64::NEG_INFINITY } else { f64::INFINITY }; LANES];
    let mut step = |lane: &mut f64, x: f64| {
        has_nan |= x.is_nan();
        // A comparison with NaN is false.
        let wins = if is_max { x > *lane } else { x < *lane };
        *lane = if wins { x } else { *lane };
    };
    let (chunks, rest) = cells.as_chunks::<LANES>();
    for chunk in chunks {
        lanes.iter_mut().zip(chunk).for_each(|(lane, x)| step(lane, *x));
    }
    let [mut best, others @ ..] = lanes;
    others.iter().chain(rest).for_each(|x| step(&mut best, *x));
    let first_nan = || cells.iter().copied().find(|x| x.is_nan());
    if has_nan && !is_max {
        return first_nan();
    }
    // Without a number, what the lanes began with is left.
    if best == 0.0 || best.is_infinite() {
        return cells.iter().copied().find(|x| *x == best).or_else(first_nan);
    }
    Some(best)
}

/// The greatest cell, or the least one.
pub fn extreme_of<T: Copy + PartialOrd>(cells: &[T], is_max: bool) -> Option<T> {
    let first = *cells.first()?;
    let better = |best: T, x: &T| if (*x > best) == is_max && *x != best { *x } else { best };
    Some(cells.iter().fold(first, better))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn double() -> impl Strategy<Value = f64> {
        let special = [0.0, -0.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 5e-324, 1e100, -1e100];
        prop_oneof![prop::sample::select(special.to_vec()), -9.0..9.0_f64]
    }

    proptest! {
        #[test]
        fn extremes_are_those_of_one_comparison_after_another(
            doubles in prop::collection::vec(double(), 0..20), integers in prop::collection::vec(-9..9_i64, 0..20)
        ) {
            for is_max in [false, true] {
                // The first of several NaNs stays, as of zeros.
                let gives_way = |x: f64, y: f64| match is_max {
                    true => x < y || x.is_nan() && !y.is_nan(),
                    false => y < x || y.is_nan() && !x.is_nan(),
                };
                let expected = doubles.iter().copied().reduce(|x, y| if gives_way(x, y) { y } else { x });
                let found = extreme_of_doubles(&doubles, is_max);
                prop_assert_eq!(found.map(f64::to_bits), expected.map(f64::to_bits));
                let expected = if is_max { integers.iter().max() } else { integers.iter().min() };
                prop_assert_eq!(extreme_of(&integers, is_max), expected.copied());
            }
        }

        #[test]
        fn sums_of_lanes_keep_what_rounding_takes(integers in prop::collection::vec(-9..9_i32, 0..40)) {
            let exact: i32 = integers.iter().sum();
            // A sum without compensation loses the small ones.
            let mut cells: Vec<f64> = integers.iter().map(|n| f64::from(*n)).collect();
            cells.insert(cells.len() / 2, 1e17);
            cells.push(-1e17);
            let (sum, lost) = sum_of_doubles(&cells);
            prop_assert_eq!(sum + lost, f64::from(exact));
            prop_assert_eq!(sum_of_int32s(&integers), i64::from(exact));
            let wide: Vec<i64> = integers.iter().map(|n| i64::from(*n) << 59).collect();
            prop_assert_eq!(sum_of_int64s(&wide), i128::from(exact) << 59);
        }
    }
}
