//! Rows collected for a sort.

use super::assemble::{Run, assemble};
use super::queue::{Budget, row_size_bytes};
use crate::block::{Block, Column, ColumnData};
use crate::error::Result;
use crate::query::sort::{SortSpec, sorted_rows};

/// Rows that a sort with a limit collects beyond those that it keeps before it throws the rest away.
const PAGE_ROWS: usize = 8192;

/// Collects rows, sorts them at the end, gives them out in order.
///
/// With a limit it holds at most twice the rows that it has to keep, or a page beyond them where that is more.
pub(super) struct Sorter {
    spec: SortSpec,
    skip: usize,
    /// Skip and limit together; `None` without a limit.
    keep: Option<usize>,
    blocks: Vec<Block>,
    rows: usize,
    /// Rows in their order, counted over all blocks; empty before `finish`.
    sorted: Vec<u32>,
    taken: usize,
}

impl Sorter {
    pub fn new(spec: SortSpec, skip: usize, limit: Option<usize>) -> Sorter {
        let keep = limit.map(|limit| skip.saturating_add(limit));
        Sorter { spec, skip, keep, blocks: Vec::new(), rows: 0, sorted: Vec::new(), taken: 0 }
    }

    /// The specification.
    pub fn spec(&self) -> &SortSpec {
        &self.spec
    }

    /// Adds rows.
    ///
    /// Errors: `BadValue` where the sort meets parallel arrays.
    pub fn push(&mut self, block: Block) -> Result<()> {
        if block.rows() == 0 {
            return Ok(());
        }
        self.rows += block.rows();
        self.blocks.push(block);
        match self.keep {
            Some(keep) if self.rows > keep.saturating_add(keep.max(PAGE_ROWS)) => {
                // Ties are in order of arrival, and those still to come arrive behind them.
                let kept = sorted_rows(&self.spec, &self.blocks, Some(keep))?;
                self.reduce(&kept);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// How many of the rows collected so far have a date in the column `name` that `wanted` takes.
    pub fn count(&self, name: &str, wanted: &dyn Fn(i64) -> bool) -> u64 {
        let of = |block: &Block| match block.column(name).map(Column::data) {
            Some(ColumnData::Date(dates)) => dates.iter().filter(|date| wanted(**date)).count() as u64,
            _ => 0,
        };
        self.blocks.iter().map(of).sum()
    }

    /// Sorts what was collected.
    ///
    /// Errors: `BadValue` where the sort meets parallel arrays.
    pub fn finish(&mut self) -> Result<()> {
        self.sorted = sorted_rows(&self.spec, &self.blocks, self.keep)?;
        self.taken = self.skip.min(self.sorted.len());
        if self.sorted.len() < self.rows / 2 {
            // A cursor that waits for its next getMore holds nothing that it will never return.
            let kept = std::mem::take(&mut self.sorted);
            self.reduce(&kept);
            self.sorted = (0..).take(self.rows).collect();
        }
        Ok(())
    }

    /// Holds only the rows `kept`, in that order.
    fn reduce(&mut self, kept: &[u32]) {
        let runs = runs_of(kept, &self.starts());
        self.blocks = vec![assemble(&self.blocks, &runs)];
        self.rows = kept.len();
    }

    /// The number of the first row of each block.
    fn starts(&self) -> Vec<usize> {
        let first = |next: &mut usize, block: &Block| {
            let start = *next;
            *next += block.rows();
            Some(start)
        };
        self.blocks.iter().scan(0, first).collect()
    }

    /// Sorted rows that wait.
    pub fn ready(&self) -> usize {
        self.sorted.len() - self.taken
    }

    /// The next rows: at most `rows_max`, and about `bytes_max` bytes but at least one row.
    pub fn take(&mut self, rows_max: usize, bytes_max: usize) -> Block {
        let end = self.taken.saturating_add(rows_max).min(self.sorted.len());
        let next = self.sorted.get(self.taken..end).unwrap_or_default();
        let mut budget = Budget { rows: rows_max, bytes: bytes_max, used: false };
        let mut runs = runs_of(next, &self.starts());
        let mut count = 0;
        for (at, run) in runs.iter_mut().enumerate() {
            let granted = budget.spend(run.rows.len(), self.blocks.get(run.block).map_or(1, row_size_bytes));
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

/// The rows, counted over all blocks, as runs; neighbours that follow each other are one.
fn runs_of(rows: &[u32], starts: &[usize]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut limits = 0..0;
    for row in rows {
        let row = *row as usize;
        if !limits.contains(&row) {
            let block = starts.partition_point(|start| *start <= row).saturating_sub(1);
            limits = starts.get(block).copied().unwrap_or(0)..starts.get(block + 1).copied().unwrap_or(usize::MAX);
            runs.push(Run { block, rows: 0..0 });
        }
        let row = row - limits.start;
        match runs.last_mut() {
            Some(run) if run.rows.is_empty() => run.rows = row..row + 1,
            Some(run) if run.rows.end == row => run.rows.end += 1,
            Some(run) => {
                let block = run.block;
                runs.push(Run { block, rows: row..row + 1 });
            }
            None => {}
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Column, ColumnData};
    use crate::value::Doc;
    use bson::rawdoc;

    fn sorter(skip: usize, limit: Option<usize>) -> Sorter {
        Sorter::new(
            SortSpec::parse(Doc::parse(rawdoc! { "n": 1 }.as_bytes()).unwrap().as_value()).unwrap(),
            skip,
            limit,
        )
    }

    /// Blocks of 1000 rows whose keys are scattered, and whose column `at` tells when they arrived.
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
    fn a_limited_sort_gives_what_a_full_sort_begins_with_and_stays_small() {
        let mut full = sorter(0, None);
        (0..40).try_for_each(|i| full.push(block(i))).unwrap();
        full.finish().unwrap();
        let full = drain(&mut full);
        assert!(full.is_sorted() && full.len() == 40_000);
        for (skip, limit) in [(0, 1), (5, 10), (0, 3000), (100, 9000), (0, 39_999), (39_995, 20), (50_000, 1)] {
            let mut some = sorter(skip, Some(limit));
            for i in 0..40 {
                some.push(block(i)).unwrap();
                assert!(some.rows <= (skip + limit) + (skip + limit).max(PAGE_ROWS));
            }
            some.finish().unwrap();
            let expected = full.get(skip..(skip + limit).min(full.len())).unwrap_or_default();
            assert_eq!(drain(&mut some), expected, "skip {skip} limit {limit}");
        }
    }

    #[test]
    fn a_batch_is_cut_at_its_bytes_but_has_a_row() {
        let mut sorter = sorter(0, None);
        sorter.push(block(0)).unwrap();
        assert_eq!(sorter.ready(), 0);
        sorter.finish().unwrap();
        assert_eq!(sorter.take(100, 0).rows(), 1);
        assert_eq!(sorter.take(100, 50).rows(), 3);
        assert_eq!(sorter.ready(), 996);
    }
}
