//! Strings: `$concat`, `$toLower`, `$toUpper`, `$strLenBytes`, `$strLenCP`, `$substrCP`, `$indexOfCP`.

use super::datum::{Datum, is_nullish, type_name};
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Number, Value};

type Arguments<'a, 'b> = &'a [Option<Value<'b>>];

/// The string at a place among the arguments.
fn text_at<'a>(name: &str, arguments: Arguments<'_, 'a>, at: usize, code: ErrorCode) -> Result<&'a str> {
    let value = arguments.get(at).copied().flatten();
    value.and_then(Value::as_str).ok_or_else(|| {
        Error::new(code, format!("{name} requires a string as argument {}, found: {}", at + 1, type_name(value)))
    })
}

/// The same where null is the empty string.
fn text_or_empty<'a>(name: &str, arguments: Arguments<'_, 'a>, code: ErrorCode) -> Result<&'a str> {
    if is_nullish(arguments.first().copied().flatten()) { Ok("") } else { text_at(name, arguments, 0, code) }
}

/// The count at a place among the arguments.
fn count_at(name: &str, arguments: Arguments<'_, '_>, at: usize, code: ErrorCode) -> Result<usize> {
    let value = arguments.get(at).copied().flatten();
    let whole = value.and_then(Number::of).and_then(Number::whole).and_then(|n| usize::try_from(n).ok());
    whole.ok_or_else(|| {
        Error::new(code, format!("{name} requires a non-negative integer as argument {}, found: {value:?}", at + 1))
    })
}

pub(super) fn concat(name: &'static str, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let mut all = String::new();
    for at in 0..arguments.len() {
        all.push_str(text_at(name, arguments, at, ErrorCode::Location16702)?);
    }
    Ok(Datum::string(&all))
}

/// `$toLower` and `$toUpper`, which know ASCII only, as on the server.
pub(super) fn change_case(name: &'static str, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let text = text_or_empty(name, arguments, ErrorCode::Location16007)?;
    Ok(Datum::string(&if name == "$toLower" { text.to_ascii_lowercase() } else { text.to_ascii_uppercase() }))
}

pub(super) fn len(name: &'static str, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    Ok(Datum::count(match name {
        "$strLenBytes" => text_at(name, arguments, 0, ErrorCode::Location34473)?.len(),
        _ => text_at(name, arguments, 0, ErrorCode::Location34471)?.chars().count(),
    }))
}

pub(super) fn substring(name: &'static str, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let start = count_at(name, arguments, 1, ErrorCode::Location34450)?;
    let len = count_at(name, arguments, 2, ErrorCode::Location34452)?;
    let text = text_or_empty(name, arguments, ErrorCode::Location16007)?;
    Ok(Datum::string(&text.chars().skip(start).take(len).collect::<String>()))
}

/// The first place of a string in another, between two places; -1 where there is none.
pub(super) fn index_of(name: &'static str, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let text = text_at(name, arguments, 0, ErrorCode::Location40093)?;
    let wanted = text_at(name, arguments, 1, ErrorCode::Location40094)?;
    let end =
        |at: usize| if arguments.len() > at { count_at(name, arguments, at, ErrorCode::Location40096) } else { Ok(0) };
    let start = end(2)?;
    let stop = if arguments.len() > 3 { end(3)? } else { usize::MAX };
    let wanted_len = wanted.chars().count();
    let mut places = text.char_indices().map(|(at, _)| at).chain([text.len()]).enumerate().skip(start);
    let found = places.find(|(_, at)| text.get(*at..).is_some_and(|rest| rest.starts_with(wanted)));
    Ok(match found.filter(|(place, _)| place.saturating_add(wanted_len) <= stop) {
        Some((place, _)) => Datum::count(place),
        None => Datum::int32(-1),
    })
}
