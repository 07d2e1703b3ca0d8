//! Numbers the values of columns.

use std::ops::Range;

use kernels::{gather, runs};

use super::super::known::KnownValues;
use super::numbers::{Numbers, runs_max};
use super::words::{SMALL_MAX, addable, is_plain, note_small, small_of, table_of, value_of, view_of, word_of};
use crate::block::{Bitmap, Bytes12, Column, ColumnBuilder, ColumnData, VarData};
use crate::value::{Collation, Interner, Kind, OwnedValue, Value, WordTable, append_key, append_missing_key};

/// The number of missing values that count as nothing.
pub const NOTHING: u32 = u32::MAX;

/// So many texts are known as they are beside their keys. Others are known by their keys only.
const TEXTS_MAX: usize = 1 << 17;

/// What missing values count as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MissingAs {
    Null,
    /// A value of its own, which only undefined equals.
    Undefined,
    /// No value at all: their number is `NOTHING`.
    Nothing,
}

/// Values of which none compares equal to one in another form, so that they need no keys: all are of one type.
enum Plain {
    /// Their bits, by number.
    Words(Kind, Vec<u64>),
    /// `Coder::texts` has them.
    Bytes,
}

/// Numbers values from 0 on, in first-seen order. Values that compare equal have the same number.
///
/// The keys of values decide (`append_key`): 1, 1.0 and int64 1 are one value. In front of them, tables know the numbers
/// of cells that were seen in exactly this form.
pub struct Coder {
    /// Values with keys: all of them, or none while `plain` has them.
    known: KnownValues,
    plain: Option<Plain>,
    missing: MissingAs,
    /// The number of missing values, once there was one.
    missing_number: Option<u32>,
    /// True once null has a number.
    null_is_known: bool,
    /// The length of each value's key.
    key_lens: Vec<usize>,
    /// Doubles, int32s, int64s, dates and booleans by their bits.
    words: [WordTable; 5],
    /// The numbers of small integers that are int32s, and of those that are doubles; or `NOTHING`.
    small: [Vec<u32>; 2],
    /// Texts, or the bytes of values of another type, whichever came first; and the number of each.
    texts: Interner,
    text_numbers: Vec<u32>,
    texts_kind: Kind,
    has_aliases: bool,
    key: Vec<u8>,
}

impl Coder {
    /// A coder that knows no values.
    pub fn new(collation: Collation, missing: MissingAs) -> Coder {
        Coder {
            known: KnownValues::new(collation),
            plain: None,
            missing,
            missing_number: None,
            null_is_known: false,
            key_lens: Vec::new(),
            words: Default::default(),
            small: Default::default(),
            texts: Interner::default(),
            text_numbers: Vec::new(),
            texts_kind: Kind::String,
            has_aliases: false,
            key: Vec::new(),
        }
    }

    /// How many values there are.
    pub fn count(&self) -> usize {
        match &self.plain {
            Some(Plain::Words(_, words)) => words.len(),
            Some(Plain::Bytes) => self.texts.count(),
            None => self.known.values().len(),
        }
    }

    /// Calls `see` with the values, in the order of their numbers, from the number `first` on.
    pub fn for_each(&self, first: usize, see: &mut dyn FnMut(Value<'_>)) {
        let mut scratch = Vec::new();
        for number in first..self.count() {
            self.value(number, &mut scratch).into_iter().for_each(&mut *see);
        }
    }

    /// The values, by value.
    pub fn into_values(self) -> Vec<OwnedValue> {
        if self.plain.is_none() {
            return self.known.into_values();
        }
        let mut values = Vec::with_capacity(self.count());
        self.for_each(0, &mut |value| values.push(value.to_owned()));
        values
    }

    fn value<'a>(&'a self, number: usize, scratch: &'a mut Vec<u8>) -> Option<Value<'a>> {
        match &self.plain {
            Some(Plain::Words(kind, words)) => Some(value_of(*kind, words.get(number)?)),
            Some(Plain::Bytes) => Some(view_of(self.texts_kind, self.texts.key(number), scratch)),
            None => self.known.values().get(number).map(OwnedValue::view),
        }
    }

    /// The values with these numbers. Missing ones are missing, unless they count as null.
    pub fn column(&self, mut numbers: Vec<u32>) -> Column {
        let missing = self.missing_number.filter(|_| self.missing == MissingAs::Undefined);
        let mut values = ColumnBuilder::with_capacity(self.count());
        let mut number = 0;
        self.for_each(0, &mut |value| {
            values.push(if missing == Some(number) { Value::NULL } else { value });
            number += 1;
        });
        let Some(missing) = missing else { return Column::of_entries(numbers, values.finish()) };
        let present = Bitmap::from_slice(&numbers, |number| *number != missing);
        numbers.iter_mut().filter(|number| **number == missing).for_each(|number| *number = 0);
        Column::new(ColumnData::Dictionary(numbers, Box::new(values.finish())), Some(present))
    }

    /// The length of the keys of the values with these numbers.
    pub fn key_lens(&self, numbers: &[u32]) -> usize {
        let len = |number: &u32| match self.plain {
            // The class, and the end of a text.
            Some(Plain::Bytes) => {
                self.texts.key(*number as usize).len() + if self.texts_kind == Kind::String { 3 } else { 1 }
            }
            _ => self.key_lens.get(*number as usize).copied().unwrap_or_default(),
        };
        match &self.plain {
            Some(Plain::Words(kind, words)) => {
                let mut key = Vec::new();
                words.first().into_iter().for_each(|word| append_key(&mut key, value_of(*kind, word)));
                // All are equally long.
                key.len() * numbers.len()
            }
            _ => numbers.iter().map(len).sum(),
        }
    }

    /// True if values that compare equal have come in different forms, such as 1 and 1.0.
    pub fn has_aliases(&self) -> bool {
        self.has_aliases
    }

    /// The number of a value.
    pub fn number(&mut self, value: Value<'_>) -> u32 {
        match (value.kind(), word_of(value)) {
            (kind, Some(word)) => self.number_of_word(kind, word),
            (Kind::String, _) => self.number_of_bytes(Kind::String, value.text_bytes()),
            (kind @ (Kind::ObjectId | Kind::Binary), _) => self.number_of_bytes(kind, value.bytes()),
            _ => self.number_by_key(value),
        }
    }

    /// Gives keys to all values: one comes that may equal one of them in another form.
    fn settle(&mut self) {
        let mut keys: Vec<(Vec<u8>, OwnedValue)> = Vec::new();
        if self.plain.is_some() {
            self.for_each(0, &mut |value| {
                let mut key = Vec::new();
                append_key(&mut key, value);
                keys.push((key, value.to_owned()));
            });
        }
        self.plain = None;
        for (key, value) in keys {
            self.key_lens.push(key.len());
            self.known.add(&key, &mut || value.clone());
        }
    }

    fn number_by_key(&mut self, value: Value<'_>) -> u32 {
        self.key.clear();
        append_key(&mut self.key, value);
        // Missing fields count as undefined, but are not shown.
        self.has_aliases |= value.kind() == Kind::Undefined && self.missing == MissingAs::Undefined;
        self.number_of_key(value.kind(), &mut || value.to_owned(), &|known| known.bytes() == value.bytes())
    }

    /// The number of the value whose key is in `key`.
    fn number_of_key(
        &mut self,
        kind: Kind,
        value: &mut dyn FnMut() -> OwnedValue,
        is_same: &dyn Fn(Value<'_>) -> bool,
    ) -> u32 {
        self.settle();
        let (number, is_new) = self.known.add(&self.key, value);
        if is_new {
            self.key_lens.push(self.key.len());
        } else if !self.has_aliases {
            let known = self.known.values().get(number).map(OwnedValue::view);
            self.has_aliases = !known.is_some_and(|known| known.kind() == kind && is_same(known));
        }
        u32::try_from(number).unwrap_or(NOTHING)
    }

    /// The number of a text, of an ObjectId or of binary data.
    fn number_of_bytes(&mut self, kind: Kind, bytes: &[u8]) -> u32 {
        if self.count() == 0 && self.known.is_simple() {
            self.plain = Some(Plain::Bytes);
        }
        if self.begins_with(kind) {
            if let (Some(Plain::Bytes), false) = (&self.plain, kind == Kind::String && bytes.contains(&0)) {
                let (number, is_new) = self.texts.add(bytes);
                let number = u32::try_from(number).unwrap_or(NOTHING);
                if is_new {
                    self.text_numbers.push(number);
                }
                return number;
            }
            if let Some(number) = self.texts.get(bytes).and_then(|known| self.text_numbers.get(known)) {
                return *number;
            }
        }
        let number = self.number_by_key(view_of(kind, bytes, &mut Vec::new()));
        if self.begins_with(kind) && self.texts.count() < TEXTS_MAX && self.texts.add(bytes).1 {
            self.text_numbers.push(number);
        }
        number
    }

    /// True if `texts` has, or may have, values of that type.
    fn begins_with(&mut self, kind: Kind) -> bool {
        if self.texts.count() == 0 {
            self.texts_kind = kind;
        }
        self.texts_kind == kind
    }

    /// The number of a missing value.
    pub fn number_of_missing(&mut self) -> u32 {
        if let Some(number) = self.missing_number {
            return number;
        }
        let number = match self.missing {
            MissingAs::Nothing => NOTHING,
            MissingAs::Null => self.number_by_key(Value::NULL),
            MissingAs::Undefined => {
                self.key.clear();
                append_missing_key(&mut self.key);
                self.number_of_key(Kind::Undefined, &mut || Value::UNDEFINED.to_owned(), &|known| {
                    known.kind() == Kind::Undefined
                })
            }
        };
        self.missing_number = Some(number);
        number
    }

    /// The number of one row's cell.
    pub(super) fn number_of_row(&mut self, cells: &Column, row: usize, scratch: &mut Vec<u8>) -> u32 {
        match cells.value(row, scratch) {
            Some(value) => self.number(value),
            None => self.number_of_missing(),
        }
    }

    /// The numbers of these rows' cells.
    pub fn numbers(&mut self, cells: &Column, rows: Range<usize>) -> Numbers {
        if cells.presence().is_some() || matches!(cells.data(), ColumnData::Bson(_)) {
            let part = cells.slice(rows.clone());
            match part.untagged() {
                Some((typed, _)) if typed.presence().is_none() => return self.numbers(&typed, 0..typed.len()),
                Some((typed, nulls)) => return Numbers::Each(self.numbers_between_holes(&part, &typed, &nulls)),
                None if part.presence().is_some() => {
                    let nulls = Bitmap::filled(part.len(), false);
                    return Numbers::Each(self.numbers_between_holes(&part, &part, &nulls));
                }
                None => {}
            }
        }
        match cells.data() {
            ColumnData::F64(cells) => self.numbers_of_words(Kind::Double, bytemuck::cast_slice(cut(cells, rows))),
            ColumnData::I64(cells) => self.numbers_of_words(Kind::Int64, bytemuck::cast_slice(cut(cells, rows))),
            ColumnData::Date(cells) => self.numbers_of_words(Kind::Date, bytemuck::cast_slice(cut(cells, rows))),
            ColumnData::I32(cells) => self.numbers_of_int32s(bytemuck::cast_slice(cut(cells, rows))),
            ColumnData::Bool(cells) => {
                let words: Vec<u64> = cut(cells, rows).iter().map(|truth| u64::from(*truth)).collect();
                self.numbers_of_words(Kind::Bool, &words)
            }
            ColumnData::ObjectId(cells) => {
                let bytes = bytemuck::cast_slice::<Bytes12, u8>(cut(cells, rows.clone())).to_vec();
                let offsets = (0..).step_by(size_of::<Bytes12>()).take(rows.len() + 1).collect();
                self.numbers_of_texts(Kind::ObjectId, &VarData { offsets, bytes }, 0..rows.len())
            }
            ColumnData::Objects(objects) => self.numbers_of_objects(cells, objects, rows),
            ColumnData::Dictionary(index, values) => self.numbers_of_entries(cut(index, rows), values),
            ColumnData::String(cells) => self.numbers_of_texts(Kind::String, cells, rows),
            ColumnData::Bson(cells) => {
                let number = &mut |tagged: &[u8]| self.number(Value::tagged_checked(tagged));
                Numbers::of_bytes(&|row| cells.get(row), rows, number)
            }
        }
    }

    /// The numbers of cells of which some are missing, or null in `nulls`; the others are `typed`.
    fn numbers_between_holes(&mut self, cells: &Column, typed: &Column, nulls: &Bitmap) -> Vec<u32> {
        let present = typed.presence().map_or_else(Vec::new, Bitmap::to_rows);
        let missing = cells.presence().and_then(|present| (0..present.len()).find(|row| !present.get(*row)));
        let firsts = [(self.null_is_known, nulls.iter().next()), (self.missing_number.is_some(), missing)];
        // Values are numbered as they come: one by one, until null and missing ones are known.
        let head = firsts.iter().filter(|(is_known, _)| !is_known).filter_map(|(_, row)| *row).max();
        let head = head.map_or(0, |row| row + 1);
        let mut scratch = Vec::new();
        let mut numbers: Vec<u32> = (0..head).map(|row| self.number_of_row(cells, row, &mut scratch)).collect();
        numbers.resize(cells.len(), self.missing_number.unwrap_or(NOTHING));
        let mut put = |row: usize, number: u32| numbers.get_mut(row).into_iter().for_each(|slot| *slot = number);
        if !nulls.none() {
            self.null_is_known = true;
            let number = self.number(Value::NULL);
            nulls.iter().for_each(|row| put(row, number));
        }
        let rest = present.partition_point(|row| (*row as usize) < head);
        let rest = present.get(rest..).unwrap_or_default();
        let found = self.numbers(&typed.gather(rest), 0..rest.len()).into_each(rest.len());
        rest.iter().zip(found).for_each(|(row, number)| put(*row as usize, number));
        numbers
    }

    fn numbers_of_words(&mut self, kind: Kind, words: &[u64]) -> Numbers {
        if let Some(ends) = runs::ends_of_words(bytemuck::cast_slice(words), runs_max(words.len())) {
            let word = |row: usize| words.get(row).copied().unwrap_or_default();
            return Numbers::of_ends(&ends, &mut |row| self.number_of_word(kind, word(row)));
        }
        let mut numbers = Vec::with_capacity(words.len());
        while numbers.len() < words.len() {
            if kind == Kind::Double {
                let behind = words.get(numbers.len()..).unwrap_or_default();
                gather::known_whole(&self.small[1], bytemuck::cast_slice(behind), NOTHING, &mut numbers);
            }
            let behind = words.get(numbers.len()..).unwrap_or_default();
            if let Some(table) = table_of(kind).and_then(|table| self.words.get_mut(table)) {
                let known = match &mut self.plain {
                    Some(Plain::Words(known, words)) if *known == kind => Some(words),
                    _ => None,
                };
                table.append_numbers(behind, addable(kind), known, &mut numbers);
            }
            if let Some(unknown) = words.get(numbers.len()) {
                numbers.push(self.number_of_word(kind, *unknown));
            }
        }
        Numbers::Each(numbers)
    }

    fn numbers_of_int32s(&mut self, codes: &[u32]) -> Numbers {
        if let Some(ends) = runs::ends_of_codes(codes, runs_max(codes.len())) {
            let code = |row: usize| codes.get(row).copied().unwrap_or_default();
            return Numbers::of_ends(&ends, &mut |row| self.number_of_word(Kind::Int32, code(row).into()));
        }
        let mut numbers = Vec::with_capacity(codes.len());
        loop {
            let behind = codes.get(numbers.len()..).unwrap_or_default();
            gather::known_codes(&self.small[0], behind, NOTHING, &mut numbers);
            let Some(behind @ [code, ..]) = codes.get(numbers.len()..) else { return Numbers::Each(numbers) };
            if *code >= SMALL_MAX {
                let words: Vec<u64> = behind.iter().map(|code| u64::from(*code)).collect();
                numbers.extend(self.numbers_of_words(Kind::Int32, &words).into_each(words.len()));
                continue;
            }
            numbers.push(self.number_of_word(Kind::Int32, u64::from(*code)));
        }
    }

    fn numbers_of_texts(&mut self, kind: Kind, cells: &VarData, rows: Range<usize>) -> Numbers {
        let mut numbers = Vec::with_capacity(rows.len());
        loop {
            let row = rows.start + numbers.len();
            if self.begins_with(kind) {
                let offsets = cells.offsets.get(row..=rows.end).unwrap_or_default();
                let adds =
                    matches!(self.plain, Some(Plain::Bytes)) && (kind != Kind::String || !has_nul(cells, offsets));
                self.texts.append_numbers(&mut self.text_numbers, adds, (offsets, &cells.bytes), &mut numbers);
            }
            let row = rows.start + numbers.len();
            if row >= rows.end {
                return Numbers::of_codes(&numbers, &mut |number| number);
            }
            numbers.push(self.number_of_bytes(kind, cells.get(row)));
        }
    }

    fn number_of_word(&mut self, kind: Kind, word: u64) -> u32 {
        let small = small_of(kind, word);
        let known = match small {
            Some((table, place)) => {
                self.small.get(table).and_then(|small| small.get(place)).copied().filter(|number| *number != NOTHING)
            }
            None => table_of(kind).and_then(|table| self.words.get(table)?.get(word)),
        };
        if let Some(number) = known {
            return number;
        }
        let number = self.number_of_new_word(kind, word);
        if let Some((table, place)) = small {
            self.small.get_mut(table).into_iter().for_each(|small| note_small(small, place, number));
        }
        // Doubles are looked for in both, by turns.
        if small.is_none() || kind != Kind::Double {
            let table = table_of(kind).and_then(|table| self.words.get_mut(table));
            table.into_iter().for_each(|words| words.insert(word, number));
        }
        number
    }

    /// The number of a word that no table knows.
    fn number_of_new_word(&mut self, kind: Kind, word: u64) -> u32 {
        if self.count() == 0 {
            self.plain = Some(Plain::Words(kind, Vec::new()));
        }
        match &mut self.plain {
            Some(Plain::Words(known, words)) if *known == kind && is_plain(kind, word) => {
                words.push(word);
                u32::try_from(words.len() - 1).unwrap_or(NOTHING)
            }
            _ => self.number_by_key(value_of(kind, &word)),
        }
    }

    /// The numbers of rows in runs: the entry of `values` that the rows of a run have, and where it ends. `known` has the
    /// numbers of the entries that were seen, and `NOTHING` for others.
    pub fn numbers_of_runs(
        &mut self,
        runs: &mut dyn Iterator<Item = (u32, usize)>,
        values: &Column,
        known: &mut Vec<u32>,
    ) -> Numbers {
        let mut scratch = Vec::new();
        known.resize(values.len(), NOTHING);
        let number = |(entry, end): (u32, usize)| {
            let Some(slot) = known.get_mut(entry as usize) else { return (NOTHING, end) };
            if *slot == NOTHING {
                *slot = self.number_of_row(values, entry as usize, &mut scratch);
            }
            (*slot, end)
        };
        Numbers::of_runs(runs.map(number).collect())
    }

    /// Asks for each entry of a dictionary once, when the first row has it: other entries do not count.
    fn numbers_of_entries(&mut self, index: &[u32], values: &Column) -> Numbers {
        let mut scratch = Vec::new();
        // Many entries that no row has, as of a part of a block.
        if values.len() > 2 * index.len() {
            return Numbers::of_codes(index, &mut |entry| self.number_of_row(values, entry as usize, &mut scratch));
        }
        const UNSEEN: u32 = NOTHING - 1; // A missing value may have the number `NOTHING`.
        // If rows have all entries in their order, these are a column like any other.
        let mut known = match gather::count_in_order(index) {
            Some(count) if count == values.len() => self.numbers(values, 0..count).into_each(count),
            _ => vec![UNSEEN; values.len()],
        };
        let mut number = |known: &mut [u32], entry: u32| match known.get_mut(entry as usize) {
            Some(slot) if *slot == UNSEEN => {
                *slot = self.number_of_row(values, entry as usize, &mut scratch);
                *slot
            }
            Some(slot) => *slot,
            None => NOTHING,
        };
        if let Some(ends) = runs::ends_of_codes(index, runs_max(index.len())) {
            let code = |row: usize| index.get(row).copied().unwrap_or_default();
            return Numbers::of_ends(&ends, &mut |row| number(&mut known, code(row)));
        }
        let mut numbers = Vec::with_capacity(index.len());
        while let Some(codes @ [entry, ..]) = index.get(numbers.len()..) {
            let first = number(&mut known, *entry);
            if gather::known_codes(&known, codes, UNSEEN, &mut numbers) == 0 {
                numbers.push(first);
            }
        }
        Numbers::Each(numbers)
    }
}

fn cut<T>(cells: &[T], rows: Range<usize>) -> &[T] {
    cells.get(rows).unwrap_or_default()
}

/// True if the texts between these offsets have a zero byte.
fn has_nul(cells: &VarData, offsets: &[u32]) -> bool {
    let ends = offsets.first().zip(offsets.last());
    let bytes = ends.and_then(|(start, end)| cells.bytes.get(*start as usize..*end as usize));
    bytes.is_none_or(|bytes| bytes.contains(&0))
}
