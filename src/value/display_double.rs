//! Formats doubles for messages.

use std::fmt;

/// Powers of ten by the bits of the exponent, highest bit first.
const POWERS: [(i32, f64); 9] =
    [(256, 1e256), (128, 1e128), (64, 1e64), (32, 1e32), (16, 1e16), (8, 1e8), (4, 1e4), (2, 1e2), (1, 1e1)];
/// Digits that the divisions keep exact. A double has one or two more, which no message needs.
const DIGITS: i32 = 15;

/// A double for a message, with up to fifteen digits: `1.0`, `0.25`, `1.5e300`.
///
/// The standard library's formatter gives every digit, but its three algorithms and their tables take ten kilobytes of
/// the module.
pub struct DisplayDouble(pub f64);

impl fmt::Display for DisplayDouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DisplayDouble(x) = *self;
        if x.is_nan() {
            return f.write_str("NaN");
        }
        if x.is_sign_negative() {
            f.write_str("-")?;
        }
        let x = x.abs();
        if x.is_infinite() {
            return f.write_str("inf");
        }
        let (digits, exponent) = digits(x);
        if !(-4..16).contains(&exponent) {
            let (first, rest) = digits.split_at_checked(1).unwrap_or_default();
            let dot = if rest.is_empty() { "" } else { "." };
            return write!(f, "{first}{dot}{rest}e{exponent}");
        }
        if let Ok(zeros) = usize::try_from(-1 - exponent) {
            return write!(f, "0.{}{digits}", "000".get(..zeros).unwrap_or_default());
        }
        let whole = usize::try_from(exponent + 1).unwrap_or_default();
        match digits.split_at_checked(whole) {
            Some((whole, rest)) => write!(f, "{whole}.{}", if rest.is_empty() { "0" } else { rest }),
            None => {
                let zeros = "0000000000000000".get(digits.len()..whole).unwrap_or_default();
                write!(f, "{digits}{zeros}.0")
            }
        }
    }
}

/// The digits of a finite number that is not negative, without trailing zeros, and the exponent of the first digit.
fn digits(x: f64) -> (String, i32) {
    if x == 0.0 {
        return ("0".to_owned(), 0);
    }
    // Scales into [1, 10), first from above, then from below. Dividing by a power is exact more often than multiplying
    // by its inverse.
    let mut scaled = x;
    let mut exponent = 0;
    for (bit, power) in POWERS {
        if scaled >= power {
            scaled /= power;
            exponent += bit;
        }
    }
    for (bit, power) in POWERS {
        if scaled < 10.0 / power {
            scaled *= power;
            exponent -= bit;
        }
    }
    // Below 10^15, which every double represents exactly.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let mut number = (scaled * 1e14 + 0.5) as u64;
    if number >= 10_u64.pow(DIGITS.unsigned_abs()) {
        number /= 10;
        exponent += 1;
    }
    let digits = number.to_string();
    (digits.trim_end_matches('0').to_owned(), exponent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn doubles_are_displayed_like_the_standard_library_does() {
        for x in [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.1,
            0.25,
            2.5,
            -7.125,
            10.0,
            100.0,
            123_456.789,
            99.99,
            1e15,
            0.001,
            0.000_012_5,
            1e16,
            1e20,
            1e21,
            1.5e300,
            1e-7,
            2.5e-9,
            3.0e-300,
            4_294_967_296.0,
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ] {
            assert_eq!(DisplayDouble(x).to_string(), format!("{x:?}"));
        }
    }

    proptest! {
        #[test]
        fn fourteen_digits_are_correct(x in -1.79e308..1.79e308_f64) {
            let shown: f64 = DisplayDouble(x).to_string().parse().unwrap();
            prop_assert!(shown == x || ((shown - x) / x).abs() < 1e-14, "{x:?} reads {shown:?}");
        }

        #[test]
        fn numbers_of_few_digits_are_correct(n in -1_000_000_i32..1_000_000, places in 0..5) {
            let x = f64::from(n) / 10_f64.powi(places);
            prop_assert_eq!(DisplayDouble(x).to_string(), format!("{x:?}"));
        }
    }
}
