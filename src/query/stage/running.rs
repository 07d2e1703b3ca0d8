//! What a stage at work does.

use crate::block::Block;
use crate::error::Result;
use crate::query::exec::Flow;

/// A stage at work. What it answers does not depend on how the rows are split into blocks.
pub(super) trait Stage {
    /// Takes rows.
    ///
    /// Errors: those of expressions and of what the stage computes.
    fn push(&mut self, rows: Block) -> Result<Flow>;

    /// No more rows come.
    ///
    /// Errors: as `push`.
    fn finish(&mut self) -> Result<()>;

    /// Rows that are ready; `None` where there are none now.
    ///
    /// Errors: as `push`.
    fn take(&mut self) -> Result<Option<Block>>;
}
