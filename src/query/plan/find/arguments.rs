//! Arguments that commands share: their types, and which are accepted without effect.

use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::Globals;
use crate::query::filter::Filter;
use crate::value::{Doc, DocBuf, Kind, OwnedValue, Value, equal};

/// How the scan should go, as the caller wants it.
#[derive(Clone, Debug, PartialEq)]
pub enum Hint {
    /// The index of this name.
    Name(Box<str>),
    /// The index over these keys, as the user wrote them.
    Keys(DocBuf),
    /// All buckets in the order of their ids, forward or backward.
    Natural {
        /// True for 1, false for -1.
        ascending: bool,
    },
}

impl Hint {
    /// Parses a name, a key pattern or `{$natural: ±1}`; an empty document is no hint.
    ///
    /// Errors: `FailedToParse` for another type, `BadValue` for another `$natural`.
    pub fn parse(value: Value<'_>) -> Result<Option<Hint>> {
        if let Some(name) = value.as_str() {
            return Ok(Some(Hint::Name(name.into())));
        }
        let Some(keys) = value.as_doc() else {
            let message = format!("Field 'hint' must be a string or an object, not {}", value.kind().alias());
            return Err(Error::new(ErrorCode::FailedToParse, message));
        };
        let Some(direction) = keys.get("$natural") else {
            return Ok((!keys.is_empty()).then(|| Hint::Keys(keys.to_owned())));
        };
        let is = |n: i32| equal(direction, OwnedValue::int32(n).view());
        if keys.iter().count() != 1 || !(is(1) || is(-1)) {
            return Err(Error::bad_value(format!("A $natural hint must be 1 or -1 and stand alone, not {keys:?}")));
        }
        Ok(Some(Hint::Natural { ascending: is(1) }))
    }
}

/// False for null and undefined, which stand for an argument that is absent.
pub fn is_given(value: Value<'_>) -> bool {
    !matches!(value.kind(), Kind::Null | Kind::Undefined)
}

/// Checks an argument that every command takes and that changes nothing here; false where there is none of this name.
///
/// Errors: `TypeMismatch`.
pub fn check_generic(name: &str, value: Value<'_>) -> Result<bool> {
    match name {
        "comment" => {}
        "maxTimeMS" | "txnNumber" => {
            integer(name, value)?;
        }
        "$db" | "apiVersion" => {
            expect(name, value, Kind::String)?;
        }
        "lsid" | "readConcern" | "writeConcern" | "$readPreference" | "$clusterTime" | "$audit" | "$client"
        | "$configServerState" => {
            expect(name, value, Kind::Object)?;
        }
        "autocommit" | "startTransaction" | "apiStrict" | "apiDeprecationErrors" | "mayBypassWriteBlocking" => {
            flag(name, value)?;
        }
        _ => return Ok(false),
    }
    Ok(true)
}

/// A value of the type that the argument must have.
pub fn expect<'a>(name: &str, value: Value<'a>, kind: Kind) -> Result<Value<'a>> {
    if value.kind() == kind { Ok(value) } else { Err(mismatch(name, value, kind.alias())) }
}

/// A document.
pub fn object<'a>(name: &str, value: Value<'a>) -> Result<Doc<'a>> {
    value.as_doc().ok_or_else(|| mismatch(name, value, "object"))
}

/// The filter in a document.
pub fn filter(name: &str, value: Value<'_>, globals: &Globals) -> Result<Filter> {
    Filter::parse(object(name, value)?, globals)
}

/// A boolean, or a number that stands for one.
pub fn flag(name: &str, value: Value<'_>) -> Result<bool> {
    value.as_truthy().ok_or_else(|| mismatch(name, value, "bool"))
}

/// An integer; a fraction is cut off, what lies outside an int64 becomes the nearest one, and NaN is 0.
pub fn integer(name: &str, value: Value<'_>) -> Result<i64> {
    // Cutting off and saturating is just what a cast of doubles does.
    #[allow(clippy::cast_possible_truncation)]
    let nearest = |x: f64| x as i64;
    value.as_integer().or_else(|| value.as_f64().map(nearest)).ok_or_else(|| mismatch(name, value, "long"))
}

/// An integer that is not negative.
pub fn count(name: &str, value: Value<'_>) -> Result<u64> {
    let n = integer(name, value)?;
    u64::try_from(n).map_err(|_| {
        let message = format!("BSON field '{name}' value must be >= 0, actual value '{n}'");
        Error::new(ErrorCode::Location51024, message)
    })
}

fn mismatch(name: &str, value: Value<'_>, expected: &str) -> Error {
    Error::type_mismatch(format!(
        "BSON field '{name}' is the wrong type '{}', expected type '{expected}'",
        value.kind().alias()
    ))
}
