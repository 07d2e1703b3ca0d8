//! Doubles of decimal numbers with more digits than doubles can hold as integers, in 128 bits, so that nothing is rounded twice.

use std::cmp::Ordering;
use std::ops::Range;

/// The most decimals of a number that is read.
pub const PLACES_MAX: u32 = 19;

/// Doubles represent all integers up to here.
const EXACT_INTEGER_MAX: u64 = 1 << 53;

const FRACTION_BITS: u32 = 52;

/// What is subtracted from the exponent in the bits of a double whose significand is an integer.
const BIAS: i32 = 1075;

/// The double next to `digits` divided by `10^places`; of two, the even one. There are at most `PLACES_MAX` places.
#[inline(always)]
pub(crate) fn nearest(digits: u64, places: u32) -> f64 {
    if places == 0 {
        return digits as f64;
    }
    if digits <= EXACT_INTEGER_MAX {
        // One operation on two exact numbers: doubles represent the powers of ten up to the 22nd.
        return digits as f64 / power(places) as f64;
    }
    divided(digits, places)
}

#[inline(always)]
fn power(places: u32) -> u64 {
    10_u64.pow(places.min(PLACES_MAX))
}

/// The same for digits that are not zero. The quotient has more bits than a double, and the last one says whether any follow.
#[inline(never)]
fn divided(digits: u64, places: u32) -> f64 {
    let shift = digits.leading_zeros();
    let (whole, divisor) = (u128::from(digits << shift) << 64, u128::from(power(places)));
    let (quotient, rest) = (whole / divisor, whole % divisor);
    let zeros = quotient.leading_zeros();
    let bits = quotient << zeros;
    let top = (bits >> 64) as u64 | u64::from(bits as u64 != 0 || rest != 0);
    // Exact: a power of two.
    top as f64 * f64::from_bits(u64::from(1023 - zeros - shift) << FRACTION_BITS)
}

/// The numbers whose digits are found here.
const LONG: Range<f64> = 1e-4..1e15;

/// `x` times `10^places` without its fraction, and how that compares with a half.
#[inline(always)]
fn scaled(x: f64, places: u32) -> (u64, Ordering) {
    let bits = x.to_bits();
    let significand = bits & ((1 << FRACTION_BITS) - 1) | 1 << FRACTION_BITS;
    // Numbers below 10^15 have bits behind the point.
    let shift = (BIAS - (bits >> FRACTION_BITS) as i32).clamp(1, 127).unsigned_abs();
    let product = u128::from(significand) * 10_u128.pow(places);
    ((product >> shift) as u64, (product & ((1 << shift) - 1)).cmp(&(1 << (shift - 1))))
}

/// The decimals of a number with sixteen digits.
#[inline(always)]
fn places_of_sixteen(x: f64) -> u32 {
    match x as u64 {
        0 => 16 + [0.1, 0.01, 0.001].iter().take_while(|power| x < **power).count() as u32,
        whole => 15 - whole.ilog10(),
    }
}

/// The shortest decimal number whose nearest double is `x`, if it has 16 or 17 digits, which `scale::shortest` must have found out: the
/// digits as an integer, and how many of them are decimals. `None` for numbers below 0.0001 or from 10^15 on, and for a few others.
#[inline(never)]
pub fn long(x: f64) -> Option<(u64, u32)> {
    // Below a power of two, doubles are closer together than above.
    if !LONG.contains(&x) || x.to_bits() << (64 - FRACTION_BITS) == 0 {
        return None;
    }
    let sixteen = places_of_sixteen(x);
    for places in [sixteen, sixteen + 1] {
        let (digits, rest) = scaled(x, places);
        if rest == Ordering::Equal {
            return None;
        }
        let digits = digits + u64::from(rest == Ordering::Greater);
        let is_read_back = places > sixteen || nearest(digits, places) == x;
        if is_read_back {
            return Some((digits, places)).filter(|_| !digits.is_multiple_of(10));
        }
    }
    None
}

/// `x` rounded to fifteen digits, half to even: the digits as an integer, and how many of them are decimals. `None` for numbers below 0.0001 or
/// from 10^15 on, and if it is rounded up to a power of ten.
#[inline(never)]
pub fn fifteen(x: f64) -> Option<(u64, u32)> {
    if !LONG.contains(&x) {
        return None;
    }
    let places = places_of_sixteen(x) - 1;
    let (digits, rest) = scaled(x, places);
    let digits = digits + u64::from(rest == Ordering::Greater || rest == Ordering::Equal && digits % 2 == 1);
    Some((digits, places)).filter(|_| digits < 1_000_000_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The digits and places in what the standard library writes.
    fn shown(x: f64) -> (u64, u32) {
        let text = x.to_string();
        let places = text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
        (text.replace('.', "").parse().unwrap(), places as u32)
    }

    #[test]
    fn borders_of_doubles_are_left_to_others() {
        // Short, a power of two, too small, too large, no number.
        for x in [0.5, 1.0, 0.0625, 0.000_012_345_678_901_234_567, 1e15, 0.0, f64::NAN, f64::INFINITY] {
            assert_eq!(long(x), None, "{x}");
        }
        assert_eq!(long(0.1 + 0.2), Some((30_000_000_000_000_004, 17)));
        assert_eq!(long(1.0 / 3.0), Some((3_333_333_333_333_333, 16)));
        assert_eq!(long(f64::from_bits(1e15_f64.to_bits() - 1)), Some((9_999_999_999_999_999, 1)));
        // Halfway between two doubles: the even one.
        assert_eq!(nearest(9_007_199_254_740_993, 0), 9_007_199_254_740_992.0);
        assert_eq!(nearest(90_071_992_547_409_930, 1), 9_007_199_254_740_992.0);
        assert_eq!(nearest(90_071_992_547_409_931, 1), 9_007_199_254_740_994.0);
    }

    proptest! {
        #[test]
        fn doubles_of_digits_are_those_of_the_standard_library(digits in any::<u64>(), drop in 0..64_u32, places in 0..=PLACES_MAX) {
            let digits = digits >> drop;
            let expected: f64 = format!("{digits}e-{places}").parse().unwrap();
            prop_assert_eq!(nearest(digits, places).to_bits(), expected.to_bits(), "{} {}", digits, places);
        }

        #[test]
        fn fifteen_digits_are_those_of_the_standard_library(bits in any::<u64>(), exponent in -14..50_i32) {
            let x = f64::from_bits(u64::from((1023 + exponent) as u32) << 52 | bits >> 12);
            let shown = format!("{x:.14e}");
            let (digits, power) = shown.split_once('e').unwrap();
            let expected: u64 = digits.replace('.', "").parse().unwrap();
            match fifteen(x) {
                Some((digits, places)) => prop_assert_eq!((digits, 14 - places as i32), (expected, power.parse().unwrap()), "{}", x),
                None => prop_assert!(!LONG.contains(&x) || expected == 100_000_000_000_000, "{}", x),
            }
        }

        #[test]
        fn digits_of_doubles_are_those_of_the_standard_library(bits in any::<u64>(), exponent in -14..50_i32) {
            let x = f64::from_bits(u64::from((1023 + exponent) as u32) << 52 | bits >> 12);
            let expected = shown(x);
            match long(x) {
                _ if expected.0 < 1_000_000_000_000_000 => {}
                Some(found) => prop_assert_eq!(found, expected, "{}", x),
                // Doubles of so few bits behind the point may lie halfway between two numbers of 16 or 17 digits.
                None => prop_assert!(!(1e-4..1e10).contains(&x) || bits >> 12 == 0, "{}", x),
            }
        }
    }
}
