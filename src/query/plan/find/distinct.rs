//! The `distinct` command.

// Loaded later.

use super::arguments::is_given;
use super::arguments::{Hint, check_generic, expect, filter};
use super::command::FindCommand;
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::Globals;
use crate::query::plan::Projection;
use crate::value::{Doc, Kind, Path};

impl FindCommand {
    /// The `find` whose results contain the values that `{distinct: <collection>, key: …, query: …, …}` asks for, and
    /// their path; the caller handles the value of the first field. A null query counts as missing.
    ///
    /// Errors: `TypeMismatch`; 40414 without a key; 40415 for unknown arguments; `BadValue` for a key with a NUL byte;
    /// those of filters.
    pub fn of_distinct(command: Doc<'_>, globals: &Globals) -> Result<(FindCommand, Path)> {
        let mut options = FindCommand { collation: globals.collation().clone(), ..FindCommand::default() };
        let mut key = None;
        for (name, value) in command.iter().skip(1).filter(|(name, value)| *name == "key" || is_given(*value)) {
            match name {
                "key" => key = expect(name, value, Kind::String)?.as_str(),
                "query" => options.filter = filter(name, value, globals)?,
                "hint" => options.hint = Hint::parse(value)?,
                // Read by the caller, who knows the collection's collation.
                "collation" => {}
                _ if check_generic(name, value)? => {}
                _ => return Err(Error::unknown_field("distinct", name)),
            }
        }
        let missing = "BSON field 'distinct.key' is missing but a required field";
        let key = key.ok_or_else(|| Error::new(ErrorCode::IDLFailedToParse, missing))?;
        let key = Path::parse(key)?;
        options.projection = Projection::only(key.first());
        Ok((options, key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::filter::samples::globals;
    use bson::{RawBson, RawDocumentBuf, rawdoc};

    fn parse(command: &RawDocumentBuf) -> Result<(FindCommand, Path)> {
        FindCommand::of_distinct(Doc::parse(command.as_bytes()).unwrap(), &globals())
    }

    #[test]
    fn a_key_is_required_and_unknown_arguments_are_refused() {
        let code = |command: RawDocumentBuf| parse(&command).unwrap_err().code as i32;
        assert_eq!(code(rawdoc! { "distinct": "c" }), 40414);
        assert_eq!(code(rawdoc! { "distinct": "c", "key": 1 }), 14);
        assert_eq!(code(rawdoc! { "distinct": "c", "key": RawBson::Null }), 14);
        assert_eq!(code(rawdoc! { "distinct": "c", "key": "a", "query": 1 }), 14);
        assert_eq!(code(rawdoc! { "distinct": "c", "key": "a", "limit": 1 }), 40415);
    }

    #[test]
    fn only_the_field_of_the_key_is_read() {
        let (find, key) = parse(&rawdoc! { "distinct": "c", "key": "a.b", "query": RawBson::Null }).unwrap();
        assert!(find.projection.keeps_root("a") && !find.projection.keeps_root("b"));
        assert_eq!(key.as_str(), "a.b");
    }
}
