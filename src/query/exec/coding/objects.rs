//! Numbers objects that are columns by the numbers of their scalars, so that only different ones are made.

use std::ops::Range;

use super::coder::{Coder, MissingAs, NOTHING};
use super::numbers::Numbers;
use super::tuples::Tuples;
use crate::block::{Column, Objects};
use crate::value::Collation;

/// With fewer rows than this, objects are made and looked up one by one; so they are if more than one of so many scalars differs.
const ROWS_MIN: usize = 64;
const ROWS_A_SCALAR_MIN: usize = 4;

impl Coder {
    /// The numbers of these rows of `cells`, which are `objects`.
    pub(super) fn numbers_of_objects(&mut self, cells: &Column, objects: &Objects, rows: Range<usize>) -> Numbers {
        let known = self.numbers_of_scalars(cells, objects, &rows);
        known.unwrap_or_else(|| self.numbers(&cells.slice(rows.clone()).into_values(), 0..rows.len()))
    }

    /// The same by their scalars. `None` if most of these may differ, or if some compare equal in different forms.
    fn numbers_of_scalars(&mut self, cells: &Column, objects: &Objects, rows: &Range<usize>) -> Option<Numbers> {
        if rows.len() < ROWS_MIN || objects.scalars().is_empty() {
            return None;
        }
        let (mut parts, mut counts) = (Vec::new(), Vec::new());
        for scalar in objects.scalars() {
            let mut coder = Coder::new(Collation::default(), MissingAs::Undefined);
            parts.push(coder.numbers(scalar, rows.clone()));
            if coder.has_aliases() || coder.count() * ROWS_A_SCALAR_MIN > rows.len() {
                return None;
            }
            counts.push(coder.count());
        }
        let tuples = Tuples::new(parts.len()).numbers(parts, &counts, rows.len()).into_each(rows.len());
        // The number of each tuple's object, once it is known.
        let (mut known, mut scratch) = (Vec::new(), Vec::new());
        let mut numbers = Vec::with_capacity(rows.len());
        for (row, tuple) in rows.clone().zip(tuples) {
            let tuple = tuple as usize;
            if known.len() <= tuple {
                known.resize(tuple + 1, NOTHING);
            }
            let number = known.get_mut(tuple)?;
            if *number == NOTHING {
                *number = self.number_of_row(cells, row, &mut scratch);
            }
            numbers.push(*number);
        }
        Some(Numbers::Each(numbers))
    }
}
