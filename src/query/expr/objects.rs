//! Objects: `$mergeObjects`, `$objectToArray`, `$arrayToObject`, `$setField`, `$unsetField`.

// Loaded later.

use super::arguments::{self, Arguments, Want::*, argument, failure, text};
use super::datum::{ArrayWriter, Datum, container, is_nullish};
use super::operators::{Binds, MANY, Names, Op, Operator, Syntax, Wants, names, null_in, operator};
use crate::error::ErrorCode::*;
use crate::error::{Error, Result};
use crate::listed::IntoList;
use crate::value::{Doc, DocWriter, Kind, Value};

static SET_FIELD: Names = names(
    &["field", "input", "value"],
    3,
    0,
    Binds::Nothing,
    &[Location4161100, Location4161101, Location4161102, Location4161109, Location4161103],
);
static UNSET_FIELD: Names = names(
    &["field", "input"],
    2,
    0,
    Binds::Nothing,
    &[Location4161100, Location4161101, Location4161102, Location4161109],
);
const FIELD: Wants = &[(Text, Location4161107), (Any, InternalError)];

pub(super) static TABLE: &[Operator] = &[
    operator(Op::More, "$mergeObjects", Syntax::Positional(0, MANY), &[(Any, InternalError)], false, merge),
    null_in(Op::More, "$objectToArray", &[(Any, InternalError)], to_array),
    null_in(Op::More, "$arrayToObject", &[(Array, Location40386)], to_object),
    operator(Op::More, "$setField", Syntax::Named(&SET_FIELD), FIELD, false, |_, a| set_field(a, argument(a, 2))),
    operator(Op::More, "$unsetField", Syntax::Named(&UNSET_FIELD), FIELD, false, |_, a| set_field(a, None)),
];

/// Fields by name: the last value of each, at its first position.
fn object(fields: &[(&str, Value<'_>)]) -> Datum<'static> {
    let mut writer = DocWriter::new();
    for (at, (name, _)) in fields.iter().enumerate() {
        let is_first = fields.iter().take(at).all(|(known, _)| known != name);
        if let Some((_, value)) = fields.iter().rev().find(|(known, _)| known == name).filter(|_| is_first) {
            writer.value(name, *value);
        }
    }
    container(Kind::Object, writer)
}

/// Arguments: objects, or an array of objects.
fn merge(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let parts: Vec<Value<'_>> = match arguments {
        [Some(only)] if only.as_array().is_some() => only.elements().map(|(_, part)| part).listed(),
        _ => arguments.iter().filter_map(|value| *value).listed(),
    };
    let mut fields = Vec::new();
    for part in parts.into_iter().filter(|part| !is_nullish(Some(*part))) {
        let part = part.as_doc().ok_or_else(|| failure(Location40400, operator.name(), "requires object inputs"))?;
        fields.extend(part.iter());
    }
    Ok(object(&fields))
}

/// The error of a value of which no array of fields can be made.
pub fn not_an_object() -> Error {
    failure(Location40390, "$objectToArray", "requires an object")
}

fn to_array(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let doc = argument(arguments, 0).and_then(Value::as_doc).ok_or_else(not_an_object)?;
    let mut pairs = ArrayWriter::new();
    for (name, value) in doc {
        let mut pair = DocWriter::new();
        pair.string("k", name).value("v", value);
        pairs.push(container(Kind::Object, pair).view());
    }
    Ok(pairs.finish())
}

/// From pairs `[name, value]`, or from objects `{k, v}`.
fn to_object(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let refuse = |code, problem: &str| failure(code, operator.name(), problem);
    let mut fields = Vec::new();
    let array = arguments::array(arguments, 0);
    // The first element determines what all others must be.
    let are_pairs = array.iter().next().is_some_and(|(_, first)| first.kind() == Kind::Array);
    for (_, element) in array {
        let parts: Vec<Value<'_>> = element.elements().map(|(_, part)| part).listed();
        let doc = element.as_doc().unwrap_or(Doc::EMPTY);
        let (name, value, codes) = match (element.kind(), are_pairs) {
            (Kind::Array, true) => match *parts.as_slice() {
                [name, value] => (name, value, [Location40395, Location4940400]),
                _ => return Err(refuse(Location40397, "requires pairs of a name and a value")),
            },
            (Kind::Object, false) => match (doc.get("k"), doc.get("v"), doc.iter().count()) {
                (Some(name), Some(value), 2) => (name, value, [Location40394, Location4940401]),
                (.., 2) => return Err(refuse(Location40393, "requires the fields k and v")),
                _ => return Err(refuse(Location40392, "requires objects with only the fields k and v")),
            },
            (_, true) => return Err(refuse(Location40396, "requires all elements to be pairs, like the first")),
            _ if fields.is_empty() => return Err(refuse(Location40398, "requires an array of pairs or of objects")),
            _ => return Err(refuse(Location40391, "requires all elements to be objects, like the first")),
        };
        let [no_string, has_nul] = codes;
        let name = name.as_str().ok_or_else(|| refuse(no_string, "requires strings as names"))?;
        if name.contains('\0') {
            return Err(refuse(has_nul, "requires names without a NUL"));
        }
        fields.push((name, value));
    }
    Ok(object(&fields))
}

/// The object with a new value for a field, whose name may contain dots and dollars; without the field if the value is
/// missing.
fn set_field(arguments: Arguments<'_, '_>, new: Option<Value<'_>>) -> Result<Datum<'static>> {
    let (name, input) = (text(arguments, 0), argument(arguments, 1));
    if name.contains('\0') {
        return Err(failure(Location9534700, "$setField", "needs a name without a NUL"));
    }
    if is_nullish(input) {
        return Ok(Datum::NULL);
    }
    let doc = input.and_then(Value::as_doc);
    let doc: Doc<'_> = doc.ok_or_else(|| failure(Location4161105, "$setField", "needs an object as its input"))?;
    let mut writer = DocWriter::new();
    let mut is_set = false;
    for (known, value) in doc {
        if known != name {
            writer.value(known, value);
        } else if let Some(new) = new {
            writer.value(known, new);
            is_set = true;
        }
    }
    if let Some(new) = new.filter(|_| !is_set) {
        writer.value(name, new);
    }
    Ok(container(Kind::Object, writer))
}
