//! The values of an operator's arguments: what they must be, and how to read them after that was checked.

use super::datum::{is_nullish, type_name};
use super::operators::Nulls;
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Doc, Kind, Number, Value};

/// The arguments of an operator; `None` for missing ones.
pub(super) type Arguments<'a, 'b> = &'a [Option<Value<'b>>];

/// What an argument must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Want {
    Any,
    Array,
    Date,
    Natural,
    Numeric,
    /// A number or a date.
    Term,
    Text,
    Whole,
}

impl Want {
    fn accepts(self, value: Option<Value<'_>>) -> bool {
        let whole = || value.and_then(Number::of).and_then(Number::whole);
        match self {
            Want::Any => true,
            Want::Array => value.is_some_and(|value| value.kind() == Kind::Array),
            Want::Date => value.and_then(date_ms).is_some(),
            Want::Natural => whole().is_some_and(|n| n >= 0),
            Want::Numeric => value.is_some_and(|value| value.kind().is_number()),
            Want::Term => value.is_some_and(|value| value.kind().is_number() || value.kind() == Kind::Date),
            Want::Text => value.is_some_and(|value| value.kind() == Kind::String),
            Want::Whole => whole().is_some(),
        }
    }

    fn name(self) -> &'static str {
        match self {
            Want::Any => "a value",
            Want::Array => "an array",
            Want::Date => "a date",
            Want::Natural => "a non-negative integer",
            Want::Numeric => "a number",
            Want::Term => "a number or a date",
            Want::Text => "a string",
            Want::Whole => "an integer",
        }
    }

    /// Checks the argument at a position.
    pub(super) fn check(self, name: &str, at: usize, value: Option<Value<'_>>, code: ErrorCode) -> Result<()> {
        if self.accepts(value) {
            return Ok(());
        }
        // Negative positions in a string or an array have an error code of their own.
        let below = self == Want::Natural && value.and_then(Number::of).and_then(Number::whole).is_some();
        let code = if below { ErrorCode::Location40097 } else { code };
        Err(failure(code, name, &format!("needs {} as argument {}, found {}", self.name(), at + 1, type_name(value))))
    }
}

/// Checks the arguments that are given. True if one is null and makes the result null.
#[inline(never)]
pub(super) fn is_null_call(
    name: &str,
    (wants, nulls): (&[(Want, ErrorCode)], Nulls),
    arguments: Arguments<'_, '_>,
    is_given: &dyn Fn(usize) -> bool,
) -> Result<bool> {
    let is_null = |at: usize| is_given(at) && is_nullish(argument(arguments, at));
    let heed = match nulls {
        Nulls::Any => arguments.len(),
        Nulls::First => 1,
        Nulls::Values | Nulls::InTurn => 0,
    };
    if (0..heed).any(is_null) {
        return Ok(true);
    }
    for (at, value) in arguments.iter().enumerate().filter(|(at, _)| is_given(*at)) {
        if nulls == Nulls::InTurn && is_null(at) {
            return Ok(true);
        }
        if let Some((want, code)) = wants.get(at).or(wants.last()) {
            want.check(name, at, *value, *code)?;
        }
    }
    Ok(false)
}

/// The error of an operator that does not accept something.
#[cold]
#[inline(never)]
pub(super) fn failure(code: ErrorCode, name: &str, problem: &str) -> Error {
    Error::new(code, format!("{name} {problem}"))
}

/// The argument at a position, if it is given.
#[inline(never)]
pub(super) fn argument<'b>(arguments: Arguments<'_, 'b>, at: usize) -> Option<Value<'b>> {
    arguments.get(at).copied().flatten()
}

/// An argument that was checked to be an array.
#[inline(never)]
pub(super) fn array<'b>(arguments: Arguments<'_, 'b>, at: usize) -> Doc<'b> {
    argument(arguments, at).and_then(Value::as_array).unwrap_or(Doc::EMPTY)
}

/// An argument that was checked to be a string; empty if it is not given.
#[inline(never)]
pub(super) fn text<'b>(arguments: Arguments<'_, 'b>, at: usize) -> &'b str {
    argument(arguments, at).and_then(Value::as_str).unwrap_or_default()
}

/// An argument that was checked to be an integer; `otherwise` if it is not given.
#[inline(never)]
pub(super) fn integer(arguments: Arguments<'_, '_>, at: usize, otherwise: i64) -> i64 {
    argument(arguments, at).and_then(Number::of).and_then(Number::whole).unwrap_or(otherwise)
}

/// An argument that was checked to be a natural number; `otherwise` if it is not given.
#[inline(never)]
pub(super) fn natural(arguments: Arguments<'_, '_>, at: usize, otherwise: usize) -> usize {
    match argument(arguments, at) {
        None => otherwise,
        Some(_) => usize::try_from(integer(arguments, at, 0)).unwrap_or(usize::MAX),
    }
}

/// An argument that was checked to be a number.
#[inline(never)]
pub(super) fn number(arguments: Arguments<'_, '_>, at: usize) -> Number {
    argument(arguments, at).and_then(Number::of).unwrap_or(Number::Integer(0))
}

/// An argument that was checked to be a date, in milliseconds.
#[inline(never)]
pub(super) fn date(arguments: Arguments<'_, '_>, at: usize) -> i64 {
    argument(arguments, at).and_then(date_ms).unwrap_or_default()
}

/// The milliseconds of a value that serves as a date: a date, a timestamp, an ObjectId.
pub(super) fn date_ms(value: Value<'_>) -> Option<i64> {
    match value.kind() {
        Kind::Date => value.as_date_ms(),
        Kind::Timestamp => value.as_timestamp().map(|bits| i64::try_from(bits >> 32).unwrap_or_default() * 1000),
        Kind::ObjectId => {
            let [a, b, c, d, ..] = value.as_object_id()?;
            Some(i64::from(u32::from_be_bytes([a, b, c, d])) * 1000)
        }
        _ => None,
    }
}
