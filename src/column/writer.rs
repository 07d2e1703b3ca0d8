//! Columns as they are written, element by element or many at once.

use std::ops::Range;

use super::reference;
use super::section_writer::SectionWriter;
use super::stream_writer::StreamWriter;
use crate::block::{Column, ColumnData};
use crate::value::{Doc, Kind, Value};

/// Integers that are widened at a time, so that one loop serves all types.
const WIDENED: usize = 64;

/// The bytes of a column, end byte included.
pub fn encode(column: &Column) -> Vec<u8> {
    let mut writer = ColumnWriter::new();
    writer.extend(column, 0..column.len());
    writer.finish()
}

/// Writes a column. The same elements give the same bytes, however they come in.
#[derive(Clone, Debug)]
pub struct ColumnWriter {
    /// All that lies outside of sections, and the bytes of sections that have ended.
    stream: StreamWriter,
    /// The section that is open. Then nothing waits in `stream`.
    section: Option<Box<SectionWriter>>,
    len: usize,
}

impl Default for ColumnWriter {
    fn default() -> Self {
        ColumnWriter::new()
    }
}

impl ColumnWriter {
    /// A writer without elements.
    pub fn new() -> ColumnWriter {
        ColumnWriter { stream: StreamWriter::new(), section: None, len: 0 }
    }

    /// Elements so far, missing ones included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True before the first element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a value.
    pub fn push(&mut self, value: Value<'_>) {
        self.len += 1;
        if reference::is_container(value) {
            self.push_container(value);
        } else {
            self.end_section();
            self.stream.push(value);
        }
    }

    /// Appends `count` missing elements. Takes no longer for many than for few.
    pub fn skip(&mut self, count: usize) {
        if count == 0 {
            return;
        }
        self.len += count;
        if !self.section.as_mut().is_some_and(|section| section.skip(count)) {
            self.end_section();
            self.stream.skip(count);
        }
    }

    /// Appends rows `range` of `column`, which must lie inside; absent cells are missing elements.
    pub fn extend(&mut self, column: &Column, range: Range<usize>) {
        let mut row = range.start;
        while row < range.end {
            let present = column.is_present(row);
            let end = match column.presence() {
                Some(presence) => (row + 1..range.end).find(|row| presence.get(*row) != present).unwrap_or(range.end),
                None => range.end,
            };
            if present {
                self.extend_present(column, row..end);
            } else {
                self.skip(end - row);
            }
            row = end;
        }
    }

    /// Rows whose cells are all present.
    fn extend_present(&mut self, column: &Column, rows: Range<usize>) {
        match column.data() {
            ColumnData::F64(v) => {
                self.end_section();
                let doubles = v.get(rows).unwrap_or_default();
                self.stream.push_doubles(doubles);
                self.len += doubles.len();
            }
            ColumnData::I64(v) => self.extend_integers(Kind::Int64, v.get(rows).unwrap_or_default()),
            ColumnData::Date(v) => self.extend_integers(Kind::Date, v.get(rows).unwrap_or_default()),
            ColumnData::I32(v) => self.extend_widened(Kind::Int32, v.get(rows).unwrap_or_default()),
            ColumnData::Bool(v) => self.extend_widened(Kind::Bool, v.get(rows).unwrap_or_default()),
            ColumnData::Dictionary(v, values) => self.extend_dictionary(v.get(rows).unwrap_or_default(), values),
            _ => {
                let mut scratch = Vec::new();
                for row in rows {
                    if let Some(value) = column.value(row, &mut scratch) {
                        self.push(value);
                    }
                }
            }
        }
    }

    fn extend_integers(&mut self, kind: Kind, integers: &[i64]) {
        self.end_section();
        self.stream.push_integers(kind, integers);
        self.len += integers.len();
    }

    fn extend_widened<T: Copy + Into<i64>>(&mut self, kind: Kind, cells: &[T]) {
        let mut widened = [0; WIDENED];
        for chunk in cells.chunks(WIDENED) {
            widened.iter_mut().zip(chunk).for_each(|(wide, cell)| *wide = (*cell).into());
            self.extend_integers(kind, widened.get(..chunk.len()).unwrap_or_default());
        }
    }

    fn extend_dictionary(&mut self, index: &[u32], values: &Column) {
        let mut scratch = Vec::new();
        for run in index.chunk_by(|a, b| a == b) {
            let Some(value) = run.first().and_then(|row| values.value(*row as usize, &mut scratch)) else { continue };
            if reference::is_container(value) {
                run.iter().for_each(|_| self.push(value));
            } else {
                self.end_section();
                self.stream.repeat(value, run.len());
                self.len += run.len();
            }
        }
    }

    /// An object or array: into the section where it has a place there, else it begins the next, unless it has no scalar.
    fn push_container(&mut self, value: Value<'_>) {
        let object = value.as_container().unwrap_or(Doc::EMPTY);
        if !object.is_empty()
            && let Some(section) = &mut self.section
            && section.push(value.kind(), object)
        {
            return;
        }
        self.end_section();
        if reference::has_scalar(object) {
            self.stream.interrupt();
            self.section = Some(Box::new(SectionWriter::new(value.kind(), object)));
        } else {
            self.stream.push(value);
        }
    }

    fn end_section(&mut self) {
        if let Some(section) = self.section.take() {
            section.finish(self.stream.interrupt());
        }
    }

    /// The whole column as of now. The writer goes on as if nothing had happened.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.clone().finish()
    }

    /// The whole column, end byte included.
    pub fn finish(mut self) -> Vec<u8> {
        self.end_section();
        let mut bytes = self.stream.finish();
        bytes.push(0);
        bytes
    }
}
