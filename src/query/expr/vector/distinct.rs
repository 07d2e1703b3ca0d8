//! Which rows of a block are alike. What is computed row by row is then computed once for all rows with the same arguments.

use super::cells::{Cells, Scratch, Vector};
use super::mask::Mask;
use crate::value::{Interner, Value};

/// If more than one of so many rows differs from all before it, comparing them costs more than it saves.
const ROWS_A_VALUE_MIN: usize = 4;

/// Arguments of more bytes than this are not compared: of long ones, few are alike.
const KEY_LEN_MAX: usize = 1024;

/// So many rows may differ before that is judged.
const DISTINCT_FREE: usize = 64;

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

    /// Rows by their bytes in all of `vectors`, unless too many differ. Rows in `left` have no values.
    pub fn of(vectors: &[&Vector<'_>], rows: usize, left: &Mask) -> AlikeRows {
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
