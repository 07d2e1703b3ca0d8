//! Dates and clocks: their parts, units, texts and time zones.

// Loaded later.

mod calendar;
mod fields;
mod parts;
#[cfg(test)]
mod tests;
mod text;
mod units;
mod zone;

pub use calendar::Unit;
pub(super) use calendar::civil;
pub(super) use text::{instead, read};
pub(super) use units::{bins, is_alike, is_monotonic};
pub(super) use zone::{Zone, Zones};

use super::operators::Operator;

/// Their rows of the table of operators.
pub(super) const TABLES: [&[Operator]; 3] = [units::TABLE, parts::TABLE, text::TABLE];
