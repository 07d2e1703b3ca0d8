//! Translates a numeric comparison into closed bounds of a column's type, without rounding.

use std::cmp::Ordering;

use crate::query::expr::CompareOp;
use crate::value::{Decimal, Number};

/// 2^63, the first double too large for an int64.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;

/// The doubles that pass a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Doubles {
    /// None of them.
    Nothing,
    /// Only NaN.
    NaN,
    /// From the first to the second, both included.
    Between(f64, f64),
}

/// The doubles that pass `op` against `operand`.
pub(super) fn doubles(op: CompareOp, operand: Number) -> Doubles {
    if operand.is_nan() {
        return if op.includes_equal() { Doubles::NaN } else { Doubles::Nothing };
    }
    let bounds = match exact_double(operand) {
        // A comparison with a double needs no search, only a step to exclude the operand itself.
        Number::Double(x) => match op {
            CompareOp::Eq => Some((x, x)),
            CompareOp::Gte => Some((x, f64::INFINITY)),
            CompareOp::Lte => Some((f64::NEG_INFINITY, x)),
            CompareOp::Gt => (x < f64::INFINITY).then(|| (x.next_up(), f64::INFINITY)),
            CompareOp::Lt => (x > f64::NEG_INFINITY).then(|| (f64::NEG_INFINITY, x.next_down())),
        },
        _ => {
            let (least, greatest) = (double_rank(f64::NEG_INFINITY), double_rank(f64::INFINITY));
            between(op, least, greatest, |rank| Number::Double(double_of_rank(rank)).compare(operand))
                .map(|(low, high)| (double_of_rank(low), double_of_rank(high)))
        }
    };
    bounds.map_or(Doubles::Nothing, |(low, high)| Doubles::Between(low, high))
}

/// The double that equals an operand, if that is known without comparing digits.
fn exact_double(operand: Number) -> Number {
    match operand {
        // Up to 2^53 every integer has an equal double.
        Number::Integer(n) if n.unsigned_abs() <= 1 << 53 => Number::Double(n as f64),
        other => other,
    }
}

/// The int64s that pass `op` against `operand`: the first and the last.
pub(super) fn int64s(op: CompareOp, operand: Number) -> Option<(i64, i64)> {
    if operand.is_nan() {
        return None;
    }
    match operand {
        Number::Integer(n) => match op {
            CompareOp::Eq => Some((n, n)),
            CompareOp::Gte => Some((n, i64::MAX)),
            CompareOp::Lte => Some((i64::MIN, n)),
            CompareOp::Gt => n.checked_add(1).map(|low| (low, i64::MAX)),
            CompareOp::Lt => n.checked_sub(1).map(|high| (i64::MIN, high)),
        },
        Number::Double(x) if (-TWO_TO_63..TWO_TO_63).contains(&x) => {
            let floor = x.floor();
            // In range and whole, so the cast is exact.
            let whole = Number::Integer(floor as i64);
            match op {
                _ if floor == x => int64s(op, whole),
                CompareOp::Eq => None,
                CompareOp::Gt | CompareOp::Gte => int64s(CompareOp::Gt, whole),
                CompareOp::Lt | CompareOp::Lte => int64s(CompareOp::Lte, whole),
            }
        }
        _ => between(op, i64::MIN, i64::MAX, |n| Number::Integer(n).compare(operand)),
    }
}

/// As `int64s`, for int32s.
pub(super) fn int32s(op: CompareOp, operand: Number) -> Option<(i32, i32)> {
    let (low, high) = int64s(op, operand)?;
    let low = i32::try_from(low.max(i32::MIN.into())).ok()?;
    let high = i32::try_from(high.min(i32::MAX.into())).ok()?;
    (low <= high).then_some((low, high))
}

/// As `int64s`, for the coefficients of decimals with this exponent.
pub(super) fn decimals(op: CompareOp, operand: Number, exponent: i32) -> Option<(i64, i64)> {
    if let Some(n) = coefficient(operand, exponent) {
        return int64s(op, Number::Integer(n));
    }
    let decimal = |n: i64| Number::Decimal(Decimal::with_exponent(n.into(), exponent));
    if operand.is_nan() { None } else { between(op, i64::MIN, i64::MAX, |n| decimal(n).compare(operand)) }
}

/// The coefficient with which a number has this exponent; `None` if there is none, or if it takes a search.
fn coefficient(number: Number, exponent: i32) -> Option<i64> {
    let (n, own) = match exact_integer(number) {
        Number::Integer(n) => (n, 0),
        Number::Decimal(Decimal::Finite { negative, coefficient, exponent }) => {
            let n = i64::try_from(coefficient).ok()?;
            (if negative { -n } else { n }, exponent)
        }
        _ => return None,
    };
    n.checked_mul(10_i64.checked_pow(u32::try_from(own.checked_sub(exponent)?).ok()?)?)
}

/// The integer that equals an operand, if that is known without comparing digits.
fn exact_integer(operand: Number) -> Number {
    match operand {
        // The cast is exact.
        Number::Double(x) if x.trunc() == x && (-TWO_TO_63..TWO_TO_63).contains(&x) => Number::Integer(x as i64),
        other => other,
    }
}

/// The part of `least..=greatest` that passes; `order` must not fall as its argument rises.
fn between(op: CompareOp, least: i64, greatest: i64, order: impl Fn(i64) -> Ordering) -> Option<(i64, i64)> {
    let low = match op {
        CompareOp::Lt | CompareOp::Lte => least,
        CompareOp::Eq | CompareOp::Gte => first(least, greatest, |n| order(n) != Ordering::Less)?,
        CompareOp::Gt => first(least, greatest, |n| order(n) == Ordering::Greater)?,
    };
    let high = match op {
        CompareOp::Gt | CompareOp::Gte => greatest,
        CompareOp::Eq | CompareOp::Lte => before(first(least, greatest, |n| order(n) == Ordering::Greater), greatest)?,
        CompareOp::Lt => before(first(least, greatest, |n| order(n) != Ordering::Less), greatest)?,
    };
    (low <= high).then_some((low, high))
}

fn before(first: Option<i64>, greatest: i64) -> Option<i64> {
    match first {
        Some(n) => n.checked_sub(1),
        None => Some(greatest),
    }
}

/// The first of `least..=greatest` for which `passes` holds; it must stay true from there on.
fn first(least: i64, greatest: i64, passes: impl Fn(i64) -> bool) -> Option<i64> {
    if !passes(greatest) {
        return None;
    }
    let (mut low, mut high) = (least, greatest);
    while low < high {
        let middle = low.midpoint(high);
        // Rounds towards zero, so between two negative neighbours it may give the upper one.
        let middle = if middle == high { low } else { middle };
        if passes(middle) { high = middle } else { low = middle + 1 }
    }
    Some(low)
}

/// The rank of a double among the doubles; -0 is just below 0.
fn double_rank(x: f64) -> i64 {
    flip_negative(x.to_bits().cast_signed())
}

fn double_of_rank(rank: i64) -> f64 {
    f64::from_bits(flip_negative(rank).cast_unsigned())
}

/// Reverses the order of negative numbers, whose bits ascend with their magnitude. It is its own inverse.
fn flip_negative(bits: i64) -> i64 {
    if bits < 0 { bits ^ i64::MAX } else { bits }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Decimal;
    use proptest::prelude::*;

    const OPS: [CompareOp; 5] = [CompareOp::Eq, CompareOp::Gt, CompareOp::Gte, CompareOp::Lt, CompareOp::Lte];

    fn any_double() -> impl Strategy<Value = f64> {
        let near = (any::<i64>(), -2..=2_i64).prop_map(|(n, by)| double_of_rank(double_rank(n as f64) + by));
        prop_oneof![
            any::<f64>(),
            near,
            any::<i8>().prop_map(|n| f64::from(n) / 2.0),
            Just(0.0),
            Just(-0.0),
            Just(f64::NAN),
            Just(f64::INFINITY),
            Just(f64::NEG_INFINITY),
            Just(9_223_372_036_854_775_808.0),
        ]
    }

    fn any_integer() -> impl Strategy<Value = i64> {
        prop_oneof![
            any::<i64>(),
            any::<i8>().prop_map(i64::from),
            any::<i32>().prop_map(i64::from),
            Just(i64::MAX),
            Just(i64::MIN),
            (-3..=3_i64).prop_map(|by| (1 << 53) + by),
            (-3..=3_i64).prop_map(|by| i64::from(i32::MAX) + by),
            (-3..=3_i64).prop_map(|by| i64::from(i32::MIN) + by),
        ]
    }

    fn decimal(text: &str) -> Number {
        Number::Decimal(Decimal::from_le_bytes(text.parse::<bson::Decimal128>().unwrap().bytes()))
    }

    fn any_number() -> impl Strategy<Value = Number> {
        prop_oneof![
            any_double().prop_map(Number::Double),
            any_integer().prop_map(Number::Integer),
            any_double().prop_map(|x| decimal(&if x.is_finite() && x.abs() < 1e30 {
                format!("{x:e}")
            } else {
                "NaN".into()
            })),
            any_integer().prop_map(|n| decimal(&n.to_string())),
            any_integer().prop_map(|n| decimal(&format!("{n}.5"))),
            Just(decimal("Infinity")),
            Just(decimal("-Infinity")),
            Just(decimal("9.9E+6000")),
            Just(decimal("-1E-6000")),
        ]
    }

    /// Whether `cell` matches; NaN is neither above nor below anything.
    fn passes(op: CompareOp, cell: Number, operand: Number) -> bool {
        if cell.is_nan() || operand.is_nan() {
            return cell.is_nan() && operand.is_nan() && op.includes_equal();
        }
        op.holds(cell.compare(operand))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20 * ProptestConfig::default().cases))]
        #[test]
        fn bounds_contain_exactly_the_cells_that_match(
            operand in any_number(), n in any_integer(), x in any_double(), by in -2..=2_i64,
        ) {
            // Cells close to the operand, where rounding would give wrong results.
            let x = match operand {
                Number::Integer(m) if by != 0 => double_of_rank(double_rank(m as f64) + by),
                Number::Double(y) if by != 0 && y.is_finite() => double_of_rank(double_rank(y) + by),
                _ => x,
            };
            let n = match operand {
                Number::Double(y) if by != 0 => (y as i64).saturating_add(by),
                Number::Integer(m) if by != 0 => m.saturating_add(by),
                _ => n,
            };
            for op in OPS {
                let double = match doubles(op, operand) {
                    Doubles::Nothing => false,
                    Doubles::NaN => x.is_nan(),
                    Doubles::Between(low, high) => low <= x && x <= high,
                };
                prop_assert_eq!(double, passes(op, Number::Double(x), operand), "{:?} {:?} {:?}", x, op, operand);
                let long = int64s(op, operand).is_some_and(|(low, high)| low <= n && n <= high);
                prop_assert_eq!(long, passes(op, Number::Integer(n), operand), "{:?} {:?} {:?}", n, op, operand);
                if let Ok(n) = i32::try_from(n) {
                    let int = int32s(op, operand).is_some_and(|(low, high)| low <= n && n <= high);
                    prop_assert_eq!(int, long);
                }
            }
        }
    }

    proptest! {
        #[test]
        fn bounds_of_decimals_contain_exactly_those_that_match(
            operand in any_number(), exponent in prop_oneof![-3..3_i32, Just(-6176), Just(6111)], n in any_integer(), by in -1..=1_i64,
        ) {
            // Cells close to the operand, too.
            let near = coefficient(operand, exponent).map_or(n, |n| n.saturating_add(by));
            for op in OPS {
                for n in [n, near] {
                    let cell = Number::Decimal(Decimal::with_exponent(n.into(), exponent));
                    let found = decimals(op, operand, exponent).is_some_and(|(low, high)| low <= n && n <= high);
                    prop_assert_eq!(found, passes(op, cell, operand), "{} {:?} {:?}", n, op, operand);
                }
            }
        }
    }

    #[test]
    fn a_bound_between_integers_is_rounded_inwards() {
        assert_eq!(int64s(CompareOp::Gt, Number::Double(2.5)), Some((3, i64::MAX)));
        assert_eq!(int64s(CompareOp::Lte, Number::Double(-2.5)), Some((i64::MIN, -3)));
        assert_eq!(int64s(CompareOp::Eq, Number::Double(2.5)), None);
        assert_eq!(int64s(CompareOp::Gt, Number::Integer(i64::MAX)), None);
        assert_eq!(int32s(CompareOp::Gt, Number::Integer(i64::from(i32::MAX))), None);
        assert_eq!(int32s(CompareOp::Lt, Number::Double(f64::INFINITY)), Some((i32::MIN, i32::MAX)));
    }

    #[test]
    fn both_zeros_match_if_one_does() {
        for op in OPS {
            let Doubles::Between(low, high) = doubles(op, Number::Double(-0.0)) else { panic!() };
            let inside = |x: f64| low <= x && x <= high;
            assert_eq!(inside(0.0), inside(-0.0));
            assert_eq!(inside(0.0), op.includes_equal());
        }
    }
}
