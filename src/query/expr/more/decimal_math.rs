//! Arithmetic of decimals, exact and then rounded once: to 34 digits, halves to even.

use std::cmp::Ordering;

use super::super::datum::Datum;
use super::super::operators::Op;
use super::decimal::{self, DIGITS_MAX, Digits};
use super::decimal_powers;
use crate::value::{Decimal, Number, OwnedValue, Value};

const NAN: Decimal = Decimal::NaN;

fn infinity(negative: bool) -> Decimal {
    Decimal::Infinity { negative }
}

/// True with a minus, zeros included.
fn has_minus(decimal: Decimal) -> bool {
    matches!(decimal, Decimal::Infinity { negative: true } | Decimal::Finite { negative: true, .. })
}

fn is_zero(decimal: Decimal) -> bool {
    matches!(decimal, Decimal::Finite { coefficient: 0, .. })
}

/// The same with the other sign.
pub fn negated(decimal: Decimal) -> Decimal {
    match decimal {
        Decimal::NaN => NAN,
        Decimal::Infinity { negative } => infinity(!negative),
        Decimal::Finite { negative, coefficient, exponent } => {
            Decimal::Finite { negative: !negative, coefficient, exponent }
        }
    }
}

/// What `$add`, `$subtract`, `$multiply`, `$divide` or `$mod` makes of two decimals; a divisor is not zero.
pub fn binary(op: Op, a: Decimal, b: Decimal) -> Decimal {
    if a == NAN || b == NAN {
        return NAN;
    }
    match op {
        Op::Add => sum(a, b),
        Op::Subtract => sum(a, negated(b)),
        Op::Multiply => product(a, b),
        Op::Divide => quotient(a, b),
        _ => remainder(a, b),
    }
}

/// The sum of two decimals.
pub fn sum(a: Decimal, b: Decimal) -> Decimal {
    let (Some(mut x), Some(mut y)) = (Digits::of(a), Digits::of(b)) else {
        return match (a, b) {
            (Decimal::Finite { .. }, special) => special,
            (Decimal::Infinity { negative: one }, Decimal::Infinity { negative: other }) if one != other => NAN,
            (special, Decimal::Finite { .. } | Decimal::Infinity { .. }) => special,
            _ => NAN,
        };
    };
    // Digit below digit: for exponents at the two ends these are twelve thousand, which nobody adds often.
    let exponent = x.exponent.min(y.exponent);
    for number in [&mut x, &mut y] {
        let zeros = usize::try_from(number.exponent - exponent).unwrap_or_default();
        if !number.digits.is_empty() {
            number.digits.extend(std::iter::repeat_n(0, zeros));
        }
    }
    let order = x.digits.len().cmp(&y.digits.len()).then_with(|| x.digits.cmp(&y.digits));
    let (large, small) = if order.is_lt() { (y, x) } else { (x, y) };
    let is_sum = large.negative == small.negative;
    // A difference of nothing has no minus.
    let negative = large.negative && (is_sum || order.is_ne());
    let mut others = small.digits.iter().rev();
    let (mut digits, mut carry) = (Vec::with_capacity(large.digits.len() + 1), 0);
    for digit in large.digits.iter().rev() {
        let other = others.next().copied().unwrap_or(0) + carry;
        let total = if is_sum { digit + other } else { digit + 10 - other };
        digits.push(total % 10);
        carry = u8::from(is_sum == (total >= 10));
    }
    if is_sum {
        digits.push(carry);
    }
    digits.reverse();
    Digits { negative, digits, exponent }.round(false)
}

pub fn product(a: Decimal, b: Decimal) -> Decimal {
    let negative = has_minus(a) != has_minus(b);
    let (Some(x), Some(y)) = (Digits::of(a), Digits::of(b)) else {
        return if is_zero(a) || is_zero(b) { NAN } else { infinity(negative) };
    };
    let mut places = vec![0_u32; x.digits.len() + y.digits.len()];
    for (shift, digit) in x.digits.iter().enumerate() {
        for (place, other) in places.iter_mut().skip(shift + 1).zip(&y.digits) {
            *place += u32::from(*digit) * u32::from(*other);
        }
    }
    let mut carry = 0;
    for place in places.iter_mut().rev() {
        let total = *place + carry;
        (*place, carry) = (total % 10, total / 10);
    }
    let digits = places.iter().map(|place| *place as u8).collect();
    Digits { negative, digits, exponent: x.exponent + y.exponent }.round(false)
}

pub fn quotient(a: Decimal, b: Decimal) -> Decimal {
    let negative = has_minus(a) != has_minus(b);
    let Decimal::Finite { coefficient: divisor, exponent, .. } = b else {
        // Of two infinities nothing is known.
        return if let Decimal::Finite { .. } = a {
            Digits { negative, digits: Vec::new(), exponent: i32::MIN / 2 }.round(false)
        } else {
            NAN
        };
    };
    let Some(x) = Digits::of(a) else { return infinity(negative) };
    let divisor = divisor.max(1);
    let (mut digits, mut rest) = (Vec::new(), 0);
    let mut exponent = x.exponent - exponent;
    let mut given = x.digits.iter();
    // No divisor is above 10^34, and ten times what is left fits.
    loop {
        let next = given.next();
        if next.is_none() {
            if rest == 0 || digits.len() > DIGITS_MAX {
                break;
            }
            exponent -= 1;
        }
        rest = rest * 10 + u128::from(next.copied().unwrap_or(0));
        if rest >= divisor || !digits.is_empty() {
            digits.push((rest / divisor) as u8);
        }
        rest %= divisor;
    }
    Digits { negative, digits, exponent }.round(rest != 0)
}

/// What is left of `a`, with its sign, when whole multiples of `b` are taken away.
fn remainder(a: Decimal, b: Decimal) -> Decimal {
    let (Some(x), Decimal::Finite { coefficient: mut divisor, exponent, .. }) = (Digits::of(a), b) else {
        return if let Decimal::Finite { .. } = a { a } else { NAN };
    };
    let mut lowest = exponent;
    while lowest > x.exponent {
        // What is above all digits of `a` is never reached.
        match divisor.checked_mul(10).filter(|larger| larger.ilog10() < 37) {
            Some(larger) => divisor = larger,
            None => return a,
        }
        lowest -= 1;
    }
    let mut rest = 0;
    let zeros = usize::try_from(x.exponent - lowest).unwrap_or_default();
    for digit in x.digits.iter().copied().chain(std::iter::repeat_n(0, zeros)) {
        rest = (rest * 10 + u128::from(digit)) % divisor.max(1);
    }
    Decimal::Finite { negative: x.negative, coefficient: rest, exponent: lowest }
}

/// `$abs`, `$ceil`, `$floor`, `$trunc` and `$round` of a decimal, the latter to so many places.
pub fn unary(op: Op, decimal: Decimal, places: i64) -> Decimal {
    let Some(mut number) = Digits::of(decimal) else {
        return if op == Op::Abs && decimal != NAN { infinity(false) } else { decimal };
    };
    if op == Op::Abs {
        return if number.negative { negated(decimal) } else { decimal };
    }
    let exponent = i32::try_from(-places).unwrap_or_default();
    let cut = usize::try_from(exponent - number.exponent).unwrap_or_default();
    let kept = number.digits.len().saturating_sub(cut);
    let mut dropped = number.digits.split_off(kept);
    // What lies in front of the first digit are zeros.
    let behind_zero = cut > dropped.len();
    if behind_zero {
        dropped.insert(0, 0);
    }
    let is_more = dropped.iter().any(|digit| *digit > 0);
    let half = dropped.split_first().map_or(Ordering::Less, |(first, rest)| {
        first.cmp(&5).then(if rest.iter().any(|digit| *digit > 0) { Ordering::Greater } else { Ordering::Equal })
    });
    let is_odd = number.digits.last().is_some_and(|digit| digit % 2 == 1);
    let up = match op {
        Op::Ceil => is_more && !number.negative,
        Op::Floor => is_more && number.negative,
        Op::Round => half.is_gt() || half.is_eq() && is_odd,
        _ => false,
    };
    if up {
        number.count_up();
    }
    // Zeros behind, as many as there is room for.
    let zeros = usize::try_from(number.exponent - exponent).unwrap_or_default();
    number.exponent = number.exponent.max(exponent);
    if number.digits.is_empty() || zeros + number.digits.len() <= DIGITS_MAX {
        if !number.digits.is_empty() {
            number.digits.extend(std::iter::repeat_n(0, zeros));
        }
        number.exponent = exponent;
    }
    number.round(false)
}

/// A sum of decimals and another number, or its mean where `count` says of how many.
pub fn total(decimals: Decimal, other: Number, count: Option<u64>) -> Datum<'static> {
    let total = sum(decimals, decimal::of(other));
    let count = count.and_then(|count| i64::try_from(count).ok());
    decimal::datum(count.map_or(total, |count| quotient(total, count.into())))
}

/// What `$add`, `$subtract`, `$multiply` or `$divide` makes of two numbers, the latter not by zero: a decimal where one is among them, an
/// integer where integers are subtracted, else a double.
fn numbers(op: Op, a: Number, b: Number) -> Number {
    if let (Number::Decimal(_), _) | (_, Number::Decimal(_)) = (a, b) {
        return Number::Decimal(binary(op, decimal::of(a), decimal::of(b)));
    }
    if let (Number::Integer(a), Number::Integer(b), Op::Subtract) = (a, b, op)
        && let Some(difference) = a.checked_sub(b)
    {
        return Number::Integer(difference);
    }
    let (a, b) = (a.near_double(), b.near_double());
    Number::Double(match op {
        Op::Add => a + b,
        Op::Subtract => a - b,
        Op::Multiply => a * b,
        _ => a / b,
    })
}

/// The sum of two numbers.
pub fn plus(a: Number, b: Number) -> Number {
    numbers(Op::Add, a, b)
}

/// The difference of two numbers. Between integers it is exact: those of a clock that counts nanoseconds are beyond those that doubles hold.
pub fn minus(a: Number, b: Number) -> Number {
    numbers(Op::Subtract, a, b)
}

/// The product of two numbers.
pub fn times(a: Number, b: Number) -> Number {
    numbers(Op::Multiply, a, b)
}

/// The quotient of two numbers, of which the second is not zero.
pub fn over(a: Number, b: Number) -> Number {
    numbers(Op::Divide, a, b)
}

/// A decimal, or else a double.
pub fn result(number: Number) -> OwnedValue {
    match number {
        Number::Decimal(decimal) => decimal::datum(decimal).view().map_or_else(OwnedValue::null, Value::to_owned),
        other => OwnedValue::double(other.near_double()),
    }
}

/// What an operator of arithmetic makes of two numbers one of which is a decimal, or of one, to so many places. False where the second
/// half of the module is not there.
#[inline(never)]
pub fn decimals_if_loaded(op: Op, numbers: [Number; 2], places: i64, result: &mut Datum<'_>) -> bool {
    let [a, b] = numbers.map(decimal::of);
    *result = decimal::datum(match op {
        Op::Add | Op::Subtract | Op::Multiply | Op::Divide | Op::Mod => binary(op, a, b),
        Op::Abs | Op::Ceil | Op::Floor | Op::Trunc | Op::Round => unary(op, a, places),
        Op::Sqrt => decimal_powers::sqrt(a),
        // Nobody asks, but without this answer the compiler would leave all of them out.
        _ => return false,
    });
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `operator a b result`, a line each, by the rules of IEEE 754-2008 for 128 bits.
    fn check(vectors: &str) {
        for line in vectors.lines() {
            let [name, a, b, wanted] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
            let places = if matches!(name, "round" | "trunc") { b.parse().unwrap() } else { 0 };
            let op = match name {
                "add" => Op::Add,
                "subtract" => Op::Subtract,
                "multiply" => Op::Multiply,
                "divide" => Op::Divide,
                "mod" => Op::Mod,
                "round" => Op::Round,
                "trunc" => Op::Trunc,
                "ceil" => Op::Ceil,
                _ => Op::Floor,
            };
            let [a, b, wanted] = [a, b, wanted].map(|text| decimal::parse(text).unwrap());
            let found = match op {
                Op::Round | Op::Trunc | Op::Ceil | Op::Floor => unary(op, a, places),
                _ => binary(op, a, b),
            };
            assert_eq!(found, wanted, "{line}");
        }
    }

    #[test]
    fn results_are_rounded_once_and_keep_the_exponents_that_the_standard_wants() {
        check(include_str!("decimal_vectors.txt"));
    }
}
