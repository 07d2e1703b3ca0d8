//! Counting matches without building a row.

use super::executor::{Counters, Flow};
use super::measurements::Measurements;
use super::sink::Sink;
use crate::block::{Bitmap, Block};
use crate::error::Result;
use crate::query::plan::Plan;
use crate::value::Value;

/// Counts what a plan matches. Its projection and its sort do not matter.
#[derive(Default)]
pub struct Count {
    measurements: Measurements,
    skip: u64,
    /// Skip and limit together; `None` without a limit.
    enough: Option<u64>,
    matched: u64,
    counters: Counters,
}

impl Count {
    fn add(&mut self, rows: usize) -> Flow {
        self.matched = self.matched.saturating_add(rows as u64);
        if self.enough.is_some_and(|enough| self.matched >= enough) { Flow::Enough } else { Flow::Continue }
    }

    /// How many match, within skip and limit.
    pub fn count(&self) -> u64 {
        self.matched.min(self.enough.unwrap_or(u64::MAX)).saturating_sub(self.skip)
    }

    /// What was done so far.
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

impl Sink for Count {
    fn begin(&mut self, plan: &Plan) {
        *self = Count {
            measurements: Measurements::new(plan),
            skip: plan.skip,
            enough: plan.limit.map(|limit| plan.skip.saturating_add(limit)),
            ..Count::default()
        };
    }

    fn push(&mut self, rows: Block, meta: Option<Value<'_>>, all_match: bool) -> Result<Flow> {
        let rows = self.measurements.complete(rows, meta);
        let selected = self.measurements.select(&rows, all_match)?;
        self.counters.buckets_unpacked += 1;
        self.counters.measurements_examined += rows.rows() as u64;
        Ok(self.add(selected.as_ref().map_or(rows.rows(), Bitmap::count)))
    }

    fn push_whole(&mut self, rows: usize, _: Option<Value<'_>>) -> Result<Option<Flow>> {
        Ok(Some(self.add(rows)))
    }
}
