//! `$jsonSchema`: the server's subset of draft 4, where `bsonType` names the types of BSON.

use std::rc::Rc;

use super::compare::{Compare, CompareOp};
use super::kinds::Kinds;
use super::regex::Regex;
use super::tree::Filter;
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::Globals;
use crate::value::{Doc, Kind, Number, OwnedValue, Value, equal, normalize, sort_by};

/// What a value has to be: every keyword of it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Schema(Vec<Keyword>);

#[derive(Clone, Debug, PartialEq)]
enum Keyword {
    Types(Kinds),
    /// Values without regard to the order of fields.
    Enum(Vec<OwnedValue>),
    /// A number on one side of another.
    Bound(Compare),
    MultipleOf(f64),
    /// An object, array or string that has at least or at most so many fields, elements or characters.
    Size {
        kind: Kind,
        at_most: bool,
        size: usize,
    },
    Pattern(Regex),
    Unique,
    /// Schemas of the first elements, and of those behind them.
    Items {
        first: Vec<Schema>,
        others: Schema,
    },
    Required(Vec<Box<str>>),
    Properties {
        named: Vec<(Box<str>, Schema)>,
        patterns: Vec<(Regex, Schema)>,
        others: Schema,
    },
    /// What is asked of an object that has a field.
    Dependencies(Vec<(Box<str>, Schema)>),
    /// At least and at most so many of the schemas hold.
    Holding {
        least: usize,
        most: usize,
        schemas: Vec<Schema>,
    },
}

/// The filter of `{$jsonSchema: operand}`.
///
/// Errors: `TypeMismatch` for an operand of the wrong type, `FailedToParse` for unknown keywords and wrong values.
pub(super) fn parse(operand: Value<'_>, globals: &Globals) -> Result<Filter> {
    let schema = Parser { globals }.schema("$jsonSchema", operand)?;
    Ok(if schema.0.is_empty() { Filter::AlwaysTrue } else { Filter::Schema(Rc::new(schema)) })
}

impl Schema {
    /// What no value is.
    fn never() -> Schema {
        Schema(vec![Keyword::Holding { least: 1, most: 1, schemas: Vec::new() }])
    }

    /// True where `value` is as the schema says.
    pub(super) fn holds(&self, value: Value<'_>) -> bool {
        self.0.iter().all(|keyword| keyword.holds(value))
    }
}

impl Keyword {
    /// A keyword about another type holds.
    fn holds(&self, value: Value<'_>) -> bool {
        let object = value.as_doc().unwrap_or(Doc::EMPTY);
        let array = value.as_array().unwrap_or(Doc::EMPTY);
        match self {
            Keyword::Types(kinds) => kinds.contains(value.kind()),
            Keyword::Enum(values) => {
                let value = normalize(value);
                values.iter().any(|one| equal(one.view(), value.view()))
            }
            Keyword::Bound(compare) => !value.kind().is_number() || compare.matches(Some(value)),
            Keyword::MultipleOf(divisor) => Number::of(value).is_none_or(|number| is_multiple(number, *divisor)),
            Keyword::Size { kind, at_most, size } => {
                let found = match value.as_str() {
                    _ if value.kind() != *kind => return true,
                    Some(text) => text.bytes().filter(|byte| byte & 0xc0 != 0x80).count(),
                    None => value.as_container().unwrap_or(Doc::EMPTY).iter().count(),
                };
                if *at_most { found <= *size } else { found >= *size }
            }
            Keyword::Pattern(regex) => value.kind() != Kind::String || regex.matches(Some(value)),
            Keyword::Unique => are_unique(array),
            Keyword::Items { first, others } => {
                array.iter().enumerate().all(|(at, (_, item))| first.get(at).unwrap_or(others).holds(item))
            }
            Keyword::Required(names) => {
                value.kind() != Kind::Object || names.iter().all(|name| object.get(name).is_some())
            }
            Keyword::Properties { named, patterns, others } => object.iter().all(|(name, field)| {
                let mut known = false;
                let named = named.iter().filter(|(wanted, _)| **wanted == *name).map(|(_, schema)| schema);
                let matching = patterns.iter().filter(|(regex, _)| regex.is_match(name)).map(|(_, schema)| schema);
                let holds = named.chain(matching).all(|schema| {
                    known = true;
                    schema.holds(field)
                });
                holds && (known || others.holds(field))
            }),
            Keyword::Dependencies(schemas) => {
                schemas.iter().all(|(name, schema)| object.get(name).is_none() || schema.holds(value))
            }
            Keyword::Holding { least, most, schemas } => {
                (*least..=*most).contains(&schemas.iter().filter(|schema| schema.holds(value)).count())
            }
        }
    }
}

/// True for a whole multiple, to fifteen digits: 0.3 is one of 0.1.
fn is_multiple(number: Number, divisor: f64) -> bool {
    let quotient = match number {
        Number::Integer(n) => n as f64 / divisor,
        Number::Double(x) => x / divisor,
        Number::Decimal(d) => d.near_double() / divisor,
    };
    quotient.is_finite() && (quotient - quotient.round_ties_even()).abs() <= quotient.abs().max(1.0) * 1e-15
}

fn are_unique(array: Doc<'_>) -> bool {
    let mut items: Vec<OwnedValue> = array.iter().map(|(_, item)| normalize(item)).collect();
    sort_by(&mut items, |a, b| crate::value::compare(a.view(), b.view()));
    items.iter().zip(items.iter().skip(1)).all(|(a, b)| !equal(a.view(), b.view()))
}

#[derive(Clone, Copy)]
struct Parser<'g> {
    globals: &'g Globals,
}

#[cold]
#[inline(never)]
fn mismatch(name: &str, wanted: &str) -> Error {
    Error::type_mismatch(format!("$jsonSchema keyword '{name}' must be {wanted}"))
}

#[cold]
#[inline(never)]
fn malformed(name: &str, problem: &str) -> Error {
    Error::new(ErrorCode::FailedToParse, format!("$jsonSchema keyword '{name}' {problem}"))
}

fn object<'a>(name: &str, value: Value<'a>) -> Result<Doc<'a>> {
    value.as_doc().ok_or_else(|| mismatch(name, "an object"))
}

/// An array with at least one element.
fn list<'a>(name: &str, value: Value<'a>) -> Result<Doc<'a>> {
    let list = value.as_array().ok_or_else(|| mismatch(name, "an array"))?;
    if list.is_empty() { Err(malformed(name, "cannot be an empty array")) } else { Ok(list) }
}

fn flag(name: &str, value: Value<'_>) -> Result<bool> {
    value.as_bool().ok_or_else(|| mismatch(name, "a boolean"))
}

fn text<'a>(name: &str, value: Value<'a>) -> Result<&'a str> {
    value.as_str().ok_or_else(|| mismatch(name, "a string"))
}

/// Names, each once.
fn names(name: &str, value: Value<'_>) -> Result<Vec<Box<str>>> {
    let mut names: Vec<Box<str>> = Vec::new();
    for (_, item) in list(name, value)? {
        let item = text(name, item)?;
        if names.iter().any(|known| **known == *item) {
            return Err(malformed(name, "cannot hold a name twice"));
        }
        names.push(item.into());
    }
    Ok(names)
}

fn types(name: &str, value: Value<'_>) -> Result<Kinds> {
    let mut kinds = Kinds::default();
    let mut add = |alias: Value<'_>| match (name, text(name, alias)?) {
        ("type", "integer") => Err(malformed(name, "does not support 'integer' yet")),
        ("type", "boolean") => kinds.add_alias("bool"),
        ("type", alias) if !matches!(alias, "object" | "array" | "number" | "string" | "null") => {
            Err(Error::bad_value(format!("Unknown type name alias: {alias}")))
        }
        (_, alias) => kinds.add_alias(alias),
    };
    match value.as_array() {
        Some(_) => list(name, value)?.iter().try_for_each(|(_, alias)| add(alias))?,
        None => add(value)?,
    }
    Ok(kinds)
}

impl Parser<'_> {
    fn schema(self, name: &str, value: Value<'_>) -> Result<Schema> {
        let doc = object(name, value)?;
        let mut keywords = Vec::new();
        for (name, value) in doc {
            keywords.extend(self.keyword(name, value, doc)?);
        }
        Ok(Schema(keywords))
    }

    /// A schema, or a boolean that says whether any value will do.
    fn schema_or_flag(self, name: &str, value: Option<Value<'_>>) -> Result<Schema> {
        match value.map(|value| (value, value.as_bool())) {
            None | Some((_, Some(true))) => Ok(Schema::default()),
            Some((_, Some(false))) => Ok(Schema::never()),
            Some((value, None)) => self.schema(name, value),
        }
    }

    fn schemas(self, name: &str, list: Doc<'_>) -> Result<Vec<(Box<str>, Schema)>> {
        let mut schemas = Vec::new();
        for (key, schema) in list {
            schemas.push((key.into(), self.schema(name, schema)?));
        }
        Ok(schemas)
    }

    fn unnamed(self, name: &str, list: Doc<'_>) -> Result<Vec<Schema>> {
        Ok(self.schemas(name, list)?.into_iter().map(|(_, schema)| schema).collect())
    }

    /// One keyword; `None` for what says nothing, or is said together with another one of `doc`.
    fn keyword(self, name: &str, value: Value<'_>, doc: Doc<'_>) -> Result<Option<Keyword>> {
        let size = |kind, at_most| {
            let number = Number::of(value).ok_or_else(|| mismatch(name, "a number"))?;
            let size = number.whole().and_then(|n| usize::try_from(n).ok());
            let size = size.ok_or_else(|| malformed(name, "must be a non-negative integer"))?;
            Ok(Some(Keyword::Size { kind, at_most, size }))
        };
        let bound = |exclusive: &str, plain, strict| {
            if !value.kind().is_number() {
                return Err(mismatch(name, "a number"));
            }
            let is_strict = doc.get(exclusive).map_or(Ok(false), |value| flag(exclusive, value))?;
            Ok(Some(Keyword::Bound(Compare::plain(if is_strict { strict } else { plain }, value.to_owned()))))
        };
        // What stands beside another keyword and changes it.
        let beside = |other| {
            flag(name, value)?;
            if doc.get(other).is_none() { Err(malformed(name, "needs its bound beside it")) } else { Ok(None) }
        };
        let holding = |least, most: fn(usize) -> usize| {
            let schemas = self.unnamed(name, list(name, value)?)?;
            let least = if least { schemas.len() } else { 1 };
            Ok(Some(Keyword::Holding { least, most: most(schemas.len()), schemas }))
        };
        Ok(Some(match name {
            "bsonType" if doc.get("type").is_some() => return Err(malformed(name, "cannot stand beside 'type'")),
            "type" | "bsonType" => Keyword::Types(types(name, value)?),
            "enum" => Keyword::Enum(list(name, value)?.iter().map(|(_, one)| normalize(one)).collect()),
            "minimum" => return bound("exclusiveMinimum", CompareOp::Gte, CompareOp::Gt),
            "maximum" => return bound("exclusiveMaximum", CompareOp::Lte, CompareOp::Lt),
            "exclusiveMinimum" => return beside("minimum"),
            "exclusiveMaximum" => return beside("maximum"),
            "multipleOf" => {
                let divisor = match Number::of(value).ok_or_else(|| mismatch(name, "a number"))? {
                    Number::Integer(n) => n as f64,
                    Number::Double(x) => x,
                    Number::Decimal(d) => d.near_double(),
                };
                if !(divisor > 0.0 && divisor.is_finite()) {
                    return Err(malformed(name, "must be above zero"));
                }
                Keyword::MultipleOf(divisor)
            }
            "minLength" => return size(Kind::String, false),
            "maxLength" => return size(Kind::String, true),
            "minItems" => return size(Kind::Array, false),
            "maxItems" => return size(Kind::Array, true),
            "minProperties" => return size(Kind::Object, false),
            "maxProperties" => return size(Kind::Object, true),
            "pattern" => Keyword::Pattern(Regex::new(text(name, value)?, "", self.globals)?),
            "uniqueItems" => return Ok(flag(name, value)?.then_some(Keyword::Unique)),
            "items" => match value.as_array() {
                Some(first) => Keyword::Items {
                    first: self.unnamed(name, first)?,
                    others: self.schema_or_flag("additionalItems", doc.get("additionalItems"))?,
                },
                None => Keyword::Items { first: Vec::new(), others: self.schema(name, value)? },
            },
            "additionalItems" => return self.schema_or_flag(name, Some(value)).map(|_| None),
            "required" => Keyword::Required(names(name, value)?),
            "properties" | "patternProperties" | "additionalProperties" => {
                let mut keyword = [None; 3];
                let all = ["properties", "patternProperties", "additionalProperties"];
                all.iter().zip(&mut keyword).for_each(|(name, value)| *value = doc.get(name));
                // The three are one keyword, and the first of them that is there stands for it.
                if all.iter().find(|name| doc.get(name).is_some()) != Some(&name) {
                    return Ok(None);
                }
                let [named, patterns, others] = keyword;
                let fields = |name, value: Option<Value<'_>>| match value {
                    Some(value) => self.schemas(name, object(name, value)?),
                    None => Ok(Vec::new()),
                };
                let named = fields("properties", named)?;
                let mut compiled = Vec::new();
                for (pattern, schema) in fields("patternProperties", patterns)? {
                    compiled.push((Regex::new(&pattern, "", self.globals)?, schema));
                }
                let others = self.schema_or_flag("additionalProperties", others)?;
                Keyword::Properties { named, patterns: compiled, others }
            }
            "dependencies" => {
                let mut dependencies = Vec::new();
                for (field, wanted) in object(name, value)? {
                    let schema = match wanted.as_array() {
                        Some(_) => Schema(vec![Keyword::Required(names(name, wanted)?)]),
                        None => self.schema(name, wanted)?,
                    };
                    dependencies.push((field.into(), schema));
                }
                Keyword::Dependencies(dependencies)
            }
            "allOf" => return holding(true, |n| n),
            "anyOf" => return holding(false, |n| n),
            "oneOf" => return holding(false, |_| 1),
            "not" => Keyword::Holding { least: 0, most: 0, schemas: vec![self.schema(name, value)?] },
            "title" | "description" => return text(name, value).map(|_| None),
            "$ref" | "$schema" | "default" | "definitions" | "format" | "id" => {
                return Err(malformed(name, "is not currently supported"));
            }
            _ => return Err(Error::new(ErrorCode::FailedToParse, format!("Unknown $jsonSchema keyword: {name}"))),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{error, hits};
    use super::*;
    use bson::{RawBson, RawDocumentBuf, rawbson, rawdoc};

    /// Whether each of `docs` is as `schema` says.
    #[track_caller]
    fn check(schema: RawDocumentBuf, docs: &[(RawDocumentBuf, bool)]) {
        let all: Vec<RawDocumentBuf> = docs.iter().map(|(doc, _)| doc.clone()).collect();
        let wanted: Vec<usize> = (0..docs.len()).filter(|at| docs[*at].1).collect();
        assert_eq!(hits(&all, rawdoc! { "$jsonSchema": schema.clone() }), wanted, "{schema:?}");
    }

    fn of_a(schema: RawDocumentBuf) -> RawDocumentBuf {
        rawdoc! { "properties": { "a": schema } }
    }

    #[test]
    fn types_have_names_of_json_or_of_bson() {
        let docs = |wanted: [bool; 4]| {
            let all = [rawdoc! { "a": 1 }, rawdoc! { "a": 1.5 }, rawdoc! { "a": [1] }, rawdoc! {}];
            all.into_iter().zip(wanted).collect::<Vec<_>>()
        };
        check(of_a(rawdoc! { "bsonType": "int" }), &docs([true, false, false, true]));
        check(of_a(rawdoc! { "bsonType": ["int", "array"] }), &docs([true, false, true, true]));
        check(of_a(rawdoc! { "type": "number" }), &docs([true, true, false, true]));
        check(rawdoc! { "bsonType": "object", "required": ["a"] }, &docs([true, true, true, false]));
        check(rawdoc! {}, &docs([true; 4]));
    }

    #[test]
    fn keywords_about_another_type_hold() {
        let schema = rawdoc! { "minimum": 5, "maxLength": 2, "minItems": 2, "uniqueItems": true, "minProperties": 1 };
        check(
            of_a(schema),
            &[
                (rawdoc! { "a": 5 }, true),
                (rawdoc! { "a": 4.9 }, false),
                (rawdoc! { "a": f64::NAN }, false),
                (rawdoc! { "a": "éé" }, true),
                (rawdoc! { "a": "abc" }, false),
                (rawdoc! { "a": [1, 2] }, true),
                (rawdoc! { "a": [1, 1.0] }, false),
                (rawdoc! { "a": [{ "x": 1, "y": 2 }, { "y": 2, "x": 1 }] }, false),
                (rawdoc! { "a": [1] }, false),
                (rawdoc! { "a": {} }, false),
                (rawdoc! { "a": null }, true),
            ],
        );
    }

    #[test]
    fn bounds_may_exclude_their_ends_and_multiples_are_decimal() {
        let docs = |a: f64, b: bool| (rawdoc! { "a": a }, b);
        check(of_a(rawdoc! { "maximum": 3, "exclusiveMaximum": true }), &[docs(3.0, false), docs(2.9, true)]);
        check(of_a(rawdoc! { "maximum": 3, "exclusiveMaximum": false }), &[docs(3.0, true), docs(3.1, false)]);
        check(of_a(rawdoc! { "multipleOf": 0.1 }), &[docs(0.3, true), docs(0.35, false), docs(7.0, true)]);
        check(of_a(rawdoc! { "multipleOf": 3 }), &[docs(9.0, true), docs(-3.0, true), docs(10.0, false)]);
    }

    #[test]
    fn properties_are_told_by_name_and_pattern_and_the_others_may_be_refused() {
        let schema = rawdoc! { "properties": { "a": { "bsonType": "int" } },
        "patternProperties": { "^x": { "enum": [1, { "p": 1, "q": 2 }] } }, "additionalProperties": false };
        check(
            schema,
            &[
                (rawdoc! { "a": 1, "x1": 1 }, true),
                (rawdoc! { "a": "1" }, false),
                (rawdoc! { "x": 2 }, false),
                (rawdoc! { "x": { "q": 2, "p": 1.0 } }, true),
                (rawdoc! { "b": 1 }, false),
                (rawdoc! {}, true),
            ],
        );
        let others = rawdoc! { "additionalProperties": { "type": "string" } };
        check(others, &[(rawdoc! { "a": "s" }, true), (rawdoc! { "a": 1 }, false)]);
        let together = rawdoc! { "dependencies": { "a": ["b"], "c": { "required": ["d"] } } };
        check(
            together,
            &[(rawdoc! { "a": 1 }, false), (rawdoc! { "a": 1, "b": 1 }, true), (rawdoc! { "c": 1 }, false)],
        );
    }

    #[test]
    fn elements_have_a_schema_each_or_one_for_all() {
        let all = of_a(rawdoc! { "items": { "minimum": 2 } });
        check(all, &[(rawdoc! { "a": [2, 3] }, true), (rawdoc! { "a": [2, 1] }, false), (rawdoc! { "a": 1 }, true)]);
        let each = of_a(rawdoc! { "items": [{ "type": "string" }], "additionalItems": false });
        check(each, &[(rawdoc! { "a": ["x"] }, true), (rawdoc! { "a": ["x", 1] }, false), (rawdoc! { "a": [] }, true)]);
    }

    #[test]
    fn schemas_combine() {
        let two = || rawbson!([{ "minimum": 2 }, { "maximum": 4 }]);
        let docs =
            |wanted: [bool; 3]| [1, 3, 5].map(|n| rawdoc! { "a": n }).into_iter().zip(wanted).collect::<Vec<_>>();
        check(of_a(rawdoc! { "allOf": two() }), &docs([false, true, false]));
        check(of_a(rawdoc! { "anyOf": two() }), &docs([true, true, true]));
        check(of_a(rawdoc! { "oneOf": two() }), &docs([true, false, true]));
        check(of_a(rawdoc! { "not": { "minimum": 2 } }), &docs([true, false, false]));
        check(of_a(rawdoc! { "pattern": "^a" }), &[(rawdoc! { "a": "ab" }, true), (rawdoc! { "a": "b" }, false)]);
    }

    #[test]
    fn malformed_schemas_are_refused_with_the_servers_code() {
        let code = |schema: RawBson| error(rawdoc! { "$jsonSchema": schema }).code;
        for (schema, wanted) in [
            (rawbson!(1), ErrorCode::TypeMismatch),
            (rawbson!({ "minimum": "1" }), ErrorCode::TypeMismatch),
            (rawbson!({ "required": "a" }), ErrorCode::TypeMismatch),
            (rawbson!({ "required": [] }), ErrorCode::FailedToParse),
            (rawbson!({ "required": ["a", "a"] }), ErrorCode::FailedToParse),
            (rawbson!({ "properties": { "a": 1 } }), ErrorCode::TypeMismatch),
            (rawbson!({ "maxLength": -1 }), ErrorCode::FailedToParse),
            (rawbson!({ "exclusiveMinimum": true }), ErrorCode::FailedToParse),
            (rawbson!({ "type": "integer" }), ErrorCode::FailedToParse),
            (rawbson!({ "bsonType": "integer" }), ErrorCode::BadValue),
            (rawbson!({ "bsonType": "int", "type": "number" }), ErrorCode::FailedToParse),
            (rawbson!({ "multipleOf": 0 }), ErrorCode::FailedToParse),
            (rawbson!({ "enum": [] }), ErrorCode::FailedToParse),
            (rawbson!({ "$ref": "x" }), ErrorCode::FailedToParse),
            (rawbson!({ "minimun": 1 }), ErrorCode::FailedToParse),
        ] {
            assert_eq!(code(schema.clone()), wanted, "{schema:?}");
        }
    }
}
