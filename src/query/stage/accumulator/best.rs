//! Which rows of a run a group may keep that keeps few: kernels find them by their key, without a look at each row.

use std::ops::Range;

use kernels::Operand;
use kernels::compare::{self, Comparison};

use super::kernels::{extreme_of_doubles, extreme_of_int64s};
use crate::block::{Bitmap, Column, ColumnData};
use crate::value::{Kind, Value};

/// One row in so many may be better than those that are kept; of more, each is looked at.
const ROWS_A_BETTER_ONE_MIN: usize = 32;

/// The row with the greatest key, or the least one; of several, the first one. `None` if no kernel finds it.
pub fn best_row(key: &Column, rows: &Range<usize>, is_max: bool) -> Option<usize> {
    if key.presence().is_some() {
        return None;
    }
    let place = match key.data() {
        ColumnData::F64(cells) => {
            let cells = cells.get(rows.clone())?;
            let best = extreme_of_doubles(cells, is_max)?;
            cells.iter().position(|x| *x == best || x.is_nan() && best.is_nan())?
        }
        ColumnData::I64(cells) | ColumnData::Date(cells) => {
            let cells = cells.get(rows.clone())?;
            let best = extreme_of_int64s(cells, is_max)?;
            cells.iter().position(|n| *n == best)?
        }
        _ => return None,
    };
    Some(rows.start + place)
}

/// The rows whose key is greater than `bound`, or less. `None` if no kernel finds them, or if they are many.
pub fn better_rows(key: &Column, rows: &Range<usize>, is_max: bool, bound: Value<'_>) -> Option<Vec<usize>> {
    let (ColumnData::F64(cells), None) = (key.data(), key.presence()) else { return None };
    let bound = Operand::Same(bound.as_f64().filter(|_| bound.kind() == Kind::Double)?);
    let cells = cells.get(rows.clone())?;
    let [less, greater] = if is_max { [bound, Operand::Cells(cells)] } else { [Operand::Cells(cells), bound] };
    let better = Bitmap::from_words(compare::doubles(Comparison::Less, less, greater), cells.len());
    let is_few = ROWS_A_BETTER_ONE_MIN * better.count() <= cells.len();
    is_few.then(|| better.iter().map(|row| rows.start + row).collect())
}
