//! Decoded decimal128 values, and how they compare exactly with doubles.

use std::cmp::Ordering;

use crate::value::number::compare_doubles;

/// Maximum number of digits of a coefficient.
const DIGITS_MAX: u32 = 34;
/// The smallest integer with too many digits.
pub(super) const COEFFICIENT_END: u128 = 10_u128.pow(DIGITS_MAX);

/// A decimal128 (IEEE 754-2008, coefficient in binary).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decimal {
    /// NaN, whatever its sign and payload.
    NaN,
    /// An infinity.
    Infinity {
        /// True for minus infinity.
        negative: bool,
    },
    /// ± coefficient × 10^exponent.
    Finite {
        /// True below zero, and for negative zero.
        negative: bool,
        /// At most 34 digits.
        coefficient: u128,
        /// From -6176 to 6111.
        exponent: i32,
    },
}

/// The absolute value of a number other than zero, as 0.d₁d₂… × 10^scale with 34 digits.
///
/// Equal numbers have equal magnitudes, whatever exponents they were written with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Magnitude {
    /// The decimal exponent: the first digit stands right below 10^scale.
    pub scale: i32,
    /// The digits; the first is not zero.
    pub digits: u128,
}

/// A number truncated towards zero to a double, whether that lost nothing, and in `up` whether the next double away
/// from zero is nearer (or as near, and even).
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::value) struct Truncated {
    pub double: f64,
    pub exact: bool,
    pub up: bool,
}

impl From<i64> for Decimal {
    fn from(n: i64) -> Decimal {
        Decimal::Finite { negative: n < 0, coefficient: n.unsigned_abs().into(), exponent: 0 }
    }
}

impl Decimal {
    /// Decodes the bytes of a BSON value. A coefficient that is not canonical counts as zero, as IEEE 754 requires.
    pub fn from_le_bytes(bytes: [u8; 16]) -> Decimal {
        let bits = u128::from_le_bytes(bytes);
        let negative = bits >> 127 == 1;
        match bits >> 122 & 0b1_1111 {
            0b1_1111 => return Decimal::NaN,
            0b1_1110 => return Decimal::Infinity { negative },
            _ => {}
        }
        // If both upper bits of the combination are set, the coefficient starts with an implied 100 and has 114 bits,
        // more than 34 digits can express.
        let long = bits >> 125 & 0b11 == 0b11;
        let stored = bits & ((1 << 113) - 1);
        let coefficient = if long || stored >= COEFFICIENT_END { 0 } else { stored };
        let biased = bits >> (if long { 111 } else { 113 }) & 0x3fff;
        Decimal::Finite { negative, coefficient, exponent: i32::try_from(biased).unwrap_or_default() - 6176 }
    }

    /// True below zero; false for zeros of both signs.
    pub fn is_negative(self) -> bool {
        match self {
            Decimal::NaN => false,
            Decimal::Infinity { negative } => negative,
            Decimal::Finite { negative, coefficient, .. } => negative && coefficient != 0,
        }
    }

    /// The magnitude of a finite number other than zero.
    pub fn magnitude(self) -> Option<Magnitude> {
        let Decimal::Finite { coefficient, exponent, .. } = self else { return None };
        let (scale, pad) = scale(coefficient, exponent)?;
        Some(Magnitude { scale, digits: coefficient * 10_u128.pow(pad) })
    }

    /// Exact order. NaN equals itself and is lowest; zeros are equal.
    pub fn compare(self, other: Decimal) -> Ordering {
        if let Decimal::Finite { negative, coefficient, exponent } = self
            && let Decimal::Finite { negative: sign, coefficient: size, exponent: scale } = other
            && (negative, exponent) == (sign, scale)
        {
            let sizes = coefficient.cmp(&size);
            return if negative { sizes.reverse() } else { sizes };
        }
        self.rank().cmp(&other.rank()).then_with(|| {
            let sizes = self.magnitude().cmp(&other.magnitude());
            if self.is_negative() { sizes.reverse() } else { sizes }
        })
    }

    /// Exact order against a double; neither side is rounded.
    pub fn compare_double(self, x: f64) -> Ordering {
        // Rounding keeps the order of what it does not make equal.
        if let Some(order) = self.short_double().map(|near| compare_doubles(near, x)).filter(|order| order.is_ne()) {
            return order;
        }
        let cut = self.truncate();
        compare_doubles(cut.double, x).then_with(|| match (cut.exact, self.is_negative()) {
            (true, _) => Ordering::Equal,
            (false, true) => Ordering::Less,
            (false, false) => Ordering::Greater,
        })
    }

    /// The nearest double; an infinity if the number is too large.
    pub fn near_double(self) -> f64 {
        if let Some(near) = self.short_double() {
            return near;
        }
        let cut = self.truncate();
        // The next value after the largest double is infinity.
        f64::from_bits(cut.double.to_bits() + u64::from(cut.up))
    }

    /// The nearest double if coefficient and power of ten are doubles: then one operation rounds once.
    #[allow(clippy::cast_precision_loss)]
    #[inline(never)]
    fn short_double(self) -> Option<f64> {
        let Decimal::Finite { negative, coefficient, exponent } = self else { return None };
        let size = u64::try_from(coefficient).ok().filter(|size| *size < 1 << 53)? as f64;
        let power = 10_u64.checked_pow(exponent.unsigned_abs())? as f64;
        let size = if exponent < 0 { size / power } else { size * power };
        Some(if negative { -size } else { size })
    }

    /// The rank of NaN, minus infinity, below zero, zero, above zero, infinity, in this order.
    fn rank(self) -> i8 {
        match self {
            Decimal::NaN => -3,
            Decimal::Infinity { negative: true } => -2,
            Decimal::Infinity { negative: false } => 2,
            Decimal::Finite { coefficient: 0, .. } => 0,
            Decimal::Finite { negative, .. } => {
                if negative {
                    -1
                } else {
                    1
                }
            }
        }
    }

    /// The nearest double towards zero.
    pub(in crate::value) fn truncate(self) -> Truncated {
        match self {
            Decimal::NaN => Truncated { double: f64::NAN, exact: true, up: false },
            Decimal::Infinity { negative } => {
                let double = if negative { f64::NEG_INFINITY } else { f64::INFINITY };
                Truncated { double, exact: true, up: false }
            }
            Decimal::Finite { negative, coefficient, exponent } => {
                let cut = truncate(coefficient, exponent);
                Truncated { double: if negative { -cut.double } else { cut.double }, ..cut }
            }
        }
    }
}

/// The scale of a magnitude, and how many digits the coefficient lacks to 34. `None` for zero.
fn scale(coefficient: u128, exponent: i32) -> Option<(i32, u32)> {
    let digits = coefficient.checked_ilog10()? + 1;
    Some((exponent + i32::try_from(digits).ok()?, DIGITS_MAX.saturating_sub(digits)))
}

fn truncate(coefficient: u128, exponent: i32) -> Truncated {
    let Some((scale, _)) = scale(coefficient, exponent) else {
        return Truncated { double: 0.0, exact: true, up: false };
    };
    // The largest double is below 10^309, the smallest above 10^-324.
    if scale > 309 {
        return Truncated { double: f64::MAX, exact: false, up: true };
    }
    if scale < -323 {
        return Truncated { double: 0.0, exact: false, up: false };
    }
    let power = exponent.unsigned_abs();
    let five = 5_u128.checked_pow(power);
    if exponent >= 0 {
        return match five.and_then(|five| five.checked_mul(coefficient)) {
            Some(product) => compose(product, exponent, true),
            None => {
                let (top, dropped_bits, rest_is_zero) = Big::from(coefficient).times_five_to(power).top();
                compose(top, exponent + dropped_bits, rest_is_zero)
            }
        };
    }
    // 128 bits divided by less than 2^73 leave at least 55, enough for the 53 of a double.
    if let Some(five) = five.filter(|five| *five < 1 << 73) {
        let shift = coefficient.leading_zeros();
        let numerator = coefficient << shift;
        return compose(numerator / five, exponent - shift.cast_signed(), numerator.is_multiple_of(five));
    }
    let (quotient, exponent_2, exact) = Big::from(coefficient).divide(Big::from(1).times_five_to(power));
    compose(quotient, exponent + exponent_2, exact)
}

/// The double at or below `bits` × 2^`exponent`, which is above zero. `exact` says whether `bits` is the whole number.
fn compose(bits: u128, exponent: i32, exact: bool) -> Truncated {
    let top = 127 - bits.leading_zeros().cast_signed() + exponent;
    if top > 1023 {
        return Truncated { double: f64::MAX, exact: false, up: true };
    }
    // The lowest bit of a double of this size.
    let lowest = (top - 52).max(-1074);
    let drop = lowest - exponent;
    let (mantissa, cut) = if drop <= 0 {
        (bits << drop.unsigned_abs().min(127), 0)
    } else {
        let kept = bits.checked_shr(drop.unsigned_abs()).unwrap_or(0);
        (kept, bits ^ kept.checked_shl(drop.unsigned_abs()).unwrap_or(0))
    };
    // A full mantissa carries its leading 1 into the exponent field, which therefore starts one lower. A subnormal
    // mantissa leaves the field at zero.
    let field = u64::try_from(lowest + 1074).unwrap_or_default();
    let double = f64::from_bits((field << 52) + u64::try_from(mantissa).unwrap_or_default());
    let half = 1_u128.checked_shl((drop - 1).unsigned_abs()).unwrap_or(u128::MAX);
    let up = drop > 0 && (cut > half || cut == half && (!exact || mantissa & 1 == 1));
    Truncated { double, exact: exact && cut == 0, up }
}

/// The double at or below the absolute value of an integer, with the integer's sign.
pub(in crate::value) fn truncate_integer(n: i64) -> Truncated {
    if n == 0 {
        return Truncated { double: 0.0, exact: true, up: false };
    }
    let cut = compose(n.unsigned_abs().into(), 0, true);
    Truncated { double: if n < 0 { -cut.double } else { cut.double }, ..cut }
}

/// A positive integer of any length: limbs from the lowest; the last limb is not zero.
#[derive(Clone, PartialEq, Eq)]
struct Big {
    limbs: Vec<u64>,
}

impl From<u128> for Big {
    fn from(n: u128) -> Big {
        let mut big = Big { limbs: vec![low(n), low(n >> 64)] };
        big.trim();
        big
    }
}

impl Big {
    fn trim(&mut self) {
        while self.limbs.last() == Some(&0) {
            self.limbs.pop();
        }
    }

    fn bit_len(&self) -> u32 {
        let whole = u32::try_from(self.limbs.len()).unwrap_or_default() * 64;
        whole - self.limbs.last().map_or(0, |limb| limb.leading_zeros())
    }

    fn times_five_to(mut self, mut power: u32) -> Big {
        while power > 0 {
            // 5^27 is the largest power of five that fits a limb.
            let step = power.min(27);
            self.multiply(5_u64.pow(step));
            power -= step;
        }
        self
    }

    fn multiply(&mut self, factor: u64) {
        let mut carry = 0;
        for limb in &mut self.limbs {
            let product = u128::from(*limb) * u128::from(factor) + carry;
            *limb = low(product);
            carry = product >> 64;
        }
        if carry > 0 {
            self.limbs.push(low(carry));
        }
    }

    fn shift_left(&mut self, bits: u32) {
        let (whole, part) = (bits / 64, bits % 64);
        if part > 0 {
            self.multiply(1 << part);
        }
        self.limbs.splice(0..0, (0..whole).map(|_| 0));
    }

    fn is_at_least(&self, other: &Big) -> bool {
        let lengths = self.limbs.len().cmp(&other.limbs.len());
        lengths.then_with(|| self.limbs.iter().rev().cmp(other.limbs.iter().rev())).is_ge()
    }

    fn subtract(&mut self, other: &Big) {
        let mut borrow = false;
        let others = other.limbs.iter().chain(std::iter::repeat(&0));
        for (limb, other) in self.limbs.iter_mut().zip(others) {
            let (difference, below) = limb.overflowing_sub(*other);
            let (difference, below_again) = difference.overflowing_sub(borrow.into());
            *limb = difference;
            borrow = below || below_again;
        }
        self.trim();
    }

    /// The upper limbs (at most two, and at least 65 bits if there are more), how many bits lie below them, and whether
    /// those are all zero.
    fn top(&self) -> (u128, i32, bool) {
        let below = self.limbs.len().saturating_sub(2);
        let (rest, top) = self.limbs.split_at_checked(below).unwrap_or_default();
        let bits = top.iter().rev().fold(0, |bits, limb| bits << 64 | u128::from(*limb));
        (bits, i32::try_from(below * 64).unwrap_or_default(), rest.iter().all(|limb| *limb == 0))
    }

    /// Quotient and exponent with self ÷ other = quotient × 2^exponent, truncated to at least 65 bits, and whether that
    /// is exact.
    ///
    /// Works bit by bit: it runs only for coefficients far from a double's, and takes microseconds.
    fn divide(mut self, mut other: Big) -> (u128, i32, bool) {
        const FRACTION_BITS: i32 = 65;
        let shift = other.bit_len().cast_signed() - self.bit_len().cast_signed();
        if shift > 0 {
            self.shift_left(shift.unsigned_abs())
        } else {
            other.shift_left(shift.unsigned_abs())
        }
        let mut quotient = 0_u128;
        for _ in 0..=FRACTION_BITS {
            quotient <<= 1;
            if self.is_at_least(&other) {
                self.subtract(&other);
                quotient |= 1;
            }
            self.multiply(2);
        }
        (quotient, -FRACTION_BITS - shift, self.limbs.is_empty())
    }
}

/// The lower half.
fn low(n: u128) -> u64 {
    u64::try_from(n & u128::from(u64::MAX)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn short_decimals_are_converted_and_compared_as_by_truncation(
            negative: bool, coefficient in prop_oneof![0..100_000_u128, 0..1_u128 << 60], exponent in -21..21, ulps in -1..=1_i64, size in 0..100_000_u128,
        ) {
            let decimal = Decimal::Finite { negative, coefficient, exponent };
            let cut = decimal.truncate();
            let near = f64::from_bits(cut.double.to_bits() + u64::from(cut.up));
            prop_assert_eq!(decimal.near_double().to_bits(), near.to_bits());
            let x = f64::from_bits(near.to_bits().saturating_add_signed(ulps));
            let exact = if negative { Ordering::Less } else { Ordering::Greater };
            let exact = compare_doubles(cut.double, x).then(if cut.exact { Ordering::Equal } else { exact });
            prop_assert_eq!(decimal.compare_double(x), exact);
            // The same number with another exponent is compared by its magnitude.
            let other = |coefficient, exponent| Decimal::Finite { negative, coefficient, exponent };
            prop_assert_eq!(decimal.compare(other(size, exponent)), decimal.compare(other(size * 10, exponent - 1)));
        }
    }

    fn decoded(text: &str) -> Decimal {
        Decimal::from_le_bytes(text.parse::<bson::Decimal128>().unwrap().bytes())
    }

    fn finite(negative: bool, coefficient: u128, exponent: i32) -> Decimal {
        Decimal::Finite { negative, coefficient, exponent }
    }

    /// A decimal from its sign, its biased exponent and its coefficient, canonical or not.
    fn encoded(negative: bool, biased: u128, coefficient: u128) -> Decimal {
        let bits = u128::from(negative) << 127 | biased << 113 | coefficient;
        Decimal::from_le_bytes(bits.to_le_bytes())
    }

    #[test]
    fn sign_coefficient_and_exponent_are_decoded() {
        assert_eq!(decoded("-12.50"), finite(true, 1250, -2));
        assert_eq!(decoded("1E-6176"), finite(false, 1, -6176));
        assert_eq!(decoded("9.999999999999999999999999999999999E+6144"), finite(false, COEFFICIENT_END - 1, 6111));
        assert_eq!(decoded("-0"), finite(true, 0, 0));
        assert_eq!(decoded("-Infinity"), Decimal::Infinity { negative: true });
        assert_eq!(decoded("NaN"), Decimal::NaN);
    }

    #[test]
    fn nan_is_nan_whatever_its_sign_and_payload() {
        for bits in [0b1_1111_u128 << 122, 0b11_1111 << 122, 0b1_1111 << 122 | 7, 0b11_1111 << 121] {
            assert_eq!(Decimal::from_le_bytes(bits.to_le_bytes()), Decimal::NaN);
        }
    }

    #[test]
    fn a_coefficient_of_more_than_34_digits_counts_as_zero() {
        assert_eq!(encoded(false, 6176, COEFFICIENT_END - 1), finite(false, COEFFICIENT_END - 1, 0));
        assert_eq!(encoded(false, 6176, COEFFICIENT_END), finite(false, 0, 0));
        assert_eq!(encoded(true, 6177, (1 << 113) - 1), finite(true, 0, 1));
    }

    #[test]
    fn the_form_with_an_implied_leading_100_counts_as_zero_and_keeps_its_exponent() {
        for (low, biased) in [(0_u128, 6176_u128), (12345, 6180), ((1 << 111) - 1, 3)] {
            let bits = 0b11 << 125 | biased << 111 | low;
            let exponent = i32::try_from(biased).unwrap() - 6176;
            assert_eq!(Decimal::from_le_bytes(bits.to_le_bytes()), finite(false, 0, exponent));
        }
    }

    #[test]
    fn equal_decimals_have_one_magnitude() {
        assert_eq!(decoded("1.0").magnitude(), decoded("1.00").magnitude());
        assert_eq!(decoded("1E+3").magnitude(), decoded("-1000").magnitude());
        assert!(decoded("999").magnitude() < decoded("1E+3").magnitude());
        assert_eq!(decoded("0.00").magnitude(), None);
    }

    fn cut(text: &str) -> (f64, bool) {
        let cut = decoded(text).truncate();
        (cut.double, cut.exact)
    }

    #[test]
    fn truncation_goes_towards_zero_and_says_whether_it_is_exact() {
        assert_eq!(cut("0.5"), (0.5, true));
        assert_eq!(cut("-1234567.125"), (-1234567.125, true));
        assert_eq!(cut("0.1"), (0.1_f64.next_down(), false));
        assert_eq!(cut("-0.1"), ((-0.1_f64).next_up(), false));
        assert_eq!(cut("0.3"), (0.3, false));
        assert_eq!(cut("9007199254740993"), (9_007_199_254_740_992.0, false));
        assert_eq!(cut("1E+22"), (1e22, true));
        assert_eq!(cut("1E+23"), (1e23, false));
    }

    #[test]
    fn truncation_is_exact_beyond_128_bits() {
        // 5^-1 × 10^60 and its like: powers of two whose coefficients take the slow path.
        assert_eq!(cut("1000000000000000000000000000000000E-33"), (1.0, true));
        assert_eq!(cut("3.552713678800500929355621337890625E-15"), (2_f64.powi(-48), true));
        assert_eq!(cut("3.552713678800500929355621337890626E-15"), (2_f64.powi(-48), false));
        assert_eq!(cut("3.552713678800500929355621337890624E-15"), (2_f64.powi(-48).next_down(), false));
        assert_eq!(cut("1E+300"), (1e300_f64.next_down(), false));
    }

    #[test]
    fn subtraction_borrows_through_limbs_of_zero() {
        let mut big = Big { limbs: vec![0, 0, 7, 1] };
        big.subtract(&Big { limbs: vec![1, 0, 7] });
        assert_eq!(big.limbs, [u64::MAX, u64::MAX, u64::MAX]);
    }

    #[test]
    fn beyond_the_range_of_doubles_truncation_stops_at_the_last_one() {
        assert_eq!(cut("1.7976931348623157E+308"), (f64::MAX.next_down(), false));
        assert_eq!(cut("1.7976931348623158E+308"), (f64::MAX, false));
        assert_eq!(cut("1.797693134862315907729305190789025E+308"), (f64::MAX, false));
        assert_eq!(cut("-9E+6144"), (-f64::MAX, false));
        assert_eq!(cut("4.940656458412465E-324"), (0.0, false));
        assert_eq!(cut("4.940656458412466E-324"), (5e-324, false));
        assert_eq!(cut("9.999E-324"), (1e-323, false));
        assert_eq!(cut("2.2250738585072014E-308"), (f64::MIN_POSITIVE, false));
        assert_eq!(cut("2.2250738585072013E-308"), (f64::MIN_POSITIVE.next_down(), false));
        assert_eq!(cut("1E-6176"), (0.0, false));
    }

    #[test]
    fn integers_are_truncated_towards_zero() {
        assert_eq!(truncate_integer(0), Truncated { double: 0.0, exact: true, up: false });
        assert_eq!(
            truncate_integer(i64::MIN),
            Truncated { double: -9_223_372_036_854_775_808.0, exact: true, up: false }
        );
        let below = 9_223_372_036_854_774_784.0;
        assert_eq!(truncate_integer(i64::MAX), Truncated { double: below, exact: false, up: true });
        assert_eq!(truncate_integer(-i64::MAX), Truncated { double: -below, exact: false, up: true });
    }
}
