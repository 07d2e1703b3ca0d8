//! A plan, what became of it, and what it is shown with.

// Loaded later.

use crate::bucket::TimeseriesOptions;
use crate::query::exec::Counters;
use crate::query::plan::ReadPlan;
use crate::value::{DocBuf, OwnedValue};

/// What became of a query that was run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    /// Index entries that were looked at.
    pub entries: u64,
    /// Stored buckets that were read.
    pub examined: u64,
    /// What was done with them.
    pub counters: Counters,
    /// How long it took.
    pub duration_ms: i64,
}

/// A plan and what it is shown with.
pub struct Explain<'a> {
    /// The database and the collection of the buckets.
    pub namespace: &'a str,
    /// The plan, and what it is for; `None` where there is no such collection.
    pub plan: Option<(&'a ReadPlan, &'a TimeseriesOptions)>,
    /// What became of it; `None` where it was not run.
    pub run: Option<Run>,
    /// True where rejected plans are to be shown as well. There are none.
    pub all_plans: bool,
    /// Of each branch of the access and each part of its index, how many components below the metadata lead to arrays on its path; empty where nobody
    /// has looked.
    pub multikey: Vec<Vec<Vec<usize>>>,
    /// What becomes of the matches where they are changed.
    pub write: Option<Write>,
    /// What is made of the matches where they are not returned.
    pub group: Option<Group>,
    /// True where the first of the later stages gives documents of its own.
    pub has_source: bool,
    /// The stages behind the plan, and how many rows came out of those of which it was counted.
    pub later: &'a [(DocBuf, Option<u64>)],
}

/// A write, as it is shown.
pub struct Write {
    /// What it does.
    pub op_type: &'static str,
    /// The stage that takes whole buckets, where nothing is left to be asked of their measurements.
    pub of_buckets: Option<&'static str>,
    /// True where the match is answered, and what of it.
    pub answers: Option<bool>,
}

/// A field, its accumulator and the operand of that.
pub type Group = (&'static str, &'static str, OwnedValue);

impl Explain<'_> {
    pub(super) fn counters(&self) -> Counters {
        self.run.unwrap_or_default().counters
    }

    /// How many buckets went on to be unpacked or, where these are what was asked for, to be returned.
    pub(super) fn passed(&self) -> u64 {
        let Counters { buckets_passed, measurements_matched, .. } = self.counters();
        let raw = self.plan.is_some_and(|(plan, _)| plan.is_over_buckets());
        if raw { measurements_matched } else { buckets_passed }
    }

    /// How many documents come out of the plan: a write answers a match at most.
    pub(super) fn returned(&self) -> u64 {
        match &self.write {
            Some(write) if write.answers.is_some() => self.counters().measurements_matched,
            Some(_) => 0,
            None => self.passed(),
        }
    }
}

pub(super) fn long(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
