//! Converts decimals from and to digits, bytes, text and doubles.

// Loaded later.

use std::cmp::Ordering;

use kernels::{digits, reading, scale};

use super::model::Decimal;
use crate::env::Env;
use crate::value::{Kind, Number, OwnedValue, Value};

/// Maximum number of digits of a coefficient.
pub(super) const DIGITS_MAX: usize = 34;
pub(super) const EXPONENT_MIN: i32 = -6176;
pub(super) const EXPONENT_MAX: i32 = 6111;

/// ± 0.d₁d₂… × 10^(exponent + digits), with the digits as numbers, first to last.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Digits {
    pub negative: bool,
    pub digits: Vec<u8>,
    pub exponent: i32,
}

impl Digits {
    /// The digits of a finite decimal; zero has none.
    pub fn of(decimal: Decimal) -> Option<Digits> {
        let Decimal::Finite { negative, mut coefficient, exponent } = decimal else { return None };
        let mut digits = Vec::with_capacity(16);
        // Divisions of 128 bits are slow.
        while coefficient > u64::MAX.into() {
            digits.push((coefficient % 10) as u8);
            coefficient /= 10;
        }
        let mut rest = u64::try_from(coefficient).unwrap_or_default();
        while rest > 0 {
            digits.push((rest % 10) as u8);
            rest /= 10;
        }
        digits.reverse();
        Some(Digits { negative, digits, exponent })
    }

    /// The digits of a text like `-12.50e+3`. One side of the decimal point may be empty.
    pub fn parse(text: &str) -> Option<Digits> {
        let (negative, mut rest) = signed(text.as_bytes());
        let (mut digits, mut exponent, mut found, mut behind_dot) = (Vec::new(), 0, false, false);
        while let Some((byte, tail)) = rest.split_first() {
            match byte {
                b'0'..=b'9' => {
                    found = true;
                    exponent -= i32::from(behind_dot);
                    if *byte > b'0' || !digits.is_empty() {
                        digits.push(byte - b'0');
                    }
                }
                b'.' if !behind_dot => behind_dot = true,
                b'e' | b'E' => {
                    let (negative, power) = signed(tail);
                    let all_digits = !power.is_empty() && power.iter().all(u8::is_ascii_digit);
                    // Further digits make no difference.
                    let power =
                        power.iter().fold(0_i32, |power, digit| (power * 10 + i32::from(digit & 15)).min(99_999));
                    exponent += if negative { -power } else { power };
                    return Some(Digits { negative: text.starts_with('-'), digits, exponent })
                        .filter(|_| found && all_digits);
                }
                _ => return None,
            }
            rest = tail;
        }
        found.then_some(Digits { negative, digits, exponent })
    }

    /// The nearest decimal of 34 digits, half to even. `has_rest`: non-zero digits follow.
    pub fn round(self, has_rest: bool) -> Decimal {
        self.round_to(DIGITS_MAX, has_rest)
    }

    /// The same with at most `most` digits.
    pub fn round_to(mut self, most: usize, has_rest: bool) -> Decimal {
        let leading = self.digits.iter().take_while(|digit| **digit == 0).count();
        self.digits.drain(..leading);
        let too_small = usize::try_from(EXPONENT_MIN - self.exponent).unwrap_or_default();
        let cut = self.digits.len().saturating_sub(most).max(too_small);
        if cut > 0 {
            let kept = self.digits.len().checked_sub(cut);
            let dropped = self.digits.split_off(kept.unwrap_or_default());
            self.exponent = self.exponent.saturating_add(i32::try_from(cut).unwrap_or(i32::MAX));
            // If the first dropped digit is 0, nothing is rounded up.
            let half = match (kept.is_some(), dropped.split_first()) {
                (true, Some((first, rest))) => first.cmp(&5).then(if has_rest || rest.iter().any(|digit| *digit > 0) {
                    Ordering::Greater
                } else {
                    Ordering::Equal
                }),
                _ => Ordering::Less,
            };
            let is_odd = self.digits.last().is_some_and(|digit| digit % 2 == 1);
            if half.is_gt() || half.is_eq() && is_odd {
                self.count_up();
                if self.digits.len() > most {
                    self.digits.pop();
                    self.exponent += 1;
                }
            }
        }
        self.clamped()
    }

    fn multiply(&mut self, factor: u32) {
        let mut carry = 0;
        let digit_of = |total: u64| (u8::try_from(total % 10).unwrap_or_default(), total / 10);
        for digit in self.digits.iter_mut().rev() {
            (*digit, carry) = digit_of(u64::from(*digit) * u64::from(factor) + carry);
        }
        while carry > 0 {
            let (digit, rest) = digit_of(carry);
            self.digits.insert(0, digit);
            carry = rest;
        }
    }

    pub fn count_up(&mut self) {
        for digit in self.digits.iter_mut().rev() {
            if *digit < 9 {
                *digit += 1;
                return;
            }
            *digit = 0;
        }
        self.digits.insert(0, 1);
    }

    /// Brings the exponent into range.
    fn clamped(mut self) -> Decimal {
        let negative = self.negative;
        if self.digits.is_empty() {
            return Decimal::Finite {
                negative,
                coefficient: 0,
                exponent: self.exponent.clamp(EXPONENT_MIN, EXPONENT_MAX),
            };
        }
        while self.exponent > EXPONENT_MAX {
            if self.digits.len() == DIGITS_MAX {
                return Decimal::Infinity { negative };
            }
            self.digits.push(0);
            self.exponent -= 1;
        }
        let coefficient = self.digits.iter().fold(0, |number, digit| number * 10 + u128::from(*digit));
        Decimal::Finite { negative, coefficient, exponent: self.exponent }
    }

    /// In JSON notation, without the sign.
    fn json(&self) -> String {
        let mut text: String = self.digits.iter().map(|digit| char::from(b'0' + digit)).collect();
        if text.is_empty() {
            text.push('0');
        }
        text.push('e');
        text.push_str(&self.exponent.to_string());
        text
    }

    /// The nearest double.
    pub fn double(&self, env: &dyn Env) -> f64 {
        let size = env.double(&self.json());
        if self.negative { -size } else { size }
    }

    /// As people write it: with a power of ten if the first digit stands below 10^`least`, or at 10^`end` or above.
    fn written(&self, least: i32, end: i32, zero_exponent: bool) -> String {
        let digits: &[u8] = if self.digits.is_empty() { &[0] } else { &self.digits };
        let len = i32::try_from(digits.len()).unwrap_or_default();
        let first = self.exponent + len - 1;
        // Mostly that is enough.
        let mut text = String::with_capacity(digits.len() + 8);
        let put =
            |text: &mut String, digits: &[u8]| digits.iter().for_each(|digit| text.push(char::from(b'0' + digit)));
        if self.negative {
            text.push('-');
        }
        // The digits in front of the point, and those behind it.
        let put_all = |text: &mut String, whole: usize| {
            let (head, tail) = digits.split_at_checked(whole).unwrap_or((digits, &[]));
            put(text, head);
            (digits.len()..whole).for_each(|_| text.push('0'));
            if !tail.is_empty() {
                text.push('.');
                put(text, tail);
            }
        };
        if first < least || first >= end || zero_exponent && self.exponent > 0 {
            put_all(&mut text, 1);
            let upper = zero_exponent;
            text.push(if upper { 'E' } else { 'e' });
            text.push(if first < 0 { '-' } else { '+' });
            // Exponents of doubles have at least two digits.
            if !upper && first.abs() < 10 {
                text.push('0');
            }
            text.push_str(&first.unsigned_abs().to_string());
        } else if first < 0 {
            text.push_str("0.");
            (1..first.unsigned_abs()).for_each(|_| text.push('0'));
            put(&mut text, digits);
        } else {
            put_all(&mut text, usize::try_from(first + 1).unwrap_or_default());
        }
        text
    }
}

fn signed(text: &[u8]) -> (bool, &[u8]) {
    match text.split_first() {
        Some((b'-', rest)) => (true, rest),
        Some((b'+', rest)) => (false, rest),
        _ => (false, text),
    }
}

/// The infinity or NaN that a text names.
fn special(text: &str) -> Option<Decimal> {
    let (negative, name) = signed(text.as_bytes());
    let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
    if is("inf") || is("infinity") {
        return Some(Decimal::Infinity { negative });
    }
    is("nan").then_some(Decimal::NaN)
}

/// The decimal in a text; `None` if there is none or it is too large.
pub fn parse(text: &str) -> Option<Decimal> {
    special(text).or_else(|| match Digits::parse(text)?.round(false) {
        Decimal::Infinity { .. } => None,
        finite => Some(finite),
    })
}

/// The double in a text; `None` if there is none or it is too large.
pub fn parse_double(text: &str, env: &dyn Env) -> Option<f64> {
    if let Some(x) = reading::double(text.as_bytes()) {
        return Some(x);
    }
    match special(text) {
        Some(special) => Some(special.near_double()),
        None => Some(Digits::parse(text)?.double(env)).filter(|x| x.is_finite()),
    }
}

/// The nearest double of a decimal; `None` if it is too large.
pub fn to_double(decimal: Decimal) -> Option<f64> {
    let is_finite = matches!(decimal, Decimal::Finite { .. });
    Some(decimal.near_double()).filter(|x| x.is_finite() || !is_finite)
}

/// The shortest digits that identify a finite double.
fn shortest(x: f64, env: &dyn Env) -> Digits {
    let negative = x.is_sign_negative();
    let long = || digits::long(x.abs()).map(|(digits, places)| (digits, places.cast_signed()));
    if let Some((digits, places)) = scale::shortest(x.abs()).or_else(long) {
        let short = Digits::of(Decimal::Finite { negative, coefficient: digits.into(), exponent: -places });
        return short.unwrap_or(Digits { negative, digits: Vec::new(), exponent: 0 });
    }
    let mut digits =
        Digits::parse(&env.digits(x.abs())).unwrap_or(Digits { negative: false, digits: Vec::new(), exponent: 0 });
    while digits.digits.last() == Some(&0) {
        digits.digits.pop();
        digits.exponent += 1;
    }
    Digits { negative, exponent: if digits.digits.is_empty() { 0 } else { digits.exponent }, ..digits }
}

/// A double as the server formats it.
pub fn double_text(x: f64, env: &dyn Env) -> String {
    if x.is_finite() { shortest(x, env).written(-4, 16, false) } else { text(from_double(x)) }
}

/// A decimal as the server formats it.
pub fn text(decimal: Decimal) -> String {
    match (Digits::of(decimal), decimal) {
        (Some(digits), _) => digits.written(-6, i32::MAX, true),
        (_, Decimal::NaN) => "NaN".to_owned(),
        (_, Decimal::Infinity { negative: true }) => "-Infinity".to_owned(),
        _ => "Infinity".to_owned(),
    }
}

/// A double as a decimal with fifteen digits, as on the server.
pub fn from_double(x: f64) -> Decimal {
    const DIGITS: usize = 15;
    const FRACTION_BITS: u32 = 52;
    let (negative, bits) = (x.is_sign_negative(), x.to_bits());
    if let Some((mut digits @ 1.., places)) = scale::shortest(x.abs()) {
        let mut exponent = -places;
        while digits < 10_u64.pow(14) {
            (digits, exponent) = (10 * digits, exponent - 1);
        }
        return Decimal::Finite { negative, coefficient: digits.into(), exponent };
    }
    if let Some((digits, places)) = digits::fifteen(x.abs()) {
        return Decimal::Finite { negative, coefficient: digits.into(), exponent: -places.cast_signed() };
    }
    if x.is_nan() {
        return Decimal::NaN;
    }
    if x.is_infinite() {
        return Decimal::Infinity { negative };
    }
    let field = i32::try_from(bits >> FRACTION_BITS & 0x7ff).unwrap_or_default();
    let fraction = bits & ((1 << FRACTION_BITS) - 1);
    let whole = if field > 0 { fraction | 1 << FRACTION_BITS } else { fraction };
    // An odd number times a power of two, which becomes a power of ten times one of five.
    let zeros = whole.trailing_zeros();
    let power = field.max(1) - 1075 + zeros.cast_signed();
    let decimal = Decimal::Finite { negative, coefficient: whole.checked_shr(zeros).unwrap_or(0).into(), exponent: 0 };
    let Some(mut digits) = Digits::of(decimal).filter(|digits| !digits.digits.is_empty()) else { return decimal };
    let (factor, mut left): (u32, _) = (if power < 0 { 5 } else { 2 }, power.unsigned_abs());
    while left > 0 {
        // The greatest power of five below 2^32.
        let step = left.min(13);
        digits.multiply(factor.pow(step));
        left -= step;
    }
    digits.exponent = power.min(0);
    while digits.digits.len() < DIGITS {
        digits.digits.push(0);
        digits.exponent -= 1;
    }
    digits.round_to(DIGITS, false)
}

/// A number as a decimal.
pub fn of_number(number: Number) -> Decimal {
    match number {
        Number::Integer(n) => n.into(),
        Number::Double(x) => from_double(x),
        Number::Decimal(decimal) => decimal,
    }
}

/// A decimal as a value.
pub fn to_value(decimal: Decimal) -> OwnedValue {
    let bits = match decimal {
        Decimal::NaN => 0b1_1111 << 122,
        Decimal::Infinity { negative } => 0b1_1110 << 122 | u128::from(negative) << 127,
        Decimal::Finite { negative, coefficient, exponent } => {
            let biased = u128::try_from(exponent - EXPONENT_MIN).unwrap_or_default();
            u128::from(negative) << 127 | biased << 113 | coefficient
        }
    };
    Value::new_checked(Kind::Decimal128, &bits.to_le_bytes()).to_owned()
}
