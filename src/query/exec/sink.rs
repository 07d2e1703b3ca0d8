//! What takes the rows of a scan and makes something else of them than rows.

use super::executor::Flow;
use crate::block::Block;
use crate::error::Result;
use crate::query::plan::Plan;
use crate::value::Value;

/// A consumer of matches. What comes of it does not depend on how the rows are split into pushes.
pub trait Sink {
    /// Is told what will come, before anything does. Where there is no collection, nothing comes, nor is it told.
    fn begin(&mut self, plan: &Plan);

    /// Takes the decoded rows of one bucket or journal section, without its metadata, which is `meta`. `all_match` says that every row is
    /// known to match.
    ///
    /// Errors: those of expressions, and of what is made of the rows.
    fn push(&mut self, rows: Block, meta: Option<Value<'_>>, all_match: bool) -> Result<Flow>;

    /// Takes a bucket of `rows` measurements, all of which are known to match, without unpacking it; `None` where it has to be unpacked.
    ///
    /// Errors: as `push`.
    fn push_whole(&mut self, rows: usize, meta: Option<Value<'_>>) -> Result<Option<Flow>>;
}
