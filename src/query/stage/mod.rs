//! The stages of a pipeline that a `find` cannot execute: blocks in, blocks out. Never awaits.

// Loaded later.

mod accumulator;
mod aggregation;
mod bucket;
mod command;
mod count;
mod densify;
mod equal_rows;
mod facet;
mod fill;
mod finds;
mod granularity;
mod graph_lookup;
mod group;
mod lookup;
mod model;
mod near;
mod optimise;
mod out;
mod parse;
mod pipeline;
mod redact;
mod replace_root;
mod reshape;
mod running;
mod sample;
mod shown;
mod source;
mod spec;
mod standing;
mod subpipeline;
mod table;
mod union;
mod unpack;
mod unwind;
mod window;

pub use aggregation::{Aggregation, ShownStage};
pub use model::{CollStats, DocumentSource, Foreign, Others, Out};
pub use pipeline::Pipeline;
pub use standing::Standing;
