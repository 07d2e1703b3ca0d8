//! Rows in time order.

use std::ops::Range;

use crate::block::{Block, ColumnData};
use crate::error::{Error, Result};
use crate::value::sort_rows;

/// The times of rows `range`.
///
/// Errors: `InternalError` if the time column does not hold dates, or is shorter than the block.
pub(super) fn dates<'a>(block: &'a Block, range: Range<usize>, time_field: &str) -> Result<&'a [i64]> {
    let times = match block.column(time_field).map(|column| column.data()) {
        Some(ColumnData::Date(times)) => times.get(range),
        _ => None,
    };
    times.ok_or_else(|| Error::internal("Rows for a bucket have no date column"))
}

/// The times of all rows.
///
/// Errors: as `dates`.
pub fn times_of<'a>(block: &'a Block, time_field: &str) -> Result<&'a [i64]> {
    dates(block, 0..block.rows(), time_field)
}

/// Rows `range` in time order, stable; `None` if they already are.
///
/// Errors: as `dates`.
pub(super) fn in_time_order(block: &Block, range: Range<usize>, time_field: &str) -> Result<Option<Block>> {
    if range.len() <= 1 {
        return Ok(None);
    }
    let start = range.start;
    let times = dates(block, range, time_field)?;
    if times.is_sorted() {
        return Ok(None);
    }
    // With the sign flipped, so that dates before 1970 come first.
    let key = |ms: i64| ms.cast_unsigned() ^ 1 << 63;
    let row = |at: usize| u32::try_from(start + at).unwrap_or(u32::MAX);
    let mut rows: Vec<(u64, u32)> = times.iter().enumerate().map(|(at, ms)| (key(*ms), row(at))).collect();
    sort_rows(&mut rows);
    let rows: Vec<u32> = rows.into_iter().map(|(_, row)| row).collect();
    Ok(Some(block.gather(&rows)))
}

#[cfg(test)]
mod tests {
    use super::super::samples::{block, documents};
    use super::*;
    use bson::{DateTime, RawDocumentBuf, rawdoc};

    fn row(ms: i64, n: i32) -> RawDocumentBuf {
        rawdoc! { "t": DateTime::from_millis(ms), "n": n }
    }

    #[test]
    fn rows_with_equal_times_keep_their_order_and_dates_before_1970_come_first() {
        let rows = block(&[row(9, 0), row(5, 1), row(-1, 2), row(5, 3), row(i64::MIN, 4), row(7, 5)]);
        let sorted = in_time_order(&rows, 1..6, "t").unwrap().unwrap();
        let expected = block(&[row(i64::MIN, 4), row(-1, 2), row(5, 1), row(5, 3), row(7, 5)]);
        assert_eq!(documents(&sorted), documents(&expected));
        assert_eq!(in_time_order(&sorted, 0..5, "t"), Ok(None));
    }

    #[test]
    fn sorting_rows_without_dates_is_an_internal_error() {
        let rows = block(&[rawdoc! { "t": 1 }]);
        assert!(dates(&rows, 0..1, "t").is_err());
        assert!(dates(&block(&[row(1, 1)]), 0..2, "t").is_err());
    }
}
