//! Parsed queries and their plans: plain data that `explain` shows.

mod demand;
mod find;
mod indexes;
mod projection;
mod pushdown;
mod read_plan;
mod rows;
mod stream;

pub use demand::{Demand, NewestBins, Query, RowsPerGroup, Which};
pub use find::{FindCommand, Hint, arguments};
pub use indexes::{Index, IndexAccess, Interval, ReadAccess, check_hint, of_class};
pub use projection::{Origin, Projection, write_set};
pub use pushdown::Split;
pub use read_plan::ReadPlan;
pub use rows::{CollectionFacts, Plan};
pub use stream::Stream;
