//! For plans that need only the first or the last rows of each series: how far one must look, judged by what is known
//! of buckets.
//!
//! Times are mapped to *places*. The smallest place is the best one, whether that is the first time or the last.

// Loaded later.

use crate::block::{Block, ColumnData};
use crate::bucket::{BucketDoc, TimeseriesOptions, unpack, unpack_first_or_last};
use crate::error::{Error, Result};
use crate::listed::IntoList;
use crate::query::plan::{ReadPlan, Which};
use crate::value::{FieldSet, Value};

/// What is searched for in each series.
#[derive(Clone, Debug, PartialEq)]
pub struct Ends {
    /// True for the last rows, false for the first ones.
    pub is_last: bool,
    /// Number of rows.
    pub count: usize,
    /// True to search all series as one.
    pub as_one: bool,
    /// True if metadata that compares equal either all matches or all does not.
    excludes: bool,
    /// The columns needed to decide which rows match, and their times.
    columns: FieldSet,
}

impl Ends {
    /// The search for a plan. `None` if every bucket must be read: the plan needs other rows, its key depends on more
    /// than which metadata is equal, bucket ids do not sort by time, the default index is not allowed, or the filter
    /// may fail.
    pub fn of(plan: &ReadPlan) -> Option<Ends> {
        let wanted =
            plan.plan.rows_per_group.as_ref().filter(|wanted| wanted.which != Which::Extremes && wanted.by_value)?;
        let split =
            plan.split.as_ref().filter(|_| plan.lists_series && !plan.extended_range && wanted.bins.is_empty())?;
        let residual = &plan.plan.residual;
        if residual.can_fail() || split.meta.can_fail() {
            return None;
        }
        let sorted = plan.plan.sort.as_ref().is_some_and(|sort| sort.parts().len() > 1);
        let excludes = split.meta.takes_equal_for_same();
        let mut columns = residual.fields();
        columns.add(&plan.plan.time_field);
        let is_last = wanted.which == Which::Last;
        Some(Ends { is_last, count: wanted.count, as_one: wanted.alike.is_empty() && !sorted, excludes, columns })
    }

    /// Whether that metadata matches, and so all metadata that compares equal; `None` if that says nothing of others.
    ///
    /// Errors: those of filters.
    pub fn matches(&self, plan: &ReadPlan, meta: Option<Value<'_>>) -> Result<Option<bool>> {
        plan.split.as_ref().filter(|_| self.excludes).map(|split| split.meta.matches_value(meta)).transpose()
    }

    /// The place of a time: smaller places matter more.
    pub fn place(&self, ms: i64) -> i64 {
        if self.is_last { !ms } else { ms }
    }

    /// The best possible place of a row in a bucket that begins at `start_ms` or up to a second later.
    pub fn best_place(&self, start_ms: i64, span_ms: i64) -> i64 {
        self.place(if self.is_last { start_ms.saturating_add(span_ms).saturating_add(1000) } else { start_ms })
    }

    /// Adds to `best` the places of matching rows of a bucket, as far as they are among the best.
    ///
    /// Errors: `DataCorruptionDetected`.
    pub fn add_bucket(
        &self,
        best: &mut Vec<i64>,
        plan: &ReadPlan,
        bucket: &BucketDoc<'_>,
        options: &TimeseriesOptions,
    ) -> Result<()> {
        let all_match = plan.all_match(bucket);
        if all_match && self.is_last && self.count == 1 {
            self.add(best, self.place(bucket.max_time_ms()));
            return Ok(());
        }
        let rows = match all_match {
            true => unpack_first_or_last(bucket, &self.columns, options, (self.is_last, self.count))?,
            false => unpack(bucket, &self.columns, options)?,
        };
        self.add_rows(best, plan, &rows, bucket.meta(), all_match)
    }

    /// The same for rows that have the needed columns.
    ///
    /// Errors: those of filters.
    pub fn add_rows(
        &self,
        best: &mut Vec<i64>,
        plan: &ReadPlan,
        rows: &Block,
        meta: Option<Value<'_>>,
        all_match: bool,
    ) -> Result<()> {
        let Some(ColumnData::Date(times)) = rows.column(&plan.plan.time_field).map(|times| times.data()) else {
            return if rows.rows() == 0 { Ok(()) } else { Err(Error::internal("Rows have no time column")) };
        };
        match all_match {
            true => times.iter().for_each(|ms| self.add(best, self.place(*ms))),
            false => {
                let selected = plan.select(rows, meta)?.to_rows();
                let times = selected.iter().filter_map(|row| times.get(*row as usize));
                times.for_each(|ms| self.add(best, self.place(*ms)));
            }
        }
        Ok(())
    }

    /// Adds one place to the best ones.
    pub fn add(&self, best: &mut Vec<i64>, place: i64) {
        add_place(best, place, self.count);
    }

    /// The needed columns.
    pub fn columns(&self) -> &FieldSet {
        &self.columns
    }
}

fn add_place(best: &mut Vec<i64>, place: i64, count: usize) {
    if best.len() >= count && best.last().is_none_or(|worst| place >= *worst) {
        return;
    }
    best.insert(best.partition_point(|known| *known <= place), place);
    best.truncate(count);
}

/// The rows among the `count` first (or last) times, and all rows that tie with one of them.
pub fn several(times: &[i64], rows: &[u32], is_last: bool, count: usize) -> Vec<u32> {
    let place = |row: u32| times.get(row as usize).map(|ms| if is_last { !*ms } else { *ms });
    let mut best = Vec::new();
    rows.iter().filter_map(|row| place(*row)).for_each(|place| add_place(&mut best, place, count));
    let worst = best.last().copied();
    rows.iter().copied().filter(|row| place(*row) <= worst).listed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_tie_with_the_last_wanted_one_are_kept() {
        let times = [5, 3, 9, 5, 1, 9];
        let all: Vec<u32> = (0..6).collect();
        assert_eq!(several(&times, &all, true, 2), [2, 5]);
        assert_eq!(several(&times, &all, true, 3), [0, 2, 3, 5]);
        assert_eq!(several(&times, &all, false, 2), [1, 4]);
        assert_eq!(several(&times, &all[..2], false, 9), [0, 1]);
        assert!(several(&times, &[], true, 2).is_empty());
    }

    #[test]
    fn only_the_best_ranks_are_kept_in_order() {
        let mut best = Vec::new();
        for place in [7, 3, 9, 3, 5] {
            add_place(&mut best, place, 3);
        }
        assert_eq!(best, [3, 3, 5]);
    }
}
