//! Numbers of the four BSON types, compared by exact mathematical value.

use std::cmp::Ordering;

use super::decimal::Decimal;
use super::raw::{Kind, TWO_TO_63, Value};

/// A number, decoded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An int32 or an int64.
    Integer(i64),
    /// A double.
    Double(f64),
    /// A decimal128.
    Decimal(Decimal),
}

impl Number {
    /// The number in a value, if the value is a number.
    pub fn of(value: Value<'_>) -> Option<Number> {
        match value.kind() {
            Kind::Int32 => value.as_i32().map(|n| Number::Integer(n.into())),
            Kind::Int64 => value.as_i64().map(Number::Integer),
            Kind::Double => value.as_f64().map(Number::Double),
            Kind::Decimal128 => value.as_decimal128().map(|bytes| Number::Decimal(Decimal::from_le_bytes(bytes))),
            _ => None,
        }
    }

    /// True for the NaN of doubles and the NaN of decimals.
    pub fn is_nan(self) -> bool {
        match self {
            Number::Integer(_) => false,
            Number::Double(x) => x.is_nan(),
            Number::Decimal(d) => matches!(d, Decimal::NaN),
        }
    }

    /// The number without its fraction; `None` for NaN and outside the range of int64.
    pub fn truncated(self) -> Option<i64> {
        match self {
            Number::Integer(n) => Some(n),
            // In this range the cast only cuts off the fraction.
            #[allow(clippy::cast_possible_truncation)]
            Number::Double(x) => (-TWO_TO_63..TWO_TO_63).contains(&x).then_some(x as i64),
            Number::Decimal(Decimal::Finite { negative, coefficient, exponent }) => {
                let power = 10_u128.checked_pow(exponent.unsigned_abs());
                let size = match (exponent < 0, power) {
                    (true, power) => power.map_or(0, |power| coefficient / power),
                    (false, _) if coefficient == 0 => 0,
                    // Anything larger has more than 64 bits.
                    (false, power) if coefficient < 1 << 64 && exponent <= 19 => coefficient * power?,
                    _ => return None,
                };
                let limit = (1 << 63) - u128::from(!negative);
                if size > limit {
                    return None;
                }
                // At most 64 bits. The sign wraps around at the smallest integer.
                let size = u64::try_from(size).ok()?.cast_signed();
                Some(if negative { size.wrapping_neg() } else { size })
            }
            Number::Decimal(_) => None,
        }
    }

    /// The nearest double; an infinity if the number is too large.
    #[allow(clippy::cast_precision_loss)]
    pub fn near_double(self) -> f64 {
        match self {
            Number::Integer(n) => n as f64,
            Number::Double(x) => x,
            Number::Decimal(d) => d.near_double(),
        }
    }

    /// The number as an int64; `None` unless the conversion is exact.
    pub fn whole(self) -> Option<i64> {
        self.truncated().filter(|n| self.compare(Number::Integer(*n)).is_eq())
    }

    /// Exact order, without rounding either side. NaN equals NaN and is below minus infinity; -0 equals 0.
    pub fn compare(self, other: Number) -> Ordering {
        match (self, other) {
            (Number::Integer(a), Number::Integer(b)) => a.cmp(&b),
            (Number::Double(a), Number::Double(b)) => compare_doubles(a, b),
            (Number::Integer(a), Number::Double(b)) => compare_integer_double(a, b),
            (Number::Double(a), Number::Integer(b)) => compare_integer_double(b, a).reverse(),
            (Number::Decimal(a), Number::Decimal(b)) => a.compare(b),
            (Number::Decimal(a), Number::Integer(b)) => a.compare(b.into()),
            (Number::Integer(a), Number::Decimal(b)) => Decimal::from(a).compare(b),
            (Number::Decimal(a), Number::Double(b)) => a.compare_double(b),
            (Number::Double(a), Number::Decimal(b)) => b.compare_double(a).reverse(),
        }
    }
}

/// Order of doubles in which NaN equals NaN and sorts below every other double.
pub(super) fn compare_doubles(a: f64, b: f64) -> Ordering {
    a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan()))
}

fn compare_integer_double(n: i64, x: f64) -> Ordering {
    if x >= TWO_TO_63 {
        return Ordering::Less;
    }
    if x.is_nan() || x < -TWO_TO_63 {
        return Ordering::Greater;
    }
    // In range, so the cast only cuts off the fraction; if the whole parts are equal, the fraction decides.
    n.cmp(&(x.trunc() as i64)).then_with(|| compare_doubles(0.0, x.fract()))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{decimal, exact_expansion, hostile_numbers};
    use super::super::{OwnedValue, compare, equal};
    use super::*;
    use proptest::prelude::*;

    fn order(a: &OwnedValue, b: &OwnedValue) -> Ordering {
        let forth = compare(a.view(), b.view());
        assert_eq!(compare(b.view(), a.view()), forth.reverse());
        forth
    }

    #[test]
    fn nan_equals_nan_across_types_and_is_below_minus_infinity() {
        let nans = [OwnedValue::double(f64::NAN), OwnedValue::double(-f64::NAN), decimal("NaN"), decimal("-NaN")];
        for a in &nans {
            for b in &nans {
                assert_eq!(order(a, b), Ordering::Equal);
            }
            for least in [OwnedValue::double(f64::NEG_INFINITY), decimal("-Infinity"), OwnedValue::int64(i64::MIN)] {
                assert_eq!(order(a, &least), Ordering::Less);
            }
            assert!(Number::of(a.view()).unwrap().is_nan());
        }
    }

    #[test]
    fn zeros_of_every_type_sign_and_exponent_are_equal() {
        let zeros = [
            OwnedValue::int32(0),
            OwnedValue::int64(0),
            OwnedValue::double(0.0),
            OwnedValue::double(-0.0),
            decimal("0"),
            decimal("-0"),
            decimal("0E+6111"),
            decimal("-0E-6176"),
        ];
        for a in &zeros {
            for b in &zeros {
                assert_eq!(order(a, b), Ordering::Equal, "{a:?} against {b:?}");
            }
        }
    }

    #[test]
    fn infinities_of_doubles_and_decimals_are_equal() {
        assert_eq!(order(&OwnedValue::double(f64::INFINITY), &decimal("Infinity")), Ordering::Equal);
        assert_eq!(order(&OwnedValue::double(f64::NEG_INFINITY), &decimal("-Infinity")), Ordering::Equal);
        assert_eq!(order(&OwnedValue::double(f64::INFINITY), &decimal("9E+6144")), Ordering::Greater);
        assert_eq!(order(&OwnedValue::double(f64::MAX), &decimal("1E+309")), Ordering::Less);
        assert_eq!(order(&OwnedValue::int64(i64::MAX), &decimal("Infinity")), Ordering::Less);
    }

    #[test]
    fn an_int64_beyond_2_to_53_is_not_rounded_against_a_double() {
        let two_to_53 = 9_007_199_254_740_992_i64;
        let double = OwnedValue::double(9_007_199_254_740_992.0);
        assert_eq!(order(&OwnedValue::int64(two_to_53), &double), Ordering::Equal);
        assert_eq!(order(&OwnedValue::int64(two_to_53 + 1), &double), Ordering::Greater);
        assert_eq!(order(&OwnedValue::int64(two_to_53 - 1), &double), Ordering::Less);
        assert_eq!(order(&OwnedValue::int64(i64::MAX), &OwnedValue::double(TWO_TO_63)), Ordering::Less);
        assert_eq!(order(&OwnedValue::int64(i64::MIN), &OwnedValue::double(-TWO_TO_63)), Ordering::Equal);
    }

    #[test]
    fn a_fraction_decides_between_equal_whole_parts() {
        assert_eq!(order(&OwnedValue::int64(3), &OwnedValue::double(3.5)), Ordering::Less);
        assert_eq!(order(&OwnedValue::int32(-3), &OwnedValue::double(-3.5)), Ordering::Greater);
        assert_eq!(order(&OwnedValue::int32(0), &OwnedValue::double(-5e-324)), Ordering::Greater);
        assert_eq!(order(&OwnedValue::int32(0), &OwnedValue::double(5e-324)), Ordering::Less);
    }

    #[test]
    fn a_decimal_and_a_double_are_equal_only_where_they_are_exactly() {
        assert_eq!(order(&decimal("0.1"), &OwnedValue::double(0.1)), Ordering::Less);
        assert_eq!(order(&decimal("-0.1"), &OwnedValue::double(-0.1)), Ordering::Greater);
        assert_eq!(order(&decimal("0.3"), &OwnedValue::double(0.3)), Ordering::Greater);
        assert_eq!(order(&decimal("0.5"), &OwnedValue::double(0.5)), Ordering::Equal);
        assert_eq!(order(&decimal("1E-6176"), &OwnedValue::double(0.0)), Ordering::Greater);
        assert_eq!(order(&decimal("-1E-6176"), &OwnedValue::double(-0.0)), Ordering::Less);
        assert_eq!(order(&decimal("9007199254740993"), &OwnedValue::double(9007199254740992.0)), Ordering::Greater);
    }

    #[test]
    fn a_decimal_and_an_integer_compare_exactly() {
        assert_eq!(order(&decimal("9007199254740993"), &OwnedValue::int64(9_007_199_254_740_993)), Ordering::Equal);
        assert_eq!(order(&decimal("9223372036854775807.5"), &OwnedValue::int64(i64::MAX)), Ordering::Greater);
        assert_eq!(order(&decimal("-9223372036854775808"), &OwnedValue::int64(i64::MIN)), Ordering::Equal);
        assert_eq!(order(&decimal("-1E+30"), &OwnedValue::int64(i64::MIN)), Ordering::Less);
    }

    #[test]
    fn decimals_written_with_other_exponents_are_equal() {
        assert!(equal(decimal("1.0").view(), decimal("1.00").view()));
        assert!(equal(decimal("1E+3").view(), decimal("1000").view()));
        assert!(equal(decimal("1E+3").view(), OwnedValue::int32(1000).view()));
    }

    #[test]
    fn the_integer_part_of_a_number_is_exact_and_absent_beyond_int64() {
        let parts = |value: OwnedValue| {
            let number = Number::of(value.view()).unwrap();
            (number.truncated(), number.whole())
        };
        assert_eq!(parts(OwnedValue::double(-2.9)), (Some(-2), None));
        assert_eq!(parts(OwnedValue::double(-TWO_TO_63)), (Some(i64::MIN), Some(i64::MIN)));
        assert_eq!(parts(OwnedValue::double(TWO_TO_63)), (None, None));
        assert_eq!(parts(OwnedValue::double(f64::NAN)), (None, None));
        assert_eq!(parts(decimal("-9223372036854775808.5")), (Some(i64::MIN), None));
        assert_eq!(parts(decimal("9.223372036854775807E+18")), (Some(i64::MAX), Some(i64::MAX)));
        assert_eq!(parts(decimal("9.3E+18")), (None, None));
        assert_eq!(parts(decimal("1E-6000")), (Some(0), None));
        assert_eq!(parts(decimal("0E+6000")), (Some(0), Some(0)));
        assert_eq!(parts(decimal("1E+6000")), (None, None));
        assert_eq!(parts(decimal("Infinity")), (None, None));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 40 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_order_equals_that_of_exact_decimal_expansions((a, b) in hostile_numbers()) {
            if let (Some(x), Some(y)) = (exact_expansion(a.view()), exact_expansion(b.view())) {
                prop_assert_eq!(order(&a, &b), x.cmp(&y), "{:?} against {:?}", a, b);
            }
        }
    }
}
