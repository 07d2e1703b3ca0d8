//! Powers, logarithms and roots of decimals. They are computed with 77 decimal places and rounded once, so that all 34
//! digits are right, unless the digits that follow are a half to more than 30 digits.

// Loaded later.

use super::arithmetic::{negated, product, quotient};
use super::model::Decimal;
use super::parse::{DIGITS_MAX, Digits, from_double};
use crate::env::math;

/// Limbs of integer and fraction, lowest first: 128 and 256 bits.
const LIMBS: usize = 12;
const FRACTION_LIMBS: usize = 8;
/// Reliable digits of the fraction.
const FRACTION_DIGITS: i32 = 76;
/// Beyond this size, powers of e are above or below all decimals.
const POWER_MAX: f64 = 14_300.0;

/// A non-negative fixed-point number. Digits below the last bit are cut off.
#[derive(Clone, Copy, PartialEq)]
struct Fixed([u32; LIMBS]);

/// The natural logarithm of ten.
const LN_10: Fixed = Fixed([
    0x07c0b5ca, 0x0f187a08, 0x6977e43a, 0x8a3fb3e7, 0x0b4c28a3, 0xa95b58ae, 0xaaa2b05b, 0x4d763776, 0x00000002, 0, 0, 0,
]);
/// Its reciprocal.
const LOG_E: Fixed = Fixed([
    0x7bc7529e, 0x1d1f96a2, 0x22e4d101, 0x1f71a301, 0xd699ee19, 0x9aadd557, 0x9b9438ca, 0x6f2dec54, 0x00000000, 0, 0, 0,
]);
const ZERO: Fixed = Fixed([0; LIMBS]);
const ONE: Fixed = Fixed([0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0]);

/// The lower half.
fn low(n: u64) -> u32 {
    n as u32
}

impl Fixed {
    /// A coefficient times a power of ten, below 2^128.
    fn new(coefficient: u128, exponent: i32) -> Fixed {
        let mut made = ZERO;
        for (at, limb) in made.0.iter_mut().skip(FRACTION_LIMBS).enumerate() {
            *limb = (coefficient >> (32 * at)) as u32;
        }
        let mut left = exponent.unsigned_abs();
        while left > 0 {
            let step = left.min(9);
            left -= step;
            let power = 10_u32.pow(step);
            made = if exponent < 0 { made.divided(power) } else { made.times(power).0 };
        }
        made
    }

    fn integer(&self) -> u128 {
        self.0.iter().skip(FRACTION_LIMBS).rev().fold(0, |all, limb| all << 32 | u128::from(*limb))
    }

    fn plus(mut self, other: &Fixed) -> Fixed {
        let mut carry = 0;
        for (limb, other) in self.0.iter_mut().zip(other.0) {
            let total = u64::from(*limb) + u64::from(other) + carry;
            (*limb, carry) = (low(total), total >> 32);
        }
        self
    }

    /// The difference; zero if it is negative because of truncation.
    fn minus(mut self, other: &Fixed) -> Fixed {
        let mut borrow = 0;
        for (limb, other) in self.0.iter_mut().zip(other.0) {
            let total = (1 << 32) + u64::from(*limb) - u64::from(other) - borrow;
            (*limb, borrow) = (low(total), 1 - (total >> 32));
        }
        if borrow > 0 { ZERO } else { self }
    }

    /// The product, and its overflow.
    fn times(mut self, factor: u32) -> (Fixed, u32) {
        let mut carry = 0;
        for limb in &mut self.0 {
            let total = u64::from(*limb) * u64::from(factor) + carry;
            (*limb, carry) = (low(total), total >> 32);
        }
        (self, low(carry))
    }

    fn divided(mut self, divisor: u32) -> Fixed {
        let mut rest = 0;
        for limb in self.0.iter_mut().rev() {
            let total = rest << 32 | u64::from(*limb);
            (*limb, rest) = (low(total / u64::from(divisor.max(1))), total % u64::from(divisor.max(1)));
        }
        self
    }

    /// The product of two numbers, below 2^128.
    fn by(&self, other: &Fixed) -> Fixed {
        let mut wide = [0; 2 * LIMBS];
        for (shift, limb) in self.0.iter().enumerate().filter(|(_, limb)| **limb > 0) {
            let mut carry = 0;
            for (place, other) in wide.iter_mut().skip(shift).zip(other.0.iter().chain([&0])) {
                let total = u64::from(*place) + u64::from(*limb) * u64::from(*other) + carry;
                (*place, carry) = (low(total), total >> 32);
            }
        }
        let mut made = ZERO;
        made.0.iter_mut().zip(wide.iter().skip(FRACTION_LIMBS)).for_each(|(to, from)| *to = *from);
        made
    }

    /// The exponential of a small number: 1 + x + x²/2 + x³/6 + …
    fn power_of_e(&self) -> Fixed {
        let (mut sum, mut term, mut n) = (ZERO, ONE, 0);
        while term != ZERO {
            sum = sum.plus(&term);
            n += 1;
            term = term.by(self).divided(n);
        }
        sum
    }

    /// As a decimal, times a power of ten.
    fn rounded(mut self, negative: bool, power: i32) -> Decimal {
        let whole = Decimal::Finite { negative, coefficient: self.integer(), exponent: 0 };
        let mut digits = Digits::of(whole).map_or_else(Vec::new, |whole| whole.digits);
        for _ in 0..FRACTION_DIGITS {
            self.0.iter_mut().skip(FRACTION_LIMBS).for_each(|limb| *limb = 0);
            self = self.times(10).0;
            digits.push(self.integer() as u8);
        }
        Digits { negative, digits, exponent: power - FRACTION_DIGITS }.round(true)
    }
}

/// A positive number as a mantissa with one digit before the decimal point, and its power of ten.
fn scaled(coefficient: u128, exponent: i32) -> (Fixed, i32) {
    let power = coefficient.checked_ilog10().unwrap_or_default().cast_signed();
    (Fixed::new(coefficient, -power), exponent + power)
}

/// The natural logarithm of a number from 1 to 10.
fn small_logarithm(x: &Fixed) -> Fixed {
    // Starts with the double's logarithm, slightly lowered, so that the remainder is positive.
    let first = (math::ln(x.rounded(false, 0).near_double()) - 1e-15).max(0.0);
    let bits = ((first * (1_u64 << 52) as f64) as u128) << 12;
    let mut begun = ZERO;
    for (at, limb) in begun.0.iter_mut().skip(FRACTION_LIMBS - 2).take(3).enumerate() {
        *limb = (bits >> (32 * at)) as u32;
    }
    // x = e^begun × (1 + rest), where e^-begun is e^(ln 10 - begun) / 10.
    let rest = LN_10.minus(&begun).power_of_e().divided(10).by(x).minus(&ONE);
    // ln(1 + t) = t - t²/2 + t³/3 - t⁴/4 + t⁵/5; further terms are below the last bit.
    let series = (1..=5).rev().fold(ZERO, |inner, n| ONE.divided(n).minus(&rest.by(&inner)));
    begun.plus(&rest.by(&series))
}

/// A logarithm from those of the mantissa and of the power of ten, both in the same base, and whether it is negative.
fn logarithm(small: &Fixed, ten: &Fixed, power: i32) -> (Fixed, bool) {
    let large = ten.times(power.unsigned_abs()).0;
    if power < 0 { (large.minus(small), true) } else { (large.plus(small), false) }
}

/// The natural logarithm of a finite positive number.
fn natural(coefficient: u128, exponent: i32) -> (Fixed, bool) {
    let (digits, power) = scaled(coefficient, exponent);
    let small = if digits == ONE { ZERO } else { small_logarithm(&digits) };
    logarithm(&small, &LN_10, power)
}

/// e to the power of a number of at most `POWER_MAX`.
fn power_of_e(x: &Fixed, negative: bool) -> Decimal {
    let tens = x.by(&LOG_E).integer() as u32;
    let rest = x.minus(&LN_10.times(tens).0);
    let tens = tens.cast_signed();
    if negative {
        LN_10.minus(&rest).power_of_e().rounded(false, -tens - 1)
    } else {
        rest.power_of_e().rounded(false, tens)
    }
}

/// A number above all decimals, or nearer to zero than all.
fn beyond(is_above: bool) -> Decimal {
    let (digits, exponent) = if is_above { (vec![1], i32::MAX / 2) } else { (Vec::new(), i32::MIN / 2) };
    Digits { negative: false, digits, exponent }.round(false)
}

/// e to the power of a number.
pub fn exp(x: Decimal) -> Decimal {
    let size = x.near_double();
    match x {
        Decimal::Finite { negative, coefficient: 1.., .. } if size.abs() > POWER_MAX => beyond(!negative),
        Decimal::Finite { negative, coefficient: coefficient @ 1.., exponent } => {
            power_of_e(&Fixed::new(coefficient, exponent), negative)
        }
        Decimal::Finite { .. } => 1.into(),
        _ => from_double(math::exp(size)),
    }
}

/// The natural logarithm of a non-negative number.
pub fn ln(x: Decimal) -> Decimal {
    match x {
        Decimal::Finite { coefficient: coefficient @ 1.., exponent, .. } => {
            let (found, negative) = natural(coefficient, exponent);
            if found == ZERO { 0.into() } else { found.rounded(negative, 0) }
        }
        _ => from_double(math::ln(x.near_double())),
    }
}

/// The logarithm to base ten of a non-negative number.
pub fn log10(x: Decimal) -> Decimal {
    match x {
        Decimal::Finite { coefficient: coefficient @ 1.., exponent, .. } => match scaled(coefficient, exponent) {
            (ONE, power) => i64::from(power).into(),
            (digits, power) => {
                let (found, negative) = logarithm(&small_logarithm(&digits).by(&LOG_E), &ONE, power);
                found.rounded(negative, 0)
            }
        },
        _ => from_double(math::log10(x.near_double())),
    }
}

/// The square root of a non-negative number.
pub fn sqrt(x: Decimal) -> Decimal {
    let Decimal::Finite { coefficient: coefficient @ 1.., exponent, .. } = x else {
        return if let Decimal::Finite { negative, exponent, .. } = x {
            Decimal::Finite { negative, coefficient: 0, exponent: exponent.div_euclid(2) }
        } else {
            x
        };
    };
    let (log, negative) = natural(coefficient, exponent);
    let Some(mut root) = Digits::of(power_of_e(&log.divided(2), negative)) else { return x };
    // An exact result gets no extra zeros.
    let rounded = root.clone().round(false);
    while root.exponent < exponent.div_euclid(2) && root.digits.last() == Some(&0) {
        root.digits.pop();
        root.exponent += 1;
    }
    let is_short = root.digits.len() <= DIGITS_MAX / 2;
    let short = root.round(false);
    if is_short && product(short, short).compare(x).is_eq() { short } else { rounded }
}

/// A number without a fraction; `None` if it has one. Numbers that are too large count as even.
fn whole(coefficient: u128, exponent: i32) -> Option<u128> {
    let power = 10_u128.checked_pow(exponent.unsigned_abs());
    if exponent >= 0 {
        return Some(power.and_then(|power| coefficient.checked_mul(power)).unwrap_or(u128::MAX - 1));
    }
    power.filter(|power| coefficient.is_multiple_of(*power)).map(|power| coefficient / power)
}

/// A number to the power of another, which must not be negative if the number is zero.
pub fn power(x: Decimal, y: Decimal) -> Decimal {
    let (
        Decimal::Finite { negative, coefficient: coefficient @ 1.., exponent },
        Decimal::Finite { negative: is_below, coefficient: by @ 1.., exponent: scale },
    ) = (x, y)
    else {
        let is_one = matches!(y, Decimal::Finite { coefficient: 0, .. });
        return if is_one { 1.into() } else { from_double(math::pow(x.near_double(), y.near_double())) };
    };
    let whole = whole(by, scale);
    let is_odd = whole.is_some_and(|whole| whole % 2 == 1);
    // Small powers of few digits are exact.
    let exact = whole.and_then(|whole| {
        let count = i32::try_from(whole).ok()?;
        let coefficient =
            coefficient.checked_pow(count.unsigned_abs()).filter(|power| *power < 10_u128.pow(DIGITS_MAX as u32))?;
        let exponent = exponent.checked_mul(count)?;
        Some(Digits::of(Decimal::Finite { negative: negative && is_odd, coefficient, exponent })?.round(false))
    });
    match exact {
        // Even if a power is beyond all decimals, its reciprocal may not be.
        Some(exact @ Decimal::Finite { coefficient: 1.., .. }) if is_below => return quotient(1.into(), exact),
        Some(exact) if !is_below => return exact,
        _ if negative && whole.is_none() => return Decimal::NaN,
        _ => {}
    }
    let (log, log_is_below) = natural(coefficient, exponent);
    let size = log.rounded(false, 0).near_double() * y.near_double().abs();
    let is_above = log_is_below == is_below;
    let found =
        if size > POWER_MAX { beyond(is_above) } else { power_of_e(&log.by(&Fixed::new(by, scale)), !is_above) };
    if negative && is_odd { negated(found) } else { found }
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;

    #[test]
    fn powers_logarithms_and_roots_are_correct_to_34_digits() {
        // Lines of `function x y result`, from an independent implementation with more than a hundred digits.
        for line in include_str!("power_vectors.txt").lines() {
            let [name, x, y, wanted] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
            let number = |text| parse(text).unwrap();
            let (x, y) = (number(x), number(y));
            let found = match name {
                "exp" => exp(x),
                "ln" => ln(x),
                "log10" => log10(x),
                "sqrt" => sqrt(x),
                _ => power(x, y),
            };
            let wanted = number(wanted);
            assert!(found.compare(wanted).is_eq(), "{line}: {found:?}");
            // The number of zeros after an exact power is not specified.
            assert!(name == "pow" || found == wanted, "{line}: {found:?}");
        }
    }
}
