//! Collects rows for a sort.

use std::rc::Rc;

use super::assemble::{RowRun, assemble};
use super::measurements::Measurements;
use super::queue::{Budget, Queue, row_bytes_of};
use super::sink::LateColumns;
use super::threshold::Threshold;
use crate::block::{Bitmap, Block, Column, ColumnData};
use crate::error::Result;
use crate::limits::{LATE_BUCKETS_AT_ONCE, LATE_ROWS_MAX};
use crate::listed::IntoList;
use crate::query::sort::{SortSpec, rows_before, sorted_rows};
use crate::value::{Doc, OwnedValue, sort_by};

/// Number of rows that are worth sorting while more are to come.
const RELEASED_ROWS_MIN: usize = 32_768;
/// Number of rows that a sort with a limit collects beyond those that it keeps, before it discards the rest.
const PAGE_ROWS: usize = 8192;
/// The same if rows that sort behind those kept need not be decoded.
const WATCHED_ROWS: usize = 64;

/// Collects rows, sorts them at the end, and returns them in order.
///
/// With a limit it holds at most twice the rows that it keeps, or a page more if that is larger. Rows known to come
/// before all rows still to be pushed may be released before the end.
pub(super) struct Sorter {
    spec: SortSpec,
    /// What a row must exceed to be kept, if buckets can tell.
    threshold: Option<Threshold>,
    /// Rows still to be skipped.
    skip: usize,
    /// Rows still to be sorted, including skipped ones; `None` without a limit.
    keep: Option<usize>,
    /// Released rows, in order.
    released: Queue,
    /// With fewer rows than this, `release` does not check again.
    look_at_rows: usize,
    blocks: Vec<Block>,
    /// What the blocks lack, one for each of them; empty if none lacks anything.
    late: Vec<Option<Late>>,
    /// True if `release` or `finish` has decoded some of them, and wants a pause.
    wants_pause: bool,
    rows: usize,
    /// The number of rows that it collects beyond those that it keeps, if there are not more of those.
    page_rows: usize,
    /// The last of the rows that a limit keeps, if so many have come.
    last: Option<Box<Block>>,
    /// Row numbers in sorted order, counted over all blocks; empty before `finish`.
    sorted: Vec<u32>,
    taken: usize,
    /// About the bytes of a row of each block as a document; empty before they are needed.
    row_bytes: Vec<usize>,
}

/// The columns that rows of a bucket still lack. They are decoded when it is certain that some of the rows are returned.
pub struct Late {
    /// Their bucket.
    pub rest: Rc<dyn LateColumns>,
    /// Its metadata.
    pub meta: Option<OwnedValue>,
    /// The numbers of the rows in it, ascending.
    pub rows: Vec<u32>,
}

impl Late {
    fn gather(self, rows: &[u32]) -> Late {
        let rows = rows.iter().filter_map(|row| self.rows.get(*row as usize)).copied().listed();
        Late { rows, ..self }
    }
}

impl Sorter {
    pub fn new(spec: SortSpec, skip: usize, limit: Option<usize>, threshold: Option<Threshold>) -> Sorter {
        let keep = limit.map(|limit| skip.saturating_add(limit));
        let released = Queue::default();
        Sorter {
            spec,
            threshold,
            skip,
            keep,
            released,
            look_at_rows: 0,
            blocks: Vec::new(),
            late: Vec::new(),
            wants_pause: false,
            rows: 0,
            page_rows: PAGE_ROWS,
            last: None,
            sorted: Vec::new(),
            taken: 0,
            row_bytes: Vec::new(),
        }
    }

    /// The sort specification.
    pub fn spec(&self) -> &SortSpec {
        &self.spec
    }

    /// True if it may drop rows.
    pub fn is_limited(&self) -> bool {
        self.keep.is_some()
    }

    /// True if so few rows are kept that most of their columns are decoded late; until then, it holds their buckets.
    pub fn is_late(&self) -> bool {
        self.keep.is_some_and(|keep| keep <= LATE_ROWS_MAX)
    }

    /// True, once, if `release` or `finish` has left buckets to be decoded, and is to be called again.
    pub fn take_pause(&mut self) -> bool {
        std::mem::take(&mut self.wants_pause)
    }

    /// Adds rows; `late` says what they lack.
    ///
    /// Errors: `BadValue` if the sort meets parallel arrays.
    pub fn push(&mut self, block: Block, late: Option<Late>) -> Result<()> {
        if block.rows() == 0 {
            return Ok(());
        }
        if let Some(threshold) = &mut self.threshold {
            threshold.add(&block);
        }
        self.rows += block.rows();
        if late.is_some() || !self.late.is_empty() {
            self.late.resize_with(self.blocks.len(), || None);
            self.late.push(late);
        }
        self.blocks.push(block);
        match self.keep {
            Some(keep) if self.rows > keep.saturating_add(keep.max(self.page_rows)) => {
                // Ties keep the order of arrival, and rows still to come arrive later.
                let kept = sorted_rows(&self.spec, &self.blocks, Some(keep))?;
                let last = runs_of(kept.last().map_or(&[], std::slice::from_ref), &self.starts());
                let block_of = |run: &RowRun| Some(self.blocks.get(run.block)?.slice(run.rows.clone()).into());
                self.last = last.first().and_then(block_of);
                self.reduce(&kept);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Of these rows, which have the fields that are sorted by, the ones that come before the last of those that a limit keeps, with
    /// their numbers; `None` if all may. From then on, it soon knows the last one.
    ///
    /// Errors: as `push`.
    pub fn better_of(&mut self, rows: Block) -> Result<(Block, Option<Vec<u32>>)> {
        self.page_rows = WATCHED_ROWS;
        let Some(last) = &self.last else { return Ok((rows, None)) };
        let pair = [Block::clone(last), rows];
        // Of those that tie, the first one stays in front.
        let better = rows_before(&self.spec, &pair)?;
        let [_, rows] = pair;
        Ok(if better.len() == rows.rows() { (rows, None) } else { (rows.gather(&better), Some(better)) })
    }

    /// The same, but no more than a limit keeps.
    ///
    /// Errors: as `push`.
    pub fn best_of(&mut self, rows: Block) -> Result<(Block, Option<Vec<u32>>)> {
        let (rows, better) = self.better_of(rows)?;
        let Some(keep) = self.keep.filter(|keep| rows.rows() > *keep) else { return Ok((rows, better)) };
        let mut best = sorted_rows(&self.spec, std::slice::from_ref(&rows), Some(keep))?;
        sort_by(&mut best, Ord::cmp);
        let number = |row: &u32| better.as_ref().map_or(Some(*row), |better| better.get(*row as usize).copied());
        Ok((rows.gather(&best), Some(best.iter().filter_map(number).listed())))
    }

    /// Sorts and releases the rows that no later row can precede, judged by the dates in the column `bound.name`. If
    /// fewer than `wanted`, or few in general, it may leave them for later.
    ///
    /// Errors: `BadValue` if the sort meets parallel arrays; `DataCorruptionDetected` if columns are decoded late.
    pub fn release(&mut self, bound: &TimeBound<'_>, wanted: usize, measurements: &Measurements) -> Result<()> {
        let worth = wanted.min(self.keep.unwrap_or(usize::MAX)).clamp(1, RELEASED_ROWS_MIN);
        if self.rows < worth || self.rows < self.look_at_rows && !bound.ends_page {
            return Ok(());
        }
        let dates = |block: &Block| match block.column(bound.name).map(Column::data) {
            Some(ColumnData::Date(dates)) => dates.iter().filter(|date| bound.is_before(**date)).count(),
            _ => 0,
        };
        let count = self.blocks.iter().map(dates).sum::<usize>();
        // Checking again at every block, or sorting all rows for the sake of a few, would be quadratic.
        let is_enough = count >= worth && (count >= self.rows / 8 || self.keep.is_some_and(|keep| count >= keep));
        self.look_at_rows = if is_enough { 0 } else { self.rows + self.rows / 2 };
        if is_enough { self.let_go(count, measurements) } else { Ok(()) }
    }

    /// Sorts and releases all rows: whatever is pushed later comes after them.
    ///
    /// Errors: as `release`.
    pub fn release_all(&mut self, measurements: &Measurements) -> Result<()> {
        self.look_at_rows = 0;
        if self.rows > 0 { self.let_go(self.rows, measurements) } else { Ok(()) }
    }

    /// Sorts the collected rows and releases the first `count`.
    fn let_go(&mut self, count: usize, measurements: &Measurements) -> Result<()> {
        let sorted = sorted_rows(&self.spec, &self.blocks, self.keep)?;
        let (first, rest) = sorted.split_at_checked(count).unwrap_or((&sorted, &[]));
        let skipped = first.len().min(self.skip);
        let runs = runs_of(first.get(skipped..).unwrap_or_default(), &self.starts());
        if !self.decode_late(&runs, measurements)? {
            return Ok(());
        }
        self.released.push(assemble(&self.blocks, &runs));
        self.skip -= skipped;
        if let Some(keep) = &mut self.keep {
            *keep -= first.len();
        }
        // What is left of the kept rows may be none.
        self.last = None;
        self.reduce(rest);
        Ok(())
    }

    /// Decodes what the blocks of these rows lack, but only of some buckets at once. False if it must be called again, after a
    /// pause.
    ///
    /// Errors: `DataCorruptionDetected`.
    fn decode_late(&mut self, runs: &[RowRun], measurements: &Measurements) -> Result<bool> {
        let mut decoded = 0;
        for run in runs {
            let Some(late) = self.late.get_mut(run.block).filter(|late| late.is_some()) else { continue };
            if decoded == LATE_BUCKETS_AT_ONCE {
                self.wants_pause = true;
                return Ok(false);
            }
            decoded += 1;
            if let (Some(block), Some(Late { rest, meta, rows })) = (self.blocks.get_mut(run.block), late.take()) {
                // What is in front of them need not be decoded.
                let from = rows.first().copied().unwrap_or_default();
                let rows: Vec<u32> = rows.iter().map(|row| row - from).collect();
                let all = rest.rows(&Block::default(), from as usize)?.gather(&rows);
                *block = measurements.complete(all, meta.as_ref().map(OwnedValue::view));
            }
        }
        Ok(true)
    }

    /// True if no row between these times, with fields of at most the values in `max`, can be among the rows kept.
    pub fn excludes(&self, times: (i64, i64), max: Option<Doc<'_>>) -> bool {
        self.threshold.as_ref().is_some_and(|threshold| threshold.excludes(times, max))
    }

    /// True if no further row can change the result.
    pub fn is_full(&self) -> bool {
        self.keep == Some(0)
    }

    /// Sorts the remaining rows.
    ///
    /// Errors: as `release`.
    pub fn finish(&mut self, measurements: &Measurements) -> Result<()> {
        if self.released.rows() > 0 {
            return self.release_all(measurements);
        }
        let sorted = sorted_rows(&self.spec, &self.blocks, self.keep)?;
        let taken = self.skip.min(sorted.len());
        let returned = runs_of(sorted.get(taken..).unwrap_or_default(), &self.starts());
        if !self.decode_late(&returned, measurements)? {
            return Ok(());
        }
        (self.sorted, self.taken) = (sorted, taken);
        self.late.clear();
        if self.sorted.len() < self.rows / 2 {
            // A cursor that waits for its next getMore should not hold rows that it will never return.
            let kept = std::mem::take(&mut self.sorted);
            self.reduce(&kept);
            self.sorted = (0..).take(self.rows).collect();
        }
        Ok(())
    }

    /// Keeps only the rows `kept`, in that order; if some of them lack columns, in the order of arrival.
    fn reduce(&mut self, kept: &[u32]) {
        let rows = std::mem::replace(&mut self.rows, kept.len());
        if self.late.is_empty() {
            self.blocks = vec![assemble(&self.blocks, &runs_of(kept, &self.starts()))];
            return;
        }
        let mut is_kept = Bitmap::filled(rows, false);
        kept.iter().for_each(|row| is_kept.set(*row as usize, true));
        let mut start = 0;
        for (block, late) in std::mem::take(&mut self.blocks).into_iter().zip(std::mem::take(&mut self.late)) {
            let kept = is_kept.slice(start..start + block.rows()).to_rows();
            start += block.rows();
            if !kept.is_empty() {
                self.late.push(late.map(|late| late.gather(&kept)));
                self.blocks.push(block.gather(&kept));
            }
        }
    }

    /// The number of the first row of each block.
    fn starts(&self) -> Vec<usize> {
        let first = |next: &mut usize, block: &Block| {
            let start = *next;
            *next += block.rows();
            Some(start)
        };
        self.blocks.iter().scan(0, first).listed()
    }

    /// Number of sorted rows waiting.
    pub fn ready(&self) -> usize {
        self.released.rows() + self.sorted.len() - self.taken
    }

    /// The next rows: at most `rows_max` and about `bytes_max` bytes, but at least one row.
    pub fn take(&mut self, rows_max: usize, bytes_max: usize) -> Block {
        if self.released.rows() > 0 {
            return self.released.take(rows_max, bytes_max);
        }
        if self.row_bytes.is_empty() && bytes_max < usize::MAX {
            self.row_bytes = self.blocks.iter().map(row_bytes_of).collect();
        }
        let end = self.taken.saturating_add(rows_max).min(self.sorted.len());
        let next = self.sorted.get(self.taken..end).unwrap_or_default();
        let mut budget = Budget { rows: rows_max, bytes: bytes_max, used: false };
        let mut runs = runs_of(next, &self.starts());
        let mut count = 0;
        for (at, run) in runs.iter_mut().enumerate() {
            let granted = budget.spend(run.rows.len(), self.row_bytes.get(run.block).copied().unwrap_or(1));
            let whole = granted == run.rows.len();
            run.rows.end = run.rows.start + granted;
            count += granted;
            if !whole {
                runs.truncate(at + 1);
                break;
            }
        }
        self.taken += count;
        assemble(&self.blocks, &runs)
    }
}

/// What is known of the rows still to come to a sort by time.
pub struct TimeBound<'a> {
    /// The column of times.
    pub name: &'a str,
    /// True if the sort is ascending.
    pub ascending: bool,
    /// A lower bound of times to come; for a descending sort, an exclusive upper bound.
    pub ms: i64,
    /// True if more rows require a storage access.
    pub ends_page: bool,
}

impl TimeBound<'_> {
    fn is_before(&self, time_ms: i64) -> bool {
        (time_ms < self.ms) == self.ascending
    }
}

/// Rows, counted over all blocks, as runs; consecutive rows form one run.
fn runs_of(rows: &[u32], starts: &[usize]) -> Vec<RowRun> {
    let mut runs: Vec<RowRun> = Vec::new();
    let mut limits = 0..0;
    for row in rows {
        let row = *row as usize;
        if !limits.contains(&row) {
            let block = starts.partition_point(|start| *start <= row).saturating_sub(1);
            limits = starts.get(block).copied().unwrap_or(0)..starts.get(block + 1).copied().unwrap_or(usize::MAX);
            runs.push(RowRun { block, rows: 0..0 });
        }
        let row = row - limits.start;
        match runs.last_mut() {
            Some(run) if run.rows.is_empty() => run.rows = row..row + 1,
            Some(run) if run.rows.end == row => run.rows.end += 1,
            Some(run) => {
                let block = run.block;
                runs.push(RowRun { block, rows: row..row + 1 });
            }
            None => {}
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::super::sink::Decoded;
    use super::*;
    use crate::block::{Column, ColumnData};
    use crate::value::{Collation, Doc};
    use bson::rawdoc;

    fn sorter(skip: usize, limit: Option<usize>) -> Sorter {
        Sorter::new(
            SortSpec::parse(Doc::parse(rawdoc! { "n": 1 }.as_bytes()).unwrap().as_value(), &Collation::default())
                .unwrap(),
            skip,
            limit,
            None,
        )
    }

    /// Blocks of 1000 rows with scattered keys; the column `at` holds the order of arrival.
    fn block(number: i64) -> Block {
        let at: Vec<i64> = (number * 1000..(number + 1) * 1000).collect();
        let mut block = Block::new(at.len());
        block.set_column("n", Column::new(ColumnData::I64(at.iter().map(|at| at * 7919 % 5003).collect()), None));
        block.set_column("at", Column::new(ColumnData::I64(at), None));
        block
    }

    fn drain(sorter: &mut Sorter) -> Vec<(i64, i64)> {
        let mut rows = Vec::new();
        while sorter.ready() > 0 {
            let batch = sorter.take(700, usize::MAX);
            let column = |name| match batch.column(name).unwrap().data() {
                ColumnData::I64(v) => v.clone(),
                _ => panic!(),
            };
            rows.extend(column("n").into_iter().zip(column("at")));
        }
        rows
    }

    #[test]
    fn a_limited_sort_equals_the_start_of_a_full_sort_and_needs_little_memory() {
        let mut full = sorter(0, None);
        (0..40).try_for_each(|i| full.push(block(i), None)).unwrap();
        full.finish(&Measurements::default()).unwrap();
        let full = drain(&mut full);
        assert!(full.is_sorted() && full.len() == 40_000);
        for (skip, limit) in [(0, 1), (5, 10), (0, 3000), (100, 9000), (0, 39_999), (39_995, 20), (50_000, 1)] {
            let mut some = sorter(skip, Some(limit));
            for i in 0..40 {
                some.push(block(i), None).unwrap();
                assert!(some.rows <= (skip + limit) + (skip + limit).max(PAGE_ROWS));
            }
            some.finish(&Measurements::default()).unwrap();
            let expected = full.get(skip..(skip + limit).min(full.len())).unwrap_or_default();
            assert_eq!(drain(&mut some), expected, "skip {skip} limit {limit}");
        }
    }

    #[test]
    fn rows_whose_columns_are_decoded_late_are_those_of_a_full_sort() {
        let late_of = |block: &Block| {
            let rest = Rc::new(Decoded { rows: block.clone(), needed: Rc::default() });
            Late { rest, meta: None, rows: (0..).take(block.rows()).collect() }
        };
        let mut full = sorter(0, None);
        (0..20).try_for_each(|i| full.push(block(i), None)).unwrap();
        full.finish(&Measurements::default()).unwrap();
        let full = drain(&mut full);
        for (skip, limit, is_late) in [(0, 10, [true, true]), (3, 100, [true, false]), (0, 128, [false, true])] {
            let mut some = sorter(skip, Some(limit));
            for i in 0..20 {
                let all = block(i);
                let mut first = all.clone();
                first.retain_columns(|name| name == "n");
                let (rows, better) = some.better_of(first).unwrap();
                let late = late_of(&all);
                let (late, numbers) = match better {
                    Some(better) => (late.gather(&better), better),
                    None => (late, (0..).take(all.rows()).collect()),
                };
                match is_late[i as usize % 2] {
                    true => some.push(rows, Some(late)).unwrap(),
                    false => some.push(all.gather(&numbers), None).unwrap(),
                }
            }
            let mut steps = 0;
            while steps == 0 || some.take_pause() {
                some.finish(&Measurements::default()).unwrap();
                steps += 1;
            }
            assert_eq!(drain(&mut some), full[skip..skip + limit], "skip {skip} limit {limit}");
            assert!(steps > 1, "all buckets were decoded at once");
        }
    }

    #[test]
    fn a_batch_ends_at_its_size_limit_but_has_at_least_one_row() {
        let mut sorter = sorter(0, None);
        sorter.push(block(0), None).unwrap();
        assert_eq!(sorter.ready(), 0);
        sorter.finish(&Measurements::default()).unwrap();
        assert_eq!(sorter.take(100, 0).rows(), 1);
        assert_eq!(sorter.take(100, 3 * row_bytes_of(&block(0))).rows(), 3);
        assert_eq!(sorter.ready(), 996);
    }
}
