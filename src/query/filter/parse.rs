//! A filter from its document.

use super::compare::{Compare, CompareOp};
use super::exists;
use super::membership::In;
use super::tree::{Filter, Test};
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Doc, Kind, Path, Value};

/// Operators of the server that stand where a field name could.
const TOP_LEVEL_NOT_YET: [&str; 8] =
    ["$alwaysFalse", "$alwaysTrue", "$comment", "$expr", "$jsonSchema", "$sampleRate", "$text", "$where"];

/// Operators of the server on the value of a field.
const FIELD_NOT_YET: [&str; 15] = [
    "$all",
    "$bitsAllClear",
    "$bitsAllSet",
    "$bitsAnyClear",
    "$bitsAnySet",
    "$comment",
    "$elemMatch",
    "$geoIntersects",
    "$geoWithin",
    "$mod",
    "$options",
    "$regex",
    "$size",
    "$type",
    "$within",
];

impl Filter {
    /// The filter that `doc` describes.
    ///
    /// Errors: `BadValue` naming the operator or field; 5626500 for the `$near` family, which a time-series collection
    /// has not.
    pub fn parse(doc: Doc<'_>) -> Result<Filter> {
        let children: Result<Vec<Filter>> = doc
            .iter()
            .map(
                |(name, value)| {
                    if name.starts_with('$') { parse_logical(name, value) } else { parse_field(name, value) }
                },
            )
            .collect();
        Ok(Filter::and(children?))
    }
}

fn parse_logical(name: &str, operand: Value<'_>) -> Result<Filter> {
    let combine = match name {
        "$and" => Filter::and,
        "$or" => Filter::or,
        "$nor" => Filter::nor,
        _ if TOP_LEVEL_NOT_YET.contains(&name) => return Err(not_yet(name)),
        _ => return Err(Error::bad_value(format!("unknown top level operator: {name}"))),
    };
    let list =
        operand.as_array().ok_or_else(|| Error::bad_value(format!("{name} must be an array, not {operand:?}")))?;
    if list.is_empty() {
        return Err(Error::bad_value(format!("{name} must be a nonempty array")));
    }
    let children: Result<Vec<Filter>> = list
        .iter()
        .map(|(_, entry)| match entry.as_doc() {
            Some(doc) => Filter::parse(doc),
            None => Err(Error::bad_value(format!("{name} entries need to be full objects, not {entry:?}"))),
        })
        .collect();
    Ok(combine(children?))
}

fn parse_field(name: &str, value: Value<'_>) -> Result<Filter> {
    let path = Path::parse(name)?;
    match operators_of(value) {
        Some(operators) => parse_operators(&path, operators),
        None if value.kind() == Kind::Regex => Err(not_yet("A regular expression")),
        None => compare(&path, CompareOp::Eq, value),
    }
}

/// The document of operators that `value` is. An object literal is none, and neither is a DBRef, whose names have a `$` too.
fn operators_of<'a>(value: Value<'a>) -> Option<Doc<'a>> {
    let doc = value.as_doc()?;
    let (first, _) = doc.iter().next()?;
    let is_db_ref = doc.get("$ref").is_some() && doc.get("$id").is_some();
    (first.starts_with('$') && !is_db_ref).then_some(doc)
}

fn parse_operators(path: &Path, operators: Doc<'_>) -> Result<Filter> {
    let children: Result<Vec<Filter>> =
        operators.iter().map(|(name, operand)| parse_operator(path, name, operand)).collect();
    Ok(Filter::and(children?))
}

fn parse_operator(path: &Path, name: &str, operand: Value<'_>) -> Result<Filter> {
    if let Some(op) = CompareOp::from_name(name) {
        return compare(path, op, operand);
    }
    match name {
        "$ne" if operand.kind() == Kind::Regex => Err(Error::bad_value("Can't have regex as arg to $ne")),
        "$ne" => Ok(Filter::negated(compare(path, CompareOp::Eq, operand)?)),
        "$in" => membership(path, name, operand),
        "$nin" => Ok(Filter::negated(membership(path, name, operand)?)),
        "$exists" => Ok(exists::parse(path.clone(), operand)),
        "$not" => parse_not(path, operand),
        "$near" | "$nearSphere" | "$geoNear" => Err(Error::new(
            ErrorCode::Location5626500,
            format!("{name} is not supported on a time-series collection; use the $geoNear stage"),
        )),
        _ if FIELD_NOT_YET.contains(&name) => Err(not_yet(name)),
        _ => Err(Error::bad_value(format!("unknown operator: {name}"))),
    }
}

fn parse_not(path: &Path, operand: Value<'_>) -> Result<Filter> {
    match operand.as_doc() {
        Some(operators) if operators.is_empty() => Err(Error::bad_value("$not cannot be empty")),
        Some(operators) => Ok(Filter::negated(parse_operators(path, operators)?)),
        None if operand.kind() == Kind::Regex => Err(not_yet("A regular expression in $not")),
        None => Err(Error::bad_value(format!("$not needs a regex or a document, not {operand:?}"))),
    }
}

fn compare(path: &Path, op: CompareOp, operand: Value<'_>) -> Result<Filter> {
    Ok(Filter::Field(path.clone(), Test::Compare(Compare::new(path, op, operand)?)))
}

fn membership(path: &Path, name: &str, operand: Value<'_>) -> Result<Filter> {
    let list = operand.as_array().ok_or_else(|| Error::bad_value(format!("{name} needs an array, not {operand:?}")))?;
    let mut values = Vec::new();
    for (_, value) in list {
        match value.kind() {
            Kind::Regex => return Err(not_yet(&format!("A regular expression in {name}"))),
            Kind::Undefined => return Err(Error::bad_value(format!("{name} cannot hold undefined"))),
            Kind::Object if operators_of(value).is_some() => {
                return Err(Error::bad_value(format!("cannot nest $ under {name}: {value:?}")));
            }
            _ => values.push(value.to_owned()),
        }
    }
    if values.is_empty() {
        return Ok(Filter::AlwaysFalse);
    }
    Ok(Filter::Field(path.clone(), Test::In(In::new(values))))
}

fn not_yet(what: &str) -> Error {
    Error::bad_value(format!("{what} is not supported yet in a filter"))
}

#[cfg(test)]
mod tests {
    use super::super::samples::filter;
    use super::*;
    use bson::{RawBson, RawDocumentBuf, cstr, rawdoc};

    fn error(doc: RawDocumentBuf) -> Error {
        Filter::parse(Doc::parse(doc.as_bytes()).unwrap()).unwrap_err()
    }

    fn regex() -> RawBson {
        RawBson::RegularExpression(bson::Regex { pattern: cstr!("a").into(), options: cstr!("").into() })
    }

    #[test]
    fn the_empty_filter_matches_everything() {
        assert!(filter(&rawdoc! {}).is_trivial());
        assert!(filter(&rawdoc! { "$and": [{}, {}] }).is_trivial());
        assert!(filter(&rawdoc! { "a": { "$nin": [] } }).is_trivial());
        assert!(!filter(&rawdoc! { "a": {} }).is_trivial());
    }

    #[test]
    fn spellings_of_one_filter_give_one_tree() {
        let plain = filter(&rawdoc! { "a": 1, "b": { "$gt": 2, "$lt": 5 } });
        assert_eq!(
            plain,
            filter(&rawdoc! { "$and": [{ "a": { "$eq": 1 } }, { "b": { "$gt": 2 } }, { "b": { "$lt": 5 } }] })
        );
        assert_eq!(filter(&rawdoc! { "a": { "$ne": 1 } }), filter(&rawdoc! { "a": { "$not": { "$eq": 1 } } }));
        assert_eq!(filter(&rawdoc! { "$or": [{ "a": 1 }] }), filter(&rawdoc! { "a": 1 }));
        assert_eq!(filter(&rawdoc! { "a": { "$in": [2, 1, 1.0] } }), filter(&rawdoc! { "a": { "$in": [1, 2] } }));
    }

    #[test]
    fn an_unknown_operator_is_named() {
        assert_eq!(error(rawdoc! { "a": { "$foo": 1 } }).message, "unknown operator: $foo");
        assert_eq!(error(rawdoc! { "a": { "$gt": 1, "b": 2 } }).message, "unknown operator: b");
        assert_eq!(error(rawdoc! { "a": { "$not": { "b": 2 } } }).message, "unknown operator: b");
        assert_eq!(error(rawdoc! { "$foo": 1 }).message, "unknown top level operator: $foo");
        assert_eq!(error(rawdoc! { "a": { "$foo": 1 } }).code, ErrorCode::BadValue);
    }

    #[test]
    fn an_object_literal_is_a_value_whatever_stands_behind_its_first_name() {
        assert!(Filter::parse(Doc::parse(rawdoc! { "a": { "b": 1, "$gt": 2 } }.as_bytes()).unwrap()).is_ok());
        let reference = rawdoc! { "a": { "$ref": "c", "$id": 1 } };
        assert!(Filter::parse(Doc::parse(reference.as_bytes()).unwrap()).is_ok());
    }

    #[test]
    fn malformed_operands_are_refused_with_the_servers_code() {
        for doc in [
            rawdoc! { "$and": [] },
            rawdoc! { "$or": { "a": 1 } },
            rawdoc! { "$nor": [1] },
            rawdoc! { "$not": { "a": 1 } },
            rawdoc! { "a": { "$not": 3 } },
            rawdoc! { "a": { "$not": {} } },
            rawdoc! { "a": { "$in": 3 } },
            rawdoc! { "a": { "$nin": { "x": 1 } } },
            rawdoc! { "a": { "$in": [{ "$gt": 1 }] } },
            rawdoc! { "a": RawBson::Undefined },
            rawdoc! { "a": { "$in": [RawBson::Undefined] } },
            rawdoc! { "a": { "$gt": regex() } },
            rawdoc! { "a": { "$ne": regex() } },
        ] {
            assert_eq!(error(doc.clone()).code, ErrorCode::BadValue, "{doc:?}");
        }
        assert_eq!(error(rawdoc! { "a": { "$near": [0, 0] } }).code, ErrorCode::Location5626500);
    }

    #[test]
    fn operators_to_come_say_so() {
        let mut docs = vec![
            rawdoc! { "a": regex() },
            rawdoc! { "a": { "$in": [regex()] } },
            rawdoc! { "a": { "$not": regex() } },
            rawdoc! { "$expr": true },
        ];
        docs.extend(FIELD_NOT_YET.map(|op| rawdoc! { "a": { bson::raw::CString::try_from(op).unwrap(): 1 } }));
        for doc in docs {
            let error = error(doc);
            assert_eq!(error.code, ErrorCode::BadValue);
            assert!(error.message.contains("not supported yet"), "{error}");
        }
    }
}
