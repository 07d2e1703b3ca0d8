//! The stored value of a bucket: a small wrapper around the bucket document.
//!
//! `version u8 = 1 · 3 zero bytes · entries u32 · entries · document`. An entry, `context 8 · seq u64 · folded at i64`,
//! says up to which journal record of a context the document holds that context's rows. Integers are little-endian. If
//! the highest bit of the seq is set, the rows of that one record are not in the document but in a bucket of their own,
//! because their metadata differs or the bucket was full. If the next bit is set, the bucket is such a bucket, made from
//! that record and later ones of its context.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;

use super::keyspace::ContextId;
use crate::bucket::{BucketDoc, BucketHead, ColumnRoom, KeptColumns, TimeseriesOptions};
use crate::error::{Error, Result};
use crate::limits::{CURSOR_AGE_MS_MAX, CURSOR_IDLE_MS_MAX};
use crate::listed::IntoList;
use crate::value::{Doc, DocBuf, FieldSet};

const VERSION: u8 = 1;
const ENTRY_LEN: usize = 24;
/// Flag of an entry: the rows of that record went to another bucket.
const WENT: u64 = 1 << 63;
/// Flag of an entry: the bucket was made from rows of that record which left another bucket.
const CAME: u64 = 1 << 62;

/// Up to which record of each context a bucket holds that context's rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    entries: Vec<(ContextId, u64, i64)>,
}

impl Coverage {
    /// True if the rows of that record are in the document.
    pub fn covers(&self, (context, seq): (ContextId, u64)) -> bool {
        let of = || self.entries.iter().filter(move |(c, _, _)| *c == context).map(|(_, up_to, _)| *up_to);
        of().any(|up_to| up_to < CAME && seq <= up_to) && of().all(|up_to| up_to != seq | WENT)
    }

    /// False if no covered record of that context is at this seq or after it.
    pub fn reaches(&self, (context, seq): &(ContextId, u64)) -> bool {
        self.entries.iter().any(|(c, up_to, _)| c == context && *up_to < CAME && up_to >= seq)
    }

    /// Records that the rows of one record are not in this bucket, although they were meant for it.
    pub fn except(&mut self, (context, seq): (ContextId, u64), now_ms: i64) {
        // An interrupted fold has recorded it already.
        if self.entries.iter().all(|(c, marked, _)| *c != context || *marked != seq | WENT) {
            self.entries.push((context, seq | WENT, now_ms));
        }
    }

    /// Records that the bucket was made from rows of a record which left another bucket.
    pub fn came_from(&mut self, (context, seq): (ContextId, u64), now_ms: i64) {
        self.entries.push((context, seq | CAME, now_ms));
    }

    /// The records whose rows came from other buckets. A reader who still has such a record skips this bucket.
    pub fn origins(&self) -> impl Iterator<Item = (ContextId, u64)> {
        let came = self.entries.iter().filter(|(_, seq, _)| *seq & (CAME | WENT) == CAME);
        came.map(|(context, seq, _)| (*context, *seq ^ CAME))
    }

    /// Records that the rows of `context` up to `seq` are in the document since `now_ms`.
    pub fn cover(&mut self, (context, seq): (ContextId, u64), now_ms: i64) {
        if let Some(at) = self.entries.iter().position(|(c, up_to, _)| *c == context && *up_to == seq | WENT) {
            self.entries.remove(at);
        }
        match self.entries.iter_mut().find(|(c, up_to, _)| *c == context && *up_to < CAME) {
            Some(entry) => *entry = (context, entry.1.max(seq), now_ms),
            None => self.entries.push((context, seq, now_ms)),
        }
    }

    /// Makes it reach what another one reaches.
    pub fn join(&mut self, other: &Coverage) {
        for (context, up_to, at) in other.entries.iter().filter(|(_, up_to, _)| *up_to < CAME) {
            self.cover((*context, *up_to), *at);
        }
    }

    /// Drops entries that are no longer needed: cursors opened before that fold have timed out, and `journalled` finds
    /// no record of the context up to that seq. (An interrupted fold leaves records that some buckets hold.)
    ///
    /// Waits somewhat longer, because the clocks of two contexts may differ.
    pub fn expire(&mut self, now_ms: i64, journalled: &dyn Fn(&ContextId, u64) -> bool) {
        let recent = |at: i64| now_ms.saturating_sub(at) <= CURSOR_AGE_MS_MAX + CURSOR_IDLE_MS_MAX;
        self.entries.retain(|(context, up_to, at)| recent(*at) || journalled(context, *up_to & !(CAME | WENT)));
    }
}

/// A bucket as storage holds it.
#[derive(Clone, Debug)]
pub struct StoredBucket {
    /// Which journal records it holds.
    pub coverage: Coverage,
    /// The bucket document.
    pub document: DocBuf,
    /// The row count of its columns, once somebody has read all of them.
    pub checked_rows: Cell<Option<usize>>,
    /// Its first or its last rows, once somebody has asked.
    pub end_rows: RefCell<Option<Rc<EndRows>>>,
    /// Where the parts of the document stand, once somebody has asked.
    head: OnceCell<BucketHead>,
    /// Its decoded columns.
    kept: KeptColumns,
}

/// The rows at one end of a bucket.
#[derive(Debug)]
pub struct EndRows {
    /// True for the last rows, and how many were wanted.
    pub wanted: (bool, usize),
    /// The columns that they are of.
    pub columns: Rc<FieldSet>,
    /// What they have in them: at least the wanted rows, and those that tie with them.
    pub rows: Vec<DocBuf>,
}

impl PartialEq for StoredBucket {
    /// What somebody has found out about a bucket makes it no other one.
    fn eq(&self, other: &StoredBucket) -> bool {
        (&self.coverage, &self.document) == (&other.coverage, &other.document)
    }
}

impl StoredBucket {
    /// A bucket that was not read yet.
    pub fn new(coverage: Coverage, document: DocBuf) -> StoredBucket {
        StoredBucket {
            coverage,
            document,
            checked_rows: Cell::new(None),
            end_rows: RefCell::default(),
            head: OnceCell::new(),
            kept: KeptColumns::default(),
        }
    }

    /// Approximate bytes in memory.
    pub fn size_bytes(&self) -> usize {
        self.document.view().as_bytes().len() + 320
    }

    /// Lets its decoded columns stay in memory, because it stays there itself.
    pub fn keep_columns(&self, room: &Rc<ColumnRoom>) {
        self.kept.allow(room);
    }

    /// Its decoded columns that stay in memory.
    pub fn kept(&self) -> &KeptColumns {
        &self.kept
    }

    /// The document with its shape checked. `options` are always those of its collection.
    ///
    /// Errors: as `BucketDoc::parse`.
    pub fn view(&self, options: &TimeseriesOptions) -> Result<BucketDoc<'_>> {
        let document = self.document.view();
        let head = match self.head.get() {
            Some(head) => head,
            None => {
                let view = BucketDoc::parse(document, options)?;
                self.head.get_or_init(|| BucketHead::of(&view, document))
            }
        };
        Ok(head.view(document).with_kept(&self.kept))
    }

    /// The stored form.
    pub fn encode(coverage: &Coverage, document: Doc<'_>) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + coverage.entries.len() * ENTRY_LEN + document.as_bytes().len());
        out.extend_from_slice(&[VERSION, 0, 0, 0]);
        out.extend_from_slice(&u32::try_from(coverage.entries.len()).unwrap_or(u32::MAX).to_le_bytes());
        for (context, seq, at) in &coverage.entries {
            out.extend_from_slice(context);
            out.extend_from_slice(&seq.to_le_bytes());
            out.extend_from_slice(&at.to_le_bytes());
        }
        out.extend_from_slice(document.as_bytes());
        out
    }

    /// Decodes a stored bucket, which may be damaged (I3); takes ownership of the bytes.
    ///
    /// Errors: `DataCorruptionDetected`.
    pub fn decode(mut bytes: Vec<u8>) -> Result<StoredBucket> {
        let corrupt = |what: &str| Error::corrupt(format!("A stored bucket is damaged: {what}"));
        if bytes.get(..4) != Some(&[VERSION, 0, 0, 0]) {
            return Err(corrupt("unknown wrapper version"));
        }
        let count = bytes.get(4..8).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        let count = count.ok_or_else(|| corrupt("truncated"))? as usize;
        let end = count.saturating_mul(ENTRY_LEN).saturating_add(8);
        let entries = bytes.get(8..end).ok_or_else(|| corrupt("truncated wrapper"))?;
        let entries = entries
            .chunks_exact(ENTRY_LEN)
            .filter_map(|entry| {
                let (context, rest) = entry.split_first_chunk::<8>()?;
                let (seq, rest) = rest.split_first_chunk::<8>()?;
                let at = rest.first_chunk::<8>()?;
                Some((*context, u64::from_le_bytes(*seq), i64::from_le_bytes(*at)))
            })
            .listed();
        bytes.drain(..end);
        let document = DocBuf::parse(bytes).map_err(|e| corrupt(&e.message))?;
        Ok(StoredBucket::new(Coverage { entries }, document))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Block, Column, ColumnData};
    use crate::bucket::unpack;
    use crate::column;

    fn sample() -> (Coverage, DocBuf) {
        let mut coverage = Coverage::default();
        coverage.cover(([1; 8], 5), 100);
        coverage.cover(([2; 8], 9), 200);
        (coverage, DocBuf::parse(bson::rawdoc! { "a": 1 }.into_bytes()).unwrap())
    }

    #[test]
    fn a_stored_bucket_survives_the_round_trip_and_a_truncated_one_is_refused() {
        let (coverage, document) = sample();
        let bytes = StoredBucket::encode(&coverage, document.view());
        for len in 0..bytes.len() {
            assert!(StoredBucket::decode(bytes[..len].to_vec()).is_err());
        }
        assert_eq!(StoredBucket::decode(bytes).unwrap(), StoredBucket::new(coverage, document));
    }

    #[test]
    fn coverage_reaches_the_folded_seq_and_never_shrinks() {
        let (mut coverage, _) = sample();
        assert!(coverage.covers(([1; 8], 5)) && coverage.covers(([1; 8], 0)) && !coverage.covers(([1; 8], 6)));
        assert!(!coverage.covers(([3; 8], 0)));
        coverage.cover(([1; 8], 3), 300);
        assert!(coverage.covers(([1; 8], 5)));
    }

    #[test]
    fn a_record_moved_to_another_bucket_is_not_covered_until_its_rows_are_taken() {
        let (mut coverage, _) = sample();
        coverage.except(([1; 8], 7), 300);
        coverage.except(([1; 8], 7), 350);
        coverage.cover(([1; 8], 9), 400);
        let covers = |coverage: &Coverage| [5, 7, 8, 9].map(|seq| coverage.covers(([1; 8], seq)));
        assert_eq!(covers(&coverage), [true, false, true, true]);
        assert!(coverage.covers(([2; 8], 9)) && coverage.origins().next().is_none());
        coverage.cover(([1; 8], 7), 500);
        assert_eq!(covers(&coverage), [true; 4]);
    }

    #[test]
    fn a_bucket_of_moved_rows_covers_nothing_and_names_their_origin() {
        let mut coverage = Coverage::default();
        coverage.came_from(([1; 8], 7), 300);
        assert!(!coverage.covers(([1; 8], 7)) && !coverage.covers(([1; 8], 0)));
        coverage.cover(([1; 8], 9), 400);
        assert!(coverage.covers(([1; 8], 7)));
        assert_eq!(coverage.origins().collect::<Vec<_>>(), [([1; 8], 7)]);
        coverage.expire(i64::MAX, &|_, up_to| up_to == 7);
        assert_eq!(coverage.origins().count(), 1);
    }

    #[test]
    fn coverage_is_kept_longer_than_any_cursor_open_at_the_fold() {
        let (mut coverage, _) = sample();
        coverage.expire(100 + CURSOR_AGE_MS_MAX, &|_, _| false);
        assert!(coverage.covers(([1; 8], 5)));
        coverage.expire(200 + CURSOR_AGE_MS_MAX + CURSOR_IDLE_MS_MAX, &|_, _| false);
        assert!(!coverage.covers(([1; 8], 5)) && coverage.covers(([2; 8], 9)));
    }

    #[test]
    fn coverage_of_existing_records_is_kept_regardless_of_age() {
        let (mut coverage, _) = sample();
        coverage.expire(i64::MAX, &|context, up_to| *context == [1; 8] && up_to >= 5);
        assert!(coverage.covers(([1; 8], 5)) && !coverage.covers(([2; 8], 9)));
    }

    #[test]
    fn columns_are_found_again_if_the_bucket_stays_in_memory() {
        let date = bson::DateTime::from_millis;
        let limits = bson::rawdoc! { "t": date(60_000) };
        let control = bson::rawdoc! { "version": 2, "min": limits.clone(), "max": limits, "count": 2 };
        let binary = |cells: ColumnData| {
            let bytes = column::encode(&Column::new(cells, None));
            bson::Binary { subtype: bson::spec::BinarySubtype::Column, bytes }
        };
        let data = bson::rawdoc! { "v": binary(ColumnData::F64(vec![0.5, 1.5])), "t": binary(ColumnData::Date(vec![60_000, 60_001])) };
        let id = bson::oid::ObjectId::from_bytes([0xAB; 12]);
        let document =
            DocBuf::parse(bson::rawdoc! { "_id": id, "control": control, "data": data }.into_bytes()).unwrap();
        let options = TimeseriesOptions {
            time_field: "t".to_owned(),
            meta_field: None,
            rebucketed: false,
            granularity: None,
            span_seconds: 3_600,
            rounding_seconds: None,
            collation: Default::default(),
        };
        let wanted = FieldSet::Only(vec!["t".into(), "v".into()]);
        let reads = |bucket: &StoredBucket| {
            let blocks = (0..4).map(|_| unpack(&bucket.view(&options).unwrap(), &wanted, &options).unwrap());
            let blocks: Vec<Block> = blocks.collect();
            assert!(blocks.iter().all(|block| *block == blocks[0] && block.columns().len() == 2));
            // A kept column is the same in memory.
            let cells = |block: &Block| match block.column("v").map(Column::data) {
                Some(ColumnData::F64(cells)) => cells.as_ptr(),
                other => panic!("{other:?}"),
            };
            blocks.iter().map(cells).collect::<Vec<_>>()
        };
        let stays = StoredBucket::new(Coverage::default(), document.clone());
        stays.keep_columns(&Rc::new(ColumnRoom::new(1 << 20)));
        let places = reads(&stays);
        assert!(places[0] != places[1] && places[1] == places[2] && places[2] == places[3]);
        let places = reads(&StoredBucket::new(Coverage::default(), document));
        assert!(places[1] != places[2] && places[2] != places[3]);
    }
}
