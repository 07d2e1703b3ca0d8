//! `$first`, `$last`, and `$mergeObjects`, which cares for the order of rows as well.

use std::ops::Range;

use super::{Accumulator, each_cell};
use crate::block::Column;
use crate::error::{Error, ErrorCode, Result};
use crate::value::{DocWriter, Kind, OwnedValue, Value};

/// The first or last values of groups; nothing is null.
pub(super) struct Edges {
    is_last: bool,
    groups: Vec<Option<OwnedValue>>,
    size_bytes: usize,
}

impl Edges {
    pub fn new(is_last: bool) -> Edges {
        Edges { is_last, groups: Vec::new(), size_bytes: 0 }
    }
}

impl Accumulator for Edges {
    fn grow(&mut self) {
        self.groups.push(None);
    }

    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>) -> Result<()> {
        let row = if self.is_last { rows.end.saturating_sub(1) } else { rows.start };
        if let Some(known) = self.groups.get_mut(group)
            && (self.is_last || known.is_none())
        {
            let mut scratch = Vec::new();
            let value = cells.value(row, &mut scratch).unwrap_or(Value::NULL).to_owned();
            self.size_bytes += value.tagged().len();
            self.size_bytes -= known.replace(value).map_or(0, |before| before.tagged().len());
        }
        Ok(())
    }

    fn value(&self, group: usize) -> OwnedValue {
        self.groups.get(group).cloned().flatten().unwrap_or_else(OwnedValue::null)
    }

    fn size_bytes(&self) -> usize {
        self.size_bytes
    }
}

/// The fields of all objects of a group; of a field that several have, the last value.
#[derive(Default)]
pub(super) struct Merged {
    groups: Vec<OwnedValue>,
}

impl Accumulator for Merged {
    fn grow(&mut self) {
        self.groups.push(OwnedValue::doc(DocWriter::new().finish().view()));
    }

    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>) -> Result<()> {
        let Some(merged) = self.groups.get_mut(group) else { return Ok(()) };
        each_cell(cells, rows, &mut |value| {
            if matches!(value.kind(), Kind::Null | Kind::Undefined) {
                return Ok(());
            }
            let Some(new) = value.as_doc() else {
                let message =
                    format!("$mergeObjects requires object inputs, but input is of type {}", value.kind().alias());
                return Err(Error::new(ErrorCode::Location40400, message));
            };
            let mut writer = DocWriter::new();
            let known = merged.view().as_doc();
            for (name, value) in known.into_iter().flatten() {
                writer.value(name, new.get(name).unwrap_or(value));
            }
            for (name, value) in new.iter().filter(|(name, _)| known.is_none_or(|known| known.get(name).is_none())) {
                writer.value(name, value);
            }
            *merged = OwnedValue::doc(writer.finish().view());
            Ok(())
        })
    }

    fn value(&self, group: usize) -> OwnedValue {
        self.groups.get(group).cloned().unwrap_or_else(OwnedValue::null)
    }

    fn size_bytes(&self) -> usize {
        self.groups.iter().map(|merged| merged.tagged().len()).sum()
    }
}
