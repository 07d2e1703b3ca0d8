//! The ids of groups.

use kernels::elements;

use super::cells::KeyCells;
use super::keys::GroupKeys;
use super::spec::Key;
use crate::block::{Column, ColumnBuilder, ColumnData, Objects, ShapePart, VarData};
use crate::listed::IntoList;
use crate::value::{Kind, Value};

/// The ids of groups by their numbers. They follow from the parts of the keys (`GroupKeys::columns`), unless keys that compare equal have come in different
/// forms, or the ids are read as a whole: then they are written when a group begins.
#[derive(Default)]
pub(super) struct Ids {
    /// The number of groups whose ids are not written.
    unwritten: usize,
    /// Ids: type byte, then value bytes.
    shown: VarData,
    /// Where the id of each group stands in `shown`.
    places: Vec<u32>,
    scratch: Vec<u8>,
}

impl Ids {
    /// Adds the next groups, whose ids are not written, and drops what is written.
    pub fn add_unwritten(&mut self, count: usize) {
        if !self.places.is_empty() {
            *self = Ids { unwritten: self.len(), ..Ids::default() };
        }
        self.unwritten += count;
    }

    /// The number of groups.
    pub fn len(&self) -> usize {
        self.unwritten + self.places.len()
    }

    /// Writes the ids that are not written.
    pub fn write_all(&mut self, key: &Key, groups: &GroupKeys) {
        let count = std::mem::take(&mut self.unwritten);
        if count > 0 {
            let cells: Vec<KeyCells> = groups.columns(count).into_iter().map(KeyCells::Rows).listed();
            (0..count).for_each(|group| self.add(key, &cells, group));
        }
    }

    /// The id of a group.
    pub fn id(&self, group: usize) -> Value<'_> {
        self.places.get(group).map_or(Value::NULL, |place| Value::tagged_checked(self.shown.get(*place as usize)))
    }

    /// Adds the next group, whose id is that of a row.
    pub fn add(&mut self, key: &Key, cells: &[KeyCells], row: usize) {
        self.places.push(u32::try_from(self.shown.len()).unwrap_or(u32::MAX));
        self.write(key, cells, row);
    }

    /// Shows the id of another row, which compares equal to the one known.
    pub fn replace(&mut self, group: usize, key: &Key, cells: &[KeyCells], row: usize) {
        let last = self.shown.len();
        self.write(key, cells, row);
        if let Some(place) = self.places.get_mut(group) {
            if self.shown.get(*place as usize) == self.shown.get(last) {
                self.shown.offsets.pop();
                self.shown.bytes.truncate(self.shown.offsets.last().map_or(0, |end| *end as usize));
            } else {
                *place = u32::try_from(last).unwrap_or(u32::MAX);
            }
        }
    }

    /// The ids as a column.
    pub fn column(&self, key: &Key, groups: &GroupKeys) -> Column {
        if self.unwritten > 0 {
            let mut parts = groups.columns(self.unwritten);
            let Key::Object(fields) = key else {
                return parts.pop().unwrap_or_else(|| Column::constant(Value::NULL, self.unwritten));
            };
            // Otherwise, an object may have no field at all.
            if parts.iter().any(|part| part.presence().is_none()) {
                let shape: Vec<ShapePart> = fields.iter().map(|(name, _)| ShapePart::Scalar(name.clone())).collect();
                return Column::of_objects(Objects::new(shape.into(), parts));
            }
            let mut written = Ids { unwritten: self.unwritten, ..Ids::default() };
            written.write_all(key, groups);
            return written.column(key, groups);
        }
        let is_object = self.id(0).kind() == Kind::Object;
        // All objects, in the order of their groups: these are the bytes of the column.
        if is_object && self.shown.len() == self.len() {
            return Column::new(ColumnData::Bson(self.shown.clone()), None);
        }
        let mut column = ColumnBuilder::with_capacity(self.len());
        (0..self.len()).for_each(|group| column.push(self.id(group)));
        column.finish()
    }

    fn write(&mut self, key: &Key, cells: &[KeyCells], row: usize) {
        let Ids { shown, scratch, .. } = self;
        match key {
            Key::One(_) => {
                let value = cells.first().and_then(|cells| cells.value(row, scratch)).unwrap_or(Value::NULL);
                value.append_tagged(&mut shown.bytes);
            }
            Key::Object(fields) => {
                shown.bytes.push(Kind::Object.byte());
                let start = shown.bytes.len();
                shown.bytes.extend_from_slice(&[0; 4]);
                for ((name, _), cells) in fields.iter().zip(cells) {
                    let value = match cells.value(row, scratch) {
                        Some(value) => value,
                        // An object with one field always has it.
                        None if fields.len() == 1 => Value::NULL,
                        None => continue,
                    };
                    elements::push_named(&mut shown.bytes, value.kind().byte(), name.as_bytes(), value.bytes());
                }
                shown.bytes.push(0);
                let len = u32::try_from(shown.bytes.len() - start).unwrap_or(u32::MAX).to_le_bytes();
                shown.bytes.iter_mut().skip(start).zip(len).for_each(|(to, byte)| *to = byte);
            }
        }
        shown.seal();
    }
}
