//! The newest bins of time so far, for a `$group` by time of which only the newest groups are returned.

use crate::block::{Block, Column, ColumnData};
use crate::error::Result;
use crate::listed::IntoList;
use crate::query::plan::NewestBins;
use crate::query::plan::Plan;

/// The newest bins so far. Rows before the oldest of them do not matter if there are enough.
pub(super) struct Newest {
    time_field: Box<str>,
    bins: NewestBins,
    /// Their begins and the last moments that are known to lie in them, oldest first.
    known: Vec<(i64, i64)>,
}

impl Newest {
    /// No bins yet; `None` if the plan wants all rows.
    pub fn new(plan: &Plan) -> Option<Newest> {
        let bins = plan.newest.clone()?;
        Some(Newest { time_field: plan.time_field.clone(), bins, known: Vec::new() })
    }

    /// The first moment that matters.
    fn bound_ms(&self) -> i64 {
        match self.known.first() {
            Some((begin, _)) if self.known.len() == self.bins.count => begin.saturating_sub(self.bins.slack_ms),
            _ => i64::MIN,
        }
    }

    /// True if no row up to this time matters.
    pub fn excludes(&self, last_ms: i64) -> bool {
        last_ms < self.bound_ms()
    }

    /// Of the matching rows (all if `selected` is `None`), those that matter. Takes their bins into account.
    ///
    /// Errors: those of the bin's expression.
    // Loaded later.
    #[inline(never)]
    pub fn narrow(&mut self, rows: &Block, selected: Option<Vec<u32>>) -> Result<Option<Vec<u32>>> {
        let times = rows.column(&self.time_field).map(Column::data);
        let Some(ColumnData::Date(times)) = times else { return Ok(selected) };
        let time = |row: &u32| times.get(*row as usize).copied().unwrap_or(i64::MIN);
        let mut selected = selected.unwrap_or_else(|| (0..).take(times.len()).collect());
        let bound_ms = self.bound_ms();
        // What lies between two moments of a bin is in it, but where clocks go back, and then a bin is only not found. Of most rows, an earlier one had the bin.
        let mut bin = (i64::MAX, i64::MIN);
        let mut is_new = |ms: i64| {
            if ms < bin.0 || ms > bin.1 {
                let place = self.known.partition_point(|(begin, _)| *begin <= ms);
                bin = place.checked_sub(1).and_then(|place| self.known.get(place)).copied().unwrap_or(bin);
            }
            ms >= bound_ms && (ms < bin.0 || ms > bin.1)
        };
        let new: Vec<i64> = selected.iter().map(time).filter(|ms| is_new(*ms)).listed();
        if !new.is_empty() {
            let mut block = Block::new(new.len());
            block.set_column(&self.time_field, Column::new(ColumnData::Date(new.clone()), None));
            let bins = self.bins.bin.column(&block)?.into_plain();
            if let ColumnData::Date(begins) = bins.data() {
                begins.iter().zip(&new).for_each(|(begin, ms)| self.add(*begin, *ms));
            }
        }
        let bound_ms = self.bound_ms();
        selected.retain(|row| time(row) >= bound_ms);
        Ok(Some(selected).filter(|selected| selected.len() < rows.rows()))
    }

    /// Adds a moment of a bin.
    fn add(&mut self, begin: i64, ms: i64) {
        match self.known.binary_search_by_key(&begin, |bin| bin.0) {
            Ok(place) => self.known.iter_mut().skip(place).take(1).for_each(|bin| bin.1 = bin.1.max(ms)),
            Err(place) => {
                self.known.insert(place, (begin, ms));
                if self.known.len() > self.bins.count {
                    self.known.remove(0);
                }
            }
        }
    }
}
