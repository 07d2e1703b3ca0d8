//! Which rows of a block are alike. What is computed row by row is then computed once for all rows with the same arguments.

use std::rc::Rc;

use kernels::alike::{self, TooMany};

use super::cells::{Cells, Int32s, Scratch, Vector};
use super::mask::Mask;
use crate::block::ColumnData;
use crate::listed::IntoList;
use crate::value::{Interner, Value, WordTable};

/// If more than one of so many rows differs from all before it, comparing them costs more than it saves.
pub const ROWS_A_VALUE_MIN: usize = 4;

/// Arguments of more bytes than this are not compared: of long ones, few are alike.
const KEY_LEN_MAX: usize = 1024;

/// So many rows may differ before that is judged.
const DISTINCT_FREE: usize = 256;

/// Pairs of so many numbers have a place each.
const PLACES_MAX: usize = 1 << 16;

/// Rows by the values that they have.
pub struct AlikeRows {
    /// The place in `firsts` of the row that stands for each row; empty if each stands for itself.
    index: Vec<u32>,
    /// The first row with each of the values.
    pub firsts: Vec<usize>,
}

impl AlikeRows {
    /// Rows of which each stands for itself.
    pub fn each(rows: usize) -> AlikeRows {
        AlikeRows { index: Vec::new(), firsts: (0..rows).collect() }
    }

    /// Rows by what they have in all of `vectors`, unless too many differ. Rows in `left` have no values.
    pub fn of(vectors: &[&Vector<'_>], rows: usize, left: &Mask) -> AlikeRows {
        let known = if left.is_none() { AlikeRows::of_all(vectors, rows) } else { None };
        known.unwrap_or_else(|| AlikeRows::of_values(vectors, rows, left))
    }

    /// Rows by their cells in all of `vectors`, if these can be compared as they are, and by what masks say of them.
    fn of_all(vectors: &[&Vector<'_>], rows: usize) -> Option<AlikeRows> {
        let mut all: Option<AlikeRows> = None;
        for vector in vectors.iter().filter(|vector| !matches!(vector.cells, Cells::Constant(_))) {
            let mut alike = AlikeRows::of_cells(&vector.cells, rows)?;
            for mask in [&vector.missing, &vector.null].into_iter().filter(|mask| !mask.is_none()) {
                alike = alike.and(&|row| u32::from(mask.has(row)), rows);
            }
            all = Some(match all {
                // If too many differ in one vector, they differ in all together.
                Some(_) if alike.index.is_empty() => alike,
                Some(known) => known.with(&alike, rows),
                None => alike,
            });
        }
        all
    }

    /// Rows that are alike in both.
    fn with(self, other: &AlikeRows, rows: usize) -> AlikeRows {
        let places = self.firsts.len() * other.firsts.len();
        if self.index.is_empty() || places > PLACES_MAX {
            return self.and(&|row| other.index.get(row).copied().unwrap_or_default(), rows);
        }
        AlikeRows::of_codes(&alike::pairs(&self.index, &other.index, other.firsts.len() as u32), rows)
    }

    /// These rows, where only those with the same `number` are still alike.
    fn and(self, number: &dyn Fn(usize) -> u32, rows: usize) -> AlikeRows {
        if self.index.is_empty() {
            return self;
        }
        let known = |row: usize| u64::from(self.index.get(row).copied().unwrap_or_default());
        AlikeRows::of_words(rows, &|row| known(row) << 32 | u64::from(number(row)))
    }

    /// Rows by words.
    fn of_words(rows: usize, word: &dyn Fn(usize) -> u64) -> AlikeRows {
        let mut words = WordTable::default();
        AlikeRows::numbered(rows, &mut |row, next| {
            let word = word(row);
            words.get(word).unwrap_or_else(|| {
                words.insert(word, next);
                next
            })
        })
    }

    /// Rows by their cells, if these can be compared as they are.
    fn of_cells(cells: &Cells<'_>, rows: usize) -> Option<AlikeRows> {
        let of_words = |word: &dyn Fn(usize) -> u64| AlikeRows::of_words(rows, word);
        Some(match cells {
            Cells::Numbers(numbers, Int32s::None | Int32s::All) => {
                of_words(&|row| numbers.get(row).map_or(0, |number| number.to_bits()))
            }
            Cells::Longs(longs) | Cells::Dates(longs) => {
                of_words(&|row| longs.get(row).map_or(0, |long| long.cast_unsigned()))
            }
            Cells::Indexed(index, _) => AlikeRows::of_codes(index, rows),
            Cells::Any(column) if column.presence().is_none() => match column.data() {
                ColumnData::Dictionary(index, _) => AlikeRows::of_codes(index, rows),
                ColumnData::String(values) | ColumnData::Bson(values) if values.bytes.len() <= KEY_LEN_MAX * rows => {
                    let mut known = Interner::default();
                    AlikeRows::numbered(rows, &mut |row, _| known.add(values.get(row)).0 as u32)
                }
                _ => return None,
            },
            _ => return None,
        })
    }

    /// Rows by their entries in a list.
    fn of_codes(index: &[u32], rows: usize) -> AlikeRows {
        let too_many = TooMany { free: DISTINCT_FREE, share: ROWS_A_VALUE_MIN };
        match alike::by_codes(index, too_many) {
            Some((index, firsts)) if !firsts.is_empty() => {
                AlikeRows { index, firsts: firsts.into_iter().map(|row| row as usize).collect() }
            }
            _ => AlikeRows::each(rows),
        }
    }

    /// Rows by their numbers, unless there are too many. `number` takes a row and the next number.
    fn numbered(rows: usize, number: &mut dyn FnMut(usize, u32) -> u32) -> AlikeRows {
        let (mut index, mut firsts) = (Vec::with_capacity(rows), Vec::new());
        for row in 0..rows {
            let number = number(row, firsts.len() as u32);
            if number as usize == firsts.len() {
                firsts.push(row);
                if firsts.len() > DISTINCT_FREE + row / ROWS_A_VALUE_MIN {
                    return AlikeRows::each(rows);
                }
            }
            index.push(number);
        }
        if firsts.is_empty() { AlikeRows::each(rows) } else { AlikeRows { index, firsts } }
    }

    fn of_values(vectors: &[&Vector<'_>], rows: usize, left: &Mask) -> AlikeRows {
        let (mut index, mut firsts) = (Vec::with_capacity(rows), Vec::new());
        let mut numbers = Interner::default();
        let mut scratch = Scratch::default();
        let (mut key, mut before, mut last) = (Vec::new(), Vec::new(), 0);
        for row in 0..rows {
            if !left.has(row) {
                key.clear();
                for vector in vectors {
                    // No type has the byte 0.
                    let value = vector.value(row, &mut scratch);
                    key.push(value.map_or(0, |value| value.kind().byte()));
                    key.extend_from_slice(value.map_or(&[], Value::bytes));
                }
                if key.len() <= KEY_LEN_MAX && (firsts.is_empty() || key != before) {
                    let (number, is_new) = numbers.add(&key);
                    last = number as u32;
                    if is_new {
                        firsts.push(row);
                    }
                    std::mem::swap(&mut key, &mut before);
                }
            }
            if key.len() > KEY_LEN_MAX || firsts.len() > DISTINCT_FREE + row / ROWS_A_VALUE_MIN {
                return AlikeRows::each(rows);
            }
            index.push(last);
        }
        if firsts.is_empty() { AlikeRows::each(rows) } else { AlikeRows { index, firsts } }
    }

    /// The values of all rows; `firsts` has those of the first ones.
    pub fn spread<'a>(self, firsts: Vector<'a>) -> Vector<'a> {
        if self.index.is_empty() { firsts } else { Cells::Indexed(self.index.into(), firsts.into()).whole() }
    }
}

/// Rows by texts or other values without a kernel's type, and maybe numbers, of which few differ: operators take these as they are,
/// without a copy of the values of all rows.
pub fn few_texts(vectors: &[Rc<Vector<'_>>], rows: usize) -> Option<AlikeRows> {
    let mut has_texts = false;
    for vector in vectors {
        has_texts |= match &vector.cells {
            Cells::Constant(_) => false,
            Cells::Indexed(_, entries) => matches!(entries.cells, Cells::Any(_)),
            _ => return None,
        };
    }
    if !has_texts || vectors.iter().any(|vector| !vector.all_left().is_none()) {
        return None;
    }
    let alike = AlikeRows::of_all(&vectors.iter().map(|vector| &**vector).listed(), rows)?;
    (!alike.index.is_empty()).then_some(alike)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Column;
    use crate::value::OwnedValue;

    fn strings(of: impl Iterator<Item = u32>) -> Column {
        let mut builder = crate::block::ColumnBuilder::new();
        of.for_each(|n| builder.push(OwnedValue::string(&format!("text {n}")).view()));
        builder.finish()
    }

    fn columns(number: fn(u32) -> u32) -> Vec<Column> {
        let rows = || (0..1000).map(number);
        let of = |data| Column::new(data, None);
        let entries = strings(0..1000);
        vec![
            of(ColumnData::F64(rows().map(|n| f64::from(n) - 0.5).collect())),
            of(ColumnData::I32(rows().map(|n| n as i32).collect())),
            of(ColumnData::I64(rows().map(|n| i64::from(n) << 40).collect())),
            of(ColumnData::Date(rows().map(i64::from).collect())),
            strings(rows()),
            of(ColumnData::Dictionary(rows().collect(), Box::new(entries))),
        ]
    }

    #[test]
    fn rows_that_are_compared_by_their_cells_are_alike_as_those_compared_by_their_values() {
        for column in columns(|n| n * n % 23) {
            let vector = Vector::of(&column);
            let by_cells = AlikeRows::of_cells(&vector.cells, 1000).unwrap();
            let by_values = AlikeRows::of_values(&[&vector], 1000, &Mask::NONE);
            assert_eq!((&by_cells.index, &by_cells.firsts), (&by_values.index, &by_values.firsts), "{column:?}");
            assert_eq!(by_cells.firsts.len(), 12);
            // Rows that differ in another vector, or in what is missing, are not alike.
            let other = Column::new(ColumnData::I32((0..1000).map(|row| row % 3).collect()), None);
            let mut other = Vector::of(&other);
            other.missing = Mask::from_fn(1000, |row| row % 5 == 0);
            let both = AlikeRows::of_all(&[&vector, &other], 1000).unwrap();
            let by_values = AlikeRows::of_values(&[&vector, &other], 1000, &Mask::NONE);
            assert!(both.firsts.len() > 40 && by_values.firsts.iter().all(|row| both.firsts.contains(row)));
            // A constant makes no difference between rows.
            let constant = Vector::constant(Some(OwnedValue::int32(7).view()));
            assert_eq!(AlikeRows::of(&[&constant, &vector], 1000, &Mask::NONE).index, by_cells.index);
        }
    }

    #[test]
    fn rows_of_which_most_differ_stand_for_themselves() {
        for column in columns(|n| n) {
            let alike = AlikeRows::of_cells(&Vector::of(&column).cells, 1000).unwrap();
            assert!(alike.index.is_empty() && alike.firsts.len() == 1000);
        }
    }

    #[test]
    fn texts_of_which_few_pairs_occur_are_alike_pair_by_pair() {
        let indexed = |codes: fn(u32) -> u32, ends: u32| {
            let index: Rc<[u32]> = (0..1000).map(codes).collect();
            Rc::new(Cells::Indexed(index, Rc::new(Vector::made(strings(0..ends), Mask::NONE))).whole())
        };
        // Of 1200 pairs, 30 occur.
        let (a, b) = (indexed(|n| n % 30, 30), indexed(|n| n % 15, 40));
        let constant = Rc::new(Vector::constant(Some(OwnedValue::int32(7).view())));
        let few = few_texts(&[Rc::clone(&a), constant.clone(), b], 1000).unwrap();
        assert_eq!(few.firsts, (0..30).collect::<Vec<_>>());
        assert!((0..1000).all(|row| few.index[row] as usize == row % 30));
        // All of them; constants; numbers; texts of each row.
        assert!(few_texts(&[a, indexed(|n| n * 7 / 13 % 40, 40)], 1000).is_none());
        assert!(few_texts(std::slice::from_ref(&constant), 1000).is_none());
        let numbers = Column::new(ColumnData::I32((0..1000).map(|row| row % 3).collect()), None);
        let each = strings((0..1000).map(|row| row % 3));
        for column in [numbers, each] {
            assert!(few_texts(&[Rc::new(Vector::of(&column))], 1000).is_none());
        }
    }
}
