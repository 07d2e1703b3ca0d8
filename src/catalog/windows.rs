//! Assigns the rows of a batch to windows, in collections with `dedupe`. Nothing is looked up and nothing is
//! remembered: every context addresses equal rows to the same window.

// Loaded later.

use super::batch::{Section, Staged, dates, sort_by_time};
use super::series::{self, SeriesRows};
use crate::block::{Block, Column};
use crate::bucket::{SeriesBits, TimeseriesOptions, is_extended_range, window_id, window_start_ms};
use crate::error::Result;
use crate::value::OwnedValue;

/// The rows of `block` by series, window and time. Rows of one series and time stay in the order given.
///
/// Errors: an internal error if the time column does not hold dates.
pub fn stage_windows(mut block: Block, options: &TimeseriesOptions) -> Result<Staged> {
    let meta = options.meta_field.as_deref().and_then(|name| block.remove_column(name));
    let block = block.map_columns(Column::into_plain);
    let times_ms = dates(&block, &options.time_field)?;
    let SeriesRows { mut order, series } = series::split(meta.as_ref(), block.rows());
    let (mut sections, mut start) = (Vec::new(), 0);
    for (meta, len) in series {
        let Some(rows) = order.get_mut(start..start + len) else { continue };
        start += len;
        sort_by_time(rows, times_ms);
        let time = |row: &u32| times_ms.get(*row as usize).copied().unwrap_or_default();
        let bits = SeriesBits::of(meta.as_ref());
        for run in rows.chunk_by(|a, b| window_start_ms(time(a), options) == window_start_ms(time(b), options)) {
            let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
            sections.push(section((time(first), time(last)), run.len(), bits, meta.clone(), options));
        }
    }
    let is_extended = |section: &Section| is_extended_range(section.min_time_ms) || is_extended_range(section.last_ms);
    let extended_range = sections.iter().any(is_extended);
    let in_order = order.iter().zip(0..).all(|(row, at)| *row == at);
    let rows = if in_order { block } else { block.gather(&order) };
    Ok(Staged { rows, sections, extended_range })
}

fn section(
    (first_ms, last_ms): (i64, i64),
    rows: usize,
    bits: SeriesBits,
    meta: Option<OwnedValue>,
    options: &TimeseriesOptions,
) -> Section {
    let min_time_ms = window_start_ms(first_ms, options);
    Section { bucket: window_id(min_time_ms, bits), min_time_ms, meta, rows, first_ms, last_ms }
}
