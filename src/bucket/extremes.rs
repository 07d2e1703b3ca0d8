//! The smallest and the largest cell of a typed column.

use super::rows::Rows;
use crate::block::{Column, ColumnData};
use crate::listed::IntoList;
use crate::value::Collation;

/// The rows of the smallest and the largest present cell; the first of equal ones.
pub(super) struct Extremes<'a> {
    /// The column itself, or the values of its dictionary.
    pub(super) column: &'a Column,
    pub(super) min: usize,
    pub(super) max: usize,
}

/// The extremes of `rows`; `None` if no cell is present, and for BSON columns, which need a full comparison.
pub(super) fn extremes<'a>(column: &'a Column, rows: Rows<'_>, collation: &Collation) -> Option<Extremes<'a>> {
    let found = match column.data() {
        ColumnData::F64(v) => of_cells(column, v, rows, below),
        ColumnData::I32(v) => of_cells(column, v, rows, |a, b| a < b),
        ColumnData::I64(v) | ColumnData::Date(v) => of_cells(column, v, rows, |a, b| a < b),
        // One loop for the types that are less common.
        ColumnData::Bool(v) => of_rows(column, rows, &|a, b| v.get(a) < v.get(b)),
        ColumnData::ObjectId(v) => of_rows(column, rows, &|a, b| v.get(a) < v.get(b)),
        ColumnData::String(v) => of_rows(column, rows, &|a, b| collation.compare_texts(v.get(a), v.get(b)).is_lt()),
        ColumnData::Bson(_) | ColumnData::Objects(_) => None,
        ColumnData::Dictionary(codes, values) => {
            return extremes(values, Rows::List(&used(column, codes, values, rows)), collation);
        }
    };
    found.map(|(min, max)| Extremes { column, min, max })
}

/// Order of doubles with NaN below all others; -0 equals 0.
#[inline]
fn below(a: &f64, b: &f64) -> bool {
    a < b || a.is_nan() && !b.is_nan()
}

fn of_cells<T>(column: &Column, cells: &[T], rows: Rows<'_>, less: impl Fn(&T, &T) -> bool) -> Option<(usize, usize)> {
    match (column.presence(), rows) {
        (None, Rows::Span { start, len }) => {
            let span = cells.get(start..start + len)?;
            scan(span.iter().enumerate().map(|(at, cell)| (start + at, cell)), less)
        }
        _ => {
            let present = rows.iter().filter(|row| column.is_present(*row));
            scan(present.filter_map(|row| Some((row, cells.get(row)?))), less)
        }
    }
}

fn of_rows(column: &Column, rows: Rows<'_>, less: &dyn Fn(usize, usize) -> bool) -> Option<(usize, usize)> {
    scan(rows.iter().filter(|row| column.is_present(*row)).map(|row| (row, row)), less)
}

#[inline]
fn scan<T: Copy>(mut cells: impl Iterator<Item = (usize, T)>, less: impl Fn(T, T) -> bool) -> Option<(usize, usize)> {
    let first = cells.next()?;
    let (mut min, mut max) = (first, first);
    for cell in cells {
        if less(cell.1, min.1) {
            min = cell;
        }
        if less(max.1, cell.1) {
            max = cell;
        }
    }
    Some((min.0, max.0))
}

/// The dictionary entries that rows refer to, in order of first use.
fn used(column: &Column, codes: &[u32], values: &Column, rows: Rows<'_>) -> Vec<u32> {
    let present = rows.iter().filter(|row| column.is_present(*row)).filter_map(|row| codes.get(row).copied());
    if values.len() > rows.len() {
        return present.collect();
    }
    let mut seen = vec![false; values.len()];
    present.filter(|code| seen.get_mut(*code as usize).is_some_and(|s| !std::mem::replace(s, true))).listed()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Bitmap;

    fn found(column: &Column, rows: Rows<'_>) -> Option<(usize, usize)> {
        extremes(column, rows, &Collation::default()).map(|e| (e.min, e.max))
    }

    #[test]
    fn nan_is_the_minimum_and_of_equal_cells_the_first_stays() {
        let column = Column::new(ColumnData::F64(vec![0.0, -0.0, 5.0, f64::NAN, -1.0, f64::NAN, 5.0]), None);
        assert_eq!(found(&column, Rows::from(0..7)), Some((3, 2)));
        assert_eq!(found(&column, Rows::from(0..2)), Some((0, 0)));
        assert_eq!(found(&column, Rows::from(&[6, 1, 0][..])), Some((1, 6)));
        assert_eq!(found(&column, Rows::from(5..6)), Some((5, 5)));
        assert_eq!(found(&column, Rows::from(0..0)), None);
    }

    #[test]
    fn absent_cells_are_not_zeros() {
        let column = Column::new(ColumnData::I32(vec![0, 3, 0, 7]), Bitmap::from_bytes(&[0b1010], 4));
        assert_eq!(found(&column, Rows::from(0..4)), Some((1, 3)));
        assert_eq!(found(&column, Rows::from(2..3)), None);
    }

    #[test]
    fn unused_dictionary_entries_do_not_count() {
        let values = Column::new(ColumnData::I64(vec![-9, 4, 2, 9]), None);
        let column = Column::new(ColumnData::Dictionary(vec![1, 2, 1, 3, 1, 2], Box::new(values)), None);
        assert_eq!(found(&column, Rows::from(0..3)), Some((2, 1)));
        assert_eq!(found(&column, Rows::from(0..6)), Some((2, 3)));
    }
}
