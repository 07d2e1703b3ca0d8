//! Arithmetic of numbers of any type: a decimal where one is among them, else a double.

// Loaded later.

use super::arithmetic::{difference, product, quotient, sum};
use super::model::Decimal;
use super::parse::{of_number, to_value};
use crate::value::{Number, OwnedValue};

/// A sum of decimals and another number, or its mean where `count` says of how many.
pub fn total(decimals: Decimal, other: Number, count: Option<u64>) -> OwnedValue {
    let total = sum(decimals, of_number(other));
    let count = count.and_then(|count| i64::try_from(count).ok());
    to_value(count.map_or(total, |count| quotient(total, count.into())))
}

/// Of decimals where one of the two is a decimal, else of doubles.
fn either(
    a: Number,
    b: Number,
    of_decimals: fn(Decimal, Decimal) -> Decimal,
    of_doubles: fn(f64, f64) -> f64,
) -> Number {
    match (a, b) {
        (Number::Decimal(_), _) | (_, Number::Decimal(_)) => Number::Decimal(of_decimals(of_number(a), of_number(b))),
        _ => Number::Double(of_doubles(a.near_double(), b.near_double())),
    }
}

/// The sum of two numbers.
pub fn plus(a: Number, b: Number) -> Number {
    either(a, b, sum, |a, b| a + b)
}

/// The difference of two numbers. Between integers it is exact: those of a clock that counts nanoseconds are beyond those that doubles hold.
pub fn minus(a: Number, b: Number) -> Number {
    match (a, b) {
        (Number::Integer(x), Number::Integer(y)) if x.checked_sub(y).is_some() => Number::Integer(x - y),
        _ => either(a, b, difference, |a, b| a - b),
    }
}

/// The product of two numbers.
pub fn times(a: Number, b: Number) -> Number {
    either(a, b, product, |a, b| a * b)
}

/// The quotient of two numbers, of which the second is not zero.
pub fn over(a: Number, b: Number) -> Number {
    either(a, b, quotient, |a, b| a / b)
}

/// A decimal, or else a double.
pub fn result(number: Number) -> OwnedValue {
    match number {
        Number::Decimal(decimal) => to_value(decimal),
        other => OwnedValue::double(other.near_double()),
    }
}
