//! The elements of arrays, as a column of their own.

use std::rc::Rc;

use kernels::elements;

use super::column::{ArrayElements, Column, ColumnData, VarData};
use super::text_numbers::TextNumbers;

/// Of so many arrays at most, as in a dictionary, the elements are remembered. They are a part of the arrays, so they take less
/// memory than these do.
const REMEMBERED_MAX: usize = 512;

impl Column {
    /// For each array in a BSON column, the number of the element behind its last one. `None` if a value is not an array.
    pub fn array_ends(&self) -> Option<Vec<u32>> {
        let ColumnData::Bson(cells) = self.data() else { return None };
        elements::ends_of_arrays(&cells.offsets, &cells.bytes)
    }

    /// The elements of the arrays in a BSON column. `None` if a value is not an array.
    pub fn elements(&self) -> Option<Rc<ArrayElements>> {
        let ColumnData::Bson(cells) = self.data() else { return None };
        let make = || {
            if let Some((cells, ends)) = elements::doubles_of_arrays(&cells.offsets, &cells.bytes) {
                return Some((Column::new(ColumnData::F64(cells), None), ends));
            }
            let (offsets, bytes, ends) = elements::of_arrays(&cells.offsets, &cells.bytes)?;
            Some((Column::new(ColumnData::Bson(VarData { offsets, bytes }), None).narrowed(), ends))
        };
        if self.len() > REMEMBERED_MAX {
            return make().map(|(values, ends)| Rc::new(ArrayElements { values, ends }));
        }
        self.elements_known(|| {
            let (values, ends) = make()?;
            Some(Rc::new(ArrayElements { values: TextNumbers::of(&values).unwrap_or(values), ends }))
        })
    }
}
