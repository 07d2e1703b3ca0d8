//! Evaluates a filter on one document.

use super::arrays::has_size;
use super::tree::{Filter, Test};
use crate::error::Result;
use crate::listed::IntoList;
use crate::query::expr::CompareOp;
use crate::value::{Component, Doc, Kind, Leaf, Number, OwnedValue, Value, walk_from_value};

/// To look up more constants than this takes longer than to try every value.
const CONSTANTS_MAX: usize = 64;

/// What a filter is evaluated on.
#[derive(Clone, Copy)]
enum FilterInput<'a> {
    Doc(Doc<'a>),
    /// A document whose top-level fields are all this value.
    Value(Option<Value<'a>>),
    /// A document whose top-level fields are objects in which all fields are this value.
    FieldValue(Option<Value<'a>>),
}

impl Filter {
    /// True if `doc` passes.
    ///
    /// Errors: those of expressions.
    pub fn matches_doc(&self, doc: Doc<'_>) -> Result<bool> {
        self.matches_row(FilterInput::Doc(doc))
    }

    /// True if a document whose top-level fields are all `value` passes; for filters on one field.
    ///
    /// Errors: those of expressions.
    pub fn matches_value(&self, value: Option<Value<'_>>) -> Result<bool> {
        self.matches_row(FilterInput::Value(value))
    }

    /// The name of the field to which all paths lead below the top-level field; `None` if that is not all that is read.
    pub fn field_below(&self) -> Option<&str> {
        let mut found: Option<Option<&str>> = None;
        self.for_each_leaf(&mut |leaf| {
            let name = match leaf {
                Filter::Field(path, test) if !matches!(test, Test::Whole(_)) => path.rest().first(),
                _ => None,
            };
            let name = name.map(Component::name);
            found = Some(found.map_or(name, |known| known.filter(|_| known == name)));
        });
        found.flatten()
    }

    /// Of values of `field_below` that are no arrays, those pass that equal one of these in BSON order; `None` if the
    /// filter is not of that kind.
    pub fn constants_below(&self) -> Option<Vec<Value<'_>>> {
        let Filter::Field(path, test) = self else { return None };
        let (values, collation) = match test {
            Test::Compare(compare) if compare.op() == CompareOp::Eq => (vec![compare.value()], compare.collation()),
            Test::In(set) => (set.values().iter().map(OwnedValue::view).listed(), set.collation()),
            _ => return None,
        };
        // Null passes for a missing value, too; and undefined has the key of one.
        let is_plain = |value: &Value<'_>| !matches!(value.kind(), Kind::Null | Kind::Undefined | Kind::Regex);
        let is_usable = path.rest().len() == 1 && values.len() <= CONSTANTS_MAX && collation.is_simple();
        Some(values).filter(|values| is_usable && values.iter().all(is_plain))
    }

    /// True if a document in which that field is `value` passes.
    ///
    /// Errors: none, since expressions have no such field.
    pub fn matches_field(&self, value: Option<Value<'_>>) -> Result<bool> {
        self.matches_row(FilterInput::FieldValue(value))
    }

    fn matches_row(&self, row: FilterInput<'_>) -> Result<bool> {
        let any = |children: &[Filter], wanted| {
            for child in children {
                if child.matches_row(row)? == wanted {
                    return Ok(true);
                }
            }
            Ok(false)
        };
        Ok(match self {
            Filter::AlwaysTrue => true,
            Filter::AlwaysFalse => false,
            Filter::And(children) => !any(children, false)?,
            Filter::Or(children) => any(children, true)?,
            Filter::Nor(children) => !any(children, true)?,
            Filter::Not(child) => !child.matches_row(row)?,
            Filter::Field(path, test) => match row {
                FilterInput::Doc(doc) => test.matches_below(doc.get(path.first()), path.rest()),
                FilterInput::Value(value) => test.matches_below(value, path.rest()),
                FilterInput::FieldValue(value) => test.matches_below(value, path.rest().get(1..).unwrap_or_default()),
            },
            Filter::Expr(condition) => match row {
                FilterInput::Doc(doc) => condition.matches(doc)?,
                FilterInput::Value(value) => condition.matches_value(value)?,
                FilterInput::FieldValue(_) => false,
            },
            // Loaded by now: `filter::schema` has made the schema.
            Filter::Schema(schema) => match row {
                FilterInput::Doc(doc) => schema.holds(doc.as_value()),
                // A schema concerns the whole document, never one field.
                FilterInput::Value(_) | FilterInput::FieldValue(_) => false,
            },
            // Loaded by now: `filter::geo` has made it.
            Filter::Bucket(bucket) => match row {
                FilterInput::Doc(doc) => bucket.holds(doc),
                FilterInput::Value(_) | FilterInput::FieldValue(_) => false,
            },
        })
    }

    /// True if `value` passes every test as it is: the tests are on one path, and arrays are not expanded.
    pub(super) fn passes(&self, value: Value<'_>) -> bool {
        match self {
            Filter::AlwaysFalse => false,
            Filter::And(children) => children.iter().all(|child| child.passes(value)),
            Filter::Or(children) => children.iter().any(|child| child.passes(value)),
            Filter::Nor(children) => !children.iter().any(|child| child.passes(value)),
            Filter::Not(child) => !child.passes(value),
            Filter::Field(_, test) => test.matches(Some(value)),
            Filter::AlwaysTrue => true,
            // These cannot occur among the tests of one path.
            Filter::Expr(_) | Filter::Schema(_) | Filter::Bucket(_) => false,
        }
    }
}

impl Test {
    /// True if some value that `rest` reaches from `top`, the value of a top-level field, passes.
    pub(super) fn matches_below(&self, top: Option<Value<'_>>, rest: &[Component]) -> bool {
        if let Test::Whole(compare) = self {
            return compare.matches_path(top, rest);
        }
        walk_from_value(top, rest, self.leaf(), &mut |value| self.matches(value))
    }

    /// True if a value at the end of a path, or a missing one, passes.
    pub(super) fn matches(&self, value: Option<Value<'_>>) -> bool {
        match self {
            Test::Compare(compare) => compare.matches(value),
            Test::In(set) => set.matches(value),
            Test::Exists => value.is_some(),
            Test::Regex(regex) => regex.matches(value),
            Test::Type(kinds) => value.is_some_and(|value| kinds.contains(value.kind())),
            Test::Mod(modulo) => value.and_then(Number::of).is_some_and(|number| modulo.holds(number)),
            Test::Bits(bits) => value.is_some_and(|value| bits.matches(value)),
            Test::Size(size) => value.is_some_and(|value| has_size(value, *size)),
            Test::ElemMatch(elem_match) => value.is_some_and(|value| elem_match.matches(value)),
            // Loaded by now: `filter::geo` has made the region.
            Test::Geo(geo) => value.is_some_and(|value| geo.region.has(value)),
            Test::Whole(compare) => compare.matches_whole(value),
        }
    }

    /// How it treats an array at the end of its path.
    pub(super) fn leaf(&self) -> Leaf {
        match self {
            Test::Exists | Test::Size(_) | Test::ElemMatch(_) | Test::Whole(_) => Leaf::Whole,
            _ => Leaf::Elements,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::samples::{any_block, any_collation, any_filter_doc, any_value, filter, filter_by, hits};
    use crate::query::exec::samples::without_case;
    use crate::query::filter::Filter;
    use crate::value::{DocWriter, Kind, Path, Value, append_key};
    use bson::{RawArrayBuf, RawBson, RawDocumentBuf, cstr, rawbson, rawdoc};

    fn key_of(value: Value<'_>) -> Vec<u8> {
        let mut key = Vec::new();
        append_key(&mut key, value);
        key
    }

    fn dec(text: &str) -> RawBson {
        RawBson::Decimal128(text.parse().unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn an_object_matches_by_the_value_of_the_one_field_that_is_read(
            block in any_block(), doc in any_filter_doc(any_value()), collation in any_collation(),
        ) {
            let below = filter_by(&doc, &collation).map_leaves(&mut |leaf| match leaf {
                Filter::Field(path, test) => Filter::Field(Path::parse(&format!("m.{path}")).unwrap(), test),
                other => other,
            });
            for conjunct in below.conjuncts() {
                let Some(name) = conjunct.field_below() else { continue };
                for row in 0..block.rows() {
                    let mut writer = DocWriter::new();
                    block.write_row(row, &mut writer);
                    let meta = writer.finish();
                    let by_value = conjunct.matches_field(meta.view().get(name)).unwrap();
                    prop_assert_eq!(by_value, conjunct.matches_value(Some(meta.view().as_value())).unwrap(), "{:?}", meta);
                    let value = meta.view().get(name).filter(|value| value.kind() != Kind::Array);
                    if let (Some(constants), Some(value)) = (conjunct.constants_below(), value) {
                        let is_equal = constants.iter().any(|constant| key_of(*constant) == key_of(value));
                        prop_assert_eq!(by_value, is_equal, "{:?}", meta);
                    }
                }
            }
        }
    }

    #[test]
    fn the_only_values_that_pass_are_known_if_they_are_few_and_compared_for_equality() {
        let constants = |doc: RawDocumentBuf| filter(&doc).constants_below().map(|constants| constants.len());
        assert_eq!(constants(rawdoc! { "m.a": "x" }), Some(1));
        assert_eq!(constants(rawdoc! { "m.a": { "$in": ["x", 1, dec("1.5"), true] } }), Some(4));
        let many: RawArrayBuf = (0..100).collect();
        for doc in [
            rawdoc! { "m.a": { "$in": many } },
            rawdoc! { "m.a": { "$in": ["x", null] } },
            rawdoc! { "m.a": { "$gt": "x" } },
            rawdoc! { "m.a": { "$ne": "x" } },
            rawdoc! { "m.a": null },
            rawdoc! { "m.a.b": "x" },
            rawdoc! { "m": "x" },
        ] {
            assert_eq!(constants(doc), None);
        }
        assert!(filter_by(&rawdoc! { "m.a": "x" }, &without_case()).constants_below().is_none());
    }

    #[test]
    fn a_filter_on_several_fields_or_on_the_whole_reads_no_one_field() {
        let reads = |doc| filter(&doc).field_below().map(str::to_owned);
        assert_eq!(reads(rawdoc! { "m.a": 1 }).as_deref(), Some("a"));
        assert_eq!(reads(rawdoc! { "$or": [{ "m.a": 1 }, { "m.a.b": { "$ne": 2 } }] }).as_deref(), Some("a"));
        for doc in [rawdoc! { "m": 1 }, rawdoc! { "$or": [{ "m.a": 1 }, { "m.b": 1 }] }, rawdoc! {}] {
            assert_eq!(reads(doc), None);
        }
    }

    #[test]
    fn ranges_are_of_one_type_and_look_into_arrays() {
        let docs = [
            rawdoc! { "a": 1 },
            rawdoc! { "a": 2 },
            rawdoc! { "a": 3 },
            rawdoc! { "a": 4 },
            rawdoc! { "a": 5 },
            rawdoc! {},
            rawdoc! { "a": null },
            rawdoc! { "a": [1, 2, 3] },
        ];
        assert_eq!(hits(&docs, rawdoc! { "a": { "$gt": 3 } }), [3, 4]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$gte": 3 } }), [2, 3, 4, 7]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$lt": 3 } }), [0, 1, 7]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$lte": 3 } }), [0, 1, 2, 7]);
        // The two bounds of a range may be met by different elements.
        assert_eq!(hits(&docs, rawdoc! { "a": { "$gt": 2, "$lt": 2 } }), [7]);
    }

    #[test]
    fn null_matches_a_missing_value_but_not_undefined() {
        let docs = [
            rawdoc! {},
            rawdoc! { "x": null },
            rawdoc! { "x": [] },
            rawdoc! { "x": [1, null] },
            rawdoc! { "x": 1 },
            rawdoc! { "x": RawBson::Undefined },
        ];
        for wanted in [rawdoc! { "x": null }, rawdoc! { "x": { "$in": [7, null] } }, rawdoc! { "x": { "$gte": null } }]
        {
            assert_eq!(hits(&docs, wanted), [0, 1, 3]);
        }
        assert_eq!(hits(&docs, rawdoc! { "x": { "$ne": null } }), [2, 4, 5]);
        assert_eq!(hits(&docs, rawdoc! { "x": { "$lt": null } }), [0_usize; 0]);
        assert_eq!(hits(&docs, rawdoc! { "x": { "$lt": "aaa" } }), [0_usize; 0]);
    }

    #[test]
    fn negations_are_complements_over_the_whole_document() {
        let docs = [rawdoc! { "a": [1, 3] }, rawdoc! {}, rawdoc! { "a": 3 }, rawdoc! { "a": 4 }];
        for wanted in [
            rawdoc! { "a": { "$ne": 3 } },
            rawdoc! { "a": { "$nin": [3] } },
            rawdoc! { "a": { "$not": { "$eq": 3 } } },
            rawdoc! { "$nor": [{ "a": 3 }] },
        ] {
            assert_eq!(hits(&docs, wanted), [1, 3]);
        }
        assert_eq!(hits(&docs, rawdoc! { "a": { "$not": { "$gt": 2, "$lt": 4 } } }), [1, 3]);
    }

    #[test]
    fn not_a_number_equals_itself_and_is_in_no_range() {
        let docs = [rawdoc! { "v": 1 }, rawdoc! { "v": f64::NAN }, rawdoc! { "v": 100 }, rawdoc! { "v": dec("NaN") }];
        assert_eq!(hits(&docs, rawdoc! { "v": { "$lt": 50 } }), [0]);
        assert_eq!(hits(&docs, rawdoc! { "v": { "$gt": 50 } }), [2]);
        assert_eq!(hits(&docs, rawdoc! { "v": { "$gte": 0, "$lte": 200 } }), [0, 2]);
        for op in [cstr!("$eq"), cstr!("$gte"), cstr!("$lte")] {
            assert_eq!(hits(&docs, rawdoc! { "v": { op: f64::NAN } }), [1, 3]);
        }
        assert_eq!(hits(&docs, rawdoc! { "v": { "$gt": f64::NAN } }), [0_usize; 0]);
        assert_eq!(hits(&docs, rawdoc! { "v": { "$in": [f64::NAN] } }), [1, 3]);
    }

    #[test]
    fn numbers_compare_exactly_across_types() {
        let two_to_53 = 1_i64 << 53;
        let docs = [
            rawdoc! { "n": two_to_53 + 1 },
            rawdoc! { "n": two_to_53 as f64 },
            rawdoc! { "n": 0.1 },
            rawdoc! { "n": -0.0 },
        ];
        assert_eq!(hits(&docs, rawdoc! { "n": two_to_53 }), [1]);
        assert_eq!(hits(&docs, rawdoc! { "n": { "$gt": two_to_53 as f64 } }), [0]);
        assert_eq!(hits(&docs, rawdoc! { "n": dec("0.1") }), [0_usize; 0]);
        assert_eq!(hits(&docs, rawdoc! { "n": { "$gt": dec("0.1") } }), [0, 1, 2]);
        assert_eq!(hits(&docs, rawdoc! { "n": { "$in": [0, 7] } }), [3]);
    }

    #[test]
    fn minkey_and_maxkey_compare_with_every_type() {
        let docs = [rawdoc! {}, rawdoc! { "x": 1 }, rawdoc! { "x": RawBson::MinKey }, rawdoc! { "x": RawBson::MaxKey }];
        assert_eq!(hits(&docs, rawdoc! { "x": { "$gt": RawBson::MinKey } }), [0, 1, 3]);
        assert_eq!(hits(&docs, rawdoc! { "x": { "$gte": RawBson::MinKey } }), [0, 1, 2, 3]);
        assert_eq!(hits(&docs, rawdoc! { "x": { "$lte": RawBson::MinKey } }), [2]);
        assert_eq!(hits(&docs, rawdoc! { "x": { "$lt": RawBson::MaxKey } }), [0, 1, 2]);
        assert_eq!(hits(&docs, rawdoc! { "x": RawBson::MaxKey }), [3]);
    }

    #[test]
    fn objects_and_arrays_compare_as_a_whole() {
        let docs = [
            rawdoc! { "a": { "b": 1 } },
            rawdoc! { "a": { "b": 1.0, "c": 2 } },
            rawdoc! { "a": [{ "b": 1 }, 9] },
            rawdoc! { "a": [1, 2] },
            rawdoc! { "a": [[1, 2]] },
            rawdoc! { "a": { "c": 2, "b": 1 } },
        ];
        assert_eq!(hits(&docs, rawdoc! { "a": { "b": 1 } }), [0, 2]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "b": 1, "c": 2 } }), [1]);
        assert_eq!(hits(&docs, rawdoc! { "a": [1, 2] }), [3, 4]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$gt": { "b": 1 } } }), [1, 5]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$in": [[1, 2], { "b": 1_i64 }] } }), [0, 2, 3, 4]);
        assert_eq!(hits(&docs, rawdoc! { "a": {} }), [0_usize; 0]);
    }

    #[test]
    fn paths_pass_through_objects_and_arrays_of_objects() {
        let docs =
            [rawdoc! { "a": 1 }, rawdoc! { "a": { "b": 3 } }, rawdoc! { "a": [{ "b": 3 }] }, rawdoc! { "a": [1] }];
        assert_eq!(hits(&docs, rawdoc! { "a.b": { "$gt": 2 } }), [1, 2]);
        assert_eq!(hits(&docs, rawdoc! { "a.b": null }), [0]);
        let deep = [
            rawdoc! { "a": { "b": [{ "c": 3 }, { "c": 4 }] } },
            rawdoc! { "a": [{ "b": [{ "c": 1 }, { "c": 2 }] }, { "b": { "c": 2 } }] },
        ];
        assert_eq!(hits(&deep, rawdoc! { "a.b.c": { "$lt": 2 } }), [1]);
        assert_eq!(hits(&deep, rawdoc! { "a.b.c": { "$gte": 3 } }), [0]);
        let numeric =
            [rawdoc! { "a": 5 }, rawdoc! { "a": ["ya", 7] }, rawdoc! { "a": true }, rawdoc! { "a": { "0": "x" } }];
        assert_eq!(hits(&numeric, rawdoc! { "a.0": { "$gte": "" } }), [1, 3]);
        assert_eq!(hits(&[rawdoc! { "x.y": 3 }], rawdoc! { "x.y": 3 }), [0_usize; 0]);
    }

    #[test]
    fn comparisons_from_expressions_span_all_types_and_arrays_always_pass() {
        let docs = [
            rawdoc! { "a": 1 },
            rawdoc! { "a": "x" },
            rawdoc! {},
            rawdoc! { "a": null },
            rawdoc! { "a": [0] },
            rawdoc! { "a": { "b": 5 } },
            rawdoc! { "a": [{ "b": 1 }] },
            rawdoc! { "a": f64::NAN },
        ];
        let hits = |wanted| hits(&docs, wanted);
        assert_eq!(hits(rawdoc! { "a": { "$_internalExprEq": 1.0 } }), [0, 4, 6]);
        assert_eq!(hits(rawdoc! { "a": { "$_internalExprGt": 1 } }), [1, 4, 5, 6]);
        assert_eq!(hits(rawdoc! { "a": { "$_internalExprLt": 1 } }), [2, 3, 4, 6, 7]);
        assert_eq!(hits(rawdoc! { "a": { "$_internalExprLte": null } }), [2, 3, 4, 6]);
        assert_eq!(hits(rawdoc! { "a.b": { "$_internalExprGte": 5 } }), [4, 5, 6]);
        assert_eq!(hits(rawdoc! { "a": { "$not": { "$_internalExprGt": 1 } } }), [0, 2, 3, 7]);
    }

    #[test]
    fn exists_is_true_for_null_and_for_any_branch() {
        let docs = [
            rawdoc! {},
            rawdoc! { "a": null },
            rawdoc! { "a": [] },
            rawdoc! { "a": [{ "b": 1 }, {}] },
            rawdoc! { "a": [1] },
        ];
        assert_eq!(hits(&docs, rawdoc! { "a": { "$exists": true } }), [1, 2, 3, 4]);
        assert_eq!(hits(&docs, rawdoc! { "a": { "$exists": 0 } }), [0]);
        assert_eq!(hits(&docs, rawdoc! { "a.b": { "$exists": "yes" } }), [3]);
        assert_eq!(hits(&docs, rawdoc! { "a.b": { "$exists": rawbson!(null) } }), [0, 1, 2, 4]);
    }

    #[test]
    fn a_stored_regular_expression_equals_one_given_with_eq() {
        let regex =
            || RawBson::RegularExpression(bson::Regex { pattern: cstr!("a").into(), options: cstr!("i").into() });
        let docs = [rawdoc! { "a": regex() }, rawdoc! { "a": "a" }];
        assert_eq!(hits(&docs, rawdoc! { "a": { "$eq": regex() } }), [0]);
    }
}
