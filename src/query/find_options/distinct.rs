//! The `distinct` command.

use super::arguments::{Hint, check_collation, check_generic, expect, filter, unknown};
use super::find::{FindOptions, is_given};
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::Globals;
use crate::query::filter::Filter;
use crate::query::projection::Projection;
use crate::value::{Doc, Kind, Path};

/// What a `distinct` asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct DistinctOptions {
    /// The path of the values.
    pub key: Path,
    /// Which measurements.
    pub filter: Filter,
    /// The scan that the caller wants.
    pub hint: Option<Hint>,
}

impl DistinctOptions {
    /// Parses `{distinct: <collection>, key: …, query: …, …}`; the value of the first field is the caller's business. A null query counts
    /// as absent.
    ///
    /// Errors: `TypeMismatch`, 40414 without a key, 40415 for unknown arguments, `BadValue` for a key with a NUL byte, and those of filters.
    pub fn parse(command: Doc<'_>, globals: &Globals) -> Result<DistinctOptions> {
        let (mut key, mut query, mut hint) = (None, Filter::all(), None);
        for (name, value) in command.iter().skip(1).filter(|(name, value)| *name == "key" || is_given(*value)) {
            match name {
                "key" => key = expect(name, value, Kind::String)?.as_str(),
                "query" => query = filter(name, value, globals)?,
                "hint" => hint = Hint::parse(value)?,
                "collation" => check_collation(name, value)?,
                _ if check_generic(name, value)? => {}
                _ => return Err(unknown("distinct", name)),
            }
        }
        let missing = "BSON field 'distinct.key' is missing but a required field";
        let key = key.ok_or_else(|| Error::new(ErrorCode::IDLFailedToParse, missing))?;
        Ok(DistinctOptions { key: Path::parse(key)?, filter: query, hint })
    }

    /// The `find` whose results hold the values, and their path.
    pub fn into_find(self) -> (FindOptions, Path) {
        let DistinctOptions { key, filter, hint } = self;
        let projection = Projection::only(key.first());
        (FindOptions { filter, projection, hint, ..FindOptions::default() }, key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::filter::samples::globals;
    use bson::{RawBson, RawDocumentBuf, rawdoc};

    fn parse(command: &RawDocumentBuf) -> Result<DistinctOptions> {
        DistinctOptions::parse(Doc::parse(command.as_bytes()).unwrap(), &globals())
    }

    #[test]
    fn a_key_is_needed_and_nothing_unknown_is_taken() {
        let code = |command: RawDocumentBuf| parse(&command).unwrap_err().code as i32;
        assert_eq!(code(rawdoc! { "distinct": "c" }), 40414);
        assert_eq!(code(rawdoc! { "distinct": "c", "key": 1 }), 14);
        assert_eq!(code(rawdoc! { "distinct": "c", "key": RawBson::Null }), 14);
        assert_eq!(code(rawdoc! { "distinct": "c", "key": "a", "query": 1 }), 14);
        assert_eq!(code(rawdoc! { "distinct": "c", "key": "a", "limit": 1 }), 40415);
    }

    #[test]
    fn only_the_field_of_the_key_is_read() {
        let options = parse(&rawdoc! { "distinct": "c", "key": "a.b", "query": RawBson::Null }).unwrap();
        let (find, key) = options.into_find();
        assert!(find.projection.keeps_root("a") && !find.projection.keeps_root("b"));
        assert_eq!(key.as_str(), "a.b");
    }
}
