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
