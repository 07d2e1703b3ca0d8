//! Joins rows of many blocks.

use std::ops::Range;

use super::builder::ColumnBuilder;
use super::column::{Column, ColumnData};
use super::table::Block;
use crate::listed::IntoList;

impl Block {
    /// All rows of `blocks`, one after another. Columns stand as with `add_names`; if a block lacks a column, its rows lack that
    /// field.
    pub fn concat(blocks: Vec<Block>) -> Block {
        let mut blocks = blocks;
        if blocks.len() == 1 {
            return blocks.pop().unwrap_or_default();
        }
        let refs: Vec<(&Block, Range<usize>)> = blocks.iter().map(|b| (b, 0..b.rows())).listed();
        Block::concat_slices(&refs)
    }

    /// The given rows of the given blocks, one after another, as in `concat`.
    pub fn concat_slices(parts: &[(&Block, Range<usize>)]) -> Block {
        let mut names = Vec::new();
        for (block, _) in parts {
            block.add_names(&mut names);
        }
        let column = |(at, name): (usize, Box<str>)| {
            let column = joined(parts, (at, &name));
            (name, column)
        };
        let mut joined = Block::of(len_of(parts), names.into_iter().enumerate().map(column).collect());
        joined.set_weights(joined_weights(parts));
        joined
    }
}

/// The cells of the given rows in the column called `column.1`, which is probably at position `column.0`.
fn joined(parts: &[(&Block, Range<usize>)], column: (usize, &str)) -> Column {
    use ColumnData as D;
    let first = parts.first().and_then(|(block, _)| block.column_at(column)).map(Column::data);
    let data = match first {
        Some(D::F64(_)) => cells(parts, column, |data| if let D::F64(v) = data { Some(v) } else { None }).map(D::F64),
        Some(D::I32(_)) => cells(parts, column, |data| if let D::I32(v) = data { Some(v) } else { None }).map(D::I32),
        Some(D::I64(_)) => cells(parts, column, |data| if let D::I64(v) = data { Some(v) } else { None }).map(D::I64),
        Some(D::Date(_)) => {
            cells(parts, column, |data| if let D::Date(v) = data { Some(v) } else { None }).map(D::Date)
        }
        _ => None,
    };
    if let Some(data) = data {
        return Column::new(data, None);
    }
    let mut builder = ColumnBuilder::with_capacity(len_of(parts));
    for (block, range) in parts {
        match block.column_at(column) {
            Some(source) => builder.extend(source, range.clone()),
            None => builder.push_absent(range.len()),
        }
    }
    builder.finish()
}

/// The weights of the given rows, one after another; `None` if no part has any.
pub fn joined_weights(parts: &[(&Block, Range<usize>)]) -> Option<Vec<u32>> {
    if parts.iter().all(|(block, _)| block.weights().is_none()) {
        return None;
    }
    let mut joined = Vec::with_capacity(len_of(parts));
    for (block, range) in parts {
        match block.weights().and_then(|weights| weights.get(range.clone())) {
            Some(weights) => joined.extend_from_slice(weights),
            // Other rows stand for themselves.
            None => joined.extend(std::iter::repeat_n(1, range.len())),
        }
    }
    Some(joined)
}

fn len_of(parts: &[(&Block, Range<usize>)]) -> usize {
    parts.iter().map(|(_, range)| range.len()).sum()
}

/// The joined cells, if every part has a column of one type without holes.
fn cells<T: Copy>(
    parts: &[(&Block, Range<usize>)],
    column: (usize, &str),
    of_type: fn(&ColumnData) -> Option<&Vec<T>>,
) -> Option<Vec<T>> {
    let mut joined = Vec::with_capacity(len_of(parts));
    for (block, range) in parts {
        let source = block.column_at(column).filter(|source| source.presence().is_none())?;
        match of_type(source.data())?.get(range.clone())? {
            // A commit with one row for each of many series makes sections this short.
            [cell] => joined.push(*cell),
            cells => joined.extend_from_slice(cells),
        }
    }
    Some(joined)
}
