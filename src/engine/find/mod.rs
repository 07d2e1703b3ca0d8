//! Queries: plans and their scans, cursors between batches, and the search for the ends of series.

pub mod aim;
mod bucket_rows;
pub mod cursor;
mod expect_runs;
pub mod find_cursor;
pub mod joined;
mod late_runs;
pub mod listing;
pub mod newest;
pub mod newest_rows;
pub mod one_of_each;
pub mod part;
pub mod planned;
pub mod push;
pub mod queries;
mod record_runs;
mod runs;
pub mod series;
mod series_fields;
mod series_groups;
pub mod sieve;
mod whole_runs;
