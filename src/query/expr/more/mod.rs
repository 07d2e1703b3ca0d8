//! Operators that are in the second half of the module: whoever parses one where only the first half is there finds it unknown, and
//! `bindings` asks again with both. One file a family, each with its rows of the table.

// Loaded later.

mod arrays;
mod binary;
mod calendar;
mod convert;
#[cfg(test)]
mod convert_tests;
mod date;
mod date_fields;
mod date_parts;
#[cfg(test)]
mod date_tests;
mod date_text;
mod decimal;
mod decimal_math;
mod decimal_powers;
mod math;
mod objects;
mod patterns;
mod quantiles;
mod sets;
mod strings;
#[cfg(test)]
mod tests;
mod vectors;
mod zone;

pub use calendar::Unit;
pub(super) use date::{bins, is_alike, is_monotonic};
pub use decimal::of as decimal;
pub use decimal_math::{decimals_if_loaded, minus, over, plus, result, sum as decimal_sum, times, total};
pub use quantiles::{is_continuous, quantile, shares};
pub(super) use vectors::doubles_if_loaded;
pub(super) use zone::Zones;

use super::operators::Operator;

/// The operator of a name, where the second half of the module is there.
#[inline(never)]
pub(super) fn operator_if_loaded(name: &str) -> Option<&'static Operator> {
    let tables = [
        strings::TABLE,
        arrays::TABLE,
        objects::TABLE,
        sets::TABLE,
        math::TABLE,
        date::TABLE,
        date_parts::TABLE,
        date_text::TABLE,
        convert::TABLE,
        patterns::TABLE,
        quantiles::TABLE,
    ];
    tables.into_iter().flatten().find(|operator| operator.name() == name)
}
