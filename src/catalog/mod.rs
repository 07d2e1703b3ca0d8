//! The bucket catalog: which bucket takes which measurement. A pure state machine.
//!
//! `batch` splits the rows of a commit by series. `stage` picks or opens buckets for them, or asks for stored buckets
//! that may have to be reopened first; it returns the rows in bucket order, with sections that say which rows went
//! where. The engine commits them and then calls `finish` or `abort`. There is one batch at a time: if the previous
//! one did not end, it is aborted when the next begins. All other changes of stored buckets are announced with
//! `direct_write_start` and `direct_write_finish`, or with `clear_bucket` (I27).

mod archive;
mod batch;
mod choosing;
mod commit;
mod direct_write;
mod expiry;
mod measurements;
#[cfg(test)]
mod model;
mod offer;
mod open_bucket;
mod open_series;
mod options;
mod registry;
mod reopening;
mod rollover;
#[cfg(test)]
mod samples;
mod series;
mod size_limit;
mod stage;
mod state;
mod stats;
mod windows;

pub use batch::{Batch, Section, Staged, Staging};
pub use offer::{Offer, ReopenFailure, ReopenRequest, Reopened};
pub use options::{CatalogOptions, Totals};

pub use state::Catalog;
pub use stats::{Counter, Stats};
pub use windows::stage_windows;
