//! Comparisons of the time field: what they say about a bucket's span, and which buckets to visit.

use std::ops::Bound;

use super::control::Side;
use super::predicate::{Derived, all, bound};
use super::reach::{IdRange, Reach};
use super::split::Layout;
use crate::bucket::{BucketId, bucket_start_ms};
use crate::listed::IntoList;
use crate::query::expr::CompareOp;
use crate::query::filter::{Filter, Test};
use crate::value::{Collation, OwnedValue, Path};

/// The last date whose seconds fit the 32 bits of a bucket id.
const ID_DATE_MS_MAX: i64 = 4_294_967_295_000;

/// The predicates of `{path: {op: Date(ms)}}`, where `path` is the time field.
///
/// `control.min` is rounded down, and `control.max` is exact. With fixed buckets the boundaries are known, so that a
/// comparison at a boundary is decided by the bucket alone.
pub(super) fn derive(path: &Path, op: CompareOp, ms: i64, layout: &Layout<'_>) -> Derived {
    let date = || OwnedValue::date(ms);
    let simple = Collation::default();
    let min = |op| bound(Side::Min, path, op, date(), &simple);
    let max = |op| bound(Side::Max, path, op, date(), &simple);
    let border =
        (layout.fixed_buckets && !layout.extended_range).then(|| bucket_start_ms(ms, layout.options.span_seconds));
    // A bucket that begins before the boundary holds nothing at or after `ms`.
    let from_border = border.map(|start| bound(Side::Min, path, CompareOp::Gte, OwnedValue::date(start), &simple));
    let (loose, tight) = match op {
        CompareOp::Eq => (vec![min(CompareOp::Lte), max(CompareOp::Gte)], vec![min(op), max(op)]),
        CompareOp::Gt | CompareOp::Gte => (vec![max(op)], vec![min(op)]),
        CompareOp::Lt | CompareOp::Lte => (vec![min(op)], vec![max(op)]),
    };
    let exact = border == Some(ms) && matches!(op, CompareOp::Gte | CompareOp::Lt);
    let ends_open = matches!(op, CompareOp::Eq | CompareOp::Gt | CompareOp::Gte);
    let loose = loose.into_iter().chain(from_border.filter(|_| ends_open)).listed();
    Derived::new(all(loose), all(tight), exact)
}

/// `filter` without comparisons that all dates of the standard range pass or fail.
///
/// Only for collections whose times all lie in that range.
pub(super) fn without_decided_times(filter: Filter, layout: &Layout<'_>) -> Filter {
    filter.map_leaves(&mut |leaf| {
        let passes = match comparison(&leaf, layout) {
            Some((op, ms)) if ms < 0 => matches!(op, CompareOp::Gt | CompareOp::Gte),
            Some((op, ms)) if ms > ID_DATE_MS_MAX => matches!(op, CompareOp::Lt | CompareOp::Lte),
            _ => return leaf,
        };
        if passes { Filter::AlwaysTrue } else { Filter::AlwaysFalse }
    })
}

/// The time with which a leaf compares the time field. Times are always dates, so an expression compares them in the
/// same way.
fn comparison(leaf: &Filter, layout: &Layout<'_>) -> Option<(CompareOp, i64)> {
    let (path, test) = match leaf {
        Filter::Field(path, test) => (path, test),
        Filter::Expr(condition) => condition.twin().map(|(path, test)| (path, test))?,
        _ => return None,
    };
    match test {
        Test::Compare(compare) | Test::Whole(compare) if layout.is_time(path) => {
            compare.value().as_date_ms().map(|ms| (compare.op(), ms))
        }
        _ => None,
    }
}

/// Where measurements that match `filter` can be.
pub(super) fn reach(filter: &Filter, layout: &Layout<'_>) -> Reach {
    match filter {
        Filter::AlwaysFalse => Reach::nowhere(),
        Filter::And(children) => {
            children.iter().fold(Reach::EVERYWHERE, |all, child| all.intersect(reach(child, layout)))
        }
        Filter::Or(children) => children.iter().fold(Reach::nowhere(), |all, child| all.cover(reach(child, layout))),
        Filter::Field(path, Test::In(set)) if layout.is_time(path) => {
            set.values().iter().fold(Reach::nowhere(), |all, value| match value.view().as_date_ms() {
                Some(ms) => all.cover(reach_of(CompareOp::Eq, ms, layout)),
                None => Reach::EVERYWHERE,
            })
        }
        leaf => comparison(leaf, layout).map_or(Reach::EVERYWHERE, |(op, ms)| reach_of(op, ms, layout)),
    }
}

fn reach_of(op: CompareOp, ms: i64, layout: &Layout<'_>) -> Reach {
    let (first, last) = match op {
        CompareOp::Eq => (Some(ms), Some(ms)),
        CompareOp::Gte => (Some(ms), Some(i64::MAX)),
        CompareOp::Gt => (ms.checked_add(1), Some(i64::MAX)),
        CompareOp::Lte => (Some(i64::MIN), Some(ms)),
        CompareOp::Lt => (Some(i64::MIN), ms.checked_sub(1)),
    };
    let (Some(first_ms), Some(last_ms)) = (first, last) else { return Reach::nowhere() };
    Reach { first_ms, last_ms, ids: if layout.extended_range { IdRange::FULL } else { ids_of(op, ms, layout) } }
}

/// The ids of buckets that can hold such a time. A bucket begins at a whole second, and less than a span before its
/// last time.
fn ids_of(op: CompareOp, ms: i64, layout: &Layout<'_>) -> IdRange {
    let earliest_ms = ms.saturating_sub(layout.options.span_ms());
    let next_second_ms = ms.saturating_add(999).div_euclid(1000).saturating_mul(1000);
    let low = match op {
        // The very first buckets may begin at the epoch, which a bound that excludes its own second would miss.
        _ if earliest_ms < 0 => Bound::Unbounded,
        CompareOp::Gt => Bound::Excluded(BucketId::highest_at(earliest_ms)),
        CompareOp::Eq | CompareOp::Gte => Bound::Included(BucketId::lowest_at(earliest_ms)),
        CompareOp::Lt | CompareOp::Lte => Bound::Unbounded,
    };
    let high = match op {
        _ if next_second_ms > ID_DATE_MS_MAX => Bound::Unbounded,
        CompareOp::Lt => Bound::Excluded(BucketId::lowest_at(next_second_ms)),
        CompareOp::Eq | CompareOp::Lte => Bound::Included(BucketId::highest_at(next_second_ms)),
        CompareOp::Gt | CompareOp::Gte => Bound::Unbounded,
    };
    IdRange { low, high }
}
