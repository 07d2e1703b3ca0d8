//! What the query of an update may ask: the metadata, and nothing else.

use crate::error::{Error, Result};
use crate::value::Doc;

/// Refuses a query that asks for anything but the metadata called `meta_field`.
///
/// Errors: `InvalidOptions`.
pub fn check_query(query: Doc<'_>, meta_field: &str) -> Result<()> {
    for (name, value) in query {
        let is_allowed = match name {
            "$expr" | "$where" => false,
            "$and" | "$or" | "$nor" => {
                for part in value.as_array().into_iter().flatten().filter_map(|(_, part)| part.as_doc()) {
                    check_query(part, meta_field)?;
                }
                true
            }
            "$jsonSchema" => value.as_doc().into_iter().flatten().all(|(keyword, names)| {
                let mut names = names.as_container().into_iter().flatten();
                match keyword {
                    "required" => names.all(|(_, name)| name.as_str() == Some(meta_field)),
                    "properties" => names.all(|(name, _)| name == meta_field),
                    "title" | "description" => true,
                    _ => false,
                }
            }),
            _ => name.starts_with('$') || first_of(name) == meta_field,
        };
        if !is_allowed {
            return Err(not_allowed("a query for something that is not the metaField:", name));
        }
    }
    Ok(())
}

/// What no update of a time-series collection may have.
pub fn not_allowed(what: &str, name: &str) -> Error {
    Error::invalid_options(["Cannot perform an update on a time-series collection with ", what, " ", name].concat())
}

/// The name of the field that a path begins with.
pub(super) fn first_of(path: &str) -> &str {
    path.split('.').next().unwrap_or_default()
}
