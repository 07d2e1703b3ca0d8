//! Conversions: `$convert`, and `$toBool`, `$toInt` and the others, which are written as one.

// Loaded later.

use super::arguments::{argument, date_ms, failure};
use super::binary::{FORMATS, Form, from_binary, from_hex, hex, in_base, to_binary};
use super::date::{self, Zone, instead};
use super::datum::{Datum, is_nullish, type_name};
use super::decimals;
use super::evaluate::Scope;
use super::globals::Globals;
use super::operators::{Binds, Names, Op, Operator, Syntax, asking_of_one, lazy, names};
use super::string::iso;
use super::tree::Expr;
use crate::error::ErrorCode::*;
use crate::error::{Error, ErrorCode, Result};
use crate::value::decimal;
use crate::value::{Kind, Number, OwnedValue, Value};

static CONVERT: Names = names(
    &["input", "to", "onError", "onNull", "base", "format", "byteOrder"],
    2,
    0,
    Binds::Nothing,
    &[FailedToParse, FailedToParse, FailedToParse],
);
/// The form if nothing is specified.
const PLAIN: Form<'_> = Form { format: "auto", base: None, is_big: false, subtype: 0 };
/// Target types, by name and number.
const TARGETS: [(&str, i64, Kind); 9] = [
    ("double", 1, Kind::Double),
    ("string", 2, Kind::String),
    ("binData", 5, Kind::Binary),
    ("objectId", 7, Kind::ObjectId),
    ("bool", 8, Kind::Bool),
    ("date", 9, Kind::Date),
    ("int", 16, Kind::Int32),
    ("long", 18, Kind::Int64),
    ("decimal", 19, Kind::Decimal128),
];

pub(super) static TABLE: &[Operator] = &[
    lazy(Op::More, "$convert", Syntax::Named(&CONVERT), convert),
    asking_of_one(Op::More, "$toDouble", |by, x, g| to(Kind::Double, by, argument(x, 0), g)),
    asking_of_one(Op::More, "$toString", |by, x, g| to(Kind::String, by, argument(x, 0), g)),
    asking_of_one(Op::More, "$toObjectId", |by, x, g| to(Kind::ObjectId, by, argument(x, 0), g)),
    asking_of_one(Op::More, "$toBool", |by, x, g| to(Kind::Bool, by, argument(x, 0), g)),
    asking_of_one(Op::More, "$toDate", |by, x, g| to(Kind::Date, by, argument(x, 0), g)),
    asking_of_one(Op::More, "$toInt", |by, x, g| to(Kind::Int32, by, argument(x, 0), g)),
    asking_of_one(Op::More, "$toLong", |by, x, g| to(Kind::Int64, by, argument(x, 0), g)),
    asking_of_one(Op::More, "$toDecimal", |by, x, g| to(Kind::Decimal128, by, argument(x, 0), g)),
    asking_of_one(Op::More, "$toUUID", |by, x, _| {
        let form = Form { format: "uuid", subtype: 4, ..PLAIN };
        let converted = argument(x, 0).and_then(|value| to_binary(value, &form));
        converted.ok_or_else(|| refused(by.name(), argument(x, 0), Kind::Binary.alias()))
    }),
];

fn refused(name: &str, value: Option<Value<'_>>, kind: &str) -> Error {
    let value = value.unwrap_or(Value::NULL);
    failure(ConversionFailure, name, &format!("failed to convert {value:?} to {kind}"))
}

fn to(kind: Kind, operator: &Operator, value: Option<Value<'_>>, globals: &Globals) -> Result<Datum<'static>> {
    let converted = value.and_then(|value| converted(value, kind, &PLAIN, globals));
    converted.ok_or_else(|| refused(operator.name(), value, kind.alias()))
}

fn convert<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    const NAME: &str = "$convert";
    let [input, to, on_error, on_null, base, format, byte_order] = arguments else { return Ok(Datum::NULL) };
    let to = to.evaluate(scope)?;
    let parts = to.view().filter(|to| to.kind() == Kind::Object).and_then(Value::as_doc);
    let wanted = parts.map_or(to.view(), |parts| parts.get("type").or(to.view())).unwrap_or(Value::NULL);
    let target = match (wanted.as_str(), Number::of(wanted)) {
        (Some(name), _) => TARGETS.iter().find(|(known, ..)| *known == name),
        (_, Some(number)) => {
            let number = number.whole();
            let number = number.ok_or_else(|| failure(FailedToParse, NAME, "needs a whole number as its 'to'"))?;
            TARGETS.iter().find(|(_, known, _)| *known == number)
        }
        _ if is_nullish(Some(wanted)) => None,
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
    if is_nullish(Some(wanted)) {
        return Ok(Datum::NULL);
    }
    let [base, format, byte_order] = [base, format, byte_order].map(|option| option.evaluate(scope));
    let (base, format, byte_order) = (base?, format?, byte_order?);
    let mut form = PLAIN;
    if let Some(base) = base.view().filter(|base| !is_nullish(Some(*base))) {
        let base =
            base.as_integer().ok_or_else(|| failure(Location3501300, NAME, "needs a whole number as its 'base'"))?;
        let known = u32::try_from(base).ok().filter(|base| [2, 8, 10, 16].contains(base));
        form.base = Some(known.ok_or_else(|| failure(Location3501301, NAME, "needs 2, 8, 10 or 16 as its 'base'"))?);
    }
    if let Some(name) = one_of(&format, &FORMATS, [Location4341114, Location4341125])? {
        form.format = name;
    } else if let Some((_, _, to)) = target
        && matches!((value.kind(), to), (Kind::String, Kind::Binary) | (Kind::Binary, Kind::String))
    {
        return Err(failure(Location4341115, NAME, "needs a 'format' between strings and binary data"));
    }
    form.is_big = one_of(&byte_order, &["little", "big"], [Location9130001, Location9130002])? == Some("big");
    if let Some(subtype) = parts.and_then(|parts| parts.get("subtype")).filter(|subtype| !is_nullish(Some(*subtype))) {
        let code = match Number::of(subtype) {
            None => Location4341108,
            Some(number) if number.whole().is_none() => Location4341106,
            Some(_) => Location4341107,
        };
        let known = subtype.as_integer().and_then(|n| u8::try_from(n).ok()).filter(|n| !(10..128).contains(n));
        form.subtype = known.ok_or_else(|| failure(code, NAME, "does not know this subtype"))?;
    }
    match target.and_then(|(.., kind)| converted(value, *kind, &form, scope.globals())) {
        Some(converted) => Ok(converted),
        None if *on_error != Expr::MISSING => on_error.evaluate(scope),
        None => Err(refused(NAME, Some(value), target.map_or("this type", |(name, ..)| name))),
    }
}

/// The operator that gives what `$convert` gives with these arguments, wherever it gives a value, and whether null is to
/// give something else. `None` for other operators, and where a value says what to convert to, or how; and for strings,
/// because binary data become one only in a `format`.
pub fn simple_of(operator: &Operator, arguments: &[Expr]) -> Option<(&'static Operator, bool)> {
    let [_, Expr::Constant(Some(to)), _, on_null, hows @ ..] = arguments else { return None };
    if operator.name() != "$convert" || hows.iter().any(|how| *how != Expr::MISSING) {
        return None;
    }
    let (name, number) = (to.view().as_str(), Number::of(to.view()).and_then(Number::whole));
    let (target, ..) = TARGETS.iter().find(|(known, code, _)| name == Some(known) || number == Some(*code))?;
    let is_named = |by: &&Operator| by.name().strip_prefix("$to").is_some_and(|name| name.eq_ignore_ascii_case(target));
    let operator = TABLE.iter().find(is_named).filter(|by| by.name() != "$toString");
    Some((operator?, *on_null != Expr::MISSING))
}

/// The name in an argument; `None` for null.
///
/// Errors: the first code if it is not a string, the second for an unknown name.
fn one_of(datum: &Datum<'_>, known: &[&'static str], codes: [ErrorCode; 2]) -> Result<Option<&'static str>> {
    let [no_string, unknown] = codes;
    let Some(value) = datum.view().filter(|value| !is_nullish(Some(*value))) else { return Ok(None) };
    let refuse = |code| failure(code, "$convert", &format!("does not accept {value:?} here"));
    let name = value.as_str().ok_or_else(|| refuse(no_string))?;
    known.iter().find(|known| **known == name).map(|known| Some(*known)).ok_or_else(|| refuse(unknown))
}

/// True for the name of any type.
fn is_type(name: &str) -> bool {
    (0..=u8::MAX).any(|byte| Kind::from_byte(byte).is_some_and(|kind| kind.alias() == name))
}

/// A value converted to another type; `None` if that is impossible.
fn converted(value: Value<'_>, to: Kind, form: &Form<'_>, globals: &Globals) -> Option<Datum<'static>> {
    let (from, env) = (value.kind(), &**globals.env());
    match to {
        Kind::Binary => return to_binary(value, form),
        _ if from == to => return Some(Datum::copied(Some(value))),
        Kind::Bool => return Some(Datum::bool(value.is_true())),
        _ => {}
    }
    if let Some((subtype, bytes)) = value.as_binary() {
        return from_binary(subtype, bytes, to, form);
    }
    match (to, form.base) {
        (Kind::String, Some(base)) if from.is_number() => {
            return in_base(Number::of(value)?, base).map(|text| Datum::string(&text));
        }
        (Kind::Double | Kind::Decimal128 | Kind::Int32 | Kind::Int64, Some(base)) if from == Kind::String => {
            let n = OwnedValue::int64(i64::from_str_radix(value.as_str()?, base).ok()?);
            return converted(n.view(), to, &PLAIN, globals);
        }
        _ => {}
    }
    if to == Kind::String {
        return text(value, globals).map(|text| Datum::string(&text));
    }
    if let Some(text) = value.as_str() {
        // Hexadecimal numbers are refused, as on the server.
        return match to {
            Kind::Double => decimal::parse_double(text, env).map(Datum::double),
            Kind::Decimal128 => decimal::parse(text).map(decimals::datum),
            Kind::Int32 => text.parse().ok().map(Datum::int32),
            Kind::Int64 => text.parse().ok().map(Datum::int64),
            Kind::ObjectId => object_id(text),
            _ => date::read(Some(value), None, (Zone::UTC, false), globals).ok()?.map(Datum::date),
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
        Kind::Decimal128 => decimals::datum(decimal::of_number(number)),
        Kind::Date => Datum::date(number.truncated()?),
        Kind::Int64 => Datum::int64(number.truncated()?),
        Kind::Int32 => Datum::int32(i32::try_from(number.truncated()?).ok()?),
        _ => return None,
    })
}

/// A value as `$toString` writes it.
pub(super) fn text(value: Value<'_>, globals: &Globals) -> Option<String> {
    Some(match value.kind() {
        Kind::Bool => if value.is_true() { "true" } else { "false" }.to_owned(),
        Kind::Int32 | Kind::Int64 => value.as_integer()?.to_string(),
        Kind::Double => decimal::double_text(value.as_f64()?, &**globals.env()),
        Kind::Decimal128 => match Number::of(value)? {
            Number::Decimal(number) => decimal::text(number),
            _ => return None,
        },
        Kind::Date => iso(value.as_date_ms()?),
        Kind::ObjectId => hex(&value.as_object_id()?),
        _ => return None,
    })
}

/// An ObjectId from 24 hexadecimal digits.
fn object_id(text: &str) -> Option<Datum<'static>> {
    let bytes = from_hex(text.as_bytes())?;
    (bytes.len() == 12).then_some(Datum::Built(Kind::ObjectId, bytes))
}
