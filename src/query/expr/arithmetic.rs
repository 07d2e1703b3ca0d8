//! Arithmetic: int32 widens to int64 and that to double; dates move by milliseconds.

use super::arguments::{Arguments, argument, failure, number};
use super::datum::Datum;
use super::decimals::decimals_if_loaded;
use super::operators::{Op, Operator};
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Kind, Number, Value};

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
    let narrow = arguments.iter().all(|value| value.is_none_or(|value| value.kind() == Kind::Int32));
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
        return decimals(operator.op, [x, y]);
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
fn decimals(op: Op, numbers: [Number; 2]) -> Result<Datum<'static>> {
    let mut result = Datum::Missing;
    if decimals_if_loaded(op, numbers, &mut result) {
        return Ok(result);
    }
    Err(Error::new(ErrorCode::InvalidPipelineOperator, "Arithmetic on decimals is not loaded yet: try again"))
}

/// An int32 if the operands were int32 and it fits.
pub(super) fn narrowed(n: i64, narrow: bool) -> Datum<'static> {
    match i32::try_from(n) {
        Ok(n) if narrow => Datum::int32(n),
        _ => Datum::int64(n),
    }
}

pub(super) fn is_int32(arguments: Arguments<'_, '_>) -> bool {
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
        return decimals(operator.op, [number; 2]);
    }
    let x = number.near_double();
    Ok(Datum::double(match operator.op {
        Op::Abs => x.abs(),
        Op::Ceil => x.ceil(),
        Op::Floor => x.floor(),
        _ => x.sqrt(),
    }))
}
