//! Arithmetic on decimals: exact, then rounded once to 34 digits, half to even.

// Loaded later.

use std::cmp::Ordering;

use super::model::{COEFFICIENT_END, Decimal};
use super::parse::{DIGITS_MAX, Digits, EXPONENT_MAX, EXPONENT_MIN};

const NAN: Decimal = Decimal::NaN;

/// The sum of two coefficients below this has a sign and 127 bits.
const ALIGNED_END: u128 = 10_u128.pow(37);
/// Behind a quotient below this, 18 digits fit.
const LEADING_END: u128 = 10_u128.pow(19);

fn infinity(negative: bool) -> Decimal {
    Decimal::Infinity { negative }
}

/// True for negative numbers and negative zero.
fn has_minus(decimal: Decimal) -> bool {
    matches!(decimal, Decimal::Infinity { negative: true } | Decimal::Finite { negative: true, .. })
}

fn is_zero(decimal: Decimal) -> bool {
    matches!(decimal, Decimal::Finite { coefficient: 0, .. })
}

impl Decimal {
    /// n × 10^exponent. `n` has at most 34 digits.
    pub fn with_exponent(n: i128, exponent: i32) -> Decimal {
        Decimal::Finite { negative: n < 0, coefficient: n.unsigned_abs(), exponent }
    }
}

/// The number with the opposite sign.
pub fn negated(decimal: Decimal) -> Decimal {
    match decimal {
        Decimal::NaN => NAN,
        Decimal::Infinity { negative } => infinity(!negative),
        Decimal::Finite { negative, coefficient, exponent } => {
            Decimal::Finite { negative: !negative, coefficient, exponent }
        }
    }
}

/// The difference of two decimals.
pub fn difference(a: Decimal, b: Decimal) -> Decimal {
    sum(a, negated(b))
}

/// The sum of two decimals.
pub fn sum(a: Decimal, b: Decimal) -> Decimal {
    short_sum(a, b).or_else(|| rounded_sum(a, b)).unwrap_or_else(|| long_sum(a, b))
}

/// The sum of decimals that fit in 128 bits when they have one exponent.
fn short_sum(a: Decimal, b: Decimal) -> Option<Decimal> {
    let (Decimal::Finite { negative, exponent, .. }, Decimal::Finite { negative: other, exponent: below, .. }) = (a, b)
    else {
        return None;
    };
    let exponent = exponent.min(below);
    let total = aligned(a, exponent)? + aligned(b, exponent)?;
    // A zero is negative only if both are.
    let negative = total < 0 || total == 0 && negative && other;
    short(negative, total.unsigned_abs(), exponent, false)
}

/// The sum of decimals of which one ends so far behind the other that its last digits only say how the sum is rounded.
fn rounded_sum(mut a: Decimal, mut b: Decimal) -> Option<Decimal> {
    if let (Decimal::Finite { exponent, .. }, Decimal::Finite { exponent: other, .. }) = (a, b)
        && exponent < other
    {
        (a, b) = (b, a);
    }
    let (
        Decimal::Finite { negative, coefficient, exponent },
        Decimal::Finite { negative: other, coefficient: small, exponent: below },
    ) = (a, b)
    else {
        return None;
    };
    let shift = (ALIGNED_END / 10).checked_ilog10()?.checked_sub(coefficient.checked_ilog10()?)?;
    let dropped = u32::try_from(exponent - below).ok()?.checked_sub(shift).filter(|dropped| *dropped < 35)?;
    let power = 10_u128.pow(dropped);
    let (large, kept) = (coefficient * 10_u128.pow(shift), small / power);
    let has_rest = kept * power < small;
    let total = match negative == other {
        true => large + kept,
        false => large.checked_sub(kept + u128::from(has_rest))?,
    };
    // Of a shorter one, digits behind it would count.
    let is_long = total / 10 >= COEFFICIENT_END;
    short(negative, total, exponent - shift.cast_signed(), has_rest).filter(|_| is_long)
}

/// The coefficient of a decimal with an exponent that is not greater, with its sign.
fn aligned(decimal: Decimal, exponent: i32) -> Option<i128> {
    let Decimal::Finite { negative, coefficient, exponent: own } = decimal else { return None };
    let size = match (u32::try_from(own - exponent).ok()?, u64::try_from(coefficient)) {
        (0, _) => coefficient,
        // The usual case, without a multiplication of 128 bits.
        (power @ ..19, Ok(coefficient)) => u128::from(coefficient) * u128::from(10_u64.pow(power)),
        (power @ ..35, _) => coefficient.checked_mul(10_u128.pow(power)).filter(|size| *size < ALIGNED_END)?,
        _ => return None,
    };
    let size = size as i128;
    Some(if negative { -size } else { size })
}

/// ± n × 10^exponent, rounded to 34 digits, half to even; `has_rest`: non-zero digits follow. `None` if the exponent is out of range.
fn short(negative: bool, mut n: u128, mut exponent: i32, has_rest: bool) -> Option<Decimal> {
    if n >= COEFFICIENT_END {
        let mut power = 10;
        exponent += 1;
        while n / power >= COEFFICIENT_END {
            power *= 10;
            exponent += 1;
        }
        n = cut(n, power, |half, is_odd| half.is_gt() || half.is_eq() && (is_odd || has_rest));
        if n == COEFFICIENT_END {
            n /= 10;
            exponent += 1;
        }
    }
    let is_known = (EXPONENT_MIN..=EXPONENT_MAX).contains(&exponent);
    is_known.then_some(Decimal::Finite { negative, coefficient: n, exponent })
}

/// `n` divided by a power of ten. `is_up` says whether the quotient is rounded up: how the rest compares with half of the power, and whether
/// the quotient is odd.
fn cut(n: u128, power: u128, is_up: impl FnOnce(Ordering, bool) -> bool) -> u128 {
    let whole = n / power;
    let rest = n - whole * power;
    whole + u128::from(is_up((2 * rest).cmp(&power), whole % 2 == 1))
}

/// The sum of any decimals.
fn long_sum(a: Decimal, b: Decimal) -> Decimal {
    let (Some(mut x), Some(mut y)) = (Digits::of(a), Digits::of(b)) else {
        return match (a, b) {
            (Decimal::Finite { .. }, special) => special,
            (Decimal::Infinity { negative: one }, Decimal::Infinity { negative: other }) if one != other => NAN,
            (special, Decimal::Finite { .. } | Decimal::Infinity { .. }) => special,
            _ => NAN,
        };
    };
    // Digit by digit. For exponents at both extremes these are twelve thousand digits, but such sums are rare.
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
    // A difference of zero is positive.
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

/// The product of two decimals.
pub fn product(a: Decimal, b: Decimal) -> Decimal {
    short_product(a, b).unwrap_or_else(|| long_product(a, b))
}

/// The product of decimals whose coefficients have a product of 128 bits.
fn short_product(a: Decimal, b: Decimal) -> Option<Decimal> {
    let (
        Decimal::Finite { negative, coefficient, exponent },
        Decimal::Finite { negative: other, coefficient: factor, exponent: more },
    ) = (a, b)
    else {
        return None;
    };
    let coefficient = match (u64::try_from(coefficient), u64::try_from(factor)) {
        (Ok(coefficient), Ok(factor)) => u128::from(coefficient) * u128::from(factor),
        _ => coefficient.checked_mul(factor)?,
    };
    short(negative != other, coefficient, exponent + more, false)
}

/// The product of any decimals.
fn long_product(a: Decimal, b: Decimal) -> Decimal {
    if a == NAN || b == NAN {
        return NAN;
    }
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

/// The quotient by a divisor of up to 64 bits, not zero.
fn short_quotient(a: Decimal, b: Decimal) -> Option<Decimal> {
    let (
        Decimal::Finite { negative, coefficient, exponent },
        Decimal::Finite { negative: other, coefficient: divisor, exponent: below },
    ) = (a, b)
    else {
        return None;
    };
    let divisor = u128::from(u64::try_from(divisor).ok().filter(|divisor| *divisor > 0)?);
    let wanted = exponent - below;
    let (mut quotient, mut exponent) = (coefficient / divisor, wanted);
    let mut rest = coefficient - quotient * divisor;
    while rest > 0 && quotient < COEFFICIENT_END {
        // As many digits as fit behind those that are known; of the rest, 18 do.
        let places = if quotient < LEADING_END { 18 } else { 4 };
        let power = u128::from(10_u64.pow(places));
        let next = rest * power / divisor;
        rest = rest * power - next * divisor;
        (quotient, exponent) = (quotient * power + next, exponent - places.cast_signed());
    }
    while rest == 0 && exponent < wanted && quotient % 10 == 0 {
        (quotient, exponent) = (quotient / 10, exponent + 1);
    }
    short(negative != other, quotient, exponent, rest > 0)
}

/// The quotient of two decimals; the second must not be zero.
pub fn quotient(a: Decimal, b: Decimal) -> Decimal {
    short_quotient(a, b).unwrap_or_else(|| long_quotient(a, b))
}

/// The quotient of any decimals, digit by digit.
fn long_quotient(a: Decimal, b: Decimal) -> Decimal {
    if a == NAN || b == NAN {
        return NAN;
    }
    let negative = has_minus(a) != has_minus(b);
    let Decimal::Finite { coefficient: divisor, exponent, .. } = b else {
        // The quotient of two infinities is NaN.
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
    let mut dividend = x.digits.iter();
    // The divisor is at most 10^34, so ten times the remainder fits.
    loop {
        let next = dividend.next();
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

/// The remainder of `a` divided by `b`, with the sign of `a`; `b` must not be zero.
pub fn remainder(a: Decimal, b: Decimal) -> Decimal {
    if a == NAN || b == NAN {
        return NAN;
    }
    let (Some(x), Decimal::Finite { coefficient: mut divisor, exponent, .. }) = (Digits::of(a), b) else {
        return if let Decimal::Finite { .. } = a { a } else { NAN };
    };
    let mut lowest = exponent;
    while lowest > x.exponent {
        // Powers of ten above all digits of `a` have no effect.
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

/// The absolute value.
pub fn absolute(decimal: Decimal) -> Decimal {
    match decimal {
        Decimal::Infinity { .. } => infinity(false),
        Decimal::Finite { negative: true, .. } => negated(decimal),
        other => other,
    }
}

/// How to reduce the number of decimal places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// Up.
    Ceil,
    /// Down.
    Floor,
    /// Towards zero.
    Trunc,
    /// To the nearest; halfway, to the even last digit.
    HalfEven,
}

/// A decimal rounded to `places` after the decimal point, or before it if negative.
pub fn rounded(decimal: Decimal, places: i64, rounding: Rounding) -> Decimal {
    short_rounded(decimal, places, rounding).unwrap_or_else(|| long_rounded(decimal, places, rounding))
}

/// The same if up to 33 digits are dropped or added.
fn short_rounded(decimal: Decimal, places: i64, rounding: Rounding) -> Option<Decimal> {
    let Decimal::Finite { negative, coefficient, exponent: own } = decimal else { return None };
    let exponent = i32::try_from(-places).ok()?;
    let power = 10_u128.pow((exponent.checked_sub(own)?).unsigned_abs().min(34));
    if power == COEFFICIENT_END {
        return None;
    }
    if exponent <= own {
        // As many trailing zeros as fit.
        let longer = coefficient.checked_mul(power).filter(|longer| *longer < COEFFICIENT_END)?;
        return short(negative, longer, exponent, false);
    }
    let is_inexact = coefficient % power > 0;
    let kept = cut(coefficient, power, |half, is_odd| match rounding {
        Rounding::Ceil => is_inexact && !negative,
        Rounding::Floor => is_inexact && negative,
        Rounding::HalfEven => half.is_gt() || half.is_eq() && is_odd,
        Rounding::Trunc => false,
    });
    short(negative, kept, exponent, false)
}

fn long_rounded(decimal: Decimal, places: i64, rounding: Rounding) -> Decimal {
    let Some(mut number) = Digits::of(decimal) else { return decimal };
    let exponent = i32::try_from(-places).unwrap_or_default();
    let cut = usize::try_from(exponent - number.exponent).unwrap_or_default();
    let kept = number.digits.len().saturating_sub(cut);
    let mut dropped = number.digits.split_off(kept);
    // Zeros before the first digit.
    let behind_zero = cut > dropped.len();
    if behind_zero {
        dropped.insert(0, 0);
    }
    let is_inexact = dropped.iter().any(|digit| *digit > 0);
    let half = dropped.split_first().map_or(Ordering::Less, |(first, rest)| {
        first.cmp(&5).then(if rest.iter().any(|digit| *digit > 0) { Ordering::Greater } else { Ordering::Equal })
    });
    let is_odd = number.digits.last().is_some_and(|digit| digit % 2 == 1);
    let up = match rounding {
        Rounding::Ceil => is_inexact && !number.negative,
        Rounding::Floor => is_inexact && number.negative,
        Rounding::HalfEven => half.is_gt() || half.is_eq() && is_odd,
        Rounding::Trunc => false,
    };
    if up {
        number.count_up();
    }
    // As many trailing zeros as fit.
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

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::*;
    use proptest::prelude::*;

    fn finite() -> impl Strategy<Value = Decimal> {
        let coefficient = prop_oneof![Just(0), 0..1000_u128, 0..u128::from(u64::MAX), 0..COEFFICIENT_END];
        let exponent = prop_oneof![-20..20, Just(EXPONENT_MIN), Just(EXPONENT_MAX), -3200..-3000];
        let finite = |(negative, coefficient, exponent)| Decimal::Finite { negative, coefficient, exponent };
        (any::<bool>(), coefficient, exponent).prop_map(finite)
    }

    proptest! {
        #[test]
        fn quotients_in_128_bits_equal_those_digit_by_digit(a in finite(), b in finite()) {
            let b = if is_zero(b) { 7.into() } else { b };
            prop_assert_eq!(quotient(a, b), long_quotient(a, b));
        }

        #[test]
        fn decimals_rounded_in_128_bits_equal_those_rounded_digit_by_digit(a in finite(), places in -40..40_i64) {
            for rounding in [Rounding::Ceil, Rounding::Floor, Rounding::Trunc, Rounding::HalfEven] {
                prop_assert_eq!(rounded(a, places, rounding), long_rounded(a, places, rounding));
            }
        }

        #[test]
        fn sums_and_products_in_128_bits_equal_those_digit_by_digit(a in finite(), b in finite()) {
            prop_assert_eq!(sum(a, b), long_sum(a, b));
            prop_assert_eq!(product(a, b), long_product(a, b));
        }
    }

    /// Lines of `operator a b result`, by the rules of IEEE 754-2008 for 128 bits.
    fn check(vectors: &str) {
        for line in vectors.lines() {
            let [name, a, b, wanted] = line.split(' ').collect::<Vec<_>>().try_into().unwrap();
            let [x, wanted] = [a, wanted].map(|text| parse(text).unwrap());
            let y = || parse(b).unwrap();
            let places = || b.parse().unwrap();
            let found = match name {
                "add" => sum(x, y()),
                "subtract" => difference(x, y()),
                "multiply" => product(x, y()),
                "divide" => quotient(x, y()),
                "mod" => remainder(x, y()),
                "round" => rounded(x, places(), Rounding::HalfEven),
                "trunc" => rounded(x, places(), Rounding::Trunc),
                "ceil" => rounded(x, 0, Rounding::Ceil),
                "floor" => rounded(x, 0, Rounding::Floor),
                other => panic!("{other} in a vector"),
            };
            assert_eq!(found, wanted, "{line}");
        }
    }

    #[test]
    fn results_are_rounded_once_and_have_the_standards_preferred_exponents() {
        check(include_str!("arithmetic_vectors.txt"));
    }
}
