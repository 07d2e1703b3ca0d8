//! Doubles as integers: a decimal number with few digits, times a power of ten.

/// The powers of ten. A thousand is not among them.
pub const MULTIPLIERS: [f64; 5] = [1.0, 10.0, 100.0, 1e4, 1e8];

/// Integers of doubles are at most this far from zero. Beyond it, doubles do not represent every integer.
pub const INTEGER_MAX: f64 = 9_007_199_254_740_992.0;

/// The integer of `x`: `x` times `multiplier`, rounded half away from zero. `None` unless dividing it gives exactly the
/// bits of `x` back.
#[inline(always)]
pub fn to_integer(x: f64, multiplier: f64) -> Option<i64> {
    // The largest double below 0.5. Adding 0.5 itself would round some smaller doubles up.
    const HALF: f64 = 0.499_999_999_999_999_94;
    let product = x * multiplier;
    // Also false for NaN.
    if !(-INTEGER_MAX..=INTEGER_MAX).contains(&product) {
        return None;
    }
    // Truncates.
    #[allow(clippy::cast_possible_truncation)]
    let integer = (product + HALF.copysign(product)) as i64;
    // Exact: the integer lies within 2^53.
    #[allow(clippy::cast_precision_loss)]
    let back = integer as f64 / multiplier;
    (back.to_bits() == x.to_bits()).then_some(integer)
}

/// Every decimal number with at most fifteen digits has a double of its own.
const SHORT_END: f64 = 1e15;

/// The shortest decimal number whose nearest double is `x`, which is not negative: its digits as an integer, and how many of them are decimals. `None` if
/// it has more than fifteen digits, and for numbers that need powers of ten beyond 10^22.
#[inline(never)]
pub fn shortest(x: f64) -> Option<(u64, i32)> {
    // Doubles represent these powers exactly.
    let mut power = 1.0;
    for places in 0..23 {
        if x * power >= SHORT_END {
            return None;
        }
        if let Some(integer) = to_integer(x, power) {
            return Some((integer.cast_unsigned(), places));
        }
        power *= 10.0;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_of_more_than_fifteen_digits_are_not_short() {
        for x in [0.1 + 0.2, 1e15, 1.0 / 3.0, f64::MIN_POSITIVE, f64::INFINITY, f64::NAN, 1e-23] {
            assert_eq!(shortest(x), None, "{x}");
        }
    }

    proptest! {
        #[test]
        fn short_numbers_are_those_that_the_standard_library_writes(integer in 0..1_000_000_000_000_000_u64, drop in 0..15_u32, places in 0..23_i32) {
            let x: f64 = format!("{}e-{places}", integer / 10_u64.pow(drop)).parse().unwrap();
            let (digits, places) = shortest(x).unwrap();
            prop_assert!(digits < 1_000_000_000_000_000);
            let written: f64 = format!("{digits}e-{places}").parse().unwrap();
            prop_assert_eq!(written.to_bits(), x.to_bits());
            let significant = |text: &str| text.trim_matches('0').len();
            let shown = format!("{x:e}").split('e').next().unwrap().replace('.', "");
            prop_assert_eq!(significant(&digits.to_string()), significant(&shown));
        }

        #[test]
        fn any_double_that_is_short_is_read_back(bits in any::<u64>()) {
            let x = f64::from_bits(bits).abs();
            if let Some((digits, places)) = shortest(x) {
                let written: f64 = format!("{digits}e-{places}").parse().unwrap();
                prop_assert_eq!(written.to_bits(), x.to_bits());
            }
        }
    }
}
