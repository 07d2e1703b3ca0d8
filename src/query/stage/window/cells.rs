//! Typed cells: what window functions take in and give out as vectors.

use std::borrow::Cow;
use std::ops::Range;

use crate::block::{Block, Column, ColumnBuilder, ColumnData, VarData};
use crate::error::Result;
use crate::listed::IntoList;
use crate::query::expr::{BoundExpr, Expr};
use crate::value::{Kind, Value, sort_by};

/// Among row numbers: no row.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Rows `range` of a block. It takes time for these rows alone, even if a dictionary has more entries.
pub(super) fn part_of(rows: &Block, range: Range<usize>) -> Block {
    let mut part = Block::new(range.len());
    for (name, column) in rows.columns() {
        part.push_new_column(name, cells_of(column, range.clone()));
    }
    part.set_weights(rows.weights().and_then(|weights| weights.get(range)).map(<[u32]>::to_vec));
    part
}

/// Rows `range` of a column, likewise.
pub(super) fn cells_of(column: &Column, range: Range<usize>) -> Column {
    let ColumnData::Dictionary(index, values) = column.data() else { return column.slice(range) };
    if values.len() <= range.len() {
        return column.slice(range);
    }
    let index = index.get(range.clone()).unwrap_or_default();
    let mut used = index.to_vec();
    sort_by(&mut used, Ord::cmp);
    used.dedup();
    let place = |entry: &u32| u32::try_from(used.partition_point(|known| known < entry)).unwrap_or(NOWHERE);
    let data = ColumnData::Dictionary(index.iter().map(place).collect(), Box::new(values.gather(&used)));
    Column::new(data, column.presence().map(|present| present.slice(range)))
}

/// The values of an expression for the rows of all blocks.
///
/// Errors: those of operators.
pub(super) fn joined(blocks: &[Block], expr: &BoundExpr) -> Result<Column> {
    if let [only] = blocks {
        return expr.column(only);
    }
    let rows = blocks.iter().map(Block::rows).sum();
    if let Expr::Constant(Some(value)) = expr.expr() {
        return Ok(Column::constant(value.view(), rows));
    }
    let mut builder = ColumnBuilder::with_capacity(rows);
    for block in blocks {
        builder.extend(&expr.column(block)?, 0..block.rows());
    }
    Ok(builder.finish())
}

/// The same as `typed`, if it is, and the column itself otherwise.
pub(super) fn typed_if_possible(column: Column) -> Column {
    let made = match typed(&column) {
        Some(Cow::Owned(made)) => Some(made),
        _ => None,
    };
    made.unwrap_or(column)
}

/// The column as doubles, integers or dates of one type. Null counts as absent: window functions that compute make no
/// difference. `None` if there are other values.
pub(super) fn typed(column: &Column) -> Option<Cow<'_, Column>> {
    match column.data() {
        ColumnData::F64(_) | ColumnData::I32(_) | ColumnData::I64(_) | ColumnData::Date(_) => {
            Some(Cow::Borrowed(column))
        }
        ColumnData::Dictionary(_, values) if is_typed(values.data()) => Some(Cow::Owned(column.clone().into_plain())),
        ColumnData::Bson(_) => column.untagged().map(|(typed, _)| Cow::Owned(typed)),
        _ => None,
    }
}

fn is_typed(cells: &ColumnData) -> bool {
    matches!(cells, ColumnData::F64(_) | ColumnData::I32(_) | ColumnData::I64(_) | ColumnData::Date(_))
}

/// The numbers of a typed column as doubles; `None` for dates.
#[allow(clippy::cast_precision_loss)]
pub(super) fn doubles(column: &Column) -> Option<Cow<'_, [f64]>> {
    match column.data() {
        ColumnData::F64(cells) => Some(Cow::Borrowed(cells)),
        ColumnData::I32(cells) => Some(cells.iter().map(|cell| f64::from(*cell)).collect()),
        ColumnData::I64(cells) => Some(cells.iter().map(|cell| *cell as f64).collect()),
        _ => None,
    }
}

/// Numbers or dates whose distances count.
pub(super) enum Axis<'a> {
    Integers(Cow<'a, [i64]>),
    WindowDoubles(&'a [f64]),
}

impl Axis<'_> {
    /// The places of a typed column.
    pub fn of(column: &Column) -> Option<Axis<'_>> {
        Some(match column.data() {
            ColumnData::F64(cells) => Axis::WindowDoubles(cells),
            ColumnData::I32(cells) => Axis::Integers(cells.iter().map(|cell| i64::from(*cell)).collect()),
            ColumnData::I64(cells) | ColumnData::Date(cells) => Axis::Integers(Cow::Borrowed(cells)),
            _ => return None,
        })
    }

    /// True if no two neighbours are equal; NaN equals itself.
    pub fn is_distinct(&self) -> bool {
        match self {
            Axis::Integers(cells) => cells.windows(2).all(|pair| pair.first() != pair.last()),
            Axis::WindowDoubles(cells) => {
                let is_nan = |cell: Option<&f64>| cell.is_some_and(|cell| cell.is_nan());
                let same = |pair: &[f64]| pair.first() == pair.last() || is_nan(pair.first()) && is_nan(pair.last());
                !cells.windows(2).any(same)
            }
        }
    }

    /// The distance from one row to another. It is exact for integers, as far as a double can hold it.
    #[inline]
    #[allow(clippy::cast_precision_loss)]
    pub fn distance(&self, from: usize, to: usize) -> f64 {
        match self {
            Axis::Integers(cells) => {
                let (from, to) = (cell(cells, from), cell(cells, to));
                to.checked_sub(from).map_or(to as f64 - from as f64, |distance| distance as f64)
            }
            Axis::WindowDoubles(cells) => cell(cells, to) - cell(cells, from),
        }
    }
}

/// A cell that exists.
#[inline(always)]
pub(super) fn cell<T: Copy + Default>(cells: &[T], row: usize) -> T {
    cells.get(row).copied().unwrap_or_default()
}

/// The cells of these rows of a column: `default` for `NOWHERE`, null where a cell is absent.
pub(super) fn picked(column: &Column, rows: &[u32], default: Value<'_>) -> Column {
    let is_there = |row: u32| row != NOWHERE && column.is_present(row as usize);
    if rows.iter().all(|row| is_there(*row)) {
        return column.gather(rows);
    }
    if default.kind() == Kind::Null && is_typed(column.data()) {
        let others: Vec<_> =
            (0..).zip(rows).filter(|(_, row)| !is_there(**row)).map(|(at, _)| (at, Value::NULL)).listed();
        // The cell of a row that does not exist is zero.
        return except(column.gather(rows).data().clone(), &others);
    }
    let mut builder = ColumnBuilder::with_capacity(rows.len());
    let mut scratch = Vec::new();
    for row in rows {
        match *row {
            NOWHERE => builder.push(default),
            row => builder.push(column.value(row as usize, &mut scratch).unwrap_or(Value::NULL)),
        }
    }
    builder.finish()
}

/// A column of doubles, integers or dates, in which null or an int32 of zero stands in some rows.
pub(super) fn except(cells: ColumnData, others: &[(usize, Value<'_>)]) -> Column {
    if others.is_empty() {
        return Column::new(cells, None);
    }
    let (kind, mut words): (Kind, Vec<u64>) = match cells {
        ColumnData::F64(cells) => (Kind::Double, bytemuck::cast_slice(&cells).to_vec()),
        ColumnData::I64(cells) => (Kind::Int64, bytemuck::cast_slice(&cells).to_vec()),
        ColumnData::Date(cells) => (Kind::Date, bytemuck::cast_slice(&cells).to_vec()),
        ColumnData::I32(cells) => (Kind::Int32, cells.iter().map(|cell| u64::from(cell.cast_unsigned())).collect()),
        cells => return Column::new(cells, None),
    };
    let mut kinds = vec![kind.byte(); words.len()];
    for (row, other) in others {
        if let (Some(kind), Some(word)) = (kinds.get_mut(*row), words.get_mut(*row)) {
            (*kind, *word) = (other.kind().byte(), 0);
        }
    }
    Column::new(ColumnData::Bson(VarData::of_words(&kinds, &words)), None)
}
