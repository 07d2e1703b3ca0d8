//! The `count` command.

use super::arguments::is_given;
use super::arguments::{Hint, check_generic, count, filter, integer, object};
use super::command::FindCommand;
use crate::error::{Error, Result};
use crate::query::expr::Globals;
use crate::query::plan::Projection;
use crate::value::Doc;

impl FindCommand {
    /// The `find` whose results `{count: <collection>, query: …, …}` counts; the value of the first field is the caller's business. It returns no
    /// field, so that only those of the filter are decoded. A null argument counts as absent, and a negative limit as its absolute value, as it
    /// always has.
    ///
    /// Errors: `TypeMismatch`, 51024 for a negative skip, 40415 for unknown arguments, and those of filters.
    pub fn of_count(command: Doc<'_>, globals: &Globals) -> Result<FindCommand> {
        let mut options = FindCommand { projection: Projection::none(), ..FindCommand::default() };
        for (name, value) in command.iter().skip(1).filter(|(_, value)| is_given(*value)) {
            match name {
                "query" => options.filter = filter(name, value, globals)?,
                "skip" => options.skip = count(name, value)?,
                "limit" => options.limit = Some(integer(name, value)?.unsigned_abs()).filter(|limit| *limit > 0),
                "hint" => options.hint = Hint::parse(value)?,
                // Read by the caller, who knows that of the collection.
                "collation" => {}
                // Long without meaning, and still sent by old drivers.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorCode;
    use crate::query::filter::samples::globals;
    use bson::{RawDocumentBuf, rawdoc};

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
    fn bad_arguments_are_refused() {
        let code = |command: RawDocumentBuf| parse(&command).unwrap_err().code;
        assert_eq!(code(rawdoc! { "count": "c", "skip": -1 }), ErrorCode::Location51024);
        assert_eq!(code(rawdoc! { "count": "c", "query": 1 }), ErrorCode::TypeMismatch);
        assert_eq!(code(rawdoc! { "count": "c", "filter": {} }), ErrorCode::IDLUnknownField);
    }
}
