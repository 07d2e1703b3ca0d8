//! The operator behind `$bucket`: a binary search a row.

use std::borrow::Cow;
use std::rc::Rc;

use kernels::classes;

use super::cells::{Cells, Scratch, Vector};
use super::mask::Mask;
use super::run::VectorArguments;
use crate::block::{Bitmap, ColumnBuilder};
use crate::listed::IntoList;
use crate::query::expr::bucket::{place_below, within};
use crate::value::{Collation, Number, Value};

/// Integers beyond this may not be exact as doubles.
const EXACT_MAX: i64 = 1 << 53;

/// Arguments: the value, the default, and the boundaries, ascending. Rows outside are left out if there is no default.
pub fn bucketed<'a>(arguments: &VectorArguments<'_, 'a>, collation: &Collation) -> Option<Vector<'a>> {
    let (vector, constants) = (arguments.at(0)?, arguments.constants(&[0])?);
    let [_, default, boundaries @ ..] = constants.as_slice() else { return None };
    let outside = boundaries.len().checked_sub(1)?;
    let index_of = |place: Option<usize>| u32::try_from(place.unwrap_or(outside)).unwrap_or(u32::MAX);
    let mut scratch = Scratch::default();
    let mut by_value = |row: usize| index_of(place_below(vector.value(row, &mut scratch), boundaries, collation));
    let doubles = boundaries.iter().map(|boundary| double(*boundary)).listed_if_all();
    let dates = boundaries.iter().map(|boundary| boundary.and_then(Value::as_date_ms)).listed_if_all();
    let codes = || (0..=boundaries.len()).map(|reached| index_of(within(reached, boundaries.len()))).listed();
    let mut index = match (&vector.cells, doubles, dates) {
        (Cells::Numbers(cells, _), Some(boundaries), _) => classes::doubles(cells, &boundaries, &codes()),
        (Cells::Dates(cells), _, Some(boundaries)) => classes::int64s(cells, &boundaries, &codes()),
        _ => (0..arguments.rows).map(|row| if vector.left.has(row) { 0 } else { by_value(row) }).collect(),
    };
    // Null and missing have one place each.
    let null = index_of(place_below(Some(Value::NULL), boundaries, collation));
    let missing = index_of(place_below(None, boundaries, collation));
    for (mask, of_mask) in [(&vector.null, null), (&vector.missing, missing)] {
        for row in mask.iter() {
            if let Some(place) = index.get_mut(row) {
                *place = of_mask;
            }
        }
    }
    let mut left = vector.left.clone();
    let mut entries = ColumnBuilder::with_capacity(boundaries.len());
    boundaries.iter().take(outside).flatten().for_each(|boundary| entries.push(*boundary));
    if default.is_none() && index.iter().any(|place| *place as usize == outside) {
        left.add(&Mask::of(Bitmap::from_slice(&index, |place| *place as usize == outside)));
    }
    // Rows that are left out may have any entry.
    (*default).or(boundaries.first().copied().flatten()).into_iter().for_each(|entry| entries.push(entry));
    // Of boundaries and a default of another type, none is left out.
    let entries = Rc::new(Cells::Any(Cow::Owned(entries.finish())).whole());
    Some(Cells::Indexed(index.into(), entries).with(Mask::NONE, Mask::NONE, left))
}

/// A number that is the same as a double, and not NaN.
fn double(value: Option<Value<'_>>) -> Option<f64> {
    match Number::of(value?)? {
        Number::Double(x) if !x.is_nan() => Some(x),
        Number::Integer(n) if (-EXACT_MAX..=EXACT_MAX).contains(&n) => Some(Number::Integer(n).near_double()),
        _ => None,
    }
}
