//! The `count` command.

use super::arguments::is_given;
use super::arguments::{Hint, check_generic, count, filter, object, whole};
use super::command::FindCommand;
use crate::error::{Error, Result};
use crate::query::expr::Globals;
use crate::query::plan::Projection;
use crate::value::{Doc, Value};

impl FindCommand {
    /// The `find` whose results `{count: <collection>, query: …, …}` counts; the caller handles the value of the first
    /// field. It returns no fields, so that only those of the filter are decoded. A null argument counts as missing,
    /// and a negative limit by its absolute value.
    ///
    /// Errors: `TypeMismatch`, 51024 for a negative skip, `BadValue` and `FailedToParse` for a limit that is no integer,
    /// 40415 for unknown arguments, and those of filters.
    pub fn of_count(command: Doc<'_>, globals: &Globals) -> Result<FindCommand> {
        let mut options = FindCommand { projection: Projection::none(), ..FindCommand::default() };
        for (name, value) in command.iter().skip(1).filter(|(_, value)| is_given(*value)) {
            match name {
                "query" => options.filter = filter(name, value, globals)?,
                "skip" => options.skip = count(name, value)?,
                "limit" => options.limit = Some(limit(value)?).filter(|limit| *limit > 0),
                "hint" => options.hint = Hint::parse(value)?,
                // Read by the caller, who knows the collection's collation.
                "collation" => {}
                // Without effect since long ago, but old drivers still send it.
                "fields" => {
                    object(name, value)?;
                }
                _ if check_generic(name, value)? => {}
                _ => return Err(Error::unknown_field("count", name)),
            }
        }
        Ok(options)
    }
}

/// The absolute value of a limit. Of all these arguments, it alone must be exact on the server.
fn limit(value: Value<'_>) -> Result<u64> {
    match whole("limit", value)? {
        i64::MIN => Err(Error::bad_value("The limit of a count cannot be the smallest int64")),
        limit => Ok(limit.unsigned_abs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use crate::query::filter::samples::globals;
    use bson::{RawBson, RawDocumentBuf, rawdoc};

    fn parse(command: &RawDocumentBuf) -> Result<FindCommand> {
        FindCommand::of_count(Doc::parse(command.as_bytes()).unwrap(), &globals())
    }

    #[test]
    fn every_argument_is_read() {
        let command = rawdoc! { "count": "c", "query": { "a": 1 }, "skip": 2.0, "limit": -3, "hint": "t_1", "fields": {},
        "comment": 1, "maxTimeMS": 5 };
        let find = parse(&command).unwrap();
        assert_eq!((find.skip, find.limit, find.hint), (2, Some(3), Some(Hint::Name("t_1".into()))));
        assert!(!find.filter.is_trivial());
        let all = FindCommand { projection: Projection::none(), ..FindCommand::default() };
        assert_eq!(parse(&rawdoc! { "count": "c" }).unwrap(), all);
    }

    #[test]
    fn a_limit_must_be_exact_and_a_skip_is_cut_off() {
        let limited = |limit: RawBson| parse(&rawdoc! { "count": "c", "limit": limit });
        for (limit, code) in [
            (RawBson::Double(f64::NAN), ErrorCode::FailedToParse),
            (RawBson::Double(1e300), ErrorCode::FailedToParse),
            (RawBson::Double(1.5), ErrorCode::FailedToParse),
            (RawBson::String("x".into()), ErrorCode::BadValue),
            (RawBson::Int64(i64::MIN), ErrorCode::BadValue),
        ] {
            assert_eq!(limited(limit).unwrap_err().code, code);
        }
        let skipped = |skip: f64| parse(&rawdoc! { "count": "c", "skip": skip }).unwrap().skip;
        assert_eq!([f64::NAN, 1.9, 1e300].map(skipped), [0, 1, i64::MAX as u64]);
    }

    #[test]
    fn bad_arguments_are_refused() {
        let code = |command: RawDocumentBuf| parse(&command).unwrap_err().code;
        assert_eq!(code(rawdoc! { "count": "c", "skip": -1 }), ErrorCode::Location51024);
        assert_eq!(code(rawdoc! { "count": "c", "query": 1 }), ErrorCode::TypeMismatch);
        assert_eq!(code(rawdoc! { "count": "c", "filter": {} }), ErrorCode::IDLUnknownField);
    }
}
