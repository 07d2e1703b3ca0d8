//! The journal record: what one commit of one context added.
//!
//! `version u8 = 1 · 3 zero bytes · section count u32 · sections · padding to a multiple of 8 · block`. A section is
//! `bucket id 12 · rows u32 · min time i64 · first i64 · last i64 · meta length u32 · meta (type byte and value, empty without any)`.
//! All integers are little-endian. Sections tile the rows of the block in order.

use crate::block::{self, Block};
use crate::bucket::BucketId;
use crate::catalog::Section;
use crate::error::{Error, Result};
use crate::limits::VALUE_SIZE_BYTES_SOFT_MAX;
use crate::value::{OwnedValue, Value};

const VERSION: u8 = 1;

/// One commit: rows without their metadata column, and which of them go to which bucket.
#[derive(Debug, PartialEq)]
pub struct Record {
    /// The rows, in section order.
    pub rows: Block,
    /// Which rows go where.
    pub sections: Vec<Section>,
    /// Length of the stored form.
    pub size_bytes: usize,
}

impl Record {
    /// The stored form.
    pub fn encode(rows: &Block, sections: &[Section]) -> Vec<u8> {
        let mut out = vec![VERSION, 0, 0, 0];
        out.extend_from_slice(&u32_of(sections.len()).to_le_bytes());
        for section in sections {
            let meta = section.meta.as_ref().map_or(&[][..], OwnedValue::tagged);
            out.extend_from_slice(section.bucket.as_bytes());
            out.extend_from_slice(&u32_of(section.rows).to_le_bytes());
            for time in [section.min_time_ms, section.first_ms, section.last_ms] {
                out.extend_from_slice(&time.to_le_bytes());
            }
            out.extend_from_slice(&u32_of(meta.len()).to_le_bytes());
            out.extend_from_slice(meta);
        }
        out.resize(out.len().next_multiple_of(8), 0);
        out.extend_from_slice(&block::encode(rows));
        out
    }

    /// Reads a stored record, trusting nothing.
    ///
    /// Errors: `DataCorruptionDetected`.
    pub fn decode(bytes: &[u8]) -> Result<Record> {
        let corrupt = |what: &str| Error::corrupt(format!("A journal record is damaged: {what}"));
        let mut reader = Reader { bytes, at: 0 };
        if reader.take(4) != Some(&[VERSION, 0, 0, 0]) {
            return Err(corrupt("unknown version"));
        }
        let count = reader.u32().ok_or_else(|| corrupt("cut off"))?;
        let mut sections = Vec::new();
        let mut rows_total = 0_usize;
        for _ in 0..count {
            let section = reader.section().ok_or_else(|| corrupt("a section is cut off or holds no value"))?;
            rows_total = rows_total.saturating_add(section.rows);
            sections.push(section);
        }
        let rest = bytes.get(reader.at.next_multiple_of(8)..).ok_or_else(|| corrupt("no block"))?;
        let rows = block::decode(rest).map_err(|e| corrupt(&e.message))?;
        if rows.rows() != rows_total {
            return Err(corrupt("its sections do not tile its rows"));
        }
        Ok(Record { rows, sections, size_bytes: bytes.len() })
    }

    /// Cuts staged rows into records whose stored form stays near `VALUE_SIZE_BYTES_SOFT_MAX`.
    ///
    /// Answers each part's rows and sections; one part without a copy where all fits.
    pub fn parts(rows: Block, sections: Vec<Section>) -> Vec<(Block, Vec<Section>)> {
        let total = rows.rows();
        let budget = VALUE_SIZE_BYTES_SOFT_MAX - 4 * 1024;
        let size = rows.size_bytes() + sections.iter().map(|s| 44 + meta_len(s)).sum::<usize>();
        if size <= budget || total <= 1 {
            return vec![(rows, sections)];
        }
        // Rows of about one size: a cut by number serves.
        let rows_max = (total * budget / size).max(1);
        let mut parts = Vec::new();
        let (mut start, mut at, mut part) = (0, 0, Vec::new());
        for section in sections {
            let mut left = section.rows;
            while left > 0 {
                let take = left.min(start + rows_max - at);
                // Bounds of the whole section bound each of its parts.
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
        parts
    }
}

fn meta_len(section: &Section) -> usize {
    section.meta.as_ref().map_or(0, |m| m.tagged().len())
}

fn u32_of(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
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
    fn i64(&mut self) -> Option<i64> {
        self.take(8)?.try_into().ok().map(i64::from_le_bytes)
    }
    fn section(&mut self) -> Option<Section> {
        let bucket = BucketId::from_bytes(self.take(12)?.try_into().ok()?);
        let rows = self.u32()?;
        let (min_time_ms, first_ms, last_ms) = (self.i64()?, self.i64()?, self.i64()?);
        let meta_len = self.u32()?;
        let meta = match self.take(meta_len)? {
            [] => None,
            tagged => Some(Value::parse_tagged(tagged).ok()?.to_owned()),
        };
        Some(Section { bucket, min_time_ms, meta, rows, first_ms, last_ms })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Column, ColumnData};
    use proptest::prelude::*;

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
        let bytes = Record::encode(&rows, &sections);
        assert_eq!(Record::decode(&bytes).unwrap(), Record { rows, sections, size_bytes: bytes.len() });
    }

    #[test]
    fn a_large_commit_is_cut_into_values_below_the_soft_limit_and_loses_no_row() {
        let (rows, sections) = record(20_000);
        let parts = Record::parts(rows.clone(), sections.clone());
        assert!(parts.len() > 4);
        for (rows, sections) in &parts {
            let bytes = Record::encode(rows, sections);
            assert!(bytes.len() <= VALUE_SIZE_BYTES_SOFT_MAX);
            assert!(Record::decode(&bytes).is_ok());
        }
        assert_eq!(Block::concat(parts.iter().map(|p| p.0.clone()).collect()), rows);
        for section in &sections {
            let of = parts.iter().flat_map(|p| &p.1).filter(|s| s.bucket == section.bucket);
            assert_eq!(of.map(|s| s.rows).sum::<usize>(), section.rows);
        }
    }

    #[test]
    fn a_record_cut_anywhere_is_refused() {
        let (rows, sections) = record(9);
        let bytes = Record::encode(&rows, &sections);
        for len in 0..bytes.len() {
            assert!(Record::decode(&bytes[..len]).is_err());
        }
    }

    proptest! {
        #[test]
        fn damaged_records_are_refused_or_tile_their_rows(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let (rows, sections) = record(9);
            let mut bytes = Record::encode(&rows, &sections);
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(record) = Record::decode(&bytes) {
                prop_assert_eq!(record.sections.iter().map(|s| s.rows).sum::<usize>(), record.rows.rows());
            }
        }
    }
}
