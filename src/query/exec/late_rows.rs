//! Rows of many buckets for a sort with a limit, without the columns that are decoded late.

use super::executor::{Exec, ExecOutput};
use super::sorter::Late;
use crate::block::Block;
use crate::error::Result;
use crate::listed::IntoList;

impl Exec {
    /// Of complete rows that lack only what is neither filtered nor sorted by, those that a sort with a limit may return, and their
    /// numbers; `selected` are those that match.
    ///
    /// Errors: `BadValue` if the sort meets parallel arrays.
    pub fn best_of(&mut self, rows: Block, selected: Option<Vec<u32>>) -> Result<(Block, Vec<u32>)> {
        let ExecOutput::Sorter(sorter) = &mut self.output else { return Ok((rows, Vec::new())) };
        let count = rows.rows();
        let rows = match &selected {
            None => rows,
            Some(selected) => rows.gather(selected),
        };
        let (best, better) = sorter.best_of(rows)?;
        let selected = better_among(selected, better);
        Ok((best, selected.unwrap_or_else(|| (0..).take(count).collect())))
    }

    /// Collects rows for a sort with a limit, which returns few; `late` says what they lack.
    ///
    /// Errors: as `best_of`.
    pub fn push_late(&mut self, rows: Block, late: Late) -> Result<()> {
        match &mut self.output {
            ExecOutput::Sorter(sorter) => sorter.push(rows, Some(late)),
            ExecOutput::Queue { .. } => Ok(()),
        }
    }
}

/// The selected rows of which these are the `better` ones; `None` if all of all are.
pub(super) fn better_among(selected: Option<Vec<u32>>, better: Option<Vec<u32>>) -> Option<Vec<u32>> {
    match (selected, better) {
        (Some(selected), Some(better)) => {
            Some(better.iter().filter_map(|row| selected.get(*row as usize)).copied().listed())
        }
        (selected, better) => better.or(selected),
    }
}
