//! Accumulators over windows.

use std::ops::Range;

use super::super::accumulator::{Accumulation, Accumulator, Inputs};
use super::shown::shown_rows;
use crate::block::{Column, ColumnBuilder};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::value::{OwnedValue, Value};

/// The results of an accumulator for windows, most of which begin and end no earlier than the previous one.
///
/// Such windows cost as much as their rows. A window that only grows adds rows to one sum. If the front moves as well,
/// there are two kinds of sums: one of the rows after a `split`, and one for each row before it at which a window may
/// begin. When the front passes the split, the split moves to the end. Nothing is ever subtracted, because 1e100 + 1 -
/// 1e100 would be 0. If the front moves and the accumulator shows rows of a window, these rows are picked instead.
///
/// Errors: those of the accumulator; `ExceededMemoryLimit` if the values take too much memory.
pub(super) fn over_windows(spec: &Accumulation, inputs: &Inputs<'_>, windows: &[Range<usize>]) -> Result<Column> {
    let mut values = WindowValues::new(windows.len());
    let n = spec.count(&|| None)?;
    let mut sums = WindowSums { spec, n, accumulator: spec.start(), held: 0..0, split: 0, groups: 0 };
    sums.restart(0);
    let start = |window: Option<&Range<usize>>| window.map(|window| window.start);
    if start(windows.first()) < start(windows.last())
        && let Some(picks) = sums.accumulator.picks(inputs)
        && let Some(shown) = shown_rows(&picks, n, &inputs.cells, windows)?
    {
        return Ok(shown);
    }
    let mut value: Option<OwnedValue> = None;
    for window in windows {
        if value.is_none() || sums.held != *window {
            sums.move_to(inputs, window)?;
            value = None;
        }
        values.push(value.get_or_insert_with(|| sums.value()).view())?;
    }
    Ok(values.finish())
}

/// The results for windows so far.
pub(super) struct WindowValues {
    column: ColumnBuilder,
    size_bytes: usize,
}

impl WindowValues {
    pub fn new(windows: usize) -> WindowValues {
        WindowValues { column: ColumnBuilder::with_capacity(windows), size_bytes: 0 }
    }

    /// Errors: `ExceededMemoryLimit` if the values take too much memory.
    pub fn push(&mut self, value: Value<'_>) -> Result<()> {
        self.size_bytes += 1 + value.bytes().len();
        if self.size_bytes > STAGE_SIZE_BYTES_MAX {
            return Err(Error::new(
                ErrorCode::ExceededMemoryLimit,
                "The values of the windows exceed the memory limit",
            ));
        }
        self.column.push(value);
        Ok(())
    }

    pub fn finish(self) -> Column {
        self.column.finish()
    }
}

/// Group 0 has the rows from `split` on; group 1 + n has the last n + 1 rows before it.
struct WindowSums<'a> {
    spec: &'a Accumulation,
    /// The number of values that each group keeps.
    n: usize,
    accumulator: Box<dyn Accumulator>,
    held: Range<usize>,
    split: usize,
    groups: usize,
}

impl WindowSums<'_> {
    fn grow(&mut self) -> usize {
        self.accumulator.grow(self.n);
        self.groups += 1;
        self.groups - 1
    }

    /// Forgets all rows; the next ones are those from `row` on.
    fn restart(&mut self, row: usize) {
        self.accumulator = self.spec.start();
        (self.held, self.split, self.groups) = (row..row, row, 0);
        self.grow();
    }

    fn move_to(&mut self, inputs: &Inputs<'_>, window: &Range<usize>) -> Result<()> {
        let goes_on = self.held.start <= window.start && window.start <= self.held.end && self.held.end <= window.end;
        if !goes_on {
            self.restart(window.start);
        } else if window.start > self.split {
            self.restart(window.end);
            let mut before = 0;
            for row in window.clone().rev() {
                let group = self.grow();
                if !self.accumulator.merge(group, before) {
                    // The accumulator must see the rows of each window again.
                    self.restart(window.start);
                    break;
                }
                self.accumulator.add(group, inputs, row..row + 1, None)?;
                before = group;
            }
            self.held.start = window.start;
        }
        if self.held.end < window.end {
            self.accumulator.add(0, inputs, self.held.end..window.end, None)?;
        }
        self.held = window.clone();
        Ok(())
    }

    fn value(&mut self) -> OwnedValue {
        let in_front = self.split.saturating_sub(self.held.start);
        if in_front == 0 {
            return self.accumulator.value(0);
        }
        let sum = self.grow();
        self.accumulator.merge(sum, in_front);
        self.accumulator.merge(sum, 0);
        self.accumulator.value(sum)
    }
}
