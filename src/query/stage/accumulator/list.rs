//! `$push` and `$addToSet`; of the elements of arrays `$concatArrays` and `$setUnion`.

use std::ops::Range;

use super::model::{Accumulator, Times, array_of, each_cell, list_is_full};
use crate::block::Column;
use crate::error::{Error, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::value::{Collation, Numbers, OwnedValue, Value, append_key};

/// Lists of the values of groups; what is missing is left out.
pub(super) struct Lists {
    /// True where a value stands in a list once only.
    is_set: bool,
    /// True where the elements of values are in the list, which have to be arrays.
    of_elements: bool,
    groups: Vec<Vec<OwnedValue>>,
    /// Values by group and key.
    known: Numbers,
    size_bytes: usize,
    collation: Collation,
}

impl Lists {
    pub fn new(is_set: bool, of_elements: bool, collation: &Collation) -> Lists {
        let (groups, known, collation) = (Vec::new(), Numbers::default(), collation.clone());
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
                // Bytes that are new to the set may be equal to others all the same.
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
            let message = "$concatArrays and $setUnion take arrays only";
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
