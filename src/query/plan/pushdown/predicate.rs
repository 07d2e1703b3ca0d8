//! Translates filters on measurements to predicates on buckets (I9).

use std::rc::Rc;

use super::control::{BucketFacts, BucketTest, Side};
use super::split::{Layout, META};
use super::time;
use crate::listed::IntoList;
use crate::query::expr::CompareOp;
use crate::query::filter::{Filter, Geo, Test};
use crate::value::{Collation, Doc, Kind, OwnedValue, Path, Value};

/// True for every bucket with at least one matching measurement, and possibly for others.
#[derive(Clone, Debug, PartialEq)]
pub struct LooseBucketPredicate(pub(super) Option<BucketTest>);

/// True only for buckets in which all measurements match, but not for every such bucket.
#[derive(Clone, Debug, PartialEq)]
pub struct TightBucketPredicate(pub(super) Option<BucketTest>);

impl LooseBucketPredicate {
    /// True for every bucket.
    pub(super) const UNKNOWN: LooseBucketPredicate = LooseBucketPredicate(None);

    /// False only if no measurement of the bucket can match.
    ///
    /// `control_min` and `control_max` are the summaries of the bucket, `meta` its metadata.
    pub fn may_match(&self, control_min: Doc<'_>, control_max: Doc<'_>, meta: Option<Value<'_>>) -> bool {
        let summary = BucketFacts { min: control_min, max: control_max, meta };
        self.0.as_ref().is_none_or(|test| test.holds(summary))
    }

    /// True if it never rules out a bucket.
    pub fn is_trivial(&self) -> bool {
        self.0.is_none()
    }

    /// The interval of the lowest (or highest) value at `path` in all buckets that may match and have one type there;
    /// `None` is unbounded. Strings only if they compare by their bytes.
    pub fn interval(&self, is_max: bool, path: &Path) -> (Option<OwnedValue>, Option<OwnedValue>) {
        let mut found = (None, None);
        if let Some(test) = &self.0 {
            test.narrow(if is_max { Side::Max } else { Side::Min }, path, &mut found);
        }
        found
    }

    /// The region in which all matching values at `path` lie, or which they touch.
    pub fn region(&self, path: &Path) -> Option<&Geo> {
        self.0.as_ref()?.region(path)
    }

    fn and(children: impl IntoIterator<Item = LooseBucketPredicate>) -> LooseBucketPredicate {
        let known: Vec<BucketTest> = children.into_iter().filter_map(|child| child.0).listed();
        LooseBucketPredicate((!known.is_empty()).then(|| all(known)))
    }

    fn or(children: impl IntoIterator<Item = LooseBucketPredicate>) -> LooseBucketPredicate {
        let every: Option<Vec<BucketTest>> = children.into_iter().map(|child| child.0).listed_if_all();
        LooseBucketPredicate(every.map(|tests| join(tests, BucketTest::Or)))
    }
}

impl TightBucketPredicate {
    /// False for every bucket.
    pub(super) const UNKNOWN: TightBucketPredicate = TightBucketPredicate(None);

    /// True only if every measurement of the bucket matches, so that none must be tested.
    ///
    /// `control_min` and `control_max` are the summaries of the bucket, `meta` its metadata.
    pub fn all_match(&self, control_min: Doc<'_>, control_max: Doc<'_>, meta: Option<Value<'_>>) -> bool {
        let summary = BucketFacts { min: control_min, max: control_max, meta };
        self.0.as_ref().is_some_and(|test| test.holds(summary))
    }

    /// True if it is never true.
    pub fn is_trivial(&self) -> bool {
        self.0.is_none()
    }

    fn and(children: impl IntoIterator<Item = TightBucketPredicate>) -> TightBucketPredicate {
        let every: Option<Vec<BucketTest>> = children.into_iter().map(|child| child.0).listed_if_all();
        TightBucketPredicate(every.map(all))
    }

    fn or(children: impl IntoIterator<Item = TightBucketPredicate>) -> TightBucketPredicate {
        let known: Vec<BucketTest> = children.into_iter().filter_map(|child| child.0).listed();
        TightBucketPredicate((!known.is_empty()).then(|| join(known, BucketTest::Or)))
    }
}

/// All of `tests` must hold.
pub(super) fn all(tests: Vec<BucketTest>) -> BucketTest {
    join(tests, BucketTest::And)
}

/// `many` of `tests`, or the only one.
pub(super) fn join(mut tests: Vec<BucketTest>, many: fn(Vec<BucketTest>) -> BucketTest) -> BucketTest {
    match tests.pop() {
        Some(only) if tests.is_empty() => only,
        last => {
            tests.extend(last);
            many(tests)
        }
    }
}

/// The predicates derived from a filter.
pub(super) struct Derived {
    pub(super) loose: LooseBucketPredicate,
    pub(super) tight: TightBucketPredicate,
    /// True if the loose predicate holds for no bucket with a measurement that does not match, so that the filter is
    /// not needed any more.
    pub(super) exact: bool,
}

impl Derived {
    fn unknown() -> Derived {
        Derived { loose: LooseBucketPredicate::UNKNOWN, tight: TightBucketPredicate::UNKNOWN, exact: false }
    }

    fn loose(test: BucketTest) -> Derived {
        Derived { loose: LooseBucketPredicate(Some(test)), ..Derived::unknown() }
    }

    /// One test for both predicates.
    fn both(test: BucketTest) -> Derived {
        Derived { tight: TightBucketPredicate(Some(test.clone())), exact: true, ..Derived::loose(test) }
    }

    pub(super) fn new(loose: BucketTest, tight: BucketTest, exact: bool) -> Derived {
        Derived { tight: TightBucketPredicate(Some(tight)), exact, ..Derived::loose(loose) }
    }
}

/// Derives predicates on buckets of `layout` from `filter`.
///
/// A negation is never derived from summaries: they do not show missing fields, and a bucket whose extremes match may
/// hold measurements that do not.
pub(super) fn derive(filter: &Filter, layout: &Layout<'_>) -> Derived {
    match filter {
        Filter::AlwaysTrue => {
            let tight = TightBucketPredicate(Some(BucketTest::Always(true)));
            Derived { loose: LooseBucketPredicate::UNKNOWN, tight, exact: true }
        }
        Filter::AlwaysFalse => Derived { exact: true, ..Derived::loose(BucketTest::Always(false)) },
        // All measurements of a bucket share its metadata.
        on_meta if layout.is_on_meta(on_meta) => {
            let test = BucketTest::Meta(on_meta.clone().with_root(META));
            // A test that can fail is repeated on the rows, which raise the error.
            if on_meta.can_fail() { Derived::loose(test) } else { Derived::both(test) }
        }
        Filter::And(children) => {
            let (loose, tight, exact) = derive_each(children, layout);
            Derived { loose: LooseBucketPredicate::and(loose), tight: TightBucketPredicate::and(tight), exact }
        }
        Filter::Or(children) => {
            let (loose, tight, exact) = derive_each(children, layout);
            Derived { loose: LooseBucketPredicate::or(loose), tight: TightBucketPredicate::or(tight), exact }
        }
        Filter::Nor(_) | Filter::Not(_) | Filter::Schema(_) | Filter::Bucket(_) => Derived::unknown(),
        Filter::Field(path, test) => derive_field(path, test, layout),
        Filter::Expr(condition) => match condition.twin() {
            Some((path, test)) => derive_field(path, test, layout),
            None => Derived::unknown(),
        },
    }
}

fn derive_each(
    children: &[Filter],
    layout: &Layout<'_>,
) -> (Vec<LooseBucketPredicate>, Vec<TightBucketPredicate>, bool) {
    let mut exact = true;
    let (loose, tight) = children
        .iter()
        .map(|child| {
            let derived = derive(child, layout);
            exact &= derived.exact;
            (derived.loose, derived.tight)
        })
        .unzip();
    (loose, tight, exact)
}

fn derive_field(path: &Path, test: &Test, layout: &Layout<'_>) -> Derived {
    let is_time = layout.is_time(path);
    match test {
        Test::Compare(compare) | Test::Whole(compare) if is_time => match compare.value().as_date_ms() {
            Some(ms) => time::derive(path, compare.op(), ms, layout),
            None => Derived::unknown(),
        },
        // Missing values sort below everything, and summaries do not show them.
        Test::Whole(compare) if compare.op().includes_less() => Derived::unknown(),
        Test::Compare(compare) | Test::Whole(compare) if is_eligible(compare.value(), compare.collation(), layout) => {
            mixed(path, bounds(path, compare.op(), compare.value(), compare.collation()), is_time, layout)
        }
        Test::In(set) if set.values().iter().all(|v| is_eligible(v.view(), set.collation(), layout)) => {
            mixed(path, BucketTest::Encloses { path: path.clone(), set: set.clone() }, is_time, layout)
        }
        // The server tests buckets for a field only if it knows of no mixed types, as for index filters.
        Test::Exists if !layout.mixed_schema || layout.is_index_filter => {
            mixed(path, BucketTest::Exists(path.clone()), is_time, layout)
        }
        Test::Geo(geo) => Derived::loose(BucketTest::Near(path.clone(), Rc::clone(geo))),
        // A prefix is compared by bytes.
        Test::Regex(regex) if !regex.prefix().is_empty() && layout.options.collation.is_simple() => {
            mixed(path, begins_with(path, regex.prefix()), is_time, layout)
        }
        _ => Derived::unknown(),
    }
}

/// True if the summaries say something about values that compare with `operand`.
///
/// Null stands for missing, which summaries do not show. Objects and arrays are summarised by their parts. MinKey and
/// MaxKey compare with values of all other types, unlike in the order of summaries. Strings must compare as they did
/// when the summaries were made.
fn is_eligible(operand: Value<'_>, collation: &Collation, layout: &Layout<'_>) -> bool {
    !matches!(operand.kind(), Kind::Null | Kind::Undefined | Kind::Object | Kind::Array | Kind::MinKey | Kind::MaxKey)
        && collation.agrees_on(operand, &layout.options.collation)
}

/// A condition on the summaries that holds if some value at `path` may pass a comparison.
pub(super) fn bounds(path: &Path, op: CompareOp, value: Value<'_>, collation: &Collation) -> BucketTest {
    let one = |side, op| bound(side, path, op, value.to_owned(), collation);
    match op {
        CompareOp::Eq => all(vec![one(Side::Min, CompareOp::Lte), one(Side::Max, CompareOp::Gte)]),
        op @ (CompareOp::Gt | CompareOp::Gte) => one(Side::Max, op),
        op @ (CompareOp::Lt | CompareOp::Lte) => one(Side::Min, op),
    }
}

/// Some string at `path` may begin with `prefix`, or some value is a regular expression, which may be the same one.
fn begins_with(path: &Path, prefix: &str) -> BucketTest {
    let collation = &Collation::default();
    let from = bound(Side::Max, path, CompareOp::Gte, OwnedValue::string(prefix), collation);
    // The smallest regular expression.
    let mut tagged = vec![Kind::Regex.byte()];
    tagged.extend_from_slice(&[0, 0]);
    let patterns = bound(Side::Max, path, CompareOp::Gte, OwnedValue::from_tagged_checked(tagged), collation);
    match successor(prefix) {
        Some(end) => {
            let below = bound(Side::Min, path, CompareOp::Lt, OwnedValue::string(&end), collation);
            all(vec![from, BucketTest::Or(vec![below, patterns])])
        }
        None => from,
    }
}

/// The smallest string above all strings that begin with `prefix`; `None` if there is none.
pub fn successor(prefix: &str) -> Option<String> {
    let mut head = prefix.to_owned();
    while let Some(last) = head.pop() {
        // The code points between the two ranges are not characters.
        let next = if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(last) + 1) };
        if let Some(next) = next {
            head.push(next);
            return Some(head);
        }
    }
    None
}

/// A summary of a path compared with a constant.
pub(super) fn bound(side: Side, path: &Path, op: CompareOp, value: OwnedValue, collation: &Collation) -> BucketTest {
    BucketTest::Bound { side, path: path.clone(), op, value, collation: collation.clone() }
}

/// The loose predicate `test`, which decides nothing if the bucket has several types at `path`. Times are always dates.
fn mixed(path: &Path, test: BucketTest, is_time: bool, layout: &Layout<'_>) -> Derived {
    if layout.mixed_schema && !is_time {
        Derived::loose(BucketTest::Or(vec![test, BucketTest::TypesDiffer(path.clone())]))
    } else {
        Derived::loose(test)
    }
}
