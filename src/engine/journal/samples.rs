//! Journal records for tests.

use std::rc::Rc;

use super::entry::JournalEntry;
use super::record::{CommitOrder, Record};
use crate::block::{Block, Column, ColumnData};
use crate::bucket::{BucketId, Granularity, TimeseriesOptions};
use crate::catalog::Section;
use crate::value::{Collation, OwnedValue};

/// Options of a collection with the time field `t` and the meta field `m`.
pub fn options() -> TimeseriesOptions {
    TimeseriesOptions {
        time_field: "t".to_owned(),
        meta_field: Some("m".to_owned()),
        rebucketed: false,
        granularity: Some(Granularity::Seconds),
        span_seconds: 3_600,
        rounding_seconds: None,
        collation: Collation::default(),
    }
}

/// The entry of a commit with one section for each `(bucket, times)`. The metadata is the number of the bucket, and `x`
/// is twice the time.
pub fn entry(context: u8, seq: u64, sections: &[(u8, &[i64])]) -> JournalEntry {
    let times: Vec<i64> = sections.iter().flat_map(|(_, times)| times.iter().copied()).collect();
    let mut rows = Block::new(times.len());
    let doubles = times.iter().map(|time| 2.0 * *time as f64).collect();
    rows.set_column("t", Column::new(ColumnData::Date(times), None));
    rows.set_column("x", Column::new(ColumnData::F64(doubles), None));
    let section = |(bucket, times): &(u8, &[i64])| Section {
        bucket: BucketId::from_bytes([*bucket; 12]),
        min_time_ms: 0,
        meta: Some(OwnedValue::int32(i32::from(*bucket))),
        rows: times.len(),
        first_ms: times.iter().copied().min().unwrap_or_default(),
        last_ms: times.iter().copied().max().unwrap_or_default(),
    };
    let record = Record::encode(rows, sections.iter().map(section).collect(), CommitOrder::default()).0;
    JournalEntry::new(([context; 8], seq), record)
}

/// As `entry`, in an `Rc`.
pub fn shared(context: u8, seq: u64, sections: &[(u8, &[i64])]) -> Rc<JournalEntry> {
    Rc::new(entry(context, seq, sections))
}
