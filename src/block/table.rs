//! A block: named columns of equal length.

use std::ops::Range;

use super::builder::ColumnBuilder;
use super::column::{Column, ColumnData};
use crate::listed::IntoList;
use crate::value::{DocWriter, FieldSet, hash};

/// So many rows are worth the fixed cost of a stage.
const ROWS_ALONE: usize = 512;

/// With more columns than this, rows take long to join with others.
const COLUMNS_ALONE: usize = 16;

/// Named columns of equal length, in the order in which a rebuilt document shows them. Names are unique.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Block {
    rows: usize,
    columns: Vec<(Box<str>, Column)>,
    /// The number of measurements that each row stands for; `None` if it is one each.
    weights: Option<Vec<u32>>,
}

impl Block {
    /// A block of these columns, of `rows` rows each, whose names are unique.
    pub(super) fn of(rows: usize, columns: Vec<(Box<str>, Column)>) -> Block {
        Block { rows, columns, weights: None }
    }

    /// A block of `rows` rows without columns, that is, `rows` empty documents.
    pub fn new(rows: usize) -> Block {
        Block { rows, columns: Vec::new(), weights: None }
    }

    /// The number of measurements that each row stands for, one number per row; `None` if it is one each.
    pub fn weights(&self) -> Option<&[u32]> {
        self.weights.as_deref()
    }

    /// Sets the number of measurements that each row stands for, one number per row; `None` if it is one each.
    pub fn set_weights(&mut self, weights: Option<Vec<u32>>) {
        debug_assert!(weights.as_ref().is_none_or(|weights| weights.len() == self.rows));
        self.weights = weights;
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Names and columns, in order.
    pub fn columns(&self) -> &[(Box<str>, Column)] {
        &self.columns
    }

    /// True if these rows are worth the fixed cost of a stage, and take long to join with others: a dictionary, such as that of
    /// metadata, takes as long as it has entries, objects take as long as they have scalars, and perhaps another form.
    pub fn stands_alone(&self) -> bool {
        let takes_long = |column: &Column| column.has_many_entries() || matches!(column.data(), ColumnData::Objects(_));
        let is_wide = self.columns.len() > COLUMNS_ALONE;
        self.rows() >= ROWS_ALONE && (is_wide || self.columns.iter().any(|(_, column)| takes_long(column)))
    }

    /// True if the columns of `other` have the same names in the same order.
    pub fn has_fields_of(&self, other: &Block) -> bool {
        self.columns.iter().map(|(name, _)| name).eq(other.columns.iter().map(|(name, _)| name))
    }

    /// Adds the names of the columns to those of other blocks, each new one behind the name that precedes it here. False if
    /// the block has some of them in another order; the names of both are complete even then.
    pub fn add_names(&self, names: &mut Vec<Box<str>>) -> bool {
        let (mut next, mut agrees) = (0, true);
        for (name, _) in &self.columns {
            // Blocks of one series have the same columns in the same order: look there first.
            let found = match names.get(next) {
                Some(known) if known == name => Some(next),
                _ => names.iter().position(|known| known == name),
            };
            agrees &= found.is_none_or(|found| found >= next);
            next = found.unwrap_or_else(|| {
                names.insert(next, name.clone());
                next
            }) + 1;
        }
        agrees
    }

    /// A hash of the names and types of the columns; `None` if a column has cells of several types, or absent ones.
    pub fn types(&self) -> Option<u64> {
        self.columns.iter().try_fold(0, |types, (name, column)| {
            let kind = column.kind().filter(|_| column.presence().is_none())?;
            Some(hash(hash(types, &[kind.byte()]), name.as_bytes()).wrapping_add(name.len() as u64))
        })
    }

    /// The column called `name`.
    pub fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|(n, _)| &**n == name).map(|(_, column)| column)
    }

    /// Appends a column, or replaces the one of that name in its place. Its length must be that of the block.
    pub fn set_column(&mut self, name: &str, column: Column) {
        debug_assert_eq!(column.len(), self.rows);
        match self.columns.iter_mut().find(|(n, _)| &**n == name) {
            Some(slot) => slot.1 = column,
            None => self.columns.push((name.into(), column)),
        }
    }

    /// Appends a column whose name is known to be new.
    pub(crate) fn push_new_column(&mut self, name: &str, column: Column) {
        debug_assert_eq!(column.len(), self.rows);
        self.columns.push((name.into(), column));
    }

    /// Puts the time column first, if there is one, and the metadata behind it, replacing a column of that name.
    pub fn begin_with(&mut self, time_field: &str, meta: Option<(&str, Column)>) {
        let time = self.columns.iter().position(|(name, _)| &**name == time_field);
        if let Some(place) = time {
            self.columns.get_mut(..=place).unwrap_or_default().rotate_right(1);
        }
        if let Some((name, column)) = meta {
            debug_assert_eq!(column.len(), self.rows);
            self.columns.retain(|(n, _)| &**n != name);
            self.columns.insert(usize::from(time.is_some()), (name.into(), column));
        }
    }

    /// Puts a column in front of the others, replacing one of that name.
    pub fn set_first_column(&mut self, name: &str, column: Column) {
        debug_assert_eq!(column.len(), self.rows);
        self.columns.retain(|(n, _)| &**n != name);
        self.columns.insert(0, (name.into(), column));
    }

    /// Removes a column.
    pub fn remove_column(&mut self, name: &str) -> Option<Column> {
        let at = self.columns.iter().position(|(n, _)| &**n == name)?;
        Some(self.columns.remove(at).1)
    }

    /// Keeps the columns that `keep` names, in their order.
    pub fn retain_columns(&mut self, mut keep: impl FnMut(&str) -> bool) {
        self.columns.retain(|(name, _)| keep(name));
    }

    /// Applies `f` to every column; `f` must keep the length.
    pub fn map_columns(self, mut f: impl FnMut(Column) -> Column) -> Block {
        let columns = self.columns.into_iter().map(|(name, column)| (name, f(column))).listed();
        Block { columns, ..self }
    }

    /// Rows `range`, which must lie inside.
    pub fn slice(&self, range: Range<usize>) -> Block {
        let columns = self.columns.iter().map(|(name, c)| (name.clone(), c.slice(range.clone()))).collect();
        let weights = self.weights_of(range.clone());
        Block { rows: range.len(), columns, weights }
    }

    /// Rows `range` of the columns that `keep` names.
    pub fn slice_columns(&self, range: Range<usize>, mut keep: impl FnMut(&str) -> bool) -> Block {
        let kept = self.columns.iter().filter(|(name, _)| keep(name));
        let columns = kept.map(|(name, c)| (name.clone(), c.slice(range.clone()))).collect();
        let weights = self.weights_of(range.clone());
        Block { rows: range.len(), columns, weights }
    }

    fn weights_of(&self, range: Range<usize>) -> Option<Vec<u32>> {
        self.weights.as_ref().and_then(|weights| weights.get(range)).map(<[u32]>::to_vec)
    }

    /// The rows `rows`, in that order.
    pub fn gather(&self, rows: &[u32]) -> Block {
        let columns = self.columns.iter().map(|(name, c)| (name.clone(), c.gather(rows))).collect();
        let weight = |weights: &Vec<u32>| rows.iter().filter_map(|row| weights.get(*row as usize).copied()).listed();
        Block { rows: rows.len(), columns, weights: self.weights.as_ref().map(weight) }
    }

    /// Appends rows of a block with the same simple columns. Does nothing and answers false if the columns differ or
    /// are not simple.
    fn append_alike(&mut self, block: &Block, range: &Range<usize>) -> bool {
        let pairs = || self.columns.iter().zip(&block.columns);
        let is_alike = self.columns.len() == block.columns.len() && pairs().all(|((a, _), (b, _))| a == b);
        // The empty range comes first as a trial run: if any column cannot be appended to, none has changed.
        for rows in [0..0, range.clone()] {
            let mut columns = self.columns.iter_mut().zip(&block.columns);
            if !is_alike || !columns.all(|((_, to), (_, from))| to.append(from, rows.clone())) {
                return false;
            }
        }
        self.rows += range.len();
        true
    }

    /// Appends the given rows of the given blocks to this block, as in `concat`. Existing columns grow in place. Every
    /// row gets the weight 1.
    pub fn append_slices(&mut self, mut parts: &[(&Block, Range<usize>)]) {
        debug_assert!(self.weights.is_none() && parts.iter().all(|(block, _)| block.weights.is_none()));
        while let Some(((block, range), rest)) = parts.split_first()
            && self.append_alike(block, range)
        {
            parts = rest;
        }
        if parts.is_empty() {
            return;
        }
        let resume = |(name, column)| (name, ColumnBuilder::resume(column));
        let mut columns: Vec<(Box<str>, ColumnBuilder)> =
            std::mem::take(&mut self.columns).into_iter().map(resume).listed();
        for (block, range) in parts {
            let mut next = 0;
            for (name, column) in &block.columns {
                let known = columns.get(next).is_some_and(|(n, _)| n == name);
                let place = if known { Some(next) } else { columns.iter().position(|(n, _)| n == name) };
                let place = place.unwrap_or_else(|| {
                    columns.insert(next, (name.clone(), ColumnBuilder::with_capacity(self.rows + range.len())));
                    next
                });
                if let Some((_, builder)) = columns.get_mut(place) {
                    builder.push_absent(self.rows - builder.len());
                    builder.extend(column, range.clone());
                }
                next = place + 1;
            }
            self.rows += range.len();
        }
        let finish = |(name, mut builder): (Box<str>, ColumnBuilder)| {
            builder.push_absent(self.rows - builder.len());
            (name, builder.finish())
        };
        self.columns = columns.into_iter().map(finish).listed();
    }

    /// The column of this name, which is probably at this position.
    pub(super) fn column_at(&self, (at, name): (usize, &str)) -> Option<&Column> {
        match self.columns.get(at) {
            Some((n, column)) if &**n == name => Some(column),
            _ => self.column(name),
        }
    }

    /// Writes the fields of one row into a document.
    pub fn write_row(&self, row: usize, writer: &mut DocWriter) {
        self.write_fields(row, &FieldSet::All, writer);
    }

    /// Writes some fields of one row into a document.
    pub fn write_fields(&self, row: usize, wanted: &FieldSet, writer: &mut DocWriter) {
        let mut scratch = Vec::new();
        for (name, column) in self.columns.iter().filter(|(name, _)| wanted.contains(name)) {
            if let Some(value) = column.value(row, &mut scratch) {
                writer.value(name, value);
            }
        }
    }

    /// Approximate bytes that the columns take in memory.
    pub fn size_bytes(&self) -> usize {
        self.columns.iter().map(|(name, column)| name.len() + 32 + column.size_bytes()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{Objects, ShapePart};

    fn numbers(numbers: Range<i32>) -> Column {
        Column::new(ColumnData::I32(numbers.collect()), None)
    }

    fn block(names: &[&str]) -> Block {
        let mut block = Block::new(2);
        names.iter().zip(0..).for_each(|(name, at)| block.set_column(name, numbers(at..at + 2)));
        block
    }

    fn names(block: &Block) -> Vec<&str> {
        block.columns().iter().map(|(name, _)| &**name).collect()
    }

    #[test]
    fn a_row_begins_with_its_time_and_its_metadata() {
        let begun = |names: &[&str], meta: Option<&str>| {
            let mut block = block(names);
            block.begin_with("t", meta.map(|name| (name, numbers(7..9))));
            block
        };
        assert_eq!(names(&begun(&["t", "a"], Some("m"))), ["t", "m", "a"]);
        assert_eq!(names(&begun(&["a", "b", "t", "c"], Some("m"))), ["t", "m", "a", "b", "c"]);
        assert_eq!(names(&begun(&["a", "t"], None)), ["t", "a"]);
        assert_eq!(names(&begun(&["a"], Some("m"))), ["m", "a"]);
        let replaced = begun(&["m", "a", "t"], Some("m"));
        assert_eq!((names(&replaced), replaced.column("m")), (vec!["t", "m", "a"], Some(&numbers(7..9))));
    }

    #[test]
    fn rows_that_are_appended_to_a_block_do_not_appear_in_copies_of_its_columns() {
        let mut grown = block(&["a", "b"]);
        let (copy, column) = (grown.clone(), grown.column("a").cloned());
        grown.append_slices(&[(&block(&["a", "b"]), 0..2), (&block(&["b"]), 1..2)]);
        assert_eq!((grown.rows(), copy, column), (5, block(&["a", "b"]), Some(numbers(0..2))));
    }

    #[test]
    fn many_rows_stand_alone_if_they_have_objects_or_many_columns() {
        let objects = |rows: i32| {
            let parts = [ShapePart::Scalar("a".into())];
            Column::of_objects(Objects::new(parts.into(), vec![numbers(0..rows)]))
        };
        for rows in [511, 512] {
            let mut block = Block::new(rows as usize);
            block.set_column("n", numbers(0..rows));
            assert!(!block.stands_alone());
            let mut wide = block.clone();
            (0..16).for_each(|at| wide.set_column(&at.to_string(), numbers(0..rows)));
            block.set_column("o", objects(rows));
            assert_eq!([block.stands_alone(), wide.stands_alone()], [rows == 512; 2]);
        }
    }
}
