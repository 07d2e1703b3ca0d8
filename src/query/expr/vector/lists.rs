//! Operators that make arrays of arrays, or look for an element: the elements stay a column of their own (`Cells::Lists`), of which slices,
//! orders and choices are gathered.

// Loaded later.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;

use kernels::parts;

use super::arrays::{elements_of, reached};
use super::cells::{Cells, Int32s, Vector};
use super::mask::Mask;
use super::run::VectorArguments;
use super::truth;
use crate::block::{ArrayElements, Bitmap, Column, ColumnBuilder, ColumnData};
use crate::listed::IntoList;
use crate::query::expr::operators::Operator;
use crate::value::{Collation, Number, Value};

/// So many elements are made at once.
const ELEMENTS_MAX: usize = 1 << 22;

/// `None` for other operators, and for arguments that must be looked at row by row.
pub fn of_lists<'a>(
    operator: &Operator,
    arguments: &VectorArguments<'_, 'a>,
    collation: &Collation,
) -> Option<Vector<'a>> {
    let list = |position: usize| elements_of(arguments.at(position)?);
    let whole = |position: usize| list(position).filter(|_| arguments.vectors.iter().all(|v| v.absent().is_none()));
    match (operator.name(), arguments.vectors.len()) {
        ("$reverseArray", 1) => {
            let reversed = chosen(&*list(0)?, &mut |array, places| places.extend(array.rev()));
            Some(arguments.lists(reversed, 0))
        }
        ("$slice", _) => {
            let sliced = slices(&*list(0)?, arguments.constants(&[0])?.get(1..)?)?;
            Some(arguments.lists(sliced, 0))
        }
        ("$sortArray", _) => {
            let by = arguments.constants(&[0])?.get(1).copied()??;
            let (list, only) = (list(0)?, by.as_doc().filter(|fields| fields.iter().count() == 1));
            // By a field of objects, or by the elements themselves.
            let (keys, by) = match only.and_then(|fields| fields.iter().next()) {
                Some((path, by)) => {
                    // Other names are refused.
                    if path.is_empty() || path.starts_with('$') || path.contains('.') {
                        return None;
                    }
                    let found = reached(&list, &[path.into()]).filter(|found| found.ends == list.ends)?;
                    (&found.values.clone(), by)
                }
                None => (&list.values, by),
            };
            let descends = match by.as_integer()? {
                1 => false,
                -1 => true,
                _ => return None,
            };
            Some(arguments.lists(sorted(&list, keys, descends)?, 0))
        }
        (name @ ("$firstN" | "$lastN" | "$minN" | "$maxN"), 2) => {
            let n = integer(arguments.constants(&[1])?.first().copied()?).filter(|n| *n > 0)?;
            let (from_end, list) = (name == "$lastN", whole(1)?);
            let list = match name {
                "$minN" | "$maxN" => Rc::new(sorted(&list, &list.values, name == "$maxN")?),
                _ => list,
            };
            Some(arguments.lists(cut(&list, if from_end { -n } else { 0 }, n), 1))
        }
        ("$concatArrays", 2..) => joined(arguments),
        ("$range", _) => ranges(arguments),
        ("$in", 2) => {
            let wanted = arguments.constants(&[1])?.first().copied()??;
            let (list, found) = (whole(1)?, elements_equal(&list(1)?.values, wanted, collation));
            Some(truth::of_bitmap(list.with_any(&found), arguments.at(1)?.left.clone()))
        }
        ("$indexOfArray", 2) => {
            let wanted = arguments.constants(&[0])?.get(1).copied()??;
            let (list, vector) = (list(0)?, arguments.at(0)?);
            let found = elements_equal(&list.values, wanted, collation);
            let place = |row: usize| list.range(row).position(|at| found.get(at)).map_or(-1, |at| at as i32);
            let places = (0..list.ends.len()).map(|row| f64::from(place(row))).listed();
            Some(Cells::Numbers(places.into(), Int32s::All).with(Mask::NONE, vector.absent(), vector.left.clone()))
        }
        (name @ ("$anyElementTrue" | "$allElementsTrue"), 1) => {
            let list = whole(0)?;
            let (mut elements, all) = (truth::of_column(&list.values), name == "$allElementsTrue");
            if all {
                elements.invert();
            }
            let mut arrays = list.with_any(&elements);
            if all {
                arrays.invert();
            }
            Some(truth::of_bitmap(arrays, arguments.at(0)?.left.clone()))
        }
        _ => None,
    }
}

impl<'a> VectorArguments<'_, 'a> {
    /// Arrays made of those of an argument; null where that is null or missing.
    fn lists(&self, list: ArrayElements, position: usize) -> Vector<'a> {
        let (absent, left) = self.at(position).map(|of| (of.absent(), of.left.clone())).unwrap_or_default();
        Cells::Lists(Rc::new(list)).with(Mask::NONE, absent, left)
    }
}

/// A constant that is a whole number of 32 bits.
fn integer(value: Option<Value<'_>>) -> Option<i64> {
    Number::of(value?)?.whole().filter(|n| i32::try_from(*n).is_ok())
}

/// Arrays of the elements whose places `choose` appends, when it is called with those of an array.
fn chosen(list: &ArrayElements, choose: &mut dyn FnMut(Range<u32>, &mut Vec<u32>)) -> ArrayElements {
    let (mut places, mut start) = (Vec::with_capacity(list.values.len()), 0);
    let ends = list.ends.iter().map(|end| {
        choose(start..*end, &mut places);
        start = *end;
        places.len() as u32
    });
    let ends = ends.listed();
    ArrayElements { values: list.values.gather(&places), ends }
}

/// `n` elements of each array, from one with a number on, which counts from the end if it is negative.
fn cut(list: &ArrayElements, from: i64, n: i64) -> ArrayElements {
    chosen(list, &mut |array, places| {
        let [start, end] = [array.start, array.end].map(i64::from);
        let first = if from < 0 { (end + from).max(start) } else { (start + from).min(end) };
        places.extend(first as u32..(first + n).min(end) as u32);
    })
}

/// `$slice`: a number of elements, or the first of them and their number.
fn slices(list: &ArrayElements, numbers: &[Option<Value<'_>>]) -> Option<ArrayElements> {
    Some(match *numbers {
        [n] => match integer(n)? {
            n @ ..0 => cut(list, n, -n),
            n => cut(list, 0, n),
        },
        [from, n] => cut(list, integer(from)?, integer(n).filter(|n| *n > 0)?),
        _ => return None,
    })
}

/// The doubles or int32s of a column, as doubles.
pub fn doubles_of(column: &Column) -> Option<Cow<'_, [f64]>> {
    match (column.data(), column.presence()) {
        (ColumnData::F64(cells), None) => Some(cells.into()),
        (ColumnData::I32(cells), None) => Some(kernels::convert::doubles_of_int32s(cells).into()),
        _ => None,
    }
}

/// Arrays in the order of keys of all elements, which are doubles or int32s.
fn sorted(list: &ArrayElements, keys: &Column, descend: bool) -> Option<ArrayElements> {
    let places = parts::sorted(&doubles_of(keys)?, &list.ends, descend)?;
    Some(ArrayElements { values: list.values.gather(&places), ends: list.ends.clone() })
}

/// The arrays of all arguments, columns or constants.
pub(super) struct Arrays {
    /// The elements of all arguments, one after another.
    pub elements: Column,
    /// Of each argument, the places of its elements; with a list, those of a row's array count from the first place.
    pub parts: Vec<(Range<usize>, Option<Rc<ArrayElements>>)>,
    /// How many elements all rows have together.
    count: usize,
    /// Rows in which an argument is null or missing.
    pub absent: Mask,
    pub left: Mask,
}

impl Arrays {
    /// `None` if an argument must be looked at row by row.
    pub fn of(vectors: &[Rc<Vector<'_>>], rows: usize) -> Option<Arrays> {
        let (mut all, mut parts) = (ColumnBuilder::new(), Vec::new());
        let (mut absent, mut left, mut count) = (Mask::NONE, Mask::NONE, 0);
        for vector in vectors {
            let first = all.len();
            if let Cells::Constant(Some(array)) = &vector.cells {
                array.view().as_array()?.iter().for_each(|(_, element)| all.push(element));
                count += (all.len() - first) * rows;
                parts.push((first..all.len(), None));
            } else {
                let list = elements_of(vector)?;
                all.extend(&list.values, 0..list.values.len());
                count += list.values.len();
                parts.push((first..all.len(), Some(list)));
            }
            (absent, left) = (absent.with(&vector.absent()), left.with(&vector.left));
        }
        (count <= ELEMENTS_MAX).then(|| Arrays { elements: all.finish(), parts, count, absent, left })
    }

    /// The places of the elements of each argument in a row.
    fn ranges(&self, row: usize) -> impl Iterator<Item = Range<usize>> {
        self.parts.iter().map(move |(same, list)| {
            list.as_ref().map_or(same.clone(), |list| {
                let range = list.range(row);
                same.start + range.start..same.start + range.end
            })
        })
    }
}

/// `$zip` of so many elements of each array as the shortest one has.
pub fn zipped<'a>(vectors: &[Rc<Vector<'_>>], rows: usize) -> Option<Vector<'a>> {
    let arrays = Arrays::of(vectors, rows)?;
    let (mut places, mut inner, mut ends) = (Vec::new(), Vec::new(), Vec::with_capacity(rows));
    for row in 0..rows {
        let shortest = arrays.ranges(row).map(|range| range.len()).min().unwrap_or_default();
        for at in 0..shortest {
            places.extend(arrays.ranges(row).map(|range| (range.start + at) as u32));
            inner.push(places.len() as u32);
        }
        ends.push(inner.len() as u32);
    }
    let tuples = ArrayElements::new(arrays.elements.gather(&places), inner);
    let list = ArrayElements { values: tuples.arrays(|_| false), ends };
    Some(Cells::Lists(Rc::new(list)).with(Mask::NONE, arrays.absent, arrays.left))
}

/// `$concatArrays`.
fn joined<'a>(arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let arrays = Arrays::of(arguments.vectors, arguments.rows)?;
    let (mut places, mut ends) = (Vec::with_capacity(arrays.count), Vec::with_capacity(arguments.rows));
    for row in 0..arguments.rows {
        arrays.ranges(row).for_each(|range| places.extend(range.start as u32..range.end as u32));
        ends.push(places.len() as u32);
    }
    let list = ArrayElements::new(arrays.elements.gather(&places), ends);
    Some(Cells::Lists(Rc::new(list)).with(Mask::NONE, arrays.absent, arrays.left))
}

/// `$range` with other bounds in each row.
fn ranges<'a>(arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let mut bounds = Vec::new();
    for vector in arguments.vectors {
        let bound = match (&vector.cells, vector.constant_number()) {
            (Cells::Numbers(cells, Int32s::All), _) => (0, Some(cells)),
            (_, Some((number, true))) => (number as i64, None),
            _ => return None,
        };
        bounds.push(bound);
    }
    let left = arguments.vectors.iter().fold(Mask::NONE, |left, vector| left.with(&vector.left));
    if arguments.vectors.iter().any(|vector| !vector.absent().is_none()) {
        return None;
    }
    let (mut numbers, mut ends) = (Vec::new(), Vec::with_capacity(arguments.rows));
    for row in 0..arguments.rows {
        let of_row = |at: usize| {
            let (same, cells) = bounds.get(at)?;
            Some(cells.map_or(*same, |cells| cells.get(row).map_or(0, |number| *number as i64)))
        };
        let (mut next, end, step) = (of_row(0)?, of_row(1)?, of_row(2).unwrap_or(1));
        if !left.has(row) {
            if step == 0 || (end - next) / step > ELEMENTS_MAX.saturating_sub(numbers.len()) as i64 {
                return None;
            }
            while if step > 0 { next < end } else { next > end } {
                numbers.push(i32::try_from(next).ok()?);
                next += step;
            }
        }
        ends.push(numbers.len() as u32);
    }
    let values = Column::new(ColumnData::I32(numbers), None);
    Some(Cells::Lists(Rc::new(ArrayElements { values, ends })).with(Mask::NONE, Mask::NONE, left))
}

/// The elements that are equal to a value.
fn elements_equal(values: &Column, wanted: Value<'_>, collation: &Collation) -> Bitmap {
    let double = match Number::of(wanted) {
        Some(Number::Double(x)) => Some(x),
        Some(Number::Integer(n)) if i32::try_from(n).is_ok() => Some(Number::Integer(n).near_double()),
        _ => None,
    };
    match (values.data(), double) {
        (ColumnData::F64(cells), Some(wanted)) => {
            Bitmap::from_slice(cells, |x| *x == wanted || x.is_nan() && wanted.is_nan())
        }
        (ColumnData::Dictionary(index, entries), _) => {
            let among = elements_equal(entries, wanted, collation);
            Bitmap::from_slice(index, |entry| among.get(*entry as usize))
        }
        _ => {
            let mut scratch = Vec::new();
            let is_it = |value: Value<'_>| collation.equal(value, wanted);
            Bitmap::from_fn(values.len(), |at| values.value(at, &mut scratch).is_some_and(is_it))
        }
    }
}
