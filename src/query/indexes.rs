//! Which index finds the buckets of a query, and where in it they are.

use std::rc::Rc;

use crate::bucket::TimeseriesOptions;
use crate::error::{Error, ErrorCode, Result};
use crate::index::{ANY, IndexSpec, META_TIME_INDEX, Part, PartKind, Source, wildcard_key};
use crate::query::expr::Globals;
use crate::query::filter::{CompareOp, Filter, Geo, In, Test};
use crate::query::find_options::{FindOptions, Hint};
use crate::query::intervals::{Interval, around, common, intervals, merged, of_class, of_kinds};
use crate::query::pushdown::{Layout, Split, points, split};
use crate::query::read_plan::{Found, ReadAccess, through_default};
use crate::query::unions::Choice;
use crate::value::{
    Doc, DocBuf, DocWriter, Kind, Number, OwnedValue, Path, Value, append_key, canonical_class, compare,
};

/// Most ranges of an index that one scan looks at.
pub(super) const RANGES_MAX: usize = 1000;

/// An index, ready for planning.
#[derive(Clone, Debug)]
pub struct Index {
    /// What it is over.
    pub spec: Rc<IndexSpec>,
    /// The filter of a partial index as it was written, and taken apart for buckets.
    partial: Option<(Filter, Split)>,
}

/// How a query goes through an index.
#[derive(Clone, Debug, PartialEq)]
pub struct IndexAccess {
    /// The index.
    pub spec: Rc<IndexSpec>,
    /// Where its entries are: from the first of these on to all that begin with the second, without what all entries of the index begin with.
    pub ranges: Vec<(Vec<u8>, Vec<u8>)>,
    /// The path that is looked at in an index over all paths.
    pub wildcard: Option<Path>,
    /// Of each part the intervals that are looked at; of a wildcard those of the path and of its values.
    pub bounds: Vec<Vec<Interval>>,
    /// True where the query is not to see buckets that the index lacks.
    pub only_indexed: bool,
    /// Which strings in front of an entry count, where a collation says so.
    pub texts: Option<In>,
    /// How much it narrows: two for each part that is a point, one for a range.
    pub(super) score: usize,
}

impl Index {
    /// An index of a collection without a filter.
    pub fn plain(spec: Rc<IndexSpec>) -> Index {
        Index { spec, partial: None }
    }

    /// An index of a collection.
    ///
    /// Errors: 5916301 for a filter that says nothing about buckets; those of filters.
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
            let message = "The partialFilterExpression holds a predicate that says nothing about buckets";
            return Err(Error::new(ErrorCode::Location5916301, message));
        }
        Ok(Index { spec, partial: Some((filter, split)) })
    }

    /// True where the bucket is in it, as far as its filter says.
    pub fn takes(&self, bucket: &crate::index::Summary<'_>) -> bool {
        let Some((_, split)) = &self.partial else { return true };
        split.meta.matches_value(bucket.meta).unwrap_or(true)
            && split.bucket.may_match(bucket.min, bucket.max, bucket.meta)
    }

    /// True where its filter, which is on the metadata alone, passes buckets with this.
    pub fn takes_meta(&self, meta: Option<Value<'_>>) -> bool {
        self.partial.as_ref().is_none_or(|(_, split)| split.meta.matches_value(meta).unwrap_or(false))
    }

    /// As it is over buckets.
    pub fn shown_raw(&self, options: &TimeseriesOptions) -> DocBuf {
        let filter = self.partial.as_ref().map(|(_, split)| {
            let mut writer = DocWriter::new();
            split.meta.write(&mut writer);
            if !split.bucket.is_trivial() {
                split.bucket.write(&mut writer);
            }
            writer.finish()
        });
        self.spec.shown_raw(filter.as_ref(), &options.time_field)
    }

    /// True where a query does not see buckets that are not in it.
    fn is_incomplete(&self) -> bool {
        self.spec.is_sparse() || self.partial.is_some()
    }

    /// True where queries may go through it, and it is the one over whole metadata and time.
    pub fn is_usable_default(&self) -> bool {
        self.spec.number == META_TIME_INDEX && !self.spec.hidden
    }

    /// True where queries may go through it.
    fn is_visible(&self) -> bool {
        self.spec.ready && !self.spec.hidden
    }

    /// True where it is what a hint names.
    fn is_hinted(&self, hint: &Hint, raw: bool) -> bool {
        match hint {
            Hint::Name(name) => **name == *self.spec.name,
            Hint::Keys(keys) if raw => self.spec.has_bucket_key(keys.view()),
            Hint::Keys(keys) => self.spec.has_key(keys.view()),
            Hint::Natural { .. } => false,
        }
    }

    /// How a query would go through it whose filter is taken apart in `split`.
    fn access(&self, split: &Split, options: &TimeseriesOptions) -> Option<IndexAccess> {
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
                // It lies below all values.
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

    /// The same through a wildcard: one path below it that must be there.
    fn wildcard_access(&self, part: &Part, split: &Split, options: &TimeseriesOptions) -> Option<IndexAccess> {
        let mut best: Option<(usize, &Path, Vec<Interval>)> = None;
        for conjunct in split.meta.conjuncts() {
            let Filter::Field(path, test) = conjunct else { continue };
            if !part.path.is_prefix_of(path) && part.path != *path {
                continue;
            }
            let on_path = Part { path: path.clone(), ..part.clone() };
            let intervals = match test {
                Test::Exists => Some(vec![(None, None)]),
                _ => self.intervals_of(&on_path, split, options),
            };
            // What has parts of its own is not found as a whole, and what is not there is not found.
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
        // An array above it may lead to it.
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
            // What has parts has entries below only.
            let [low, high] = [".", "/"].map(|end| wildcard_key(&[path.as_str(), end].concat()));
            ranges.push((low, high));
            paths.push((Some(text(".")), Some(text("/"))));
        }
        let bounds = vec![paths, intervals];
        let wildcard = Some(path.clone());
        let spec = Rc::clone(&self.spec);
        Some(IndexAccess { spec, ranges, wildcard, bounds, only_indexed: false, texts: None, score })
    }

    /// The intervals of a part in which all buckets that may match are, or have `ANY`; `None` where there is no bound.
    fn intervals_of(&self, part: &Part, split: &Split, options: &TimeseriesOptions) -> Option<Vec<Interval>> {
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
            // A bucket that holds a time begins at most a span before it, and ends at most a span behind it.
            let date = |ms: Option<i64>, by_ms: i64| ms.map(|ms| OwnedValue::date(ms.saturating_add(by_ms)));
            let (first, last) = split.time_bounds();
            let span_ms = options.span_ms();
            match part.source {
                Source::Min => (date(first, -span_ms), date(last, 0)),
                _ => (date(first, 0), date(last, span_ms)),
            }
        } else {
            let is_max = part.source == Source::Max;
            let own = split.bucket.interval(is_max, &part.path);
            // Where there is a value of a type, and all are of one class, both ends are of that class.
            let of_types = split.residual.conjuncts().iter().find_map(|conjunct| match conjunct {
                Filter::Field(path, Test::Type(kinds)) if *path == part.path => Some(around(&of_kinds(*kinds))),
                _ => None,
            });
            common(vec![own], vec![of_types.unwrap_or((None, None))]).pop()?
        };
        if low.is_none() && high.is_none() { None } else { Some(vec![(low, high)]) }
    }

    /// The cells that a region has a share in; none where nothing asks for one, or only on a plane and not on the sphere, or the other way.
    fn cells_of(&self, part: &Part, split: &Split) -> Option<Vec<Interval>> {
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
        Some(ranges.into_iter().map(cells).collect()).filter(|found: &Vec<_>| !found.is_empty())
    }
}

impl IndexAccess {
    /// The parts that are looked at: of a wildcard the path, and what lies there.
    pub fn parts(&self) -> Vec<Part> {
        let Some(path) = &self.wildcard else { return self.spec.parts.clone() };
        let part = |name: &str, source| Part {
            name: name.into(),
            source,
            path: path.clone(),
            direction: OwnedValue::int32(1),
        };
        vec![part("$_path", Source::Data), part(path.as_str(), Source::Meta)]
    }
}

/// The best access through indexes; `None` where it is as well to do without.
///
/// An index that lacks buckets is taken where it cannot lack a match, or where it is hinted: then the query does not see the others.
#[inline(never)]
pub fn choose(indexes: &[Index], query: &FindOptions, layout: &Layout<'_>, split: &Split) -> Option<Found> {
    if let Some(hint) = &query.hint {
        let hinted = others(indexes).find(|index| index.is_hinted(hint, false));
        let through = hinted.and_then(|index| {
            let only_indexed = index.is_incomplete();
            Some(IndexAccess { only_indexed, ..index.access(split, layout.options)? })
        });
        return match through {
            Some(access) => Some(found(access)),
            None => through_default(&query.filter, split, layout, indexes),
        };
    }
    let choice = Choice { indexes, query, layout, by_time: split.id_range.is_full() };
    choice.best(&query.filter, &Filter::AlwaysTrue, &query.filter, split).filter(|_| !split.id_range.is_empty())
}

/// The best access through one index.
pub(super) fn through_one(choice: &Choice<'_>, filter: &Filter, split: &Split) -> Option<Found> {
    let options = choice.layout.options;
    let by_default = through_default(filter, split, choice.layout, choice.indexes);
    // Where the time narrows the buckets themselves, only a point does better; and so does whole metadata in the default index.
    let by_time = if split.id_range.is_full() { 1 } else { 2 };
    let least = by_default.as_ref().map_or(by_time, |(score, _)| *score);
    let mut best: Option<IndexAccess> = None;
    for index in others(choice.indexes) {
        let Some(access) = index.access(split, options) else { continue };
        let same_language = choice.query.collation == options.collation;
        let lacks_matches = index.partial.as_ref().is_some_and(|(partial, _)| !implies(filter, partial, same_language))
            || index.spec.is_sparse() && !has_all_matches(&access);
        if !lacks_matches && access.score >= least && best.as_ref().is_none_or(|best| access.score > best.score) {
            best = Some(access);
        }
    }
    best.map(found).or(by_default)
}

fn found(access: IndexAccess) -> Found {
    (access.score, vec![ReadAccess::Index(Box::new(access))])
}

/// Those that queries may go through, but for the default one.
fn others(indexes: &[Index]) -> impl Iterator<Item = &Index> {
    indexes.iter().filter(|index| index.is_visible() && index.spec.number != META_TIME_INDEX)
}

/// Checks that there is the index which is hinted. Where `raw`, its key is that over buckets. True where it depends on the query whether it
/// can be used.
///
/// Errors: `BadValue`.
pub fn check_hint(hint: &Hint, raw: bool, indexes: &[Index]) -> Result<bool> {
    if matches!(hint, Hint::Natural { .. }) {
        return Ok(false);
    }
    if let Some(index) = indexes.iter().find(|index| index.is_visible() && index.is_hinted(hint, raw)) {
        return Ok(!raw && index.spec.parts.iter().any(|part| part.kind() == PartKind::Wildcard));
    }
    Err(Error::bad_value("The hint provided does not correspond to an existing index"))
}

/// The intervals of the first part of an index where strings are among them that compare by a collation, and these strings.
fn texts_of(part: &Part, split: &Split) -> (Option<Vec<Interval>>, Option<In>) {
    let is_ordered = part.source == Source::Meta && part.kind() == PartKind::Order;
    let points = points(&split.meta, part.path.as_str()).filter(|points| is_ordered && points.texts.is_some());
    let Some(points) = points else { return (None, None) };
    let point = |value: &OwnedValue| (Some(value.clone()), Some(value.clone()));
    let mut found: Vec<Interval> = points.values.values().iter().map(point).collect();
    found.push(of_class(Kind::String));
    (Some(merged(found)), points.texts)
}

/// True where what a sparse index lacks is ruled out by what is looked at: by a bound on the metadata, or on places.
fn has_all_matches(access: &IndexAccess) -> bool {
    // What is not there has the key of undefined.
    let is_there = |low: &OwnedValue| compare(low.view(), Value::UNDEFINED).is_gt();
    let is_bounded = |bounds: &[Interval]| bounds.iter().all(|(low, _)| low.as_ref().is_some_and(is_there));
    let mut parts = access.spec.parts.iter().zip(&access.bounds);
    match parts.clone().any(|(part, _)| part.kind().is_geo()) {
        true => parts.any(|(part, bounds)| part.kind().is_geo() && is_bounded(bounds)),
        // One path of a wildcard is asked for that must be there.
        false if access.wildcard.is_some() => true,
        false => parts.next().is_some_and(|(part, bounds)| part.source == Source::Meta && is_bounded(bounds)),
    }
}

fn is_nan(value: Value<'_>) -> bool {
    Number::of(value).is_some_and(Number::is_nan)
}

/// True where each conjunct on measurements has a form over buckets.
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

/// True where whatever matches `filter` matches `wanted`; false where that is not seen. `same_language` says that both compare strings alike.
fn implies(filter: &Filter, wanted: &Filter, same_language: bool) -> bool {
    if let Filter::And(parts) = wanted {
        return parts.iter().all(|part| implies(filter, part, same_language));
    }
    let conjuncts = filter.conjuncts();
    let shown = |filter: &Filter| {
        let mut writer = DocWriter::new();
        filter.write(&mut writer);
        writer.finish()
    };
    let wanted_shown = shown(wanted);
    wanted.is_trivial()
        // Loaded by now: `filter::geo` has made the region, where the filters have one.
        || conjuncts
            .iter()
            .any(|conjunct| is_narrower(conjunct, wanted) || same_language && shown(conjunct) == wanted_shown)
}

/// True where one comparison of a field passes nothing that the other does not pass.
fn is_narrower(filter: &Filter, wanted: &Filter) -> bool {
    if let (Filter::Field(path, Test::Geo(narrow)), Filter::Field(wanted_path, Test::Geo(wide))) = (filter, wanted) {
        return path == wanted_path && wide.region.contains(&narrow.region);
    }
    let (Filter::Field(path, Test::Compare(narrow)), Filter::Field(wanted_path, Test::Compare(wide))) =
        (filter, wanted)
    else {
        return false;
    };
    let order = wide.collation().compare(narrow.value(), wide.value());
    path == wanted_path
        && narrow.collation() == wide.collation()
        // Of one class: comparisons see nothing of others.
        && canonical_class(narrow.value().kind()) == canonical_class(wide.value().kind())
        && !is_nan(narrow.value())
        && !is_nan(wide.value())
        && match (narrow.op(), wide.op()) {
            (CompareOp::Eq, wide) => wide.holds(order),
            (narrow, wide) if narrow.includes_less() != wide.includes_less() => false,
            (_, CompareOp::Lte) => order.is_le(),
            (_, CompareOp::Gte) => order.is_ge(),
            (CompareOp::Lt, CompareOp::Lt) => order.is_le(),
            (CompareOp::Gt, CompareOp::Gt) => order.is_ge(),
            (_, CompareOp::Lt) => order.is_lt(),
            (_, CompareOp::Gt) => order.is_gt(),
            (_, CompareOp::Eq) => false,
        }
}
