//! Columns of arrays, whose elements are a column of their own: `$size`, `$arrayElemAt`, `$first`, `$last`; `$sum`, `$avg`, `$max`
//! and `$min` of the elements; and what a path reaches in their elements.

use std::rc::Rc;

use kernels::parts::{self, Fold};

use super::cells::{Cells, Int32s, Vector};
use super::general;
use super::mask::Mask;
use super::numbers::finished;
use super::run::VectorArguments;
use crate::block::{ArrayElements, Bitmap, ColumnData};
use crate::query::expr::operators::{Op, Operator};
use crate::value::{Kind, Number};

/// Sums of int32s are int32s up to here; the least one is left out as well.
const INT32_MAX: f64 = 2_147_483_647.0;

/// `None` for other operators, and unless the first argument is a column of arrays.
pub fn of_arrays<'a>(operator: &Operator, arguments: &VectorArguments<'_, 'a>) -> Option<Vector<'a>> {
    let vector = arguments.at(0)?;
    let place = || Number::of(arguments.constants(&[0])?.get(1).copied()??)?.whole();
    match (operator.op, operator.name()) {
        (Op::Size, _) => {
            let lens = match &vector.cells {
                Cells::Lists(list) => parts::lengths(&list.ends),
                Cells::Any(column) => parts::lengths(&column.array_ends()?),
                _ => return None,
            };
            let lens = lens.into();
            // A missing array has no size.
            let absent = vector.absent();
            Some(finished(Cells::Numbers(lens, Int32s::All), Mask::NONE, vector.left.clone(), absent))
        }
        (Op::First, _) => at(vector, 0),
        (Op::Last, _) => at(vector, -1),
        (Op::ArrayElemAt, _) => at(vector, place()?),
        (_, name @ ("$sum" | "$avg" | "$max" | "$min" | "$stdDevPop" | "$stdDevSamp"))
            if arguments.vectors.len() == 1 =>
        {
            folded(name, vector)
        }
        _ => None,
    }
}

/// The elements of a column of arrays, of which some may be missing. Those have no elements.
pub fn elements_of(vector: &Vector<'_>) -> Option<Rc<ArrayElements>> {
    let list = match &vector.cells {
        Cells::Lists(list) => Rc::clone(list),
        Cells::Any(column) => column.elements()?,
        _ => return None,
    };
    // The entry of a dictionary to which rows without a value refer may have some.
    let absent = vector.absent();
    if absent.iter().all(|row| list.range(row).is_empty()) {
        return Some(list);
    }
    let (mut places, mut ends) = (Vec::new(), Vec::with_capacity(list.ends.len()));
    for row in 0..list.ends.len() {
        if !absent.has(row) {
            places.extend(list.range(row).map(|at| at as u32));
        }
        ends.push(places.len() as u32);
    }
    Some(Rc::new(ArrayElements { values: list.values.gather(&places), ends }))
}

/// The element with a number of each array, counted from the end if it is negative. Nothing where there is none.
fn at<'a>(vector: &Vector<'_>, number: i64) -> Option<Vector<'a>> {
    let elements = elements_of(vector)?;
    let places = parts::places(&elements.ends, number);
    at_places(&elements, &places, vector.absent(), vector.left.clone())
}

/// The elements at these places; null in the rows that lack an argument, which have no place.
fn at_places<'a>(elements: &ArrayElements, places: &[u32], absent: Mask, left: Mask) -> Option<Vector<'a>> {
    let mut found = Vector::made(elements.at(places)?, left);
    found.missing.remove(&absent);
    found.null.add(&absent);
    Some(found)
}

/// `$arrayElemAt` with a number for each row. The arrays may be those of other rows, such as those outside of a `$map`.
pub fn at_each<'a>(operator: &Operator, vectors: &[Rc<Vector<'a>>]) -> Option<Vector<'a>> {
    let (Op::ArrayElemAt, [arrays, numbers]) = (operator.op, vectors) else { return None };
    let numbers = numbers.flat();
    let Cells::Numbers(wanted, _) = &numbers.cells else { return None };
    let (among, entries) = match &arrays.cells {
        Cells::Indexed(among, entries) => (Some(&**among), entries.flat()),
        _ => (None, Rc::clone(arrays)),
    };
    let elements = elements_of(&entries)?;
    let (mut places, are_int32s) = parts::places_of(&elements.ends, among, wanted);
    let absent = among.map_or(Mask::NONE, |among| entries.absent().spread(among));
    let absent = absent.with(&arrays.absent()).with(&numbers.absent());
    let left = arrays.all_left().with(&numbers.left);
    let is_known = |row: usize| !absent.has(row) && !left.has(row);
    let is_int32 = |number: &f64| f64::from(*number as i32) == *number;
    // Whoever evaluates row by row says what is wrong with other numbers.
    if !are_int32s && wanted.iter().enumerate().any(|(row, number)| !is_int32(number) && is_known(row)) {
        return None;
    }
    for row in absent.iter().chain(left.iter()) {
        places.get_mut(row).into_iter().for_each(|place| *place = parts::NOWHERE);
    }
    at_places(&elements, &places, absent, left)
}

/// `$sum`, `$avg`, `$max`, `$min`, `$stdDevPop` or `$stdDevSamp` of the elements, which are doubles or int32s.
fn folded<'a>(name: &str, vector: &Vector<'_>) -> Option<Vector<'a>> {
    let elements = elements_of(vector)?;
    let (cells, is_int32) = match (elements.values.data(), elements.values.presence()) {
        (ColumnData::F64(cells), None) => (cells, false),
        (ColumnData::I32(cells), None) => (&cells.iter().map(|n| f64::from(*n)).collect::<Vec<f64>>(), true),
        _ => return None,
    };
    let fold = match name {
        "$max" => Fold::Greatest,
        "$min" => Fold::Least,
        _ => Fold::Sum,
    };
    let fewer = match name {
        "$stdDevPop" => Some(0.0),
        "$stdDevSamp" => Some(1.0),
        _ => None,
    };
    let mut results = match fewer {
        Some(fewer) => parts::deviations(cells, &elements.ends, fewer),
        None => parts::folded(cells, &elements.ends, fold),
    };
    let lens = parts::lengths(&elements.ends);
    let empty = Mask::of(Bitmap::from_slice(&lens, |len| *len <= fewer.unwrap_or_default()));
    let absent = vector.absent();
    let (mut null, mut left) = (absent.clone(), vector.left.clone());
    let int32s = match name {
        "$sum" => {
            // What is not there does not count, and the sum of nothing is an integer.
            null = Mask::NONE;
            let beyond = |x: &f64| is_int32 && x.abs() > INT32_MAX;
            if results.iter().any(beyond) {
                left.add(&Mask::from_fn(results.len(), |row| results.get(row).is_some_and(beyond)));
            }
            if is_int32 {
                Int32s::All
            } else {
                Int32s::of(empty.rows().cloned().unwrap_or(Bitmap::filled(results.len(), false)))
            }
        }
        "$avg" => {
            null.add(&empty);
            results.iter_mut().zip(&lens).for_each(|(sum, len)| *sum /= len.max(1.0));
            Int32s::None
        }
        _ => {
            null.add(&empty);
            if is_int32 && fewer.is_none() { Int32s::All } else { Int32s::None }
        }
    };
    Some(finished(Cells::Numbers(results.into(), int32s), null, left, Mask::NONE))
}

/// What a path reaches in the elements of arrays: arrays of what it reaches in those that are objects. `None` if arrays are among the
/// elements: a path does not lead into these.
pub fn reached(list: &ArrayElements, path: &[Box<str>]) -> Option<ArrayElements> {
    let values = &list.values;
    let entries = match values.data() {
        ColumnData::Dictionary(_, entries) => entries,
        _ => values,
    };
    if let ColumnData::Bson(cells) = entries.data()
        && (0..entries.len()).any(|at| cells.get(at).first() == Some(&Kind::Array.byte()))
    {
        return None;
    }
    let found = general::path(&Vector::made(values.clone(), Mask::NONE), path, values.len());
    let found = found.into_column(values.len())?;
    Some(match found.presence() {
        Some(present) => list.with(&found, present),
        None => ArrayElements { values: found, ends: list.ends.clone() },
    })
}
