//! One column: a typed array and which of its cells are present.

use std::cell::{OnceCell, RefCell};
use std::fmt;
use std::ops::Range;
use std::rc::Rc;

use kernels::texts::{self, Texts};
use kernels::{elements, gather, tagged};

use super::bitmap::Bitmap;
use super::objects::Objects;
use super::text_numbers::TextNumbers;
use crate::limits::ROWS_TOGETHER;
use crate::value::{Kind, Value};

/// The bytes of an ObjectId.
pub type Bytes12 = [u8; 12];

/// Values of varying length, back to back: value `i` is `bytes[offsets[i]..offsets[i + 1]]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VarData {
    /// One more than there are values; starts at 0 and never decreases.
    pub offsets: Vec<u32>,
    /// The values.
    pub bytes: Vec<u8>,
}

impl Default for VarData {
    fn default() -> Self {
        VarData { offsets: vec![0], bytes: Vec::new() }
    }
}

impl VarData {
    /// Number of values.
    pub fn len(&self) -> usize {
        self.offsets.len().saturating_sub(1)
    }
    /// True if there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Value `row`; empty beyond the end.
    #[inline]
    pub fn get(&self, row: usize) -> &[u8] {
        match (self.offsets.get(row), self.offsets.get(row + 1)) {
            (Some(start), Some(end)) => self.bytes.get(*start as usize..*end as usize).unwrap_or_default(),
            _ => &[],
        }
    }
    /// Appends a value.
    #[inline]
    pub fn push(&mut self, value: &[u8]) {
        self.bytes.extend_from_slice(value);
        self.seal();
    }
    /// Ends a value whose bytes were appended to `bytes` directly.
    #[inline]
    pub fn seal(&mut self) {
        self.offsets.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
    }
    /// Appends values of `range`, which must lie inside.
    #[inline(never)]
    pub fn extend(&mut self, from: &VarData, range: Range<usize>) {
        let Some([first, ends @ ..]) = from.offsets.get(range.start..range.end + 1) else { return };
        let start = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        let end = ends.last().unwrap_or(first);
        self.bytes.extend_from_slice(from.bytes.get(*first as usize..*end as usize).unwrap_or_default());
        tagged::move_ends(ends, *first, start, &mut self.offsets);
    }
    fn slice(&self, range: Range<usize>) -> VarData {
        let mut out = VarData::default();
        out.extend(self, range);
        out
    }
    fn gather(&self, rows: &[u32]) -> VarData {
        let (offsets, bytes) = texts::gathered(Texts { offsets: &self.offsets, bytes: &self.bytes }, rows);
        VarData { offsets, bytes }
    }
}

/// The cells of a column, by type. The slot of an absent cell is zero or empty.
#[derive(Clone, Debug, PartialEq)]
pub enum ColumnData {
    /// Doubles.
    F64(Vec<f64>),
    /// 32-bit integers.
    I32(Vec<i32>),
    /// 64-bit integers.
    I64(Vec<i64>),
    /// Dates in milliseconds since the epoch.
    Date(Vec<i64>),
    /// Booleans, 0 or 1.
    Bool(Vec<u8>),
    /// Strings, UTF-8.
    String(VarData),
    /// ObjectIds.
    ObjectId(Vec<Bytes12>),
    /// Anything: type byte followed by value bytes, checked; empty if absent.
    Bson(VarData),
    /// Objects of one shape, with a column for each of their scalars.
    Objects(Box<Objects>),
    /// Repeated values: row `i` is row `index[i]` of a column that has no absent cells and is not itself a dictionary.
    Dictionary(Vec<u32>, Box<Column>),
}

impl ColumnData {
    /// The BSON type of every present cell, if this form fixes it.
    pub(super) fn kind(&self) -> Option<Kind> {
        match self {
            ColumnData::F64(_) => Some(Kind::Double),
            ColumnData::I32(_) => Some(Kind::Int32),
            ColumnData::I64(_) => Some(Kind::Int64),
            ColumnData::Date(_) => Some(Kind::Date),
            ColumnData::Bool(_) => Some(Kind::Bool),
            ColumnData::String(_) => Some(Kind::String),
            ColumnData::ObjectId(_) => Some(Kind::ObjectId),
            ColumnData::Bson(_) | ColumnData::Objects(_) => None,
            ColumnData::Dictionary(_, values) => values.kind(),
        }
    }
}

/// A column. All columns of a block have the same length. Copies share their cells until one of them changes.
#[derive(Clone, Debug, PartialEq)]
pub struct Column(Rc<SharedCells>);

#[derive(Clone, Debug, PartialEq)]
struct SharedCells {
    data: ColumnData,
    presence: Option<Bitmap>,
    reached: Reached,
}

/// What some paths reach in the values of a column, and the elements of its arrays. Queries ask for the same paths of metadata
/// again and again.
#[derive(Default)]
struct Reached {
    paths: RefCell<Vec<ReachedPath>>,
    elements: OnceCell<Option<Rc<ArrayElements>>>,
}

/// The elements of all arrays of a column.
#[derive(Debug)]
pub struct ArrayElements {
    /// One array after another, as a column of one type if they have one. Texts that repeat may have numbers.
    pub values: Column,
    /// For each array, the number of the element behind its last one.
    pub ends: Vec<u32>,
}

/// A path, and what is known of it.
type ReachedPath = (Box<[Box<str>]>, KnownPath);

/// What is known of a path.
#[derive(Clone)]
enum KnownPath {
    /// Somebody has asked for it once.
    Asked,
    /// What it reaches takes too much memory.
    IsLong,
    /// What it reaches in each value.
    Reached(Column),
}

impl Clone for Reached {
    /// A copy is made in order to change it.
    fn clone(&self) -> Reached {
        Reached::default()
    }
}

impl PartialEq for Reached {
    fn eq(&self, _: &Reached) -> bool {
        true
    }
}

impl fmt::Debug for Reached {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reached")
    }
}

/// So many paths are remembered, and only of columns with so many values at most: those of dictionaries of metadata. What is
/// reached is mostly a part of the values, so it takes less memory than they do.
const REACHED_PATHS_MAX: usize = 8;
const REACHED_VALUES_MAX: usize = 2 * ROWS_TOGETHER;
const REACHED_BYTES_MAX: usize = 128 << 10;

/// With fewer rows than this for each of its entries, a dictionary has many.
const ROWS_AN_ENTRY: usize = 8;

impl Column {
    /// A column of cells, all present unless `presence` says otherwise. A presence without holes is dropped.
    pub fn new(data: ColumnData, presence: Option<Bitmap>) -> Column {
        let column =
            Column(Rc::new(SharedCells { data, presence: presence.filter(|p| !p.all()), reached: Reached::default() }));
        debug_assert!(column.presence().is_none_or(|p| p.len() == column.len()));
        column
    }

    /// The cells, and which of them are present.
    pub(super) fn into_parts(self) -> (ColumnData, Option<Bitmap>) {
        let SharedCells { data, presence, .. } = Rc::unwrap_or_clone(self.0);
        (data, presence)
    }

    /// What a path reaches in each value, as `make` returns it, which must depend on the values and the path alone.
    pub fn reached(&self, path: &[Box<str>], make: impl FnOnce() -> Column) -> Column {
        let known = self.known_path(path);
        if let Some(KnownPath::Reached(column)) = known {
            return column;
        }
        let made = make();
        if self.len() > REACHED_VALUES_MAX || matches!(known, Some(KnownPath::IsLong)) {
            return made;
        }
        let made = TextNumbers::of(&made).unwrap_or(made);
        let is_long = made.size_bytes() > REACHED_BYTES_MAX;
        self.note_path(path, if is_long { KnownPath::IsLong } else { KnownPath::Reached(made.clone()) });
        made
    }

    /// The same, but only if somebody has asked for the path before, and if it can be remembered: otherwise it is not worth it.
    pub fn reached_again(&self, path: &[Box<str>], make: impl FnOnce() -> Column) -> Option<Column> {
        match self.known_path(path) {
            Some(KnownPath::IsLong) => None,
            Some(_) => Some(self.reached(path, make)),
            None => {
                self.note_path(path, KnownPath::Asked);
                None
            }
        }
    }

    fn known_path(&self, path: &[Box<str>]) -> Option<KnownPath> {
        let all = self.0.reached.paths.borrow();
        all.iter().find(|(known, _)| **known == *path).map(|(_, known)| known.clone())
    }

    /// Remembers what is known of a path, if there is room for it.
    fn note_path(&self, path: &[Box<str>], known: KnownPath) {
        let mut all = self.0.reached.paths.borrow_mut();
        if let Some((_, place)) = all.iter_mut().find(|(known, _)| **known == *path) {
            *place = known;
        } else if all.len() < REACHED_PATHS_MAX && self.len() <= REACHED_VALUES_MAX {
            all.push((path.into(), known));
        }
    }

    /// The elements of its arrays, if it is remembered what `make` has returned once.
    pub(super) fn elements_known(&self, make: impl FnOnce() -> Option<Rc<ArrayElements>>) -> Option<Rc<ArrayElements>> {
        self.0.reached.elements.get_or_init(make).clone()
    }

    /// Appends cells of another column in place. Does nothing and answers false unless both hold numbers, dates or
    /// booleans of one type, all present.
    pub(super) fn append(&mut self, other: &Column, rows: Range<usize>) -> bool {
        use ColumnData as D;
        if self.presence().is_some() || other.presence().is_some() {
            return false;
        }
        let cells = Rc::make_mut(&mut self.0);
        cells.reached = Reached::default();
        match (&mut cells.data, other.data()) {
            (D::F64(to), D::F64(from)) => to.extend_from_slice(from.get(rows).unwrap_or_default()),
            (D::I32(to), D::I32(from)) => to.extend_from_slice(from.get(rows).unwrap_or_default()),
            (D::I64(to), D::I64(from)) | (D::Date(to), D::Date(from)) => {
                to.extend_from_slice(from.get(rows).unwrap_or_default());
            }
            (D::Bool(to), D::Bool(from)) => to.extend_from_slice(from.get(rows).unwrap_or_default()),
            _ => return false,
        }
        true
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        match self.data() {
            ColumnData::F64(v) => v.len(),
            ColumnData::I32(v) => v.len(),
            ColumnData::I64(v) | ColumnData::Date(v) => v.len(),
            ColumnData::Bool(v) => v.len(),
            ColumnData::String(v) | ColumnData::Bson(v) => v.len(),
            ColumnData::ObjectId(v) => v.len(),
            ColumnData::Objects(objects) => objects.rows(),
            ColumnData::Dictionary(index, _) => index.len(),
        }
    }

    /// True for a dictionary whose entries stand for few rows each.
    pub fn has_many_entries(&self) -> bool {
        matches!(self.data(), ColumnData::Dictionary(index, values) if ROWS_AN_ENTRY * values.len() > index.len())
    }

    /// True if there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cells.
    pub fn data(&self) -> &ColumnData {
        &self.0.data
    }

    /// Which cells are present; `None` if all are.
    pub fn presence(&self) -> Option<&Bitmap> {
        self.0.presence.as_ref()
    }

    /// True if the cell of `row` is present.
    #[inline]
    pub fn is_present(&self, row: usize) -> bool {
        self.presence().is_none_or(|p| p.get(row))
    }

    /// How many cells are present.
    pub fn present_count(&self) -> usize {
        self.presence().map_or_else(|| self.len(), Bitmap::count)
    }

    /// The BSON type of every present cell, if the column's type fixes it.
    pub fn kind(&self) -> Option<Kind> {
        self.data().kind()
    }

    /// The cell of `row` as a value; `None` if it is absent.
    ///
    /// `scratch` is a buffer for the BSON form of strings and objects, which differs from the column's own form.
    #[inline]
    pub fn value<'a>(&'a self, row: usize, scratch: &'a mut Vec<u8>) -> Option<Value<'a>> {
        if !self.is_present(row) {
            return None;
        }
        Some(match self.data() {
            ColumnData::F64(v) => Value::new_checked(Kind::Double, bytemuck::bytes_of(v.get(row)?)),
            ColumnData::I32(v) => Value::new_checked(Kind::Int32, bytemuck::bytes_of(v.get(row)?)),
            ColumnData::I64(v) => Value::new_checked(Kind::Int64, bytemuck::bytes_of(v.get(row)?)),
            ColumnData::Date(v) => Value::new_checked(Kind::Date, bytemuck::bytes_of(v.get(row)?)),
            ColumnData::Bool(v) => Value::new_checked(Kind::Bool, bytemuck::bytes_of(v.get(row)?)),
            ColumnData::ObjectId(v) => Value::new_checked(Kind::ObjectId, bytemuck::bytes_of(v.get(row)?)),
            ColumnData::Bson(v) => Value::tagged_checked(v.get(row)),
            ColumnData::Objects(objects) => {
                objects.write(row, scratch);
                Value::new_checked(Kind::Object, scratch)
            }
            ColumnData::String(v) => {
                scratch.clear();
                elements::push_text(scratch, v.get(row));
                Value::new_checked(Kind::String, scratch)
            }
            ColumnData::Dictionary(index, values) => return values.value(*index.get(row)? as usize, scratch),
        })
    }

    /// Rows `range`, which must lie inside.
    pub fn slice(&self, range: Range<usize>) -> Column {
        if range == (0..self.len()) {
            return self.clone();
        }
        fn cut<T: Clone>(v: &[T], range: &Range<usize>) -> Vec<T> {
            v.get(range.clone()).unwrap_or_default().to_vec()
        }
        let data = match self.data() {
            ColumnData::F64(v) => ColumnData::F64(cut(v, &range)),
            ColumnData::I32(v) => ColumnData::I32(cut(v, &range)),
            ColumnData::I64(v) => ColumnData::I64(cut(v, &range)),
            ColumnData::Date(v) => ColumnData::Date(cut(v, &range)),
            ColumnData::Bool(v) => ColumnData::Bool(cut(v, &range)),
            ColumnData::String(v) => ColumnData::String(v.slice(range.clone())),
            ColumnData::ObjectId(v) => ColumnData::ObjectId(cut(v, &range)),
            ColumnData::Bson(v) => ColumnData::Bson(v.slice(range.clone())),
            ColumnData::Objects(objects) => {
                ColumnData::Objects(Box::new(objects.map(|scalar| scalar.slice(range.clone()))))
            }
            ColumnData::Dictionary(v, values) => ColumnData::Dictionary(cut(v, &range), values.clone()),
        };
        Column::new(data, self.presence().map(|p| p.slice(range)))
    }

    /// The rows `rows`, in that order; each must lie inside.
    pub fn gather(&self, rows: &[u32]) -> Column {
        let data = match self.data() {
            ColumnData::F64(v) => ColumnData::F64(gather::doubles(v, rows)),
            ColumnData::I32(v) => ColumnData::I32(gather::int32s(v, rows)),
            ColumnData::I64(v) => ColumnData::I64(gather::int64s(v, rows)),
            ColumnData::Date(v) => ColumnData::Date(gather::int64s(v, rows)),
            ColumnData::Bool(v) => ColumnData::Bool(gather::bytes(v, rows)),
            ColumnData::String(v) => ColumnData::String(v.gather(rows)),
            ColumnData::ObjectId(v) => ColumnData::ObjectId(gather::object_ids(v, rows)),
            ColumnData::Bson(v) => ColumnData::Bson(v.gather(rows)),
            ColumnData::Objects(objects) => ColumnData::Objects(Box::new(objects.map(|scalar| scalar.gather(rows)))),
            ColumnData::Dictionary(v, values) => ColumnData::Dictionary(gather::codes(v, rows), values.clone()),
        };
        let presence = self.presence().map(|p| Bitmap::from_slice(rows, |row| p.get(*row as usize)));
        Column::new(data, presence)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::block::ColumnBuilder;

    fn numbers(count: usize) -> Column {
        let mut builder = ColumnBuilder::new();
        (0..count).for_each(|number| builder.push(Value::new_checked(Kind::Int32, &(number as u32).to_le_bytes())));
        builder.finish()
    }

    #[test]
    fn what_a_path_reaches_is_made_once_for_all_copies_of_a_short_column() {
        let made = Cell::new(0);
        let reach = |column: &Column, path: &str| {
            column.reached(&[path.into()], || {
                made.set(made.get() + 1);
                numbers(path.len())
            })
        };
        let column = numbers(3);
        let copy = column.clone();
        assert_eq!([reach(&column, "a"), reach(&copy, "a"), reach(&column, "bb")].map(|found| found.len()), [1, 1, 2]);
        assert_eq!((reach(&copy, "bb").len(), made.get()), (2, 2));
        // An equal column is another one.
        assert_eq!((reach(&numbers(3), "a").len(), made.get()), (1, 3));
        (0..2 * REACHED_PATHS_MAX).for_each(|len| _ = reach(&column, &"c".repeat(len)));
        assert_eq!(column.0.reached.paths.borrow().len(), REACHED_PATHS_MAX);
        let long = numbers(REACHED_VALUES_MAX + 1);
        made.set(0);
        assert_eq!(([reach(&long, "a"), reach(&long, "a")].map(|found| found.len()), made.get()), ([1, 1], 2));
    }

    #[test]
    fn what_a_path_reaches_is_made_for_whoever_asks_a_second_time() {
        let (column, made) = (numbers(3), Cell::new(0));
        let again = |path: &str| {
            column.reached_again(&[path.into()], || {
                made.set(made.get() + 1);
                numbers(path.len())
            })
        };
        assert_eq!((again("a"), again("bb"), made.get()), (None, None, 0));
        assert_eq!([again("bb"), again("a"), again("bb")].map(|found| found.unwrap().len()), [2, 1, 2]);
        assert_eq!(made.get(), 2);
        assert_eq!(column.reached(&["a".into()], || numbers(9)).len(), 1);
        // What is long is made once, to find that out.
        let long = || Some(column.reached_again(&["long".into()], || numbers(1 + REACHED_BYTES_MAX / 4))?.len());
        assert_eq!([long(), long(), long()], [None, Some(1 + REACHED_BYTES_MAX / 4), None]);
    }

    #[test]
    fn texts_that_a_path_reaches_in_many_values_are_numbered() {
        let texts = || {
            let mut builder = ColumnBuilder::new();
            (0..300).for_each(|row| builder.push(crate::value::OwnedValue::string(["de", "fr", "us"][row % 3]).view()));
            builder.finish()
        };
        let found = numbers(300).reached(&["a".into()], texts);
        assert!(matches!(found.data(), ColumnData::Dictionary(_, values) if values.len() == 3));
        assert_eq!(found.into_plain(), texts());
    }

    #[test]
    fn a_column_that_was_extended_remembers_nothing_of_its_former_values() {
        let mut column = numbers(3);
        let of_first = column.clone();
        assert_eq!(of_first.reached(&["a".into()], || numbers(3)).len(), 3);
        assert!(column.append(&numbers(2), 0..2));
        assert_eq!(column.reached(&["a".into()], || numbers(5)).len(), 5);
        assert_eq!(of_first.reached(&["a".into()], || numbers(9)).len(), 3);
    }
}
