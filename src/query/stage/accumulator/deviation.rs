//! `$stdDevPop` and `$stdDevSamp`.

use std::ops::Range;

use super::kernels::{Moments, add_moments};
use super::model::{Accumulator, Inputs, Times, each_number, show_double};
use crate::block::ColumnData;
use crate::error::Result;
use crate::value::Value;

/// Standard deviations of groups by Welford's method. Values other than numbers do not count.
pub(super) struct Deviations {
    /// True for `$stdDevSamp`.
    is_sample: bool,
    groups: Vec<Moments>,
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

    fn add(&mut self, group: usize, inputs: &Inputs<'_>, rows: Range<usize>, _: Option<&Times<'_>>) -> Result<()> {
        let Some(moments) = self.groups.get_mut(group) else { return Ok(()) };
        match (inputs.cells.data(), inputs.cells.presence()) {
            (ColumnData::F64(cells), None) => moments.add_all(cells.get(rows).unwrap_or_default()),
            _ => each_number(&inputs.cells, rows, &mut |_, x| moments.add(x)),
        }
        Ok(())
    }

    fn add_each(
        &mut self,
        groups: &[u32],
        inputs: &Inputs<'_>,
        rows: Range<usize>,
        _: Option<&Times<'_>>,
    ) -> Result<()> {
        if let (ColumnData::F64(cells), None) = (inputs.cells.data(), inputs.cells.presence()) {
            add_moments(groups, cells.get(rows).unwrap_or_default(), &mut self.groups);
            return Ok(());
        }
        let start = rows.start;
        each_number(&inputs.cells, rows, &mut |row, x| {
            let group = groups.get(row - start).and_then(|group| self.groups.get_mut(*group as usize));
            group.into_iter().for_each(|moments| moments.add(x));
        });
        Ok(())
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

    fn show(&self, group: usize, see: &mut dyn FnMut(Value<'_>)) {
        let Moments { count, squares, .. } = self.groups.get(group).copied().unwrap_or_default();
        let divisor = if self.is_sample { count - 1.0 } else { count };
        if divisor < 0.5 { see(Value::NULL) } else { show_double((squares / divisor).sqrt(), see) }
    }
}
