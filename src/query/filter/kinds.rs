//! `$type`: values of certain BSON types.

use super::parse::{bad, wrong};
use super::tree::{Filter, Test};
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Kind, Number, Path, Value};

/// A set of BSON types.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Kinds(u32);

const NUMBERS: [Kind; 4] = [Kind::Double, Kind::Int32, Kind::Int64, Kind::Decimal128];
/// Type bytes from this one on are those of MinKey and MaxKey.
const PLAIN_END: u8 = 32;

impl Kinds {
    fn bit(kind: Kind) -> u32 {
        match kind {
            Kind::MinKey => 1 << 31,
            Kind::MaxKey => 1 << 30,
            other => 1 << (other.byte() % PLAIN_END),
        }
    }

    /// Adds one type.
    pub fn add(&mut self, kind: Kind) {
        self.0 |= Kinds::bit(kind);
    }

    /// True if `kind` is one of the set.
    pub fn contains(self, kind: Kind) -> bool {
        self.0 & Kinds::bit(kind) != 0
    }

    /// Adds the types that an alias stands for.
    ///
    /// Errors: `BadValue` for an unknown alias.
    pub fn add_alias(&mut self, alias: &str) -> Result<()> {
        if alias == "number" {
            NUMBERS.into_iter().for_each(|kind| self.add(kind));
            return Ok(());
        }
        let kind = (0..=u8::MAX).filter_map(Kind::from_byte).find(|kind| kind.alias() == alias);
        self.add(kind.ok_or_else(|| bad("Unknown type name alias:", alias))?);
        Ok(())
    }

    fn add_operand(&mut self, operand: Value<'_>) -> Result<()> {
        if let Some(alias) = operand.as_str() {
            return self.add_alias(alias);
        }
        let number = Number::of(operand)
            .ok_or_else(|| Error::type_mismatch(format!("$type needs a number or a string, not {operand:?}")))?;
        let kind = number.whole().and_then(|code| match code {
            -1 => Some(Kind::MinKey),
            // MinKey's type byte is not its code.
            code => u8::try_from(code).ok().filter(|code| *code < 128).and_then(Kind::from_byte),
        });
        self.add(kind.ok_or_else(|| wrong("$type", "has an invalid numerical type code", operand))?);
        Ok(())
    }

    /// The types named by an alias, a number or an array of them.
    ///
    /// Errors: `BadValue` for unknown types, `TypeMismatch` for other values, `FailedToParse` for the empty array.
    pub fn parse(operand: Value<'_>) -> Result<Kinds> {
        let mut kinds = Kinds::default();
        match operand.as_array() {
            Some(list) if list.is_empty() => {
                return Err(Error::new(ErrorCode::FailedToParse, "$type must match at least one type"));
            }
            Some(list) => list.iter().try_for_each(|(_, one)| kinds.add_operand(one))?,
            None => kinds.add_operand(operand)?,
        }
        Ok(kinds)
    }
}

/// The filter of `{path: {$type: operand}}`.
pub(super) fn parse(path: &Path, operand: Value<'_>) -> Result<Filter> {
    Ok(Filter::Field(path.clone(), Test::Type(Kinds::parse(operand)?)))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{error, hits};
    use super::*;
    use bson::{RawBson, rawdoc};

    #[test]
    fn types_are_named_by_number_alias_or_both() {
        let docs = [
            rawdoc! { "a": 1 },
            rawdoc! { "a": 1.0 },
            rawdoc! { "a": "x" },
            rawdoc! { "a": [1, "x"] },
            rawdoc! { "a": [] },
            rawdoc! { "a": RawBson::MinKey },
            rawdoc! { "a": RawBson::MaxKey },
            rawdoc! { "a": null },
            rawdoc! {},
        ];
        assert_eq!(hits(&docs, rawdoc! { "a": { "$type": "int" } }), [0, 3]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$type": "number" } }), [0, 1, 3]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$type": [1, "string"] } }), [1, 2, 3]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$type": 4.0 } }), [3, 4]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$type": -1 } }), [5]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$type": [127, 10_i64] } }), [6, 7]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$not": { "$type": "number" } } }), [2, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn type_array_means_the_field_itself() {
        let docs = [rawdoc! { "a": [[1]] }, rawdoc! { "a": [{ "b": [1] }, { "b": 2 }] }, rawdoc! { "a": { "b": 1 } }];
        assert_eq!(hits(&docs, rawdoc! { "a": { "$type": "array" } }), [0, 1]);
        assert_eq!(hits(&docs, rawdoc! { "a.b": { "$type": "array" } }), [1]);
        assert_eq!(hits(&docs, rawdoc! { "a.0": { "$type": "array" } }), [0]);
    }

    #[test]
    fn unknown_type_names_are_refused() {
        for (operand, code) in [
            (RawBson::Int32(0), ErrorCode::BadValue),
            (RawBson::Int32(20), ErrorCode::BadValue),
            (RawBson::Int32(255), ErrorCode::BadValue),
            (RawBson::Double(1.5), ErrorCode::BadValue),
            (RawBson::String("integer".into()), ErrorCode::BadValue),
            (RawBson::Null, ErrorCode::TypeMismatch),
            (RawBson::Array(bson::RawArrayBuf::new()), ErrorCode::FailedToParse),
        ] {
            assert_eq!(error(rawdoc! { "a": { "$type": operand.clone() } }).code, code, "{operand:?}");
        }
    }
}
