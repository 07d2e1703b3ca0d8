//! The plan of a read: which buckets, which of their columns, and the filter left for rows.

use std::rc::Rc;

use super::demand::{Query, RowsPerGroup, Which};
use super::find::{FindCommand, Hint};
use super::indexes::{Index, ReadAccess, buckets, choose, through_default};
use super::pushdown::{Layout, Split, split};
use super::rows::{CollectionFacts, Plan};
use super::stream::Stream;
use crate::block::{Bitmap, Block, Column};
use crate::bucket::{BucketDoc, BucketId, TimeseriesOptions};
use crate::error::Result;
use crate::index::META_TIME_INDEX;
use crate::listed::IntoList;
use crate::query::expr::BoundExpr;
use crate::query::expr::CompareOp;
use crate::query::filter::{Filter, Test};
use crate::value::{DocWriter, FieldSet, OwnedValue, Value};

/// Plain data: what a query reads, and what runs over the rows.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    /// The split filter; `None` if rows are bucket documents, for which nothing can be pushed down.
    pub split: Option<Split>,
    /// True if some times may lie outside the standard range.
    pub extended_range: bool,
    /// The columns to decode.
    pub columns: Rc<FieldSet>,
    /// How buckets are found.
    pub access: ReadAccess,
    /// What runs over the rows.
    pub plan: Plan,
    /// How buckets help with the sort, if they do.
    pub stream: Option<Stream>,
    /// How they would, but that their rows seem to be few.
    pub unused_stream: Option<Stream>,
    /// Set if a find must read buckets in id order: true for ascending.
    pub order: Option<bool>,
    /// True if closed buckets are skipped.
    pub skips_closed: bool,
    /// True if the default index may say which buckets a series has, or if there is only one series.
    pub lists_series: bool,
    /// The span of buckets, if their boundaries are known.
    fixed_span_ms: Option<i64>,
}

impl ReadPlan {
    /// The plan of a query over measurements.
    pub fn new(query: Query, collection: &TimeseriesOptions, extended_range: bool, indexes: &[Index]) -> ReadPlan {
        let layout = Layout {
            options: collection,
            extended_range,
            // The catalog keeps one type at each path of a bucket. But two contexts may fill one bucket at the same
            // time, and buckets may be imported.
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
        let columns = Rc::new(plan.decode.clone());
        let stream = plan.sort.as_ref().and_then(|sort| Stream::of(sort, &facts));
        let by_time = stream.as_ref().filter(|stream| stream.buckets.is_none()).and_then(|stream| stream.time);
        // The rows that matter come first.
        let order = by_time.or(hinted).or(plan.newest.as_ref().map(|_| false));
        ReadPlan {
            columns,
            access: by_index.unwrap_or_else(|| buckets(&split)),
            split: Some(split),
            extended_range,
            plan,
            stream,
            unused_stream: None,
            order,
            skips_closed,
            lists_series: takes_default || collection.meta_field.is_none() && !is_natural,
            fixed_span_ms: collection.is_fixed().then(|| collection.span_ms()),
        }
    }

    /// The plan of a query over bucket documents.
    pub fn over_buckets(query: Query, indexes: &[Index]) -> ReadPlan {
        let hint = query.find.hint.as_ref();
        let by_index = hint.and_then(|hint| indexes.iter().find_map(|index| index.access_to_all(hint)));
        let (low, high) = ids_of(&query.find.filter);
        let facts = CollectionFacts { time_field: "", meta_field: None };
        ReadPlan {
            split: None,
            extended_range: false,
            columns: Rc::new(FieldSet::All),
            access: by_index.unwrap_or(ReadAccess::Buckets { low, high }),
            order: hinted(&query.find),
            plan: Plan::new(query, &facts),
            stream: None,
            unused_stream: None,
            skips_closed: false,
            lists_series: false,
            fixed_span_ms: None,
        }
    }

    /// Notes that all buckets are read, instead of some at the ends of series; if they `are_small`, all of their rows as well.
    pub fn forgo_ends(&mut self, are_small: bool) {
        self.lists_series = false;
        let wanted = &mut self.plan.rows_per_group;
        if are_small && wanted.as_ref().is_some_and(|wanted| wanted.which != Which::Extremes) {
            *wanted = None;
        }
    }

    /// True if the rows are bucket documents.
    pub fn is_over_buckets(&self) -> bool {
        self.split.is_none()
    }

    /// False if no measurement of the bucket can match.
    ///
    /// Errors: those of expressions on the metadata.
    pub fn may_match(&self, bucket: &BucketDoc<'_>) -> Result<bool> {
        self.may_match_with(bucket, None)
    }

    /// The same if the caller may know whether the metadata matches.
    ///
    /// Errors: as `may_match`.
    pub fn may_match_with(&self, bucket: &BucketDoc<'_>, meta: Option<bool>) -> Result<bool> {
        let Some(split) = &self.split else { return Ok(true) };
        Ok(meta.map_or_else(|| self.metadata_matches(bucket.meta()), Ok)?
            && split.bucket.may_match(bucket.control_min(), bucket.control_max(), bucket.meta()))
    }

    /// True if every measurement of a bucket that may match certainly matches.
    pub fn all_match(&self, bucket: &BucketDoc<'_>) -> bool {
        // A cursor may read buckets that were begun, or grew, after their boundaries changed.
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

    /// Which rows of a bucket matter, if all of its rows match, and how many; `None` if all do.
    pub fn wanted_rows(&self, bucket: &BucketDoc<'_>) -> Option<(Which, usize)> {
        let wanted = self.plan.rows_per_group.as_ref()?;
        let (first_ms, last_ms) = (bucket.min_time_ms(), bucket.max_time_ms());
        // A bucket may begin earlier than its rows, but never later: outside the standard range another context may
        // have rounded it up.
        let is_alike =
            |bin: &BoundExpr| !self.extended_range && bin.is_alike_between(&self.plan.time_field, first_ms, last_ms);
        wanted.bins.iter().all(is_alike).then_some((wanted.which, wanted.count))
    }

    /// False if no row with that metadata and between those times can match.
    ///
    /// Errors: those of expressions on the metadata.
    pub fn may_match_rows(&self, meta: Option<Value<'_>>, first_ms: i64, last_ms: i64) -> Result<bool> {
        Ok(self.may_match_times(first_ms, last_ms) && self.metadata_matches(meta)?)
    }

    /// False if no row between those times can match.
    pub fn may_match_times(&self, first_ms: i64, last_ms: i64) -> bool {
        let (first, last) = self.split.as_ref().map_or((None, None), Split::time_bounds);
        first.is_none_or(|bound| last_ms >= bound) && last.is_none_or(|bound| first_ms <= bound)
    }

    /// True if only the time and the metadata decide which rows match.
    pub fn is_decided_by_time(&self) -> bool {
        let Some(split) = &self.split else { return false };
        let mut fields = split.residual.fields();
        fields.remove(&self.plan.time_field);
        fields.is_empty() && !split.residual.is_random()
    }

    /// True if every row between those times matches, provided that its metadata does. For plans that are
    /// `is_decided_by_time`.
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
        self.plan.rows_per_group.as_ref().is_some_and(|wanted| wanted.counts)
    }

    /// True where of the rows of a series nothing is asked but how many they are.
    pub fn only_counts(&self) -> bool {
        let takes_all = |wanted: &RowsPerGroup| wanted.which == Which::Extremes && wanted.bins.is_empty();
        self.plan.rows_per_group.as_ref().is_some_and(takes_all) && self.columns.is_empty()
    }

    /// True where only the different values of metadata matter to a `$group`, and metadata that compares equal is the same to it.
    pub fn only_values(&self) -> bool {
        self.only_counts() && self.plan.rows_per_group.as_ref().is_some_and(|wanted| wanted.by_value && !wanted.counts)
    }

    /// True if some metadata does not match.
    pub fn asks_metadata(&self) -> bool {
        self.split.as_ref().is_some_and(|split| !split.meta.is_trivial())
    }

    /// The filter on metadata, if it asks something, takes metadata that compares equal for the same, and if the default
    /// index may say which buckets a series has.
    pub fn metadata_filter(&self) -> Option<&Filter> {
        let split = self.split.as_ref().filter(|_| self.lists_series)?;
        let is_usable = !split.meta.is_trivial() && split.meta.takes_equal_for_same();
        is_usable.then_some(&split.meta)
    }

    /// True if buckets of series whose metadata does not match need not be read by whoever knows the series.
    pub fn may_leave_out_series(&self) -> bool {
        self.lists_series && matches!(self.access, ReadAccess::Buckets { .. })
    }

    /// True if the rows of small buckets may be taken together before any filter is asked. It must not take a millisecond a row: the
    /// event loop would wait for thousands of rows.
    #[inline(never)]
    pub fn may_take_runs(&self) -> bool {
        let takes_all = |wanted: &RowsPerGroup| wanted.which == Which::Extremes;
        !self.is_over_buckets()
            && !self.skips_closed
            && !self.plan.residual.may_take_long()
            && self.plan.newest.is_none()
            && self.plan.rows_per_group.as_ref().is_none_or(takes_all)
            && self.stream.as_ref().is_none_or(|stream| stream.buckets.is_none())
    }

    /// True if runs give only what a sort with a small limit reads, and the buckets of the rows that are kept the rest.
    pub fn is_late(&self) -> bool {
        self.columns.is_all() && self.plan.is_late()
    }

    /// True if no row is returned before all have come.
    pub fn sorts_all(&self) -> bool {
        self.plan.sort.is_some() && self.stream.is_none()
    }

    /// Of rows with their metadata, those whose metadata matches, and their numbers if these are not all. They have it only if somebody
    /// reads it.
    ///
    /// Errors: those of expressions on the metadata.
    pub fn of_matching_series(&self, mut rows: Block) -> Result<(Block, Option<Vec<u32>>)> {
        let (true, Some(split), Some(name)) = (self.asks_metadata(), &self.split, &self.plan.meta_field) else {
            return Ok((rows, None));
        };
        let matching = split.select_by_metadata(rows.rows(), rows.column(name))?.to_rows();
        if !self.plan.wants_meta {
            rows.retain_columns(|column| *column != **name);
        }
        Ok((rows.gather(&matching), Some(matching)))
    }

    /// True if rows with that metadata may match.
    ///
    /// Errors: those of expressions on the metadata.
    pub fn metadata_matches(&self, meta: Option<Value<'_>>) -> Result<bool> {
        self.split.as_ref().map_or(Ok(true), |split| split.meta.matches_value(meta))
    }

    /// True if only the metadata decides which rows match.
    pub fn is_decided_by_metadata(&self) -> bool {
        self.split.as_ref().is_some_and(|split| split.residual.is_trivial())
    }

    /// The matching rows of a bucket that may match. `rows` has at least the decoded columns.
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

/// The order that a hint asks for. Storage is read forwards anyway, but buckets that only journals have must be put in
/// order.
fn hinted(options: &FindCommand) -> Option<bool> {
    match options.hint {
        Some(Hint::Natural { ascending }) => Some(ascending),
        _ => None,
    }
}
/// The ids of bucket documents that a filter may match: the lowest and the highest.
fn ids_of(filter: &Filter) -> (BucketId, BucketId) {
    let (mut low, mut high) = (BucketId::MIN, BucketId::MAX);
    for part in filter.conjuncts() {
        let Filter::Field(path, test) = part else { continue };
        let values: Vec<Value<'_>> = match test {
            _ if path.as_str() != "_id" => continue,
            Test::Compare(compare) => vec![compare.value()],
            Test::In(set) => set.values().iter().map(OwnedValue::view).listed(),
            _ => continue,
        };
        let ids: Option<Vec<BucketId>> =
            values.into_iter().map(|value| value.as_object_id().map(BucketId::from_bytes)).listed_if_all();
        let Some((least, most)) = ids.and_then(|ids| Some((*ids.iter().min()?, *ids.iter().max()?))) else { continue };
        let op = if let Test::Compare(compare) = test { compare.op() } else { CompareOp::Eq };
        if !matches!(op, CompareOp::Lt | CompareOp::Lte) {
            low = low.max(least);
        }
        if !matches!(op, CompareOp::Gt | CompareOp::Gte) {
            high = high.min(most);
        }
    }
    // Nothing matches then, and one bucket shows that.
    if low <= high { (low, high) } else { (low, low) }
}
