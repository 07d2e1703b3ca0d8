//! Writes columns, element by element or many at once.

use std::ops::Range;

use super::reference;
use super::section::SectionWriter;
use super::stream::StreamWriter;
use crate::block::{Column, ColumnData};
use crate::value::{Doc, Kind, Value};

/// Integers are widened in chunks of this many, so that one loop serves all types.
const WIDENED: usize = 64;

/// The bytes of a column, end byte included.
pub fn encode(column: &Column) -> Vec<u8> {
    let mut writer = ColumnWriter::new();
    writer.extend(column, 0..column.len());
    writer.finish()
}

/// Writes a column. The same elements give the same bytes, whether they come one by one or many at once.
#[derive(Clone, Debug)]
pub struct ColumnWriter {
    /// Everything outside of sections, and the bytes of ended sections.
    stream: StreamWriter,
    /// The open section. While there is one, nothing is pending in `stream`.
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

    /// Appends `count` missing elements. Its cost does not depend on `count`.
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

    /// Appends rows `range` of `column`, which must lie inside. Absent cells become missing elements.
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

    /// Appends an object or array to the section if it fits; otherwise begins a new section, unless it contains no
    /// scalar.
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

    /// The whole column as of now. The writer can go on.
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

#[cfg(test)]
mod tests {
    use super::super::samples::{any_cells, column_of, cuts};
    use super::*;
    use crate::value::OwnedValue;
    use proptest::prelude::*;

    fn pushed(cells: &[Option<OwnedValue>]) -> ColumnWriter {
        let mut writer = ColumnWriter::new();
        for cell in cells {
            match cell {
                Some(value) => writer.push(value.view()),
                None => writer.skip(1),
            }
        }
        writer
    }

    fn encoded(values: &[OwnedValue]) -> Vec<u8> {
        encode(&column_of(&values.iter().cloned().map(Some).collect::<Vec<_>>()))
    }

    #[test]
    fn doubles_are_differences_in_their_scale() {
        let bytes = encoded(&[254.03, 253.63, 253.61, 252.93, 252.47].map(OwnedValue::double));
        let literal = [0x01, 0, 0x29, 0x5C, 0x8F, 0xC2, 0xF5, 0xC0, 0x6F, 0x40];
        assert_eq!(bytes, [&literal[..], &[0xB0, 0xFB, 0x04, 0x18, 0x00, 0x1C, 0x02, 0xB6, 0x00, 0]].concat());
        // A half raises the scale of everything after the literal, not of the literal.
        let bytes = encoded(&[1.0, 2.0, 2.5].map(OwnedValue::double));
        assert_eq!(bytes[2..11], [0, 0, 0, 0, 0, 0, 0xF0, 0x3F, 0xA0]);
    }

    #[test]
    fn dates_at_a_fixed_interval_are_zeros_after_the_first_two() {
        let bytes = encoded(&[0, 60_000, 120_000, 180_000, 240_000].map(|ms| OwnedValue::date(1_639_842_900_000 + ms)));
        let literal = [0x09, 0, 0x20, 0xE8, 0x40, 0xCE, 0x7D, 0x01, 0, 0, 0x81];
        let words = [0x0C, 0x4C, 0x1D, 0, 0, 0, 0, 0, 0x0E, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(bytes, [&literal[..], &words].concat());
    }

    #[test]
    fn missing_elements_may_come_first() {
        let mut writer = ColumnWriter::new();
        writer.skip(3);
        [10, 11, 12].into_iter().for_each(|n| writer.push(OwnedValue::int64(n).view()));
        let skips = [0x80, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF];
        let literal = [0x12, 0, 0x0A, 0, 0, 0, 0, 0, 0, 0];
        let ones = [0x80, 0x2D, 0, 0, 0, 0x08, 0, 0, 0, 0];
        assert_eq!((writer.len(), writer.finish()), (6, [&skips[..], &literal, &ones].concat()));
    }

    #[test]
    fn objects_without_scalars_are_literals_and_end_a_section() {
        let empty = OwnedValue::doc(Doc::EMPTY);
        let raw = bson::rawdoc! { "a": 1 };
        let one = OwnedValue::doc(Doc::parse(raw.as_bytes()).unwrap());
        let section = [&[0xF1][..], raw.as_bytes(), &[0x80, 0x0E, 0, 0, 0, 0, 0, 0, 0, 0]].concat();
        let literal = [&[0x03, 0][..], Doc::EMPTY.as_bytes()].concat();
        let expected = [&section[..], &literal, &section, &[0]].concat();
        assert_eq!(encoded(&[one.clone(), empty, one]), expected);
    }

    proptest! {
        #[test]
        fn the_same_elements_give_the_same_bytes_however_they_are_added(
            cells in any_cells(), picks in proptest::collection::vec(any::<prop::sample::Index>(), 0..5),
        ) {
            let expected = pushed(&cells).finish();
            let column = column_of(&cells);
            prop_assert_eq!(&encode(&column), &expected);
            let cuts = cuts(&picks, cells.len());
            let mut writer = ColumnWriter::new();
            for (start, end) in cuts.iter().zip(&cuts[1..]) {
                writer.extend(&column, *start..*end);
                // Taking the bytes so far gives another column and changes nothing.
                prop_assert_eq!(writer.len(), *end);
                prop_assert_eq!(writer.to_bytes(), pushed(&cells[..*end]).finish());
            }
            prop_assert_eq!(writer.finish(), expected);
        }

        #[test]
        fn objects_read_scalar_by_scalar_equal_those_read_whole(cells in any_cells()) {
            let bytes = pushed(&cells).finish();
            let whole = crate::column::decode(&bytes, cells.len()).unwrap();
            let parts = crate::column::decode_scalars(&bytes, cells.len(), 0).unwrap();
            let (mut left, mut right) = (Vec::new(), Vec::new());
            for row in 0..cells.len() {
                prop_assert_eq!(parts.value(row, &mut left), whole.value(row, &mut right));
            }
            prop_assert_eq!(parts.present_count(), whole.present_count());
            prop_assert_eq!(parts.clone().into_plain().into_values(), whole.into_plain());
        }

        #[test]
        fn a_dictionary_is_written_like_the_cells_it_stands_for(
            cells in any_cells(), index in proptest::collection::vec((any::<prop::sample::Index>(), 1..200_usize), 1..8),
        ) {
            let values: Vec<_> = cells.into_iter().flatten().map(Some).collect();
            // Not an assumption: proptest allows a limited number of rejected cases.
            if values.is_empty() {
                return Ok(());
            }
            let repeated = |(pick, count): &(prop::sample::Index, usize)| vec![pick.index(values.len()) as u32; *count];
            let index: Vec<u32> = index.iter().flat_map(repeated).collect();
            let dictionary = Column::new(ColumnData::Dictionary(index, Box::new(column_of(&values))), None);
            prop_assert_eq!(encode(&dictionary), encode(&dictionary.clone().into_plain()));
        }
    }

    #[test]
    fn skipping_several_rows_equals_skipping_one_by_one() {
        for value in [OwnedValue::double(0.25), OwnedValue::int32(1), OwnedValue::string("a")] {
            for count in [0, 1, 60, 61, 121, 1921, 4000] {
                let (mut once, mut single) = (ColumnWriter::new(), ColumnWriter::new());
                for _ in 0..2 {
                    once.skip(count);
                    (0..count).for_each(|_| single.skip(1));
                    once.push(value.view());
                    single.push(value.view());
                }
                assert_eq!(once.finish(), single.finish());
            }
        }
    }
}
