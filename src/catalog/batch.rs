//! The rows of one commit while they are assigned to buckets.

use super::measurements::Facts;
use super::offer::ReopenRequest;
use super::series::{self, BatchSeries, BucketSearch, SeriesRows};
use super::state::Catalog;
use crate::block::{Block, Column, ColumnData};
use crate::bucket::{BucketId, is_extended_range};
use crate::error::{Error, Result};
use crate::listed::IntoList;
use crate::value::{OwnedValue, sort_by, sort_rows};

/// Consecutive staged rows of one bucket, with ascending times.
#[derive(Clone, Debug, PartialEq)]
pub struct Section {
    /// The bucket.
    pub bucket: BucketId,
    /// Start of the bucket: rounded down, and fixed when the bucket was opened.
    pub min_time_ms: i64,
    /// The series: normalised metadata; `None` if it has none.
    pub meta: Option<OwnedValue>,
    /// Number of rows.
    pub rows: usize,
    /// Time of the earliest row.
    pub first_ms: i64,
    /// Time of the latest row.
    pub last_ms: i64,
}

/// Rows in section order without the metadata column, and the sections that divide them.
#[derive(Debug, PartialEq)]
pub struct Staged {
    /// The rows: time and fields.
    pub rows: Block,
    /// Which rows go to which bucket.
    pub sections: Vec<Section>,
    /// True if a section opens a bucket outside the standard date range.
    pub extended_range: bool,
}

/// The outcome of staging.
#[derive(Debug)]
pub enum Staging {
    /// Every row has its bucket. `finish` or `abort` must follow.
    Staged(Staged),
    /// Some rows might go to stored buckets. Answer all of these requests with `offer`, in any order, and stage the
    /// batch again. Without requests, many rows have got a bucket, and the others are to be staged now.
    Reopen(Vec<ReopenRequest>),
}

/// The rows of one commit split by series, with the progress of each series.
pub struct Batch {
    /// Rows without their metadata column, all columns plain.
    pub(super) block: Block,
    pub(super) series: Vec<BatchSeries>,
    /// Row numbers grouped by series, and by time within a series.
    pub(super) order: Vec<u32>,
    /// Sections with the number of their series. Those of one series are in order and divide its rows.
    pub(super) sections: Vec<(usize, Section)>,
    pub(super) facts: Facts,
    /// The catalog state that `series` and `sections` refer to; 0 before the first `stage`.
    pub(super) round: u64,
    /// How often that state was lost.
    pub(super) restarts: usize,
}

impl Catalog {
    /// A batch of the measurements in `block`, whose time column must be a date column without holes.
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
            BatchSeries { meta, next: rows.start, rows, slot: 0, search: BucketSearch::default() }
        });
        let series = series.collect();
        let facts = Facts::of(&block, &self.options);
        Batch { facts, block, series, order, sections: Vec::new(), round: 0, restarts: 0 }
    }
}

impl Batch {
    /// The rows in the order of their sections, once all have a bucket.
    pub(super) fn staged(&mut self) -> Staged {
        // Only series that waited for stored buckets are out of order.
        if !self.sections.is_sorted_by_key(|(series, _)| *series) {
            sort_by(&mut self.sections, |(a, _), (b, _)| a.cmp(b));
        }
        let sections: Vec<Section> = std::mem::take(&mut self.sections).into_iter().map(|(_, s)| s).listed();
        let extended_range = sections.iter().any(|s| is_extended_range(s.min_time_ms) || is_extended_range(s.last_ms));
        let block = std::mem::replace(&mut self.block, Block::new(0));
        let in_order = self.order.iter().enumerate().all(|(at, row)| at == *row as usize);
        let rows = if in_order { block } else { block.gather(&self.order) };
        Staged { rows, sections, extended_range }
    }
}

/// The time column.
///
/// Errors: an internal error if the time column does not hold dates.
pub(super) fn dates<'a>(block: &'a Block, time_field: &str) -> Result<&'a [i64]> {
    match block.column(time_field).map(Column::data) {
        Some(ColumnData::Date(times)) => Ok(times),
        _ => Err(Error::internal("Staged rows have no date column as their time field")),
    }
}

/// Sorts rows by time, stable.
pub(super) fn sort_by_time(rows: &mut [u32], times_ms: &[i64]) {
    let time = |row: &u32| times_ms.get(*row as usize).copied().unwrap_or_default();
    if !rows.is_sorted_by_key(time) {
        // Flipping the sign bit makes unsigned keys sort as signed times.
        let mut keyed: Vec<(u64, u32)> = rows.iter().map(|row| (time(row).cast_unsigned() ^ 1 << 63, *row)).collect();
        sort_rows(&mut keyed);
        rows.iter_mut().zip(keyed).for_each(|(row, (_, sorted))| *row = sorted);
    }
}
