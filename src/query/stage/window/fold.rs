//! Sums and moments of windows over flat vectors, without subtraction.

use std::ops::Range;

use super::cells::{cell, except};
use crate::block::{Bitmap, Column, ColumnBuilder, ColumnData};
use crate::value::{Kind, OwnedValue, Value};

/// The sum of no numbers.
pub(super) fn no_sum() -> Value<'static> {
    Value::new_checked(Kind::Int32, &[0; 4])
}

/// How rows add up.
trait Fold {
    type State: Copy + Default;
    fn add(&self, state: &mut Self::State, row: usize);
    fn merge(state: &mut Self::State, more: &Self::State);
}

/// Calls `see` with the state of each window, most of which begin and end no earlier than the previous one. Such windows
/// cost as much as their rows: this is the method of `over_windows`, to the last bit, with states in vectors.
fn fold<F: Fold>(rows: &F, windows: &[Range<usize>], see: &mut dyn FnMut(&F::State)) {
    let (mut held, mut split) = (0..0, 0);
    // The rows from the split on; and for each row before it, nearest first, the rows from that row to the split.
    let (mut behind, mut in_front): (F::State, Vec<F::State>) = Default::default();
    for window in windows {
        if held != *window {
            let goes_on = held.start <= window.start && window.start <= held.end && held.end <= window.end;
            if !goes_on {
                (held, split, behind) = (window.start..window.start, window.start, F::State::default());
                in_front.clear();
            } else if window.start > split {
                (held, split, behind) = (window.clone(), window.end, F::State::default());
                in_front.clear();
                let mut before = F::State::default();
                for row in window.clone().rev() {
                    let mut state = F::State::default();
                    F::merge(&mut state, &before);
                    rows.add(&mut state, row);
                    in_front.push(state);
                    before = state;
                }
            }
            for row in held.end..window.end {
                rows.add(&mut behind, row);
            }
            held = window.clone();
        }
        match split.checked_sub(window.start + 1).and_then(|at| in_front.get(at)) {
            None => see(&behind),
            Some(front) => {
                let mut state = F::State::default();
                F::merge(&mut state, front);
                F::merge(&mut state, &behind);
                see(&state);
            }
        }
    }
}

/// Doubles, and which of them are present.
struct WindowDoubles<'a>(&'a [f64], Option<&'a Bitmap>);

impl WindowDoubles<'_> {
    #[inline(always)]
    fn get(&self, row: usize) -> Option<f64> {
        if self.1.is_none_or(|present| present.get(row)) { self.0.get(row).copied() } else { None }
    }
}

/// A sum with compensation for rounding.
#[derive(Clone, Copy, Default)]
pub(super) struct WindowSum {
    count: u32,
    sum: f64,
    /// What rounding has taken from `sum`.
    lost: f64,
}

impl WindowSum {
    #[inline(always)]
    fn add(&mut self, x: f64) {
        let sum = self.sum + x;
        let lost = if self.sum.abs() >= x.abs() { (self.sum - sum) + x } else { (x - sum) + self.sum };
        self.sum = sum;
        self.lost += lost;
    }

    #[inline(always)]
    pub fn total(&self) -> f64 {
        // With infinities, the compensation is NaN.
        if self.sum.is_finite() { self.sum + self.lost } else { self.sum }
    }
}

impl Fold for WindowDoubles<'_> {
    type State = WindowSum;

    #[inline(always)]
    fn add(&self, state: &mut WindowSum, row: usize) {
        if let Some(x) = self.get(row) {
            state.count += 1;
            state.add(x);
        }
    }

    #[inline(always)]
    fn merge(state: &mut WindowSum, more: &WindowSum) {
        if state.count == 0 {
            *state = *more;
            return;
        }
        state.count += more.count;
        state.add(more.sum);
        state.lost += more.lost;
    }
}

/// Calls `see` with the sum of each window.
pub(super) fn fold_doubles(
    cells: &[f64],
    present: Option<&Bitmap>,
    windows: &[Range<usize>],
    mut see: impl FnMut(&WindowSum),
) {
    fold(&WindowDoubles(cells, present), windows, &mut see);
}

/// The sums of doubles, or their means.
pub(super) fn double_sums(cells: &[f64], present: Option<&Bitmap>, windows: &[Range<usize>], is_mean: bool) -> Column {
    let (mut sums, mut others) = (Vec::with_capacity(windows.len()), Vec::new());
    fold_doubles(cells, present, windows, |sum| {
        if sum.count == 0 {
            others.push((sums.len(), if is_mean { Value::NULL } else { no_sum() }));
        }
        sums.push(if is_mean { sum.total() / f64::from(sum.count.max(1)) } else { sum.total() });
    });
    except(ColumnData::F64(sums), &others)
}

/// Count, mean, and squared deviations from the mean.
#[derive(Clone, Copy, Default)]
struct WindowMoments {
    count: f64,
    mean: f64,
    squares: f64,
}

/// Numbers whose deviations are wanted.
struct Deviating<'a>(WindowDoubles<'a>);

impl Fold for Deviating<'_> {
    type State = WindowMoments;

    #[inline(always)]
    fn add(&self, state: &mut WindowMoments, row: usize) {
        if let Some(x) = self.0.get(row) {
            state.count += 1.0;
            let delta = x - state.mean;
            state.mean += delta / state.count;
            state.squares += delta * (x - state.mean);
        }
    }

    #[inline(always)]
    fn merge(state: &mut WindowMoments, more: &WindowMoments) {
        if more.count > 0.0 {
            let count = state.count + more.count;
            let delta = more.mean - state.mean;
            state.mean += delta * more.count / count;
            state.squares += more.squares + delta * delta * state.count * more.count / count;
            state.count = count;
        }
    }
}

/// The standard deviations of numbers; of a sample, or of all there are.
pub(super) fn deviations(cells: &[f64], present: Option<&Bitmap>, windows: &[Range<usize>], is_sample: bool) -> Column {
    let (mut found, mut others) = (Vec::with_capacity(windows.len()), Vec::new());
    fold(&Deviating(WindowDoubles(cells, present)), windows, &mut |moments| {
        let divisor = if is_sample { moments.count - 1.0 } else { moments.count };
        if divisor < 0.5 {
            others.push((found.len(), Value::NULL));
        }
        found.push(if divisor < 0.5 { 0.0 } else { (moments.squares / divisor).sqrt() });
    });
    except(ColumnData::F64(found), &others)
}

/// The sums of integers, or their means. Integers are exact, so these subtract what all rows up to each end add up to.
pub(super) fn integer_sums(column: &Column, windows: &[Range<usize>], is_mean: bool) -> Option<Column> {
    let mut up_to = vec![(0_i128, 0_u32)];
    let mut last = (0, 0);
    let mut add = |row: usize, cell: i64| {
        if column.is_present(row) {
            last = (last.0 + i128::from(cell), last.1 + 1);
        }
        up_to.push(last);
    };
    let is_long = match column.data() {
        ColumnData::I32(cells) => {
            cells.iter().enumerate().for_each(|(row, cell)| add(row, i64::from(*cell)));
            false
        }
        ColumnData::I64(cells) => {
            cells.iter().enumerate().for_each(|(row, cell)| add(row, *cell));
            true
        }
        _ => return None,
    };
    let between = |window: &Range<usize>| {
        let (from, to) = (cell(&up_to, window.start), cell(&up_to, window.end));
        (to.0 - from.0, to.1 - from.1)
    };
    let sums: Vec<(i128, u32)> = windows.iter().map(between).collect();
    Some(if is_mean { means(&sums) } else { totals(&sums, is_long) })
}

fn means(sums: &[(i128, u32)]) -> Column {
    let others: Vec<_> =
        sums.iter().enumerate().filter(|(_, sum)| sum.1 == 0).map(|(row, _)| (row, Value::NULL)).collect();
    let mean = |(sum, count): &(i128, u32)| near_double(*sum) / f64::from((*count).max(1));
    except(ColumnData::F64(sums.iter().map(mean).collect()), &others)
}

/// Sums as int32s, int64s or doubles: the smallest type that holds them, and none below that of the values.
fn totals(sums: &[(i128, u32)], is_long: bool) -> Column {
    let ints: Option<Vec<i32>> = sums.iter().map(|(sum, _)| i32::try_from(*sum).ok().filter(|_| !is_long)).collect();
    if let Some(ints) = ints {
        return Column::new(ColumnData::I32(ints), None);
    }
    let longs: Option<Vec<i64>> =
        sums.iter().map(|(sum, count)| i64::try_from(*sum).ok().filter(|_| is_long && *count > 0)).collect();
    if let Some(longs) = longs {
        return Column::new(ColumnData::I64(longs), None);
    }
    let mut builder = ColumnBuilder::with_capacity(sums.len());
    for (sum, count) in sums {
        let value = match (i32::try_from(*sum), i64::try_from(*sum)) {
            (Ok(n), _) if !is_long || *count == 0 => OwnedValue::int32(n),
            (_, Ok(n)) => OwnedValue::int64(n),
            _ => OwnedValue::double(near_double(*sum)),
        };
        builder.push(value.view());
    }
    builder.finish()
}

#[allow(clippy::cast_precision_loss)]
fn near_double(n: i128) -> f64 {
    i64::try_from(n).map_or(n as f64, |n| n as f64)
}
