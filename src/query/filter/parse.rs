//! Parses a filter from its document.

use std::rc::Rc;

use super::arrays::{parse_all, parse_elem_match, parse_size};
use super::bits::{self, Bits};
use super::compare::Compare;
use super::membership::In;
use super::regex;
use super::tree::{Filter, Test};
use super::{exists, expression, geo, kinds, modulo, schema};
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::{CompareOp, Globals, Regex};
use crate::value::{Doc, Kind, Number, Path, Value};

/// An operator on the value of a field.
#[derive(Clone, Copy)]
enum FilterOperator {
    Compare(CompareOp),
    Whole(CompareOp),
    Ne,
    In,
    Nin,
    Exists,
    Not,
    Type,
    Mod,
    Size,
    All,
    ElemMatch,
    Bits {
        any: bool,
        set: bool,
    },
    Comment,
    /// `$near` and its siblings, which time-series collections do not support.
    Near,
    Geo(&'static str),
}

static OPERATORS: &[(&str, FilterOperator)] = &[
    ("$eq", FilterOperator::Compare(CompareOp::Eq)),
    ("$gt", FilterOperator::Compare(CompareOp::Gt)),
    ("$gte", FilterOperator::Compare(CompareOp::Gte)),
    ("$lt", FilterOperator::Compare(CompareOp::Lt)),
    ("$lte", FilterOperator::Compare(CompareOp::Lte)),
    ("$_internalExprEq", FilterOperator::Whole(CompareOp::Eq)),
    ("$_internalExprGt", FilterOperator::Whole(CompareOp::Gt)),
    ("$_internalExprGte", FilterOperator::Whole(CompareOp::Gte)),
    ("$_internalExprLt", FilterOperator::Whole(CompareOp::Lt)),
    ("$_internalExprLte", FilterOperator::Whole(CompareOp::Lte)),
    ("$ne", FilterOperator::Ne),
    ("$in", FilterOperator::In),
    ("$nin", FilterOperator::Nin),
    ("$exists", FilterOperator::Exists),
    ("$not", FilterOperator::Not),
    ("$type", FilterOperator::Type),
    ("$mod", FilterOperator::Mod),
    ("$size", FilterOperator::Size),
    ("$all", FilterOperator::All),
    ("$elemMatch", FilterOperator::ElemMatch),
    ("$bitsAllSet", FilterOperator::Bits { any: false, set: true }),
    ("$bitsAllClear", FilterOperator::Bits { any: false, set: false }),
    ("$bitsAnySet", FilterOperator::Bits { any: true, set: true }),
    ("$bitsAnyClear", FilterOperator::Bits { any: true, set: false }),
    ("$comment", FilterOperator::Comment),
    ("$near", FilterOperator::Near),
    ("$nearSphere", FilterOperator::Near),
    ("$geoNear", FilterOperator::Near),
    ("$geoIntersects", FilterOperator::Geo("$geoIntersects")),
    ("$geoWithin", FilterOperator::Geo("$geoWithin")),
    ("$within", FilterOperator::Geo("$geoWithin")),
];

impl Filter {
    /// The filter that `doc` describes.
    ///
    /// Errors: `BadValue` naming the operator or field, unless the server has a specific code; 5626500 for the `$near`
    /// family and 27 for `$text`, which time-series collections do not support; those of expressions.
    pub fn parse(doc: Doc<'_>, globals: &Globals) -> Result<Filter> {
        FilterParser { globals, nested: false }.filter(doc)
    }
}

/// What parsing depends on besides the document.
#[derive(Clone, Copy)]
pub(super) struct FilterParser<'g> {
    pub(super) globals: &'g Globals,
    /// True inside `$elemMatch`, where there is no whole document.
    nested: bool,
}

impl<'g> FilterParser<'g> {
    /// The parser for the inside of `$elemMatch`.
    pub(super) fn nested(self) -> FilterParser<'g> {
        FilterParser { nested: true, ..self }
    }

    /// The filter of a document of fields and logical operators.
    pub(super) fn filter(self, doc: Doc<'_>) -> Result<Filter> {
        let children = each(doc, &mut |name, value| {
            if name.starts_with('$') {
                return self.top_level(name, value);
            }
            let path = Path::parse(name)?;
            match operators_of(value) {
                Some(operators) => self.operators(&path, operators),
                None => self.equality(&path, value),
            }
        });
        Ok(Filter::and(children?))
    }

    fn top_level(self, name: &str, operand: Value<'_>) -> Result<Filter> {
        match name {
            "$and" => self.logical(name, operand).map(Filter::and),
            "$or" => self.logical(name, operand).map(Filter::or),
            "$nor" => self.logical(name, operand).map(Filter::nor),
            "$comment" => Ok(Filter::AlwaysTrue),
            "$alwaysTrue" | "$alwaysFalse" if operand.as_integer() != Some(1) => {
                Err(Error::new(ErrorCode::FailedToParse, format!("{name} must be an integer value of 1")))
            }
            "$alwaysTrue" => Ok(Filter::AlwaysTrue),
            "$alwaysFalse" => Ok(Filter::AlwaysFalse),
            "$expr" if self.nested => Err(bad(name, "can only be applied to the top-level document")),
            "$expr" => expression::parse(operand, self.globals),
            // Loaded by now: who has a filter with one of `RARE_OPERATORS` awaits it.
            "$jsonSchema" => schema::parse(operand, self.globals),
            // Loaded by now: as above.
            "$_internalBucketGeoWithin" => geo::parse_bucket(operand),
            "$sampleRate" => match Number::of(operand).map(|rate| (rate, operand.as_f64())) {
                Some((rate, _)) if rate.compare(Number::Integer(0)).is_eq() => Ok(Filter::AlwaysFalse),
                Some((rate, _)) if rate.compare(Number::Integer(1)).is_eq() => Ok(Filter::AlwaysTrue),
                Some((_, Some(rate))) if (0.0..1.0).contains(&rate) => expression::sample(rate, self.globals),
                _ => Err(wrong(name, "needs a number in [0, 1]", operand)),
            },
            "$text" => Err(Error::new(
                ErrorCode::IndexNotFound,
                "$text needs a text index, which time-series collections do not support",
            )),
            "$where" => Err(bad(name, "is not supported on a time-series collection")),
            _ => Err(bad("Unknown top-level operator:", name)),
        }
    }

    fn logical(self, name: &str, operand: Value<'_>) -> Result<Vec<Filter>> {
        let list = operand.as_array().ok_or_else(|| wrong(name, "must be an array", operand))?;
        if list.is_empty() {
            return Err(bad(name, "must be a non-empty array"));
        }
        each(list, &mut |_, entry| match entry.as_doc() {
            Some(doc) => self.filter(doc),
            None => Err(wrong(name, "needs objects as its elements", entry)),
        })
    }

    /// A value in the place of operators: equality, or a pattern's match.
    pub(super) fn equality(self, path: &Path, value: Value<'_>) -> Result<Filter> {
        match value.kind() {
            Kind::Regex => Ok(Filter::Field(path.clone(), Test::Regex(Rc::new(Regex::of(value, self.globals)?)))),
            _ => self.compare(path, CompareOp::Eq, value),
        }
    }

    /// All operators in a document, on one path.
    pub(super) fn operators(self, path: &Path, operators: Doc<'_>) -> Result<Filter> {
        let children = each(operators, &mut |name, operand| match name {
            "$regex" => regex::parse(path, operators, self.globals),
            "$options" if operators.get("$regex").is_some() => Ok(Filter::AlwaysTrue),
            "$options" => Err(bad(name, "needs a $regex")),
            _ => self.operator(path, name, operand),
        });
        Ok(Filter::and(children?))
    }

    fn operator(self, path: &Path, name: &str, operand: Value<'_>) -> Result<Filter> {
        let known = OPERATORS.iter().find(|(known, _)| *known == name).map(|(_, operator)| *operator);
        let operator = known.ok_or_else(|| bad("Unknown operator:", name))?;
        match operator {
            FilterOperator::Compare(op) => self.compare(path, op, operand),
            FilterOperator::Whole(_) if operand.kind() == Kind::Array => {
                Err(wrong(name, "cannot be of an array", operand))
            }
            FilterOperator::Whole(op) => self.compare(path, op, operand).map(|filter| match filter {
                Filter::Field(path, Test::Compare(compare)) => Filter::Field(path, Test::Whole(compare)),
                other => other,
            }),
            FilterOperator::Ne if operand.kind() == Kind::Regex => {
                Err(bad("A regular expression is not allowed in", name))
            }
            FilterOperator::Ne => self.compare(path, CompareOp::Eq, operand).map(Filter::negated),
            FilterOperator::In => self.membership(path, name, operand),
            FilterOperator::Nin => self.membership(path, name, operand).map(Filter::negated),
            FilterOperator::Exists => Ok(exists::parse(path.clone(), operand)),
            FilterOperator::Not => self.not(path, operand),
            FilterOperator::Type => kinds::parse(path, operand),
            FilterOperator::Mod => modulo::parse(path, operand),
            FilterOperator::Size => parse_size(path, operand),
            FilterOperator::All => parse_all(path, operand, self),
            FilterOperator::ElemMatch => parse_elem_match(path, operand, self),
            FilterOperator::Bits { any, set } => bits::parse(path, name, Bits::of(any, set), operand),
            FilterOperator::Comment => Ok(Filter::AlwaysTrue),
            FilterOperator::Near => Err(Error::new(
                ErrorCode::Location5626500,
                format!("{name} is not supported on a time-series collection; use the $geoNear stage"),
            )),
            // Loaded by now: who has a filter with one of `RARE_OPERATORS` awaits it.
            FilterOperator::Geo(name) => geo::parse(path, name, operand),
        }
    }

    fn compare(self, path: &Path, op: CompareOp, operand: Value<'_>) -> Result<Filter> {
        let compare = Compare::new(path, op, operand, self.globals.collation())?;
        Ok(Filter::Field(path.clone(), Test::Compare(compare)))
    }

    fn not(self, path: &Path, operand: Value<'_>) -> Result<Filter> {
        match operand.as_doc() {
            Some(operators) if operators.is_empty() => Err(bad("$not", "cannot be empty")),
            Some(operators) => Ok(Filter::negated(self.operators(path, operators)?)),
            None if operand.kind() == Kind::Regex => Ok(Filter::negated(self.equality(path, operand)?)),
            None => Err(wrong("$not", "needs a regex or a document", operand)),
        }
    }

    fn membership(self, path: &Path, name: &str, operand: Value<'_>) -> Result<Filter> {
        let list = operand.as_array().ok_or_else(|| wrong(name, "needs an array", operand))?;
        let (mut values, mut arms) = (Vec::new(), Vec::new());
        for (_, value) in list {
            match value.kind() {
                Kind::Regex => arms.push(self.equality(path, value)?),
                Kind::Undefined => return Err(bad(name, "cannot contain undefined")),
                Kind::Object if operators_of(value).is_some() => {
                    return Err(wrong(name, "cannot contain an operator", value));
                }
                _ => values.push(value.to_owned()),
            }
        }
        if !values.is_empty() {
            arms.insert(0, Filter::Field(path.clone(), Test::In(In::new(values, self.globals.collation()))));
        }
        Ok(Filter::or(arms))
    }
}

/// An error about a subject, without a value. One function for all, because each format string takes code.
#[cold]
#[inline(never)]
pub(super) fn bad(subject: &str, problem: &str) -> Error {
    Error::bad_value(format!("{subject} {problem}"))
}

/// The same with the offending value.
#[cold]
#[inline(never)]
pub(super) fn wrong(subject: &str, problem: &str, value: Value<'_>) -> Error {
    Error::bad_value(format!("{subject} {problem}: {value:?}"))
}

/// The filters that `parse` makes of each field or element.
pub(super) fn each(list: Doc<'_>, parse: &mut dyn FnMut(&str, Value<'_>) -> Result<Filter>) -> Result<Vec<Filter>> {
    let mut filters = Vec::new();
    for (name, value) in list {
        filters.push(parse(name, value)?);
    }
    Ok(filters)
}

/// The document of operators in `value`, if it is one. An object literal is not, and neither is a DBRef, whose names
/// also begin with `$`.
pub(super) fn operators_of<'a>(value: Value<'a>) -> Option<Doc<'a>> {
    let doc = value.as_doc()?;
    let (first, _) = doc.iter().next()?;
    let is_db_ref = doc.get("$ref").is_some() && doc.get("$id").is_some();
    (first.starts_with('$') && !is_db_ref).then_some(doc)
}

#[cfg(test)]
mod tests {
    use super::super::samples::{error, filter, globals};
    use super::*;
    use bson::{RawBson, cstr, rawdoc};

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
    fn a_filter_may_take_long_if_it_makes_numbers_or_goes_through_elements_for_each_element() {
        let takes = |expr: bson::RawDocumentBuf| filter(&rawdoc! { "a": 1, "$expr": expr }).may_take_long();
        let each = |input: RawBson, body: RawBson| rawdoc! { "$map": { "input": input, "in": body } };
        let of = |input: &str, body: RawBson| each(input.into(), body);
        assert!(!filter(&rawdoc! { "a": { "$gt": 1 } }).may_take_long());
        assert!(!takes(rawdoc! { "$gt": [{ "$multiply": ["$a", "$b.c"] }, 3] }));
        assert!(!takes(rawdoc! { "$in": [3, of("$a", "$$this.x".into())] }));
        assert!(takes(rawdoc! { "$in": [3, { "$range": [0, "$a"] }] }));
        // The range is made when the filter is parsed.
        let constant = rawdoc! { "$range": [0, 300] };
        assert!(takes(rawdoc! { "$in": [3, each(constant.into(), "$a".into())] }));
        assert!(takes(rawdoc! { "$in": [3, of("$a", of("$b", "$$this".into()).into())] }));
    }

    #[test]
    fn all_spellings_of_a_filter_give_the_same_tree() {
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
        assert_eq!(error(rawdoc! { "a": { "$foo": 1 } }).message, "Unknown operator: $foo");
        assert_eq!(error(rawdoc! { "a": { "$gt": 1, "b": 2 } }).message, "Unknown operator: b");
        assert_eq!(error(rawdoc! { "a": { "$not": { "b": 2 } } }).message, "Unknown operator: b");
        assert_eq!(error(rawdoc! { "$foo": 1 }).message, "Unknown top-level operator: $foo");
        assert_eq!(error(rawdoc! { "a": { "$foo": 1 } }).code, ErrorCode::BadValue);
    }

    #[test]
    fn an_object_whose_first_name_is_no_operator_is_a_value() {
        assert!(
            Filter::parse(Doc::parse(rawdoc! { "a": { "b": 1, "$gt": 2 } }.as_bytes()).unwrap(), &globals()).is_ok()
        );
        let reference = rawdoc! { "a": { "$ref": "c", "$id": 1 } };
        assert!(Filter::parse(Doc::parse(reference.as_bytes()).unwrap(), &globals()).is_ok());
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
}
