//! The values of a step for the rows of a block.

use std::borrow::Cow;
use std::rc::Rc;

use bytemuck::cast_slice;
use kernels::{Operand, gather};

use super::mask::Mask;
use crate::block::{ArrayElements, Bitmap, Column, ColumnBuilder, ColumnData, VarData, of_kind};
use crate::query::expr::datum::Datum;
use crate::value::{Kind, Number, OwnedValue, Value};

/// The values of a step for all rows. A row in a mask has no cell: what its place holds means nothing.
#[derive(Clone, Debug)]
pub struct Vector<'a> {
    pub cells: Cells<'a>,
    /// Rows whose value is missing.
    pub missing: Mask,
    /// Rows whose value is null.
    pub null: Mask,
    /// Rows for which the expression must be evaluated by itself.
    pub left: Mask,
}

/// Cells, by type.
#[derive(Clone, Debug)]
pub enum Cells<'a> {
    /// All rows have this value; `None` if it is missing.
    Constant(Option<OwnedValue>),
    /// Doubles and int32s, both as doubles, which are exact for int32s.
    Numbers(Cow<'a, [f64]>, Int32s),
    /// Int64s.
    Longs(Cow<'a, [i64]>),
    /// Dates in milliseconds since the epoch.
    Dates(Cow<'a, [i64]>),
    /// Booleans: the rows that are true.
    Truths(Bitmap),
    /// Any values. Absent cells are in `missing` as well.
    Any(Cow<'a, Column>),
    /// Arrays. One that is absent has no elements.
    Lists(Rc<ArrayElements>),
    /// Rows in the bitmap have their value from the first vector, the others from the second one. Both are numbers, int64s or dates, with a
    /// cell for each row; which rows have a value, the masks of the whole say.
    Either(Bitmap, Rc<Vector<'a>>, Rc<Vector<'a>>),
    /// Row `i` has the value of row `index[i]` of another vector. Its masks are added to those of the entries.
    Indexed(Rc<[u32]>, Rc<Vector<'a>>),
}

/// Which of the numbers are int32s.
#[derive(Clone, Debug, PartialEq)]
pub enum Int32s {
    None,
    All,
    Some(Bitmap),
}

impl Int32s {
    /// True if the number of a row is an int32.
    #[inline]
    pub fn has(&self, row: usize) -> bool {
        match self {
            Int32s::None => false,
            Int32s::All => true,
            Int32s::Some(rows) => rows.get(row),
        }
    }

    /// The numbers that are int32s in both.
    pub fn and(&self, other: &Int32s) -> Int32s {
        match (self, other) {
            (Int32s::None, _) | (_, Int32s::None) => Int32s::None,
            (Int32s::All, other) | (other, Int32s::All) => other.clone(),
            (Int32s::Some(a), Int32s::Some(b)) => {
                let mut both = a.clone();
                both.and(b);
                Int32s::Some(both)
            }
        }
    }

    /// These rows.
    pub fn of(rows: Bitmap) -> Int32s {
        match (rows.none(), rows.all()) {
            (true, _) => Int32s::None,
            (_, true) => Int32s::All,
            _ => Int32s::Some(rows),
        }
    }
}

impl<'a> Cells<'a> {
    /// A vector of these cells.
    pub fn with(self, missing: Mask, null: Mask, left: Mask) -> Vector<'a> {
        Vector { cells: self, missing, null, left }
    }

    /// A vector of these cells, without a row in a mask.
    pub fn whole(self) -> Vector<'a> {
        self.with(Mask::NONE, Mask::NONE, Mask::NONE)
    }
}

impl<'a> Vector<'a> {
    /// The same value for all rows.
    pub fn constant(value: Option<Value<'_>>) -> Vector<'a> {
        Cells::Constant(value.map(Value::to_owned)).whole()
    }

    /// A vector without a value for any of `rows` rows.
    pub fn nothing(rows: usize) -> Vector<'a> {
        Cells::Constant(None).with(Mask::NONE, Mask::NONE, Mask::all(rows))
    }

    /// The cells of a column.
    pub fn of(column: &'a Column) -> Vector<'a> {
        let missing = column.presence().map_or(Mask::NONE, Mask::outside);
        let cells = match column.data() {
            ColumnData::F64(cells) => Cells::Numbers(cells.into(), Int32s::None),
            ColumnData::I32(cells) => Cells::Numbers(kernels::convert::doubles_of_int32s(cells).into(), Int32s::All),
            ColumnData::I64(cells) => Cells::Longs(cells.into()),
            ColumnData::Date(cells) => Cells::Dates(cells.into()),
            ColumnData::Bool(cells) => Cells::Truths(Bitmap::from_slice(cells, |truth| *truth != 0)),
            ColumnData::Dictionary(index, values) => {
                Cells::Indexed(index.as_slice().into(), Rc::new(Vector::of(values)))
            }
            ColumnData::Bson(cells) => return of_mixed(column, cells, missing),
            ColumnData::String(_) | ColumnData::ObjectId(_) | ColumnData::Objects(_) => {
                Cells::Any(Cow::Borrowed(column))
            }
        };
        cells.with(missing, Mask::NONE, Mask::NONE)
    }

    /// The cells of a column that a step has made.
    pub fn made(column: Column, left: Mask) -> Vector<'a> {
        let mut vector = Vector::of(&column).into_static();
        vector.left.add(&left);
        vector
    }

    /// The same, borrowing nothing.
    fn into_static(self) -> Vector<'static> {
        let Vector { cells, missing, null, left } = self;
        let cells = match cells {
            Cells::Constant(value) => Cells::Constant(value),
            Cells::Numbers(cells, int32s) => Cells::Numbers(cells.into_owned().into(), int32s),
            Cells::Longs(cells) => Cells::Longs(cells.into_owned().into()),
            Cells::Dates(cells) => Cells::Dates(cells.into_owned().into()),
            Cells::Truths(rows) => Cells::Truths(rows),
            Cells::Either(first, a, b) => {
                let [a, b] = [a, b].map(|part| Rc::new(Rc::unwrap_or_clone(part).into_static()));
                Cells::Either(first, a, b)
            }
            Cells::Any(column) => Cells::Any(Cow::Owned(column.into_owned())),
            Cells::Lists(list) => Cells::Lists(list),
            Cells::Indexed(index, entries) => {
                Cells::Indexed(index, Rc::new(Rc::unwrap_or_clone(entries).into_static()))
            }
        };
        Vector { cells, missing, null, left }
    }

    /// The same without an index, so that its cells have one type, unless it is a constant.
    pub fn flat(self: &Rc<Vector<'a>>) -> Rc<Vector<'a>> {
        let Cells::Indexed(index, entries) = &self.cells else { return Rc::clone(self) };
        let entries = entries.flat();
        fn pick<'a, T: Copy + Default>(cells: &[T], index: &[u32]) -> Cow<'a, [T]> {
            index.iter().map(|entry| cells.get(*entry as usize).copied().unwrap_or_default()).collect()
        }
        let cells = match &entries.cells {
            Cells::Constant(value) => Cells::Constant(value.clone()),
            Cells::Numbers(cells, int32s) => {
                let int32s = match int32s {
                    Int32s::Some(rows) => Int32s::of(Bitmap::from_slice(index, |entry| rows.get(*entry as usize))),
                    same => same.clone(),
                };
                Cells::Numbers(pick(cells, index), int32s)
            }
            Cells::Longs(cells) => Cells::Longs(pick(cells, index)),
            Cells::Dates(cells) => Cells::Dates(pick(cells, index)),
            Cells::Truths(rows) => Cells::Truths(Bitmap::from_slice(index, |entry| rows.get(*entry as usize))),
            Cells::Either(first, a, b) => {
                let [a, b] =
                    [a, b].map(|part| Rc::new(Cells::Indexed(Rc::clone(index), Rc::clone(part)).whole()).flat());
                Cells::Either(Bitmap::from_slice(index, |entry| first.get(*entry as usize)), a, b)
            }
            Cells::Any(column) => Cells::Any(Cow::Owned(column.gather(index))),
            Cells::Lists(list) => Cells::Any(Cow::Owned(list.arrays(|_| false).gather(index))),
            // `flat` leaves none.
            Cells::Indexed(..) => Cells::Constant(None),
        };
        let spread = |mine: &Mask, theirs: &Mask| mine.clone().with(&theirs.spread(index));
        Rc::new(Vector {
            cells,
            missing: spread(&self.missing, &entries.missing),
            null: spread(&self.null, &entries.null),
            left: spread(&self.left, &entries.left),
        })
    }

    /// The same with arrays as a column.
    pub fn without_lists(self: &Rc<Vector<'a>>) -> Rc<Vector<'a>> {
        let Cells::Lists(list) = &self.cells else { return Rc::clone(self) };
        Rc::new(Vector { cells: Cells::Any(Cow::Owned(list.arrays(|_| false))), ..(**self).clone() })
    }

    /// Cells with a type, if the value of all rows is null or missing.
    pub fn typed_nothing(&self, rows: usize) -> Option<Vector<'a>> {
        let (missing, null) = match &self.cells {
            Cells::Constant(None) => (Mask::all(rows), Mask::NONE),
            Cells::Constant(Some(value)) if value.view().kind() == Kind::Null => (Mask::NONE, Mask::all(rows)),
            _ => return None,
        };
        Some(Cells::Numbers(vec![0.0; rows].into(), Int32s::None).with(missing, null, self.left.clone()))
    }

    /// A vector without cells, with its masks.
    pub fn masks(&self) -> Vector<'a> {
        Cells::Constant(None).with(self.missing.clone(), self.null.clone(), self.left.clone())
    }

    /// The rows whose value is null or missing, and those left out, of a vector without an index.
    pub fn absent(&self) -> Mask {
        self.missing.clone().with(&self.null)
    }

    /// The rows that are left out, those of entries included.
    pub fn all_left(&self) -> Mask {
        match &self.cells {
            Cells::Indexed(index, entries) => self.left.clone().with(&entries.all_left().spread(index)),
            _ => self.left.clone(),
        }
    }

    /// The value of a row that is not left out; `None` if it is missing. `scratch` holds what has no bytes of its own.
    #[inline]
    pub fn value<'v>(&'v self, row: usize, scratch: &'v mut Scratch) -> Option<Value<'v>> {
        if self.missing.has(row) {
            return None;
        }
        if self.null.has(row) {
            return Some(Value::NULL);
        }
        match &self.cells {
            Cells::Constant(value) => value.as_ref().map(OwnedValue::view),
            Cells::Numbers(cells, int32s) if !int32s.has(row) => {
                Some(Value::new_checked(Kind::Double, bytemuck::bytes_of(cells.get(row)?)))
            }
            Cells::Numbers(cells, _) => {
                // Exact: it was an int32.
                #[allow(clippy::cast_possible_truncation)]
                let n = *cells.get(row)? as i32;
                scratch.number = n.to_le_bytes();
                Some(Value::new_checked(Kind::Int32, &scratch.number))
            }
            Cells::Longs(cells) => Some(Value::new_checked(Kind::Int64, bytemuck::bytes_of(cells.get(row)?))),
            Cells::Dates(cells) => Some(Value::new_checked(Kind::Date, bytemuck::bytes_of(cells.get(row)?))),
            Cells::Truths(rows) => Some(Value::new_checked(Kind::Bool, if rows.get(row) { &[1] } else { &[0] })),
            Cells::Either(first, a, b) => if first.get(row) { a } else { b }.value(row, scratch),
            Cells::Any(column) => column.value(row, &mut scratch.text),
            Cells::Lists(list) => {
                list.write(row, &mut scratch.text);
                Some(Value::new_checked(Kind::Array, &scratch.text))
            }
            Cells::Indexed(index, entries) => entries.value(*index.get(row)? as usize, scratch),
        }
    }

    /// How many rows it has; `None` for a constant.
    pub fn rows(&self) -> Option<usize> {
        Some(match &self.cells {
            Cells::Constant(_) => return None,
            Cells::Numbers(cells, _) => cells.len(),
            Cells::Longs(cells) | Cells::Dates(cells) => cells.len(),
            Cells::Truths(rows) | Cells::Either(rows, ..) => rows.len(),
            Cells::Any(column) => column.len(),
            Cells::Lists(list) => list.ends.len(),
            Cells::Indexed(index, _) => index.len(),
        })
    }

    /// The number that all rows have, and whether it is an int32.
    pub fn constant_number(&self) -> Option<(f64, bool)> {
        let Cells::Constant(Some(value)) = &self.cells else { return None };
        let value = value.view();
        match Number::of(value)? {
            Number::Double(x) => Some((x, false)),
            Number::Integer(n) if value.kind() == Kind::Int32 => Some((Number::Integer(n).near_double(), true)),
            _ => None,
        }
    }
}

/// Room for values that have no bytes of their own.
#[derive(Default)]
pub struct Scratch {
    number: [u8; 4],
    text: Vec<u8>,
}

/// A value that a step has made, appended to a column.
pub fn push(builder: &mut ColumnBuilder, value: &Datum<'_>) {
    match value.view() {
        Some(value) => builder.push(value),
        None => builder.push_absent(1),
    }
}

/// The numbers among values of several types, or the dates or int64s among nulls; any values if most of them are others.
fn of_mixed<'a>(column: &'a Column, cells: &VarData, missing: Mask) -> Vector<'a> {
    let rows = cells.len();
    let (kinds, words) = cells.to_words();
    let of = |kind: Kind| of_kind(&kinds, kind.byte());
    let (mut others, int32s, null) = (of(Kind::Double), of(Kind::Int32), of(Kind::Null));
    others.or(&int32s);
    let numbers = others.count();
    let int64s = of(Kind::Int64);
    if numbers == 0 || (numbers + int64s.count()) * 2 < rows - missing.count() {
        let cells = match column.untagged().map(|(typed, _)| Vector::of(&typed).into_static().cells) {
            Some(cells @ (Cells::Longs(_) | Cells::Dates(_))) => {
                return cells.with(missing, Mask::of(null), Mask::NONE);
            }
            _ => Cells::Any(Cow::Borrowed(column)),
        };
        return cells.with(missing, Mask::NONE, Mask::NONE);
    }
    let first = others.clone();
    others.or(&null);
    others.or(&int64s);
    others.invert();
    let (null, mut left) = (Mask::of(null), Mask::of(others));
    left.remove(&missing);
    let mut values: Vec<f64> = bytemuck::cast_slice(&words).to_vec();
    int32s.iter().for_each(|row| {
        if let (Some(value), Some(word)) = (values.get_mut(row), words.get(row)) {
            // The low half is the whole of it.
            *value = f64::from((*word as u32).cast_signed());
        }
    });
    let absent = missing.clone().with(&null).with(&left);
    let int32s = if int32s.count() + absent.count() == rows { Int32s::All } else { Int32s::of(int32s) };
    if int64s.none() {
        return Cells::Numbers(values.into(), int32s).with(missing, null, left);
    }
    // Some functions have a form only for small or whole numbers: the bits of the other type would be neither.
    gather::blend(&mut values, int64s.words(), Operand::Same(0.0));
    let mut longs: Vec<i64> = cast_slice(&words).to_vec();
    gather::blend_int64s(&mut longs, first.words(), Operand::Same(0));
    let [a, b] = [Cells::Numbers(values.into(), int32s), Cells::Longs(longs.into())].map(|part| Rc::new(part.whole()));
    Cells::Either(first, a, b).with(missing, null, left)
}
