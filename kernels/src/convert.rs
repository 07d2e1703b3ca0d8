//! Cells as cells of another type.

/// 1.5 × 2^52: added to a smaller integer, its last digit is worth 1. No instruction converts two integers of 64 bits at once.
const MAGIC: f64 = 6_755_399_441_055_744.0;

/// Integers as the bits of doubles: each becomes the double nearest to it, divided by `divisor`.
#[inline(never)]
pub fn quotients(rows: &mut [i64], divisor: f64) {
    /// Integers nearer to zero than this are found with `MAGIC`.
    const NEAR: i64 = 1 << 51;
    /// Integers nearer to zero than this have at most 26 digits, so a product with 27 more is exact.
    const SMALL: i64 = 1 << 26;
    /// Up to this divisor, no quotient of a small integer is as near to the middle between two doubles as a product may be wrong.
    const DIVISOR_MAX: f64 = 10_000.0;
    // An integer lies between both limits if it is not negative after one of them is added, and below twice that.
    let all_within = |limit: i64| {
        let any = rows.iter().fold(0, |any, n| any | n.wrapping_add(limit).cast_unsigned());
        any < 2 * limit.cast_unsigned()
    };
    if all_within(SMALL) && (1.0..=DIVISOR_MAX).contains(&divisor) && divisor.fract() == 0.0 {
        // Two products take a third of the time of a quotient. The first is exact, and the second is 2^27 times smaller, so that before the last
        // rounding their sum is wrong by less than 2^-78 of itself. That rounding gives what a division gives unless the quotient lies that near to the
        // middle between two doubles. But a middle has 54 digits: times the divisor, it differs from every integer by 2^-54 of the integer or more, so the
        // quotient is 2^-68 of itself away. Nor is it such a middle: the integer would have as many digits.
        let (high, low) = reciprocal(divisor);
        each(rows, |integer| integer * high + integer * low);
    } else if all_within(NEAR) {
        each(rows, |integer| integer / divisor);
    } else {
        for row in rows {
            #[allow(clippy::cast_precision_loss)]
            let double = *row as f64;
            *row = (double / divisor).to_bits().cast_signed();
        }
    }
}

#[inline(always)]
fn each(rows: &mut [i64], f: impl Fn(f64) -> f64) {
    for row in rows {
        let sum = f64::from_bits(MAGIC.to_bits().wrapping_add(row.cast_unsigned()));
        *row = f(sum - MAGIC).to_bits().cast_signed();
    }
}

/// `1 / divisor` as a double of 27 digits and the rest.
#[inline(always)]
fn reciprocal(divisor: f64) -> (f64, f64) {
    let high = f64::from_bits((1.0 / divisor).to_bits() >> 26 << 26);
    // Exact: the divisor has at most 14 digits.
    let rest = 1.0 - high * divisor;
    (high, rest / divisor)
}

/// The low halves.
#[inline(never)]
pub fn int32s(rows: &[i64]) -> Vec<i32> {
    rows.iter().map(|row| *row as i32).collect()
}

/// 0 for 0, 1 for anything else.
#[inline(never)]
pub fn bools(rows: &[i64]) -> Vec<u8> {
    rows.iter().map(|row| u8::from(*row != 0)).collect()
}

/// The cells as doubles, which hold every int32.
#[inline(never)]
pub fn doubles_of_int32s(cells: &[i32]) -> Vec<f64> {
    cells.iter().map(|n| f64::from(*n)).collect()
}

/// The cells as doubles, rounded to the nearest beyond 2^53.
#[inline(never)]
pub fn doubles_of_int64s(cells: &[i64]) -> Vec<f64> {
    #[allow(clippy::cast_precision_loss)]
    cells.iter().map(|n| *n as f64).collect()
}

/// The cells as int64s.
#[inline(never)]
pub fn int64s_of_int32s(cells: &[i32]) -> Vec<i64> {
    cells.iter().map(|n| i64::from(*n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn integers_become_the_nearest_doubles_divided(rows in proptest::collection::vec(any::<i64>(), 0..40), shift in 0..64_u32, divisor in prop_oneof![Just(1.0), Just(10.0), Just(100.0), Just(1e4), Just(1e8)]) {
            let rows: Vec<i64> = rows.iter().map(|n| n >> shift).collect();
            let mut found = rows.clone();
            quotients(&mut found, divisor);
            let found: Vec<f64> = found.iter().map(|n| f64::from_bits(n.cast_unsigned())).collect();
            prop_assert_eq!(found, rows.iter().map(|n| *n as f64 / divisor).collect::<Vec<_>>());
            prop_assert_eq!(doubles_of_int64s(&rows), rows.iter().map(|n| *n as f64).collect::<Vec<_>>());
        }

        #[test]
        fn narrow_types_are_cut_and_widened_as_one_by_one(rows in proptest::collection::vec(any::<i64>(), 0..40), shift in 0..64_u32) {
            let rows: Vec<i64> = rows.iter().map(|n| n >> shift).collect();
            let narrow = int32s(&rows);
            prop_assert_eq!(&narrow, &rows.iter().map(|n| *n as i32).collect::<Vec<_>>());
            prop_assert_eq!(bools(&rows), rows.iter().map(|n| u8::from(*n != 0)).collect::<Vec<_>>());
            prop_assert_eq!(doubles_of_int32s(&narrow), narrow.iter().map(|n| f64::from(*n)).collect::<Vec<_>>());
            prop_assert_eq!(int64s_of_int32s(&narrow), narrow.iter().map(|n| i64::from(*n)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn integers_at_the_edges_of_the_short_ways_are_exact() {
        for n in [
            0,
            1,
            -1,
            (1 << 26) - 1,
            1 << 26,
            -(1 << 26),
            (1 << 51) - 1,
            -(1 << 51),
            1 << 51,
            -(1 << 51) - 1,
            1 << 53,
            i64::MAX,
            i64::MIN,
        ] {
            for divisor in [1.0, 10.0, 100.0, 1e4, 1e8] {
                let mut rows = [n; 3];
                quotients(&mut rows, divisor);
                let bits = (n as f64 / divisor).to_bits().cast_signed();
                assert_eq!(rows, [bits; 3], "{n} / {divisor}");
            }
        }
    }

    #[test]
    fn quotients_of_small_integers_are_those_of_a_division() {
        // Each 4099th: all of them take half a minute, and are right.
        for divisor in [1.0, 10.0, 100.0, 1e4, 9_999.0, 7.0] {
            let mut rows: Vec<i64> = (-(1 << 26) + 1..1 << 26).step_by(4_099).collect();
            let expected: Vec<i64> = rows.iter().map(|n| (*n as f64 / divisor).to_bits().cast_signed()).collect();
            quotients(&mut rows, divisor);
            assert!(rows == expected, "by {divisor}");
        }
    }
}
