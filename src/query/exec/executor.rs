//! The executor of a `find`.

use std::rc::Rc;

use super::late_rows::better_among;
use super::measurements::Measurements;
use super::newest::Newest;
use super::queue::Queue;
use super::sink::{Counters, Flow, LateColumns, Sink};
use super::sorter::{Late, Sorter, TimeBound};
use super::threshold::Threshold;
use crate::block::Block;
use crate::error::Result;
use crate::limits::BLOCK_ROWS_MAX;
use crate::query::plan::{Plan, Projection, Which};
use crate::query::sort::SortSpec;
use crate::value::{Doc, Value};

/// Runs a plan over the rows pushed into it.
///
/// Results do not depend on how rows are split into pushes. Without a sort, rows come out in the order in which they
/// were pushed, as soon as they were pushed; with a sort, after `finish`.
pub struct Exec {
    measurements: Measurements,
    projection: Projection,
    pub(super) output: ExecOutput,
    /// Set if of each push only the first or the last rows by time matter: whether the last, and how many.
    first_or_last: Option<(bool, usize)>,
    /// Set if only rows in the latest bins of time matter.
    newest: Option<Newest>,
    /// The columns of the last block that the projection left as it was. Buckets mostly have the same.
    left_alone: Vec<Box<str>>,
    /// True if the filter has failed in the rows of several buckets at once.
    pub has_failed: bool,
}

pub(super) enum ExecOutput {
    /// Projected rows, and how many more to skip and to return.
    Queue { rows: Queue, skip: usize, limit: Option<usize> },
    /// Rows before their projection, which may drop the fields that they are sorted by.
    Sorter(Box<Sorter>),
}

impl Exec {
    /// An executor that has seen no rows.
    pub fn new(plan: &Plan) -> Exec {
        Exec::with_sort(plan, plan.sort.clone())
    }

    /// The same with another sort than the plan's.
    pub fn with_sort(plan: &Plan, sort: Option<SortSpec>) -> Exec {
        let skip = usize::try_from(plan.skip).unwrap_or(usize::MAX);
        // A limit beyond the address space is no limit.
        let limit = plan.limit.and_then(|limit| usize::try_from(limit).ok());
        let output = match sort {
            Some(sort) => {
                let threshold = limit.and_then(|limit| Threshold::new(plan, &sort, skip.saturating_add(limit)));
                ExecOutput::Sorter(Sorter::new(sort, skip, limit, threshold).into())
            }
            None => ExecOutput::Queue { rows: Queue::default(), skip, limit },
        };
        let wanted = plan.rows_per_group.as_ref().filter(|wanted| wanted.which != Which::Extremes);
        Exec {
            measurements: Measurements::new(plan),
            projection: plan.projection.clone(),
            output,
            first_or_last: wanted.map(|wanted| (wanted.which == Which::Last, wanted.count)),
            newest: Newest::new(plan),
            left_alone: Vec::new(),
            has_failed: false,
        }
    }

    /// True if the projection leaves a block as it is.
    fn leaves(&mut self, block: &Block) -> bool {
        let names = || block.columns().iter().map(|(name, _)| name);
        if !block.columns().is_empty() && names().eq(&self.left_alone) {
            return true;
        }
        let is_left = self.projection.leaves_block(block);
        if is_left {
            self.left_alone = names().cloned().collect();
        }
        is_left
    }

    /// Releases collected rows of a sort that come before all rows still to be pushed: those before `bound`, or all of
    /// them without one. If fewer than `wanted` rows, or only a few thousand, are before the bound, they may wait.
    ///
    /// Errors: `BadValue` if the sort meets parallel arrays; `DataCorruptionDetected` if columns are decoded late.
    pub fn release(&mut self, bound: Option<&TimeBound<'_>>, wanted: usize) -> Result<Flow> {
        let ExecOutput::Sorter(sorter) = &mut self.output else { return Ok(Flow::Continue) };
        match bound {
            Some(bound) => sorter.release(bound, wanted, &self.measurements)?,
            None => sorter.release_all(&self.measurements)?,
        }
        Ok(if sorter.is_full() { Flow::Enough } else { Flow::Continue })
    }

    /// True, once, if `release` or `finish` has only begun its work, and is to be called again.
    pub fn take_pause(&mut self) -> bool {
        match &mut self.output {
            ExecOutput::Sorter(sorter) => sorter.take_pause(),
            ExecOutput::Queue { .. } => false,
        }
    }

    /// Ends the scan: sorts the rows, if there is a sort.
    ///
    /// Errors: `BadValue` if the sort meets parallel arrays; `DataCorruptionDetected` if columns are decoded late.
    pub fn finish(&mut self) -> Result<()> {
        match &mut self.output {
            ExecOutput::Queue { .. } => Ok(()),
            ExecOutput::Sorter(sorter) => sorter.finish(&self.measurements),
        }
    }

    /// Takes all rows that matter, one of each bucket, with their metadata.
    ///
    /// Errors: those of expressions in the projection.
    pub fn push_ends(&mut self, rows: Block) -> Result<Flow> {
        self.first_or_last = None;
        let counters = self.counters();
        counters.buckets_passed += rows.rows() as u64;
        counters.buckets_unpacked += rows.rows() as u64;
        self.push(rows, None, true)
    }

    /// True if it passes on all rows that match, as they are, projected or sorted.
    pub fn takes_all(&self) -> bool {
        self.first_or_last.is_none()
            && match &self.output {
                ExecOutput::Queue { skip, limit, .. } => *skip == 0 && limit.is_none(),
                ExecOutput::Sorter(sorter) => !sorter.is_limited(),
            }
    }

    /// The decoded rows of a bucket with its metadata, if that is wanted.
    pub fn complete(&self, rows: Block, meta: Option<Value<'_>>) -> Block {
        self.measurements.complete(rows, meta)
    }

    /// The rows that match, of complete buckets with their metadata; `None` if these are all.
    ///
    /// Errors: those of expressions in the filter.
    pub fn select_complete(&mut self, rows: &Block, all_match: bool) -> Result<Option<Vec<u32>>> {
        Ok(self.measurements.select(rows, all_match)?.map(|selected| selected.to_rows()))
    }

    /// The number of rows that `take` can return now.
    pub fn ready(&self) -> usize {
        match &self.output {
            ExecOutput::Queue { rows, .. } => rows.rows(),
            ExecOutput::Sorter(sorter) => sorter.ready(),
        }
    }

    /// The next batch: at most `rows_max` rows and about `bytes_max` bytes, but at least one row if one is ready.
    ///
    /// Errors: those of expressions in the projection of sorted rows.
    pub fn take(&mut self, rows_max: usize, bytes_max: usize) -> Result<Block> {
        let rows_max = rows_max.min(BLOCK_ROWS_MAX);
        match &mut self.output {
            ExecOutput::Queue { rows, .. } => Ok(rows.take(rows_max, bytes_max)),
            ExecOutput::Sorter(sorter) => self.projection.apply(sorter.take(rows_max, bytes_max)),
        }
    }

    /// All rows that are ready; without a sort, only up to those that have some fields in another order, unless the next
    /// stage takes them `in_any_order`: stages show rows as documents.
    ///
    /// Errors: as `take`.
    pub fn take_for_stage(&mut self, in_any_order: bool) -> Result<Block> {
        match &mut self.output {
            ExecOutput::Queue { rows, .. } => Ok(rows.take_together(in_any_order)),
            ExecOutput::Sorter(_) => self.take(usize::MAX, usize::MAX),
        }
    }
}

impl Sink for Exec {
    /// Nothing to do: it was built for its plan.
    fn begin(&mut self, _: &Plan) {}

    fn push(&mut self, rows: Block, meta: Option<Value<'_>>, all_match: bool) -> Result<Flow> {
        if self.is_full() {
            return Ok(Flow::Enough);
        }
        let rows = self.measurements.complete(rows, meta);
        let mut selected = self.measurements.select(&rows, all_match)?.map(|selected| selected.to_rows());
        if let Some((is_last, count)) = self.first_or_last {
            // Loaded by now: only `query::stage` wants the first or the last rows.
            selected = self.measurements.first_or_last(&rows, selected, is_last, count);
        }
        if let Some(newest) = &mut self.newest {
            // Loaded by now: only `query::stage` wants the newest bins.
            selected = newest.narrow(&rows, selected)?;
        }
        self.collect(rows, selected)
    }

    fn push_in_steps(
        &mut self,
        first: Block,
        meta: Option<Value<'_>>,
        all_match: bool,
        rest: Rc<dyn LateColumns>,
    ) -> Result<Flow> {
        if self.is_full() {
            return Ok(Flow::Enough);
        }
        let rows = self.measurements.complete(first.clone(), meta);
        let mut selected = self.measurements.select(&rows, all_match)?.map(|selected| selected.to_rows());
        if let Some(newest) = &mut self.newest {
            // Loaded by now: as above.
            selected = newest.narrow(&rows, selected)?;
        }
        let count = selected.as_ref().map_or(rows.rows(), Vec::len);
        match &mut self.output {
            // Matches that are only skipped.
            ExecOutput::Queue { skip, .. } if count <= *skip => {
                *skip -= count;
                return Ok(Flow::Continue);
            }
            ExecOutput::Queue { .. } => {}
            ExecOutput::Sorter(sorter) => {
                let matches = match &selected {
                    None => rows,
                    Some(selected) => rows.gather(selected),
                };
                let (matches, better) = sorter.better_of(matches)?;
                selected = better_among(selected, better);
                if matches.rows() == 0 {
                    return Ok(Flow::Continue);
                }
                if sorter.is_late() {
                    let rows = selected.unwrap_or_else(|| (0..).take(count).collect());
                    let late = Late { rest, meta: meta.map(|meta| meta.to_owned()), rows };
                    sorter.push(matches, Some(late))?;
                    return Ok(Flow::Continue);
                }
            }
        }
        let rows = self.measurements.complete(rest.rows(&first, 0)?, meta);
        self.collect(rows, selected)
    }

    fn push_whole(&mut self, count: &dyn Fn() -> Result<usize>, _: Option<Value<'_>>) -> Result<Option<Flow>> {
        let ExecOutput::Queue { skip, .. } = &mut self.output else { return Ok(None) };
        if *skip == 0 || self.first_or_last.is_some() {
            return Ok(None);
        }
        let count = count()?;
        if count > *skip {
            return Ok(None);
        }
        *skip -= count;
        self.measurements.counters.measurements_matched += count as u64;
        Ok(Some(Flow::Continue))
    }

    fn excludes(&self, times: (i64, i64), max: Option<Doc<'_>>) -> bool {
        self.newest.as_ref().is_some_and(|newest| newest.excludes(times.1))
            || matches!(&self.output, ExecOutput::Sorter(sorter) if sorter.excludes(times, max))
    }

    fn counters(&mut self) -> &mut Counters {
        &mut self.measurements.counters
    }
}

impl Exec {
    /// True if all rows up to the limit have come.
    fn is_full(&self) -> bool {
        matches!(self.output, ExecOutput::Queue { limit: Some(0), .. })
    }

    /// Takes the selected rows; all of them without a selection.
    ///
    /// Errors: those of expressions in the projection.
    pub fn collect(&mut self, mut rows: Block, selected: Option<Vec<u32>>) -> Result<Flow> {
        let is_left = matches!(self.output, ExecOutput::Queue { .. }) && self.leaves(&rows);
        match &mut self.output {
            ExecOutput::Queue { rows: queue, skip, limit } => {
                // Unneeded columns first, because gathering them would be wasted.
                if !is_left {
                    rows.retain_columns(|name| self.projection.reads_root(name));
                }
                let count = selected.as_ref().map_or(rows.rows(), Vec::len);
                let start = count.min(*skip);
                let end = limit.map_or(count, |limit| count.min(start.saturating_add(limit)));
                *skip -= start;
                let passed = match selected {
                    None if start == 0 && end == count => rows,
                    None => rows.slice(start..end),
                    Some(selected) => rows.gather(selected.get(start..end).unwrap_or_default()),
                };
                if let Some(limit) = limit {
                    *limit -= passed.rows();
                }
                queue.push(if is_left { passed } else { self.projection.apply(passed)? });
                Ok(if *limit == Some(0) { Flow::Enough } else { Flow::Continue })
            }
            ExecOutput::Sorter(sorter) => {
                let sorted_by = |name: &str| sorter.spec().parts().iter().any(|part| part.path.first() == name);
                rows.retain_columns(|name| self.projection.reads_root(name) || sorted_by(name));
                let rows = match selected {
                    None => rows,
                    Some(selected) => rows.gather(&selected),
                };
                let (rows, _) = sorter.better_of(rows)?;
                sorter.push(rows, None)?;
                Ok(Flow::Continue)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::sink::Decoded;
    use super::*;
    use crate::block::{ColumnData, pivot_docs};
    use crate::limits::LATE_ROWS_MAX;
    use crate::query::exec::Count;
    use crate::query::filter::samples::globals;
    use crate::query::plan::CollectionFacts;
    use crate::query::plan::FindCommand;
    use crate::value::{Doc, OwnedValue};
    use bson::{RawDocumentBuf, rawdoc};

    fn plan(command: &RawDocumentBuf) -> Plan {
        let find = FindCommand::parse(Doc::parse(command.as_bytes()).unwrap(), &globals()).unwrap();
        Plan::new(find.into(), &CollectionFacts { time_field: "t", meta_field: Some("m") })
    }

    fn exec(command: &RawDocumentBuf) -> Exec {
        Exec::new(&plan(command))
    }

    /// Five rows, with the time column not in front.
    fn rows() -> Block {
        let docs: Vec<_> = (0..5).map(|n| rawdoc! { "a": n, "t": bson::DateTime::from_millis(n.into()) }).collect();
        pivot_docs(docs.iter().map(|d| Doc::parse(d.as_bytes()).unwrap())).unwrap()
    }

    fn names(block: &Block) -> Vec<&str> {
        block.columns().iter().map(|(name, _)| &**name).collect()
    }

    #[test]
    fn a_measurement_is_time_then_metadata_then_fields() {
        let mut exec = exec(&rawdoc! { "find": "c" });
        let meta = OwnedValue::int32(7);
        assert_eq!(exec.push(rows(), Some(meta.view()), false).unwrap(), Flow::Continue);
        assert_eq!(exec.push(rows(), None, false).unwrap(), Flow::Continue);
        let batch = exec.take(7, usize::MAX).unwrap();
        assert_eq!(names(&batch), ["t", "m", "a"]);
        assert!(matches!(batch.column("m").unwrap().data(), ColumnData::Dictionary(..)));
        assert_eq!(batch.column("m").unwrap().present_count(), 5);
        assert_eq!(exec.ready(), 3);
        let counters = Counters { measurements_examined: 10, measurements_matched: 10, ..Counters::default() };
        assert_eq!(*exec.counters(), counters);
    }

    #[test]
    fn the_row_that_reaches_the_limit_ends_the_scan() {
        let mut exec = exec(&rawdoc! { "find": "c", "skip": 3, "limit": 7 });
        assert_eq!(exec.push(rows(), None, true).unwrap(), Flow::Continue);
        assert_eq!(exec.push(rows(), None, true).unwrap(), Flow::Enough);
        assert_eq!(exec.push(rows(), None, true).unwrap(), Flow::Enough);
        assert_eq!(exec.ready(), 7);
        let mut count = Count::default();
        count.begin(&plan(&rawdoc! { "find": "c", "skip": 3, "limit": 7 }));
        assert_eq!(count.push_whole(&|| Ok(9), None), Ok(Some(Flow::Continue)));
        assert_eq!(count.push(rows(), None, true), Ok(Flow::Enough));
        assert_eq!(count.count(), 7);
        let counters = Counters { measurements_examined: 5, measurements_matched: 14, ..Counters::default() };
        assert_eq!(*count.counters(), counters);
    }

    fn finish(exec: &mut Exec) {
        exec.finish().unwrap();
        while exec.take_pause() {
            exec.finish().unwrap();
        }
    }

    /// The result of pushing four blocks in steps, and how many of them were needed with all columns.
    fn in_steps(command: &RawDocumentBuf) -> (Block, usize) {
        let plan = plan(command);
        let mut exec = Exec::new(&plan);
        let needed = Rc::new(Cell::new(0));
        for number in 0..4_i64 {
            let docs: Vec<_> = (0..100_i64)
                .map(|n| rawdoc! { "a": (n * 37 + number) % 100, "t": bson::DateTime::from_millis(n), "b": number, "c": "x" })
                .collect();
            let rows = pivot_docs(docs.iter().map(|d| Doc::parse(d.as_bytes()).unwrap())).unwrap();
            let mut first = rows.clone();
            first.retain_columns(|name| plan.decode_first.as_ref().unwrap().contains(name));
            let rest = Rc::new(Decoded { rows, needed: Rc::clone(&needed) });
            let _ = exec.push_in_steps(first, None, false, rest).unwrap();
        }
        finish(&mut exec);
        (exec.take(usize::MAX, usize::MAX).unwrap(), needed.get())
    }

    #[test]
    fn other_columns_are_only_needed_of_blocks_with_rows_that_may_be_in_the_result() {
        // Only the first block has the best rows, and those of others that tie come later.
        let (rows, needed) = in_steps(&rawdoc! { "find": "c", "sort": { "a": -1 }, "limit": 1 });
        assert_eq!((rows.rows(), needed), (1, 1));
        assert_eq!(rows.column("b").unwrap().value(0, &mut Vec::new()).and_then(Value::as_integer), Some(0));
        let (rows, needed) = in_steps(&rawdoc! { "find": "c", "sort": { "b": -1, "a": 1 }, "limit": 3 });
        assert_eq!((rows.rows(), needed), (3, 1));
        // With a greater limit, columns are not decoded late.
        let limit = i32::try_from(LATE_ROWS_MAX).unwrap() + 1;
        let (rows, needed) = in_steps(&rawdoc! { "find": "c", "sort": { "b": -1, "a": 1 }, "limit": limit });
        assert_eq!((rows.rows(), needed), (LATE_ROWS_MAX + 1, 4));
        let (rows, needed) = in_steps(&rawdoc! { "find": "c", "filter": { "b": 2, "a": { "$lt": 9 } } });
        assert_eq!((rows.rows(), needed), (9, 1));
        let (rows, needed) = in_steps(&rawdoc! { "find": "c", "filter": { "a": { "$lt": 9 } }, "skip": 20 });
        assert_eq!((rows.rows(), needed), (16, 2));
        let (rows, needed) = in_steps(&rawdoc! { "find": "c", "filter": { "a": { "$lt": 9 } }, "limit": 4 });
        assert_eq!((rows.rows(), needed), (4, 1));
    }

    #[test]
    fn rows_that_are_decoded_late_have_their_metadata_and_their_place_in_the_bucket() {
        let plan =
            plan(&rawdoc! { "find": "c", "filter": { "a": { "$ne": 9 } }, "sort": { "a": -1 }, "skip": 1, "limit": 2 });
        let mut exec = Exec::new(&plan);
        for number in 0..3_i32 {
            let docs: Vec<_> = (0..10)
                .map(|n| rawdoc! { "t": bson::DateTime::from_millis(0), "a": n, "b": number * 100 + n })
                .collect();
            let rows = pivot_docs(docs.iter().map(|d| Doc::parse(d.as_bytes()).unwrap())).unwrap();
            let mut first = rows.clone();
            first.retain_columns(|name| name == "a");
            let meta = OwnedValue::int32(number);
            let rest = Rc::new(Decoded { rows, needed: Rc::default() });
            assert_eq!(exec.push_in_steps(first, Some(meta.view()), false, rest), Ok(Flow::Continue));
        }
        exec.finish().unwrap();
        let batch = exec.take(10, usize::MAX).unwrap();
        assert_eq!(names(&batch), ["t", "m", "a", "b"]);
        // All have an `a` of 8. The first of the three is skipped.
        assert_eq!(batch.column("b").unwrap().data(), &ColumnData::I32(vec![108, 208]));
        let meta = |row| batch.column("m").unwrap().value(row, &mut Vec::new()).and_then(Value::as_integer);
        assert_eq!((meta(0), meta(1)), (Some(1), Some(2)));
    }

    #[test]
    fn blocks_that_are_skipped_as_a_whole_are_not_needed() {
        let mut exec = exec(&rawdoc! { "find": "c", "skip": 7 });
        assert_eq!(exec.push_whole(&|| Ok(5), None), Ok(Some(Flow::Continue)));
        assert_eq!(exec.push_whole(&|| Ok(5), None), Ok(None));
        assert_eq!(exec.push(rows(), None, true), Ok(Flow::Continue));
        assert_eq!(exec.push_whole(&|| Ok(0), None), Ok(None));
        assert_eq!((exec.ready(), exec.counters().measurements_matched), (3, 10));
        let mut sorted = Exec::new(&plan(&rawdoc! { "find": "c", "skip": 7, "sort": { "a": 1 } }));
        assert_eq!(sorted.push_whole(&|| Ok(5), None), Ok(None));
    }

    #[test]
    fn a_sorted_result_is_ready_after_finish_and_may_omit_its_sort_key() {
        let mut exec = exec(&rawdoc! { "find": "c", "sort": { "t": -1 }, "projection": { "a": 1 }, "limit": 2 });
        assert_eq!(exec.push(rows(), Some(OwnedValue::int32(7).view()), true).unwrap(), Flow::Continue);
        assert_eq!(exec.ready(), 0);
        exec.finish().unwrap();
        let batch = exec.take(10, usize::MAX).unwrap();
        assert_eq!(names(&batch), ["a"]);
        assert_eq!(batch.column("a").unwrap().data(), &ColumnData::I32(vec![4, 3]));
    }

    #[test]
    fn an_empty_projection_gives_empty_rows() {
        let mut exec = exec(&rawdoc! { "find": "c", "projection": { "x": 1 } });
        assert_eq!(exec.push(rows(), None, true).unwrap(), Flow::Continue);
        let batch = exec.take(3, usize::MAX).unwrap();
        assert_eq!((batch.rows(), batch.columns().len(), exec.ready()), (3, 0, 2));
    }

    #[test]
    fn parallel_arrays_stop_a_sort() {
        let mut exec = exec(&rawdoc! { "find": "c", "sort": { "a": 1, "b": 1 } });
        let doc = rawdoc! { "t": 1, "a": [1], "b": [1] };
        let block = pivot_docs([Doc::parse(doc.as_bytes()).unwrap()]).unwrap();
        assert_eq!(exec.push(block, None, true).unwrap(), Flow::Continue);
        assert_eq!(exec.finish().unwrap_err().code, crate::error::ErrorCode::BadValue);
    }
}
