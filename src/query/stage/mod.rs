//! The stages of a pipeline behind what a `find` can do: blocks in, blocks out. Never awaits.

// Loaded later.

mod accumulator;
mod aggregation;
mod bucket;
mod count;
mod densify;
mod edges;
mod facet;
mod fill;
mod finds;
mod foreign;
mod granularity;
mod graph_lookup;
mod group;
mod lookup;
mod near;
mod out;
mod parse;
mod pipeline;
mod redact;
mod reshape;
mod sample;
mod shown;
mod source;
mod spec;
mod table;
mod union;
mod unpack;
mod unpack_spec;
mod window;

pub use aggregation::Aggregation;
pub use foreign::{Foreign, Others};
pub use out::Out;
pub use pipeline::Pipeline;
pub use source::{CollStats, DocumentSource};

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
