//! `$push` and `$addToSet`; and for the elements of arrays, `$concatArrays` and `$setUnion`.

use std::ops::Range;

use super::model::{Accumulator, Inputs, Times, each_cell, list_is_full};
use super::picks::Picks;
use crate::block::{Column, ColumnData};
use crate::error::{Error, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::query::exec::{Coder, MissingAs, NOTHING, Pairs};
use crate::query::expr::ArrayWriter;
use crate::value::{Collation, Kind, Value};

/// Lists of values per group; missing values are left out.
pub(super) struct Lists {
    /// True if a list holds each value only once.
    is_set: bool,
    /// True if the list holds the elements of the values, which must be arrays.
    of_elements: bool,
    collation: Collation,
    /// The array of each group.
    groups: Vec<ArrayWriter>,
    /// The values of all sets, numbered.
    coder: Coder,
    /// Groups with the numbers of their values.
    known: Pairs,
    size_bytes: usize,
}

impl Lists {
    pub fn new(is_set: bool, of_elements: bool, collation: &Collation) -> Lists {
        let (collation, groups, known) = (collation.clone(), Vec::new(), Pairs::default());
        let coder = Coder::new(collation.clone(), MissingAs::Nothing);
        Lists { is_set, of_elements, collation, groups, coder, known, size_bytes: 0 }
    }

    fn push(&mut self, group: usize, value: Value<'_>) -> Result<()> {
        if let Some(list) = self.groups.get_mut(group) {
            list.push(Some(value));
        }
        self.grown(value.bytes().len() + 32)
    }

    fn grown(&mut self, bytes: usize) -> Result<()> {
        self.size_bytes += bytes;
        if self.size_bytes > STAGE_SIZE_BYTES_MAX { Err(list_is_full()) } else { Ok(()) }
    }

    /// True if the set of a group lacks the value with this number, which it has from now on.
    fn is_new(&mut self, group: usize, number: u32) -> bool {
        let known = self.known.len();
        self.known.number(u32::try_from(group).unwrap_or(u32::MAX), number);
        let is_new = self.known.len() > known;
        if is_new {
            self.note_new(number);
        }
        is_new
    }

    /// Counts the bytes that a set needs to know a value.
    fn note_new(&mut self, number: u32) {
        self.size_bytes += size_of::<usize>() + self.coder.key_lens(&[number]);
    }

    /// Appends cells to the list of a group: those of one type at once.
    ///
    /// Errors: as `push`.
    fn push_cells(&mut self, group: usize, cells: &Column, rows: Range<usize>) -> Result<()> {
        let (kind, bytes, len): (_, &[u8], _) = match (cells.data(), cells.presence()) {
            (ColumnData::F64(cells), None) => (Kind::Double, bytemuck::cast_slice(cells), 8),
            (ColumnData::I64(cells), None) => (Kind::Int64, bytemuck::cast_slice(cells), 8),
            (ColumnData::Date(cells), None) => (Kind::Date, bytemuck::cast_slice(cells), 8),
            (ColumnData::I32(cells), None) => (Kind::Int32, bytemuck::cast_slice(cells), 4),
            _ => return each_cell(cells, rows, &mut |_, value| self.push(group, value)),
        };
        if let Some(list) = self.groups.get_mut(group) {
            list.extend(kind, bytes.get(rows.start * len..rows.end * len).unwrap_or_default(), len);
        }
        self.grown(rows.len() * (len + 32))
    }

    fn add_elements(&mut self, group: usize, value: Value<'_>) -> Result<()> {
        let message = "$concatArrays and $setUnion need arrays";
        let elements = value.as_array().ok_or_else(|| Error::type_mismatch(message))?;
        for (_, element) in elements {
            let number = if self.is_set { self.coder.number(element) } else { NOTHING };
            if !self.is_set || self.is_new(group, number) {
                self.push(group, element)?;
            }
        }
        Ok(())
    }

    fn add_rows(&mut self, group_of: &dyn Fn(usize) -> usize, cells: &Column, rows: Range<usize>) -> Result<()> {
        if self.of_elements {
            return each_cell(cells, rows, &mut |row, value| self.add_elements(group_of(row), value));
        }
        if !self.is_set {
            return each_cell(cells, rows, &mut |row, value| self.push(group_of(row), value));
        }
        let numbers = self.coder.numbers(cells, rows.clone()).into_each(rows.len());
        let (mut pairs, mut values, mut places) = (Vec::new(), Vec::new(), Vec::new());
        for (row, number) in rows.zip(numbers).filter(|(_, number)| *number != NOTHING) {
            pairs.push(u32::try_from(group_of(row)).unwrap_or(u32::MAX));
            values.push(number);
            places.push(row);
        }
        let first = self.known.len();
        self.known.number_all(&mut pairs, &values);
        // New pairs have the next numbers, in the order of their rows.
        let mut next = first;
        let new = pairs.into_iter().zip(places).filter(|(pair, _)| {
            let is_new = *pair as usize == next;
            next += usize::from(is_new);
            is_new
        });
        let rows: Vec<u32> = new.map(|(_, row)| row as u32).collect();
        let new: Vec<(u32, u32)> = (first..next).filter_map(|pair| self.known.pair(pair)).collect();
        let numbers: Vec<u32> = new.iter().map(|(_, number)| *number).collect();
        self.size_bytes += numbers.len() * size_of::<usize>() + self.coder.key_lens(&numbers);
        let cells = cells.gather(&rows);
        let mut start = 0;
        for run in new.chunk_by(|a, b| a.0 == b.0) {
            let group = run.first().map_or(usize::MAX, |(group, _)| *group as usize);
            self.push_cells(group, &cells, start..start + run.len())?;
            start += run.len();
        }
        Ok(())
    }
}

impl Accumulator for Lists {
    fn grow(&mut self, _: usize) {
        self.groups.push(ArrayWriter::new());
    }

    fn add(&mut self, group: usize, inputs: &Inputs<'_>, rows: Range<usize>, _: Option<&Times<'_>>) -> Result<()> {
        if self.is_set || self.of_elements {
            return self.add_rows(&|_| group, &inputs.cells, rows);
        }
        self.push_cells(group, &inputs.cells, rows)
    }

    fn add_each(
        &mut self,
        groups: &[u32],
        inputs: &Inputs<'_>,
        rows: Range<usize>,
        _: Option<&Times<'_>>,
    ) -> Result<()> {
        let start = rows.start;
        let group_of = |row: usize| groups.get(row - start).map_or(usize::MAX, |group| *group as usize);
        self.add_rows(&group_of, &inputs.cells, rows)
    }

    fn picks(&self, inputs: &Inputs<'_>) -> Option<Picks> {
        let rows = inputs.cells.len();
        match (self.of_elements, self.is_set) {
            (true, _) => None,
            (_, false) => Some(Picks::Present),
            (_, true) => {
                let mut coder = Coder::new(self.collation.clone(), MissingAs::Nothing);
                Some(Picks::Distinct(coder.numbers(&inputs.cells, 0..rows).into_each(rows)))
            }
        }
    }

    fn show(&self, group: usize, see: &mut dyn FnMut(Value<'_>)) {
        let list = self.groups.get(group).cloned().unwrap_or_else(ArrayWriter::new);
        list.finish().view().into_iter().for_each(see);
    }

    fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}
