//! The rows of journal records with their metadata.

use std::cell::OnceCell;
use std::rc::Rc;

use crate::block::{Bitmap, Block, Column, ColumnBuilder, ColumnData};
use crate::engine::collections::collection::Collection;
use crate::engine::journal::JournalEntry;
use crate::listed::IntoList;
use crate::value::{Interner, OwnedValue};

/// What was added to a journal since a moment, for all live queries that saw that moment.
pub(super) struct Additions {
    entries: Vec<Rc<JournalEntry>>,
    rows: OnceCell<Vec<Block>>,
}

impl Additions {
    /// These records.
    pub fn new(entries: Vec<Rc<JournalEntry>>) -> Additions {
        Additions { entries, rows: OnceCell::new() }
    }

    /// True if nothing was added.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Their measurements, a block for each record; made once.
    pub fn rows(&self, collection: &Collection) -> &[Block] {
        self.rows.get_or_init(|| self.entries.iter().map(|entry| measurements_of(entry, collection)).listed())
    }
}

/// The rows of a record as measurements: the time first, then the metadata, then the other fields.
fn measurements_of(entry: &JournalEntry, collection: &Collection) -> Block {
    let mut rows = entry.record.rows.clone();
    rows.begin_with(collection.time_field(), collection.meta_field().zip(metadata_of(entry)));
    rows
}

/// The metadata of its rows; `None` if no row has any.
fn metadata_of(entry: &JournalEntry) -> Option<Column> {
    let (mut known, mut values) = (Interner::default(), ColumnBuilder::new());
    let (mut index, mut presence) = (Vec::with_capacity(entry.record.rows.rows()), Bitmap::filled(0, false));
    for section in &entry.record.sections {
        let place = section.meta.as_ref().map_or(0, |meta| {
            let (place, is_new) = known.add(OwnedValue::tagged(meta));
            if is_new {
                values.push(meta.view());
            }
            place
        });
        index.resize(index.len() + section.rows, u32::try_from(place).unwrap_or_default());
        presence.push_many(section.meta.is_some(), section.rows);
    }
    let values = values.finish();
    (!values.is_empty()).then(|| Column::new(ColumnData::Dictionary(index, Box::new(values)), Some(presence)))
}
