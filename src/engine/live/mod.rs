//! Live queries: the result of a query is kept, and brought up to date from new rows where that is possible.
//!
//! `query` is an open query and what it keeps, `refresh` brings it up to date, `together` many of them, `new_rows` are the
//! rows of journal records as a query wants them.

// Loaded later.

mod new_rows;
mod query;
mod refresh;
mod together;

pub use query::{LiveInfo, LiveSpec};
pub use refresh::LiveBatch;
pub use together::LiveNews;
