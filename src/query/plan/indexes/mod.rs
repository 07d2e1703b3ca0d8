//! Indexes in plans: which index a query uses, and which ranges of its keys.

mod access;
mod choose;
mod implies;
mod index;
mod intervals;

pub use access::{IndexAccess, ReadAccess, buckets};
pub use choose::{check_hint, choose, through_default};
pub use index::Index;
pub use intervals::{Interval, of_class};
