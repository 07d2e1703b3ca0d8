//! `$size`, `$all`, `$elemMatch`: filters on the elements of arrays.

use super::parse::{FilterParser, each, operators_of, wrong};
use super::tree::{Filter, Test};
use crate::error::Result;
use crate::value::{Doc, Kind, Number, Path, Value};

/// What `$elemMatch` requires of one element.
#[derive(Clone, Debug, PartialEq)]
pub enum ElemMatch {
    /// The element is an object, or an array treated as one, that passes a filter.
    Object(Box<Filter>),
    /// The element itself passes tests.
    Value(Box<Filter>),
}

impl ElemMatch {
    /// True if `value` is an array with an element that passes.
    pub(super) fn matches(&self, value: Value<'_>) -> bool {
        value.elements().any(|(_, element)| self.passes(element))
    }

    /// True if one element passes.
    pub(super) fn passes(&self, element: Value<'_>) -> bool {
        match self {
            // Expressions are refused here when parsed, and nothing else can fail.
            ElemMatch::Object(filter) => {
                element.as_container().is_some_and(|doc| filter.matches_doc(doc).unwrap_or_default())
            }
            ElemMatch::Value(tests) => tests.passes(element),
        }
    }
}

/// The filter of `{path: {$elemMatch: operand}}`.
pub(super) fn parse_elem_match(path: &Path, operand: Value<'_>, parser: FilterParser<'_>) -> Result<Filter> {
    let wanted = operand.as_doc().ok_or_else(|| wrong("$elemMatch", "needs an Object", operand))?;
    let inner = parser.nested();
    // Operators without a path read the element as a document.
    let is_of_document = |name: &str| {
        let logical = matches!(name, "$and" | "$or" | "$nor" | "$where" | "$expr" | "$text" | "$comment");
        logical || matches!(name, "$jsonSchema" | "$alwaysTrue" | "$alwaysFalse")
    };
    let elem_match = match operators_of(operand) {
        Some(tests) if tests.iter().next().is_some_and(|(name, _)| !is_of_document(name)) => {
            ElemMatch::Value(Box::new(inner.operators(path, tests)?))
        }
        _ => ElemMatch::Object(Box::new(inner.filter(wanted)?)),
    };
    Ok(Filter::Field(path.clone(), Test::ElemMatch(elem_match)))
}

/// The filter of `{path: {$all: operand}}`: a conjunction. The empty list matches nothing.
pub(super) fn parse_all(path: &Path, operand: Value<'_>, parser: FilterParser<'_>) -> Result<Filter> {
    let list = operand.as_array().ok_or_else(|| wrong("$all", "needs an array", operand))?;
    if list.is_empty() {
        return Ok(Filter::AlwaysFalse);
    }
    let of_elements = list.iter().next().is_some_and(|(_, first)| elem_match(first).is_some());
    let children = each(list, &mut |_, item| match (elem_match(item), operators_of(item)) {
        (Some(doc), _) if of_elements => parser.operators(path, doc),
        (None, None) if !of_elements => parser.equality(path, item),
        (None, Some(_)) if !of_elements => Err(wrong("$all", "cannot contain $ expressions", item)),
        _ => Err(wrong("$all/$elemMatch", "must consist of $elemMatch only, or of none", item)),
    });
    Ok(Filter::and(children?))
}

/// The document with an `$elemMatch` in `value`, if it is one.
fn elem_match(value: Value<'_>) -> Option<Doc<'_>> {
    operators_of(value).filter(|doc| doc.get("$elemMatch").is_some())
}

/// The filter of `{path: {$size: operand}}`.
pub(super) fn parse_size(path: &Path, operand: Value<'_>) -> Result<Filter> {
    let size = Number::of(operand).and_then(Number::whole).and_then(|n| usize::try_from(n).ok());
    let size = size.ok_or_else(|| wrong("$size", "needs a non-negative integer", operand))?;
    Ok(Filter::Field(path.clone(), Test::Size(size)))
}

/// True if `value` is an array of `size` elements.
pub(super) fn has_size(value: Value<'_>, size: usize) -> bool {
    value.kind() == Kind::Array && value.elements().count() == size
}

#[cfg(test)]
mod tests {
    use super::super::samples::{error, hits};
    use crate::error::ErrorCode;
    use bson::{RawBson, rawbson, rawdoc};

    const NONE: [usize; 0] = [];

    #[test]
    fn size_is_that_of_the_array_in_the_field_itself() {
        let docs = [
            rawdoc! { "a": [] },
            rawdoc! { "a": [1, 2] },
            rawdoc! { "a": [[1, 2]] },
            rawdoc! { "a": { "b": [1, 2] } },
            rawdoc! { "a": [{ "b": [1, 2] }, { "b": [] }] },
            rawdoc! { "a": "ab" },
            rawdoc! {},
        ];
        assert_eq!(hits(&docs, rawdoc! { "a": { "$size": 0 } }), [0]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$size": 2.0 } }), [1, 4]);
        assert_eq!(hits(&docs, rawdoc! { "a.b": { "$size": 2_i64 } }), [3, 4]);
        assert_eq!(hits(&docs, rawdoc! { "a.0": { "$size": 2 } }), [2]);
        for operand in [rawbson!(-1), rawbson!(1.5), rawbson!("1"), rawbson!(null)] {
            assert_eq!(error(rawdoc! { "a": { "$size": operand } }).code, ErrorCode::BadValue);
        }
    }

    #[test]
    fn all_needs_each_of_its_values_somewhere_in_the_field() {
        let docs = [
            rawdoc! { "a": [1, 2, 3] },
            rawdoc! { "a": 1 },
            rawdoc! { "a": [[1, 2]] },
            rawdoc! { "a": [1, "xy"] },
            rawdoc! {},
            rawdoc! { "a": [null, 1] },
        ];
        let like = RawBson::RegularExpression(bson::Regex {
            pattern: bson::cstr!("x").into(),
            options: bson::cstr!("").into(),
        });
        assert_eq!(hits(&docs, rawdoc! { "a": { "$all": [1, 2] } }), [0]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$all": [1] } }), [0, 1, 3, 5]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$all": [[1, 2]] } }), [2]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$all": [1, like] } }), [3]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$all": [] } }), NONE);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$all": [null] } }), [4, 5]);
    }

    #[test]
    fn elem_matches_of_all_may_match_different_elements() {
        let docs = [rawdoc! { "a": [{ "b": 1, "c": 2 }, { "b": 3, "c": 4 }] }, rawdoc! { "a": [{ "b": 1, "c": 4 }] }];
        let both = rawbson!([{ "$elemMatch": { "b": 1, "c": 2 } }, { "$elemMatch": { "b": 3 } }]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$all": both } }), [0]);
        for operand in [
            rawbson!([{ "$elemMatch": { "b": 1 } }, 2]),
            rawbson!([2, { "$elemMatch": { "b": 1 } }]),
            rawbson!([{ "$gt": 1 }]),
            rawbson!(1),
        ] {
            assert_eq!(error(rawdoc! { "a": { "$all": operand } }).code, ErrorCode::BadValue);
        }
    }

    #[test]
    fn elem_match_needs_one_element_that_matches_everything() {
        let docs = [
            rawdoc! { "a": [1, 9] },
            rawdoc! { "a": [1, 5, 9] },
            rawdoc! { "a": 5 },
            rawdoc! { "a": [[5]] },
            rawdoc! { "a": [{ "b": 1, "c": 9 }, { "b": 5, "c": 1 }] },
            rawdoc! { "a": [{ "b": 5, "c": 9 }] },
            rawdoc! {},
        ];
        assert_eq!(hits(&docs, rawdoc! { "a": { "$elemMatch": { "$gt": 3, "$lt": 7 } } }), [1]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$elemMatch": { "b": 5, "c": 9 } } }), [5]);
        // An array inside the array is read by position, as an object would be.
        assert_eq!(hits(&docs, rawdoc! { "a": { "$elemMatch": { "0": 5 } } }), [3]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$elemMatch": { "$elemMatch": { "$eq": 5 } } } }), [3]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$elemMatch": { "$or": [{ "b": 1 }, { "c": 9 }] } } }), [4, 5]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$elemMatch": { "$not": { "$lt": 7 } } } }), [0, 1, 3, 4, 5]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$elemMatch": { "$in": [5, 6] } } }), [1]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$elemMatch": {} } }), [3, 4, 5]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$not": { "$elemMatch": { "$gt": 3 } } } }), [2, 3, 4, 5, 6]);
    }

    #[test]
    fn operators_without_a_path_read_an_element_of_elem_match_as_a_document() {
        let docs = [
            rawdoc! { "a": [{ "b": 1 }, { "b": "x" }] },
            rawdoc! { "a": [{ "b": 1 }] },
            rawdoc! { "a": [["x"]] },
            rawdoc! { "a": ["x"] },
            rawdoc! { "a": { "b": "x" } },
        ];
        let text = rawdoc! { "required": ["b"], "properties": { "b": { "bsonType": "string" } } };
        assert_eq!(hits(&docs, rawdoc! { "a": { "$elemMatch": { "$jsonSchema": text.clone() } } }), [0]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$elemMatch": { "$jsonSchema": text.clone(), "b": 1 } } }), NONE);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$elemMatch": { "$nor": [{ "$jsonSchema": text }] } } }), [0, 1, 2]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$elemMatch": { "$jsonSchema": {} } } }), [0, 1, 2]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$elemMatch": { "$comment": "first", "b": "x" } } }), [0]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$elemMatch": { "$alwaysTrue": 1 } } }), [0, 1, 2]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$elemMatch": { "$alwaysFalse": 1 } } }), NONE);
    }

    #[test]
    fn expressions_are_refused_inside_elem_match() {
        for inner in [rawdoc! { "$expr": true }, rawdoc! { "$and": [{ "$expr": true }] }] {
            assert_eq!(error(rawdoc! { "a": { "$elemMatch": inner } }).code, ErrorCode::BadValue);
        }
        assert_eq!(error(rawdoc! { "a": { "$elemMatch": 1 } }).code, ErrorCode::BadValue);
    }
}
