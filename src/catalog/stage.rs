//! From a block of measurements to sections: runs of rows, each for one bucket.

use std::collections::HashMap;

use super::open_bucket::{OpenBucket, RolloverReason, RowSizes};
use super::series;
use super::stats::Stats;
use crate::block::{Block, Column, ColumnData};
use crate::bucket::{BucketId, IdGenerator, TimeseriesOptions, bucket_start_ms, is_extended_range};
use crate::error::{Error, ErrorCode, Result};
use crate::value::{OwnedValue, sort_rows};

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
    /// True where a section opens a bucket outside the standard date range.
    pub extended_range: bool,
}

/// The open buckets of one collection in this context.
pub struct Catalog {
    options: TimeseriesOptions,
    ids: IdGenerator,
    open: HashMap<Option<OwnedValue>, OpenBucket>,
    stats: Stats,
}

impl Catalog {
    /// A catalog without open buckets; `seed` starts the bucket ids and must be random.
    pub fn new(options: TimeseriesOptions, seed: u64) -> Catalog {
        Catalog { options, ids: IdGenerator::new(seed), open: HashMap::new(), stats: Stats::default() }
    }

    /// What was counted.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// Number of open buckets.
    pub fn open_count(&self) -> usize {
        self.open.len()
    }

    /// Picks or opens buckets for the measurements of `block`, whose time column is a date column without holes.
    ///
    /// The rows count as staged at once; `finish` or `abort` must follow.
    /// Errors: an internal error where the time column is not as it must be; `Location6130900` where ids ran out.
    pub fn stage(&mut self, mut block: Block) -> Result<Staged> {
        let meta = self.options.meta_field.clone().and_then(|name| block.remove_column(&name));
        let block = block.map_columns(Column::into_plain);
        let times_ms: &[i64] = match block.column(&self.options.time_field).map(Column::data) {
            Some(ColumnData::Date(times)) => times,
            _ => return Err(Error::internal("Staged rows have no date column for the time field")),
        };
        let row_sizes = RowSizes::of_block(&block);
        let mut order: Vec<u32> = Vec::with_capacity(block.rows());
        let mut sections = Vec::new();
        for mut series in series::split(meta.as_ref(), block.rows()) {
            let time = |row: &u32| times_ms.get(*row as usize).copied().unwrap_or_default();
            if !series.rows.is_sorted_by_key(time) {
                // Flipping the sign bit makes the order of unsigned keys out of that of times.
                let key = |row: u32| (time(&row).cast_unsigned() ^ 1 << 63, row);
                let mut keyed: Vec<(u64, u32)> = series.rows.iter().map(|row| key(*row)).collect();
                sort_rows(&mut keyed);
                series.rows = keyed.into_iter().map(|(_, row)| row).collect();
            }
            let mut rest: &[u32] = &series.rows;
            while let Some(first) = rest.first() {
                let bucket = match self.open.entry(series.meta.clone()) {
                    std::collections::hash_map::Entry::Occupied(slot) => slot.into_mut(),
                    std::collections::hash_map::Entry::Vacant(slot) => {
                        self.stats.buckets_opened += 1;
                        let min_time_ms = bucket_start_ms(time(first), self.options.effective_rounding_seconds());
                        slot.insert(OpenBucket::new(self.ids.next(min_time_ms), min_time_ms))
                    }
                };
                let span_ms = self.options.span_ms();
                let fresh = bucket.count == 0;
                let (taken, reason) = bucket.take(&block, times_ms, rest, span_ms, &row_sizes);
                if taken == 0 && fresh {
                    return Err(Error::new(
                        ErrorCode::InternalError,
                        "A new bucket did not take its first measurement",
                    ));
                }
                let (run, tail) = rest.split_at(taken);
                if let (Some(first), Some(last)) = (run.first(), run.last()) {
                    sections.push(Section {
                        bucket: bucket.id,
                        min_time_ms: bucket.min_time_ms,
                        meta: series.meta.clone(),
                        rows: taken,
                        first_ms: time(first),
                        last_ms: time(last),
                    });
                    order.extend_from_slice(run);
                }
                if let Some(reason) = reason {
                    self.open.remove(&series.meta);
                    self.stats.count_rollover(reason);
                }
                rest = tail;
            }
        }
        let extended_range = sections.iter().any(|s| is_extended_range(s.min_time_ms) || is_extended_range(s.last_ms));
        let in_order = order.iter().enumerate().all(|(at, row)| at == *row as usize);
        let rows = if in_order { block } else { block.gather(&order) };
        Ok(Staged { rows, sections, extended_range })
    }

    /// The staged rows are durable.
    pub fn finish(&mut self, staged_rows: usize) {
        self.stats.commits += 1;
        self.stats.measurements_committed += staged_rows as u64;
    }

    /// The staged rows were not stored: the buckets that counted them are forgotten, because their counts and schemas
    /// hold facts that never came true.
    pub fn abort(&mut self, sections: &[Section]) {
        self.open.retain(|_, bucket| sections.iter().all(|s| s.bucket != bucket.id));
    }

    /// Forgets every open bucket: stored buckets were changed behind the catalog's back.
    pub fn clear(&mut self) {
        self.open.clear();
    }
}

impl Stats {
    fn count_rollover(&mut self, reason: RolloverReason) {
        let counter = match reason {
            RolloverReason::TimeForward => &mut self.closed_due_to_time_forward,
            RolloverReason::TimeBackward => &mut self.archived_due_to_time_backward,
            RolloverReason::Count => &mut self.closed_due_to_count,
            RolloverReason::Size => &mut self.closed_due_to_size,
            RolloverReason::SchemaChange => &mut self.closed_due_to_schema_change,
        };
        *counter += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{ColumnBuilder, pivot_docs};
    use crate::value::Doc;
    use bson::{DateTime, RawDocumentBuf, rawdoc};

    const MIN: i64 = 60_000;

    fn catalog() -> Catalog {
        let command = rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } };
        let options =
            crate::bucket::CollectionOptions::parse_create(Doc::parse(command.as_bytes()).unwrap(), 0).unwrap();
        Catalog::new(options.timeseries, 7)
    }

    fn block(docs: &[RawDocumentBuf]) -> Block {
        pivot_docs(docs.iter().map(|d| Doc::parse(d.as_bytes()).unwrap())).unwrap()
    }

    fn at(ms: i64) -> RawDocumentBuf {
        rawdoc! { "t": DateTime::from_millis(ms), "m": "a", "x": 1.0 }
    }

    fn shape(staged: &Staged) -> Vec<(i64, usize)> {
        staged.sections.iter().map(|s| (s.min_time_ms, s.rows)).collect()
    }

    #[test]
    fn a_measurement_beyond_the_span_opens_a_second_bucket() {
        let mut catalog = catalog();
        let staged = catalog.stage(block(&[at(0), at(59 * MIN + 59_999), at(60 * MIN), at(61 * MIN)])).unwrap();
        assert_eq!(shape(&staged), [(0, 2), (60 * MIN, 2)]);
        assert_eq!(catalog.stats().closed_due_to_time_forward, 1);
    }

    #[test]
    fn a_measurement_before_the_bucket_opens_another_and_is_counted_as_time_backward() {
        let mut catalog = catalog();
        catalog.stage(block(&[at(120 * MIN)])).unwrap();
        let staged = catalog.stage(block(&[at(119 * MIN)])).unwrap();
        assert_eq!(shape(&staged), [(119 * MIN, 1)]);
        assert_eq!(catalog.stats().archived_due_to_time_backward, 1);
    }

    #[test]
    fn a_bucket_takes_a_thousand_measurements_over_several_inserts() {
        let mut catalog = catalog();
        let docs: Vec<_> = (0..700).map(at).collect();
        assert_eq!(shape(&catalog.stage(block(&docs)).unwrap()), [(0, 700)]);
        assert_eq!(shape(&catalog.stage(block(&docs)).unwrap()), [(0, 300), (0, 400)]);
        assert_eq!(catalog.stats().closed_due_to_count, 1);
    }

    #[test]
    fn a_field_that_changes_its_type_closes_the_bucket() {
        let mut catalog = catalog();
        let text = |ms| rawdoc! { "t": DateTime::from_millis(ms), "m": "a", "x": "text" };
        let staged = catalog.stage(block(&[at(0), at(1), text(2), text(3), at(4)])).unwrap();
        assert_eq!(shape(&staged), [(0, 2), (0, 2), (0, 1)]);
        assert_eq!(catalog.stats().closed_due_to_schema_change, 2);
    }

    #[test]
    fn large_measurements_close_a_bucket_by_size_but_never_below_the_least_count() {
        let mut catalog = catalog();
        let big = |ms| rawdoc! { "t": DateTime::from_millis(ms), "m": "a", "x": "y".repeat(40_000) };
        let docs: Vec<_> = (0..25).map(big).collect();
        let staged = catalog.stage(block(&docs)).unwrap();
        assert_eq!(shape(&staged), [(0, 10), (0, 10), (0, 5)]);
        assert_eq!(catalog.stats().closed_due_to_size, 2);
    }

    #[test]
    fn series_are_kept_apart_and_rows_of_one_series_are_sorted_by_time() {
        let mut catalog = catalog();
        let of = |ms, m: &str| rawdoc! { "t": DateTime::from_millis(ms), "m": m, "x": ms as f64 };
        let staged = catalog.stage(block(&[of(5, "a"), of(1, "b"), of(3, "a"), of(2, "b"), of(4, "a")])).unwrap();
        assert_eq!(
            staged.sections.iter().map(|s| (s.rows, s.first_ms, s.last_ms)).collect::<Vec<_>>(),
            [(3, 3, 5), (2, 1, 2)]
        );
        assert!(staged.rows.column("m").is_none());
        assert_eq!(staged.rows.column("t").unwrap().data(), &ColumnData::Date(vec![3, 4, 5, 1, 2]));
        assert_ne!(staged.sections[0].bucket, staged.sections[1].bucket);
    }

    #[test]
    fn an_aborted_commit_leaves_no_trace_in_the_bucket_that_it_would_have_filled() {
        let mut catalog = catalog();
        let docs: Vec<_> = (0..600).map(at).collect();
        let staged = catalog.stage(block(&docs)).unwrap();
        catalog.abort(&staged.sections);
        assert_eq!(catalog.open_count(), 0);
        assert_eq!(shape(&catalog.stage(block(&docs)).unwrap()), [(0, 600)]);
    }

    #[test]
    fn dates_outside_the_standard_range_are_noticed() {
        let mut catalog = catalog();
        assert!(!catalog.stage(block(&[at(0)])).unwrap().extended_range);
        assert!(catalog.stage(block(&[at(-1)])).unwrap().extended_range);
    }

    #[test]
    fn rows_without_a_date_column_are_an_internal_error() {
        let mut rows = Block::new(1);
        let mut builder = ColumnBuilder::new();
        builder.push(OwnedValue::double(1.0).view());
        rows.set_column("t", builder.finish());
        assert_eq!(catalog().stage(rows).unwrap_err().code, ErrorCode::InternalError);
    }
}
