//! Arithmetic: int32 widens to int64 and that to double; dates move by milliseconds.

use std::cmp::Ordering;

use super::arguments::{Arguments, argument, failure, integer, number};
use super::datum::Datum;
use super::decimals::decimals_if_loaded;
use super::operators::{Op, Operator};
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Kind, Number, Value};

/// From here on, doubles are integers, and not all integers are doubles.
const TWO_TO_53: f64 = 9_007_199_254_740_992.0;
const TWO_TO_55: f64 = 4.0 * TWO_TO_53;

/// `$add`, `$multiply`, `$subtract`, `$divide`, `$mod`, from left to right.
pub(super) fn combine(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let neutral = Datum::int32(i32::from(operator.op == Op::Multiply));
    let [first, rest @ ..] = arguments else { return Ok(neutral) };
    let mut sum = Datum::copied(*first);
    // A single argument is checked as well.
    let rest = if rest.is_empty() { &[neutral.view()] } else { rest };
    for value in rest {
        let step = binary(operator, sum.view().unwrap_or(Value::NULL), value.unwrap_or(Value::NULL))?;
        sum = step;
    }
    // The operands decide whether it is an int32, not the sums on the way.
    let narrow = arguments.iter().flatten().all(|value| value.kind() == Kind::Int32);
    match sum.view().filter(|sum| narrow && sum.kind() == Kind::Int64).and_then(Value::as_integer) {
        Some(n) => Ok(narrowed(n, true)),
        None => Ok(sum),
    }
}

/// The result of `$add` or `$multiply` for two numbers.
pub fn computed(name: &str, a: Value<'_>, b: Value<'_>) -> Result<Datum<'static>> {
    binary(Operator::named(name)?, a, b)
}

fn binary(operator: &Operator, a: Value<'_>, b: Value<'_>) -> Result<Datum<'static>> {
    let sign = match operator.op {
        Op::Add => 1,
        Op::Subtract => -1,
        _ => 0,
    };
    if sign != 0 && (a.kind() == Kind::Date || b.kind() == Kind::Date) {
        return move_date(operator, sign, a, b);
    }
    let (Some(x), Some(y)) = (Number::of(a), Number::of(b)) else { return Err(unfit(operator, a, b)) };
    if y.compare(Number::Integer(0)).is_eq() && matches!(operator.op, Op::Divide | Op::Mod) {
        let code = match (operator.op, x, y) {
            (Op::Divide, ..) => ErrorCode::BadValue,
            (_, Number::Decimal(_), _) | (_, _, Number::Decimal(_)) => ErrorCode::Location5733415,
            _ => ErrorCode::Location16610,
        };
        return Err(failure(code, operator.name(), "cannot divide by zero"));
    }
    if let (Number::Integer(n), Number::Integer(m)) = (x, y) {
        let whole = match operator.op {
            Op::Add => n.checked_add(m),
            Op::Subtract => n.checked_sub(m),
            Op::Multiply => n.checked_mul(m),
            Op::Mod => Some(n.wrapping_rem(m)),
            _ => None,
        };
        if let Some(whole) = whole {
            return Ok(narrowed(whole, a.kind() == Kind::Int32 && b.kind() == Kind::Int32));
        }
    }
    if matches!((x, y), (Number::Decimal(_), _) | (_, Number::Decimal(_))) {
        return decimals(operator.op, [x, y], 0);
    }
    let (x, y) = (x.near_double(), y.near_double());
    Ok(Datum::double(match operator.op {
        Op::Add => x + y,
        Op::Subtract => x - y,
        Op::Multiply => x * y,
        Op::Divide => x / y,
        _ => x % y,
    }))
}

fn unfit(operator: &Operator, a: Value<'_>, b: Value<'_>) -> Error {
    let code = if operator.op == Op::Mod { ErrorCode::Location16611 } else { ErrorCode::TypeMismatch };
    failure(code, operator.name(), &format!("cannot be applied to {} and {}", a.kind().alias(), b.kind().alias()))
}

/// A number of milliseconds without its fraction, which is rounded; `None` outside the range of int64.
pub(super) fn rounded_duration(ms: f64) -> Option<i64> {
    Number::Double((ms.abs() + 0.5).floor().copysign(ms)).truncated()
}

/// A date and a duration in milliseconds, or two dates.
fn move_date(operator: &Operator, sign: i64, a: Value<'_>, b: Value<'_>) -> Result<Datum<'static>> {
    // Whole milliseconds; a fraction is rounded.
    let duration = |value: Value<'_>| match Number::of(value) {
        Some(Number::Double(x)) => Ok(rounded_duration(x)),
        Some(other) => Ok(other.truncated()),
        None => Err(unfit(operator, a, b)),
    };
    let moved = match (a.as_date_ms(), b.as_date_ms()) {
        (Some(from), Some(to)) if sign < 0 => from.checked_sub(to).map(Datum::int64),
        (Some(_), Some(_)) => {
            return Err(failure(ErrorCode::Location16612, operator.name(), "can contain only one date"));
        }
        (Some(from), None) => duration(b)?.and_then(|by| from.checked_add(by.checked_mul(sign)?)).map(Datum::date),
        (None, Some(from)) if sign > 0 => duration(a)?.and_then(|by| from.checked_add(by)).map(Datum::date),
        _ => return Err(unfit(operator, a, b)),
    };
    moved.ok_or_else(|| failure(ErrorCode::Overflow, operator.name(), "gives a date out of range"))
}

/// The result if a decimal is among the numbers.
///
/// Errors: 168 if the second half of the module is needed, as for operators that the first half does not know.
#[inline(never)]
fn decimals(op: Op, numbers: [Number; 2], places: i64) -> Result<Datum<'static>> {
    let mut result = Datum::Missing;
    if decimals_if_loaded(op, numbers, places, &mut result) {
        return Ok(result);
    }
    Err(Error::new(ErrorCode::InvalidPipelineOperator, "Arithmetic on decimals is not loaded yet: try again"))
}

/// An int32 if the operands were int32 and it fits.
fn narrowed(n: i64, narrow: bool) -> Datum<'static> {
    match i32::try_from(n) {
        Ok(n) if narrow => Datum::int32(n),
        _ => Datum::int64(n),
    }
}

fn is_int32(arguments: Arguments<'_, '_>) -> bool {
    argument(arguments, 0).is_some_and(|value| value.kind() == Kind::Int32)
}

/// `$abs`, `$ceil`, `$floor`, `$sqrt`.
pub(super) fn unary(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let number = number(arguments, 0);
    if let (Number::Integer(n), true) = (number, operator.op != Op::Sqrt) {
        let whole = if operator.op == Op::Abs { n.checked_abs() } else { Some(n) };
        let whole = whole.ok_or_else(|| {
            failure(ErrorCode::Location28680, operator.name(), "cannot be computed for the smallest int64")
        })?;
        return Ok(narrowed(whole, is_int32(arguments)));
    }
    let is_below = number.compare(Number::Integer(0)).is_lt() && !number.is_nan();
    if is_below && operator.op == Op::Sqrt {
        return Err(failure(ErrorCode::Location28714, operator.name(), "needs a non-negative number"));
    }
    if let Number::Decimal(_) = number {
        return decimals(operator.op, [number; 2], 0);
    }
    let x = number.near_double();
    Ok(Datum::double(match operator.op {
        Op::Abs => x.abs(),
        Op::Ceil => x.ceil(),
        Op::Floor => x.floor(),
        _ => x.sqrt(),
    }))
}

/// `$trunc` and `$round` (half to even), to a number of decimal places.
pub(super) fn to_places(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let places = integer(arguments, 1, 0);
    if !(-20..=100).contains(&places) {
        return Err(failure(ErrorCode::Location51083, operator.name(), "needs a precision from -20 to 100"));
    }
    let number = number(arguments, 0);
    let rounds = operator.op == Op::Round;
    if let Number::Integer(n) = number {
        let cut = cut_integer(n, places, rounds);
        let cut = cut.ok_or_else(|| failure(ErrorCode::Location51080, operator.name(), "needs a result of 64 bits"))?;
        return Ok(narrowed(cut, is_int32(arguments)));
    }
    if let Number::Decimal(_) = number {
        return decimals(operator.op, [number; 2], places);
    }
    Ok(Datum::double(cut_to_places(number.near_double(), places, rounds)))
}

/// An integer cut, or rounded half to even, to a power of ten. `None` beyond 64 bits.
#[inline(never)]
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
#[inline(never)]
pub(super) fn cut_to_places(x: f64, places: i64, rounds: bool) -> f64 {
    let power = (0..places.abs()).fold(1.0, |power, _| power * 10.0);
    let scaled = if places < 0 { x / power } else { x * power };
    // So many digits would be left that the nearest double is the same.
    if scaled.is_nan() || scaled.abs() >= TWO_TO_55 {
        return x;
    }
    // What `scaled` lacks of the exact value. Powers of ten are exact up to the 22nd.
    let lack = match places {
        1..=22 => product_error(x, power, scaled),
        ..=-1 => {
            let product = scaled * power;
            (x - product - product_error(scaled, power, product)) / power
        }
        _ => 0.0,
    };
    if scaled.abs() >= TWO_TO_53 {
        let sign = scaled.signum();
        let cut = if rounds { lack.round_ties_even() } else { (lack * sign).floor() * sign };
        return x + (cut - lack) / power;
    }
    let mut cut = if rounds { scaled.round_ties_even() } else { scaled.trunc() };
    let part = (scaled - scaled.trunc()).abs();
    // The double is on the edge, the exact value beside it.
    #[allow(clippy::float_cmp)]
    if lack != 0.0 && part == if rounds { 0.5 } else { 0.0 } {
        if rounds {
            cut = scaled + lack.signum() / 2.0;
        } else if lack.is_sign_negative() != scaled.is_sign_negative() {
            cut -= scaled.signum();
        }
    }
    if places < 0 { cut * power } else { cut / power }
}

/// By how much a product of doubles exceeds its double, exactly (Dekker).
#[inline(never)]
fn product_error(a: f64, b: f64, product: f64) -> f64 {
    let split = |x: f64| {
        let large = x * 134_217_729.0;
        let high = large - (large - x);
        (high, x - high)
    };
    let ((a, a_rest), (b, b_rest)) = (split(a), split(b));
    a * b - product + a * b_rest + a_rest * b + a_rest * b_rest
}
