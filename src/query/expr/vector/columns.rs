//! Columns of the values of a step.

use std::rc::Rc;

use bytemuck::{cast_slice, cast_slice_mut};
use kernels::{Operand, gather};

use super::cells::{Cells, Int32s, Scratch, Vector};
use super::mask::Mask;
use crate::block::{Column, ColumnBuilder, ColumnData, VarData, of_kind};
use crate::value::Kind;

impl Vector<'_> {
    /// The column of these values; `None` if a row is left out.
    pub fn into_column(self, rows: usize) -> Option<Column> {
        if !self.all_left().is_none() {
            return None;
        }
        let presence = |missing: &Mask| {
            missing.rows().map(|missing| {
                let mut present = missing.clone();
                present.invert();
                present
            })
        };
        if let (Cells::Lists(list), true) = (&self.cells, self.missing.is_none()) {
            return Some(list.arrays(|row| self.null.has(row)));
        }
        if !self.null.is_none() {
            return Some(self.built(rows));
        }
        let data = match self.cells {
            Cells::Constant(Some(ref value)) if self.missing.is_none() => {
                return Some(Column::constant(value.view(), rows));
            }
            Cells::Constant(None) => return Some(absent_column(rows)),
            Cells::Numbers(cells, Int32s::None) => ColumnData::F64(zeroed(cells.into_owned(), &self.missing)),
            // Exact: they were int32s.
            #[allow(clippy::cast_possible_truncation)]
            Cells::Numbers(cells, Int32s::All) => {
                ColumnData::I32(zeroed(cells.iter().map(|x| *x as i32).collect(), &self.missing))
            }
            Cells::Longs(cells) => ColumnData::I64(zeroed(cells.into_owned(), &self.missing)),
            Cells::Dates(cells) => ColumnData::Date(zeroed(cells.into_owned(), &self.missing)),
            Cells::Truths(truths) => {
                let cells = (0..rows).map(|row| u8::from(truths.get(row))).collect();
                ColumnData::Bool(zeroed(cells, &self.missing))
            }
            Cells::Any(column) if column.presence().map_or(Mask::NONE, Mask::outside) == self.missing => {
                return Some(column.into_owned());
            }
            Cells::Indexed(index, entries) => {
                let entries = Rc::unwrap_or_clone(entries);
                let mut absent = self.missing.clone().with(&entries.missing.spread(&index));
                let count = entries.rows().unwrap_or_default();
                let mut values = entries.into_column(count)?;
                let mut index = index.to_vec();
                if let ColumnData::Dictionary(inner, below) = values.data() {
                    absent.add(&values.presence().map_or(Mask::NONE, Mask::outside).spread(&index));
                    index.iter_mut().for_each(|entry| *entry = inner.get(*entry as usize).copied().unwrap_or_default());
                    values = (**below).clone();
                }
                if values.present_count() == 0 {
                    return Some(absent_column(rows));
                }
                let (index, values) = without_holes(&index, values, &mut absent);
                return Some(Column::new(ColumnData::Dictionary(index, Box::new(values)), presence(&absent)));
            }
            _ => return Some(self.built(rows)),
        };
        Some(Column::new(data, presence(&self.missing)))
    }

    /// The type byte and the word of each value, if all are numbers, dates or null.
    fn words(&self) -> Option<(Vec<u8>, Vec<u64>)> {
        let (mut kinds, words) = self.plain_words()?;
        for (mask, kind) in [(&self.null, Kind::Null.byte()), (&self.missing, 0)] {
            for row in mask.iter() {
                kinds.iter_mut().skip(row).take(1).for_each(|slot| *slot = kind);
            }
        }
        Some((kinds, words))
    }

    /// The same where masks mean nothing.
    fn plain_words(&self) -> Option<(Vec<u8>, Vec<u64>)> {
        let (kind, words): (_, Vec<u64>) = match &self.cells {
            Cells::Either(first, a, b) => {
                let ((of_a, a), (mut kinds, mut words)) = (a.plain_words()?, b.plain_words()?);
                for row in first.iter() {
                    if let (Some(kind), Some(of_a)) = (kinds.get_mut(row), of_a.get(row)) {
                        *kind = *of_a;
                    }
                }
                gather::blend_int64s(cast_slice_mut(&mut words), first.words(), Operand::Cells(cast_slice(&a)));
                return Some((kinds, words));
            }
            Cells::Numbers(cells, int32s) => {
                let mut words: Vec<u64> = bytemuck::cast_slice(cells).to_vec();
                for (row, (word, cell)) in words.iter_mut().zip(cells.iter()).enumerate() {
                    if int32s.has(row) {
                        // Exact: it was an int32.
                        #[allow(clippy::cast_possible_truncation)]
                        let n = *cell as i32;
                        *word = u64::from(n.cast_unsigned());
                    }
                }
                (if *int32s == Int32s::All { Kind::Int32 } else { Kind::Double }, words)
            }
            Cells::Longs(cells) => (Kind::Int64, bytemuck::cast_slice(cells).to_vec()),
            Cells::Dates(cells) => (Kind::Date, bytemuck::cast_slice(cells).to_vec()),
            _ => return None,
        };
        let mut kinds = vec![kind.byte(); words.len()];
        if let Cells::Numbers(_, Int32s::Some(rows)) = &self.cells {
            rows.iter().for_each(|row| kinds.iter_mut().skip(row).take(1).for_each(|slot| *slot = Kind::Int32.byte()));
        }
        Some((kinds, words))
    }

    /// The column, in which each value has its type byte if there are several types.
    fn built(&self, rows: usize) -> Column {
        if let Some((kinds, words)) = self.words() {
            let present = self.missing.rows().map(|_| {
                let mut present = of_kind(&kinds, 0);
                present.invert();
                present
            });
            return Column::new(ColumnData::Bson(VarData::of_words(&kinds, &words)), present);
        }
        let mut builder = ColumnBuilder::with_capacity(rows);
        let mut scratch = Scratch::default();
        for row in 0..rows {
            match self.value(row, &mut scratch) {
                Some(value) => builder.push(value),
                None => builder.push_absent(1),
            }
        }
        builder.finish()
    }
}

/// A column without a value.
fn absent_column(rows: usize) -> Column {
    let mut builder = ColumnBuilder::new();
    builder.push_absent(rows);
    builder.finish()
}

/// The cells of absent rows are zeros in columns.
fn zeroed<T: Copy + Default>(mut cells: Vec<T>, missing: &Mask) -> Vec<T> {
    if let Some(rows) = missing.rows() {
        rows.iter().for_each(|row| {
            if let Some(cell) = cells.get_mut(row) {
                *cell = T::default();
            }
        });
    }
    cells
}

/// Entries of a dictionary have no absent cells: the first present one takes their place, and rows of absent ones are
/// absent themselves.
fn without_holes(index: &[u32], values: Column, absent: &mut Mask) -> (Vec<u32>, Column) {
    let Some(present) = values.presence() else {
        return (index.to_vec(), values);
    };
    let kept = present.to_rows();
    let mut places = vec![0_u32; present.len()];
    for (place, entry) in (0..).zip(&kept) {
        if let Some(slot) = places.get_mut(*entry as usize) {
            *slot = place;
        }
    }
    absent.add(&Mask::outside(present).spread(index));
    let index = index.iter().map(|entry| places.get(*entry as usize).copied().unwrap_or_default()).collect();
    (index, values.gather(&kept))
}
