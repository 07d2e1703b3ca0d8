//! Checks that the query of an update reads only the metadata.

use crate::error::{Error, Result};
use crate::value::Doc;

/// Refuses a query on anything but the metadata `meta_field`.
///
/// Errors: `InvalidOptions`.
pub fn check_query(query: Doc<'_>, meta_field: &str) -> Result<()> {
    for (name, value) in query {
        let parts = value.as_container().unwrap_or(Doc::EMPTY);
        let is_allowed = match name {
            "$expr" | "$where" => false,
            "$and" | "$or" | "$nor" => {
                for (_, part) in parts {
                    check_query(part.as_doc().unwrap_or(Doc::EMPTY), meta_field)?;
                }
                true
            }
            "$jsonSchema" => is_of_meta(parts, meta_field),
            _ => name.starts_with('$') || first_of(name) == meta_field,
        };
        if !is_allowed {
            return Err(not_allowed("a query on a field other than the metaField: ", name));
        }
    }
    Ok(())
}

/// True for a schema that names no other field.
fn is_of_meta(schema: Doc<'_>, meta_field: &str) -> bool {
    for (keyword, operand) in schema {
        for (key, name) in operand.as_container().unwrap_or(Doc::EMPTY) {
            let named = if keyword == "required" { name.as_str() } else { Some(key) };
            if named != Some(meta_field) {
                return false;
            }
        }
        if !matches!(keyword, "required" | "properties" | "title" | "description") {
            return false;
        }
    }
    true
}

/// The error for an update that time-series collections do not support.
pub fn not_allowed(what: &str, name: &str) -> Error {
    Error::invalid_options(["Cannot perform an update on a time-series collection with ", what, name].concat())
}

/// The first field name of a path.
pub(super) fn first_of(path: &str) -> &str {
    path.split('.').next().unwrap_or_default()
}
