//! The points of an index to search: constants that the metadata of all matches equals.

use crate::listed::IntoList;
use crate::query::expr::CompareOp;
use crate::query::filter::{Filter, In, Test};
use crate::value::{Collation, Kind, Value};

/// Constants, one of which every match equals at a path, directly or in an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// Those found by the bytes of their keys.
    pub values: In,
    /// Strings that compare by a collation, whose equals may be anywhere among the strings of an index.
    pub texts: Option<In>,
}

/// The constants that `filter` requires at `path`; `None` if it may match other values.
///
/// The filter must still be applied. Null stands for missing and arrays match by element, so neither is such a
/// constant. An array that contains a constant matches too, so an index on metadata needs an entry for every element.
pub fn points(filter: &Filter, path: &str) -> Option<Points> {
    let mut found = Vec::new();
    if !add(filter, path, &mut found) {
        return None;
    }
    let by = found.iter().find(|(value, by)| !by.is_simple_for(*value)).map(|(_, by)| *by);
    let set = |is_simple: bool, by: &Collation| {
        let part = found.iter().filter(|(value, by)| by.is_simple_for(*value) == is_simple);
        In::new(part.map(|(value, _)| Value::to_owned(*value)).listed(), by)
    };
    Some(Points { values: set(true, &Collation::default()), texts: by.map(|by| set(false, by)) })
}

/// Adds the constants of a filter and how they compare, all or none; false if there are none.
fn add<'a>(filter: &'a Filter, path: &str, found: &mut Vec<(Value<'a>, &'a Collation)>) -> bool {
    let known = found.len();
    let is_known = match filter {
        // Each conjunct may be satisfied by a different array element, so one of them is as good as all.
        Filter::And(children) => children.iter().any(|child| add(child, path, found)),
        Filter::Or(arms) => arms.iter().all(|arm| add(arm, path, found)),
        Filter::Field(other, Test::Compare(compare)) if compare.op() == CompareOp::Eq && other.as_str() == path => {
            found.push((compare.value(), compare.collation()));
            true
        }
        Filter::Field(other, Test::In(set)) if other.as_str() == path => {
            found.extend(set.values().iter().map(|value| (value.view(), set.collation())));
            true
        }
        _ => false,
    };
    let is_known = is_known && found.iter().skip(known).all(|(value, by)| is_point(*value, by));
    if !is_known {
        found.truncate(known);
    }
    is_known
}

/// True if an index finds all equal values at one key; also for strings, which are found one by one.
fn is_point(value: Value<'_>, collation: &Collation) -> bool {
    match value.kind() {
        Kind::Null | Kind::Undefined => false,
        Kind::String | Kind::Symbol => true,
        // Other values may be equal but contain different strings, and are then elsewhere in an index of bytes.
        _ => holds_no_array(value) && collation.is_simple_for(value),
    }
}

fn holds_no_array(value: Value<'_>) -> bool {
    value.kind() != Kind::Array && value.as_doc().is_none_or(|doc| doc.iter().all(|(_, inner)| holds_no_array(inner)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::fixed::FixedEnv;
    use crate::query::filter::samples::{filter, filter_by};
    use crate::value::{Doc, DocBuf, OwnedValue};
    use bson::{RawDocumentBuf, rawdoc};

    #[test]
    fn equality_with_whole_metadata_is_a_point() {
        let point = |doc: RawDocumentBuf| points(&filter(&doc), "m").map(|points| points.values.values().to_vec());
        let seven = || Some(vec![OwnedValue::int32(7)]);
        assert_eq!(point(rawdoc! { "m": 7, "x": 1 }), seven());
        assert_eq!(point(rawdoc! { "m": 7, "m.a": 1 }), seven());
        let object = DocBuf::parse(rawdoc! { "a": { "b": 1 } }.into_bytes()).unwrap();
        assert_eq!(point(rawdoc! { "m": { "a": { "b": 1 } } }), Some(vec![OwnedValue::doc(object.view())]));
        assert_eq!(point(rawdoc! { "$or": [{ "m": 7 }, { "m": 7.0, "m.a": { "$gt": 1 } }] }), seven());
        let three = || Some([1, 2, 7].map(OwnedValue::int32).to_vec());
        assert_eq!(point(rawdoc! { "m": { "$in": [7, 1, 2] } }), three());
        assert_eq!(point(rawdoc! { "$or": [{ "m": 7 }, { "m": { "$in": [2, 1] } }] }), three());
        assert_eq!(point(rawdoc! { "$and": [{ "m": 7 }], "m": { "$in": [7, 1, 2] } }), seven());
        assert_eq!(
            point(rawdoc! { "$or": [{ "m": 7, "x": 1 }, { "y": 1, "$or": [{ "m": 1 }, { "m": 2, "x": 5 }] }] }),
            three()
        );
        for none in [
            rawdoc! { "m": null },
            rawdoc! { "m": [7] },
            rawdoc! { "m": { "a": [1] } },
            rawdoc! { "m": { "$in": [1, null] } },
            rawdoc! { "m": { "$in": [1, [2]] } },
            rawdoc! { "m": { "$nin": [1] } },
            rawdoc! { "m.a": 7 },
            rawdoc! { "m": { "$gte": 7 } },
            rawdoc! { "$or": [{ "m": 7 }, { "x": 1 }] },
            rawdoc! { "$or": [{ "m": 7 }, { "m": { "$gt": 8 } }] },
            rawdoc! { "x": 7 },
        ] {
            assert_eq!(point(none.clone()), None, "{none:?}");
        }
        assert!(points(&filter(&rawdoc! { "m.a": 7 }), "m.a").is_some());
    }

    #[test]
    fn equality_of_strings_by_a_collation_needs_a_search_in_the_index() {
        let any_case = rawdoc! { "locale": "en", "strength": 2 };
        let any_case = Collation::parse(Doc::parse(any_case.as_bytes()).unwrap(), &FixedEnv::default()).unwrap();
        let found = |doc: RawDocumentBuf| {
            let points = points(&filter_by(&doc, &any_case), "m")?;
            Some((points.values.values().len(), points.texts.map(|texts| texts.values().len())))
        };
        assert_eq!(found(rawdoc! { "m": "a" }), Some((0, Some(1))));
        assert_eq!(found(rawdoc! { "m": { "$in": ["a", 1, "A", "b"] } }), Some((1, Some(2))));
        assert_eq!(found(rawdoc! { "m": { "$in": [2, 1] } }), Some((2, None)));
        assert_eq!(found(rawdoc! { "m": { "s": "a" } }), None);
    }
}
