//! Reads a column item by item, in the most compact form that its values allow.

use super::super::error::ColumnError;
use super::entries::Entries;
use super::items::{Item, Items};
use super::section;
use super::stream::{Element, StreamReader};
use super::typed::{BAD_SCALE, TOO_MANY, TypedRows};
use super::words::elements;
use crate::block::Column;
use crate::value::Kind;

/// The rows so far: typed while all values are numbers, dates, booleans and null, or all are ObjectIds; entries from the first other value on.
pub(super) struct RowReader<'a> {
    /// Number of absent rows before the first value.
    absent: usize,
    typed: Option<TypedRows>,
    entries: Option<Entries>,
    /// The stream state after the last row of `entries`, unless that row is a `literal`.
    stream: StreamReader<'a>,
    literal: Option<(Kind, &'a [u8])>,
    rows_max: usize,
    /// About how many rows are expected.
    capacity: usize,
    /// The first row whose value matters.
    from: usize,
}

/// Reads a column of at most `rows_max` elements: typed if all values have one type, BSON otherwise; a dictionary if
/// strings or BSON values repeat.
///
/// Errors: the rule that is broken, and the offset of the item that breaks it.
pub fn decode(bytes: &[u8], rows_max: usize) -> Result<Column, ColumnError> {
    decode_from(bytes, rows_max, 0)
}

/// As `decode`, but rows before `from` may get any values.
///
/// Errors: as `decode`.
pub fn decode_from(bytes: &[u8], rows_max: usize, from: usize) -> Result<Column, ColumnError> {
    // A word stands for at most 240 elements per byte.
    let capacity = rows_max.min(bytes.len().saturating_mul(240));
    let mut items = Items::new(bytes);
    let mut rows = RowReader::new(rows_max, capacity, from);
    loop {
        let (item, offset) = items.next(0)?;
        let fail = |reason| ColumnError::new(reason, offset);
        match item {
            Item::Literal(kind, bytes) => {
                rows.literal(kind, bytes).map_err(fail)?;
                if let Some(typed) = rows.typed.as_mut().filter(|_| rows.entries.is_none()) {
                    items.skip(|rest| typed.items(rest, rows_max));
                }
            }
            Item::Control(control, words) => rows.control(control, words).map_err(fail)?,
            Item::Section(section, reference) => {
                rows.literal = None;
                rows.stream = match section::read(&mut items, offset, section, reference, rows.entries(), rows_max)? {
                    // A control that follows can only repeat the last object.
                    Some(kind) => StreamReader::behind(kind, &[]),
                    None => StreamReader::new(),
                };
            }
            Item::End => {
                items.finish()?;
                return Ok(rows.finish());
            }
        }
    }
}

/// The number of elements of a column, present or not, without reading the values.
///
/// Errors: as `decode`, as far as items and words show them.
pub fn count(bytes: &[u8], rows_max: usize) -> Result<usize, ColumnError> {
    let mut items = Items::new(bytes);
    let mut rows = 0;
    loop {
        let (item, offset) = items.next(0)?;
        rows += match item {
            Item::Literal(..) => 1,
            Item::Control(_, words) => elements(words).map_err(|reason| ColumnError::new(reason, offset))?,
            Item::Section(section, reference) => {
                section::count(&mut items, offset, section, reference, rows_max - rows)?
            }
            Item::End => {
                items.finish()?;
                return Ok(rows);
            }
        };
        if rows > rows_max {
            return Err(ColumnError::new(TOO_MANY, offset));
        }
    }
}

impl<'a> RowReader<'a> {
    /// No rows yet, of at most `rows_max`.
    pub fn new(rows_max: usize, capacity: usize, from: usize) -> RowReader<'a> {
        let stream = StreamReader::new();
        RowReader { absent: 0, typed: None, entries: None, stream, literal: None, rows_max, capacity, from }
    }

    /// No rows yet, behind a value that is not among them.
    pub fn behind(kind: Kind, bytes: &'a [u8], rows_max: usize) -> RowReader<'a> {
        let mut rows = RowReader::new(rows_max, rows_max, 0);
        if TypedRows::takes(kind) {
            rows.typed = Some(TypedRows::behind(kind, bytes, rows_max));
        } else {
            rows.stream = StreamReader::behind(kind, bytes);
            rows.entries = Some(Entries::new(0));
        }
        rows
    }

    fn len(&self) -> usize {
        match (&self.entries, &self.typed) {
            (Some(entries), _) => entries.len(),
            (None, Some(typed)) => typed.len(),
            (None, None) => self.absent,
        }
    }

    #[inline]
    fn takes_typed(&self, kind: Kind) -> bool {
        self.entries.is_none() && self.typed.as_ref().map_or(TypedRows::takes(kind), |typed| typed.takes_next(kind))
    }

    /// The rows as entries, converted if necessary.
    fn entries(&mut self) -> &mut Entries {
        self.entries.get_or_insert_with(|| match self.typed.take() {
            Some(typed) => Entries::from_column(&typed.finish()),
            None => Entries::new(self.absent),
        })
    }

    /// Appends a value.
    ///
    /// Errors: `TOO_MANY`; that the column decodes to too many bytes.
    #[inline]
    pub fn literal(&mut self, kind: Kind, bytes: &'a [u8]) -> Result<(), &'static str> {
        if self.len() >= self.rows_max {
            return Err(TOO_MANY);
        }
        if self.takes_typed(kind) {
            let (absent, capacity, from) = (self.absent, self.capacity, self.from);
            self.typed.get_or_insert_with(|| TypedRows::new(kind, absent, capacity, from)).literal(kind, bytes);
            return Ok(());
        }
        self.literal = Some((kind, bytes));
        push(self.entries(), kind, bytes)
    }

    /// Appends the elements of a control.
    ///
    /// Errors: those of streams.
    pub fn control(&mut self, control: u8, words: &'a [u8]) -> Result<(), &'static str> {
        if let Some(entries) = &mut self.entries {
            if let Some((kind, bytes)) = self.literal.take() {
                self.stream = StreamReader::behind(kind, bytes);
            }
            self.stream.open(control, words)?;
            return read_stream(&mut self.stream, entries, self.rows_max);
        }
        if let Some(typed) = &mut self.typed {
            return typed.control(control, words, self.rows_max);
        }
        self.absent += elements(words)?;
        if control & 0xF0 != 0x80 {
            return Err(BAD_SCALE);
        }
        if self.absent > self.rows_max { Err(TOO_MANY) } else { Ok(()) }
    }

    /// The column.
    pub fn finish(self) -> Column {
        match (self.entries, self.typed) {
            (Some(entries), _) => entries.finish(),
            (None, Some(typed)) => typed.finish(),
            (None, None) => Entries::new(self.absent).finish(),
        }
    }
}

fn push(entries: &mut Entries, kind: Kind, bytes: &[u8]) -> Result<(), &'static str> {
    entries.charge(bytes.len())?;
    entries.push(kind, bytes);
    Ok(())
}

/// Appends all elements of the open control.
fn read_stream(stream: &mut StreamReader<'_>, entries: &mut Entries, rows_max: usize) -> Result<(), &'static str> {
    loop {
        entries.push_texts(stream, rows_max);
        if stream.is_exhausted() {
            return Ok(());
        }
        let room = rows_max - entries.len();
        if room == 0 {
            return Err(TOO_MANY);
        }
        match stream.next(room)? {
            (Element::Missing, count) => entries.push_absent(count),
            // The value before the first row.
            (Element::Same, count) if entries.has_no_values() => {
                if let Some((kind, bytes)) = stream.value() {
                    push(entries, kind, bytes)?;
                    entries.push_same(count - 1);
                }
            }
            (Element::Same, count) => entries.push_same(count),
            (Element::New, _) => {
                if let Some((kind, bytes)) = stream.value() {
                    push(entries, kind, bytes)?;
                }
                stream.text().into_iter().for_each(|text| entries.remember_text(text));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::ColumnData;
    use crate::column::read::forge::{Forge, deltas, double, int, plain, run, string};
    use crate::column::read::words::BAD_SELECTOR;
    use crate::value::OwnedValue;
    use proptest::prelude::*;

    /// Decodes item by item and element by element, as the format's description does; an error if any step fails.
    fn one_by_one(bytes: &[u8], rows_max: usize) -> Option<Vec<Option<OwnedValue>>> {
        let mut items = Items::new(bytes);
        let mut stream = StreamReader::new();
        let mut cells = Vec::new();
        loop {
            match items.next(0).ok()?.0 {
                Item::Literal(kind, bytes) => {
                    stream = StreamReader::behind(kind, bytes);
                    cells.push(Some(OwnedValue::from_tagged_checked([&[kind.byte()][..], bytes].concat())));
                }
                Item::Control(control, words) => {
                    stream.open(control, words).ok()?;
                    while !stream.is_exhausted() {
                        let element = stream.next(1).ok()?.0;
                        let (kind, bytes) = stream.value().unwrap_or((Kind::Null, &[]));
                        let value = OwnedValue::from_tagged_checked([&[kind.byte()][..], bytes].concat());
                        cells.push(Some(value).filter(|_| element != Element::Missing));
                    }
                }
                Item::Section(..) => return None,
                Item::End => return items.finish().ok().map(|()| cells).filter(|cells| cells.len() <= rows_max),
            }
            if cells.len() > rows_max {
                return None;
            }
        }
    }

    fn any_literal() -> impl Strategy<Value = OwnedValue> {
        prop_oneof![
            3 => (-1000_i32..1000).prop_map(|n| double(f64::from(n) / 4.0)),
            1 => any::<u64>().prop_map(|bits| double(f64::from_bits(bits))),
            2 => any::<i32>().prop_map(int),
            2 => any::<i64>().prop_map(OwnedValue::int64),
            2 => any::<i64>().prop_map(OwnedValue::date),
            2 => any::<bool>().prop_map(OwnedValue::bool),
            2 => any::<[u8; 12]>().prop_map(OwnedValue::object_id),
            2 => "[a-c]{0,20}".prop_map(|text| string(&text)),
            1 => Just(OwnedValue::null()),
        ]
    }

    fn any_word() -> impl Strategy<Value = u64> {
        prop_oneof![
            3 => any::<u64>(),
            2 => (1..15_u64, any::<u64>()).prop_map(|(selector, bits)| selector | bits << 8),
            1 => (1..15_u64).prop_map(|selector| selector | u64::MAX << 8),
            1 => Just(14),
            1 => Just(2),
            2 => (1..3_u64).prop_map(run),
        ]
    }

    fn any_column() -> impl Strategy<Value = Vec<u8>> {
        let nibble = prop_oneof![3 => Just(0x80_u8), 1 => (0x90_u8..=0xD0).prop_map(|byte| byte & 0xF0)];
        let control = (nibble, proptest::collection::vec(any_word(), 1..4));
        let run = (any_literal(), proptest::collection::vec(control, 0..4));
        // Often the same type again.
        (proptest::collection::vec(run, 1..5), 0..3_usize).prop_map(|(runs, same)| {
            let mut forge = Forge::default();
            for (i, (literal, _)) in runs.iter().enumerate() {
                let literal = if same > 0 { &runs[0].0 } else { literal };
                forge = forge.literal(literal);
                for (nibble, words) in &runs[i].1 {
                    forge = forge.control(*nibble, words);
                }
            }
            forge.end().bytes
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn reading_in_bulk_equals_reading_one_by_one(bytes in any_column()) {
            let expected = one_by_one(&bytes, 3000);
            let column = decode(&bytes, 3000);
            prop_assert_eq!(column.as_ref().ok().map(crate::column::read::vectors::cells), expected.clone());
            if let (Ok(column), Some(cells)) = (column, expected) {
                prop_assert_eq!(count(&bytes, 3000), Ok(cells.len()));
                // The same types as cell by cell, and absent cells are zero or empty.
                let mut builder = crate::block::ColumnBuilder::new();
                for cell in &cells {
                    match cell {
                        Some(cell) => builder.push(cell.view()),
                        None => builder.push_absent(1),
                    }
                }
                let (column, built) = (column.into_plain(), builder.finish());
                prop_assert_eq!(column.presence(), built.presence());
                prop_assert_eq!(column.kind(), built.kind());
                let same = match (column.data(), built.data()) {
                    (ColumnData::F64(a), ColumnData::F64(b)) => a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits())),
                    (a, b) => a == b,
                };
                prop_assert!(same);
            }
        }

        #[test]
        fn rows_decode_alike_if_earlier_rows_are_skipped(bytes in any_column(), from in 0..200_usize) {
            use crate::column::read::vectors::cells;
            let behind = |column: &Column| cells(&column.slice(from.min(column.len())..column.len()));
            let (all, some) = (decode(&bytes, 3000), decode_from(&bytes, 3000, from));
            prop_assert_eq!(all.as_ref().map(behind), some.as_ref().map(behind));
        }

        #[test]
        fn arbitrary_bytes_are_decoded_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(column) = decode(&bytes, 1000) {
                prop_assert!(column.len() <= 1000);
            }
            let _ = count(&bytes, 1000);
        }
    }

    #[test]
    fn strings_that_come_again_are_read_as_one_by_one() {
        // Known strings in words of many slots, across words and literals, with missing elements, runs and too little room.
        let long = string(&"long ".repeat(10));
        let forge = Forge::default()
            .literal(&string("a"))
            .control(
                0x80,
                &[deltas(&[1, -1]), deltas(&[1, 0, -1, 1, -1]), plain(&[Some(2), None, Some(1), Some(0)]), run(1)],
            )
            .control(0x80, &[deltas(&[1, 1, -2]), deltas(&[2, -2, 0]), run(1), deltas(&[1, -1])])
            .literal(&long)
            .control(0x80, &[deltas(&[0]), deltas(&[0x61, 1, -1, 0]), deltas(&[1, -1])])
            .literal(&int(7))
            .literal(&string("b"))
            .control(0x80, &[deltas(&[-1, 1]), deltas(&[-1, 1, 0])]);
        let column = forge.end();
        let expected = one_by_one(&column.bytes, 3000);
        assert!(expected.is_some_and(|cells| cells.len() > 250 && cells == column.cells()));
        let rows = column.cells().len();
        assert_eq!(decode(&column.bytes, rows).map(|column| column.len()), Ok(rows));
        assert_eq!(decode(&column.bytes, rows - 1).unwrap_err().reason, TOO_MANY);
    }

    #[test]
    fn every_broken_rule_is_named_with_the_offset_of_its_item() {
        let one = Forge::default().literal(&int(1));
        let cases = [
            (Forge::default(), "the column has no end", 0),
            (one.clone(), "the column has no end", 6),
            (one.clone().end().raw(&[0]), "bytes follow the end", 7),
            (one.clone().control(0x80, &[14]), "a control is truncated", 6),
            (one.clone().raw(&[0x81, 14, 0, 0, 0, 0, 0, 0, 0, 0]), "a control is truncated", 6),
            (one.clone().control(0xE0, &[14]).end(), "an item begins with an unknown byte", 6),
            (one.clone().control(0x70, &[14]).end(), "an item begins with an unknown byte", 6),
            (one.clone().raw(&[0x1F, 0]).end(), "a literal has an unknown type", 6),
            (one.clone().control(0xB0, &[14]).end(), BAD_SCALE, 6),
            (Forge::default().control(0x90, &[14]).end(), BAD_SCALE, 0),
            (one.clone().control(0x80, &[14, 0]).end(), BAD_SELECTOR, 6),
            (one.clone().control(0x80, &[0xA7]).end(), BAD_SELECTOR, 6),
            (Forge::default().control(0x80, &[0xE8]).end(), BAD_SELECTOR, 0),
            (Forge::default().literal(&string("")).control(0x80, &[0xF8]).end(), BAD_SELECTOR, 7),
        ];
        for (column, reason, offset) in cases {
            assert_eq!(column.refusal(), (reason, offset), "{:x?}", column.bytes);
        }
    }

    #[test]
    fn elements_before_the_first_literal_are_missing() {
        let column = Forge::default().control(0x80, &[deltas(&[1, 2]), run(1)]).end().read().unwrap();
        assert_eq!((column.len(), column.present_count()), (122, 0));
        let column = Forge::default().control(0x80, &[deltas(&[1])]).literal(&string("a")).end();
        assert_eq!(column.cells(), [None, Some(string("a"))]);
        assert!(decode(&Forge::default().control(0x80, &[run(9)]).end().bytes, 1000).is_err());
    }

    #[test]
    fn a_column_is_typed_until_a_value_of_another_type_comes() {
        let typed =
            Forge::default().control(0x80, &[plain(&[None])]).literal(&double(1.5)).control(0xA0, &[deltas(&[5])]);
        assert!(matches!(typed.clone().end().read().unwrap().data(), ColumnData::F64(_)));
        let mixed = typed.literal(&int(7)).control(0x80, &[plain(&[None, Some(2)])]).literal(&double(9.5)).end();
        assert!(matches!(mixed.read().unwrap().data(), ColumnData::Bson(_)));
        let expected =
            [None, Some(double(1.5)), Some(double(2.0)), Some(int(7)), None, Some(int(8)), Some(double(9.5))];
        assert_eq!(mixed.cells(), expected);
    }

    #[test]
    fn a_string_repeated_a_thousand_times_is_one_dictionary_entry() {
        let words = [run(8), deltas(&[0; 30]), deltas(&[0; 8]), deltas(&[0])];
        for text in ["idle", &"idle".repeat(100)] {
            let column = Forge::default().literal(&string(text)).control(0x80, &words).end().read().unwrap();
            assert_eq!(column.len(), 1000);
            assert!(matches!(column.data(), ColumnData::Dictionary(_, values) if values.len() == 1));
        }
    }

    #[test]
    fn one_row_too_many_is_refused_for_every_kind_of_item() {
        let columns = [
            Forge::default().literal(&int(1)).literal(&int(2)),
            Forge::default().literal(&string("a")).literal(&int(2)),
            Forge::default().literal(&string("a")).control(0x80, &[deltas(&[0])]),
            Forge::default().control(0x80, &[plain(&[None; 2])]),
        ];
        for column in columns.map(Forge::end) {
            assert!(decode(&column.bytes, 2).is_ok());
            assert_eq!(decode(&column.bytes, 1).unwrap_err().reason, TOO_MANY);
            assert_eq!(count(&column.bytes, 1).unwrap_err().reason, TOO_MANY);
        }
    }
}
