//! The bucket catalog: which bucket takes which measurement. A pure state machine.
//!
//! `stage` splits a block by series, picks or opens buckets and answers the rows in bucket order with the sections that
//! say which rows went where; the engine commits them and then calls `finish` or `abort`.

mod open_bucket;
mod series;
mod stage;
mod stats;

pub use stage::{Catalog, Section, Staged};
pub use stats::Stats;
