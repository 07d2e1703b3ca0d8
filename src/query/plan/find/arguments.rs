//! Arguments shared by several commands: their types, and those that are accepted without effect.

use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::Globals;
use crate::query::filter::Filter;
use crate::value::{Doc, DocBuf, Kind, Number, OwnedValue, Value, equal};

/// The scan that the caller asks for.
#[derive(Clone, Debug, PartialEq)]
pub enum Hint {
    /// The index with this name.
    Name(Box<str>),
    /// The index with these keys, as the user wrote them.
    Keys(DocBuf),
    /// All buckets in id order, forwards or backwards.
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

/// False for null and undefined, which count as missing arguments.
pub fn is_given(value: Value<'_>) -> bool {
    !matches!(value.kind(), Kind::Null | Kind::Undefined)
}

/// Checks an argument that every command accepts and that has no effect here; false if `name` is not one.
///
/// Errors: `TypeMismatch`.
pub fn check_generic(name: &str, value: Value<'_>) -> Result<bool> {
    match name {
        "comment" => {}
        // These are checked where every command comes in.
        "maxTimeMS" | "opKey" | "collectionUUID" => {}
        "txnNumber" => {
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

/// A value with the required type.
pub fn expect<'a>(name: &str, value: Value<'a>, kind: Kind) -> Result<Value<'a>> {
    if value.kind() == kind { Ok(value) } else { Err(mismatch(name, value, kind.alias())) }
}

/// A document.
pub fn object<'a>(name: &str, value: Value<'a>) -> Result<Doc<'a>> {
    value.as_doc().ok_or_else(|| mismatch(name, value, "object"))
}

/// The filter in a document argument.
pub fn filter(name: &str, value: Value<'_>, globals: &Globals) -> Result<Filter> {
    Filter::parse(object(name, value)?, globals)
}

/// A boolean, or a number used as one.
pub fn flag(name: &str, value: Value<'_>) -> Result<bool> {
    value.as_truthy().ok_or_else(|| mismatch(name, value, "bool"))
}

/// An integer, of any numeric type. As on the server, fractions are cut off, numbers outside of int64 become the nearest
/// int64, and NaN becomes 0.
pub fn integer(name: &str, value: Value<'_>) -> Result<i64> {
    let number = Number::of(value).ok_or_else(|| mismatch(name, value, "long"))?;
    // A cast of a double cuts off and saturates in exactly this way.
    #[allow(clippy::cast_possible_truncation)]
    Ok(number.truncated().unwrap_or_else(|| number.near_double() as i64))
}

/// An integer without a fraction that fits an int64.
///
/// Errors: `BadValue` for what is no number, `FailedToParse` for any other number.
pub fn whole(name: &str, value: Value<'_>) -> Result<i64> {
    let number =
        Number::of(value).ok_or_else(|| Error::bad_value(format!("'{name}' must be a number, not {value:?}")))?;
    number.whole().ok_or_else(|| {
        let message = format!("Expected an integer of 64 bits in '{name}', not {value:?}");
        Error::new(ErrorCode::FailedToParse, message)
    })
}

/// The time limit of a command in milliseconds; `None` for 0, which is no limit.
///
/// Errors: `BadValue` unless it is an integer from 0 to 2147483647.
pub fn time_limit(value: Value<'_>) -> Result<Option<f64>> {
    let milliseconds = Number::of(value).and_then(Number::whole).and_then(|n| i32::try_from(n).ok());
    match milliseconds {
        Some(n @ 0..) => Ok(Some(f64::from(n)).filter(|_| n > 0)),
        _ => Err(Error::bad_value(format!("maxTimeMS must be an integer from 0 to {}, not {value:?}", i32::MAX))),
    }
}

/// A non-negative integer.
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
