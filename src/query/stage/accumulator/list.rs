//! `$push` and `$addToSet`.

use std::ops::Range;

use super::{Accumulator, each_cell};
use crate::block::Column;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::STAGE_SIZE_BYTES_MAX;
use crate::value::{Collation, DocWriter, Kind, Numbers, OwnedValue, Value, append_key};

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
    fn grow(&mut self) {
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
                let message = "A list of a $group takes more memory than it may";
                return Err(Error::new(ErrorCode::ExceededMemoryLimit, message));
            }
            Ok(())
        })
    }

    fn value(&self, group: usize) -> OwnedValue {
        let mut writer = DocWriter::new();
        for (place, value) in self.groups.get(group).into_iter().flatten().enumerate() {
            writer.value(&place.to_string(), value.view());
        }
        let array = writer.finish();
        Value::new_checked(Kind::Array, array.view().as_bytes()).to_owned()
    }

    fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}
