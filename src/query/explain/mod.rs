//! A plan as `explain` shows it: how buckets are found, how they are unpacked, and what happens to their measurements.

// Loaded later.

mod bounds;
mod cursor;
mod filters;
mod model;
mod plain;
mod stages;

pub use model::{ExecutionStats, Explain, ExplainedGroup, Write};
