//! A journal record in memory, and its sections.

use std::cell::Cell;
use std::ops::Range;
use std::rc::Rc;

use super::record::{CommitOrder, Record};
use crate::block::{Block, ColumnData};
use crate::bucket::{SeriesBits, TimeseriesOptions, window_id};
use crate::catalog::Section;
use crate::engine::store::keyspace::ContextId;
use crate::error::{Error, Result};
use crate::value::{OwnedValue, Value};

/// Context and place in that context's journal.
pub type RecordKey = (ContextId, u64);

/// A journal record with its context and seq.
pub struct JournalEntry {
    /// The context that committed it.
    pub context: ContextId,
    /// Its position in that context's journal.
    pub seq: u64,
    /// The rows that it added.
    pub record: Record,
    /// The times of its first and its last row; reversed if it has none.
    pub times: (i64, i64),
    /// True once the journal has dropped it.
    is_gone: Cell<bool>,
    /// Its number among the commits of this context that were answered; 0 if it was only found.
    pub(super) answer: Cell<u64>,
}

impl JournalEntry {
    /// A record that was written, or read.
    pub fn new((context, seq): RecordKey, record: Record) -> JournalEntry {
        let times = record.sections.iter().fold((i64::MAX, i64::MIN), |(first_ms, last_ms), section| {
            (section.first_ms.min(first_ms), section.last_ms.max(last_ms))
        });
        JournalEntry { context, seq, record, times, is_gone: Cell::new(false), answer: Cell::new(0) }
    }

    /// Addresses its sections to windows of that span, which must be a multiple of the span of their own windows.
    pub(super) fn address_to_windows(&mut self, window_ms: i64) {
        for section in &mut self.record.sections {
            let start_ms = section.min_time_ms.saturating_sub(section.min_time_ms.rem_euclid(window_ms.max(1)));
            if start_ms != section.min_time_ms {
                section.bucket = window_id(start_ms, SeriesBits::of_bucket(&section.bucket));
                section.min_time_ms = start_ms;
            }
        }
    }

    /// True once the journal has dropped it: its rows are in buckets, or deleted.
    pub fn is_gone(&self) -> bool {
        self.is_gone.get()
    }

    /// Sets whether the journal has dropped it.
    pub(super) fn set_gone(&self, is_gone: bool) {
        self.is_gone.set(is_gone);
    }

    /// Context and seq.
    pub fn key(&self) -> RecordKey {
        (self.context, self.seq)
    }
}

/// One section of a journal record. There are as many as series times commits, so it is kept small.
#[derive(Clone)]
pub struct SectionRef {
    entry: Rc<JournalEntry>,
    at: u32,
    first_row: u32,
}

impl SectionRef {
    /// The context that committed it, and its position in that context's journal.
    pub fn commit(&self) -> RecordKey {
        self.entry.key()
    }

    /// Its place among the sections of all contexts. Sections of one commit stand in the order of their rows.
    pub(super) fn place(&self) -> (CommitOrder, RecordKey, u32) {
        (self.entry.record.order, self.entry.key(), self.first_row)
    }

    /// The times of its rows.
    ///
    /// Errors: `DataCorruptionDetected` if they are not dates.
    pub(super) fn times(&self, options: &TimeseriesOptions) -> Result<&[i64]> {
        let (block, rows) = self.rows();
        match block.column(&options.time_field).map(|times| (times.data(), times.presence())) {
            Some((ColumnData::Date(times), None)) => Ok(times.get(rows).unwrap_or_default()),
            _ => Err(Error::corrupt("A journal record has rows without dates")),
        }
    }

    /// Its record.
    pub fn entry(&self) -> &Rc<JournalEntry> {
        &self.entry
    }

    /// Bucket, metadata, bounds.
    pub fn section(&self) -> Option<&Section> {
        self.entry.record.sections.get(self.at as usize)
    }

    /// The metadata of its rows.
    pub fn meta(&self) -> Option<Value<'_>> {
        self.section().and_then(|section| section.meta.as_ref()).map(OwnedValue::view)
    }

    /// The hash of the names and types of the rows, if each column has one type.
    pub fn types(&self) -> Option<u64> {
        self.entry.record.types
    }

    /// The block that holds the rows, and which of them.
    pub fn rows(&self) -> (&Block, Range<usize>) {
        let start = self.first_row as usize;
        let count = self.section().map_or(0, |s| s.rows);
        (&self.entry.record.rows, start..start + count)
    }

    /// True once the journal has dropped its record.
    pub(super) fn is_gone(&self) -> bool {
        self.entry.is_gone()
    }

    /// Every section of a record.
    pub(super) fn of_record(entry: &Rc<JournalEntry>) -> impl Iterator<Item = SectionRef> {
        let (entry, mut first_row) = (Rc::clone(entry), 0);
        // A record has fewer rows than that.
        let short = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        (0..entry.record.sections.len()).map(move |at| {
            let section = SectionRef { entry: Rc::clone(&entry), at: short(at), first_row: short(first_row) };
            first_row += section.section().map_or(0, |s| s.rows);
            section
        })
    }
}
