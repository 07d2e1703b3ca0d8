//! The unfolded rows of one bucket as growing columns with a summary: they read like a bucket that needs no decoding
//! (I24).

use std::ops::Range;

use super::entry::SectionRef;
use super::texts::TailTexts;
use crate::block::{Block, ColumnData};
use crate::bucket::{BucketDoc, BucketId, KeptColumns, MinMax, Rows, TimeseriesOptions};
use crate::error::{Error, Result};
use crate::value::{DocBuf, FieldSet, Value};

/// Rows of one bucket with the same metadata, in commit order per context.
pub struct Tail {
    rows: Block,
    sections: usize,
    summary: MinMax,
    min: DocBuf,
    max: DocBuf,
    min_time_ms: i64,
    first: TimedRow,
    last: TimedRow,
    texts: TailTexts,
    size_bytes: usize,
    /// Where it is found among the rows that are joined with those of other buckets.
    kept: KeptColumns,
}

/// The first or the last row by time.
#[derive(Clone, Copy)]
struct TimedRow {
    time_ms: i64,
    row: usize,
}

impl Tail {
    /// An empty tail of a bucket that begins at `min_time_ms`.
    pub fn new(min_time_ms: i64, options: &TimeseriesOptions) -> Tail {
        let summary = MinMax::seed_time(&options.time_field, min_time_ms, &options.collation);
        let (min, max) = (summary.min_doc(), summary.max_doc());
        let (first, last) = (TimedRow { time_ms: i64::MAX, row: 0 }, TimedRow { time_ms: i64::MIN, row: 0 });
        let (texts, kept) = (TailTexts::default(), KeptColumns::default());
        Tail {
            rows: Block::new(0),
            sections: 0,
            summary,
            min,
            max,
            min_time_ms,
            first,
            last,
            texts,
            size_bytes: 0,
            kept,
        }
    }

    /// The rows of the given sections, from any commits.
    ///
    /// Errors: as `extend`.
    pub fn of<'a>(
        sections: impl Iterator<Item = &'a SectionRef>,
        min_time_ms: i64,
        options: &TimeseriesOptions,
    ) -> Result<Tail> {
        let mut tail = Tail::new(min_time_ms, options);
        let sections: Vec<SectionRef> = sections.cloned().collect();
        tail.extend(&sections, options)?;
        Ok(tail)
    }

    /// These rows.
    ///
    /// Errors: as `extend`.
    pub fn of_rows(rows: &Block, min_time_ms: i64, options: &TimeseriesOptions) -> Result<Tail> {
        let mut tail = Tail::new(min_time_ms, options);
        tail.add_rows(&[(rows, 0..rows.rows())], options)?;
        Ok(tail)
    }

    /// Adds the rows of further sections.
    ///
    /// Errors: `DataCorruptionDetected` if the times of the rows are not dates.
    pub fn extend(&mut self, sections: &[SectionRef], options: &TimeseriesOptions) -> Result<()> {
        let parts: Vec<_> = sections.iter().map(SectionRef::rows).collect();
        self.sections += sections.len();
        self.add_rows(&parts, options)
    }

    /// Adds rows.
    ///
    /// Errors: as `extend`.
    pub(super) fn add_rows(&mut self, parts: &[(&Block, Range<usize>)], options: &TimeseriesOptions) -> Result<()> {
        // Joined rows are not those of the new tail.
        self.kept = KeptColumns::default();
        let before = self.rows.rows();
        self.rows.append_slices(parts);
        let (added, time_field) = (Rows::from(before..self.rows.rows()), &*options.time_field);
        let mut changed = self.summary.update_rows(&self.rows, added, Some(time_field));
        let times = match self.rows.column(time_field).map(|times| (times.data(), times.presence())) {
            Some((ColumnData::Date(times), None)) => times,
            _ => return Err(Error::corrupt("A journal record has rows without dates")),
        };
        // Of rows with equal times, the earliest one is first and the latest one is last.
        for (row, time_ms) in times.iter().copied().enumerate().skip(before) {
            if time_ms < self.first.time_ms || row == 0 {
                self.first = TimedRow { time_ms, row };
            }
            if time_ms >= self.last.time_ms {
                self.last = TimedRow { time_ms, row };
            }
        }
        if let Some(column) = self.rows.column(time_field) {
            // Nearly always only the latest time is new, and it comes first.
            let time = self.summary.update_column(time_field, column, added);
            changed.min |= time.min;
            changed.max |= time.max && (changed.max || !self.max.set_first_date(self.last.time_ms));
        }
        if changed.min {
            self.min = self.summary.min_doc();
        }
        if changed.max {
            self.max = self.summary.max_doc();
        }
        let bounds = self.min.view().as_bytes().len() + self.max.view().as_bytes().len();
        self.size_bytes = self.rows.size_bytes() + 4 * bounds + 200;
        Ok(())
    }

    /// The rows: time and other fields, without the metadata.
    pub fn rows(&self) -> &Block {
        &self.rows
    }

    /// What stays in memory of its rows together with those of other buckets.
    pub fn kept(&self) -> &KeptColumns {
        &self.kept
    }

    /// All rows with these columns, as they are best for queries.
    pub fn columns(&self, wanted: &FieldSet) -> Block {
        let mut rows = self.rows.slice_columns(0..self.rows.rows(), |name| wanted.contains(name));
        // Reads of all fields mostly return objects as they are.
        self.texts.number_if_loaded(&mut rows, !wanted.is_all());
        rows
    }

    /// How many sections it was made of.
    pub fn sections(&self) -> usize {
        self.sections
    }

    /// The position of the first row by time, or of the last.
    pub fn first_or_last_row(&self, is_last: bool) -> usize {
        if is_last { self.last.row } else { self.first.row }
    }

    /// The time of the first row, or of the last.
    pub fn first_or_last_ms(&self, is_last: bool) -> i64 {
        if is_last { self.last.time_ms } else { self.first.time_ms }
    }

    /// The bucket that these rows would make, for everything that is asked before columns are decoded.
    pub fn summary<'a>(&'a self, bucket: BucketId, meta: Option<Value<'a>>) -> BucketDoc<'a> {
        let bounds = (self.min_time_ms, self.last.time_ms.max(self.min_time_ms));
        BucketDoc::of_summary(bucket, meta, (self.min.view(), self.max.view()), bounds, self.rows.rows())
    }

    /// Approximate bytes in memory.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{options, shared};
    use super::super::sections::ByBucket;
    use super::*;
    use std::rc::Rc;

    use crate::bucket::{BucketFormat, ColumnRoom, JoinedFields, joined_rows, merge};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_summary_of_a_tail_equals_that_of_a_bucket_of_its_rows(
            commits in prop::collection::vec(prop::collection::vec(0_i64..3_000_000, 1..6), 1..12), read in 0_usize..12,
        ) {
            let (options, mut by_bucket) = (options(), ByBucket::default());
            for (seq, times) in commits.iter().enumerate() {
                by_bucket.push(&shared(1, seq as u64, &[(3, times)]));
                if seq == read {
                    by_bucket.tail(&by_bucket.groups()[0], &options).unwrap();
                }
            }
            let group = &by_bucket.groups()[0];
            let tail = by_bucket.tail(group, &options).unwrap();
            let times: Vec<i64> = commits.concat();
            prop_assert_eq!(tail.rows().rows(), times.len());
            prop_assert_eq!(tail.rows().column("t").unwrap().data(), &ColumnData::Date(times.clone()));
            let sections: Vec<_> = group.sections().iter().map(SectionRef::rows).collect();
            let document =
                merge(None, &group.bucket, 0, group.meta(), &sections, BucketFormat::Compressed, &options).unwrap();
            let (stored, summary) = (BucketDoc::parse(document.view(), &options).unwrap(), tail.summary(group.bucket, group.meta()));
            prop_assert_eq!((stored.control_min(), stored.control_max()), (summary.control_min(), summary.control_max()));
            prop_assert_eq!((stored.min_time_ms(), stored.max_time_ms()), (summary.min_time_ms(), summary.max_time_ms()));
            prop_assert_eq!((stored.count(), stored.meta()), (summary.count(), summary.meta()));
            // Of rows with equal times, the earliest is the first one and the latest is the last one.
            prop_assert_eq!(Some(tail.first_or_last_row(false)), (0..times.len()).min_by_key(|row| times[*row]));
            prop_assert_eq!(Some(tail.first_or_last_row(true)), (0..times.len()).max_by_key(|row| times[*row]));
        }
    }

    #[test]
    fn extending_a_tail_does_not_change_it_for_its_readers() {
        let (options, mut by_bucket) = (options(), ByBucket::default());
        by_bucket.push(&shared(1, 0, &[(3, &[5])]));
        let before = by_bucket.tail(&by_bucket.groups()[0], &options).unwrap();
        by_bucket.push(&shared(1, 1, &[(3, &[4])]));
        let after = by_bucket.tail(&by_bucket.groups()[0], &options).unwrap();
        assert_eq!((before.rows().rows(), after.rows().rows(), after.first_or_last_row(false)), (1, 2, 1));
    }

    #[test]
    fn a_tail_that_has_grown_is_not_taken_for_the_one_whose_rows_were_joined() {
        let (options, mut by_bucket, room) = (options(), ByBucket::default(), Rc::new(ColumnRoom::new(1 << 20)));
        let fields = JoinedFields { columns: Rc::default(), has_meta: false, in_any_order: false, only: None };
        let mut numbers = Vec::new();
        for seq in 0..4 {
            by_bucket.push(&shared(1, seq / 2 * 2, &[(3, &[5])]));
            for _ in 0..3 {
                let tail = by_bucket.tail(&by_bucket.groups()[0], &options).unwrap();
                tail.kept().allow(&room);
                let mut make = || Ok(vec![tail.rows().clone()]);
                let joined = joined_rows(&[(tail.kept(), tail.rows().rows())], &fields, &mut make).unwrap();
                numbers.push(joined[0].rows());
            }
        }
        assert_eq!(numbers, [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4]);
    }
}
