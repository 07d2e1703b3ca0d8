//! Functions of doubles. In WebAssembly they are the host's: their code would take several kilobytes, and a call is faster. Their last digit may
//! differ from host to host, so nothing that is stored may depend on them: keys of places use `geo::vector::sin_cos`.

#[cfg(target_arch = "wasm32")]
use js_sys::Math::pow as power;
#[cfg(target_arch = "wasm32")]
pub use js_sys::Math::{
    acos, acosh, asin, asinh, atan, atan2, atanh, cos, cosh, exp, hypot, log as ln, log10, sin, sinh, tan, tanh,
};

#[cfg(not(target_arch = "wasm32"))]
macro_rules! functions {
    ($($name:ident($x:ident $(, $y:ident)?) $method:ident;)*) => {$(
        /// The function of this name.
        pub fn $name($x: f64 $(, $y: f64)?) -> f64 {
            $x.$method($($y)?)
        }
    )*};
}

#[cfg(not(target_arch = "wasm32"))]
functions! {
    acos(x) acos;
    acosh(x) acosh;
    asin(x) asin;
    asinh(x) asinh;
    atan(x) atan;
    atan2(y, x) atan2;
    atanh(x) atanh;
    cos(x) cos;
    cosh(x) cosh;
    exp(x) exp;
    hypot(x, y) hypot;
    ln(x) ln;
    log10(x) log10;
    power(x, y) powf;
    sin(x) sin;
    sinh(x) sinh;
    tan(x) tan;
    tanh(x) tanh;
}

/// `x` to the power of `y`. JavaScript has NaN where one is raised to an infinity or to NaN, and where minus one is raised to an infinity.
/// A square is a product, which is rounded once and needs no call of the host.
pub fn pow(x: f64, y: f64) -> f64 {
    if y == 2.0 {
        return x * x;
    }
    if x == 1.0 || x == -1.0 && y.is_infinite() { 1.0 } else { power(x, y) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn squares_are_rounded_once() {
        assert_eq!((pow(0.1, 2.0), pow(-3.0, 2.0)), (0.1 * 0.1, 9.0));
        assert_eq!(
            (pow(f64::NEG_INFINITY, 2.0), pow(1e200, 2.0), pow(-0.0, 2.0).to_bits()),
            (f64::INFINITY, f64::INFINITY, 0)
        );
        assert!(pow(f64::NAN, 2.0).is_nan());
    }

    #[test]
    fn powers_of_one_are_one() {
        for (x, y) in
            [(1.0, f64::NAN), (1.0, f64::INFINITY), (-1.0, f64::INFINITY), (-1.0, f64::NEG_INFINITY), (5.0, 0.0)]
        {
            assert_eq!(pow(x, y), 1.0);
        }
        assert_eq!((pow(2.0, 10.0), pow(-1.0, 3.0), pow(-1.0, f64::NAN).is_nan()), (1024.0, -1.0, true));
    }
}
