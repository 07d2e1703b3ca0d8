//! The journal record: the rows that one commit of one context added.
//!
//! `version u8 = 3 · 3 zero bytes · section count u32 · numbers · metadata · row count u32 · column count u32 ·
//! columns`. In a collection with `dedupe` the version is 4, and `generation u64 · commit time i64` follow the zero
//! bytes. Sections divide the rows in order. Their numbers are one compressed column of int64: first, for all
//! sections, the seconds in the bucket's id; then, likewise, the rest of the id, the row count, the bucket's start, the
//! earliest and the latest time. Their metadata is another compressed column. So with a thousand series of one row
//! each, a section takes about two bytes. Both are stored as `length u32 · compressed column`, and a column of rows as
//! `name length u32 · name · length u32 · compressed column`. All integers are little-endian.

use crate::block::{Block, Column, ColumnData};
use crate::bucket::BucketId;
use crate::catalog::Section;
use crate::column::{self, ColumnWriter};
use crate::error::{Error, Result};
use crate::limits::{BLOCK_ROWS_MAX, COLUMN_SIZE_BYTES_MAX, VALUE_SIZE_BYTES_SOFT_MAX};
use crate::listed::IntoList;
use crate::value::Interner;

const VERSION: u8 = 3;
/// The version of a record with an order.
const VERSION_ORDERED: u8 = 4;
/// How many numbers a section has.
const NUMBERS: usize = 6;
/// How long the stored form of records is that were cut from a long one.
const RECORD_SIZE_BYTES: usize = VALUE_SIZE_BYTES_SOFT_MAX - 4 * 1024;
/// So many of many rows are compressed to know about how long all are.
const SAMPLE_ROWS: usize = 1024;

/// The place of a commit among the commits of all contexts. Compared first; then by context, then by seq.
///
/// **Invariant I37**: a commit takes place only while its generation is the present one, and a fold first begins the
/// next generation, and then folds all commits of earlier ones. So whatever is stored is earlier than every commit that
/// is not folded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CommitOrder {
    /// How often the collection was folded; from 1 on, or 0 in a collection without `dedupe`.
    pub generation: u64,
    /// Milliseconds by the clock of the context; never less than those of its commit before.
    pub time_ms: i64,
    /// True if the rows were measurements before, stored elsewhere: a delete that has begun before must find them here.
    pub moved: bool,
}

impl CommitOrder {
    /// The place of rows that were stored before the collection had `dedupe`, and that are moved to windows later:
    /// before everything else, also before what is stored, and before what was moved earlier. `moves` counts from 0 on, for
    /// records; buckets follow.
    pub fn of_earlier(moves: i64) -> CommitOrder {
        CommitOrder { generation: 0, time_ms: -1 - moves, moved: true }
    }

    /// True for such rows.
    pub fn is_earlier(self) -> bool {
        self.generation == 0 && self.time_ms < 0
    }

    /// True if the rows are addressed to windows.
    pub fn is_by_window(self) -> bool {
        self != CommitOrder::default()
    }
}

/// One commit: rows without their metadata column, and the sections that say which rows go to which bucket.
#[derive(Debug, PartialEq)]
pub struct Record {
    /// The rows, in section order.
    pub rows: Block,
    /// Which rows go where.
    pub sections: Vec<Section>,
    /// Length of the stored form.
    pub stored_bytes: usize,
    /// How many of these bytes are columns of rows.
    pub columns_bytes: usize,
    /// The hash of the names and types of the rows.
    pub types: Option<u64>,
    /// Its place among the commits of all contexts; the same for all in a collection without `dedupe`.
    pub order: CommitOrder,
}

impl Record {
    /// Approximate bytes in memory, which is the cost of keeping and folding it, however well it was compressed.
    pub fn size_bytes(&self) -> usize {
        // Metadata is shared with the catalog or with other records.
        self.rows.size_bytes() + self.sections.len() * size_of::<Section>()
    }

    /// A record and its stored form.
    pub fn encode(rows: Block, sections: Vec<Section>, order: CommitOrder) -> (Record, Vec<u8>) {
        let mut out = vec![VERSION, 0, 0, 0];
        if order.is_by_window() {
            out = vec![VERSION_ORDERED, u8::from(order.moved), 0, 0];
            out.extend_from_slice(&order.generation.to_le_bytes());
            out.extend_from_slice(&order.time_ms.to_le_bytes());
        }
        push_u32(&mut out, sections.len());
        push_bytes(&mut out, &column::encode(&numbers_of(&sections)));
        push_bytes(&mut out, &encode_metadata(&sections));
        push_u32(&mut out, rows.rows());
        push_u32(&mut out, rows.columns().len());
        let before = out.len();
        for (name, column) in rows.columns() {
            push_bytes(&mut out, name.as_bytes());
            push_bytes(&mut out, &column::encode(column));
        }
        let types = rows.types();
        (Record { rows, sections, stored_bytes: out.len(), columns_bytes: out.len() - before, types, order }, out)
    }

    /// Decodes a stored record, which may be damaged (I3). `before` are the sections of a record decoded earlier: most
    /// commits name the same series in the same order, and then share their metadata in memory.
    ///
    /// Errors: `DataCorruptionDetected`.
    pub fn decode(bytes: &[u8], before: &[Section]) -> Result<Record> {
        let corrupt = |what: &str| Error::corrupt(format!("A journal record is damaged: {what}"));
        let mut reader = Reader { bytes, at: 0 };
        let order = match reader.take(4) {
            Some([VERSION, 0, 0, 0]) => CommitOrder::default(),
            Some([VERSION_ORDERED, moved @ 0..=1, 0, 0]) => {
                reader.order(*moved == 1).ok_or_else(|| corrupt("truncated"))?
            }
            _ => return Err(corrupt("unknown version")),
        };
        let count = reader.u32().filter(|count| *count <= BLOCK_ROWS_MAX).ok_or_else(|| corrupt("truncated"))?;
        let mut column = |len: usize| -> Result<Column> {
            let bytes = reader.bytes().ok_or_else(|| corrupt("truncated sections"))?;
            let column = column::decode(bytes, len).map_err(|e| corrupt(&format!("its sections: {e}")))?;
            if column.len() == len { Ok(column) } else { Err(corrupt("a section lacks a number or its metadata")) }
        };
        let (numbers, metadata) = (column(NUMBERS * count)?, column(count)?);
        let sections = sections_of(&numbers, &metadata, before)
            .ok_or_else(|| corrupt("the numbers of its sections are invalid"))?;
        let rows_total = sections.iter().fold(0_usize, |sum, section| sum.saturating_add(section.rows));
        let (rows, columns) = reader.u32().zip(reader.u32()).ok_or_else(|| corrupt("truncated after its sections"))?;
        if rows != rows_total || rows > BLOCK_ROWS_MAX {
            return Err(corrupt("its sections and its rows do not match"));
        }
        let start = reader.at;
        let mut block = Block::new(rows);
        let mut seen = Interner::default();
        for _ in 0..columns {
            let (name, column) = reader.column().ok_or_else(|| corrupt("a column is truncated or has no name"))?;
            if !seen.add(name.as_bytes()).1 {
                return Err(corrupt(&format!("column '{name}' occurs twice")));
            }
            let column = column::decode(column, rows).map_err(|e| corrupt(&format!("column '{name}': {e}")))?;
            if column.len() != rows {
                return Err(corrupt(&format!("column '{name}' has {} elements instead of {rows}", column.len())));
            }
            block.push_new_column(name, column);
        }
        if reader.at != bytes.len() {
            return Err(corrupt("bytes after its columns"));
        }
        let types = block.types();
        let (stored_bytes, columns_bytes) = (bytes.len(), bytes.len() - start);
        Ok(Record { rows: block, sections, stored_bytes, columns_bytes, types, order })
    }

    /// Splits staged rows into records whose stored form stays near `VALUE_SIZE_BYTES_SOFT_MAX`, each with its stored
    /// form (I12). Each is made when it is asked for.
    pub fn parts(rows: Block, sections: Vec<Section>, order: CommitOrder) -> Parts {
        Parts { left: vec![(rows, sections)], order }
    }
}

/// Staged rows that become records.
pub struct Parts {
    /// Those that come first are last.
    left: Vec<(Block, Vec<Section>)>,
    order: CommitOrder,
}

impl Iterator for Parts {
    type Item = (Record, Vec<u8>);

    fn next(&mut self) -> Option<(Record, Vec<u8>)> {
        loop {
            let (rows, sections) = self.left.pop()?;
            let total = rows.rows();
            let pieces = pieces_of(&rows, &sections);
            if pieces > 1 && total > 1 {
                self.cut(&rows, sections, pieces);
                continue;
            }
            let (record, bytes) = Record::encode(rows, sections, self.order);
            if bytes.len() <= VALUE_SIZE_BYTES_SOFT_MAX || total <= 1 {
                return Some((record, bytes));
            }
            self.cut(&record.rows, record.sections, bytes.len().div_ceil(RECORD_SIZE_BYTES));
        }
    }
}

impl Parts {
    /// Puts back parts with about equal numbers of rows; parts that are still too large are cut again.
    fn cut(&mut self, rows: &Block, sections: Vec<Section>, pieces: usize) {
        let rows_max = rows.rows().div_ceil(pieces.max(2));
        let mut parts = Vec::new();
        let (mut start, mut at, mut part) = (0, 0, Vec::new());
        for section in sections {
            let mut left = section.rows;
            while left > 0 {
                let take = left.min(start + rows_max - at);
                // The time bounds of the whole section also bound each of its parts.
                part.push(Section { rows: take, ..section.clone() });
                at += take;
                left -= take;
                if at == start + rows_max {
                    parts.push((rows.slice(start..at), std::mem::take(&mut part)));
                    start = at;
                }
            }
        }
        if at > start {
            parts.push((rows.slice(start..at), part));
        }
        self.left.extend(parts.into_iter().rev());
    }
}

/// Into how many records rows are cut before anything is known of their stored form.
fn pieces_of(rows: &Block, sections: &[Section]) -> usize {
    // Decoding a record must stay within its limits, however well its rows compress.
    let metadata: usize = sections.iter().map(|section| section.meta.as_ref().map_or(0, |m| m.tagged().len())).sum();
    let pieces = rows.size_bytes().max(metadata).div_ceil(COLUMN_SIZE_BYTES_MAX / 2);
    let total = rows.rows();
    if total < 8 * SAMPLE_ROWS {
        return pieces;
    }
    // Many rows are not compressed twice: those in the middle tell about how long all are.
    let sample = rows.slice(total / 2..total / 2 + SAMPLE_ROWS);
    let bytes: usize = sample.columns().iter().map(|(_, column)| column::encode(column).len()).sum();
    // Divided first, because 32 bits do not hold the product of bytes and rows.
    pieces.max(bytes.saturating_mul(total.div_ceil(SAMPLE_ROWS)).div_ceil(RECORD_SIZE_BYTES))
}

/// The numbers of all sections as one column.
fn numbers_of(sections: &[Section]) -> Column {
    let mut numbers = Vec::with_capacity(NUMBERS * sections.len());
    let mut add = |number: fn(&Section) -> i64| numbers.extend(sections.iter().map(number));
    add(|section| i64::from(section.bucket.time_seconds()));
    add(|section| section.bucket.counter().cast_signed());
    add(|section| i64::try_from(section.rows).unwrap_or(i64::MAX));
    add(|section| section.min_time_ms);
    add(|section| section.first_ms);
    add(|section| section.last_ms);
    Column::new(ColumnData::I64(numbers), None)
}

/// The metadata of sections as a compressed column.
fn encode_metadata(sections: &[Section]) -> Vec<u8> {
    let mut writer = ColumnWriter::new();
    for section in sections {
        match &section.meta {
            Some(meta) => writer.push(meta.view()),
            None => writer.skip(1),
        }
    }
    writer.finish()
}

/// The sections with these numbers and metadata.
fn sections_of(numbers: &Column, metadata: &Column, before: &[Section]) -> Option<Vec<Section>> {
    let count = metadata.len();
    if count == 0 {
        return Some(Vec::new());
    }
    let (ColumnData::I64(numbers), None) = (numbers.data(), numbers.presence()) else { return None };
    let mut scratch = Vec::new();
    let mut meta_of = |row: usize| {
        let meta = metadata.value(row, &mut scratch)?;
        let known = before.get(row).and_then(|section| section.meta.as_ref());
        Some(known.filter(|known| known.view() == meta).cloned().unwrap_or_else(|| meta.to_owned()))
    };
    let section = |row: usize| {
        let number = |which: usize| numbers.get(which * count + row).copied();
        let seconds = u32::try_from(number(0)?).ok()?;
        Some(Section {
            bucket: BucketId::from_seconds(seconds, number(1)?.cast_unsigned()),
            rows: usize::try_from(number(2)?).ok()?,
            min_time_ms: number(3)?,
            first_ms: number(4)?,
            last_ms: number(5)?,
            meta: meta_of(row),
        })
    };
    (0..count).map(section).listed_if_all()
}

fn push_u32(out: &mut Vec<u8>, n: usize) {
    out.extend_from_slice(&u32::try_from(n).unwrap_or(u32::MAX).to_le_bytes());
}

fn push_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    push_u32(out, bytes.len());
    out.extend_from_slice(bytes);
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(len)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }
    fn u32(&mut self) -> Option<usize> {
        self.take(4)?.try_into().ok().map(|b| u32::from_le_bytes(b) as usize)
    }
    fn order(&mut self, moved: bool) -> Option<CommitOrder> {
        let generation = self.take(8)?.try_into().ok().map(u64::from_le_bytes)?;
        let time_ms = self.take(8)?.try_into().ok().map(i64::from_le_bytes)?;
        Some(CommitOrder { generation, time_ms, moved })
    }
    fn bytes(&mut self) -> Option<&'a [u8]> {
        let len = self.u32()?;
        self.take(len)
    }
    fn column(&mut self) -> Option<(&'a str, &'a [u8])> {
        let name = std::str::from_utf8(self.bytes()?).ok()?;
        Some((name, self.bytes()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::OwnedValue;
    use proptest::prelude::*;

    const ORDER: CommitOrder = CommitOrder { generation: 7, time_ms: -9, moved: true };

    fn record(rows: usize) -> (Block, Vec<Section>) {
        let mut block = Block::new(rows);
        block.set_column("t", Column::new(ColumnData::Date((0..rows as i64).collect()), None));
        block.set_column("x", Column::new(ColumnData::F64(vec![0.5; rows]), None));
        let section = |at: u8, rows| Section {
            bucket: BucketId::from_bytes([at; 12]),
            min_time_ms: -5,
            meta: (at > 0).then(|| OwnedValue::string("a")),
            rows,
            first_ms: 0,
            last_ms: rows as i64,
        };
        (block, vec![section(0, rows / 3), section(1, rows - rows / 3)])
    }

    #[test]
    fn a_record_survives_the_round_trip() {
        let (rows, sections) = record(30);
        for order in [CommitOrder::default(), ORDER] {
            let (record, bytes) = Record::encode(rows.clone(), sections.clone(), order);
            assert_eq!((&record.rows, &record.sections, record.stored_bytes), (&rows, &sections, bytes.len()));
            assert_eq!((record.order, Record::decode(&bytes, &[]).unwrap()), (order, record));
        }
        let (nothing, bytes) = Record::encode(Block::new(0), Vec::new(), CommitOrder::default());
        assert_eq!(Record::decode(&bytes, &[]).unwrap(), nothing);
    }

    #[test]
    fn a_thousand_series_with_a_row_each_take_few_bytes_a_section() {
        let (rows, one) = record(1000);
        let sections = (0..1000_u64).map(|n| Section {
            bucket: BucketId::new(1_700_000_000_000, (u64::MAX - 500).wrapping_add(n)),
            min_time_ms: 1_700_000_000_000,
            meta: Some(OwnedValue::string(&format!("s{n}"))),
            rows: 1,
            first_ms: 1_700_000_001_000,
            ..one[0].clone()
        });
        let (record, bytes) = Record::encode(rows, sections.collect(), CommitOrder::default());
        assert!(bytes.len() < 4000, "{} bytes", bytes.len());
        assert_eq!(Record::decode(&bytes, &[]).unwrap(), record);
    }

    #[test]
    fn records_of_the_same_series_share_their_metadata_in_memory() {
        let (rows, sections) = record(30);
        let bytes = Record::encode(rows, sections, ORDER).1;
        let first = Record::decode(&bytes, &[]).unwrap();
        let second = Record::decode(&bytes, &first.sections).unwrap();
        assert_eq!(first, second);
        let place = |record: &Record| record.sections[1].meta.as_ref().unwrap().tagged().as_ptr();
        assert_eq!(place(&first), place(&second));
        let others: Vec<Section> = first.sections.iter().rev().cloned().collect();
        assert_eq!(Record::decode(&bytes, &others).unwrap(), first);
    }

    #[test]
    fn a_large_commit_is_split_into_values_below_the_soft_limit() {
        let (mut rows, sections) = record(20_000);
        // Random bytes, which do not compress.
        let noise = (0..20_000_u64).map(|n| (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 12) as f64 * 1e-16);
        rows.set_column("x", Column::new(ColumnData::F64(noise.collect()), None));
        let parts: Vec<_> = Record::parts(rows.clone(), sections.clone(), ORDER).collect();
        assert!(parts.len() > 2, "{}", parts.len());
        for (record, bytes) in &parts {
            assert!(bytes.len() <= VALUE_SIZE_BYTES_SOFT_MAX);
            assert_eq!(Record::decode(bytes, &[]).unwrap(), *record);
        }
        assert_eq!(Block::concat(parts.iter().map(|(record, _)| record.rows.clone()).collect()), rows);
        for section in &sections {
            let of = parts.iter().flat_map(|(record, _)| &record.sections).filter(|s| s.bucket == section.bucket);
            assert_eq!(of.map(|s| s.rows).sum::<usize>(), section.rows);
        }
    }

    #[test]
    fn a_large_commit_that_compresses_well_is_one_value() {
        let (rows, sections) = record(20_000);
        let parts: Vec<_> = Record::parts(rows, sections, ORDER).collect();
        assert_eq!(parts.len(), 1);
        assert!(parts[0].1.len() < 1000);
    }

    #[test]
    fn a_row_that_is_larger_than_a_value_is_a_record_of_its_own() {
        let mut rows = Block::new(3);
        let mut builder = crate::block::ColumnBuilder::new();
        for letter in ["a", "b", "c"] {
            builder.push(OwnedValue::string(&letter.repeat(VALUE_SIZE_BYTES_SOFT_MAX)).view());
        }
        rows.set_column("s", builder.finish());
        let section = Section { rows: 3, ..record(3).1.remove(1) };
        assert_eq!(Record::parts(rows, vec![section], ORDER).count(), 3);
    }

    #[test]
    fn a_truncated_record_is_refused() {
        let (rows, sections) = record(9);
        let bytes = Record::encode(rows, sections, ORDER).1;
        for len in 0..bytes.len() {
            assert!(Record::decode(&bytes[..len], &[]).is_err());
        }
    }

    proptest! {
        #[test]
        fn damaged_records_are_refused_or_their_sections_cover_all_rows(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let (rows, sections) = record(9);
            let mut bytes = Record::encode(rows, sections, ORDER).1;
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(record) = Record::decode(&bytes, &[]) {
                prop_assert_eq!(record.sections.iter().map(|s| s.rows).sum::<usize>(), record.rows.rows());
            }
        }
    }
}
