//! A scan: pages of stored buckets, and the journal rows that they do not hold.

mod end;
mod fetch;
pub mod listed;
pub mod runs;
pub mod scan;
pub mod unit;
pub mod windows;
