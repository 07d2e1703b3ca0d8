//! What takes the rows of a scan: to return them, or to make something else of them.

use super::executor::Flow;
use crate::block::Block;
use crate::error::Result;
use crate::query::plan::Plan;
use crate::value::{Doc, Value};

/// What an execution has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Stored buckets that may hold a match.
    pub buckets_passed: u64,
    /// Buckets whose columns were decoded, or whose rows in the journals were looked at.
    pub buckets_unpacked: u64,
    /// Rows in them.
    pub measurements_examined: u64,
    /// Matches, those in buckets that did not have to be unpacked among them.
    pub measurements_matched: u64,
}

/// A consumer of matches. What comes of it does not depend on how the rows are split into pushes.
pub trait Sink {
    /// Is told what will come, before anything does. Where there is no collection, nothing comes, nor is it told.
    fn begin(&mut self, plan: &Plan);

    /// Takes the decoded rows of one bucket or journal section, without its metadata, which is `meta`. `all_match` says that every row is
    /// known to match.
    ///
    /// Errors: those of expressions, and of what is made of the rows.
    fn push(&mut self, rows: Block, meta: Option<Value<'_>>, all_match: bool) -> Result<Flow>;

    /// Takes a bucket all of whose measurements are known to match without unpacking it; `None` where it has to be unpacked. `count` tells
    /// how many they are.
    ///
    /// Errors: as `push`, and those of counting.
    fn push_whole(&mut self, count: &dyn Fn() -> Result<usize>, meta: Option<Value<'_>>) -> Result<Option<Flow>>;

    /// True where no row between these times, whose fields are at most those of `max`, can change what comes of it any more.
    fn excludes(&self, _times: (i64, i64), _max: Option<Doc<'_>>) -> bool {
        false
    }

    /// What was done so far. The sink counts measurements, whoever scans counts buckets.
    fn counters(&mut self) -> &mut Counters;
}
