//! `$push` and `$addToSet`.

use std::ops::Range;

use super::{Accumulator, array_of, each_cell, list_is_full};
use crate::block::Column;
use crate::error::Result;
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::value::{Collation, Numbers, OwnedValue, append_key};

/// Lists of the values of groups; what is missing is left out.
pub(super) struct Lists {
    /// True where a value stands in a list once only.
    is_set: bool,
    groups: Vec<Vec<OwnedValue>>,
    /// Values by group and key.
    known: Numbers,
    size_bytes: usize,
    collation: Collation,
}

impl Lists {
    pub fn new(is_set: bool, collation: &Collation) -> Lists {
        Lists { is_set, groups: Vec::new(), known: Numbers::default(), size_bytes: 0, collation: collation.clone() }
    }
}

impl Accumulator for Lists {
    fn grow(&mut self, _: usize) {
        self.groups.push(Vec::new());
    }

    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>) -> Result<()> {
        let Lists { is_set, groups, known, size_bytes, collation } = self;
        let Some(list) = groups.get_mut(group) else { return Ok(()) };
        each_cell(cells, rows, &mut |value| {
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
        })
    }

    fn value(&self, group: usize) -> OwnedValue {
        array_of(&mut self.groups.get(group).into_iter().flatten().map(OwnedValue::view))
    }

    fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}
