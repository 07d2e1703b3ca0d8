//! `$mod`: tests numbers by their remainder.

use super::parse::wrong;
use super::tree::{Filter, Test};
use crate::error::Result;
use crate::value::{Number, Path, Value};

/// Numbers that leave a remainder when divided; fractions are cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Modulo {
    pub(super) divisor: i64,
    pub(super) remainder: i64,
}

impl Modulo {
    /// True if a number passes.
    pub(super) fn holds(self, number: Number) -> bool {
        // The smallest int64 divided by -1 overflows, and leaves no remainder.
        number.truncated().is_some_and(|n| n.checked_rem(self.divisor).unwrap_or(0) == self.remainder)
    }
}

/// The filter of `{path: {$mod: [divisor, remainder]}}`.
pub(super) fn parse(path: &Path, operand: Value<'_>) -> Result<Filter> {
    let malformed = |what| wrong("$mod", what, operand);
    let list = operand.as_array().ok_or_else(|| malformed("needs to be an array"))?;
    let mut numbers = Vec::new();
    for (_, item) in list {
        let number = Number::of(item).ok_or_else(|| malformed("needs numbers as divisor and remainder"))?;
        numbers.push(number.truncated().ok_or_else(|| malformed("needs a divisor and a remainder of 64 bits"))?);
    }
    let [divisor, remainder] = *numbers else { return Err(malformed("needs exactly two elements")) };
    if divisor == 0 {
        return Err(malformed("needs a divisor other than 0"));
    }
    Ok(Filter::Field(path.clone(), Test::Mod(Modulo { divisor, remainder })))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{error, hits};
    use crate::error::ErrorCode;
    use bson::{RawBson, rawbson, rawdoc};

    #[test]
    fn modulo_truncates_fractions_and_takes_the_sign_of_the_value() {
        let docs = [
            rawdoc! { "a": 4 },
            rawdoc! { "a": 5.9 },
            rawdoc! { "a": -4_i64 },
            rawdoc! { "a": RawBson::Decimal128("7.5".parse().unwrap()) },
            rawdoc! { "a": f64::NAN },
            rawdoc! { "a": f64::INFINITY },
            rawdoc! { "a": "4" },
            rawdoc! { "a": [3, 4] },
            rawdoc! { "a": i64::MIN },
            rawdoc! {},
        ];
        assert_eq!(hits(&docs, rawdoc! { "a": { "$mod": [3, 1] } }), [0, 3, 7]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$mod": [3.7, 2.2] } }), [1]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$mod": [3, -1] } }), [2]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$mod": [-1, 0] } }), [0, 1, 2, 3, 7, 8]);
    }

    #[test]
    fn malformed_operands_are_refused() {
        for operand in [
            rawbson!(3),
            rawbson!([3]),
            rawbson!([3, 1, 1]),
            rawbson!(["3", 1]),
            rawbson!([3, null]),
            rawbson!([0, 1]),
            rawbson!([0.5, 1]),
            rawbson!([f64::NAN, 1]),
            rawbson!([3, f64::INFINITY]),
        ] {
            assert_eq!(error(rawdoc! { "a": { "$mod": operand.clone() } }).code, ErrorCode::BadValue, "{operand:?}");
        }
    }
}
