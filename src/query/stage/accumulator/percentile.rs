//! `$median` and `$percentile`.

use std::ops::Range;

use super::model::{Accumulator, Settings, Times, array_of, each_cell, list_is_full, number};
use crate::block::Column;
use crate::error::Result;
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::query::expr::quantile;
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

    fn at(&self, sorted: &[f64], share: f64) -> OwnedValue {
        quantile(sorted, share, self.is_continuous).map_or_else(OwnedValue::null, OwnedValue::double)
    }
}

impl Accumulator for Percentiles {
    fn grow(&mut self, _: usize) {
        self.groups.push(Vec::new());
    }

    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>, _: Option<&Times<'_>>) -> Result<()> {
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
