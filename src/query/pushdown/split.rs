//! A filter on measurements, split into what runs on buckets and what is left for measurements.

use super::predicate::{LooseBucketPredicate, TightBucketPredicate, derive};
use super::reach::{IdRange, Reach};
use super::time;
use crate::bucket::TimeseriesOptions;
use crate::query::filter::{CompareOp, Filter, Test};
use crate::value::{Kind, OwnedValue, Path, Value};

/// What a bucket document calls the metadata.
const META: &str = "meta";

/// What a split has to know of a collection.
#[derive(Clone, Copy, Debug)]
pub struct Layout<'a> {
    /// Names of the fields, and the longest span a bucket was ever allowed.
    pub options: &'a TimeseriesOptions,
    /// Some time lies before 1970 or beyond the seconds that fit 31 bits: bucket ids say nothing about times.
    pub extended_range: bool,
    /// Some bucket may hold several types at one path.
    pub mixed_schema: bool,
    /// Span and rounding are equal and were never changed.
    pub fixed_buckets: bool,
}

impl Layout<'_> {
    /// True where `path` is the time field itself.
    pub(super) fn is_time(&self, path: &Path) -> bool {
        path.as_str() == self.options.time_field && path.is_top_level()
    }

    /// True where `filter` reads the metadata and nothing else.
    pub(super) fn is_on_meta(&self, filter: &Filter) -> bool {
        let mut only_meta = self.options.meta_field.is_some();
        filter.for_each_path(&mut |path| only_meta &= Some(path.first()) == self.options.meta_field.as_deref());
        only_meta
    }

    /// `filter`, which reads the metadata only, with its paths as they are in a bucket document.
    pub(super) fn renamed(&self, filter: Filter) -> Filter {
        let name_len = self.options.meta_field.as_ref().map_or(0, String::len);
        filter.map_fields(&mut |path, test| {
            let below = path.as_str().get(name_len..).unwrap_or_default();
            // A part of a path is a path.
            let renamed = Path::parse(&format!("{META}{below}")).unwrap_or(path);
            Filter::Field(renamed, test)
        })
    }
}

/// A filter, taken apart. A measurement matches the filter where `meta` matches its bucket and `residual` matches it.
#[derive(Clone, Debug, PartialEq)]
pub struct Split {
    /// Decides on whole buckets, exactly. Its paths begin at `meta`, as in a bucket document; `matches_value` of the
    /// metadata does without the document.
    pub meta: Filter,
    /// False where no measurement of a bucket can match `residual`.
    pub bucket: LooseBucketPredicate,
    /// True where every measurement of a bucket matches `residual`.
    pub whole: TightBucketPredicate,
    /// What measurements are left to be asked, unless `whole` or an exact `bucket` has answered.
    pub residual: Filter,
    /// True where `bucket` holds only for buckets all of whose measurements match `residual`.
    pub exact: bool,
    /// The ids of all buckets that can hold a match.
    pub id_range: IdRange,
    /// Bounds of the times of matches, in milliseconds, both included.
    times_ms: (i64, i64),
}

/// Splits `filter` for a collection of `layout`.
pub fn split(filter: &Filter, layout: &Layout<'_>) -> Split {
    let filter = if layout.extended_range { filter.clone() } else { time::fold(filter.clone(), layout) };
    let (meta, rest): (Vec<Filter>, Vec<Filter>) =
        conjuncts(filter, layout).into_iter().partition(|conjunct| layout.is_on_meta(conjunct));
    let residual = Filter::and(rest);
    let derived = derive(&residual, layout);
    let Reach { first_ms, last_ms, ids } = time::reach(&residual, layout);
    Split {
        meta: layout.renamed(Filter::and(meta)),
        bucket: derived.loose,
        whole: derived.tight,
        exact: derived.exact,
        residual,
        id_range: ids,
        times_ms: (first_ms, last_ms),
    }
}

/// The parts of which all must match. An arm of `$nor` that reads the metadata only is a part of its own.
fn conjuncts(filter: Filter, layout: &Layout<'_>) -> Vec<Filter> {
    match filter {
        Filter::AlwaysTrue => Vec::new(),
        Filter::And(children) => children.into_iter().flat_map(|child| conjuncts(child, layout)).collect(),
        Filter::Nor(arms) => {
            let (meta, rest): (Vec<Filter>, Vec<Filter>) = arms.into_iter().partition(|arm| layout.is_on_meta(arm));
            let rest = Filter::nor(rest);
            meta.into_iter().map(Filter::negated).chain((!rest.is_trivial()).then_some(rest)).collect()
        }
        other => vec![other],
    }
}

impl Split {
    /// The metadata of every match, where the filter asks for equality with a whole one: the point of an index to look at.
    ///
    /// `meta` must still be asked. Null stands for missing and arrays match by element, so neither is such a point.
    pub fn meta_equality(&self) -> Option<OwnedValue> {
        let conjuncts = match &self.meta {
            Filter::And(children) => children.as_slice(),
            other => std::slice::from_ref(other),
        };
        conjuncts.iter().find_map(|conjunct| match conjunct {
            Filter::Field(path, Test::Compare(compare)) if path.is_top_level() && compare.op() == CompareOp::Eq => {
                is_point(compare.value()).then(|| compare.value().to_owned())
            }
            _ => None,
        })
    }

    /// The first and the last time, in milliseconds and both included, that a match can have; `None` where there is no
    /// bound. The first is above the last where nothing can match.
    pub fn time_bounds(&self) -> (Option<i64>, Option<i64>) {
        let (first, last) = self.times_ms;
        ((first != i64::MIN).then_some(first), (last != i64::MAX).then_some(last))
    }
}

fn is_point(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::Null | Kind::Undefined => false,
        _ => holds_no_array(value),
    }
}

fn holds_no_array(value: Value<'_>) -> bool {
    value.kind() != Kind::Array && value.as_doc().is_none_or(|doc| doc.iter().all(|(_, inner)| holds_no_array(inner)))
}
