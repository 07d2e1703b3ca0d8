//! Types and fields: `$type`, `$isNumber`, `$getField`.

use super::arguments::{Arguments, argument, text};
use super::datum::{Datum, is_nullish, type_name};
use super::operators::Operator;
use crate::error::Result;
use crate::value::Value;

pub(super) fn type_of(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    Ok(Datum::string(type_name(argument(arguments, 0))))
}

pub(super) fn is_number(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    Ok(Datum::bool(argument(arguments, 0).is_some_and(|value| value.kind().is_number())))
}

/// A field by its name, which may contain dots and dollars, and the object.
pub(super) fn get_field(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let object = argument(arguments, 1);
    if is_nullish(object) {
        return Ok(Datum::copied(object));
    }
    Ok(Datum::copied(object.and_then(Value::as_doc).and_then(|doc| doc.get(text(arguments, 0)))))
}
