//! The rows of one commit on their way to buckets.

use super::measurements::Facts;
use super::offer::ReopenRequest;
use super::series::{self, BatchSeries, Search, SeriesRows};
use super::state::Catalog;
use crate::block::{Block, Column, ColumnData};
use crate::bucket::{BucketId, is_extended_range};
use crate::error::{Error, Result};
use crate::value::{OwnedValue, sort_by, sort_rows};

/// Consecutive staged rows that belong to one bucket. Their times ascend.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The bucket.
    pub bucket: BucketId,
    /// Where the bucket begins: rounded down, fixed when it was opened.
    pub min_time_ms: i64,
    /// The series: normalised metadata, `None` without any.
    pub meta: Option<OwnedValue>,
    /// How many rows.
    pub rows: usize,
    /// Time of the earliest row.
    pub first_ms: i64,
    /// Time of the latest row.
    pub last_ms: i64,
}

/// Rows in section order, without the metadata column, and their sections, which tile them.
#[derive(Debug, PartialEq)]
pub struct Staged {
    /// The rows: time and fields.
    pub rows: Block,
    /// Which rows go to which bucket.
    pub sections: Vec<Section>,
    /// True if a section opens a bucket outside the standard date range.
    pub extended_range: bool,
}

/// What staging came to.
#[derive(Debug)]
pub enum Stage {
    /// Every row has its bucket. `finish` or `abort` must follow.
    Staged(Staged),
    /// Some rows might go to stored buckets: all of these requests are to be answered with `offer`, in any order, and the
    /// batch to be staged again.
    Reopen(Vec<ReopenRequest>),
}

/// The rows of one commit, split by series, and how far each series has come.
pub struct Batch {
    /// Rows without their metadata column, all columns plain.
    pub(super) block: Block,
    pub(super) series: Vec<BatchSeries>,
    /// Rows by series, those of one series by time.
    pub(super) order: Vec<u32>,
    /// Runs of rows and the number of their series; those of one series are in order and tile its rows.
    pub(super) sections: Vec<(usize, Section)>,
    pub(super) facts: Facts,
    /// The state of the catalog that `series` and `sections` are right for; 0 before the first `stage`.
    pub(super) round: u64,
    /// How often that state was lost.
    pub(super) restarts: usize,
}

impl Catalog {
    /// The measurements of `block`, whose time column must be a date column without holes, as a batch.
    pub fn batch(&self, mut block: Block) -> Batch {
        let meta = self.timeseries.meta_field.as_deref().and_then(|name| block.remove_column(name));
        let block = block.map_columns(Column::into_plain);
        let times_ms = dates(&block, &self.timeseries.time_field).unwrap_or_default();
        let SeriesRows { mut order, series } = series::split(meta.as_ref(), block.rows());
        let mut start = 0;
        let series = series.into_iter().map(|(meta, len)| {
            let rows = start..start + len;
            start = rows.end;
            if let Some(rows) = order.get_mut(rows.clone()) {
                sort_by_time(rows, times_ms);
            }
            BatchSeries { meta, next: rows.start, rows, slot: 0, search: Search::default() }
        });
        let series = series.collect();
        let facts = Facts::of(&block, &self.options);
        Batch { facts, block, series, order, sections: Vec::new(), round: 0, restarts: 0 }
    }
}

impl Batch {
    /// The rows in the order of their sections, once all of them have a bucket.
    pub(super) fn staged(&mut self) -> Staged {
        // Only series that waited for stored buckets are out of order.
        if !self.sections.is_sorted_by_key(|(series, _)| *series) {
            sort_by(&mut self.sections, |(a, _), (b, _)| a.cmp(b));
        }
        let sections: Vec<Section> = std::mem::take(&mut self.sections).into_iter().map(|(_, s)| s).collect();
        let extended_range = sections.iter().any(|s| is_extended_range(s.min_time_ms) || is_extended_range(s.last_ms));
        let block = std::mem::replace(&mut self.block, Block::new(0));
        let in_order = self.order.iter().enumerate().all(|(at, row)| at == *row as usize);
        let rows = if in_order { block } else { block.gather(&self.order) };
        Staged { rows, sections, extended_range }
    }
}

/// The time column.
///
/// Errors: an internal error where it is not one of dates.
pub(super) fn dates<'a>(block: &'a Block, time_field: &str) -> Result<&'a [i64]> {
    match block.column(time_field).map(Column::data) {
        Some(ColumnData::Date(times)) => Ok(times),
        _ => Err(Error::internal("Staged rows have no date column for the time field")),
    }
}

fn sort_by_time(rows: &mut [u32], times_ms: &[i64]) {
    let time = |row: &u32| times_ms.get(*row as usize).copied().unwrap_or_default();
    if !rows.is_sorted_by_key(time) {
        // Flipping the sign bit makes the order of unsigned keys out of that of times.
        let mut keyed: Vec<(u64, u32)> = rows.iter().map(|row| (time(row).cast_unsigned() ^ 1 << 63, *row)).collect();
        sort_rows(&mut keyed);
        rows.iter_mut().zip(keyed).for_each(|(row, (_, sorted))| *row = sorted);
    }
}
