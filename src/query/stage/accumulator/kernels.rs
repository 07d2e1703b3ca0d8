//! Tight loops over the cells of typed columns: for rows that belong to one group, and for rows that have a group each.

use kernels::{extreme, sum};

/// A sum of doubles, compensated for rounding, so that the order of rows hardly matters.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DoubleSum {
    pub sum: f64,
    /// What rounding has taken from `sum`.
    pub lost: f64,
    pub count: u64,
}

/// An exact sum of integers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IntegerSum {
    pub sum: i128,
    pub count: u64,
    pub has_int64: bool,
}

/// Mean and squared deviations by Welford's method.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    pub count: f64,
    pub mean: f64,
    /// Sum of the squared deviations from the mean.
    pub squares: f64,
}

impl DoubleSum {
    #[inline(always)]
    pub fn add(&mut self, x: f64) {
        sum::add(&mut self.sum, &mut self.lost, x);
        self.count += 1;
    }

    /// The sum, rounded once.
    pub fn total(&self) -> f64 {
        sum::total(self.sum, self.lost)
    }

    /// Adds another sum.
    pub fn merge(&mut self, other: DoubleSum) {
        let mut taken = 0.0;
        sum::add(&mut self.sum, &mut taken, other.sum);
        self.lost += taken + other.lost;
        self.count += other.count;
    }
}

impl IntegerSum {
    /// Adds another sum.
    #[inline(always)]
    pub fn merge(&mut self, other: IntegerSum) {
        self.sum += other.sum;
        self.count += other.count;
        self.has_int64 |= other.has_int64;
    }
}

impl Moments {
    #[inline(always)]
    pub fn add(&mut self, x: f64) {
        self.count += 1.0;
        let delta = x - self.mean;
        self.mean += delta / self.count;
        self.squares += delta * (x - self.mean);
    }

    /// Adds all cells, in their order.
    pub fn add_all(&mut self, cells: &[f64]) {
        let (count, mean, squares) = sum::moments(cells, (self.count, self.mean, self.squares));
        *self = Moments { count, mean, squares };
    }
}

/// The sum of all cells.
pub fn sum_of_doubles(cells: &[f64]) -> DoubleSum {
    let (sum, lost) = sum::compensated(cells);
    DoubleSum { sum, lost, count: cells.len() as u64 }
}

/// The sum of all cells, of which there are less than 2³².
pub fn sum_of_int32s(cells: &[i32]) -> IntegerSum {
    IntegerSum { sum: sum::int32s(cells).into(), count: cells.len() as u64, has_int64: false }
}

/// The sum of all cells, of which there are less than 2³².
pub fn sum_of_int64s(cells: &[i64]) -> IntegerSum {
    IntegerSum { sum: sum::int64s(cells), count: cells.len() as u64, has_int64: !cells.is_empty() }
}

/// Adds each cell to the sum of its group.
pub fn add_doubles(groups: &[u32], cells: &[f64], sums: &mut [DoubleSum]) {
    for (group, x) in groups.iter().zip(cells) {
        if let Some(sum) = sums.get_mut(*group as usize) {
            sum.add(*x);
        }
    }
}

/// Adds each cell to the sum of its group.
pub fn add_int32s(groups: &[u32], cells: &[i32], sums: &mut [IntegerSum]) {
    for (group, n) in groups.iter().zip(cells) {
        if let Some(sum) = sums.get_mut(*group as usize) {
            sum.sum += i128::from(*n);
            sum.count += 1;
        }
    }
}

/// Adds each cell to the sum of its group.
pub fn add_int64s(groups: &[u32], cells: &[i64], sums: &mut [IntegerSum]) {
    for (group, n) in groups.iter().zip(cells) {
        if let Some(sum) = sums.get_mut(*group as usize) {
            sum.sum += i128::from(*n);
            sum.count += 1;
            sum.has_int64 = true;
        }
    }
}

/// Adds the same integer for each row to the sum of its group, as a count does.
pub fn add_int32_for_each(groups: &[u32], n: i32, sums: &mut [IntegerSum]) {
    for group in groups {
        if let Some(sum) = sums.get_mut(*group as usize) {
            sum.sum += i128::from(n);
            sum.count += 1;
        }
    }
}

/// Adds each cell to the moments of its group.
pub fn add_moments(groups: &[u32], cells: &[f64], moments: &mut [Moments]) {
    for (group, x) in groups.iter().zip(cells) {
        if let Some(moments) = moments.get_mut(*group as usize) {
            moments.add(*x);
        }
    }
}

/// The greatest or the least value of a group so far, of one type for all groups or several.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GroupExtreme {
    /// The bits of a double, or an integer.
    pub word: u64,
    /// The place of its row, if rows come out of order. Of equal values, the one with the smallest place stays.
    pub place: i64,
    /// The type byte of the value; 0 before the first.
    pub kind: u8,
}

/// The extreme of a group, which is `new` if it is the first one. `None` if it has another type.
#[inline(always)]
fn known_or(new: GroupExtreme, extremes: &mut [GroupExtreme], group: u32) -> Option<&mut GroupExtreme> {
    let known = extremes.get_mut(group as usize)?;
    if known.kind == 0 {
        *known = new;
    }
    (known.kind == new.kind).then_some(known)
}

/// Offers each cell to the extreme of its group. `places` are those of the rows, or empty. Stops at the first row whose
/// group holds a value of another type; returns how many rows come before it.
pub fn offer_doubles(
    groups: &[u32],
    cells: &[f64],
    places: &[i64],
    (kind, is_max): (u8, bool),
    extremes: &mut [GroupExtreme],
) -> usize {
    for (row, (group, x)) in groups.iter().zip(cells).enumerate() {
        let place = places.get(row).copied().unwrap_or_default();
        let new = GroupExtreme { word: x.to_bits(), place, kind };
        let Some(known) = known_or(new, extremes, *group) else { return row };
        let best = f64::from_bits(known.word);
        // NaN is below all others.
        let wins = match is_max {
            true => *x > best || best.is_nan() && !x.is_nan(),
            false => *x < best || x.is_nan() && !best.is_nan(),
        };
        if wins || place < known.place && (*x == best || x.is_nan() && best.is_nan()) {
            (known.word, known.place) = (x.to_bits(), place);
        }
    }
    groups.len()
}

/// The same for integers and dates of this type.
pub fn offer_integers<T: Copy + Into<i64>>(
    groups: &[u32],
    cells: &[T],
    places: &[i64],
    (kind, is_max): (u8, bool),
    extremes: &mut [GroupExtreme],
) -> usize {
    for (row, (group, n)) in groups.iter().zip(cells).enumerate() {
        let (n, place) = ((*n).into(), places.get(row).copied().unwrap_or_default());
        let new = GroupExtreme { word: n.cast_unsigned(), place, kind };
        let Some(known) = known_or(new, extremes, *group) else { return row };
        let best = known.word.cast_signed();
        let wins = if is_max { n > best } else { n < best };
        if wins || n == best && place < known.place {
            (known.word, known.place) = (n.cast_unsigned(), place);
        }
    }
    groups.len()
}

/// The first row from `from` on whose word is not above the bound of its group.
pub fn next_within(groups: &[u32], words: &[u64], bounds: &[u64], from: usize) -> Option<usize> {
    let behind = groups.iter().zip(words).enumerate().skip(from);
    for (row, (group, word)) in behind {
        if bounds.get(*group as usize).is_some_and(|bound| word <= bound) {
            return Some(row);
        }
    }
    None
}

/// The greatest double, or the least one; of equal ones, such as zeros of both signs, the first. NaN is below all others.
pub fn extreme_of_doubles(cells: &[f64], is_max: bool) -> Option<f64> {
    if is_max { extreme::greatest_double(cells) } else { extreme::least_double(cells) }
}

/// The greatest cell, or the least one.
pub fn extreme_of_int64s(cells: &[i64], is_max: bool) -> Option<i64> {
    if is_max { extreme::greatest_int64(cells) } else { extreme::least_int64(cells) }
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
                prop_assert_eq!(extreme_of_int64s(&integers, is_max), expected.copied());
            }
        }

        #[test]
        fn sums_of_lanes_keep_what_rounding_takes(integers in prop::collection::vec(-9..9_i32, 0..40)) {
            let exact: i32 = integers.iter().sum();
            // A sum without compensation loses the small ones.
            let mut cells: Vec<f64> = integers.iter().map(|n| f64::from(*n)).collect();
            cells.insert(cells.len() / 2, 1e17);
            cells.push(-1e17);
            let DoubleSum { sum, lost, count } = sum_of_doubles(&cells);
            prop_assert_eq!((sum + lost, count), (f64::from(exact), cells.len() as u64));
            prop_assert_eq!(sum_of_int32s(&integers).sum, i128::from(exact));
            let wide: Vec<i64> = integers.iter().map(|n| i64::from(*n) << 59).collect();
            prop_assert_eq!(sum_of_int64s(&wide).sum, i128::from(exact) << 59);
        }

        #[test]
        fn rows_with_a_group_each_come_to_what_the_rows_of_each_group_do(
            rows in prop::collection::vec((0..4_u32, double(), -9..9_i64), 0..60), is_max in any::<bool>()
        ) {
            let groups: Vec<u32> = rows.iter().map(|row| row.0).collect();
            let (doubles, integers): (Vec<f64>, Vec<i64>) = rows.iter().map(|row| (row.1, row.2)).unzip();
            let int32s: Vec<i32> = integers.iter().map(|n| *n as i32).collect();
            let mut sums = vec![IntegerSum::default(); 4];
            add_int64s(&groups, &integers, &mut sums);
            let mut int32_sums = vec![IntegerSum::default(); 4];
            add_int32s(&groups, &int32s, &mut int32_sums);
            let mut counts = vec![IntegerSum::default(); 4];
            add_int32_for_each(&groups, 3, &mut counts);
            let mut double_sums = vec![DoubleSum::default(); 4];
            add_doubles(&groups, &doubles, &mut double_sums);
            let mut moments = vec![Moments::default(); 4];
            add_moments(&groups, &doubles, &mut moments);
            for group in 0..4_u32 {
                let of = |row: &&(u32, f64, i64)| row.0 == group;
                let doubles: Vec<f64> = rows.iter().filter(of).map(|row| row.1).collect();
                let integers: Vec<i64> = rows.iter().filter(of).map(|row| row.2).collect();
                let at = group as usize;
                prop_assert_eq!(sums[at], sum_of_int64s(&integers));
                prop_assert_eq!(int32_sums[at].sum, sums[at].sum);
                prop_assert_eq!((counts[at].sum, counts[at].count), (3 * doubles.len() as i128, doubles.len() as u64));
                prop_assert_eq!(double_sums[at].count, doubles.len() as u64);
                let mut one_by_one = Moments::default();
                doubles.iter().for_each(|x| one_by_one.add(*x));
                prop_assert_eq!(moments[at].mean.to_bits(), one_by_one.mean.to_bits());
            }
            let (mut extremes, mut integer_extremes) = (vec![GroupExtreme::default(); 4], vec![GroupExtreme::default(); 4]);
            prop_assert_eq!(offer_doubles(&groups, &doubles, &[], (1, is_max), &mut extremes), rows.len());
            prop_assert_eq!(offer_integers(&groups, &int32s, &[], (2, is_max), &mut integer_extremes), rows.len());
            for group in 0..4_u32 {
                let of = |row: &&(u32, f64, i64)| row.0 == group;
                let doubles: Vec<f64> = rows.iter().filter(of).map(|row| row.1).collect();
                let integers: Vec<i64> = rows.iter().filter(of).map(|row| row.2).collect();
                let known = |extreme: &GroupExtreme| (extreme.kind > 0).then_some(extreme.word);
                let at = group as usize;
                prop_assert_eq!(known(&extremes[at]), extreme_of_doubles(&doubles, is_max).map(f64::to_bits));
                prop_assert_eq!(known(&integer_extremes[at]), extreme_of_int64s(&integers, is_max).map(i64::cast_unsigned));
            }
        }
    }

    #[test]
    fn of_equal_values_the_one_with_the_smallest_place_stays() {
        let mut extremes = vec![GroupExtreme { word: 0.0_f64.to_bits(), place: 5, kind: 1 }];
        let groups = [0; 4];
        offer_doubles(&groups, &[-1.0, 0.0, -0.0, 0.0], &[0, 7, 3, 4], (1, true), &mut extremes);
        assert_eq!(extremes, [GroupExtreme { word: (-0.0_f64).to_bits(), place: 3, kind: 1 }]);
        let mut extremes = vec![GroupExtreme { word: 4, place: 5, kind: 9 }];
        offer_integers(&groups, &[4_i64, 4, 6, 5], &[6, 4, 1, 2], (9, false), &mut extremes);
        assert_eq!(offer_integers(&groups, &[1_i64], &[0], (7, false), &mut extremes), 0, "another type");
        assert_eq!(extremes, [GroupExtreme { word: 4, place: 4, kind: 9 }]);
    }

    #[test]
    fn rows_beyond_the_bound_of_their_group_are_passed_over() {
        let (groups, words, bounds) = ([0, 1, 0, 1], [5, 5, 3, 9], [4, u64::MAX]);
        assert_eq!(
            [0, 2, 3, 4].map(|from| next_within(&groups, &words, &bounds, from)),
            [Some(1), Some(2), Some(3), None]
        );
    }
}
