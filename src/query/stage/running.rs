//! The interface of a running stage.

use crate::block::Block;
use crate::error::Result;
use crate::query::exec::Flow;

/// A running stage. Its result does not depend on how rows are split into blocks.
pub(super) trait Stage {
    /// Takes rows.
    ///
    /// Errors: those of expressions and of what the stage computes.
    fn push(&mut self, rows: Block) -> Result<Flow>;

    /// Says that no more rows come.
    ///
    /// Errors: as `push`.
    fn finish(&mut self) -> Result<()>;

    /// Rows that are ready; `None` if there are none now. A block without rows says that there is more to do, which may
    /// take long.
    ///
    /// Errors: as `push`.
    fn take(&mut self) -> Result<Option<Block>>;
}
