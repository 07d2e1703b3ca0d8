//! The least and the greatest cell of each window, and quantiles.

use std::collections::VecDeque;
use std::ops::Range;

use super::cells::{NOWHERE, cell, except};
use super::slide::WindowValues;
use crate::block::{Bitmap, Column, ColumnData};
use crate::error::Result;
use crate::query::expr::{ArrayWriter, quantile};
use crate::query::sort::{key_of_double, key_of_int};
use crate::value::{Collation, Kind, OwnedValue, Value};

/// The rows of the extremes of a typed column; of cells that compare equal, the first. `None` for other columns.
pub(super) fn extreme_rows(column: &Column, windows: &[Range<usize>], is_max: bool) -> Option<Vec<u32>> {
    let flip = if is_max { 0 } else { u64::MAX };
    // NaN sorts below all numbers.
    let keys: Vec<u64> = match column.data() {
        ColumnData::F64(cells) => cells.iter().map(|x| key_of_double(*x) ^ flip).collect(),
        ColumnData::I32(cells) => cells.iter().map(|n| key_of_int(i64::from(*n)) ^ flip).collect(),
        ColumnData::I64(cells) | ColumnData::Date(cells) => cells.iter().map(|n| key_of_int(*n) ^ flip).collect(),
        _ => return None,
    };
    Some(best_rows(column.presence(), windows, |old, new| cell(&keys, old) < cell(&keys, new)))
}

/// The same for any column. Null does not count.
pub(super) fn extreme_rows_of_any(
    column: &Column,
    windows: &[Range<usize>],
    is_max: bool,
    collation: &Collation,
) -> Vec<u32> {
    let mut scratch = Vec::new();
    let mut counts = |row| {
        column.value(row, &mut scratch).is_some_and(|value| !matches!(value.kind(), Kind::Null | Kind::Undefined))
    };
    let there = Bitmap::from_fn(column.len(), &mut counts);
    let (mut scratch, mut other) = (Vec::new(), Vec::new());
    best_rows(Some(&there), windows, |old, new| {
        let order = collation.compare_options(column.value(old, &mut scratch), column.value(new, &mut other));
        if is_max { order.is_lt() } else { order.is_gt() }
    })
}

/// The row of the best present cell of each window. It keeps the rows that may still become the best, which
/// are those that no later row beats.
fn best_rows(
    present: Option<&Bitmap>,
    windows: &[Range<usize>],
    mut gives_way: impl FnMut(usize, usize) -> bool,
) -> Vec<u32> {
    let mut rows: VecDeque<u32> = VecDeque::new();
    let mut held = 0..0;
    let mut best = Vec::with_capacity(windows.len());
    for window in windows {
        if window.start < held.start || window.end < held.end {
            rows.clear();
            held = window.start..window.start;
        }
        for row in held.end.max(window.start)..window.end {
            if present.is_some_and(|present| !present.get(row)) {
                continue;
            }
            while rows.back().is_some_and(|old| gives_way(*old as usize, row)) {
                rows.pop_back();
            }
            rows.push_back(u32::try_from(row).unwrap_or(NOWHERE));
        }
        while rows.front().is_some_and(|row| (*row as usize) < window.start) {
            rows.pop_front();
        }
        held = window.clone();
        best.push(rows.front().copied().unwrap_or(NOWHERE));
    }
    best
}

/// Medians, or several percentiles.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Quantiles {
    /// From 0 to 1; `None` for the median alone.
    pub shares: Option<Vec<f64>>,
    /// True to interpolate between two numbers.
    pub is_continuous: bool,
}

impl Quantiles {
    /// The quantiles of the present numbers of each window.
    ///
    /// Errors: `ExceededMemoryLimit` if the lists of percentiles take too much memory.
    pub fn of(&self, cells: &[f64], present: Option<&Bitmap>, windows: &[Range<usize>]) -> Result<Column> {
        let mut list = SortedList { cells, present, held: 0..0, sorted: Vec::new() };
        let at = |sorted: &[f64], share| {
            quantile(sorted.len(), &|place| sorted.get(place).copied(), share, self.is_continuous)
        };
        let Some(shares) = &self.shares else {
            let (mut medians, mut others) = (Vec::with_capacity(windows.len()), Vec::new());
            for (row, window) in windows.iter().enumerate() {
                list.move_to(window);
                let median = at(&list.sorted, 0.5);
                if median.is_none() {
                    others.push((row, Value::NULL));
                }
                medians.push(median.unwrap_or_default());
            }
            return Ok(except(ColumnData::F64(medians), &others));
        };
        let mut lists = WindowValues::new(windows.len());
        let mut known = None;
        for window in windows {
            if known.is_none() || list.held != *window {
                list.move_to(window);
                let mut array = ArrayWriter::new();
                for share in shares {
                    let value = at(&list.sorted, *share).map(OwnedValue::double);
                    array.push(value.as_ref().map(OwnedValue::view));
                }
                known = Some(array.finish());
            }
            lists.push(known.as_ref().and_then(|array| array.view()).unwrap_or(Value::NULL))?;
        }
        Ok(lists.finish())
    }
}

/// The present numbers of a window, in order; NaN is left out.
struct SortedList<'a> {
    cells: &'a [f64],
    present: Option<&'a Bitmap>,
    held: Range<usize>,
    sorted: Vec<f64>,
}

impl SortedList<'_> {
    fn get(&self, row: usize) -> Option<f64> {
        let x = self.cells.get(row).copied().filter(|x| !x.is_nan())?;
        self.present.is_none_or(|present| present.get(row)).then_some(x)
    }

    fn place(&self, x: f64) -> usize {
        self.sorted.partition_point(|known| known.total_cmp(&x).is_lt())
    }

    fn insert(&mut self, row: usize) {
        if let Some(x) = self.get(row) {
            self.sorted.insert(self.place(x), x);
        }
    }

    fn remove(&mut self, row: usize) {
        if let Some(x) = self.get(row) {
            self.sorted.remove(self.place(x));
        }
    }

    fn move_to(&mut self, window: &Range<usize>) {
        let held = std::mem::replace(&mut self.held, window.clone());
        let kept = held.start.max(window.start)..held.end.min(window.end);
        let changes = (held.len() + window.len()).saturating_sub(2 * kept.len());
        if kept.is_empty() || changes > 2 + kept.len() / 8 {
            self.sorted.clear();
            for row in window.clone() {
                self.sorted.extend(self.get(row));
            }
            self.sorted.sort_unstable_by(f64::total_cmp);
            return;
        }
        (held.start..kept.start).chain(kept.end..held.end).for_each(|row| self.remove(row));
        (window.start..kept.start).chain(kept.end..window.end).for_each(|row| self.insert(row));
    }
}
