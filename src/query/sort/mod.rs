//! Sorting measurements: the parsed specification, and fixed-width keys computed from columns.

mod arrays;
mod keys;
mod order;
mod spec;

pub use keys::{column_at, key_of_double, key_of_int};
pub use order::{rows_before, sorted_groups, sorted_rows};
#[cfg(test)]
pub use spec::SortPart;
pub use spec::SortSpec;
