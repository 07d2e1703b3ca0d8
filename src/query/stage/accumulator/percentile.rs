//! `$median` and `$percentile`.

use std::ops::Range;

use kernels::sortable;

use super::model::{Accumulator, Inputs, Settings, Times, each_number, list_is_full, show_array, show_double};
use crate::block::ColumnData;
use crate::error::Result;
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::query::expr::quantile;
use crate::value::{OwnedValue, Value};

/// The numbers of groups, from which percentiles are computed.
pub(super) struct Percentiles {
    /// From 0 to 1; empty for `$median`.
    wanted: Vec<f64>,
    /// True to interpolate between two numbers.
    is_continuous: bool,
    groups: Vec<Vec<f64>>,
    size_bytes: usize,
}

impl Percentiles {
    pub fn new(settings: &Settings) -> Percentiles {
        let Settings { percentiles, is_continuous, .. } = settings.clone();
        Percentiles { wanted: percentiles, is_continuous, groups: Vec::new(), size_bytes: 0 }
    }

    /// The percentile at `share`.
    fn at(&self, numbers: &[f64], share: f64) -> Option<f64> {
        quantile(numbers.len(), &|place| sortable::nth(numbers, place), share, self.is_continuous)
    }
}

impl Percentiles {
    fn check_size(&self) -> Result<()> {
        if self.size_bytes > STAGE_SIZE_BYTES_MAX { Err(list_is_full()) } else { Ok(()) }
    }
}

impl Accumulator for Percentiles {
    fn grow(&mut self, _: usize) {
        self.groups.push(Vec::new());
    }

    fn add(&mut self, group: usize, inputs: &Inputs<'_>, rows: Range<usize>, _: Option<&Times<'_>>) -> Result<()> {
        let Some(numbers) = self.groups.get_mut(group) else { return Ok(()) };
        self.size_bytes += 8 * rows.len();
        match (inputs.cells.data(), inputs.cells.presence()) {
            (ColumnData::F64(cells), None) => {
                numbers.extend(cells.get(rows).unwrap_or_default().iter().filter(|x| !x.is_nan()));
            }
            _ => each_number(&inputs.cells, rows, &mut |_, x| numbers.extend(Some(x).filter(|x| !x.is_nan()))),
        }
        self.check_size()
    }

    fn add_each(
        &mut self,
        groups: &[u32],
        inputs: &Inputs<'_>,
        rows: Range<usize>,
        _: Option<&Times<'_>>,
    ) -> Result<()> {
        self.size_bytes += 8 * rows.len();
        let start = rows.start;
        each_number(&inputs.cells, rows, &mut |row, x| {
            let numbers = groups.get(row - start).and_then(|group| self.groups.get_mut(*group as usize));
            if let Some(numbers) = numbers.filter(|_| !x.is_nan()) {
                numbers.push(x);
            }
        });
        self.check_size()
    }

    fn show(&self, group: usize, see: &mut dyn FnMut(Value<'_>)) {
        let numbers = self.groups.get(group).map(Vec::as_slice).unwrap_or_default();
        if self.wanted.is_empty() {
            return match self.at(numbers, 0.5) {
                Some(median) => show_double(median, see),
                None => see(Value::NULL),
            };
        }
        let value = |p: &f64| self.at(numbers, *p).map_or_else(OwnedValue::null, OwnedValue::double);
        let found: Vec<OwnedValue> = self.wanted.iter().map(value).collect();
        show_array(&mut found.iter().map(OwnedValue::view), see);
    }

    fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}
