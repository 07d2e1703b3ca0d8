//! Arithmetic: int32 widens to int64 and that to a double, dates move by milliseconds.

use super::datum::{Datum, type_name};
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Kind, Number, Value};

/// The double right above the integers of 64 bits.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// `$add`, `$multiply`, `$subtract`, `$divide`, `$mod`: from the left to the right.
pub(super) fn fold(name: &'static str, arguments: &[Option<Value<'_>>]) -> Result<Datum<'static>> {
    let mut values = arguments.iter().flatten();
    let Some(first) = values.next() else { return Ok(Datum::int32(i32::from(name == "$multiply"))) };
    let mut sum = Datum::copied(Some(*first));
    if arguments.len() == 1 {
        // A single argument is checked all the same.
        let neutral = Datum::int32(i32::from(name == "$multiply"));
        return binary(name, *first, neutral.view().unwrap_or(Value::NULL));
    }
    for value in values {
        sum = binary(name, sum.view().unwrap_or(Value::NULL), *value)?;
    }
    Ok(sum)
}

fn binary(name: &str, a: Value<'_>, b: Value<'_>) -> Result<Datum<'static>> {
    if matches!(name, "$add" | "$subtract")
        && let Some(moved) = move_date(name, a, b)?
    {
        return Ok(moved);
    }
    let (Some(x), Some(y)) = (Number::of(a), Number::of(b)) else {
        let (a, b) = (a.kind().alias(), b.kind().alias());
        let (code, message) = match name {
            "$subtract" => (ErrorCode::TypeMismatch, format!("can't $subtract {b} from {a}")),
            "$mod" => (ErrorCode::Location16611, format!("$mod only supports numeric types, not {a} and {b}")),
            "$add" => (ErrorCode::TypeMismatch, format!("$add only supports numeric or date types, not {a} and {b}")),
            _ => (ErrorCode::TypeMismatch, format!("{name} only supports numeric types, not {a} and {b}")),
        };
        return Err(Error::new(code, message));
    };
    let zero = y.compare(Number::Integer(0)).is_eq();
    let by_zero = |code| Err(Error::new(code, format!("can't {name} by zero")));
    match name {
        "$divide" if zero => return by_zero(ErrorCode::BadValue),
        "$mod" if zero => return by_zero(ErrorCode::Location16610),
        _ => {}
    }
    if let (Number::Integer(n), Number::Integer(m)) = (x, y)
        && let Some(result) = match name {
            "$add" => n.checked_add(m),
            "$subtract" => n.checked_sub(m),
            "$multiply" => n.checked_mul(m),
            "$mod" => Some(n.wrapping_rem(m)),
            _ => None,
        }
    {
        return Ok(integer(result, a.kind() == Kind::Int32 && b.kind() == Kind::Int32));
    }
    let (x, y) = (double(x)?, double(y)?);
    Ok(Datum::double(match name {
        "$add" => x + y,
        "$subtract" => x - y,
        "$multiply" => x * y,
        "$divide" => x / y,
        _ => x % y,
    }))
}

/// A date and a duration in milliseconds, or two dates; `None` without a date.
fn move_date(name: &str, a: Value<'_>, b: Value<'_>) -> Result<Option<Datum<'static>>> {
    let overflow = || Error::new(ErrorCode::Overflow, format!("date overflow in {name}"));
    let duration = |value: Value<'_>| {
        let number = Number::of(value)
            .ok_or_else(|| Error::type_mismatch(format!("can't {name} {} and a date", value.kind().alias())))?;
        // Whole milliseconds; a fraction is rounded.
        let whole = match number {
            Number::Double(x) => Number::Double(x.round()),
            other => other,
        };
        whole.truncated().ok_or_else(overflow)
    };
    Ok(Some(match (a.as_date_ms(), b.as_date_ms(), name) {
        (None, None, _) => return Ok(None),
        (Some(a), Some(b), "$subtract") => Datum::int64(a.checked_sub(b).ok_or_else(overflow)?),
        (Some(_), Some(_), _) => {
            return Err(Error::new(ErrorCode::Location16612, "only one date allowed in an $add expression"));
        }
        (Some(date), None, "$subtract") => Datum::date(date.checked_sub(duration(b)?).ok_or_else(overflow)?),
        (None, Some(_), "$subtract") => {
            return Err(Error::type_mismatch(format!("can't $subtract date from {}", a.kind().alias())));
        }
        (Some(date), None, _) => Datum::date(date.checked_add(duration(b)?).ok_or_else(overflow)?),
        (None, Some(date), _) => Datum::date(date.checked_add(duration(a)?).ok_or_else(overflow)?),
    }))
}

/// An int32 where both operands were, and it fits.
fn integer(n: i64, narrow: bool) -> Datum<'static> {
    match i32::try_from(n) {
        Ok(n) if narrow => Datum::int32(n),
        _ => Datum::int64(n),
    }
}

/// A number as a double.
fn double(number: Number) -> Result<f64> {
    match number {
        Number::Integer(n) => Ok(n as f64),
        Number::Double(x) => Ok(x),
        Number::Decimal(_) => Err(Error::bad_value("Arithmetic on decimals is not supported yet")),
    }
}

/// The only number among the arguments of `name`.
fn number(name: &str, value: Option<Value<'_>>) -> Result<Number> {
    value.and_then(Number::of).ok_or_else(|| {
        let message = format!("{name} only supports numeric types, not {}", type_name(value));
        Error::new(ErrorCode::Location28765, message)
    })
}

/// `$abs`, `$ceil`, `$floor`, `$sqrt`.
pub(super) fn unary(name: &'static str, arguments: &[Option<Value<'_>>]) -> Result<Datum<'static>> {
    let value = arguments.first().copied().flatten();
    let narrow = value.is_some_and(|value| value.kind() == Kind::Int32);
    match (number(name, value)?, name) {
        (Number::Integer(n), "$abs") => n
            .checked_abs()
            .map(|n| integer(n, narrow))
            .ok_or_else(|| Error::new(ErrorCode::Location28680, "can't take $abs of long long min")),
        (Number::Integer(n), "$ceil" | "$floor") => Ok(integer(n, narrow)),
        (other, _) => {
            let x = double(other)?;
            if name == "$sqrt" && x < 0.0 {
                let message = "$sqrt's argument must be greater than or equal to 0";
                return Err(Error::new(ErrorCode::Location28714, message));
            }
            Ok(Datum::double(match name {
                "$abs" => x.abs(),
                "$ceil" => x.ceil(),
                "$floor" => x.floor(),
                _ => x.sqrt(),
            }))
        }
    }
}

/// `$trunc` and `$round`, which rounds halves to even; to so many decimal places.
pub(super) fn to_places(name: &'static str, arguments: &[Option<Value<'_>>]) -> Result<Datum<'static>> {
    let value = arguments.first().copied().flatten();
    let places = match arguments.get(1) {
        None => Some(0),
        Some(places) => places.and_then(Number::of).and_then(Number::whole).filter(|n| (-20..=100).contains(n)),
    };
    let places = places.and_then(|n| i32::try_from(n).ok()).ok_or_else(|| {
        let message = format!("cannot apply {name} with a precision that is no integer from -20 to 100");
        Error::new(ErrorCode::Location51083, message)
    })?;
    let number = number(name, value)?;
    if let (Number::Integer(n), 0..) = (number, places) {
        return Ok(integer(n, value.is_some_and(|value| value.kind() == Kind::Int32)));
    }
    let x = double(number)?;
    let power = (0..places.abs()).fold(1.0, |power, _| power * 10.0);
    let scaled = if places < 0 { x / power } else { x * power };
    let cut = if name == "$round" { scaled.round_ties_even() } else { scaled.trunc() };
    let result = match places {
        _ if !scaled.is_finite() => x,
        0.. => cut / power,
        _ => cut * power,
    };
    // An integer stays one, where it fits.
    #[allow(clippy::cast_possible_truncation)]
    Ok(match number {
        Number::Integer(_) if result.abs() < TWO_TO_63 => {
            integer(result as i64, value.is_some_and(|value| value.kind() == Kind::Int32))
        }
        _ => Datum::double(result),
    })
}
