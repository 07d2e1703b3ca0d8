//! Chooses the index of a query, or several indexes for the branches of a disjunction.

use super::access::{IndexAccess, RankedAccess, ReadAccess, buckets};
use super::implies::implies;
use super::index::{Index, RANGES_MAX};
use super::intervals::Interval;
use crate::error::{Error, Result};
use crate::index::{META_TIME_INDEX, PartKind, Source};
use crate::query::filter::Filter;
use crate::query::plan::find::{FindCommand, Hint};
use crate::query::plan::pushdown::{Layout, Split, points, split};
use crate::value::{OwnedValue, Value, compare};

/// Maximum branches of a union.
const BRANCHES_MAX: usize = 200;

/// What the choice depends on besides the filter.
pub(super) struct IndexChoice<'a> {
    pub(super) indexes: &'a [Index],
    pub(super) query: &'a FindCommand,
    pub(super) layout: &'a Layout<'a>,
    /// True if no time range bounds the whole filter, so that a branch's own range may narrow it.
    pub(super) by_time: bool,
}

impl IndexChoice<'_> {
    /// The access through one index; or, if that has no point, through one index per branch of a disjunction among the
    /// conjuncts of `branch`, if that is more selective. `filter` is the whole filter: the conjunction of `branch` and
    /// `rest`.
    pub(super) fn best(&self, branch: &Filter, rest: &Filter, filter: &Filter, split: &Split) -> Option<RankedAccess> {
        let mut best = through_one(self, filter, split);
        for (place, conjunct) in branch.conjuncts().iter().enumerate() {
            let Filter::Or(arms) = conjunct else { continue };
            if best.as_ref().is_some_and(|(score, _)| *score > 1) {
                break;
            }
            let mut others = branch.conjuncts().to_vec();
            others.remove(place);
            others.push(rest.clone());
            let others = Filter::and(others);
            let mut union: RankedAccess = (usize::MAX, Vec::new());
            let is_found = arms.iter().all(|arm| {
                let Some((score, parts)) = self.arm(arm, &others) else { return false };
                union.0 = union.0.min(score);
                union.1.extend(parts);
                union.1.len() <= BRANCHES_MAX
            });
            let is_found = is_found && union.1.iter().any(|part| part.index().is_some());
            if is_found && best.as_ref().is_none_or(|(score, _)| union.0 > *score) {
                best = Some(union);
            }
        }
        best
    }

    /// The same for one branch, by its time range if that narrows it; no access if nothing can match.
    fn arm(&self, arm: &Filter, rest: &Filter) -> Option<RankedAccess> {
        let filter = Filter::and([arm.clone(), rest.clone()]);
        let split = split(&filter, self.layout);
        if split.id_range.is_empty() {
            return Some((usize::MAX, Vec::new()));
        }
        let by_time = (self.by_time && !split.id_range.is_full()).then(|| (1, vec![buckets(&split)]));
        self.best(arm, rest, &filter, &split).or(by_time)
    }
}

/// The best access through indexes; `None` if a scan without one is as good.
///
/// A partial or sparse index is used if it cannot lack a match, or if it is hinted; a hinted query then does not see
/// the other buckets.
#[inline(never)]
pub fn choose(indexes: &[Index], query: &FindCommand, layout: &Layout<'_>, split: &Split) -> Option<RankedAccess> {
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
    let choice = IndexChoice { indexes, query, layout, by_time: split.id_range.is_full() };
    choice.best(&query.filter, &Filter::AlwaysTrue, &query.filter, split).filter(|_| !split.id_range.is_empty())
}

/// The best access through one index.
pub(super) fn through_one(choice: &IndexChoice<'_>, filter: &Filter, split: &Split) -> Option<RankedAccess> {
    let options = choice.layout.options;
    let by_default = through_default(filter, split, choice.layout, choice.indexes);
    // If the time range limits the buckets, only a point is more selective; so is whole metadata in the default index.
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

fn found(access: IndexAccess) -> RankedAccess {
    (access.score, vec![ReadAccess::Index(Box::new(access))])
}

/// The indexes that queries may use, except the default one.
fn others(indexes: &[Index]) -> impl Iterator<Item = &Index> {
    indexes.iter().filter(|index| index.is_visible() && index.spec.number != META_TIME_INDEX)
}

/// Checks that the hinted index exists; if `raw`, its key is over buckets. True if it depends on the query whether it
/// can be used.
///
/// Errors: `BadValue`.
pub fn check_hint(hint: &Hint, raw: bool, indexes: &[Index]) -> Result<bool> {
    if matches!(hint, Hint::Natural { .. }) {
        return Ok(false);
    }
    if let Some(index) = indexes.iter().find(|index| index.is_visible() && index.is_hinted(hint, raw)) {
        return Ok(raw || index.spec.parts.iter().any(|part| part.kind() == PartKind::Wildcard));
    }
    Err(Error::bad_value("The hint does not name an existing index"))
}

/// True if buckets that a sparse index lacks cannot match, because the metadata or the places are bounded.
fn has_all_matches(access: &IndexAccess) -> bool {
    // A missing value has the key of undefined.
    let is_there = |low: &OwnedValue| compare(low.view(), Value::UNDEFINED).is_gt();
    let is_bounded = |bounds: &[Interval]| bounds.iter().all(|(low, _)| low.as_ref().is_some_and(is_there));
    let mut parts = access.spec.parts.iter().zip(&access.bounds);
    match parts.clone().any(|(part, _)| part.kind().is_geo()) {
        true => parts.any(|(part, bounds)| part.kind().is_geo() && is_bounded(bounds)),
        // One path of a wildcard is searched, which must exist.
        false if access.wildcard.is_some() => true,
        false => parts.next().is_some_and(|(part, bounds)| part.source == Source::Meta && is_bounded(bounds)),
    }
}

/// Through the default index, if `filter` bounds the whole metadata. If the time range limits the buckets, only a point
/// is more selective, and not a search among all strings.
/// look at all strings.
pub fn through_default(filter: &Filter, split: &Split, layout: &Layout<'_>, indexes: &[Index]) -> Option<RankedAccess> {
    let meta = layout.options.meta_field.as_ref().filter(|_| indexes.iter().any(Index::is_usable_default))?;
    let points = points(filter, meta).filter(|points| points.values.values().len() < RANGES_MAX)?;
    let (first_ms, last_ms) = split.time_bounds();
    let score = if points.texts.is_some() { 1 } else { 3 };
    (score > 1 || split.id_range.is_full()).then(|| (score, vec![ReadAccess::Series { points, first_ms, last_ms }]))
}
