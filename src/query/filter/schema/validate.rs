//! Validates a value against a schema.

use super::keywords::{Keyword, keyword_of};
use crate::listed::IntoList;
use crate::query::expr::Regex;
use crate::value::{Doc, DocBuf, Kind, Number, OwnedValue, Value, compare, equal, normalize, sort_by};

/// A schema, checked once and then interpreted in its original form.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonSchema {
    pub(in crate::query::filter) doc: DocBuf,
    /// Its compiled patterns.
    pub(super) patterns: Vec<(Box<str>, Regex)>,
}

impl JsonSchema {
    /// True if `value` conforms to the schema.
    #[inline(never)]
    pub(in crate::query::filter) fn holds(&self, value: Value<'_>) -> bool {
        self.all(self.doc.view(), value)
    }

    fn all(&self, schema: Doc<'_>, value: Value<'_>) -> bool {
        schema.iter().all(|(name, operand)| {
            keyword_of(name).is_none_or(|(keyword, _)| self.keyword(schema, keyword, operand, value))
        })
    }

    /// `operand` is a schema, or a boolean that accepts or refuses any value.
    fn one(&self, operand: Option<Value<'_>>, value: Value<'_>) -> bool {
        match operand {
            None => true,
            Some(operand) => operand.as_bool().unwrap_or_else(|| operand.as_doc().is_none_or(|s| self.all(s, value))),
        }
    }

    fn is_match(&self, pattern: &str, text: &str) -> bool {
        self.patterns.iter().any(|(known, regex)| **known == *pattern && regex.is_match(text))
    }

    /// Validates one keyword of `schema`. A keyword for another type always holds.
    fn keyword(&self, schema: Doc<'_>, keyword: Keyword, operand: Value<'_>, value: Value<'_>) -> bool {
        let list = operand.as_container().unwrap_or(Doc::EMPTY);
        let fields = value.as_doc().unwrap_or(Doc::EMPTY);
        let items = value.as_array().unwrap_or(Doc::EMPTY);
        let flag = |name: &str| schema.get(name).and_then(Value::as_bool) == Some(true);
        let holding = || list.iter().filter(|(_, schema)| self.one(Some(*schema), value)).count();
        let has_all =
            |names: Doc<'_>| names.iter().all(|(_, name)| fields.get(name.as_str().unwrap_or_default()).is_some());
        let sized = |size: usize| {
            let size = Number::Integer(i64::try_from(size).unwrap_or(i64::MAX));
            let at_least = matches!(keyword, Keyword::MinLength | Keyword::MinItems | Keyword::MinProperties);
            let order = Number::of(operand).map(|bound| bound.compare(size));
            order.is_none_or(|order| if at_least { order.is_le() } else { order.is_ge() })
        };
        match keyword {
            Keyword::Type | Keyword::BsonType if list.is_empty() => is_type(value.kind(), operand),
            Keyword::Type | Keyword::BsonType => list.iter().any(|(_, alias)| is_type(value.kind(), alias)),
            Keyword::Enum => {
                let value = normalize(value);
                list.iter().any(|(_, one)| equal(normalize(one).view(), value.view()))
            }
            Keyword::Minimum => within(operand, value, flag("exclusiveMinimum")),
            // The same from the other side.
            Keyword::Maximum => within(value, operand, flag("exclusiveMaximum")),
            Keyword::MultipleOf => is_multiple(value, operand),
            Keyword::MinLength | Keyword::MaxLength => {
                value.as_str().is_none_or(|text| sized(text.bytes().filter(|byte| byte & 0xc0 != 0x80).count()))
            }
            Keyword::MinItems | Keyword::MaxItems => value.kind() != Kind::Array || sized(items.iter().count()),
            Keyword::MinProperties | Keyword::MaxProperties => {
                value.kind() != Kind::Object || sized(fields.iter().count())
            }
            Keyword::Pattern => {
                value.as_str().is_none_or(|text| self.is_match(operand.as_str().unwrap_or_default(), text))
            }
            Keyword::UniqueItems => operand.as_bool() != Some(true) || are_unique(items),
            Keyword::Items => items.iter().enumerate().all(|(at, (_, item))| match operand.as_array() {
                None => self.one(Some(operand), item),
                Some(list) => {
                    let positional = list.iter().nth(at).map(|(_, schema)| schema);
                    self.one(positional.or_else(|| schema.get("additionalItems")), item)
                }
            }),
            Keyword::Required => value.kind() != Kind::Object || has_all(list),
            Keyword::Properties => {
                list.iter().all(|(name, schema)| fields.get(name).is_none_or(|f| self.one(Some(schema), f)))
            }
            Keyword::PatternProperties => list.iter().all(|(pattern, schema)| {
                fields.iter().all(|(name, field)| !self.is_match(pattern, name) || self.one(Some(schema), field))
            }),
            Keyword::AdditionalProperties => {
                let known = |keyword: &str| schema.get(keyword).and_then(Value::as_doc).unwrap_or(Doc::EMPTY);
                let (named, patterns) = (known("properties"), known("patternProperties"));
                fields.iter().all(|(name, field)| {
                    named.get(name).is_some()
                        || patterns.iter().any(|(pattern, _)| self.is_match(pattern, name))
                        || self.one(Some(operand), field)
                })
            }
            Keyword::Dependencies => list.iter().all(|(name, wanted)| {
                fields.get(name).is_none() || wanted.as_array().map_or_else(|| self.one(Some(wanted), value), has_all)
            }),
            Keyword::AllOf => holding() == list.iter().count(),
            Keyword::AnyOf => holding() > 0,
            Keyword::OneOf => holding() == 1,
            Keyword::Not => !self.one(Some(operand), value),
            _ => true,
        }
    }
}

/// True if the first number is not above the second. One of them is a bound; NaN has none.
fn within(low: Value<'_>, high: Value<'_>, exclusive: bool) -> bool {
    match (Number::of(low), Number::of(high)) {
        (Some(low), Some(high)) if low.is_nan() || high.is_nan() => low.is_nan() && high.is_nan() && !exclusive,
        (Some(low), Some(high)) => {
            if exclusive {
                low.compare(high).is_lt()
            } else {
                low.compare(high).is_le()
            }
        }
        _ => true,
    }
}

/// True for a whole multiple, to fifteen digits: 0.3 is one of 0.1.
fn is_multiple(value: Value<'_>, divisor: Value<'_>) -> bool {
    let (Some(value), Some(divisor)) = (Number::of(value), Number::of(divisor)) else { return true };
    let (value, divisor) = (value.near_double(), divisor.near_double());
    let quotient = value / divisor;
    quotient.is_finite() && (quotient - quotient.round_ties_even()).abs() <= quotient.abs().max(1.0) * 1e-15
}

fn are_unique(items: Doc<'_>) -> bool {
    let mut items: Vec<OwnedValue> = items.iter().map(|(_, item)| normalize(item)).listed();
    sort_by(&mut items, |a, b| compare(a.view(), b.view()));
    items.iter().zip(items.iter().skip(1)).all(|(a, b)| !equal(a.view(), b.view()))
}

fn is_type(kind: Kind, alias: Value<'_>) -> bool {
    match alias.as_str() {
        Some("number") => kind.is_number(),
        Some("boolean") => kind == Kind::Bool,
        alias => alias == Some(kind.alias()),
    }
}

#[cfg(test)]
mod tests {
    use crate::query::filter::samples::hits;
    use bson::{RawDocumentBuf, rawbson, rawdoc};

    /// Whether each of `docs` conforms to `schema`.
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
    fn keywords_for_another_type_pass() {
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
    fn properties_match_by_name_and_pattern_and_others_may_be_refused() {
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
    fn elements_have_one_schema_each_or_one_for_all() {
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
}
