//! A bucket that takes measurements, and the question whether it takes the next ones.

use crate::block::Block;
use crate::bucket::{BucketId, Rows, Schema};
use crate::limits::{BUCKET_COUNT_MAX, BUCKET_COUNT_MIN, BUCKET_SIZE_BYTES_MAX, LARGE_BUCKET_SIZE_BYTES_MAX};

/// Why an open bucket makes room for a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RolloverReason {
    /// The measurement lies beyond the bucket's span.
    TimeForward,
    /// The measurement lies before the bucket's start.
    TimeBackward,
    /// The bucket holds `BUCKET_COUNT_MAX` measurements.
    Count,
    /// The bucket reached its size.
    Size,
    /// A field has another type than in the bucket.
    SchemaChange,
}

/// The open bucket of a series.
#[derive(Debug)]
pub struct OpenBucket {
    pub id: BucketId,
    pub min_time_ms: i64,
    /// Measurements staged and committed.
    pub count: usize,
    /// Estimated size of the stored document.
    size_bytes: usize,
    schema: Schema,
}

impl OpenBucket {
    /// A bucket without measurements that begins at `min_time_ms`.
    pub fn new(id: BucketId, min_time_ms: i64) -> OpenBucket {
        OpenBucket { id, min_time_ms, count: 0, size_bytes: 0, schema: Schema::new() }
    }

    /// Takes as many of `rows` (their times ascending, row numbers into `block`) as fit, in the order of the server's
    /// rollover checks: time forward, time backward, count, size, schema.
    ///
    /// Answers how many it took, and why not more. A bucket without measurements takes at least one row.
    pub fn take(
        &mut self,
        block: &Block,
        times_ms: &[i64],
        rows: &[u32],
        span_ms: i64,
        row_sizes: &RowSizes,
    ) -> (usize, Option<RolloverReason>) {
        let time = |row: &u32| times_ms.get(*row as usize).copied().unwrap_or_default();
        let Some(first) = rows.first() else { return (0, None) };
        if self.count > 0 && time(first) < self.min_time_ms {
            return (0, Some(RolloverReason::TimeBackward));
        }
        let within = rows.partition_point(|row| time(row).saturating_sub(self.min_time_ms) < span_ms);
        let mut reason = (within < rows.len()).then_some(RolloverReason::TimeForward);
        let mut taken = within;
        if self.count + taken > BUCKET_COUNT_MAX {
            taken = BUCKET_COUNT_MAX.saturating_sub(self.count);
            reason = Some(RolloverReason::Count);
        }
        let fitting = self.fitting_by_size(rows.get(..taken).unwrap_or_default(), row_sizes);
        if fitting < taken {
            taken = fitting;
            reason = Some(RolloverReason::Size);
        }
        let fitting = self.schema.fits_run(block, Rows::List(rows.get(..taken).unwrap_or_default()), None);
        if fitting < taken {
            taken = fitting;
            reason = Some(RolloverReason::SchemaChange);
        }
        let run = rows.get(..taken).unwrap_or_default();
        self.size_bytes += run.iter().map(|row| row_sizes.of(*row)).sum::<usize>();
        self.count += taken;
        (taken, reason)
    }

    /// How many of `rows` fit by size. Fewer than `BUCKET_COUNT_MIN` large measurements may pass the normal size.
    fn fitting_by_size(&self, rows: &[u32], row_sizes: &RowSizes) -> usize {
        let mut size = self.size_bytes;
        for (taken, row) in rows.iter().enumerate() {
            let count = self.count + taken;
            size += row_sizes.of(*row);
            let limit = if count < BUCKET_COUNT_MIN { LARGE_BUCKET_SIZE_BYTES_MAX } else { BUCKET_SIZE_BYTES_MAX };
            if size > limit && count > 0 {
                return taken;
            }
        }
        rows.len()
    }
}

/// Estimated bytes that each row of a block adds to a stored bucket.
pub enum RowSizes {
    /// Every row the same: all columns have a fixed width.
    Fixed(usize),
    /// A size a row.
    Varying(Vec<usize>),
}

impl RowSizes {
    /// Sizes of the rows of `block`: type byte, row number and its end (up to five bytes), and the value.
    pub fn of_block(block: &Block) -> RowSizes {
        use crate::block::ColumnData as D;
        const CELL_OVERHEAD: usize = 5;
        let mut fixed = 0;
        let mut varying = vec![];
        for (_, column) in block.columns() {
            fixed += CELL_OVERHEAD;
            match column.data() {
                D::F64(_) | D::I64(_) | D::Date(_) => fixed += 8,
                D::I32(_) => fixed += 4,
                D::Bool(_) => fixed += 1,
                D::ObjectId(_) => fixed += 12,
                D::String(v) | D::Bson(v) => varying.push(v),
                D::Dictionary(..) => {}
            }
        }
        if varying.is_empty() {
            return RowSizes::Fixed(fixed);
        }
        let of_row = |row| fixed + varying.iter().map(|v| 5 + v.get(row).len()).sum::<usize>();
        RowSizes::Varying((0..block.rows()).map(of_row).collect())
    }

    fn of(&self, row: u32) -> usize {
        match self {
            RowSizes::Fixed(size) => *size,
            RowSizes::Varying(sizes) => sizes.get(row as usize).copied().unwrap_or_default(),
        }
    }
}
