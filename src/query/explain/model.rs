//! The input of `explain`: a plan, its statistics, and how to show it.

// Loaded later.

use crate::bucket::TimeseriesOptions;
use crate::query::exec::Counters;
use crate::query::plan::ReadPlan;
use crate::value::{DocBuf, OwnedValue};

/// Statistics of a query that ran.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExecutionStats {
    /// Number of index entries read.
    pub entries: u64,
    /// Number of stored buckets read.
    pub examined: u64,
    /// Counters of the execution.
    pub counters: Counters,
    /// Duration in milliseconds.
    pub duration_ms: i64,
}

/// A plan and how to show it.
pub struct Explain<'a> {
    /// The namespace of the buckets.
    pub namespace: &'a str,
    /// The plan, with the options of its collection; `None` if there is no such collection.
    pub plan: Option<(&'a ReadPlan, &'a TimeseriesOptions)>,
    /// Statistics; `None` if the query was not run.
    pub run: Option<ExecutionStats>,
    /// True to show rejected plans as well; there are none.
    pub all_plans: bool,
    /// For each branch of the access and each part of its index: how many components below the metadata lead to arrays
    /// on its path. Empty if this was not checked.
    pub multikey: Vec<Vec<Vec<usize>>>,
    /// The write, if the matches are changed.
    pub write: Option<Write>,
    /// The group, if the matches are not returned.
    pub group: Option<ExplainedGroup>,
    /// True if the first of the later stages produces documents of its own.
    pub has_source: bool,
    /// The stages after the plan, with their number of output rows if it was counted.
    pub later: &'a [(DocBuf, Option<u64>)],
}

/// A write, as it is shown.
pub struct Write {
    /// The type of the operation.
    pub op_type: &'static str,
    /// The stage that changes whole buckets, if their measurements need no filter.
    pub of_buckets: Option<&'static str>,
    /// True if the match is returned, and what of it.
    pub answers: Option<bool>,
}

/// A field, its accumulator, and the operand.
pub type ExplainedGroup = (&'static str, &'static str, OwnedValue);

impl Explain<'_> {
    pub(super) fn counters(&self) -> Counters {
        self.run.unwrap_or_default().counters
    }

    /// How many buckets went on to be unpacked, or to be returned if bucket documents were asked for.
    pub(super) fn passed(&self) -> u64 {
        let Counters { buckets_passed, measurements_matched, .. } = self.counters();
        let raw = self.plan.is_some_and(|(plan, _)| plan.is_over_buckets());
        if raw { measurements_matched } else { buckets_passed }
    }

    /// How many documents the plan returns; a write returns at most one match.
    pub(super) fn returned(&self) -> u64 {
        match (&self.write, self.plan) {
            (Some(write), _) if write.answers.is_some() => self.counters().measurements_matched.min(1),
            (Some(_), _) => 0,
            (None, Some((plan, _))) if plan.is_over_buckets() => {
                let rows = self.passed().saturating_sub(plan.plan.skip).min(plan.plan.limit.unwrap_or(u64::MAX));
                // Counted documents are not returned.
                if self.is_counted() { rows.min(1) } else { rows }
            }
            (None, _) => self.passed(),
        }
    }

    /// True if the matches are only counted.
    pub(super) fn is_counted(&self) -> bool {
        matches!(self.group, Some(("count", ..)))
    }
}

pub(super) fn long(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
