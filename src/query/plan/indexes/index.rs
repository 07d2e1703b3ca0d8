//! An index as queries see it: its contents, and where in it the buckets of a query are.

use std::rc::Rc;

use super::access::{IndexAccess, ReadAccess};
use super::intervals::{Interval, around, common, intervals, merged, of_class, of_kinds};
use crate::bucket::TimeseriesOptions;
use crate::error::{Error, ErrorCode, Result};
use crate::index::{ANY, IndexSpec, KeyPart, META_TIME_INDEX, PartKind, Source, wildcard_key};
use crate::listed::IntoList;
use crate::query::expr::Globals;
use crate::query::filter::{Filter, Geo, In, Test};
use crate::query::plan::find::Hint;
use crate::query::plan::pushdown::{Layout, Split, points, split};
use crate::value::{Doc, DocBuf, DocWriter, Kind, OwnedValue, Path, Value, append_key, compare};

/// Maximum ranges of an index that one scan reads.
pub(super) const RANGES_MAX: usize = 1000;

/// An index, ready for planning.
#[derive(Clone, Debug)]
pub struct Index {
    /// The specification.
    pub spec: Rc<IndexSpec>,
    /// The filter of a partial index, as written and split for buckets.
    pub(super) partial: Option<(Filter, Split)>,
}

impl Index {
    /// An index without a filter.
    pub fn plain(spec: Rc<IndexSpec>) -> Index {
        Index { spec, partial: None }
    }

    /// An index of a collection.
    ///
    /// Errors: 5916301 if the filter says nothing about buckets; those of filters.
    pub fn new(spec: Rc<IndexSpec>, options: &TimeseriesOptions, globals: &Globals) -> Result<Index> {
        let Some(filter) = &spec.partial else { return Ok(Index::plain(spec)) };
        let options = TimeseriesOptions { span_seconds: spec.span_seconds, ..options.clone() };
        // As the filter is stored: not narrowed by what else is known of the collection.
        let layout = Layout {
            options: &options,
            extended_range: true,
            mixed_schema: true,
            fixed_buckets: false,
            is_index_filter: true,
        };
        let filter = Filter::parse(filter.view(), globals)?;
        let split = split(&filter, &layout);
        let known = !split.bucket.is_trivial() || split.residual.is_trivial();
        if !known || !has_bucket_form(&filter, &layout) {
            let message = "The partialFilterExpression has a predicate that cannot be applied to buckets";
            return Err(Error::new(ErrorCode::Location5916301, message));
        }
        Ok(Index { spec, partial: Some((filter, split)) })
    }

    /// True if the bucket is in the index, judged by its filter.
    pub fn takes(&self, bucket: &crate::index::BucketSummary<'_>) -> bool {
        let Some((_, split)) = &self.partial else { return true };
        split.meta.matches_value(bucket.meta).unwrap_or(true)
            && split.bucket.may_match(bucket.min, bucket.max, bucket.meta)
    }

    /// True if its filter, which must be on the metadata only, accepts this metadata.
    pub fn takes_meta(&self, meta: Option<Value<'_>>) -> bool {
        self.partial.as_ref().is_none_or(|(_, split)| split.meta.matches_value(meta).unwrap_or(false))
    }

    /// The specification in terms of buckets.
    pub fn shown_raw(&self, options: &TimeseriesOptions) -> DocBuf {
        let filter = self.partial.as_ref().map(|(_, split)| {
            let mut writer = DocWriter::new();
            split.meta.write(&mut writer);
            if !split.bucket.is_trivial() {
                split.bucket.write(&mut writer);
            }
            writer.finish()
        });
        self.spec.shown_raw(filter.as_ref(), options)
    }

    /// True if the index may lack buckets that match.
    pub(super) fn is_incomplete(&self) -> bool {
        self.spec.is_sparse() || self.partial.is_some()
    }

    /// True if queries may use it and it is the default index.
    pub fn is_usable_default(&self) -> bool {
        self.spec.number == META_TIME_INDEX && !self.spec.hidden
    }

    /// True if queries may use it.
    pub(super) fn is_visible(&self) -> bool {
        self.spec.ready && !self.spec.hidden
    }

    /// True if the hint names it.
    pub(super) fn is_hinted(&self, hint: &Hint, raw: bool) -> bool {
        match hint {
            Hint::Name(name) => **name == *self.spec.name,
            Hint::Keys(keys) if raw => self.spec.has_bucket_key(keys.view()),
            Hint::Keys(keys) => self.spec.has_key(keys.view()),
            Hint::Natural { .. } => false,
        }
    }

    /// How a query over bucket documents uses it if the hint names it: from its first entry to the last. `None` if it
    /// has no entries for all buckets, or some of several for one.
    pub fn access_to_all(&self, hint: &Hint) -> Option<ReadAccess> {
        let is_ordered = |part: &KeyPart| matches!(part.kind(), PartKind::Order | PartKind::Hashed);
        let fits = self.is_visible() && self.is_hinted(hint, true) && self.partial.is_none();
        (fits && self.spec.parts.iter().all(is_ordered)).then(|| {
            ReadAccess::Index(Box::new(IndexAccess {
                spec: Rc::clone(&self.spec),
                ranges: vec![(Vec::new(), Vec::new())],
                wildcard: None,
                bounds: vec![vec![(None, None)]; self.spec.parts.len()],
                only_indexed: self.spec.is_sparse(),
                texts: None,
                score: 0,
            }))
        })
    }

    /// How a query with the filter in `split` would use it.
    pub(super) fn access(&self, split: &Split, options: &TimeseriesOptions) -> Option<IndexAccess> {
        if let [part] = self.spec.parts.as_slice()
            && part.kind() == PartKind::Wildcard
        {
            return self.wildcard_access(part, split, options);
        }
        let mut ranges = Vec::new();
        let mut bounds: Vec<Vec<Interval>> = Vec::new();
        let mut prefixes: Vec<Vec<u8>> = vec![Vec::new()];
        let (mut score, mut closed, mut texts) = (0, false, None);
        for part in &self.spec.parts {
            let mut intervals = if closed { None } else { self.intervals_of(part, split, options) };
            if bounds.is_empty() && intervals.is_none() {
                (intervals, texts) = texts_of(part, split);
            }
            let fits = |found: &Vec<Interval>| (prefixes.len() + 1) * found.len() + ranges.len() < RANGES_MAX;
            let Some(intervals) = intervals.filter(fits) else {
                bounds.push(vec![(None, None)]);
                closed = true;
                continue;
            };
            bounds.push(intervals.clone());
            let points = intervals.iter().all(|(low, high)| low.is_some() && low == high);
            score += if points { 2 } else { 1 };
            let before = std::mem::take(&mut prefixes);
            for prefix in &before {
                // It sorts below all values.
                if intervals.iter().all(|(low, _)| low.is_some()) {
                    let any = [&prefix[..], &[ANY]].concat();
                    ranges.push((any.clone(), any));
                }
                for (low, high) in &intervals {
                    let key = |value: &Option<OwnedValue>| {
                        let mut key = prefix.clone();
                        value.iter().for_each(|value| append_key(&mut key, value.view()));
                        key
                    };
                    let (low, high) = (key(low), key(high));
                    match points {
                        true => prefixes.push(low),
                        false => ranges.push((low, high)),
                    }
                }
            }
            closed = !points;
        }
        ranges.extend(prefixes.into_iter().map(|prefix| (prefix.clone(), prefix)));
        let spec = Rc::clone(&self.spec);
        Some(IndexAccess { spec, ranges, wildcard: None, bounds, only_indexed: false, texts, score })
    }

    /// The same for a wildcard: one path below it, which must exist.
    fn wildcard_access(&self, part: &KeyPart, split: &Split, options: &TimeseriesOptions) -> Option<IndexAccess> {
        let mut best: Option<(usize, &Path, Vec<Interval>)> = None;
        for conjunct in split.meta.conjuncts() {
            let Filter::Field(path, test) = conjunct else { continue };
            if !part.path.is_prefix_of(path) && part.path != *path {
                continue;
            }
            let on_path = KeyPart { path: path.clone(), ..part.clone() };
            let intervals = match test {
                Test::Exists => Some(vec![(None, None)]),
                _ => self.intervals_of(&on_path, split, options),
            };
            // Objects are not indexed as a whole, and missing values not at all.
            let is_whole = |(low, high): &Interval| {
                let no_parts = |end: &OwnedValue| {
                    end.view().as_doc().is_some_and(Doc::is_empty)
                        || !matches!(end.view().kind(), Kind::Object | Kind::Array | Kind::MinKey | Kind::MaxKey)
                };
                let is_there = |low: &OwnedValue| compare(low.view(), Value::NULL).is_gt();
                low.as_ref().is_none_or(|low| is_there(low) && no_parts(low)) && high.as_ref().is_none_or(no_parts)
            };
            let Some(intervals) = intervals.filter(|all| !all.is_empty() && all.iter().all(is_whole)) else { continue };
            let score = 1 + usize::from(intervals.iter().all(|(low, high)| low.is_some() && low == high));
            if best.as_ref().is_none_or(|(known, ..)| score > *known) {
                best = Some((score, path, intervals));
            }
        }
        let (score, path, intervals) = best?;
        let mut ranges = Vec::new();
        let any = |path: &str| {
            let any = [&wildcard_key(path)[..], &[ANY]].concat();
            (any.clone(), any)
        };
        // An array above the path may contain it.
        let above = path.as_str().match_indices('.').map(|(at, _)| at).filter(|at| *at >= part.path.as_str().len());
        ranges.extend(above.filter_map(|at| path.as_str().get(..at)).map(any));
        let key = |value: &Option<OwnedValue>| {
            let mut key = wildcard_key(path.as_str());
            value.iter().for_each(|value| append_key(&mut key, value.view()));
            key
        };
        if intervals.iter().all(|(low, _)| low.is_some()) {
            ranges.push(any(path.as_str()));
        }
        ranges.extend(intervals.iter().map(|(low, high)| (key(low), key(high))));
        let text = |end: &str| OwnedValue::string(&[path.as_str(), end].concat());
        let mut paths = vec![(Some(text("")), Some(text("")))];
        if intervals.iter().any(|(low, high)| low.is_none() && high.is_none()) {
            // An object has entries only below it.
            let [low, high] = [".", "/"].map(|end| wildcard_key(&[path.as_str(), end].concat()));
            ranges.push((low, high));
            paths.push((Some(text(".")), Some(text("/"))));
        }
        let bounds = vec![paths, intervals];
        let wildcard = Some(path.clone());
        let spec = Rc::clone(&self.spec);
        Some(IndexAccess { spec, ranges, wildcard, bounds, only_indexed: false, texts: None, score })
    }

    /// The intervals of a part that contain all buckets that may match (apart from `ANY`); `None` if unbounded.
    fn intervals_of(&self, part: &KeyPart, split: &Split, options: &TimeseriesOptions) -> Option<Vec<Interval>> {
        if part.kind().is_geo() {
            // Loaded by now: `CollectionEntry::prepare` awaits it for an index on places.
            return self.cells_of(part, split);
        }
        if part.source == Source::Meta {
            let is_point = |(low, high): &Interval| low == high;
            return intervals(&split.meta, &part.path)
                .filter(|found| part.kind() != PartKind::Hashed || found.iter().all(is_point));
        }
        let (low, high) = if part.path.as_str() == options.time_field {
            // A bucket that holds a time begins at most a span before it and ends at most a span after it.
            let date = |ms: Option<i64>, by_ms: i64| ms.map(|ms| OwnedValue::date(ms.saturating_add(by_ms)));
            let (first, last) = split.time_bounds();
            let span_ms = options.span_ms();
            match part.source {
                Source::Min => (date(first, -span_ms), date(last, 0)),
                _ => (date(first, 0), date(last, span_ms)),
            }
        } else {
            let is_max = part.source == Source::Max;
            let of_bucket = split.bucket.interval(is_max, &part.path);
            // If a type is required and all its values are of one class, both ends are of that class.
            let of_types = split.residual.conjuncts().iter().find_map(|conjunct| match conjunct {
                Filter::Field(path, Test::Type(kinds)) if *path == part.path => Some(around(&of_kinds(*kinds))),
                _ => None,
            });
            common(vec![of_bucket], vec![of_types.unwrap_or((None, None))]).pop()?
        };
        if low.is_none() && high.is_none() { None } else { Some(vec![(low, high)]) }
    }

    /// The cells that overlap a region; none if there is no region, or if it is on the plane and the index on the
    /// sphere, or vice versa.
    fn cells_of(&self, part: &KeyPart, split: &Split) -> Option<Vec<Interval>> {
        let on_plane = part.kind() == PartKind::Plane;
        let asked: Option<&Geo> = match part.source {
            Source::Data => split.bucket.region(&part.path),
            _ => split.meta.conjuncts().iter().find_map(|conjunct| match conjunct {
                Filter::Field(path, Test::Geo(geo)) if *path == part.path => Some(&**geo),
                _ => None,
            }),
        };
        let asked = asked.filter(|geo| geo.region.on_plane == on_plane)?;
        let ranges = self.spec.grid(part).ranges(&asked.region.bounds);
        let cells = |(low, high)| (Some(OwnedValue::int64(low)), Some(OwnedValue::int64(high)));
        Some(ranges.into_iter().map(cells).listed()).filter(|found: &Vec<_>| !found.is_empty())
    }
}

/// If the first part is searched for strings under a collation: its intervals, and these strings.
fn texts_of(part: &KeyPart, split: &Split) -> (Option<Vec<Interval>>, Option<In>) {
    let is_ordered = part.source == Source::Meta && part.kind() == PartKind::Order;
    let points = points(&split.meta, part.path.as_str()).filter(|points| is_ordered && points.texts.is_some());
    let Some(points) = points else { return (None, None) };
    let point = |value: &OwnedValue| (Some(value.clone()), Some(value.clone()));
    let mut found: Vec<Interval> = points.values.values().iter().map(point).listed();
    found.push(of_class(Kind::String));
    (Some(merged(found)), points.texts)
}

/// True if every conjunct on measurements can be expressed over buckets.
fn has_bucket_form(filter: &Filter, layout: &Layout<'_>) -> bool {
    match filter {
        Filter::And(children) | Filter::Or(children) => children.iter().all(|child| has_bucket_form(child, layout)),
        Filter::AlwaysTrue => true,
        other => {
            let split = split(other, layout);
            split.residual.is_trivial() || !split.bucket.is_trivial()
        }
    }
}
