//! Calls with constants that have a form of their own for the values of one step: a part of texts that are split, dates in texts, and
//! quantiles of arrays, and arrays in arrays joined. Values of other types are left to the operator itself.

use std::rc::Rc;

use kernels::{parts, texts};

use super::arrays::elements_of;
use super::cells::{Cells, Int32s, Vector};
use super::lists::doubles_of;
use super::mask::Mask;
use super::reading;
use super::texts::{of_new, texts_of};
use crate::block::{ArrayElements, Bitmap, Column, ColumnData};
use crate::listed::IntoList;
use crate::query::expr::operators::Operator;
use crate::query::expr::quantiles::{is_continuous, percentiles_of, quantile};
use crate::query::expr::tree::{Expr, Variable};
use crate::value::Number;

/// What is computed.
#[derive(PartialEq)]
pub enum Specific {
    /// The part with a number of texts that are split by a text; from the end if the number is negative.
    Part(Box<str>, i32),
    /// Dates in texts of a format.
    Dates(Option<Box<str>>),
    /// Quantiles of the numbers in arrays, interpolated or not.
    Quantiles(Vec<f64>, bool),
    /// The same of one median.
    Median(bool),
    /// The elements of arrays in arrays.
    Flat,
}

/// What an operator computes of an argument, and that argument. True if rows where it is null are evaluated one by one.
pub fn of_call<'e>(operator: &Operator, arguments: &'e [Expr]) -> Option<(Specific, &'e Expr, bool)> {
    Some(match (operator.name(), arguments) {
        ("$first", [array]) => part(array, 0)?,
        ("$last", [array]) => part(array, -1)?,
        ("$arrayElemAt", [array, Expr::Constant(Some(number))]) => {
            part(array, i32::try_from(Number::of(number.view())?.whole()?).ok()?)?
        }
        // Without a time zone.
        ("$dateFromString", [text, Expr::Constant(format), Expr::Constant(None), _, on_null]) => {
            let format = match format {
                Some(format) => Some(format.view().as_str()?.into()),
                None => None,
            };
            (Specific::Dates(format), text, *on_null != Expr::MISSING)
        }
        ("$median", [array, Expr::Constant(Some(method))]) => {
            (Specific::Median(is_continuous(Some(method.view())).ok()?), array, true)
        }
        ("$percentile", [array, Expr::Constant(Some(method)), shares]) => {
            let is_continuous = is_continuous(Some(method.view())).ok()?;
            (Specific::Quantiles(percentiles_of(shares).ok()?, is_continuous), array, true)
        }
        ("$reduce", [input, Expr::Constant(Some(initial)), Expr::Call(concat, arrays)])
            if concat.name() == "$concatArrays" && !matches!(input, Expr::Array(_)) =>
        {
            let is = |expr: &Expr, hops| matches!(expr, Expr::Field(Variable::Bound(of), path) if *of == hops && path.is_empty());
            // What was joined so far, and the next element.
            let [before, next] = arrays.as_slice() else { return None };
            let is_empty = initial.view().as_array().is_some_and(|array| array.is_empty());
            return (is_empty && is(before, 1) && is(next, 0)).then_some((Specific::Flat, input, true));
        }
        _ => return None,
    })
}

/// A part of texts that are split.
fn part(array: &Expr, number: i32) -> Option<(Specific, &Expr, bool)> {
    let Expr::Call(split, arguments) = array else { return None };
    let ("$split", [text, Expr::Constant(Some(separator))]) = (split.name(), arguments.as_slice()) else { return None };
    let separator = separator.view().as_str().filter(|separator| !separator.is_empty())?;
    Some((Specific::Part(separator.into(), number), text, false))
}

impl Specific {
    /// The results. `None` for values of other types.
    pub fn computed<'a>(&self, vector: &Vector<'_>, rows: usize) -> Option<Vector<'a>> {
        match self {
            Specific::Part(separator, number) => parts_of(vector, separator, *number, rows),
            Specific::Dates(format) => reading::dates(vector, format.as_deref(), rows),
            Specific::Quantiles(shares, is_continuous) => quantiles(vector, shares, *is_continuous),
            Specific::Median(is_continuous) => median(vector, *is_continuous),
            Specific::Flat => flat(vector),
        }
    }
}

/// Null where the text is null or missing, and nothing where it has fewer parts.
fn parts_of<'a>(vector: &Vector<'_>, separator: &str, number: i32, rows: usize) -> Option<Vector<'a>> {
    let (made, words) = texts::parts(texts_of(vector)?, separator.as_bytes(), number);
    let null = vector.absent();
    let mut missing = Mask::outside(&Bitmap::from_words(words, rows));
    missing.remove(&null);
    // A column says for itself which cells are absent.
    let absent = missing.clone().with(&null);
    let present = absent.rows().map(|absent| {
        let mut present = absent.clone();
        present.invert();
        present
    });
    Some(of_new(made, present).with(missing, null, vector.left.clone()))
}

/// The quantiles of each array one after another; those of arrays without elements have no value, and are 0.
fn quantiles_of(list: &ArrayElements, shares: &[f64], is_continuous: bool) -> Option<(Vec<f64>, Mask)> {
    let cells = doubles_of(&list.values)?;
    // Two zeros are one to the kernel, but the negative one comes first.
    if cells.iter().any(|x| x.is_nan() || x.to_bits() == (-0.0_f64).to_bits()) {
        return None;
    }
    let order = parts::sorted(&cells, &list.ends, false)?;
    let mut found = Vec::with_capacity(shares.len() * list.ends.len());
    for array in 0..list.ends.len() {
        let places = order.get(list.range(array)).unwrap_or_default();
        let at = |place: usize| cells.get(*places.get(place)? as usize).copied();
        found.extend(shares.iter().map(|share| quantile(places.len(), &at, *share, is_continuous).unwrap_or_default()));
    }
    Some((found, Mask::from_fn(list.ends.len(), |array| list.range(array).is_empty())))
}

/// The elements of the arrays in each array. `None` if an element is no array.
fn flat<'a>(vector: &Vector<'_>) -> Option<Vector<'a>> {
    let list = elements_of(vector)?;
    let inner = list.values.elements()?;
    let end = |end: &u32| end.checked_sub(1).map_or(Some(0), |last| inner.ends.get(last as usize).copied());
    let ends = list.ends.iter().map(end).listed_if_all()?;
    let flat = ArrayElements { values: inner.values.clone(), ends };
    Some(Cells::Lists(Rc::new(flat)).with(Mask::NONE, vector.absent(), vector.left.clone()))
}

fn median<'a>(vector: &Vector<'_>, is_continuous: bool) -> Option<Vector<'a>> {
    let (found, null) = quantiles_of(&*elements_of(vector)?, &[0.5], is_continuous)?;
    Some(Cells::Numbers(found.into(), Int32s::None).with(Mask::NONE, null.with(&vector.absent()), vector.left.clone()))
}

fn quantiles<'a>(vector: &Vector<'_>, shares: &[f64], is_continuous: bool) -> Option<Vector<'a>> {
    let (found, empty) = quantiles_of(&*elements_of(vector)?, shares, is_continuous)?;
    let count = u32::try_from(shares.len()).ok()?;
    let ends = (1..).take(found.len() / shares.len().max(1)).map(|row: u32| row * count).collect();
    let list = ArrayElements { values: Column::new(ColumnData::F64(found), None), ends };
    // Those of nothing are nulls.
    Some(Cells::Lists(Rc::new(list)).with(
        Mask::NONE,
        Mask::NONE,
        vector.left.clone().with(&empty).with(&vector.absent()),
    ))
}
