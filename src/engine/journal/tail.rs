//! The rows of one bucket that are not folded yet, as growing columns with a summary: they read like a bucket that needs no decoding.

use super::entry::SectionRef;
use crate::block::{Block, ColumnData};
use crate::bucket::{BucketDoc, BucketId, MinMax, Rows, TimeseriesOptions};
use crate::error::{Error, Result};
use crate::value::{DocBuf, Value};

/// Rows of one bucket and one metadata, in commit order of each context.
pub struct Tail {
    rows: Block,
    sections: usize,
    summary: MinMax,
    min: DocBuf,
    max: DocBuf,
    min_time_ms: i64,
    first: Edge,
    last: Edge,
}

/// The row that is first, or last, by time.
#[derive(Clone, Copy)]
struct Edge {
    time_ms: i64,
    row: usize,
}

impl Tail {
    /// A tail without rows, of a bucket that begins at `min_time_ms`.
    pub fn new(min_time_ms: i64, options: &TimeseriesOptions) -> Tail {
        let summary = MinMax::seed_time(&options.time_field, min_time_ms, &options.collation);
        let (min, max) = (summary.min_doc(), summary.max_doc());
        let (first, last) = (Edge { time_ms: i64::MAX, row: 0 }, Edge { time_ms: i64::MIN, row: 0 });
        Tail { rows: Block::new(0), sections: 0, summary, min, max, min_time_ms, first, last }
    }

    /// The rows of sections, whatever their commits.
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

    /// Adds the rows of further sections.
    ///
    /// Errors: `DataCorruptionDetected` if rows have no dates.
    pub fn extend(&mut self, sections: &[SectionRef], options: &TimeseriesOptions) -> Result<()> {
        let before = self.rows.rows();
        let parts: Vec<_> = sections.iter().map(SectionRef::rows).collect();
        self.rows.append_slices(&parts);
        self.sections += sections.len();
        let (added, time_field) = (Rows::from(before..self.rows.rows()), &*options.time_field);
        let mut changed = self.summary.update_rows(&self.rows, added, Some(time_field));
        let times = match self.rows.column(time_field).map(|times| (times.data(), times.presence())) {
            Some((ColumnData::Date(times), None)) => times,
            _ => return Err(Error::corrupt("A journal record holds rows without dates")),
        };
        // Of rows of one time the first of all is first, and the last of all is last.
        for (row, time_ms) in times.iter().copied().enumerate().skip(before) {
            if time_ms < self.first.time_ms || row == 0 {
                self.first = Edge { time_ms, row };
            }
            if time_ms >= self.last.time_ms {
                self.last = Edge { time_ms, row };
            }
        }
        if let Some(column) = self.rows.column(time_field) {
            // Nearly always the latest time is all that is new, and stands first.
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
        Ok(())
    }

    /// The rows: the time and the other fields, without the metadata.
    pub fn rows(&self) -> &Block {
        &self.rows
    }

    /// How many sections it was made of.
    pub fn sections(&self) -> usize {
        self.sections
    }

    /// The place of the row that is first by time, or of that which is last.
    pub fn edge(&self, is_last: bool) -> usize {
        if is_last { self.last.row } else { self.first.row }
    }

    /// The time of that row.
    pub fn edge_ms(&self, is_last: bool) -> i64 {
        if is_last { self.last.time_ms } else { self.first.time_ms }
    }

    /// The bucket that these rows would be, for all that is asked of one before its columns are.
    pub fn summary<'a>(&'a self, bucket: BucketId, meta: Option<Value<'a>>) -> BucketDoc<'a> {
        let bounds = (self.min_time_ms, self.last.time_ms.max(self.min_time_ms));
        BucketDoc::of_summary(bucket, meta, (self.min.view(), self.max.view()), bounds, self.rows.rows())
    }

    /// Bytes that it takes in memory, about.
    pub fn size_bytes(&self) -> usize {
        self.rows.size_bytes() + 4 * (self.min.view().as_bytes().len() + self.max.view().as_bytes().len()) + 200
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{options, shared};
    use super::super::sections::ByBucket;
    use super::*;
    use crate::bucket::{BucketFormat, merge};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_tail_says_of_its_rows_what_a_bucket_of_them_says(
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
            // Of rows of one time the one in front is first, and the one behind is last.
            prop_assert_eq!(Some(tail.edge(false)), (0..times.len()).min_by_key(|row| times[*row]));
            prop_assert_eq!(Some(tail.edge(true)), (0..times.len()).max_by_key(|row| times[*row]));
        }
    }

    #[test]
    fn a_tail_that_somebody_reads_stays_as_it_was() {
        let (options, mut by_bucket) = (options(), ByBucket::default());
        by_bucket.push(&shared(1, 0, &[(3, &[5])]));
        let before = by_bucket.tail(&by_bucket.groups()[0], &options).unwrap();
        by_bucket.push(&shared(1, 1, &[(3, &[4])]));
        let after = by_bucket.tail(&by_bucket.groups()[0], &options).unwrap();
        assert_eq!((before.rows().rows(), after.rows().rows(), after.edge(false)), (1, 2, 1));
    }
}
