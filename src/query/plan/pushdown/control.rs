//! Tests on the summaries of a bucket: `control.min`, `control.max` and the metadata.

use std::rc::Rc;

use crate::query::expr::CompareOp;
use crate::query::filter::{Filter, Geo, In, may_lie};
use crate::value::{Collation, Doc, Kind, OwnedValue, Path, Value};

/// One of the two summaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Min,
    Max,
}

/// A test on a bucket.
///
/// Comparisons use the whole BSON order, with a missing value below null. They contain strings only if these compare as
/// in the summaries. Summaries keep the extremes of arrays element by element, which says nothing about any single
/// array: if a path meets an array, every test on it is true. Hence a test on a path that may hold arrays can only say
/// that some measurement *may* match.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum BucketTest {
    Always(bool),
    And(Vec<BucketTest>),
    Or(Vec<BucketTest>),
    /// A summary compared with a constant.
    Bound {
        side: Side,
        path: Path,
        op: CompareOp,
        value: OwnedValue,
        collation: Collation,
    },
    /// Some constant of a set lies between the two summaries.
    Encloses {
        path: Path,
        set: In,
    },
    /// Some measurement has the field.
    Exists(Path),
    /// Measurements may have several types at the path or before its end, so the summaries say nothing.
    TypesDiffer(Path),
    /// Some measurement may lie in a region, or touch it.
    Near(Path, Rc<Geo>),
    /// The metadata passes a filter whose paths all start at it.
    Meta(Filter),
}

/// What is known of a bucket without unpacking it.
#[derive(Clone, Copy)]
pub(super) struct BucketFacts<'a> {
    pub(super) min: Doc<'a>,
    pub(super) max: Doc<'a>,
    pub(super) meta: Option<Value<'a>>,
}

/// What is found at a path of a summary.
enum SummaryValue<'a> {
    Array,
    Value(Option<Value<'a>>),
}

impl BucketTest {
    pub(super) fn holds(&self, bucket: BucketFacts<'_>) -> bool {
        match self {
            BucketTest::Always(answer) => *answer,
            BucketTest::And(children) => children.iter().all(|child| child.holds(bucket)),
            BucketTest::Or(children) => children.iter().any(|child| child.holds(bucket)),
            BucketTest::Bound { side, path, op, value, collation } => match bucket.at(*side, path) {
                SummaryValue::Array => true,
                SummaryValue::Value(found) => op.holds(collation.compare_options(found, Some(value.view()))),
            },
            BucketTest::Encloses { path, set } => {
                let low = match bucket.at(Side::Min, path) {
                    SummaryValue::Array | SummaryValue::Value(None) => Value::MIN_KEY,
                    SummaryValue::Value(Some(low)) => low,
                };
                match bucket.at(Side::Max, path) {
                    SummaryValue::Array => !set.between(low, Value::MAX_KEY).is_empty(),
                    SummaryValue::Value(None) => false,
                    SummaryValue::Value(Some(high)) => !set.between(low, high).is_empty(),
                }
            }
            BucketTest::Exists(path) => {
                [Side::Min, Side::Max].iter().all(|side| !matches!(bucket.at(*side, path), SummaryValue::Value(None)))
            }
            BucketTest::TypesDiffer(path) => bucket.types_differ(path),
            // Loaded by now: `filter::geo` has made the region.
            BucketTest::Near(path, geo) => may_lie(bucket.min, bucket.max, path, geo),
            // A failure decides nothing (I9). Only loose predicates contain filters that can fail.
            BucketTest::Meta(filter) => filter.matches_value(bucket.meta).unwrap_or(true),
        }
    }
}

impl BucketTest {
    /// As `LooseBucketPredicate::region`.
    pub(super) fn region(&self, path: &Path) -> Option<&Geo> {
        match self {
            BucketTest::And(children) => children.iter().find_map(|child| child.region(path)),
            BucketTest::Near(other, geo) if other == path => Some(geo),
            _ => None,
        }
    }

    /// As `LooseBucketPredicate::interval`.
    pub(super) fn narrow(&self, side: Side, path: &Path, found: &mut (Option<OwnedValue>, Option<OwnedValue>)) {
        match self {
            BucketTest::And(children) => children.iter().for_each(|child| child.narrow(side, path, found)),
            // An `Or` with one type at the path.
            BucketTest::Or(arms) => {
                if let [test, BucketTest::TypesDiffer(other)] = arms.as_slice()
                    && other == path
                {
                    test.narrow(side, path, found);
                }
            }
            BucketTest::Bound { side: of, path: other, op, value, collation }
                if *of == side && other == path && collation.is_simple_for(value.view()) =>
            {
                if !op.includes_less() {
                    found.0 = Some(value.clone());
                }
                if matches!(op, CompareOp::Lt | CompareOp::Lte | CompareOp::Eq) {
                    found.1 = Some(value.clone());
                }
            }
            BucketTest::Encloses { path: other, set }
                if other == path && set.values().iter().all(|value| set.collation().is_simple_for(value.view())) =>
            {
                match side {
                    Side::Min => found.1 = set.values().last().cloned(),
                    Side::Max => found.0 = set.values().first().cloned(),
                }
            }
            _ => {}
        }
    }
}

impl<'a> BucketFacts<'a> {
    fn at(&self, side: Side, path: &Path) -> SummaryValue<'a> {
        let doc = match side {
            Side::Min => self.min,
            Side::Max => self.max,
        };
        let mut found = doc.get(path.first());
        for component in path.rest() {
            match found {
                Some(value) if value.kind() == Kind::Array => return SummaryValue::Array,
                Some(value) => found = value.as_doc().and_then(|doc| doc.get(component.name())),
                None => return SummaryValue::Value(None),
            }
        }
        if found.is_some_and(|value| value.kind() == Kind::Array) {
            SummaryValue::Array
        } else {
            SummaryValue::Value(found)
        }
    }

    /// Compares the types at every prefix of the path. An array ends the walk, because tests below it are true anyway.
    fn types_differ(&self, path: &Path) -> bool {
        let (mut low, mut high) = (self.min.get(path.first()), self.max.get(path.first()));
        let differ = |low: Option<Value<'_>>, high: Option<Value<'_>>| low.map(Value::kind) != high.map(Value::kind);
        for component in path.rest() {
            if differ(low, high) {
                return true;
            }
            let below = |value: Option<Value<'a>>| value?.as_doc()?.get(component.name());
            (low, high) = (below(low), below(high));
        }
        differ(low, high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::DocBuf;
    use bson::{RawDocumentBuf, rawdoc};

    fn doc(doc: RawDocumentBuf) -> DocBuf {
        DocBuf::parse(doc.into_bytes()).unwrap()
    }

    fn holds(test: &BucketTest, min: RawDocumentBuf, max: RawDocumentBuf) -> bool {
        let (min, max) = (doc(min), doc(max));
        test.holds(BucketFacts { min: min.view(), max: max.view(), meta: None })
    }

    fn bound(side: Side, path: &str, op: CompareOp, n: i32) -> BucketTest {
        BucketTest::Bound {
            side,
            path: Path::parse(path).unwrap(),
            op,
            value: OwnedValue::int32(n),
            collation: Collation::default(),
        }
    }

    #[test]
    fn bounds_of_expressions_span_all_types_and_missing_is_the_least() {
        let above = bound(Side::Max, "a", CompareOp::Gt, 5);
        assert!(holds(&above, rawdoc! {}, rawdoc! { "a": "text" }));
        assert!(!holds(&above, rawdoc! {}, rawdoc! { "a": 5.0 }));
        assert!(!holds(&above, rawdoc! {}, rawdoc! {}));
        assert!(holds(&bound(Side::Min, "a", CompareOp::Lt, 5), rawdoc! {}, rawdoc! {}));
        assert!(!holds(&bound(Side::Max, "a", CompareOp::Gte, 5), rawdoc! {}, rawdoc! { "a": f64::NAN }));
    }

    #[test]
    fn an_array_anywhere_on_the_path_makes_a_test_true() {
        for (path, max) in [
            ("a", rawdoc! { "a": [1] }),
            ("a.b", rawdoc! { "a": [1] }),
            ("a.b.c", rawdoc! { "a": { "b": [{ "c": 1 }] } }),
            ("a.0", rawdoc! { "a": [1] }),
        ] {
            assert!(holds(&bound(Side::Max, path, CompareOp::Gt, 5), rawdoc! {}, max.clone()));
            assert!(holds(&BucketTest::Exists(Path::parse(path).unwrap()), max.clone(), max));
        }
        assert!(!holds(&bound(Side::Max, "a.0", CompareOp::Gt, 5), rawdoc! {}, rawdoc! { "a": { "0": 5 } }));
    }

    #[test]
    fn types_are_compared_at_every_prefix() {
        let differ = BucketTest::TypesDiffer(Path::parse("a.b").unwrap());
        assert!(holds(&differ, rawdoc! { "a": 1 }, rawdoc! { "a": { "b": 3 } }));
        assert!(holds(&differ, rawdoc! { "a": { "b": 3 } }, rawdoc! { "a": { "b": [1, 2] } }));
        assert!(!holds(&differ, rawdoc! { "a": { "b": 3 } }, rawdoc! { "a": { "b": 4 } }));
        assert!(holds(&differ, rawdoc! { "a": [{ "b": 3 }] }, rawdoc! { "a": true }));
        assert!(!holds(&differ, rawdoc! {}, rawdoc! {}));
    }

    #[test]
    fn a_set_may_match_if_one_of_its_values_is_between_minimum_and_maximum() {
        let set = In::new([3, 7].map(OwnedValue::int32).to_vec(), &Collation::default());
        let met =
            |min, max| holds(&BucketTest::Encloses { path: Path::parse("a").unwrap(), set: set.clone() }, min, max);
        assert!(met(rawdoc! { "a": 1 }, rawdoc! { "a": 3.0 }));
        assert!(!met(rawdoc! { "a": 4 }, rawdoc! { "a": 6 }));
        assert!(!met(rawdoc! {}, rawdoc! {}));
        assert!(met(rawdoc! { "a": [9] }, rawdoc! { "a": [9] }));
    }
}
