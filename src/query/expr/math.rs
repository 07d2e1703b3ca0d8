//! Powers, logarithms, trigonometry, bits; sums, means and deviations; sizes.

// Loaded later.

use std::cmp::Ordering;

use kernels::sum;

use super::arguments::{Arguments, Want::*, argument, failure, number};
use super::datum::Datum;
use super::decimals::datum;
use super::operators::{ANY, MANY, NUMBER, Op, Operator, Syntax, Wants, null_in, operator, variadic, with_doubles};
use crate::env::math;
use crate::error::ErrorCode::*;
use crate::error::{ErrorCode, Result};
use crate::listed::IntoList;
use crate::value::decimal;
use crate::value::{Decimal, Kind, Number, Value};

const BASE: Wants = &[(Numeric, Location28756), (Numeric, Location28757)];
const POWER: Wants = &[(Numeric, Location28762), (Numeric, Location28763)];
const ANGLES: Wants = &[(Numeric, Location51044), (Numeric, Location51045)];
const BITS: Wants = &[(Whole, TypeMismatch)];

/// A function of one number, outside of which `beyond` gives the error. Without a function for decimals, decimals are
/// computed as doubles, as for angles.
macro_rules! of_one {
    ($name:literal, $beyond:expr, $of_double:expr, $of_decimal:expr) => {
        with_doubles(null_in(Op::More, $name, NUMBER, |by, x| of_one(by, x, $beyond, $of_double, $of_decimal)), |x| {
            $beyond(Number::Double(x)).is_none().then(|| $of_double(x))
        })
    };
}

pub(super) static TABLE: &[Operator] = &[
    of_one!("$exp", never, math::exp, Some(decimal::exp)),
    of_one!("$atan", never, math::atan, None),
    of_one!("$sinh", never, math::sinh, None),
    of_one!("$cosh", never, math::cosh, None),
    of_one!("$tanh", never, math::tanh, None),
    of_one!("$asinh", never, math::asinh, None),
    of_one!("$degreesToRadians", never, f64::to_radians, Some(to_radians)),
    of_one!("$radiansToDegrees", never, f64::to_degrees, Some(to_degrees)),
    of_one!("$sigmoid", never, logistic, Some(sigmoid)),
    of_one!("$ln", no_logarithm, math::ln, Some(decimal::ln)),
    of_one!("$log10", no_decimal_logarithm, math::log10, Some(decimal::log10)),
    of_one!("$sin", infinite, math::sin, None),
    of_one!("$cos", infinite, math::cos, None),
    of_one!("$tan", infinite, math::tan, None),
    of_one!("$asin", beyond_one, math::asin, None),
    of_one!("$acos", beyond_one, math::acos, None),
    of_one!("$atanh", beyond_one, math::atanh, None),
    of_one!("$acosh", below_one, math::acosh, None),
    null_in(Op::More, "$log", BASE, log),
    null_in(Op::More, "$pow", POWER, power),
    null_in(Op::More, "$atan2", ANGLES, |_, x| {
        let (y, x) = (number(x, 0), number(x, 1));
        let angle = math::atan2(y.near_double(), x.near_double());
        Ok(if is_decimal(y) || is_decimal(x) { datum(decimal::from_double(angle)) } else { Datum::double(angle) })
    }),
    null_in(Op::More, "$bitNot", BITS, |_, x| bits(x, |_, n| !n)),
    variadic(Op::More, "$bitAnd", BITS, |_, x| reduced(x, -1, |a, b| a & b)),
    variadic(Op::More, "$bitOr", BITS, |_, x| reduced(x, 0, |a, b| a | b)),
    variadic(Op::More, "$bitXor", BITS, |_, x| reduced(x, 0, |a, b| a ^ b)),
    operator(Op::More, "$sum", Syntax::Positional(0, MANY), &[(Any, InternalError)], false, |_, x| total(x, false)),
    operator(Op::More, "$avg", Syntax::Positional(0, MANY), &[(Any, InternalError)], false, |_, x| total(x, true)),
    operator(Op::More, "$stdDevPop", Syntax::Positional(0, MANY), ANY, false, |_, x| deviation(x, 0.0)),
    operator(Op::More, "$stdDevSamp", Syntax::Positional(0, MANY), ANY, false, |_, x| deviation(x, 1.0)),
    null_in(Op::More, "$binarySize", ANY, |_, x| {
        let value = argument(x, 0).unwrap_or(Value::NULL);
        let size = value.as_str().map(str::len).or(value.as_binary().map(|(_, bytes)| bytes.len()));
        size.map(Datum::count).ok_or_else(|| failure(Location51276, "$binarySize", "needs a string or binary data"))
    }),
    null_in(Op::More, "$bsonSize", ANY, |_, x| {
        let size = argument(x, 0).and_then(Value::as_doc).map(|doc| doc.as_bytes().len());
        size.map(Datum::count).ok_or_else(|| failure(Location31393, "$bsonSize", "needs an object"))
    }),
];

fn is_decimal(x: Number) -> bool {
    matches!(x, Number::Decimal(_))
}

fn order(x: Number, n: i64) -> Ordering {
    if x.is_nan() { Ordering::Equal } else { x.compare(Number::Integer(n)) }
}

fn is_at_most(x: Number, n: i64) -> bool {
    !x.is_nan() && order(x, n).is_le()
}

fn infinite(x: Number) -> Option<ErrorCode> {
    let is_finite = matches!(x, Number::Decimal(Decimal::Finite { .. }));
    (!is_finite && x.near_double().is_infinite()).then_some(Location50989)
}

fn beyond_one(x: Number) -> Option<ErrorCode> {
    (order(x, 1).is_gt() || order(x, -1).is_lt()).then_some(Location50989)
}

fn below_one(x: Number) -> Option<ErrorCode> {
    order(x, 1).is_lt().then_some(Location50989)
}

fn no_logarithm(x: Number) -> Option<ErrorCode> {
    is_at_most(x, 0).then_some(Location28766)
}

fn no_decimal_logarithm(x: Number) -> Option<ErrorCode> {
    is_at_most(x, 0).then_some(Location28761)
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + math::exp(-x))
}

fn never(_: Number) -> Option<ErrorCode> {
    None
}

/// A function of one number within `beyond`'s limits. Without a function for decimals, decimals are computed as
/// doubles, as for angles.
fn of_one(
    operator: &Operator,
    arguments: Arguments<'_, '_>,
    beyond: fn(Number) -> Option<ErrorCode>,
    of_double: fn(f64) -> f64,
    of_decimal: Option<fn(Decimal) -> Decimal>,
) -> Result<Datum<'static>> {
    let x = number(arguments, 0);
    if let Some(code) = beyond(x) {
        return Err(failure(code, operator.name(), "needs a number within its domain"));
    }
    Ok(match (x, of_decimal) {
        (Number::Decimal(Decimal::NaN), _) => datum(Decimal::NaN),
        (Number::Decimal(x), Some(of_decimal)) => datum(of_decimal(x)),
        (Number::Decimal(_), None) => datum(decimal::from_double(of_double(x.near_double()))),
        _ => Datum::double(of_double(x.near_double())),
    })
}

fn sigmoid(x: Decimal) -> Decimal {
    let below = decimal::sum(1.into(), decimal::exp(decimal::negated(x)));
    decimal::quotient(1.into(), below)
}

fn to_radians(x: Decimal) -> Decimal {
    times(x, 1745329251994329576923690768488613, -35)
}

fn to_degrees(x: Decimal) -> Decimal {
    times(x, 5729577951308232087679815481410517, -32)
}

fn times(x: Decimal, coefficient: u128, exponent: i32) -> Decimal {
    decimal::product(x, Decimal::Finite { negative: false, coefficient, exponent })
}

fn log(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let (x, base) = (number(arguments, 0), number(arguments, 1));
    if is_at_most(x, 0) {
        return Err(failure(Location28758, "$log", "needs a number above 0"));
    }
    if is_at_most(base, 0) || base.compare(Number::Integer(1)).is_eq() {
        return Err(failure(Location28759, "$log", "needs a base above 0 that is not 1"));
    }
    if is_decimal(x) || is_decimal(base) {
        let [x, base] = [x, base].map(|number| decimal::ln(decimal::of_number(number)));
        return Ok(datum(decimal::quotient(x, base)));
    }
    Ok(Datum::double(math::ln(x.near_double()) / math::ln(base.near_double())))
}

/// Integers stay integers if the power fits 64 bits.
fn power(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let (base, exponent) = (number(arguments, 0), number(arguments, 1));
    // NaN, which sorts before all other numbers, is not negative.
    let is_negative = exponent.compare(Number::Integer(0)).is_lt() && !exponent.is_nan();
    if is_negative && base.compare(Number::Integer(0)).is_eq() {
        return Err(failure(Location28764, "$pow", "cannot raise 0 to a negative exponent"));
    }
    if let (Number::Integer(base), Number::Integer(exponent)) = (base, exponent) {
        let whole = match (base, u32::try_from(exponent)) {
            (_, Ok(exponent)) => base.checked_pow(exponent),
            (1, _) => Some(1),
            (-1, _) => Some(if exponent % 2 == 0 { 1 } else { -1 }),
            (_, Err(_)) => None,
        };
        if let Some(whole) = whole {
            return Ok(integer(whole, is_narrow(arguments)));
        }
    }
    if is_decimal(base) || is_decimal(exponent) {
        return Ok(datum(decimal::power(decimal::of_number(base), decimal::of_number(exponent))));
    }
    Ok(Datum::double(power_of_double(base.near_double(), exponent.near_double())))
}

/// A power of doubles. A square needs no function of the host, and is rounded once.
pub(super) fn power_of_double(base: f64, exponent: f64) -> f64 {
    if exponent == 2.0 { base * base } else { math::pow(base, exponent) }
}

/// True if all arguments are int32.
fn is_narrow(arguments: Arguments<'_, '_>) -> bool {
    arguments.iter().all(|value| value.is_none_or(|value| value.kind() == Kind::Int32))
}

fn integer(n: i64, narrow: bool) -> Datum<'static> {
    match i32::try_from(n) {
        Ok(n) if narrow => Datum::int32(n),
        _ => Datum::int64(n),
    }
}

fn bits(arguments: Arguments<'_, '_>, step: fn(i64, i64) -> i64) -> Result<Datum<'static>> {
    reduced(arguments, 0, step)
}

/// Only for int32 and int64.
fn reduced(arguments: Arguments<'_, '_>, first: i64, step: fn(i64, i64) -> i64) -> Result<Datum<'static>> {
    let mut all = first;
    for value in arguments.iter().filter_map(|value| *value) {
        match value.kind() {
            Kind::Int32 | Kind::Int64 => all = step(all, value.as_integer().unwrap_or_default()),
            _ => {
                return Err(failure(
                    TypeMismatch,
                    "A bitwise operator",
                    "needs int or long, not double; in JavaScript, write new Int32(5) for 5",
                ));
            }
        }
    }
    Ok(integer(all, is_narrow(arguments)))
}

/// The arguments, or the elements of the only argument.
fn values<'b>(arguments: Arguments<'_, 'b>) -> Vec<Value<'b>> {
    match arguments {
        [Some(only)] if only.as_array().is_some() => only.elements().map(|(_, x)| x).listed(),
        _ => arguments.iter().filter_map(|value| *value).listed(),
    }
}

/// The standard deviation of numbers; other values do not count.
fn deviation(arguments: Arguments<'_, '_>, fewer: f64) -> Result<Datum<'static>> {
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for number in values(arguments).into_iter().filter_map(Number::of) {
        let x = number.near_double();
        count += 1.0;
        let distance = x - mean;
        mean += distance / count;
        squares += distance * (x - mean);
    }
    Ok(if count > fewer { Datum::double((squares / (count - fewer)).sqrt()) } else { Datum::NULL })
}

/// The sum or mean of numbers; of a single array, those of its elements. Other values do not count. As in a group, integers
/// are added exactly, and doubles without what rounding would take from them.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
fn total(arguments: Arguments<'_, '_>, is_mean: bool) -> Result<Datum<'static>> {
    let (mut whole, mut doubles, mut lost, mut count) = (0_i128, 0.0, 0.0, 0_u32);
    let (mut is_double, mut narrow) = (false, true);
    let mut decimals: Option<Decimal> = None;
    for value in values(arguments) {
        let Some(number) = Number::of(value) else { continue };
        count += 1;
        narrow &= value.kind() == Kind::Int32;
        match number {
            Number::Integer(n) => whole += i128::from(n),
            Number::Double(x) => {
                is_double = true;
                sum::add(&mut doubles, &mut lost, x);
            }
            Number::Decimal(decimal) => {
                decimals = Some(decimals.map_or(decimal, |sum| decimal::sum(sum, decimal)));
            }
        }
    }
    let integers = i64::try_from(whole).map_or(Number::Double(whole as f64), Number::Integer);
    if let Some(mut decimals) = decimals {
        let mut others = integers;
        if is_double {
            decimals = decimal::sum(decimals, decimal::of_number(integers));
            others = Number::Double(sum::total(doubles, lost));
        }
        return Ok(Datum::Shared(decimal::total(decimals, others, is_mean.then_some(count.into()))));
    }
    if let (Number::Integer(n), false, false) = (integers, is_double, is_mean) {
        return Ok(integer(n, narrow));
    }
    let near = whole as f64;
    sum::add(&mut doubles, &mut lost, near);
    sum::add(&mut doubles, &mut lost, (whole - near as i128) as f64);
    let total = sum::total(doubles, lost);
    Ok(match is_mean {
        true if count == 0 => Datum::NULL,
        true => Datum::double(total / f64::from(count)),
        false => Datum::double(total),
    })
}
