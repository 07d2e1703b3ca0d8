//! The names of collections, and of their buckets.

use crate::error::{Error, ErrorCode, Result};
use crate::limits::NAMESPACE_LENGTH_BYTES_MAX;

/// The prefix of the name of a collection's buckets.
pub const BUCKETS_PREFIX: &str = "system.buckets.";

/// Checks the name of a new collection in `database`.
///
/// Errors: `InvalidNamespace` if the name is empty, begins with `.` or `system.`, or contains `$` or a NUL byte, or if
/// the full name of its buckets would be too long.
pub fn validate_collection_name(database: &str, name: &str) -> Result<()> {
    let refuse =
        |why: &str| Err(Error::new(ErrorCode::InvalidNamespace, format!("Invalid collection name '{name}': {why}")));
    if name.is_empty() {
        return refuse("it is empty");
    }
    if name.starts_with('.') {
        return refuse("it begins with a '.'");
    }
    if name.starts_with("system.") {
        return refuse("names that begin with 'system.' are reserved");
    }
    if name.contains('$') {
        return refuse("it contains a '$'");
    }
    if name.contains('\0') {
        return refuse("it contains a NUL byte");
    }
    let full = database.len() + ".".len() + BUCKETS_PREFIX.len() + name.len();
    if full > NAMESPACE_LENGTH_BYTES_MAX {
        return refuse(&format!(
            "'{database}.{BUCKETS_PREFIX}{name}' has {full} bytes, at most {NAMESPACE_LENGTH_BYTES_MAX} are allowed"
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_collection_name_must_fit_with_the_prefix_of_the_buckets_collection() {
        assert_eq!(validate_collection_name("db", "weather.2024"), Ok(()));
        assert_eq!(validate_collection_name("db", &"x".repeat(255 - 18)), Ok(()));
        for name in ["", "system.views", "a$b", "a\0b", ".a", &"x".repeat(255 - 17)] {
            let code = validate_collection_name("db", name).unwrap_err().code;
            assert_eq!(code, ErrorCode::InvalidNamespace, "{name}");
        }
    }
}
