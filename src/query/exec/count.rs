//! Counts matches without building rows.

use super::measurements::Measurements;
use super::sink::{Counters, Flow, Sink};
use crate::block::Block;
use crate::error::Result;
use crate::query::plan::Plan;
use crate::value::Value;

/// Counts what a plan matches. Ignores projection and sort.
#[derive(Default)]
pub struct Count {
    measurements: Measurements,
    skip: u64,
    /// Sum of skip and limit; `None` without a limit.
    enough: Option<u64>,
}

impl Count {
    fn flow(&self) -> Flow {
        let matched = self.measurements.counters.measurements_matched;
        if self.enough.is_some_and(|enough| matched >= enough) { Flow::Enough } else { Flow::Continue }
    }

    /// The number of matches within skip and limit.
    pub fn count(&self) -> u64 {
        let matched = self.measurements.counters.measurements_matched;
        matched.min(self.enough.unwrap_or(u64::MAX)).saturating_sub(self.skip)
    }
}

impl Sink for Count {
    fn begin(&mut self, plan: &Plan) {
        *self = Count {
            measurements: Measurements::new(plan),
            skip: plan.skip,
            enough: plan.limit.map(|limit| plan.skip.saturating_add(limit)),
        };
    }

    fn push(&mut self, rows: Block, meta: Option<Value<'_>>, all_match: bool) -> Result<Flow> {
        let rows = self.measurements.complete(rows, meta);
        self.measurements.select(&rows, all_match)?;
        Ok(self.flow())
    }

    fn push_whole(&mut self, count: &dyn Fn() -> Result<usize>, _: Option<Value<'_>>) -> Result<Option<Flow>> {
        self.measurements.counters.measurements_matched += count()? as u64;
        Ok(Some(self.flow()))
    }

    fn counters(&mut self) -> &mut Counters {
        &mut self.measurements.counters
    }
}
