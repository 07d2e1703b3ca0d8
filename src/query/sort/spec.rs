//! The sort document: paths and directions, in order.
//!
//! Source: mongodb/mongo src/mongo/db/query/sort_pattern.cpp.

use crate::error::{Error, ErrorCode, Result};
use crate::limits::DOCUMENT_DEPTH_MAX;
use crate::value::{Collation, Doc, DocBuf, DocWriter, OwnedValue, Path, Value, check_path, equal};

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
    /// 1 or -1; 15976 for an empty object; those of paths; `BadValue` for `$natural`, `$meta`, and more than 32 keys.
    pub fn parse(value: Value<'_>, collation: &Collation) -> Result<SortSpec> {
        let Some(doc) = value.as_doc() else {
            let message = format!("The sort specification must be an object, not {value:?}");
            return Err(Error::new(ErrorCode::Location15973, message));
        };
        let parts = doc.iter().map(|(name, value)| parse_part(name, value, collation)).collect::<Result<Vec<_>>>()?;
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
    if let Some(meta) = direction.as_doc().filter(|doc| is_meta(*doc)) {
        return Err(Error::bad_value(format!("Sort by {meta:?} of '{name}' is not supported")));
    }
    let ascending = if equal(direction, OwnedValue::int32(1).view()) {
        true
    } else if equal(direction, OwnedValue::int32(-1).view()) {
        false
    } else {
        let code = if direction.kind().is_number() { ErrorCode::Location15975 } else { ErrorCode::Location15974 };
        return Err(Error::new(
            code,
            format!("Sort direction of '{name}' must be 1 (ascending) or -1 (descending), not {direction:?}"),
        ));
    };
    Ok(SortPart { path, ascending, collation: collation.clone() })
}

fn is_meta(doc: Doc<'_>) -> bool {
    doc.iter().next().is_some_and(|(name, _)| name == "$meta")
}

#[cfg(test)]
mod tests {
    use super::*;
    use bson::{RawDocumentBuf, rawdoc};

    fn parse(spec: &RawDocumentBuf) -> Result<SortSpec> {
        SortSpec::parse(Doc::parse(spec.as_bytes()).unwrap().as_value(), &Collation::default())
    }

    fn code(spec: RawDocumentBuf) -> ErrorCode {
        parse(&spec).unwrap_err().code
    }

    #[test]
    fn directions_are_numbers_equal_to_one_or_minus_one_in_the_order_written() {
        let decimal = bson::Decimal128::from_bytes([1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0x30]);
        let spec = parse(&rawdoc! { "z": 1, "a.b": -1.0, "c": 1_i64, "d": decimal }).unwrap();
        let parts: Vec<_> = spec.parts().iter().map(|p| (p.path.as_str(), p.ascending)).collect();
        assert_eq!(parts, [("z", true), ("a.b", false), ("c", true), ("d", true)]);
        assert_eq!(spec.to_doc().view().as_bytes(), rawdoc! { "z": 1, "a.b": -1, "c": 1, "d": 1 }.as_bytes());
    }

    #[test]
    fn invalid_directions_are_refused() {
        for spec in [rawdoc! { "a": 0 }, rawdoc! { "a": 1.5 }, rawdoc! { "a": -2_i64 }] {
            assert_eq!(code(spec), ErrorCode::Location15975);
        }
        for spec in [rawdoc! { "a": true }, rawdoc! { "a": "asc" }, rawdoc! { "a": { "b": 1 } }] {
            assert_eq!(code(spec), ErrorCode::Location15974);
        }
        assert_eq!(code(rawdoc! {}), ErrorCode::Location15976);
        assert_eq!(
            SortSpec::parse(OwnedValue::int32(1).view(), &Collation::default()).unwrap_err().code,
            ErrorCode::Location15973
        );
    }

    #[test]
    fn natural_meta_and_dollar_names_are_refused() {
        for spec in [rawdoc! { "$natural": 1 }, rawdoc! { "a": { "$meta": "textScore" } }] {
            assert_eq!(code(spec), ErrorCode::BadValue);
        }
        assert_eq!(code(rawdoc! { "a.$b": 1 }), ErrorCode::Location16410);
        assert_eq!(code(rawdoc! { "a..b": 1 }), ErrorCode::Location15998);
        assert_eq!(code(rawdoc! { "a.": 1 }), ErrorCode::Location40353);
    }
}
