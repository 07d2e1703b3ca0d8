//! Types and fields: `$type`, `$isNumber`, conversions among numbers, booleans and dates, `$getField`.

use super::date::date_ms;
use super::datum::{Datum, is_nullish, type_name};
use super::evaluate::Scope;
use super::tree::Expr;
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Number, Value};

pub(super) fn type_of(_: &'static str, arguments: &[Option<Value<'_>>]) -> Result<Datum<'static>> {
    Ok(Datum::string(type_name(arguments.first().copied().flatten())))
}

pub(super) fn is_number(_: &'static str, arguments: &[Option<Value<'_>>]) -> Result<Datum<'static>> {
    Ok(Datum::bool(arguments.iter().flatten().any(|value| value.kind().is_number())))
}

/// `$toBool`, `$toInt`, `$toLong`, `$toDouble`, `$toDate`.
pub(super) fn convert(name: &'static str, arguments: &[Option<Value<'_>>]) -> Result<Datum<'static>> {
    let Some(value) = arguments.first().copied().flatten() else { return Ok(Datum::NULL) };
    let fails = |why: &str| {
        let message = format!("Failed to convert {} in {name}: {why}", value.kind().alias());
        Err(Error::new(ErrorCode::ConversionFailure, message))
    };
    if name == "$toBool" {
        return Ok(Datum::bool(value.is_true()));
    }
    if name == "$toDate" {
        if let Some(ms) = date_ms(value) {
            return Ok(Datum::date(ms));
        }
        let number = Number::of(value).filter(|_| value.as_i32().is_none());
        return match number.map(Number::truncated) {
            Some(Some(ms)) => Ok(Datum::date(ms)),
            Some(None) => fails("it would overflow"),
            None => fails("unsupported conversion"),
        };
    }
    let number = match (value.as_bool(), value.as_date_ms()) {
        (Some(b), _) => Some(Number::Integer(b.into())),
        (_, Some(ms)) if name != "$toInt" => Some(Number::Integer(ms)),
        _ => Number::of(value),
    };
    match (number, name) {
        (None, _) => fails("unsupported conversion"),
        (Some(Number::Double(x)), "$toDouble") => Ok(Datum::double(x)),
        (Some(Number::Integer(n)), "$toDouble") => Ok(Datum::double(n as f64)),
        (Some(Number::Decimal(_)), "$toDouble") => fails("decimals are not supported yet"),
        (Some(number), _) => match number.truncated() {
            Some(n) if name == "$toLong" => Ok(Datum::int64(n)),
            Some(n) => match i32::try_from(n) {
                Ok(n) => Ok(Datum::int32(n)),
                Err(_) => fails("it would overflow"),
            },
            None => fails("it would overflow"),
        },
    }
}

/// A field by its name, which may hold dots and dollars, and the object: the document where none is given.
pub(super) fn get_field<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    let [field, input] = arguments else { return Ok(Datum::Missing) };
    let name = field.evaluate(scope)?;
    let name = name.view().and_then(Value::as_str).ok_or_else(|| {
        let message =
            format!("$getField requires 'field' to evaluate to type String, but got {}", type_name(name.view()));
        Error::new(ErrorCode::Location3041704, message)
    })?;
    let object = input.evaluate(scope)?;
    if is_nullish(object.view()) {
        return Ok(Datum::copied(object.view()));
    }
    match object.view().and_then(Value::as_doc) {
        Some(doc) => Ok(Datum::copied(doc.get(name))),
        None => Ok(Datum::Missing),
    }
}
