//! Which rows windows hold, and their sums and deviations. Most windows begin and end no earlier than the one before.

use std::ops::Range;

use crate::sum;

/// The cells that count: all of them, or those with a bit in `present`.
#[derive(Clone, Copy)]
pub struct Cells<'a> {
    /// The cells.
    pub cells: &'a [f64],
    /// Which cells are present, as in [`crate::bits`].
    pub present: Option<&'a [u64]>,
}

impl Cells<'_> {
    #[inline(always)]
    fn get(&self, row: usize) -> Option<f64> {
        let bit = |words: &[u64]| words.get(row / 64).is_some_and(|word| word >> (row % 64) & 1 == 1);
        if self.present.is_none_or(bit) { self.cells.get(row).copied() } else { None }
    }
}

/// What cells come to.
trait Accumulate: Copy + Default {
    fn add(&mut self, x: f64);
    fn merge(&mut self, more: &Self);
}

#[derive(Clone, Copy, Default)]
struct Sum {
    count: u32,
    sum: f64,
    /// What rounding has taken from `sum`.
    lost: f64,
}

impl Accumulate for Sum {
    #[inline(always)]
    fn add(&mut self, x: f64) {
        self.count += 1;
        sum::add(&mut self.sum, &mut self.lost, x);
    }

    #[inline(always)]
    fn merge(&mut self, more: &Sum) {
        if self.count == 0 {
            *self = *more;
            return;
        }
        let mut taken = 0.0;
        sum::add(&mut self.sum, &mut taken, more.sum);
        self.lost += taken + more.lost;
        self.count += more.count;
    }
}

/// Count, mean, and squared deviations from the mean.
#[derive(Clone, Copy, Default)]
struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Accumulate for Moments {
    #[inline(always)]
    fn add(&mut self, x: f64) {
        self.count += 1.0;
        let delta = x - self.mean;
        self.mean += delta / self.count;
        self.squares += delta * (x - self.mean);
    }

    #[inline(always)]
    fn merge(&mut self, more: &Moments) {
        if more.count > 0.0 {
            let count = self.count + more.count;
            let delta = more.mean - self.mean;
            self.mean += delta * more.count / count;
            self.squares += more.squares + delta * delta * self.count * more.count / count;
            self.count = count;
        }
    }
}

/// The windows of `rows` rows, from the row `low` rows behind each one, or from the first, to the row `high` rows behind it, or to the last.
#[inline(never)]
pub fn of_rows(rows: usize, low: Option<i64>, high: Option<i64>) -> Vec<Range<usize>> {
    // A window cannot reach further than this.
    let most = i64::try_from(rows).unwrap_or(i64::MAX);
    let (low, high) = (low.map_or(-most, |low| low.max(-most)), high.map_or(most, |high| high.clamp(-most, most)));
    let within = |row: i64| row.clamp(0, most) as usize;
    (0..most)
        .map(|row| {
            let end = within(row + high + 1);
            within(row + low.min(most)).min(end)..end
        })
        .collect()
}

/// The windows of rows at ascending places: each holds the rows that are at least `low` and at most `high` away from it; `None` for no bound.
///
/// The first and the last place must not overflow when they are moved by `low` or `high`.
#[inline(never)]
pub fn of_places(places: &[i64], low: Option<i64>, high: Option<i64>) -> Vec<Range<usize>> {
    let (mut start, mut end) = (0, if high.is_some() { 0 } else { places.len() });
    let window = |place: &i64| {
        if let Some(low) = low {
            let limit = place.wrapping_add(low);
            while places.get(start).is_some_and(|place| *place < limit) {
                start += 1;
            }
        }
        if let Some(high) = high {
            let limit = place.wrapping_add(high);
            while places.get(end).is_some_and(|place| *place <= limit) {
                end += 1;
            }
        }
        start.min(end)..end
    };
    places.iter().map(window).collect()
}

/// What each window comes to, and the numbers of the windows that come to nothing, with 0 in their places.
///
/// Windows cost as much as their rows. There is a state of the rows from a split on; and for each row before it at which a window may begin, one of the rows
/// from there to the split. When the front of a window passes the split, the split moves to its end. Nothing is subtracted, because 1e100 + 1 - 1e100 would be 0.
#[inline(always)]
fn accumulate<F: Accumulate>(
    cells: &Cells<'_>,
    windows: &[Range<usize>],
    show: impl Fn(&F) -> Option<f64>,
) -> (Vec<f64>, Vec<u32>) {
    let (mut shown, mut nothing) = (Vec::with_capacity(windows.len()), Vec::new());
    let (mut held, mut split) = (0..0, 0);
    // The states of the rows in front of the split, nearest first.
    let (mut behind, mut in_front): (F, Vec<F>) = Default::default();
    for window in windows {
        if held != *window {
            let goes_on = held.start <= window.start && window.start <= held.end && held.end <= window.end;
            if !goes_on {
                (held, split, behind) = (window.start..window.start, window.start, F::default());
                in_front.clear();
            } else if window.start > split {
                (held, split, behind) = (window.clone(), window.end, F::default());
                in_front.clear();
                let mut before = F::default();
                in_front.extend(window.clone().rev().map(|row| {
                    let mut state = F::default();
                    state.merge(&before);
                    cells.get(row).into_iter().for_each(|x| state.add(x));
                    before = state;
                    state
                }));
            }
            for row in held.end..window.end {
                cells.get(row).into_iter().for_each(|x| behind.add(x));
            }
            held = window.clone();
        }
        let mut state = behind;
        if let Some(front) = split.checked_sub(window.start + 1).and_then(|at| in_front.get(at)) {
            // As accumulators merge their groups, to the last bit.
            state = F::default();
            state.merge(front);
            state.merge(&behind);
        }
        let value = show(&state);
        if value.is_none() {
            nothing.push(u32::try_from(shown.len()).unwrap_or(u32::MAX));
        }
        shown.push(value.unwrap_or_default());
    }
    (shown, nothing)
}

/// The sum of the cells of each window, or their mean; and the numbers of the windows without cells.
#[inline(never)]
pub fn sums(cells: Cells<'_>, windows: &[Range<usize>], is_mean: bool) -> (Vec<f64>, Vec<u32>) {
    accumulate(&cells, windows, |sum: &Sum| {
        let total = sum::total(sum.sum, sum.lost);
        (sum.count > 0).then(|| if is_mean { total / f64::from(sum.count) } else { total })
    })
}

/// The standard deviation of the cells of each window, of a sample or of all there are; and the numbers of the windows with too few cells.
#[inline(never)]
pub fn deviations(cells: Cells<'_>, windows: &[Range<usize>], is_sample: bool) -> (Vec<f64>, Vec<u32>) {
    accumulate(&cells, windows, |moments: &Moments| {
        let divisor = if is_sample { moments.count - 1.0 } else { moments.count };
        (divisor > 0.5).then(|| (moments.squares / divisor).sqrt())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Windows that slide, stand, jump ahead, and go back.
    fn any_windows(rows: usize) -> impl Strategy<Value = Vec<Range<usize>>> {
        let step = prop_oneof![6 => 0..3_i64, 1 => 3..9_i64, 1 => -9..0_i64];
        let moved = move |(mut start, mut end), (by_start, by_end): &(i64, i64)| {
            let within = |at: usize, by: i64| at.saturating_add_signed(by as isize).min(rows);
            end = within(end, *by_end);
            start = within(start, *by_start).min(end);
            (start, end)
        };
        proptest::collection::vec((step.clone(), step), 0..60).prop_map(move |steps| {
            let mut at = (0, 0);
            steps
                .iter()
                .map(|step| {
                    at = moved(at, step);
                    at.0..at.1
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn windows_come_to_what_their_cells_come_to(
            cells in proptest::collection::vec((-99..99_i32, any::<bool>()), 70), windows in any_windows(70), all in any::<bool>(), flag in any::<bool>(),
        ) {
            let present: Vec<bool> = cells.iter().map(|(_, is_present)| *is_present || all).collect();
            let cells: Vec<f64> = cells.iter().map(|(n, _)| f64::from(*n)).collect();
            let words = crate::bits::of(&present, |bit| bit);
            let input = Cells { cells: &cells, present: (!all).then_some(&words) };
            let (totals, no_total) = sums(input, &windows, flag);
            let (spreads, no_spread) = deviations(input, &windows, flag);
            prop_assert_eq!((totals.len(), spreads.len()), (windows.len(), windows.len()));
            for (i, window) in windows.iter().enumerate() {
                let rows: Vec<f64> = window.clone().filter(|row| present[*row]).map(|row| cells[row]).collect();
                let (count, sum) = (rows.len() as f64, rows.iter().sum::<f64>());
                prop_assert_eq!(no_total.contains(&(i as u32)), rows.is_empty());
                let expected = if rows.is_empty() { 0.0 } else if flag { sum / count } else { sum };
                prop_assert_eq!(totals[i], expected);
                let divisor = if flag { count - 1.0 } else { count };
                prop_assert_eq!(no_spread.contains(&(i as u32)), divisor < 0.5);
                let squares: f64 = rows.iter().map(|x| (x - sum / count).powi(2)).sum();
                let expected = if divisor < 0.5 { 0.0 } else { (squares / divisor).sqrt() };
                prop_assert!((spreads[i] - expected).abs() < 1e-9, "{} {}", spreads[i], expected);
            }
        }
    }

    #[test]
    fn windows_of_rows_end_where_the_rows_end() {
        assert_eq!(of_rows(4, Some(-1), Some(0)), [0..1, 0..2, 1..3, 2..4]);
        assert_eq!(of_rows(3, Some(1), None), [1..3, 2..3, 3..3]);
        assert_eq!(of_rows(3, None, Some(-2)), [0..0, 0..0, 0..1]);
        assert_eq!(of_rows(2, Some(i64::MIN), Some(i64::MAX)), [0..2, 0..2]);
        assert_eq!(of_rows(2, Some(i64::MAX), Some(i64::MAX)), [2..2, 2..2]);
        assert_eq!(of_rows(2, Some(i64::MIN), Some(i64::MIN)), [0..0, 0..0]);
        assert_eq!(of_rows(0, Some(-1), Some(1)), []);
    }

    proptest! {
        #[test]
        fn windows_of_places_hold_what_is_no_further_away(
            mut places in proptest::collection::vec(-50..50_i64, 0..40), low in proptest::option::of(-20..20_i64), high in proptest::option::of(-20..20_i64),
        ) {
            places.sort_unstable();
            let found = of_places(&places, low, high);
            prop_assert_eq!(found.len(), places.len());
            for (place, window) in places.iter().zip(found) {
                let is_within = |other: &i64| low.is_none_or(|low| *other >= place + low) && high.is_none_or(|high| *other <= place + high);
                let rows: Vec<usize> = (0..places.len()).filter(|row| is_within(&places[*row])).collect();
                prop_assert_eq!(window.collect::<Vec<_>>(), rows);
            }
        }
    }

    #[test]
    fn what_leaves_a_window_leaves_nothing_behind() {
        let cells = [1e100, 1.0, f64::INFINITY, 1.0, 2.0, f64::NAN, 3.0, 4.0];
        let windows: Vec<_> = (0..7).map(|row| row..row + 2).collect();
        let (sums, _) = sums(Cells { cells: &cells, present: None }, &windows, false);
        assert_eq!(sums[0..4], [1e100 + 1.0, f64::INFINITY, f64::INFINITY, 3.0]);
        assert!(sums[4].is_nan() && sums[5].is_nan());
        assert_eq!(sums[6], 7.0);
    }
}
