//! Stores doubles as integers: a decimal number with few digits becomes an integer when multiplied by a power of ten.

use kernels::scale::MULTIPLIERS;
pub use kernels::scale::to_integer;

/// How a stream maps doubles to integers: 0 to 4 are the powers of ten in `MULTIPLIERS`, and `RAW` takes the bit pattern.
pub type Scale = usize;

/// The scale whose integer is the bit pattern. It can represent every double.
pub const RAW: Scale = 5;

/// The factor of `scale`; 1 for `RAW`, which has none.
#[inline]
pub fn multiplier(scale: Scale) -> f64 {
    MULTIPLIERS.get(scale).copied().unwrap_or(1.0)
}

/// The high nibble of a control byte in that scale. `RAW` shares its nibble with all types other than double.
#[inline]
pub fn nibble_of(scale: Scale) -> u8 {
    if scale >= RAW { 0x80 } else { 0x90 + 0x10 * scale as u8 }
}

/// The scale that the high nibble of a control byte names.
#[inline]
pub fn scale_of(control: u8) -> Option<Scale> {
    match control & 0xF0 {
        0x80 => Some(RAW),
        nibble @ 0x90..=0xD0 => Some(usize::from(nibble >> 4) - 9),
        _ => None,
    }
}

/// The integer of `x` in `scale`; `None` if it has none.
#[inline(always)]
pub fn encode(x: f64, scale: Scale) -> Option<i64> {
    match MULTIPLIERS.get(scale) {
        Some(multiplier) => to_integer(x, *multiplier),
        None => Some(x.to_bits().cast_signed()),
    }
}

/// The double of an integer in `scale`. It is a true division, which gives the encoded bits back.
#[inline(always)]
pub fn decode(integer: i64, scale: Scale) -> f64 {
    match MULTIPLIERS.get(scale) {
        // Integers beyond 2^53 come from damaged columns only, for which any double will do.
        #[allow(clippy::cast_precision_loss)]
        Some(multiplier) => integer as f64 / multiplier,
        None => f64::from_bits(integer.cast_unsigned()),
    }
}

/// The smallest scale from `at_least` on that can represent `x`, and the integer.
#[inline(never)]
pub fn best(x: f64, at_least: Scale) -> (i64, Scale) {
    let mut scale = at_least;
    loop {
        if let Some(integer) = encode(x, scale) {
            return (integer, scale);
        }
        scale += 1;
    }
}

/// True if the double of `integer` certainly has no integer in a lower scale. False means unknown.
#[inline]
pub fn is_least(integer: i64, scale: Scale) -> bool {
    // Different decimals of fifteen digits are different doubles, so the integer itself tells.
    const DIGITS_MAX: u64 = 1_000_000_000_000_000;
    let step = match scale {
        0 => return true,
        1 | 2 => 10,
        3 => 100,
        4 => 10_000,
        _ => return false,
    };
    integer.unsigned_abs() < DIGITS_MAX && integer % step != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use kernels::scale::INTEGER_MAX;
    use proptest::prelude::*;

    #[test]
    fn a_double_takes_the_least_scale_that_gives_its_bits_back() {
        let cases = [
            (0.0, 0, 0),
            (-3.0, -3, 0),
            (0.5, 5, 1),
            (254.03, 25_403, 2),
            (1.234, 12_340, 3),
            (0.000_05, 5_000, 4),
            (-1.1, -11, 1),
            (INTEGER_MAX, 1 << 53, 0),
        ];
        for (x, integer, scale) in cases {
            assert_eq!(best(x, 0), (integer, scale), "{x}");
            assert_eq!(decode(integer, scale).to_bits(), x.to_bits());
        }
        for x in [-0.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE, 0.1 + 0.2, 1e300, 1e16, 90_071_993.000_000_01] {
            assert_eq!(best(x, 0), (x.to_bits().cast_signed(), RAW), "{x}");
        }
    }

    #[test]
    fn only_some_control_nibbles_are_scales() {
        for scale in 0..=RAW {
            assert_eq!(scale_of(nibble_of(scale) | 7), Some(scale));
        }
        for control in [0x00, 0x10, 0x70, 0xE0, 0xF0] {
            assert_eq!(scale_of(control), None);
        }
    }

    #[test]
    fn halves_are_rounded_away_from_zero() {
        // The product is rounded: 0.25 in tenths is 2.5, which becomes 3, and 0.3 is not 0.25.
        assert_eq!(to_integer(0.25, 10.0), None);
        assert_eq!(to_integer(2.5, 1.0), None);
        assert_eq!(to_integer(4_503_599_627_370_495.5, 1.0), None);
        assert_eq!(to_integer(4_503_599_627_370_497.0, 1.0), Some(4_503_599_627_370_497));
    }

    proptest! {
        #[test]
        fn the_chosen_scale_is_the_smallest_exact_one(magnitude in 0..51_u32, any in any::<i64>(), scale in 0..=RAW) {
            for integer in [any >> (63 - magnitude), (any >> (63 - magnitude)) / 10_000 * 10_000, 999_999_999_999_999] {
                if is_least(integer, scale) {
                    prop_assert_eq!(best(decode(integer, scale), 0), (integer, scale));
                }
            }
        }

        #[test]
        fn what_is_encoded_decodes_to_the_same_bits(bits in any::<u64>(), cents in -1_000_000_i64..1_000_000, scale in 0..=RAW) {
            for x in [f64::from_bits(bits), cents as f64 / 100.0] {
                if let Some(integer) = encode(x, scale) {
                    prop_assert_eq!(decode(integer, scale).to_bits(), x.to_bits());
                }
                let (integer, best) = best(x, scale);
                prop_assert!(best >= scale);
                prop_assert_eq!(decode(integer, best).to_bits(), x.to_bits());
                // Rounding as the format defines it, computed with the standard library.
                if scale < RAW {
                    let m = multiplier(scale);
                    let plain = (x * m).round();
                    let expected = (plain.abs() <= INTEGER_MAX && (plain / m).to_bits() == x.to_bits()).then_some(plain as i64);
                    // -0.0 rounds to the integer 0, which does not give -0.0 back.
                    let expected = expected.filter(|k| (*k as f64 / m).to_bits() == x.to_bits());
                    prop_assert_eq!(encode(x, scale), expected);
                }
            }
        }
    }
}
