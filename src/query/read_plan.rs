//! What a query reads: which buckets, which of their columns, and which of their rows are left to be asked.

use std::ops::Bound;

use super::expr::BoundExpr;
use super::filter::{Filter, In, Reads};
use super::find_options::{Edge, FindOptions, Hint, Which};
use super::indexes::{Index, IndexAccess, RANGES_MAX, choose};
use super::plan::{CollectionFacts, Plan};
use super::projection::Needed;
use super::pushdown::{Layout, Points, Split, points, split};
use super::stream::Stream;
use crate::block::{Bitmap, Block, Column};
use crate::bucket::{BucketDoc, BucketId, ColumnSet, TimeseriesOptions, WEIGHT};
use crate::error::Result;
use crate::index::META_TIME_INDEX;
use crate::value::{DocWriter, OwnedValue, Value, text_of_key};

/// How the buckets are found.
#[derive(Clone, Debug)]
pub enum ReadAccess {
    /// In `_id` order, both ends included.
    Buckets {
        /// The lowest id that can hold a match.
        low: BucketId,
        /// The highest id that can hold a match.
        high: BucketId,
    },
    /// Through the default index on metadata and time.
    Series {
        /// What the metadata of every match equals.
        points: Points,
        /// No match is earlier.
        first_ms: Option<i64>,
        /// No match is later.
        last_ms: Option<i64>,
    },
    /// Through an index that a user has made.
    Index(Box<IndexAccess>),
    /// What any of these finds; none of them is a union.
    Union(Vec<ReadAccess>),
}

impl ReadAccess {
    /// The parts of a union, or this alone.
    pub fn branches(&self) -> &[ReadAccess] {
        match self {
            ReadAccess::Union(branches) => branches,
            other => std::slice::from_ref(other),
        }
    }

    /// The number of the index that it goes through.
    pub fn index(&self) -> Option<u16> {
        match self {
            ReadAccess::Series { .. } => Some(META_TIME_INDEX),
            ReadAccess::Index(access) => Some(access.spec.number),
            ReadAccess::Buckets { .. } | ReadAccess::Union(_) => None,
        }
    }

    /// Which strings in front of an entry count, where a collation says so.
    fn texts(&self) -> Option<&In> {
        match self {
            ReadAccess::Series { points, .. } => points.texts.as_ref(),
            ReadAccess::Index(access) => access.texts.as_ref(),
            ReadAccess::Buckets { .. } | ReadAccess::Union(_) => None,
        }
    }

    /// Leaves out the entries that begin with a string which is not asked for, where a collation says which ones are. `prefix` is what all entries of
    /// an index begin with.
    pub fn keep_texts(&self, prefix: &dyn Fn(u16) -> Vec<u8>, entries: &mut Vec<Vec<u8>>) {
        let looks = self.branches().iter().filter_map(|branch| Some((prefix(branch.index()?), branch.texts())));
        let looks: Vec<(Vec<u8>, Option<&In>)> = looks.collect();
        if looks.iter().all(|(_, texts)| texts.is_none()) {
            return;
        }
        // The last entry up to the end of its string, and whether it counts: equal ones stand side by side.
        let mut last: (Vec<u8>, bool) = (Vec::new(), true);
        entries.retain(|entry| {
            if !last.0.is_empty() && entry.starts_with(&last.0) {
                return last.1;
            }
            let (mut end, mut counts) = (0, None);
            for (prefix, texts) in &looks {
                let Some(key) = entry.strip_prefix(&prefix[..]) else { continue };
                // Another branch may look at the same entries for something else.
                let (Some(texts), Some((text, len))) = (texts, text_of_key(key)) else { return true };
                end = prefix.len() + len;
                counts = Some(counts == Some(true) || texts.matches(Some(OwnedValue::string(&text).view())));
            }
            last = (entry.iter().take(end).copied().collect(), counts.unwrap_or(true));
            last.1
        });
    }
}

/// Plain data: what a query reads and what then runs over the rows.
#[derive(Clone, Debug)]
pub struct ReadPlan {
    /// The filter, taken apart; `None` where rows are bucket documents, which nothing is known of.
    pub(super) split: Option<Split>,
    /// Some times may lie outside the standard range.
    pub(super) extended_range: bool,
    /// The columns to decode.
    pub columns: ColumnSet,
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
    pub(super) lists_series: bool,
    /// The span of buckets whose boundaries are known.
    fixed_span_ms: Option<i64>,
}

impl ReadPlan {
    /// The plan of a query over measurements.
    pub fn new(
        options: FindOptions,
        collection: &TimeseriesOptions,
        extended_range: bool,
        indexes: &[Index],
    ) -> ReadPlan {
        let layout = Layout {
            options: collection,
            extended_range,
            // The catalog keeps one type at each path of a bucket; but two contexts may fill one bucket at the same time, and
            // buckets may come from elsewhere.
            mixed_schema: true,
            fixed_buckets: collection.is_fixed(),
            is_index_filter: false,
        };
        let split = split(&options.filter, &layout);
        let facts =
            CollectionFacts { time_field: &collection.time_field, meta_field: collection.meta_field.as_deref() };
        let by_index = match options.hint {
            Some(Hint::Natural { .. }) => None,
            // The default index is not chosen among others.
            _ if indexes.iter().all(|index| index.spec.number == META_TIME_INDEX) => {
                through_default(&options.filter, &split, &layout, indexes)
            }
            _ => choose(indexes, &options, &layout, &split),
        };
        let by_index = by_index.and_then(|(_, mut found)| match found.len() {
            1 => found.pop(),
            _ => Some(ReadAccess::Union(found)),
        });
        let is_natural = matches!(options.hint, Some(Hint::Natural { .. }));
        let takes_default = !is_natural && indexes.iter().any(|index| index.is_usable_default());
        let hinted = hinted(&options);
        let skips_closed = options.skips_closed;
        let plan = Plan::new(FindOptions { filter: split.residual.clone(), ..options }, &facts);
        let columns = match &plan.decode {
            Needed::All => ColumnSet::All,
            Needed::Roots(roots) => ColumnSet::Only(roots.clone()),
        };
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
    pub fn over_buckets(options: FindOptions) -> ReadPlan {
        let facts = CollectionFacts { time_field: "", meta_field: None };
        ReadPlan {
            split: None,
            extended_range: false,
            columns: ColumnSet::All,
            access: ReadAccess::Buckets { low: BucketId::MIN, high: BucketId::MAX },
            order: hinted(&options),
            plan: Plan::new(options, &facts),
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
        let mut reads_time_only = true;
        split.residual.for_each_read(&mut |reads| {
            reads_time_only &= matches!(reads, Reads::Field(name) if *name == *self.plan.time_field);
        });
        reads_time_only
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

    /// True where of the rows of a series nothing is asked but how many they are.
    pub fn only_counts(&self) -> bool {
        let takes_all = |edge: &Edge| edge.which == Which::Extremes && edge.bins.is_empty();
        self.plan.edge.as_ref().is_some_and(takes_all)
            && matches!(&self.columns, ColumnSet::Only(names) if names.iter().all(|name| **name == *WEIGHT))
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
fn hinted(options: &FindOptions) -> Option<bool> {
    match options.hint {
        Some(Hint::Natural { ascending }) => Some(ascending),
        _ => None,
    }
}

/// How buckets are found, and how much that narrows: two for a point, one for a range.
pub(super) type Found = (usize, Vec<ReadAccess>);

/// Through the default index, where `filter` asks for whole metadata. Where the time narrows the buckets themselves, only a point does better, and not a
/// look at all strings.
pub(super) fn through_default(filter: &Filter, split: &Split, layout: &Layout<'_>, indexes: &[Index]) -> Option<Found> {
    let meta = layout.options.meta_field.as_ref().filter(|_| indexes.iter().any(Index::is_usable_default))?;
    let points = points(filter, meta).filter(|points| points.values.values().len() < RANGES_MAX)?;
    let (first_ms, last_ms) = split.time_bounds();
    let score = if points.texts.is_some() { 1 } else { 3 };
    (score > 1 || split.id_range.is_full()).then(|| (score, vec![ReadAccess::Series { points, first_ms, last_ms }]))
}

/// By the ids of buckets.
pub(super) fn buckets(split: &Split) -> ReadAccess {
    // An excluded end is included all the same: the bucket predicate decides on that one bucket.
    let end = |bound: Bound<BucketId>, open: BucketId| match bound {
        Bound::Included(id) | Bound::Excluded(id) => id,
        Bound::Unbounded => open,
    };
    ReadAccess::Buckets { low: end(split.id_range.low, BucketId::MIN), high: end(split.id_range.high, BucketId::MAX) }
}
