//! Sorting measurements: the parsed specification, and fixed-width keys of rows that columns give.

mod arrays;
mod keys;
mod order;
mod spec;

pub use keys::{key_of_double, key_of_int};
pub use order::{sorted_groups, sorted_rows};
#[cfg(test)]
pub use spec::SortPart;
pub use spec::SortSpec;
