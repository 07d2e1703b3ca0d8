//! Dates and clocks: fields, units, text and time zones.

// Loaded later.

mod calendar;
mod columns;
mod fields;
mod parts;
#[cfg(test)]
mod tests;
mod text;
mod units;
mod zone;

pub use calendar::TimeUnit;
pub(super) use calendar::civil;
pub(super) use columns::{DateCells, cells_of_dates, differences, iso_texts, shifted};
pub(super) use parts::{part_names, part_of};
pub(super) use text::{instead, read, shapes_of};
pub(super) use units::{bin_slack_ms, is_alike, is_monotonic};
pub(super) use zone::{Zone, Zones};

use super::operators::Operator;

/// The rows of the operator table for dates.
pub(super) const TABLES: [&[Operator]; 3] = [units::TABLE, parts::TABLE, text::TABLE];
