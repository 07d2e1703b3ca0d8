//! Queries: a plan, a scan aimed by it, cursors between batches, and the ends of series.

pub mod aim;
pub mod cursor;
pub mod find_cursor;
pub mod listing;
pub mod newest;
pub mod newest_rows;
pub mod part;
pub mod planned;
pub mod push;
pub mod queries;
pub mod series;
pub mod sieve;
