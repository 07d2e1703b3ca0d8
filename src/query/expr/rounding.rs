//! `$round` and `$trunc`.

// Loaded later.

use std::cmp::Ordering;

use super::arguments::{Arguments, Want::*, failure, integer, number};
use super::arithmetic::{is_int32, narrowed};
use super::datum::Datum;
use super::decimals::datum;
use super::operators::{Nulls, Op, Operator, Syntax, Wants, operator, with_nulls};
use crate::error::ErrorCode::*;
use crate::error::Result;
use crate::value::Number;
use crate::value::decimal::{self, Rounding};

const PLACES: Wants = &[(Numeric, Location51081), (Whole, Location51082)];
/// From here on, doubles are integers, and not all integers are doubles.
const TWO_TO_53: f64 = 9_007_199_254_740_992.0;
const TWO_TO_55: f64 = 4.0 * TWO_TO_53;

pub(super) static TABLE: &[Operator] = &[rounding(Op::Trunc, "$trunc"), rounding(Op::Round, "$round")];

const fn rounding(op: Op, name: &'static str) -> Operator {
    with_nulls(Nulls::InTurn, operator(op, name, Syntax::Positional(1, 2), PLACES, true, to_places))
}

/// `$trunc` and `$round` (half to even), to a number of decimal places.
fn to_places(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let places = integer(arguments, 1, 0);
    if !(-20..=100).contains(&places) {
        return Err(failure(Location51083, operator.name(), "needs a precision from -20 to 100"));
    }
    let number = number(arguments, 0);
    let rounds = operator.op == Op::Round;
    if let Number::Integer(n) = number {
        let cut = cut_integer(n, places, rounds);
        let cut = cut.ok_or_else(|| failure(Location51080, operator.name(), "needs a result of 64 bits"))?;
        return Ok(narrowed(cut, is_int32(arguments)));
    }
    if let Number::Decimal(decimal) = number {
        let mode = if rounds { Rounding::HalfEven } else { Rounding::Trunc };
        return Ok(datum(decimal::rounded(decimal, places, mode)));
    }
    Ok(Datum::double(cut_to_places(number.near_double(), places, rounds)))
}

/// An integer cut, or rounded half to even, to a power of ten. `None` beyond 64 bits.
fn cut_integer(n: i64, places: i64, rounds: bool) -> Option<i64> {
    if places >= 0 {
        return Some(n);
    }
    // Of 10^20, an integer is less than a half.
    let Some(unit) = u32::try_from(-places).ok().and_then(|power| 10_u64.checked_pow(power)) else { return Some(0) };
    let (units, rest) = (n.unsigned_abs() / unit, n.unsigned_abs() % unit);
    let is_more = match rest.cmp(&(unit - rest)) {
        Ordering::Less => false,
        Ordering::Equal => units % 2 == 1,
        Ordering::Greater => true,
    };
    let cut = (units + u64::from(rounds && is_more)).checked_mul(unit)?;
    if n < 0 { 0_i64.checked_sub_unsigned(cut) } else { 0_i64.checked_add_unsigned(cut) }
}

/// A double cut, or rounded half to even, to a number of decimal places. Its exact value counts, as on the server: 1.115 is
/// less than it looks, and rounded to 1.11; 8.2 is cut to 8.1.
pub(super) fn cut_to_places(x: f64, places: i64, rounds: bool) -> f64 {
    let power = (0..places.abs()).fold(1.0, |power, _| power * 10.0);
    let scaled = if places < 0 { x / power } else { x * power };
    // So many digits would be left that the nearest double is the same.
    if scaled.is_nan() || scaled.abs() >= TWO_TO_55 {
        return x;
    }
    let mut cut = if rounds { scaled.round_ties_even() } else { scaled.trunc() };
    // What `scaled` lacks of the exact value matters if it lies on the edge, or has no fractions.
    #[allow(clippy::float_cmp)]
    let is_at_edge = (scaled - scaled.trunc()).abs() == if rounds { 0.5 } else { 0.0 };
    if is_at_edge || scaled.abs() >= TWO_TO_53 {
        // Powers of ten are exact up to the 22nd.
        let lack = match places {
            1..=22 => product_error(x, power, scaled),
            ..=-1 => {
                let product = scaled * power;
                (x - product - product_error(scaled, power, product)) / power
            }
            _ => 0.0,
        };
        let sign = scaled.signum();
        if scaled.abs() >= TWO_TO_53 {
            let cut = if rounds { lack.round_ties_even() } else { (lack * sign).floor() * sign };
            return x + (cut - lack) / power;
        }
        if rounds && lack != 0.0 {
            cut = scaled + lack.signum() / 2.0;
        } else if lack * sign < 0.0 {
            cut -= sign;
        }
    }
    if places < 0 { cut * power } else { cut / power }
}

/// By how much a product of doubles exceeds its double, exactly (Dekker).
fn product_error(a: f64, b: f64, product: f64) -> f64 {
    let split = |x: f64| {
        let large = x * 134_217_729.0;
        let high = large - (large - x);
        (high, x - high)
    };
    let ((a, a_rest), (b, b_rest)) = (split(a), split(b));
    a * b - product + a * b_rest + a_rest * b + a_rest * b_rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The same in integers of 128 bits, for doubles of moderate size.
    #[allow(clippy::cast_precision_loss)]
    fn cut_exactly(x: f64, places: u32, rounds: bool) -> f64 {
        let (bits, exponent) = (x.to_bits() & ((1 << 52) - 1), (x.to_bits() >> 52 & 0x7ff) as i32);
        let (whole, below) = (u128::from(bits | 1 << 52), u32::try_from(1075 - exponent).unwrap());
        let scaled = whole * 10_u128.pow(places);
        let (units, rest, half) = (scaled >> below, scaled & ((1 << below) - 1), 1 << (below - 1));
        let is_more = rest > half || rest == half && units % 2 == 1;
        let cut = (units + u128::from(rounds && is_more)) as f64 / 10_f64.powi(places as i32);
        cut.copysign(x)
    }

    proptest! {
        #[test]
        fn doubles_are_cut_at_their_exact_value(
            x in prop_oneof![
                (1..99_999_999_i64, 0..7_i32, any::<bool>()).prop_map(|(n, places, is_below)| {
                    let x = n as f64 / 10_f64.powi(places);
                    if is_below { x.next_down() } else { x }
                }),
                0.01..1e6_f64,
                (1..1_000_000_i64).prop_map(|n| n as f64 / 64.0),
            ],
            places in 0..6_u32, rounds in any::<bool>(), is_negative in any::<bool>(),
        ) {
            let x = if is_negative { -x } else { x };
            prop_assert_eq!(cut_to_places(x, places.into(), rounds).to_bits(), cut_exactly(x, places, rounds).to_bits(), "{:?} {}", x, places);
        }
    }
}
