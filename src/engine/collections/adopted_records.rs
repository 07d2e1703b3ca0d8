//! Journal records of a collection with `dedupe` that are addressed to buckets, as if it had none: they become records
//! that are addressed to windows before anybody reads or folds them (I39).
//!
//! There are two kinds. Some were committed before `dedupe` was turned on. The others come from a context that had not
//! heard of it: it puts its record together with a look at the marker of the collection, finds that the marker is gone,
//! and repeats the commit. Storage may hold the record by then.

// Loaded later.

use std::rc::Rc;

use crate::block::{Block, ColumnBuilder};
use crate::catalog::stage_windows;
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::journal::{CommitOrder, JournalEntry};
use crate::engine::store::entry::Moving;
use crate::engine::store::keyspace;
use crate::error::Result;
use crate::listed::IntoList;
use crate::storage::{Changeset, LocalFuture};

impl Engine {
    /// Addresses the rows of all records to windows, as of an epoch.
    ///
    /// Errors: `WriteConflict` if others have changed the collection or have removed one of the records; those of
    /// storage.
    /// Boxed, because it is in the second half of the module.
    #[inline(never)]
    pub(super) fn adopt_records<'a>(&'a self, collection: &'a Rc<Collection>, epoch: u64) -> LocalFuture<'a, ()> {
        Box::pin(self.adopt(collection, epoch))
    }

    async fn adopt(&self, collection: &Rc<Collection>, epoch: u64) -> Result<()> {
        let (id, journal) = (collection.id(), &collection.journal);
        let records: Vec<Rc<JournalEntry>> =
            journal.entries().into_iter().filter(|entry| !entry.record.order.is_by_window()).listed();
        let staged = stage_windows(
            collection.rows_of(records.iter().map(|entry| &**entry)),
            &collection.entry().options.timeseries,
        )?;
        let present = self.next_order(collection);
        // As long as buckets are moved, such records are commits of before; afterwards, they were never acknowledged.
        let order = if collection.entry().moving == Moving::Done { present } else { CommitOrder::of_earlier(0) };
        let mut changes = Changeset::new();
        changes.require(keyspace::exists(&id, present.generation));
        for key in records.iter().map(|entry| keyspace::journal(&id, &entry.context, entry.seq)) {
            changes.require(key.clone());
            changes.delete(key);
        }
        let next = self.move_epoch(&id, epoch, None, &mut changes);
        let written = self.add_records(collection, staged, order, &mut changes);
        self.storage.commit(changes).await?;
        journal.epoch_moved(epoch, next);
        journal.folded(&records.iter().map(|entry| entry.key()).listed());
        journal.committed(written);
        Ok(())
    }
}

impl Collection {
    /// The rows of records, with their metadata.
    pub(in crate::engine) fn rows_of<'a>(&self, records: impl IntoIterator<Item = &'a JournalEntry>) -> Block {
        let mut blocks = Vec::new();
        for JournalEntry { record, .. } in records {
            let mut rows = record.rows.clone();
            if let Some(name) = self.meta_field() {
                let mut metadata = ColumnBuilder::new();
                for section in &record.sections {
                    for _ in 0..section.rows {
                        match &section.meta {
                            Some(meta) => metadata.push(meta.view()),
                            None => metadata.push_absent(1),
                        }
                    }
                }
                rows.set_column(name, metadata.finish());
            }
            blocks.push(rows);
        }
        Block::concat(blocks)
    }
}
