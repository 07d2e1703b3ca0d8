//! `$push` and `$addToSet`; and for the elements of arrays, `$concatArrays` and `$setUnion`.

use std::ops::Range;

use super::model::{Accumulator, Times, array_of, each_cell, list_is_full};
use crate::block::Column;
use crate::error::{Error, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::value::{Collation, Interner, OwnedValue, Value, append_key};

/// Lists of values per group; missing values are left out.
pub(super) struct Lists {
    /// True if a list holds each value only once.
    is_set: bool,
    /// True if the list holds the elements of the values, which must be arrays.
    of_elements: bool,
    groups: Vec<Vec<OwnedValue>>,
    /// Distinct values by group and key.
    known: Interner,
    size_bytes: usize,
    collation: Collation,
}

impl Lists {
    pub fn new(is_set: bool, of_elements: bool, collation: &Collation) -> Lists {
        let (groups, known, collation) = (Vec::new(), Interner::default(), collation.clone());
        Lists { is_set, of_elements, groups, known, size_bytes: 0, collation }
    }
}

impl Accumulator for Lists {
    fn grow(&mut self, _: usize) {
        self.groups.push(Vec::new());
    }

    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>, _: Option<&Times<'_>>) -> Result<()> {
        let Lists { is_set, of_elements, groups, known, size_bytes, collation } = self;
        let Some(list) = groups.get_mut(group) else { return Ok(()) };
        let mut add = |value: Value<'_>| {
            if *is_set {
                let mut key = group.to_le_bytes().to_vec();
                append_key(&mut key, value);
                if !known.add(&key).1 {
                    return Ok(());
                }
                *size_bytes += key.len();
                // Different bytes may still be equal by the collation.
                if !collation.is_simple() && list.iter().any(|known| collation.compare(known.view(), value).is_eq()) {
                    return Ok(());
                }
            }
            *size_bytes += value.bytes().len() + 32;
            list.push(value.to_owned());
            if *size_bytes > STAGE_SIZE_BYTES_MAX {
                return Err(list_is_full());
            }
            Ok(())
        };
        each_cell(cells, rows, &mut |value| {
            if !*of_elements {
                return add(value);
            }
            let message = "$concatArrays and $setUnion need arrays";
            let elements = value.as_array().ok_or_else(|| Error::type_mismatch(message))?;
            elements.iter().try_for_each(|(_, element)| add(element))
        })
    }

    fn value(&self, group: usize) -> OwnedValue {
        array_of(&mut self.groups.get(group).into_iter().flatten().map(OwnedValue::view))
    }

    fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}
