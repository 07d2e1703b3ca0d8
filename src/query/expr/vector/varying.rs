//! Operators on arrays whose other arguments differ in each row: `$slice`, `$in`, `$indexOfArray`. The arrays may be those of other rows, such
//! as those outside of a `$map`, which are not repeated.

// Loaded later.

use std::rc::Rc;

use super::arrays::elements_of;
use super::cells::{Cells, Int32s, Scratch, Vector};
use super::lists::doubles_of;
use super::mask::Mask;
use super::truth;
use crate::block::{ArrayElements, Bitmap};
use crate::listed::IntoList;
use crate::query::expr::operators::Operator;
use crate::value::Collation;

/// Arrays of all rows.
struct ArraysOfRows {
    list: Rc<ArrayElements>,
    /// The array of each row, if it is not the one with the row's number.
    among: Option<Rc<[u32]>>,
    absent: Mask,
    left: Mask,
}

impl ArraysOfRows {
    fn of(arrays: &Rc<Vector<'_>>) -> Option<ArraysOfRows> {
        let (among, entries) = match &arrays.cells {
            Cells::Indexed(among, entries) => (Some(Rc::clone(among)), entries.flat()),
            _ => (None, Rc::clone(arrays)),
        };
        let of_entries = among.as_ref().map_or(Mask::NONE, |among| entries.absent().spread(among));
        Some(ArraysOfRows {
            list: elements_of(&entries)?,
            among,
            absent: of_entries.with(&arrays.absent()),
            left: arrays.all_left(),
        })
    }

    /// The places of a row's elements.
    fn range(&self, row: usize) -> std::ops::Range<usize> {
        let array = self.among.as_ref().map_or(Some(row), |among| among.get(row).map(|array| *array as usize));
        array.map_or(0..0, |array| self.list.range(array))
    }
}

/// `None` for other operators, for constants, and for values that must be looked at row by row.
pub fn of_varying<'a>(
    operator: &Operator,
    vectors: &[Rc<Vector<'a>>],
    rows: usize,
    collation: &Collation,
) -> Option<Vector<'a>> {
    let (arrays, others) = match (operator.name(), vectors) {
        ("$slice", [arrays, numbers @ ..]) => (arrays, numbers),
        ("$indexOfArray", [arrays, wanted]) => (arrays, std::slice::from_ref(wanted)),
        ("$in", [wanted, arrays]) => (arrays, std::slice::from_ref(wanted)),
        _ => return None,
    };
    let is_constant = |vector: &Rc<Vector<'a>>| matches!(vector.cells, Cells::Constant(_));
    if is_constant(arrays) || others.iter().all(is_constant) && !matches!(arrays.cells, Cells::Indexed(..)) {
        return None;
    }
    let arrays = ArraysOfRows::of(arrays)?;
    let left = others.iter().fold(arrays.left.clone(), |left, other| left.with(&other.all_left()));
    let others = others.iter().map(Vector::flat).listed();
    if operator.name() == "$slice" {
        let absent = others.iter().fold(arrays.absent.clone(), |absent, other| absent.with(&other.absent()));
        return sliced(&arrays, &others, rows, absent, left);
    }
    let wanted = others.first()?;
    let mut find = finder(&arrays, wanted, collation);
    if operator.name() == "$indexOfArray" {
        let places = (0..rows).map(|row| find(row).map_or(-1.0, |place| place as f64));
        return Some(Cells::Numbers(places.collect(), Int32s::All).with(Mask::NONE, arrays.absent.clone(), left));
    }
    let found = || truth::of_bitmap(Bitmap::from_fn(rows, |row| find(row).is_some()), left);
    arrays.absent.is_none().then(found)
}

/// The numbers of a vector for `$slice`; `None` if one is no int32, unless the row is among `ignored`.
fn numbers_of(vector: &Vector<'_>, rows: usize, ignored: &Mask) -> Option<Vec<i64>> {
    let exact = |number: &f64| Some(*number as i64).filter(|n| *n as f64 == *number && i32::try_from(*n).is_ok());
    if let Some((number, _)) = vector.constant_number() {
        return Some(vec![exact(&number)?; rows]);
    }
    let Cells::Numbers(cells, _) = &vector.cells else { return None };
    let each = |(row, number)| exact(number).or(ignored.has(row).then_some(1));
    cells.iter().enumerate().map(each).listed_if_all()
}

fn sliced<'a>(
    arrays: &ArraysOfRows,
    numbers: &[Rc<Vector<'_>>],
    rows: usize,
    absent: Mask,
    left: Mask,
) -> Option<Vector<'a>> {
    let ignored = absent.clone().with(&left);
    let numbers = numbers.iter().map(|numbers| numbers_of(numbers, rows, &ignored)).listed_if_all()?;
    let (first, counts) = match numbers.as_slice() {
        [first] => (first, None),
        [first, counts] => (first, Some(counts)),
        _ => return None,
    };
    let (mut places, mut ends) = (Vec::new(), Vec::with_capacity(rows));
    for (row, first) in first.iter().enumerate() {
        if !ignored.has(row) {
            let range = arrays.range(row);
            let [start, end] = [range.start, range.end].map(|at| at as i64);
            let from = if *first < 0 { (end + first).max(start) } else { (start + first).min(end) };
            let part = match counts.and_then(|counts| counts.get(row)) {
                // Whoever evaluates row by row says what is wrong.
                Some(..=0) => return None,
                Some(count) => from..(from + count).min(end),
                None if *first < 0 => from..end,
                None => start..from,
            };
            places.extend(part.map(|at| at as u32));
        }
        ends.push(places.len() as u32);
    }
    let list = ArrayElements { values: arrays.list.values.gather(&places), ends };
    Some(Cells::Lists(Rc::new(list)).with(Mask::NONE, absent, left))
}

/// A function that finds the place of a row's value in the row's array.
fn finder<'f>(
    arrays: &'f ArraysOfRows,
    wanted: &'f Vector<'_>,
    collation: &'f Collation,
) -> Box<dyn FnMut(usize) -> Option<usize> + 'f> {
    let absent = wanted.absent();
    if let (Cells::Numbers(wanted, _), Some(cells), true) =
        (&wanted.cells, doubles_of(&arrays.list.values), absent.is_none())
    {
        return Box::new(move |row| {
            let wanted = *wanted.get(row)?;
            let is_it = |x: &f64| *x == wanted || x.is_nan() && wanted.is_nan();
            cells.get(arrays.range(row))?.iter().position(is_it)
        });
    }
    let (mut scratch, mut element) = (Scratch::default(), Vec::new());
    Box::new(move |row| {
        let wanted = wanted.value(row, &mut scratch)?;
        let is_it = |at| arrays.list.values.value(at, &mut element).is_some_and(|value| collation.equal(value, wanted));
        arrays.range(row).position(is_it)
    })
}
