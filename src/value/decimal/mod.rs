//! Decimal128: decoded, compared, read and written as text, and computed with.

mod arithmetic;
mod mixed;
mod model;
mod parse;
mod powers;

pub use arithmetic::{Rounding, absolute, difference, negated, product, quotient, remainder, rounded, sum};
pub use mixed::{minus, over, plus, result, times, total};
pub(super) use model::truncate_integer;
pub use model::{Decimal, Magnitude};
pub use parse::{double_text, from_double, of_number, parse, parse_double, text, to_double, to_value};
pub use powers::{exp, ln, log10, power, sqrt};
