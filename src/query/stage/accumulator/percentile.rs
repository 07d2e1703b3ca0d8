//! `$median` and `$percentile`, exact whatever the method: `approximate` is what `discrete` is.
//!
//! Rule: mongodb/mongo src/mongo/db/pipeline/percentile_algo_discrete.cpp, percentile_algo_continuous.cpp.

use std::ops::Range;

use super::{Accumulator, Settings, array_of, each_cell, list_is_full, number};
use crate::block::Column;
use crate::error::Result;
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::value::OwnedValue;

/// The numbers of groups.
pub(super) struct Percentiles {
    /// From 0 to 1; none for the median by itself.
    wanted: Vec<f64>,
    /// True where what lies between two numbers is interpolated.
    is_continuous: bool,
    groups: Vec<Vec<f64>>,
    size_bytes: usize,
}

impl Percentiles {
    pub fn new(settings: &Settings) -> Percentiles {
        let Settings { percentiles, is_continuous, .. } = settings.clone();
        Percentiles { wanted: percentiles, is_continuous, groups: Vec::new(), size_bytes: 0 }
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::cast_sign_loss)]
    fn at(&self, sorted: &[f64], p: f64) -> OwnedValue {
        let count = sorted.len() as f64;
        // Casts of what is below zero are zero.
        let rank = if self.is_continuous { p * (count - 1.0) } else { (count * p).ceil() - 1.0 };
        let below = sorted.get(rank as usize).copied();
        let above = sorted.get(rank as usize + 1).copied();
        let value = match (below, above) {
            (Some(x), Some(y)) if rank.fract() > 0.0 && x != y => x + (y - x) * rank.fract(),
            (Some(x), _) => x,
            _ => return OwnedValue::null(),
        };
        OwnedValue::double(value)
    }
}

impl Accumulator for Percentiles {
    fn grow(&mut self, _: usize) {
        self.groups.push(Vec::new());
    }

    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>) -> Result<()> {
        let Some(numbers) = self.groups.get_mut(group) else { return Ok(()) };
        self.size_bytes += 8 * rows.len();
        each_cell(cells, rows, &mut |value| {
            numbers.extend(number(value).filter(|x| !x.is_nan()));
            Ok(())
        })?;
        if self.size_bytes > STAGE_SIZE_BYTES_MAX { Err(list_is_full()) } else { Ok(()) }
    }

    fn value(&self, group: usize) -> OwnedValue {
        let mut sorted = self.groups.get(group).cloned().unwrap_or_default();
        sorted.sort_unstable_by(f64::total_cmp);
        if self.wanted.is_empty() {
            return self.at(&sorted, 0.5);
        }
        let found: Vec<OwnedValue> = self.wanted.iter().map(|p| self.at(&sorted, *p)).collect();
        array_of(&mut found.iter().map(OwnedValue::view))
    }

    fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}
