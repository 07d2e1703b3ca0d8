//! `$bitsAllSet`, `$bitsAllClear`, `$bitsAnySet`, `$bitsAnyClear`: integers and binary data by their bits.

use super::parse::wrong;
use super::tree::{Filter, Test};
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Number, Path, Value};

/// The bits to test, and their wanted state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bits {
    pub(super) positions: Vec<u32>,
    /// True if one matching bit suffices; otherwise all must match.
    any: bool,
    /// The wanted state.
    set: bool,
}

impl Bits {
    /// No bits yet; `any` or all of them must be set or clear.
    pub(super) fn of(any: bool, set: bool) -> Bits {
        Bits { positions: Vec::new(), any, set }
    }

    /// The name of the operator.
    pub(super) fn name(&self) -> &'static str {
        match (self.any, self.set) {
            (false, true) => "$bitsAllSet",
            (false, false) => "$bitsAllClear",
            (true, true) => "$bitsAnySet",
            (true, false) => "$bitsAnyClear",
        }
    }

    fn test(&self, is_set: &dyn Fn(u32) -> bool) -> bool {
        let mut wanted = self.positions.iter().map(|at| is_set(*at) == self.set);
        if self.any { wanted.any(|hit| hit) } else { wanted.all(|hit| hit) }
    }

    /// True if an integer passes; it is sign-extended.
    pub(super) fn holds(&self, number: Number) -> bool {
        number.whole().is_some_and(|n| self.test(&|at| n >> at.min(63) & 1 == 1))
    }

    /// True if a value passes. Binary data is extended with zeros.
    pub(super) fn matches(&self, value: Value<'_>) -> bool {
        match value.as_binary() {
            Some((_, bytes)) => self.test(&|at| is_set(bytes, at)),
            None => Number::of(value).is_some_and(|number| self.holds(number)),
        }
    }
}

fn is_set(bytes: &[u8], at: u32) -> bool {
    usize::try_from(at / 8).ok().and_then(|at| bytes.get(at)).is_some_and(|byte| byte >> (at % 8) & 1 == 1)
}

/// The filter of `{path: {name: operand}}`; `bits` is the meaning of the name.
pub(super) fn parse(path: &Path, name: &str, bits: Bits, operand: Value<'_>) -> Result<Filter> {
    let natural = |value: Value<'_>, most: i64| {
        let whole = Number::of(value).and_then(Number::whole).filter(|n| (0..=most).contains(n));
        whole.ok_or_else(|| wrong(name, "expects non-negative integers", value))
    };
    // A mask has another code than a position.
    let of_mask = |error: Error| Error::new(ErrorCode::FailedToParse, error.message.clone());
    let mut positions = Vec::new();
    if let Some(list) = operand.as_array() {
        for (_, item) in list {
            positions.push(u32::try_from(natural(item, i32::MAX.into())?).unwrap_or(u32::MAX));
        }
    } else if let Some((_, bytes)) = operand.as_binary() {
        let end = u32::try_from(bytes.len()).unwrap_or(u32::MAX).saturating_mul(8);
        positions.extend((0..end).filter(|at| is_set(bytes, *at)));
    } else if operand.kind().is_number() {
        let mask = natural(operand, i64::MAX).map_err(of_mask)?;
        positions.extend((0..63).filter(|at| mask >> at & 1 == 1));
    } else {
        return Err(wrong(name, "needs an array, a number, or binary data", operand));
    }
    Ok(Filter::Field(path.clone(), Test::Bits(Bits { positions, ..bits })))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{error, hits};
    use crate::error::ErrorCode;
    use bson::{Binary, RawBson, rawbson, rawdoc, spec::BinarySubtype};

    fn binary(bytes: &[u8]) -> RawBson {
        RawBson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: bytes.to_vec() })
    }

    #[test]
    fn a_mask_is_a_number_a_list_of_positions_or_binary_data() {
        // 20 is 10100.
        let docs = [
            rawdoc! { "a": 20 },
            rawdoc! { "a": 20.0 },
            rawdoc! { "a": -1_i64 },
            rawdoc! { "a": binary(&[20]) },
            rawdoc! { "a": 20.5 },
            rawdoc! { "a": "20" },
            rawdoc! { "a": 4 },
            rawdoc! { "a": [4, 20] },
            rawdoc! {},
        ];
        for mask in [rawbson!(20), rawbson!([2, 4]), binary(&[20])] {
            assert_eq!(hits(&docs, rawdoc! { "a": { "$bitsAllSet": mask.clone() } }), [0, 1, 2, 3, 7]);
            assert_eq!(hits(&docs, rawdoc! { "a": { "$bitsAnySet": mask.clone() } }), [0, 1, 2, 3, 6, 7]);
            assert_eq!(hits(&docs, rawdoc! { "a": { "$bitsAnyClear": mask.clone() } }), [6, 7]);
            assert_eq!(hits(&docs, rawdoc! { "a": { "$bitsAllClear": mask } }), [0_usize; 0]);
        }
        assert_eq!(hits(&docs, rawdoc! { "a": { "$bitsAllClear": 3 } }), [0, 1, 3, 6, 7]);
        // Beyond 64 bits an integer is sign-extended, and binary data is extended with zeros.
        assert_eq!(hits(&docs, rawdoc! { "a": { "$bitsAllSet": [70] } }), [2]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$bitsAllClear": [70] } }), [0, 1, 3, 6, 7]);
        // With no bits, "all" is true and "any" is false.
        assert_eq!(hits(&docs, rawdoc! { "a": { "$bitsAllSet": 0 } }), [0, 1, 2, 3, 6, 7]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$bitsAnySet": [] } }), [0_usize; 0]);
    }

    #[test]
    fn malformed_masks_are_refused() {
        let code = |mask: &RawBson| error(rawdoc! { "a": { "$bitsAnySet": mask.clone() } }).code;
        for mask in [rawbson!(-1), rawbson!(1.5), rawbson!(1e300), rawbson!(f64::NAN)] {
            assert_eq!(code(&mask), ErrorCode::FailedToParse, "{mask:?}");
        }
        for mask in [
            rawbson!([-1]),
            rawbson!([1.5]),
            rawbson!([1_i64 << 31]),
            rawbson!(["1"]),
            rawbson!("1"),
            rawbson!({ "a": 1 }),
        ] {
            assert_eq!(code(&mask), ErrorCode::BadValue, "{mask:?}");
        }
    }
}
