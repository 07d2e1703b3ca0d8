//! Parses a schema: checks it, and compiles its patterns.

use std::rc::Rc;

use super::keywords::{Keyword, Shape, keyword_of};
use super::validate::JsonSchema;
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::{Globals, Regex};
use crate::query::filter::kinds::Kinds;
use crate::query::filter::parse::bad;
use crate::query::filter::tree::Filter;
use crate::value::{Doc, Kind, Number, Value, equal, normalize};

/// The filter of `{$jsonSchema: operand}`.
///
/// Errors: `TypeMismatch` for an operand of the wrong type, `FailedToParse` for unknown keywords and wrong values.
#[inline(never)]
pub(in crate::query::filter) fn parse(operand: Value<'_>, globals: &Globals) -> Result<Filter> {
    let mut checker = Checker { globals, patterns: Vec::new() };
    checker.schema("$jsonSchema", operand)?;
    let doc = operand.as_doc().unwrap_or(Doc::EMPTY);
    if doc.is_empty() {
        return Ok(Filter::AlwaysTrue);
    }
    Ok(Filter::Schema(Rc::new(JsonSchema { doc: doc.to_owned(), patterns: checker.patterns })))
}

struct Checker<'g> {
    globals: &'g Globals,
    patterns: Vec<(Box<str>, Regex)>,
}

#[cold]
#[inline(never)]
fn mismatch(keyword: &str, wanted: &str) -> Error {
    Error::type_mismatch(format!("$jsonSchema keyword '{keyword}' must be {wanted}"))
}

#[cold]
#[inline(never)]
fn malformed(keyword: &str, problem: &str) -> Error {
    Error::new(ErrorCode::FailedToParse, format!("$jsonSchema keyword '{keyword}' {problem}"))
}

impl Checker<'_> {
    fn schema(&mut self, keyword: &str, value: Value<'_>) -> Result<()> {
        let doc = value.as_doc().ok_or_else(|| mismatch(keyword, "an object"))?;
        for (keyword, value) in doc {
            let (known, shape) = keyword_of(keyword).ok_or_else(|| match keyword {
                "$ref" | "$schema" | "default" | "definitions" | "format" | "id" => {
                    malformed(keyword, "is not currently supported")
                }
                _ => malformed(keyword, "is unknown"),
            })?;
            self.keyword(keyword, shape, value)?;
            let needs = |other, wanted, problem| match doc.get(other).is_some() == wanted {
                true => Ok(()),
                false => Err(malformed(keyword, problem)),
            };
            match known {
                Keyword::BsonType => needs("type", false, "cannot be combined with 'type'")?,
                Keyword::ExclusiveMinimum => needs("minimum", true, "needs 'minimum'")?,
                Keyword::ExclusiveMaximum => needs("maximum", true, "needs 'maximum'")?,
                _ => {}
            }
        }
        Ok(())
    }

    fn keyword(&mut self, keyword: &str, shape: Shape, value: Value<'_>) -> Result<()> {
        // First the type, then the content.
        let (fits, wanted) = match shape {
            Shape::Natural | Shape::Number | Shape::Positive => (value.kind().is_number(), "a number"),
            Shape::Flag | Shape::Exclusive => (value.kind() == Kind::Bool, "a boolean"),
            Shape::Text | Shape::Pattern => (value.kind() == Kind::String, "a string"),
            Shape::Types => (matches!(value.kind(), Kind::String | Kind::Array), "a string or an array"),
            Shape::List | Shape::Names | Shape::Schemas => (value.kind() == Kind::Array, "an array"),
            Shape::Fields | Shape::Patterns | Shape::Dependencies => (value.kind() == Kind::Object, "an object"),
            Shape::Schema | Shape::SchemaOrFlag | Shape::Items => (true, ""),
        };
        if !fits {
            return Err(mismatch(keyword, wanted));
        }
        let number = Number::of(value);
        let fits = match shape {
            Shape::Natural => number.and_then(Number::whole).is_some_and(|n| n >= 0),
            Shape::Positive => number.is_some_and(|n| n.compare(Number::Integer(0)).is_gt()),
            Shape::Items => true,
            _ => value.as_array().is_none_or(|list| !list.is_empty()),
        };
        if !fits && shape == Shape::Schemas {
            return Err(bad(keyword, "must be a non-empty array"));
        }
        if !fits {
            return Err(malformed(keyword, "is empty or too small"));
        }
        match shape {
            Shape::Pattern => return self.pattern(value.as_str().unwrap_or_default()),
            Shape::Types if value.kind() == Kind::String => return check_type(keyword, value),
            Shape::Schema => return self.schema(keyword, value),
            Shape::SchemaOrFlag if value.kind() == Kind::Bool => return Ok(()),
            Shape::SchemaOrFlag => return self.schema(keyword, value),
            Shape::Items if value.kind() != Kind::Array => return self.schema(keyword, value),
            _ => {}
        }
        let list = value.as_container().unwrap_or(Doc::EMPTY);
        for (at, (name, item)) in list.iter().enumerate() {
            match shape {
                Shape::Types => check_type(keyword, item)?,
                Shape::Names if item.kind() != Kind::String => return Err(mismatch(keyword, "an array of strings")),
                Shape::Names if list.iter().take(at).any(|(_, other)| other == item) => {
                    return Err(malformed(keyword, "has a duplicate name"));
                }
                // Fields in another order make no difference here, as in the validation.
                Shape::List if list.iter().take(at).any(|(_, other)| is_same(other, item)) => {
                    return Err(malformed(keyword, "has a duplicate value"));
                }
                Shape::Dependencies if item.kind() == Kind::Array => self.keyword(keyword, Shape::Names, item)?,
                Shape::Patterns => {
                    self.pattern(name)?;
                    self.schema(keyword, item)?;
                }
                Shape::Items | Shape::Schemas | Shape::Fields | Shape::Dependencies => self.schema(keyword, item)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn pattern(&mut self, pattern: &str) -> Result<()> {
        self.patterns.push((pattern.into(), Regex::new(pattern, "", self.globals)?));
        Ok(())
    }
}

fn is_same(a: Value<'_>, b: Value<'_>) -> bool {
    equal(normalize(a).view(), normalize(b).view())
}

/// JSON types have names of their own; those without a BSON type are refused.
fn check_type(keyword: &str, alias: Value<'_>) -> Result<()> {
    let alias = alias.as_str().ok_or_else(|| mismatch(keyword, "a string or an array of strings"))?;
    match alias {
        _ if keyword != "type" => Kinds::default().add_alias(alias),
        "object" | "array" | "number" | "boolean" | "string" | "null" => Ok(()),
        "integer" => Err(malformed(keyword, "does not support 'integer'")),
        _ => Err(bad("Unknown type name alias:", alias)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::filter::samples::error;
    use bson::{RawBson, rawbson, rawdoc};

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
            (rawbson!({ "enum": [1, "a", 1.0] }), ErrorCode::FailedToParse),
            (rawbson!({ "enum": [{ "a": 1, "b": 2 }, { "b": 2, "a": 1 }] }), ErrorCode::FailedToParse),
            (rawbson!({ "allOf": [] }), ErrorCode::BadValue),
            (rawbson!({ "oneOf": [] }), ErrorCode::BadValue),
            (rawbson!({ "$ref": "x" }), ErrorCode::FailedToParse),
            (rawbson!({ "minimun": 1 }), ErrorCode::FailedToParse),
        ] {
            assert_eq!(code(schema.clone()), wanted, "{schema:?}");
        }
    }
}
