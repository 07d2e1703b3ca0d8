//! Splits a filter on measurements into the part for buckets and the part for measurements.

use super::predicate::{LooseBucketPredicate, TightBucketPredicate, derive};
use super::reach::{IdRange, Reach};
use super::time;
use crate::block::{Bitmap, Block, Column};
use crate::bucket::TimeseriesOptions;
use crate::error::Result;
use crate::listed::IntoList;
use crate::query::filter::Filter;
use crate::value::Path;

/// The name of the metadata in a bucket document.
pub(super) const META: &str = "meta";

/// What splitting depends on.
///
/// The flags are promises about every bucket. If in doubt, `extended_range` and `mixed_schema` are true and
/// `fixed_buckets` is false.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// The names of the fields, and the longest span that a bucket was ever allowed.
    pub options: &'a TimeseriesOptions,
    /// True if some time lies before 1970 or beyond 31-bit seconds, so that bucket ids say nothing about times.
    pub extended_range: bool,
    /// True if some bucket may hold several types at one path.
    pub mixed_schema: bool,
    /// True if span and rounding are equal and never changed.
    pub fixed_buckets: bool,
    /// True if the filter is that of a partial index.
    pub is_index_filter: bool,
}

impl Layout<'_> {
    /// True if `path` is the time field itself.
    pub(super) fn is_time(&self, path: &Path) -> bool {
        path.as_str() == self.options.time_field && path.is_top_level()
    }

    /// True if `filter` reads only the metadata. A constant reads nothing.
    pub(super) fn is_on_meta(&self, filter: &Filter) -> bool {
        let Some(meta_field) = &self.options.meta_field else { return false };
        matches!(filter.fields().names(), [only] if **only == **meta_field) && !filter.is_random()
    }
}

/// A split filter. A measurement matches if `meta` matches its bucket and `residual` matches the measurement.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// Decides exactly on whole buckets. Its paths start at `meta`, as in a bucket document; `matches_value` applies it
    /// to the metadata without the document.
    pub meta: Filter,
    /// False if no measurement of a bucket can match `residual`.
    pub bucket: LooseBucketPredicate,
    /// True if every measurement of a bucket matches `residual`.
    pub whole: TightBucketPredicate,
    /// What must still be tested on measurements, unless `whole` or an exact `bucket` has decided.
    pub residual: Filter,
    /// True if `bucket` holds only for buckets in which all measurements match `residual`.
    pub exact: bool,
    /// The ids of all buckets that can hold a match.
    pub id_range: IdRange,
    /// Bounds of the times of matches, in milliseconds, both included.
    times_ms: (i64, i64),
}

/// Splits `filter` for a collection of `layout`.
pub fn split(filter: &Filter, layout: &Layout<'_>) -> Split {
    let filter =
        if layout.extended_range { filter.clone() } else { time::without_decided_times(filter.clone(), layout) };
    let (meta, rest): (Vec<Filter>, Vec<Filter>) =
        conjuncts(filter, layout).into_iter().partition(|conjunct| layout.is_on_meta(conjunct));
    let residual = Filter::and(rest);
    let derived = derive(&residual, layout);
    let Reach { first_ms, last_ms, ids } = time::reach(&residual, layout);
    Split {
        meta: Filter::and(meta).with_root(META),
        bucket: derived.loose,
        whole: derived.tight,
        exact: derived.exact,
        residual,
        id_range: ids,
        times_ms: (first_ms, last_ms),
    }
}

/// The filters that must all match. A branch of `$nor` that reads only the metadata is a part of its own.
fn conjuncts(filter: Filter, layout: &Layout<'_>) -> Vec<Filter> {
    match filter {
        Filter::AlwaysTrue => Vec::new(),
        Filter::And(children) => children.into_iter().flat_map(|child| conjuncts(child, layout)).listed(),
        Filter::Nor(arms) => {
            let (meta, rest): (Vec<Filter>, Vec<Filter>) = arms.into_iter().partition(|arm| layout.is_on_meta(arm));
            let rest = Filter::nor(rest);
            meta.into_iter().map(Filter::negated).chain((!rest.is_trivial()).then_some(rest)).listed()
        }
        other => vec![other],
    }
}

impl Split {
    /// Which of some rows have metadata that matches, given the column of it.
    ///
    /// Errors: those of expressions on the metadata.
    pub fn select_by_metadata(&self, rows: usize, metadata: Option<&Column>) -> Result<Bitmap> {
        let mut block = Block::new(rows);
        metadata.into_iter().for_each(|column| block.set_column(META, column.clone()));
        self.meta.select(&block)
    }

    /// The first and the last time of matches, in milliseconds, both included; `None` if unbounded. The first is above
    /// the last if nothing can match.
    pub fn time_bounds(&self) -> (Option<i64>, Option<i64>) {
        let (first, last) = self.times_ms;
        ((first != i64::MIN).then_some(first), (last != i64::MAX).then_some(last))
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Bound;

    use super::*;
    use crate::bucket::BucketId;
    use crate::query::filter::samples::filter;
    use crate::value::{Collation, DocBuf, OwnedValue};
    use bson::{DateTime, RawBson, RawDocumentBuf, rawdoc};

    const HOUR_MS: i64 = 3_600_000;
    /// A time at 10 o'clock.
    const TEN: i64 = 1_700_042_400_000;

    fn options(meta_field: Option<&str>) -> TimeseriesOptions {
        TimeseriesOptions {
            time_field: "time".into(),
            meta_field: meta_field.map(str::to_owned),
            rebucketed: false,
            granularity: None,
            span_seconds: 3_600,
            rounding_seconds: Some(3_600),
            collation: Collation::default(),
        }
    }

    fn split_with(doc: &RawDocumentBuf, change: impl FnOnce(&mut Layout<'_>)) -> Split {
        let options = options(Some("m"));
        let mut layout = Layout {
            options: &options,
            extended_range: false,
            mixed_schema: false,
            fixed_buckets: false,
            is_index_filter: false,
        };
        change(&mut layout);
        split(&filter(doc), &layout)
    }

    fn split_of(doc: RawDocumentBuf) -> Split {
        split_with(&doc, |_| {})
    }

    fn date(ms: i64) -> RawBson {
        RawBson::DateTime(DateTime::from_millis(ms))
    }

    /// What the bucket predicates say for given summaries: may match, all match.
    fn says(split: &Split, min: RawDocumentBuf, max: RawDocumentBuf, meta: Option<i32>) -> (bool, bool) {
        let [min, max] = [min, max].map(|doc| DocBuf::parse(doc.into_bytes()).unwrap());
        let meta = meta.map(OwnedValue::int32);
        let meta = meta.as_ref().map(OwnedValue::view);
        (split.bucket.may_match(min.view(), max.view(), meta), split.whole.all_match(min.view(), max.view(), meta))
    }

    fn says_of_times(split: &Split, min_ms: i64, max_ms: i64) -> (bool, bool) {
        says(split, rawdoc! { "time": date(min_ms) }, rawdoc! { "time": date(max_ms) }, None)
    }

    #[test]
    fn conjuncts_on_metadata_become_bucket_filters_on_meta() {
        let split =
            split_of(rawdoc! { "m.a.b": { "$in": [1, 2] }, "x": 3, "$and": [{ "m": { "$ne": 7 } }, { "meta": 4 }] });
        assert_eq!(split.meta, filter(&rawdoc! { "meta.a.b": { "$in": [1, 2] }, "meta": { "$ne": 7 } }));
        assert_eq!(split.residual, filter(&rawdoc! { "x": 3, "meta": 4 }));
    }

    #[test]
    fn branches_of_nor_are_conjuncts_and_those_of_or_are_not() {
        let split = split_of(rawdoc! { "$nor": [{ "m": 1 }, { "x": 2 }, { "m.a": 3 }] });
        assert_eq!(split.meta, filter(&rawdoc! { "$and": [{ "meta": { "$ne": 1 } }, { "meta.a": { "$ne": 3 } }] }));
        assert_eq!(split.residual, filter(&rawdoc! { "$nor": [{ "x": 2 }] }));
        let either = split_of(rawdoc! { "$or": [{ "m": 1 }, { "x": 2 }] });
        assert!(either.meta.is_trivial());
        assert_eq!(either.residual, filter(&rawdoc! { "$or": [{ "m": 1 }, { "x": 2 }] }));
    }

    #[test]
    fn without_a_meta_field_every_filter_is_on_measurements() {
        let options = options(None);
        let layout = Layout {
            options: &options,
            extended_range: false,
            mixed_schema: false,
            fixed_buckets: false,
            is_index_filter: false,
        };
        let wanted = filter(&rawdoc! { "meta": 1, "m": 2 });
        let split = split(&wanted, &layout);
        assert!(split.meta.is_trivial());
        assert_eq!(split.residual, wanted);
    }

    #[test]
    fn a_time_bound_outside_a_bucket_decides_it_and_one_inside_does_not() {
        for (op, before, inside, behind) in [
            ("$gt", (true, true), (true, false), (false, false)),
            ("$gte", (true, true), (true, false), (false, false)),
            ("$lt", (false, false), (true, false), (true, true)),
            ("$lte", (false, false), (true, false), (true, true)),
            ("$eq", (false, false), (true, false), (false, false)),
        ] {
            let op = bson::raw::CString::try_from(op).unwrap();
            let split = |ms| split_of(rawdoc! { "time": { &op: date(ms) } });
            assert_eq!(says_of_times(&split(TEN - 1), TEN, TEN + 9), before, "{op:?}");
            assert_eq!(says_of_times(&split(TEN + 5), TEN, TEN + 9), inside, "{op:?}");
            assert_eq!(says_of_times(&split(TEN + 10), TEN, TEN + 9), behind, "{op:?}");
        }
        assert_eq!(says_of_times(&split_of(rawdoc! { "time": date(TEN) }), TEN, TEN), (true, true));
    }

    #[test]
    fn a_disjunction_is_decided_if_one_branch_is() {
        let split = split_of(rawdoc! { "$or": [{ "time": { "$lte": date(TEN) } }, { "m": { "$gt": 3 } }] });
        let of =
            |min, max, meta| says(&split, rawdoc! { "time": date(min) }, rawdoc! { "time": date(max) }, Some(meta));
        assert_eq!(of(TEN + 1, TEN + 2, 3), (false, false));
        assert_eq!(of(TEN + 1, TEN + 2, 4), (true, true));
        assert_eq!(of(TEN - 2, TEN - 1, 3), (true, true));
        assert_eq!(of(TEN - 2, TEN + 1, 3), (true, false));
    }

    #[test]
    fn filters_on_measured_fields_can_only_exclude_buckets() {
        let bounded = split_of(rawdoc! { "a.b": { "$gt": 100 } });
        let says_of = |min: RawDocumentBuf, max: RawDocumentBuf| says(&bounded, min, max, None);
        assert_eq!(says_of(rawdoc! { "a": { "b": 1 } }, rawdoc! { "a": { "b": 100 } }), (false, false));
        assert_eq!(says_of(rawdoc! { "a": { "b": 101 } }, rawdoc! { "a": { "b": 102 } }), (true, false));
        for undecided in [
            rawdoc! { "a": null },
            rawdoc! { "a": { "$ne": 1 } },
            rawdoc! { "a": { "$exists": false } },
            rawdoc! { "a": { "$not": { "$gt": 1 } } },
            rawdoc! { "$nor": [{ "a": 1 }] },
            rawdoc! { "a": { "x": 1 } },
            rawdoc! { "a": [1] },
            rawdoc! { "a": { "$in": [1, null] } },
            rawdoc! { "a": { "$lt": RawBson::MaxKey } },
            rawdoc! { "time": { "$gt": 7 } },
            rawdoc! { "$or": [{ "a": 1 }, { "a": null }] },
        ] {
            let split = split_of(undecided.clone());
            assert!(split.bucket.is_trivial() && split.whole.is_trivial() && !split.exact, "{undecided:?}");
        }
        let nothing = split_of(rawdoc! {});
        assert_eq!(says(&nothing, rawdoc! {}, rawdoc! {}, None), (true, true));
    }

    #[test]
    fn an_absent_field_excludes_its_bucket_unless_types_are_mixed() {
        let exists = rawdoc! { "a.b": { "$exists": true } };
        let without = || rawdoc! { "a": { "c": 1 } };
        assert!(!says(&split_of(exists.clone()), without(), without(), None).0);
        assert!(split_with(&exists, |layout| layout.mixed_schema = true).bucket.is_trivial());
        let hidden = rawdoc! { "a": { "$lte": 3 } };
        let says_of = |split: &Split| says(split, rawdoc! { "a": 4 }, rawdoc! { "a": [2, 3] }, None).0;
        assert!(says_of(&split_with(&hidden, |layout| layout.mixed_schema = true)));
        assert!(!says_of(&split_of(hidden)));
    }

    #[test]
    fn the_id_range_reaches_a_span_before_and_a_second_after_the_times() {
        let half_past = TEN + 500;
        let nine = |end: fn(i64) -> BucketId| end(TEN - HOUR_MS);
        let one_later = |end: fn(i64) -> BucketId| end(TEN + 1000);
        for (op, low, high) in [
            ("$gt", Bound::Excluded(nine(BucketId::highest_at)), Bound::Unbounded),
            ("$gte", Bound::Included(nine(BucketId::lowest_at)), Bound::Unbounded),
            ("$lt", Bound::Unbounded, Bound::Excluded(one_later(BucketId::lowest_at))),
            ("$lte", Bound::Unbounded, Bound::Included(one_later(BucketId::highest_at))),
            ("$eq", Bound::Included(nine(BucketId::lowest_at)), Bound::Included(one_later(BucketId::highest_at))),
        ] {
            let op = bson::raw::CString::try_from(op).unwrap();
            let doc = rawdoc! { "time": { &op: date(half_past) } };
            assert_eq!(split_of(doc.clone()).id_range, IdRange { low, high }, "{op:?}");
            assert!(split_with(&doc, |layout| layout.extended_range = true).id_range.is_full());
        }
        assert!(split_of(rawdoc! { "time": { "$gte": date(HOUR_MS - 1) } }).id_range.is_full());
        assert!(split_of(rawdoc! { "time": { "$gt": date(TEN + 2 * HOUR_MS), "$lt": date(TEN) } }).id_range.is_empty());
    }

    #[test]
    fn time_constants_outside_the_standard_range_decide_at_once() {
        let far = 4_294_967_295_001;
        for (doc, decided) in [
            (rawdoc! { "time": { "$lte": date(-1) } }, Filter::AlwaysFalse),
            (rawdoc! { "time": { "$gt": date(-1) } }, Filter::AlwaysTrue),
            (rawdoc! { "time": { "$gt": date(far) } }, Filter::AlwaysFalse),
            (rawdoc! { "time": { "$lt": date(far) } }, Filter::AlwaysTrue),
            (rawdoc! { "time": date(far) }, Filter::AlwaysFalse),
            (rawdoc! { "time": { "$ne": date(far) } }, Filter::AlwaysTrue),
        ] {
            let split = split_of(doc.clone());
            assert_eq!(split.residual, decided, "{doc:?}");
            assert_eq!(says_of_times(&split, TEN, TEN), (decided.is_trivial(), decided.is_trivial()));
            assert_eq!(split.id_range.is_empty(), !decided.is_trivial());
            assert_ne!(split_with(&doc, |layout| layout.extended_range = true).residual, decided);
        }
    }

    #[test]
    fn a_time_bound_on_the_boundary_of_fixed_buckets_is_exact() {
        let fixed = |doc: RawDocumentBuf| split_with(&doc, |layout| layout.fixed_buckets = true).exact;
        assert!(fixed(rawdoc! { "time": { "$gte": date(TEN) } }));
        assert!(fixed(rawdoc! { "time": { "$gte": date(TEN), "$lt": date(TEN + HOUR_MS) }, "m": 3 }));
        assert!(fixed(
            rawdoc! { "$or": [{ "time": { "$lt": date(TEN) } }, { "time": { "$gte": date(TEN + HOUR_MS) } }] }
        ));
        for undecided in [
            rawdoc! { "time": { "$gte": date(TEN + 1) } },
            rawdoc! { "time": { "$gt": date(TEN) } },
            rawdoc! { "time": { "$lte": date(TEN) } },
            rawdoc! { "time": date(TEN) },
            rawdoc! { "time": { "$gte": date(TEN) }, "x": 1 },
        ] {
            assert!(!fixed(undecided));
        }
        let open = rawdoc! { "time": { "$gte": date(TEN) } };
        assert!(!split_of(open.clone()).exact);
        assert!(!split_with(&open, |layout| (layout.fixed_buckets, layout.extended_range) = (true, true)).exact);
    }

    #[test]
    fn time_bounds_of_a_conjunction_are_combined() {
        let bounds = |doc| split_of(doc).time_bounds();
        assert_eq!(
            bounds(rawdoc! { "time": { "$gt": date(TEN), "$lt": date(TEN + 9) }, "x": 1 }),
            (Some(TEN + 1), Some(TEN + 8))
        );
        assert_eq!(bounds(rawdoc! { "time": { "$gte": date(TEN) } }), (Some(TEN), None));
        assert_eq!(bounds(rawdoc! { "time": { "$in": [date(TEN), date(TEN + 7)] } }), (Some(TEN), Some(TEN + 7)));
        assert_eq!(bounds(rawdoc! { "x": 1 }), (None, None));
        let either = rawdoc! { "$or": [{ "time": date(TEN) }, { "time": date(TEN + 7) }] };
        assert_eq!(bounds(either), (Some(TEN), Some(TEN + 7)));
        assert_eq!(bounds(rawdoc! { "$or": [{ "time": date(TEN) }, { "x": 1 }] }), (None, None));
        let (first, last) = bounds(rawdoc! { "time": { "$gt": date(TEN), "$lt": date(TEN) } });
        assert!(first > last);
    }
}
