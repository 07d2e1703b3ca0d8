//! Consumers of a scan's rows: they return the rows, or compute something from them.

use std::rc::Rc;

use crate::block::Block;
use crate::error::Result;
use crate::query::plan::Plan;
use crate::value::{Doc, Value};

/// Whether a scan must go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Flow {
    /// More rows may matter.
    Continue,
    /// No further row can change the result.
    Enough,
}

/// What an execution has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Stored buckets that may hold a match.
    pub buckets_passed: u64,
    /// Buckets of series that do not match, if whoever knows the series need not read them.
    pub buckets_missed: u64,
    /// Buckets whose columns were decoded, or whose journal rows were examined.
    pub buckets_unpacked: u64,
    /// Those of them in which a row has matched; of buckets that were examined together, as many as may be.
    pub buckets_matched: u64,
    /// Rows in them.
    pub measurements_examined: u64,
    /// Matches, including those in buckets that need not be unpacked.
    pub measurements_matched: u64,
}

impl Counters {
    /// Counts buckets whose rows were examined together, where so many rows had matched before.
    pub fn unpacked(&mut self, buckets: u64, matched_before: u64) {
        self.buckets_unpacked += buckets;
        self.buckets_matched += buckets.min(self.measurements_matched - matched_before);
    }
}

/// The columns of a bucket of which some were decoded.
pub trait LateColumns {
    /// All columns, without the first `from` rows. `known` has columns that were decoded, of the other rows.
    ///
    /// Errors: those of unpacking.
    fn rows(&self, known: &Block, from: usize) -> Result<Block>;
}

/// A consumer of matches. Its result does not depend on how rows are split into pushes.
pub trait Sink {
    /// Called once with the plan before any rows. Not called if there is no collection.
    fn begin(&mut self, plan: &Plan);

    /// Takes the decoded rows of one bucket or journal section without their metadata, which is `meta`. `all_match`
    /// says that all rows are known to match.
    ///
    /// Errors: those of expressions and of the consumer.
    fn push(&mut self, rows: Block, meta: Option<Value<'_>>, all_match: bool) -> Result<Flow>;

    /// As `push`, but `first` has only the columns by which rows are discarded. `rest` makes the block with all columns of
    /// it, if it matters.
    ///
    /// Errors: as `push`, and those of `rest`.
    fn push_in_steps(
        &mut self,
        first: Block,
        meta: Option<Value<'_>>,
        all_match: bool,
        rest: Rc<dyn LateColumns>,
    ) -> Result<Flow> {
        self.push(rest.rows(&first, 0)?, meta, all_match)
    }

    /// Takes a bucket whose measurements are all known to match, without unpacking it; `None` if it must be unpacked.
    /// `count` returns their number.
    ///
    /// Errors: as `push`, and those of `count`.
    fn push_whole(&mut self, count: &dyn Fn() -> Result<usize>, meta: Option<Value<'_>>) -> Result<Option<Flow>>;

    /// True if no row between these times, with fields of at most the values in `max`, can change the result any more.
    fn excludes(&self, _times: (i64, i64), _max: Option<Doc<'_>>) -> bool {
        false
    }

    /// Counters so far. The sink counts measurements; the scan counts buckets.
    fn counters(&mut self) -> &mut Counters;
}

/// For tests: a bucket with these rows.
#[cfg(test)]
pub(super) struct Decoded {
    pub rows: Block,
    /// How often they were needed with all columns.
    pub needed: Rc<std::cell::Cell<usize>>,
}

#[cfg(test)]
impl LateColumns for Decoded {
    fn rows(&self, known: &Block, from: usize) -> Result<Block> {
        assert!(known.columns().len() < self.rows.columns().len());
        self.needed.set(self.needed.get() + 1);
        Ok(self.rows.slice(from..self.rows.rows()))
    }
}
