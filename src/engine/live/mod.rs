//! Live queries: the result of a query is kept, and brought up to date from new rows where that is possible.
//!
//! `query` is an open query and what it keeps, `refresh` brings one query up to date, and `together` many. `new_rows`
//! converts the rows of journal records to measurements.

// Loaded later.

mod new_rows;
mod query;
mod refresh;
mod together;

pub use query::{LiveInfo, LiveSpec};
pub use refresh::LiveBatch;
pub use together::LiveNews;
