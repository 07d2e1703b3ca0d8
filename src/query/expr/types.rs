//! Types and fields: `$type`, `$isNumber`, conversions among numbers, booleans and dates, `$getField`.

use super::arguments::{Arguments, date_ms, failure, given, text};
use super::datum::{Datum, is_nullish, type_name};
use super::operators::{Op, Operator};
use crate::error::{ErrorCode, Result};
use crate::value::{Kind, Number, Value};

pub(super) fn type_of(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    Ok(Datum::string(type_name(given(arguments, 0))))
}

pub(super) fn is_number(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    Ok(Datum::bool(given(arguments, 0).is_some_and(|value| value.kind().is_number())))
}

/// `$toBool`, `$toInt`, `$toLong`, `$toDouble`, `$toDate`.
pub(super) fn convert(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let value = given(arguments, 0).unwrap_or(Value::NULL);
    let number = match (operator.op, value.kind()) {
        (Op::ToBool, _) => return Ok(Datum::bool(value.is_true())),
        (Op::ToDate, Kind::Int32 | Kind::Bool) | (Op::ToInt, Kind::Date) => None,
        (_, Kind::Bool) => Some(Number::Integer(value.is_true().into())),
        (Op::ToDate, Kind::Timestamp | Kind::ObjectId) | (_, Kind::Date) => date_ms(value).map(Number::Integer),
        _ => Number::of(value),
    };
    let whole = number.and_then(Number::truncated);
    let converted = match (operator.op, number) {
        (Op::ToDouble, Some(Number::Double(x))) => Some(Datum::double(x)),
        // Rounding a decimal takes what decimals do not have yet.
        (Op::ToDouble, Some(Number::Integer(n))) => Some(Datum::double(n as f64)),
        (Op::ToDouble, _) => None,
        (Op::ToDate, _) => whole.map(Datum::date),
        (Op::ToLong, _) => whole.map(Datum::int64),
        _ => whole.and_then(|n| i32::try_from(n).ok()).map(Datum::int32),
    };
    converted
        .ok_or_else(|| failure(ErrorCode::ConversionFailure, operator.name(), &format!("failed to convert {value:?}")))
}

/// A field by its name, which may hold dots and dollars, and the object.
pub(super) fn get_field(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let object = given(arguments, 1);
    if is_nullish(object) {
        return Ok(Datum::copied(object));
    }
    Ok(Datum::copied(object.and_then(Value::as_doc).and_then(|doc| doc.get(text(arguments, 0)))))
}
