//! How the buckets of a query are found: through which index, and where in it.

mod access;
mod choose;
mod implies;
mod index;
mod intervals;

pub use access::{IndexAccess, ReadAccess, buckets};
pub use choose::{check_hint, choose, through_default};
pub use index::Index;
pub use intervals::{Interval, of_class};
