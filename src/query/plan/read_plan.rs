//! What a query reads: which buckets, which of their columns, and which of their rows are left to be asked.

use super::demand::{Edge, Query, Which};
use super::find::{FindCommand, Hint};
use super::indexes::{Index, ReadAccess, buckets, choose, through_default};
use super::pushdown::{Layout, Split, split};
use super::rows::{CollectionFacts, Plan};
use super::stream::Stream;
use crate::block::{Bitmap, Block, Column};
use crate::bucket::{BucketDoc, BucketId, TimeseriesOptions};
use crate::error::Result;
use crate::index::META_TIME_INDEX;
use crate::query::expr::BoundExpr;
use crate::query::filter::Filter;
use crate::value::{DocWriter, FieldSet, Value};

/// Plain data: what a query reads and what then runs over the rows.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    /// The filter, taken apart; `None` where rows are bucket documents, which nothing is known of.
    pub split: Option<Split>,
    /// Some times may lie outside the standard range.
    pub extended_range: bool,
    /// The columns to decode.
    pub columns: FieldSet,
    /// How the buckets are found.
    pub access: ReadAccess,
    /// What runs over the rows.
    pub plan: Plan,
    /// How buckets help with the sort, where they do.
    pub stream: Option<Stream>,
    /// Where a find has to meet buckets in the order of their ids: true for ascending.
    pub order: Option<bool>,
    /// Closed buckets are not looked at.
    pub skips_closed: bool,
    /// True where the default index may tell which buckets a series has, or there is but one.
    pub lists_series: bool,
    /// The span of buckets whose boundaries are known.
    fixed_span_ms: Option<i64>,
}

impl ReadPlan {
    /// The plan of a query over measurements.
    pub fn new(query: Query, collection: &TimeseriesOptions, extended_range: bool, indexes: &[Index]) -> ReadPlan {
        let layout = Layout {
            options: collection,
            extended_range,
            // The catalog keeps one type at each path of a bucket; but two contexts may fill one bucket at the same time, and
            // buckets may come from elsewhere.
            mixed_schema: true,
            fixed_buckets: collection.is_fixed(),
            is_index_filter: false,
        };
        let split = split(&query.find.filter, &layout);
        let facts =
            CollectionFacts { time_field: &collection.time_field, meta_field: collection.meta_field.as_deref() };
        let by_index = match query.find.hint {
            Some(Hint::Natural { .. }) => None,
            // The default index is not chosen among others.
            _ if indexes.iter().all(|index| index.spec.number == META_TIME_INDEX) => {
                through_default(&query.find.filter, &split, &layout, indexes)
            }
            _ => choose(indexes, &query.find, &layout, &split),
        };
        let by_index = by_index.and_then(|(_, mut found)| match found.len() {
            1 => found.pop(),
            _ => Some(ReadAccess::Union(found)),
        });
        let is_natural = matches!(query.find.hint, Some(Hint::Natural { .. }));
        let takes_default = !is_natural && indexes.iter().any(|index| index.is_usable_default());
        let hinted = hinted(&query.find);
        let skips_closed = query.demand.skips_closed;
        let find = FindCommand { filter: split.residual.clone(), ..query.find };
        let plan = Plan::new(Query { find, ..query }, &facts);
        let columns = plan.decode.clone();
        let stream = plan.sort.as_ref().and_then(|sort| Stream::of(sort, &facts));
        let by_time = stream.as_ref().filter(|stream| stream.buckets.is_none()).and_then(|stream| stream.time);
        let order = by_time.or(hinted);
        ReadPlan {
            columns,
            access: by_index.unwrap_or_else(|| buckets(&split)),
            split: Some(split),
            extended_range,
            plan,
            stream,
            order,
            skips_closed,
            lists_series: takes_default || collection.meta_field.is_none() && !is_natural,
            fixed_span_ms: collection.is_fixed().then(|| collection.span_ms()),
        }
    }

    /// The plan of a query over bucket documents.
    pub fn over_buckets(query: Query) -> ReadPlan {
        let facts = CollectionFacts { time_field: "", meta_field: None };
        ReadPlan {
            split: None,
            extended_range: false,
            columns: FieldSet::All,
            access: ReadAccess::Buckets { low: BucketId::MIN, high: BucketId::MAX },
            order: hinted(&query.find),
            plan: Plan::new(query, &facts),
            stream: None,
            skips_closed: false,
            lists_series: false,
            fixed_span_ms: None,
        }
    }

    /// True where bucket documents are what is asked for.
    pub fn is_over_buckets(&self) -> bool {
        self.split.is_none()
    }

    /// False where no measurement of the bucket can match.
    ///
    /// Errors: those of expressions on the metadata.
    pub fn may_match(&self, bucket: &BucketDoc<'_>) -> Result<bool> {
        let Some(split) = &self.split else { return Ok(true) };
        Ok(split.meta.matches_value(bucket.meta())?
            && split.bucket.may_match(bucket.control_min(), bucket.control_max(), bucket.meta()))
    }

    /// True where every measurement of a bucket that may match does match.
    pub fn all_match(&self, bucket: &BucketDoc<'_>) -> bool {
        // A cursor may meet buckets that were begun, or filled up, behind a change of their boundaries.
        let is_known = |span_ms: i64| {
            let start_ms = bucket.min_time_ms();
            start_ms.rem_euclid(span_ms) == 0 && bucket.max_time_ms().saturating_sub(start_ms) < span_ms
        };
        self.split.as_ref().is_some_and(|split| {
            split.exact && self.fixed_span_ms.is_none_or(is_known)
                || split.residual.is_trivial()
                || split.whole.all_match(bucket.control_min(), bucket.control_max(), bucket.meta())
        })
    }

    /// Which rows of a bucket matter, all of which match, and how many; `None` where all do.
    pub fn edge(&self, bucket: &BucketDoc<'_>) -> Option<(Which, usize)> {
        let edge = self.plan.edge.as_ref()?;
        let (first_ms, last_ms) = (bucket.min_time_ms(), bucket.max_time_ms());
        // A bucket begins perhaps earlier than its rows, but never later: outside the standard range others may have rounded it up.
        let is_alike =
            |bin: &BoundExpr| !self.extended_range && bin.is_alike_between(&self.plan.time_field, first_ms, last_ms);
        edge.bins.iter().all(is_alike).then_some((edge.which, edge.count))
    }

    /// False where no row of that metadata and between those times can match.
    ///
    /// Errors: those of expressions on the metadata.
    pub fn may_match_rows(&self, meta: Option<Value<'_>>, first_ms: i64, last_ms: i64) -> Result<bool> {
        let Some(split) = &self.split else { return Ok(true) };
        let (first, last) = split.time_bounds();
        Ok(first.is_none_or(|bound| last_ms >= bound)
            && last.is_none_or(|bound| first_ms <= bound)
            && split.meta.matches_value(meta)?)
    }

    /// True where nothing but the time and the metadata decides which rows match.
    pub fn is_decided_by_time(&self) -> bool {
        let Some(split) = &self.split else { return false };
        let mut fields = split.residual.fields();
        fields.remove(&self.plan.time_field);
        fields.is_empty() && !split.residual.is_random()
    }

    /// True where every row between those times matches whose metadata does, of a plan that `is_decided_by_time`.
    pub fn all_match_between(&self, first_ms: i64, last_ms: i64) -> bool {
        let Some(split) = &self.split else { return false };
        let (first, last) = split.time_bounds();
        if first.is_some_and(|bound| first_ms < bound) || last.is_some_and(|bound| last_ms > bound) {
            return false;
        }
        let at = |time_ms: i64| {
            let mut writer = DocWriter::new();
            writer.date(&self.plan.time_field, time_ms);
            writer.finish()
        };
        split.residual.is_trivial() || split.whole.all_match(at(first_ms).view(), at(last_ms).view(), None)
    }

    /// True if whoever takes the rows counts them.
    pub fn counts(&self) -> bool {
        self.plan.edge.as_ref().is_some_and(|edge| edge.counts)
    }

    /// True where of the rows of a series nothing is asked but how many they are.
    pub fn only_counts(&self) -> bool {
        let takes_all = |edge: &Edge| edge.which == Which::Extremes && edge.bins.is_empty();
        self.plan.edge.as_ref().is_some_and(takes_all) && self.columns.is_empty()
    }

    /// True where not every metadata matches.
    pub fn asks_metadata(&self) -> bool {
        self.split.as_ref().is_some_and(|split| !split.meta.is_trivial())
    }

    /// True where nothing but the metadata decides which rows match.
    pub fn is_decided_by_metadata(&self) -> bool {
        self.split.as_ref().is_some_and(|split| split.residual.is_trivial())
    }

    /// The matching rows of a bucket that may match. `rows` holds at least the decoded columns.
    ///
    /// Errors: those of expressions.
    pub fn select(&self, rows: &Block, meta: Option<Value<'_>>) -> Result<Bitmap> {
        let residual = self.split.as_ref().map_or(&Filter::AlwaysTrue, |split| &split.residual);
        match (&self.plan.meta_field, meta) {
            (Some(name), Some(meta)) if self.plan.wants_meta => {
                let mut rows = rows.clone();
                rows.set_column(name, Column::constant(meta, rows.rows()));
                residual.select(&rows)
            }
            _ => residual.select(rows),
        }
    }
}

/// The order that a hint asks for. Forward is how storage reads, but not where the buckets lie that only journals have.
fn hinted(options: &FindCommand) -> Option<bool> {
    match options.hint {
        Some(Hint::Natural { ascending }) => Some(ascending),
        _ => None,
    }
}
