//! The intervals to which a filter limits the value at a path.

use crate::listed::IntoList;
use crate::query::expr::CompareOp;
use crate::query::filter::{Compare, Filter, Kinds, Test};
use crate::query::plan::pushdown::successor;
use crate::value::{Kind, OwnedValue, Path, Value, canonical_class, compare, sort_by};

/// Values from the first to the second, both included; `None` is unbounded.
pub type Interval = (Option<OwnedValue>, Option<OwnedValue>);

/// The smallest value of each class, in order: the type byte, then the value.
static LEAST: [&[u8]; 17] = [
    &[0xff],
    &[6],
    &[10],
    // NaN sorts below all numbers.
    &[1, 0, 0, 0, 0, 0, 0, 0xf8, 0x7f],
    &[2, 1, 0, 0, 0, 0],
    &[3, 5, 0, 0, 0, 0],
    &[4, 5, 0, 0, 0, 0],
    &[5, 0, 0, 0, 0, 0],
    &[7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    &[8, 0],
    &[9, 0, 0, 0, 0, 0, 0, 0, 0x80],
    &[17, 0, 0, 0, 0, 0, 0, 0, 0],
    &[11, 0, 0],
    &[12, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
    &[13, 1, 0, 0, 0, 0],
    &[15, 14, 0, 0, 0, 1, 0, 0, 0, 0, 5, 0, 0, 0, 0],
    &[127],
];

/// Maximum pairs of intervals compared when two sets are intersected.
const PAIRS_MAX: usize = 10_000;

/// If `filter` matches, a value at `path` that is not an array (and not inside one) lies in these intervals, which are
/// ascending and disjoint. `None` if it may be any value. A missing value counts as undefined.
pub fn intervals(filter: &Filter, path: &Path) -> Option<Vec<Interval>> {
    match filter {
        Filter::And(children) => children.iter().filter_map(|child| intervals(child, path)).reduce(common),
        Filter::Or(arms) => {
            let each: Option<Vec<_>> = arms.iter().map(|arm| intervals(arm, path)).listed_if_all();
            Some(merged(each?.concat()))
        }
        Filter::Field(other, test) if other == path => match test {
            Test::Compare(compare) if compare.collation().is_simple_for(compare.value()) => of_compare(compare),
            Test::In(set) if set.values().iter().all(|value| set.collation().is_simple_for(value.view())) => {
                let mut found = Vec::new();
                set.values().iter().for_each(|value| add_points(value.view(), &mut found));
                Some(merged(found))
            }
            Test::Type(kinds) => Some(of_kinds(*kinds)),
            // The pattern itself may be stored, and matches itself.
            Test::Regex(regex) if !regex.prefix().is_empty() => {
                let (_, end) = of_class(Kind::String);
                let end = successor(regex.prefix()).map(|end| OwnedValue::string(&end)).or(end);
                Some(vec![(Some(OwnedValue::string(regex.prefix())), end), of_class(Kind::Regex)])
            }
            _ => None,
        },
        _ => None,
    }
}

/// The intervals of some types.
pub fn of_kinds(kinds: Kinds) -> Vec<Interval> {
    let known = (0..=u8::MAX).filter_map(Kind::from_byte).filter(|kind| kinds.contains(*kind));
    merged(known.map(of_class).listed())
}

/// The interval of a type's class, ending at the smallest value of the next class.
pub fn of_class(kind: Kind) -> Interval {
    let class = canonical_class(kind);
    let mut rest = LEAST.iter().map(|tagged| OwnedValue::from_tagged_checked(tagged.to_vec()));
    let low = rest.find(|least| canonical_class(least.view().kind()) == class);
    (low, rest.next())
}

/// The smallest interval around all of these.
pub fn around(intervals: &[Interval]) -> Interval {
    match (intervals.first(), intervals.last()) {
        (Some((low, _)), Some((_, high))) => (low.clone(), high.clone()),
        // An empty interval.
        _ => (Some(Value::MAX_KEY.to_owned()), Some(Value::MIN_KEY.to_owned())),
    }
}

/// The values that equal a value: null also stands for missing.
fn add_points(value: Value<'_>, found: &mut Vec<Interval>) {
    if value.kind() == Kind::Null {
        add_points(Value::UNDEFINED, found);
    }
    found.push((Some(value.to_owned()), Some(value.to_owned())));
}

fn of_compare(compare: &Compare) -> Option<Vec<Interval>> {
    let value = compare.value();
    let bound = || Some(value.to_owned());
    let range = match (compare.op(), value.kind()) {
        (CompareOp::Eq, _) | (_, Kind::Null) => {
            let mut found = Vec::new();
            add_points(value, &mut found);
            return Some(found);
        }
        // These compare with values of all types, and with missing ones.
        (_, Kind::MinKey | Kind::MaxKey) => return None,
        (CompareOp::Gt | CompareOp::Gte, _) => (bound(), None),
        (CompareOp::Lt | CompareOp::Lte, _) => (None, bound()),
    };
    Some(common(vec![range], vec![of_class(value.kind())]))
}

fn ends(interval: &Interval) -> [Value<'_>; 2] {
    let (low, high) = interval;
    [low.as_ref().map_or(Value::MIN_KEY, OwnedValue::view), high.as_ref().map_or(Value::MAX_KEY, OwnedValue::view)]
}

/// The intersection of two sets of intervals.
pub fn common(a: Vec<Interval>, b: Vec<Interval>) -> Vec<Interval> {
    if a.len().saturating_mul(b.len()) > PAIRS_MAX {
        return if a.len() < b.len() { a } else { b };
    }
    let mut found = Vec::new();
    for one in &a {
        for other in &b {
            let ([low, high], [other_low, other_high]) = (ends(one), ends(other));
            let low_end = if compare(low, other_low).is_ge() { one } else { other };
            let high_end = if compare(high, other_high).is_le() { one } else { other };
            if compare(ends(low_end)[0], ends(high_end)[1]).is_le() {
                found.push((low_end.0.clone(), high_end.1.clone()));
            }
        }
    }
    found
}

/// Sorted, with touching intervals merged and empty ones removed.
pub fn merged(mut all: Vec<Interval>) -> Vec<Interval> {
    all.retain(|interval| compare(ends(interval)[0], ends(interval)[1]).is_le());
    sort_by(&mut all, |a, b| compare(ends(a)[0], ends(b)[0]));
    let mut found: Vec<Interval> = Vec::with_capacity(all.len());
    for next in all {
        match found.last_mut() {
            Some(last) if compare(ends(&next)[0], ends(last)[1]).is_le() => {
                if compare(ends(&next)[1], ends(last)[1]).is_gt() {
                    last.1 = next.1;
                }
            }
            _ => found.push(next),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use bson::{RawBson, RawDocumentBuf, rawdoc};
    use proptest::prelude::*;

    use super::*;
    use crate::query::filter::samples::{any_collation, any_filter_doc, any_value, doc_of, filter, filter_by};
    use crate::value::Doc;

    fn shown(doc: RawDocumentBuf) -> Option<String> {
        let found = intervals(&filter(&doc), &Path::parse("a").unwrap())?;
        Some(found.iter().map(|interval| format!("{:?}", ends(interval))).collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn conjuncts_intersect_intervals_and_disjuncts_join_them() {
        for (doc, expected) in [
            (rawdoc! { "a": 1 }, Some("[1, 1]")),
            (rawdoc! { "a": { "$in": [3, 1, 1.0] } }, Some("[1, 1] [3, 3]")),
            (rawdoc! { "a": { "$gt": 1, "$lte": 3 } }, Some("[1, 3]")),
            (rawdoc! { "a": { "$gt": 1 }, "b": 2 }, Some("[1, \"\"]")),
            (rawdoc! { "a": { "$in": [1, 3, 5] }, "$and": [{ "a": { "$gt": 2 } }] }, Some("[3, 3] [5, 5]")),
            (rawdoc! { "a": { "$gt": 3, "$lt": 1 } }, Some("")),
            (rawdoc! { "$or": [{ "a": 2 }, { "a": { "$lt": "b" } }, { "a": 2.0 }] }, Some("[2, 2] [\"\", \"b\"]")),
            (
                rawdoc! { "$or": [{ "a": { "$gt": 7 } }, { "a": 1, "b": 2 }, { "a": { "$type": "string" } }] },
                Some("[1, 1] [7, {}]"),
            ),
            (rawdoc! { "$or": [{ "a": 2 }, { "b": 2 }] }, None),
            (rawdoc! { "a": { "$regex": "^ab" } }, Some("[\"ab\", \"ac\"] [//, dbPointer(17 bytes)]")),
            (rawdoc! { "a": { "$regex": "b" } }, None),
            (rawdoc! { "a": { "$ne": 2 } }, None),
            (rawdoc! { "a": { "$gte": RawBson::MinKey } }, None),
            (rawdoc! { "a.b": 2 }, None),
        ] {
            assert_eq!(shown(doc.clone()).as_deref(), expected, "{doc:?}");
        }
    }

    #[test]
    fn each_class_has_its_least_value_in_order() {
        let classes =
            LEAST.map(|tagged| canonical_class(OwnedValue::from_tagged_checked(tagged.to_vec()).view().kind()));
        assert!(classes.is_sorted_by(|a, b| a < b));
        let known = (0..=u8::MAX).filter_map(Kind::from_byte);
        assert!(known.map(canonical_class).all(|class| classes.contains(&class)));
    }

    /// The value at a path; `None` if it is an array or inside one.
    fn at(doc: Doc<'_>, path: &str) -> Option<OwnedValue> {
        let mut found = Some(doc.as_value());
        for name in path.split('.') {
            found = found.and_then(Value::as_doc).and_then(|doc| doc.get(name));
            if found.is_some_and(|value| value.kind() == Kind::Array) {
                return None;
            }
        }
        Some(found.unwrap_or(Value::UNDEFINED).to_owned())
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 10 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_value_is_in_the_interval_of_its_type(value in any_value()) {
            let value = crate::query::filter::samples::owned(value);
            let class = of_class(value.view().kind());
            let [low, high] = ends(&class);
            prop_assert!(compare(low, value.view()).is_le() && compare(value.view(), high).is_le());
        }

        #[test]
        fn matching_values_are_in_an_interval(
            doc in any_filter_doc(any_value()), a in proptest::option::of(any_value()), b in proptest::option::of(any_value()), collation in any_collation(),
        ) {
            let filter = filter_by(&doc, &collation);
            let fields = [("a", a), ("b", b)].map(|(name, value)| value.map(|value| (name.to_owned(), value)));
            let row = doc_of(fields.into_iter().flatten());
            if !filter.matches_doc(row.view()).unwrap_or(false) {
                return Ok(());
            }
            for path in ["a", "b", "a.a", "a.b", "b.b.a"] {
                let Some(found) = intervals(&filter, &Path::parse(path).unwrap()) else { continue };
                let Some(value) = at(row.view(), path) else { continue };
                let holds = |interval: &Interval| {
                    let [low, high] = ends(interval);
                    compare(low, value.view()).is_le() && compare(value.view(), high).is_le()
                };
                prop_assert!(found.iter().any(holds), "{:?} at {} of {:?}: {:?}", value, path, row, found);
            }
        }
    }
}
