//! Rows of strings or of values of any types, with each repeated value stored once.

use kernels::elements;
use kernels::words::{TEXTS, place_of_text};

use super::presence::Presence;
use super::stream::{StreamReader, text_of};
use crate::block::{Column, ColumnBuilder, ColumnData, VarData};
use crate::limits::COLUMN_SIZE_BYTES_MAX;
use crate::value::Kind;

/// The column decodes to more bytes than allowed (I1).
pub const TOO_LARGE: &str = "the column decodes to too many bytes";

/// How many values are remembered to recognise repetitions; a power of two.
const SEEN: usize = 256;

/// Up to so many values are compared one by one: columns of few rows are not worth a table.
const FEW: u32 = 4;

/// The rows so far: the distinct values, and which of them each row has.
pub struct Entries {
    /// Bare strings while all values are strings; type bytes and value bytes afterwards.
    values: VarData,
    texts: bool,
    index: Vec<u32>,
    presence: Presence,
    present: usize,
    /// The entry of the last present row.
    last: u32,
    /// Hash table of entries by their bytes, each plus one. Most columns hold few distinct values, but equal ones are
    /// not always adjacent. Empty while these are `FEW`.
    seen: Vec<u32>,
    /// The same by the integers of strings, which need not be built to be recognised. Empty until there is one.
    texts_seen: Vec<(i128, u32)>,
    /// How many more bytes may be decoded.
    room_bytes: usize,
}

impl Entries {
    /// Starts with `absent` rows without a value.
    pub fn new(absent: usize) -> Entries {
        let mut entries = Entries {
            values: VarData::default(),
            texts: true,
            index: Vec::new(),
            presence: Presence::default(),
            present: 0,
            last: 0,
            seen: Vec::new(),
            texts_seen: Vec::new(),
            room_bytes: COLUMN_SIZE_BYTES_MAX,
        };
        entries.push_absent(absent);
        entries
    }

    /// The rows of a column.
    pub fn from_column(column: &Column) -> Entries {
        let mut entries = Entries::new(0);
        let mut scratch = Vec::new();
        for row in 0..column.len() {
            match column.value(row, &mut scratch) {
                Some(value) => entries.push(value.kind(), value.bytes()),
                None => entries.push_absent(1),
            }
        }
        entries
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// True before the first row with a value.
    pub fn has_no_values(&self) -> bool {
        self.present == 0
    }

    /// Accounts for bytes and work before they are spent.
    ///
    /// Errors: `TOO_LARGE`.
    pub fn charge(&mut self, bytes: usize) -> Result<(), &'static str> {
        self.room_bytes = self.room_bytes.checked_sub(bytes).ok_or(TOO_LARGE)?;
        Ok(())
    }

    /// Appends a row with a checked value.
    pub fn push(&mut self, kind: Kind, bytes: &[u8]) {
        if self.texts && kind != Kind::String {
            self.end_texts();
        }
        let tag = [kind.byte()];
        // Not `&[]`: some processors are slow to compare an empty slice at a dangling address.
        let tag = tag.get(usize::from(self.texts)..).unwrap_or_default();
        let bytes = if self.texts { text_of(bytes) } else { bytes };
        let is = |entry: u32, values: &VarData| values.get(entry as usize).strip_prefix(tag) == Some(bytes);
        if self.present == 0 || !is(self.last, &self.values) {
            let new = self.values.len() as u32;
            if new == FEW && self.seen.is_empty() {
                self.begin_table(tag.len());
            }
            // Zero means none.
            let mut none = 0;
            if self.seen.is_empty() {
                none = (0..new).find(|entry| is(*entry, &self.values)).map_or(0, |entry| entry + 1);
            }
            let place = if self.seen.is_empty() { 0 } else { hash(bytes) % SEEN };
            let seen = self.seen.get_mut(place).unwrap_or(&mut none);
            if *seen > 0 && is(*seen - 1, &self.values) {
                self.last = *seen - 1;
            } else {
                *seen = new + 1;
                self.last = new;
                self.values.bytes.extend_from_slice(tag);
                self.values.push(bytes);
            }
        }
        self.push_same(1);
    }

    /// Puts the values so far in the table, by what stands behind the first `from` bytes of each.
    fn begin_table(&mut self, from: usize) {
        self.seen.resize(SEEN, 0);
        for entry in 0..FEW {
            let bytes = self.values.get(entry as usize).get(from..).unwrap_or_default();
            if let Some(seen) = self.seen.get_mut(hash(bytes) % SEEN) {
                *seen = entry + 1;
            }
        }
    }

    /// Appends the strings at the start of a stream's words, as far as they are remembered, up to `rows_max` rows in total.
    pub fn push_texts(&mut self, stream: &mut StreamReader<'_>, rows_max: usize) {
        if self.present == 0 {
            return;
        }
        let before = self.len();
        let room = rows_max.saturating_sub(before);
        stream.read_texts(&self.texts_seen, &mut self.last, room, &mut self.index);
        self.present += self.len() - before;
    }

    /// Remembers that the last present row has the string of this integer.
    pub fn remember_text(&mut self, integer: i128) {
        self.texts_seen.resize(TEXTS, (0, 0));
        if let Some(seen) = self.texts_seen.get_mut(place_of_text(integer)) {
            *seen = (integer, self.last + 1);
        }
    }

    /// Appends rows with the value of the last present row, which must exist.
    pub fn push_same(&mut self, count: usize) {
        self.present += count;
        self.index.resize(self.index.len() + count, self.last);
    }

    /// Appends absent rows.
    pub fn push_absent(&mut self, count: usize) {
        if count > 0 {
            self.presence.push_absent(self.len(), count);
            self.index.resize(self.index.len() + count, 0);
        }
    }

    fn end_texts(&mut self) {
        self.texts = false;
        let texts = std::mem::take(&mut self.values);
        for entry in 0..texts.len() {
            let text = texts.get(entry);
            self.values.bytes.push(Kind::String.byte());
            elements::push_text(&mut self.values.bytes, text);
            self.values.seal();
        }
    }

    /// The column, as a dictionary if that saves space.
    pub fn finish(self) -> Column {
        let rows = self.len();
        if self.present == 0 {
            let mut builder = ColumnBuilder::new();
            builder.push_absent(rows);
            return builder.finish();
        }
        let data = |values| if self.texts { ColumnData::String(values) } else { ColumnData::Bson(values) };
        let presence = self.presence.finish(rows);
        let entries = self.values.len();
        if presence.is_none() && entries == rows {
            return Column::new(data(self.values), None);
        }
        let value = |row: usize, entry: &u32| match &presence {
            Some(presence) if !presence.get(row) => &[],
            _ => self.values.get(*entry as usize),
        };
        // A dictionary of large values may stand for more bytes than a `usize` can count.
        let plain_bytes = || {
            let lengths = self.index.iter().enumerate().map(|(row, entry)| value(row, entry).len());
            lengths.fold(0, usize::saturating_add)
        };
        // A few large repeated values must not be copied, however many small ones do not repeat.
        if entries * 2 <= self.present || plain_bytes() / 2 > self.values.bytes.len() {
            let values = Column::new(data(self.values), None);
            return Column::new(ColumnData::Dictionary(self.index, Box::new(values)), presence);
        }
        let mut plain =
            VarData { offsets: Vec::with_capacity(rows + 1), bytes: Vec::with_capacity(self.values.bytes.len()) };
        plain.offsets.push(0);
        self.index.iter().enumerate().for_each(|(row, entry)| plain.push(value(row, entry)));
        Column::new(data(plain), presence)
    }
}

/// A hash of the length and the first and last eight bytes, which tells most values apart.
fn hash(bytes: &[u8]) -> usize {
    let number = |part: &[u8]| part.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    let first = number(bytes.get(..8).unwrap_or(bytes));
    let last = bytes.last_chunk().map_or(0, |last| u64::from_le_bytes(*last));
    let mixed = (first ^ last.rotate_left(23)).wrapping_add(bytes.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (mixed >> 40) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::column::read::forge::{int, string};
    use crate::value::{OwnedValue, Value};

    /// The column of these values; `None` means absent.
    fn column(values: &[Option<OwnedValue>]) -> Column {
        let mut entries = Entries::new(0);
        for value in values {
            match value.as_ref().map(OwnedValue::view) {
                Some(value) => entries.push(value.kind(), value.bytes()),
                None => entries.push_absent(1),
            }
        }
        let column = entries.finish();
        assert_eq!(crate::column::read::vectors::cells(&column), values);
        column
    }

    #[test]
    fn a_few_alternating_values_become_a_dictionary() {
        let values: Vec<_> = (0..1000).map(|i| (i % 7 != 0).then(|| string(["on", "off", "error"][i % 3]))).collect();
        let column = column(&values);
        let ColumnData::Dictionary(index, entries) = column.data() else { panic!("{column:?}") };
        assert_eq!((index.len(), entries.len()), (1000, 3));
        assert!(matches!(entries.data(), ColumnData::String(_)));
        assert!(entries.presence().is_none());
    }

    #[test]
    fn values_that_came_before_there_was_a_table_are_recognised_in_it() {
        for mixed in [false, true] {
            let value = |i: usize| if mixed && i % 9 == 1 { int(1) } else { string(&(i % 9).to_string()) };
            let values: Vec<_> = (0..90).map(|i| Some(value(i))).collect();
            let column = column(&values);
            let ColumnData::Dictionary(_, entries) = column.data() else { panic!("{column:?}") };
            assert_eq!(entries.len(), 9);
        }
    }

    #[test]
    fn distinct_values_become_a_plain_column() {
        let values: Vec<_> = (0..10).map(|i| Some(string(&i.to_string()))).collect();
        assert!(matches!(column(&values).data(), ColumnData::String(texts) if texts.len() == 10));
        let values: Vec<_> = (0..10).map(|i| (i != 4).then(|| string(&i.to_string()))).collect();
        let column = column(&values);
        assert!(matches!(column.data(), ColumnData::String(texts) if texts.get(4).is_empty()));
        assert!(!column.is_present(4));
    }

    #[test]
    fn a_string_column_becomes_bson_at_the_first_other_type() {
        let values = [Some(string("a")), None, Some(string("a")), Some(int(1)), Some(string("a")), Some(string(""))];
        let column = column(&values);
        assert!(matches!(column.data(), ColumnData::Bson(values) if values.get(1).is_empty()), "{column:?}");
    }

    #[test]
    fn large_values_are_not_copied_for_every_row() {
        let large = string(&"x".repeat(10_000));
        let values: Vec<_> =
            (0..100).map(|i| Some(if i % 3 == 0 { large.clone() } else { string(&i.to_string()) })).collect();
        assert!(matches!(column(&values).data(), ColumnData::Dictionary(..)));
    }

    #[test]
    fn a_column_of_missing_values_equals_that_of_a_builder() {
        let mut builder = ColumnBuilder::new();
        builder.push_absent(5);
        assert_eq!(Entries::new(5).finish(), builder.finish());
        assert_eq!(Entries::new(0).finish(), ColumnBuilder::new().finish());
    }

    #[test]
    fn the_decoded_size_is_bounded() {
        let mut entries = Entries::new(0);
        assert_eq!(entries.charge(COLUMN_SIZE_BYTES_MAX), Ok(()));
        assert_eq!(entries.charge(1), Err(TOO_LARGE));
    }

    #[test]
    fn the_entries_of_a_column_give_back_the_same_column() {
        let mut builder = ColumnBuilder::new();
        [1.5, 1.5, 2.5].iter().for_each(|x| builder.push(OwnedValue::double(*x).view()));
        builder.push_absent(2);
        builder.push(Value::NULL);
        let column = builder.finish();
        assert_eq!(Entries::from_column(&column).finish(), column);
    }
}
