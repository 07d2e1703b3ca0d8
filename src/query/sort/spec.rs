//! The sort document: paths and directions, in order.
//!
//! Source: mongodb/mongo src/mongo/db/query/sort_pattern.cpp.

use crate::error::{Error, ErrorCode, Result};
use crate::limits::DOCUMENT_DEPTH_MAX;
use crate::listed::IntoList;
use crate::value::{Collation, Doc, DocBuf, DocWriter, Number, Path, Value, check_path};

/// Maximum number of keys.
const PARTS_MAX: usize = 32;

/// One path of a sort and its direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortPart {
    /// The path of the key.
    pub path: Path,
    /// True for 1, false for -1.
    pub ascending: bool,
    /// How strings compare.
    pub collation: Collation,
}

/// The order of rows: by the first part, its ties by the second, and so on. There is at least one part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortSpec {
    parts: Vec<SortPart>,
}

impl SortSpec {
    /// Parses `{a: 1, "b.c": -1}`, with strings compared by `collation`.
    ///
    /// Errors: 15973 if it is not an object; 15974 for a direction that is not a number, 15975 for another number than
    /// 1 or -1, 40218 for `$meta`, 17312 for another object; 15976 for an empty object; those of paths; `BadValue` for
    /// `$natural` and more than 32 keys.
    pub fn parse(value: Value<'_>, collation: &Collation) -> Result<SortSpec> {
        let Some(doc) = value.as_doc() else {
            let message = format!("The sort specification must be an object, not {value:?}");
            return Err(Error::new(ErrorCode::Location15973, message));
        };
        let parts = doc.iter().map(|(name, value)| parse_part(name, value, collation)).try_listed()?;
        if parts.is_empty() {
            return Err(Error::new(ErrorCode::Location15976, "A sort must have at least one key"));
        }
        if parts.len() > PARTS_MAX {
            return Err(Error::bad_value(format!("A sort can have at most {PARTS_MAX} keys, not {}", parts.len())));
        }
        Ok(SortSpec { parts })
    }

    /// The parts, most significant first.
    pub fn parts(&self) -> &[SortPart] {
        &self.parts
    }

    /// The parts of a sort; no sort has none.
    pub fn parts_of(sort: Option<&SortSpec>) -> &[SortPart] {
        sort.map_or(&[], SortSpec::parts)
    }

    /// The first `count` parts, and the remaining ones; `None` for no parts.
    pub fn split_at(&self, count: usize) -> (Option<SortSpec>, Option<SortSpec>) {
        let (front, behind) = self.parts.split_at_checked(count).unwrap_or((&self.parts, &[]));
        let of = |parts: &[SortPart]| (!parts.is_empty()).then(|| SortSpec { parts: parts.to_vec() });
        (of(front), of(behind))
    }

    /// The document that parses to this sort.
    pub fn to_doc(&self) -> DocBuf {
        let mut writer = DocWriter::new();
        for part in &self.parts {
            writer.int32(part.path.as_str(), if part.ascending { 1 } else { -1 });
        }
        writer.finish()
    }
}

fn parse_part(name: &str, direction: Value<'_>, collation: &Collation) -> Result<SortPart> {
    if name == "$natural" {
        return Err(Error::bad_value(
            "A sort by $natural is not supported on a time-series collection; use it as a hint",
        ));
    }
    let path = Path::parse(name)?;
    check_path(name)?;
    if path.components().len() > DOCUMENT_DEPTH_MAX {
        return Err(Error::bad_value(format!("A sort path has more than {DOCUMENT_DEPTH_MAX} components")));
    }
    // As on the server, fractions are cut off.
    let number = Number::of(direction);
    let ascending = match number.and_then(Number::truncated) {
        Some(1) => true,
        Some(-1) => false,
        _ => {
            let code = match (number, direction.as_doc()) {
                (Some(_), _) => ErrorCode::Location15975,
                (_, Some(expression)) if is_meta(expression) => ErrorCode::Location40218,
                (_, Some(_)) => ErrorCode::Location17312,
                _ => ErrorCode::Location15974,
            };
            let message = "must be 1 (ascending) or -1 (descending), not";
            return Err(Error::new(code, format!("Sort direction of '{name}' {message} {direction:?}")));
        }
    };
    Ok(SortPart { path, ascending, collation: collation.clone() })
}

fn is_meta(doc: Doc<'_>) -> bool {
    doc.iter().next().is_some_and(|(name, _)| name == "$meta")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::OwnedValue;
    use bson::{RawDocumentBuf, rawdoc};

    fn parse(spec: &RawDocumentBuf) -> Result<SortSpec> {
        SortSpec::parse(Doc::parse(spec.as_bytes()).unwrap().as_value(), &Collation::default())
    }

    fn code(spec: RawDocumentBuf) -> ErrorCode {
        parse(&spec).unwrap_err().code
    }

    #[test]
    fn directions_are_numbers_that_are_one_or_minus_one_without_their_fraction() {
        let decimal = bson::Decimal128::from_bytes([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x30]);
        let spec = parse(&rawdoc! { "z": 1, "a.b": -1.0, "c": 1_i64, "d": decimal, "e": -1.9 }).unwrap();
        let parts: Vec<_> = spec.parts().iter().map(|p| (p.path.as_str(), p.ascending)).collect();
        assert_eq!(parts, [("z", true), ("a.b", false), ("c", true), ("d", true), ("e", false)]);
        let written = rawdoc! { "z": 1, "a.b": -1, "c": 1, "d": 1, "e": -1 };
        assert_eq!(spec.to_doc().view().as_bytes(), written.as_bytes());
    }

    #[test]
    fn invalid_directions_are_refused() {
        for spec in [rawdoc! { "a": 0.9 }, rawdoc! { "a": f64::NAN }, rawdoc! { "a": -2_i64 }] {
            assert_eq!(code(spec), ErrorCode::Location15975);
        }
        for spec in [rawdoc! { "a": true }, rawdoc! { "a": "asc" }, rawdoc! { "a": [1] }] {
            assert_eq!(code(spec), ErrorCode::Location15974);
        }
        for spec in [rawdoc! { "a": { "b": 1 } }, rawdoc! { "a": {} }] {
            assert_eq!(code(spec), ErrorCode::Location17312);
        }
        assert_eq!(code(rawdoc! {}), ErrorCode::Location15976);
        assert_eq!(
            SortSpec::parse(OwnedValue::int32(1).view(), &Collation::default()).unwrap_err().code,
            ErrorCode::Location15973
        );
    }

    #[test]
    fn natural_meta_and_dollar_names_are_refused() {
        assert_eq!(code(rawdoc! { "$natural": 1 }), ErrorCode::BadValue);
        assert_eq!(code(rawdoc! { "a": { "$meta": "textScore" } }), ErrorCode::Location40218);
        assert_eq!(code(rawdoc! { "a.$b": 1 }), ErrorCode::Location16410);
        assert_eq!(code(rawdoc! { "a..b": 1 }), ErrorCode::Location15998);
        assert_eq!(code(rawdoc! { "a.": 1 }), ErrorCode::Location40353);
    }
}
