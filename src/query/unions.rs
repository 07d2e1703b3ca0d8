//! Disjunctions that go through an index for each arm.

use super::filter::Filter;
use super::find_options::FindOptions;
use super::indexes::{Index, through_one};
use super::pushdown::{Layout, Split, split};
use super::read_plan::{Found, buckets};

/// Most parts of a union.
const BRANCHES_MAX: usize = 200;

/// What the choice of indexes depends on, besides a filter.
pub(super) struct Choice<'a> {
    pub(super) indexes: &'a [Index],
    pub(super) query: &'a FindOptions,
    pub(super) layout: &'a Layout<'a>,
    /// No time bounds all of the filter: those of an arm may narrow it.
    pub(super) by_time: bool,
}

impl Choice<'_> {
    /// The access through one index; or, where that has no point, through one for each arm of a disjunction among the conjuncts of `own`, if that
    /// narrows more. `filter` is all that matches, and is `own` and `rest`.
    pub(super) fn best(&self, own: &Filter, rest: &Filter, filter: &Filter, split: &Split) -> Option<Found> {
        let mut best = through_one(self, filter, split);
        for (place, conjunct) in own.conjuncts().iter().enumerate() {
            let Filter::Or(arms) = conjunct else { continue };
            if best.as_ref().is_some_and(|(score, _)| *score > 1) {
                break;
            }
            let mut others = own.conjuncts().to_vec();
            others.remove(place);
            others.push(rest.clone());
            let others = Filter::and(others);
            let mut union: Found = (usize::MAX, Vec::new());
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

    /// The same for one arm, by its times where those narrow it; nothing for one that nothing can match.
    fn arm(&self, arm: &Filter, rest: &Filter) -> Option<Found> {
        let filter = Filter::and([arm.clone(), rest.clone()]);
        let split = split(&filter, self.layout);
        if split.id_range.is_empty() {
            return Some((usize::MAX, Vec::new()));
        }
        let by_time = (self.by_time && !split.id_range.is_full()).then(|| (1, vec![buckets(&split)]));
        self.best(arm, rest, &filter, &split).or(by_time)
    }
}
