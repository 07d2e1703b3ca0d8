//! Conversions: `$convert`, and `$toBool`, `$toInt` and the others that are written as one.

use super::super::arguments::{date_ms, failure, given};
use super::super::datum::{Datum, is_nullish, type_name};
use super::super::evaluate::Scope;
use super::super::globals::Globals;
use super::super::operators::{Binds, Names, Op, Operator, Syntax, asking_of_one, lazy, names};
use super::super::tree::Expr;
use super::date_text::{self, instead};
use super::decimal;
use super::strings::iso;
use super::zone::Zone;
use crate::error::ErrorCode::*;
use crate::error::{Error, Result};
use crate::value::{Kind, Number, OwnedValue, Value};

static CONVERT: Names =
    names(&["input", "to", "onError", "onNull"], 2, 0, Binds::Nothing, &[FailedToParse, FailedToParse, FailedToParse]);
/// What there is to convert to, by name and number.
const TARGETS: [(&str, i64, Kind); 8] = [
    ("double", 1, Kind::Double),
    ("string", 2, Kind::String),
    ("objectId", 7, Kind::ObjectId),
    ("bool", 8, Kind::Bool),
    ("date", 9, Kind::Date),
    ("int", 16, Kind::Int32),
    ("long", 18, Kind::Int64),
    ("decimal", 19, Kind::Decimal128),
];

pub(super) static TABLE: &[Operator] = &[
    lazy(Op::More, "$convert", Syntax::Named(&CONVERT), convert),
    asking_of_one(Op::More, "$toDouble", |by, x, g| to(Kind::Double, by, given(x, 0), g)),
    asking_of_one(Op::More, "$toString", |by, x, g| to(Kind::String, by, given(x, 0), g)),
    asking_of_one(Op::More, "$toObjectId", |by, x, g| to(Kind::ObjectId, by, given(x, 0), g)),
    asking_of_one(Op::More, "$toBool", |by, x, g| to(Kind::Bool, by, given(x, 0), g)),
    asking_of_one(Op::More, "$toDate", |by, x, g| to(Kind::Date, by, given(x, 0), g)),
    asking_of_one(Op::More, "$toInt", |by, x, g| to(Kind::Int32, by, given(x, 0), g)),
    asking_of_one(Op::More, "$toLong", |by, x, g| to(Kind::Int64, by, given(x, 0), g)),
    asking_of_one(Op::More, "$toDecimal", |by, x, g| to(Kind::Decimal128, by, given(x, 0), g)),
];

fn refused(name: &str, value: Option<Value<'_>>, kind: &str) -> Error {
    failure(ConversionFailure, name, &format!("failed to convert {value:?} to {kind}"))
}

fn to(kind: Kind, operator: &Operator, value: Option<Value<'_>>, globals: &Globals) -> Result<Datum<'static>> {
    let converted = value.and_then(|value| converted(value, kind, globals));
    converted.ok_or_else(|| refused(operator.name(), value, kind.alias()))
}

fn convert<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    const NAME: &str = "$convert";
    let [input, to, on_error, on_null] = arguments else { return Ok(Datum::NULL) };
    let to = to.evaluate(scope)?;
    let wanted = to.view().unwrap_or(Value::NULL);
    let target = match (wanted.as_str(), Number::of(wanted)) {
        (Some(name), _) => TARGETS.iter().find(|(known, ..)| *known == name),
        (_, Some(number)) => {
            let number = number.whole();
            let number = number.ok_or_else(|| failure(FailedToParse, NAME, "needs a whole number as its 'to'"))?;
            TARGETS.iter().find(|(_, known, _)| *known == number)
        }
        _ if is_nullish(to.view()) => None,
        _ => {
            let problem = format!("needs a string or a number as its 'to', found {}", type_name(to.view()));
            return Err(failure(FailedToParse, NAME, &problem));
        }
    };
    if target.is_none() && wanted.as_str().is_some_and(|name| !is_type(name)) {
        return Err(failure(BadValue, NAME, &format!("does not know the type {wanted:?}")));
    }
    let input = input.evaluate(scope)?;
    let Some(value) = input.view().filter(|value| !is_nullish(Some(*value))) else { return instead(on_null, scope) };
    if is_nullish(to.view()) {
        return Ok(Datum::NULL);
    }
    match target.and_then(|(.., kind)| converted(value, *kind, scope.globals())) {
        Some(converted) => Ok(converted),
        None if *on_error != Expr::MISSING => on_error.evaluate(scope),
        None => Err(refused(NAME, Some(value), target.map_or("this type", |(name, ..)| name))),
    }
}

/// True for the name of any type.
fn is_type(name: &str) -> bool {
    (0..=u8::MAX).any(|byte| Kind::from_byte(byte).is_some_and(|kind| kind.alias() == name))
}

/// A value as one of another type; `None` where it cannot be one.
fn converted(value: Value<'_>, to: Kind, globals: &Globals) -> Option<Datum<'static>> {
    let (from, env) = (value.kind(), &**globals.env());
    if from == to {
        return Some(Datum::copied(Some(value)));
    }
    match to {
        Kind::Bool => return Some(Datum::bool(value.is_true())),
        Kind::String => return text(value, globals).map(|text| Datum::string(&text)),
        _ => {}
    }
    if let Some(text) = value.as_str() {
        // The server would read hexadecimals, and refuses them.
        return match to {
            Kind::Double => decimal::parse_double(text, env).map(Datum::double),
            Kind::Decimal128 => decimal::parse(text).map(decimal::datum),
            Kind::Int32 => text.parse().ok().map(Datum::int32),
            Kind::Int64 => text.parse().ok().map(Datum::int64),
            Kind::ObjectId => object_id(text),
            _ => date_text::read(Some(value), None, (Zone::UTC, false), globals).ok()?.map(Datum::date),
        };
    }
    let number = match from {
        Kind::Bool if to != Kind::Date => Number::Integer(value.is_true().into()),
        Kind::Int32 if to == Kind::Date => return None,
        Kind::Date if to != Kind::Int32 => Number::Integer(value.as_date_ms()?),
        Kind::Timestamp | Kind::ObjectId if to == Kind::Date => Number::Integer(date_ms(value)?),
        _ => Number::of(value)?,
    };
    Some(match to {
        Kind::Double => Datum::double(match number {
            Number::Decimal(number) => decimal::to_double(number)?,
            other => other.near_double(),
        }),
        Kind::Decimal128 => decimal::datum(decimal::of(number)),
        Kind::Date => Datum::date(number.truncated()?),
        Kind::Int64 => Datum::int64(number.truncated()?),
        Kind::Int32 => Datum::int32(i32::try_from(number.truncated()?).ok()?),
        _ => return None,
    })
}

fn text(value: Value<'_>, globals: &Globals) -> Option<String> {
    Some(match value.kind() {
        Kind::Bool => if value.is_true() { "true" } else { "false" }.to_owned(),
        Kind::Int32 | Kind::Int64 => value.as_integer()?.to_string(),
        Kind::Double => decimal::double_text(value.as_f64()?, &**globals.env()),
        Kind::Decimal128 => match Number::of(value)? {
            Number::Decimal(number) => decimal::text(number),
            _ => return None,
        },
        Kind::Date => iso(value.as_date_ms()?),
        Kind::ObjectId => {
            let digit = |half: u8| char::from_digit(u32::from(half), 16).unwrap_or_default();
            value.as_object_id()?.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
        }
        _ => return None,
    })
}

/// Of 24 hexadecimal digits.
fn object_id(text: &str) -> Option<Datum<'static>> {
    let mut id = [0; 12];
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if pairs.len() != id.len() || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in id.iter_mut().zip(pairs) {
        let digit = |letter: u8| char::from(letter).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(Datum::Built(OwnedValue::object_id(id)))
}
