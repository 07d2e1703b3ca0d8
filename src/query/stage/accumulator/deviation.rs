//! `$stdDevPop` and `$stdDevSamp`.

use std::ops::Range;

use super::model::{Accumulator, Times, each_cell, number};
use crate::block::Column;
use crate::error::Result;
use crate::value::OwnedValue;

/// Standard deviations of groups, by Welford's sums. Anything but a number counts as nothing.
pub(super) struct Deviations {
    /// True for that of a sample.
    is_sample: bool,
    groups: Vec<Moments>,
}

#[derive(Clone, Copy, Default)]
struct Moments {
    count: f64,
    mean: f64,
    /// Sum of the squares of the distances from the mean.
    squares: f64,
}

impl Deviations {
    pub fn new(is_sample: bool) -> Deviations {
        Deviations { is_sample, groups: Vec::new() }
    }
}

impl Accumulator for Deviations {
    fn grow(&mut self, _: usize) {
        self.groups.push(Moments::default());
    }

    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>, _: Option<&Times<'_>>) -> Result<()> {
        let Some(moments) = self.groups.get_mut(group) else { return Ok(()) };
        each_cell(cells, rows, &mut |value| {
            if let Some(x) = number(value) {
                moments.count += 1.0;
                let delta = x - moments.mean;
                moments.mean += delta / moments.count;
                moments.squares += delta * (x - moments.mean);
            }
            Ok(())
        })
    }

    fn merge(&mut self, into: usize, from: usize) -> bool {
        let from = self.groups.get(from).copied().unwrap_or_default();
        if let Some(moments) = self.groups.get_mut(into).filter(|_| from.count > 0.0) {
            let count = moments.count + from.count;
            let delta = from.mean - moments.mean;
            moments.mean += delta * from.count / count;
            moments.squares += from.squares + delta * delta * moments.count * from.count / count;
            moments.count = count;
        }
        true
    }

    fn value(&self, group: usize) -> OwnedValue {
        let Moments { count, squares, .. } = self.groups.get(group).copied().unwrap_or_default();
        let divisor = if self.is_sample { count - 1.0 } else { count };
        match divisor < 0.5 {
            true => OwnedValue::null(),
            false => OwnedValue::double((squares / divisor).sqrt()),
        }
    }
}
