//! Commits of collections with `dedupe`. As any other, one is a put of a journal record; but it takes place only while
//! its generation is the present one (I37).

// Loaded later.

use std::rc::Rc;

use crate::block::Block;
use crate::catalog::{Counter, Staged, stage_windows};
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::journal::JournalEntry;
use crate::engine::store::keyspace;
use crate::error::{ErrorCode, Result};
use crate::limits::CHANGE_CONFLICTS_MAX;
use crate::storage::{Changeset, LocalFuture};

impl Engine {
    /// Commits rows under the present generation. If a fold has begun another one, the commit is repeated under that.
    ///
    /// Errors: `NamespaceNotFound` if the collection was dropped; those of storage.
    /// Boxed, because it is in the second half of the module.
    #[inline(never)]
    pub(super) fn commit_windows<'a>(&'a self, collection: &'a Rc<Collection>, rows: Block) -> LocalFuture<'a, ()> {
        Box::pin(self.commit_in_windows(collection, rows))
    }

    /// Ends a commit that did not find the marker of the collection: it was dropped, or its `dedupe` was turned on or
    /// off. The records may have been put all the same (I13).
    ///
    /// Errors: as `commit_windows`.
    #[inline(never)]
    pub(super) fn commit_by_new_entry<'a>(
        &'a self,
        collection: &'a Rc<Collection>,
        written: Vec<JournalEntry>,
    ) -> LocalFuture<'a, ()> {
        Box::pin(async move {
            // Records that were put belong to the collection, if it exists: others may have read them.
            match self.own_records_exist(collection, &written).await {
                Ok(true) => self.refresh(collection).await,
                Ok(false) => self.commit_rows(collection, collection.rows_of(&written)).await,
                Err(e) => {
                    if e.code == ErrorCode::NamespaceNotFound {
                        // No other code would remove them.
                        let id = collection.id();
                        let mut left = Changeset::new();
                        let keys = written.iter().map(|entry| keyspace::journal(&id, &entry.context, entry.seq));
                        keys.for_each(|key| left.delete(key));
                        let _ = self.storage.commit(left).await;
                    }
                    Err(e)
                }
            }
        })
    }

    async fn commit_in_windows(&self, collection: &Rc<Collection>, rows: Block) -> Result<()> {
        let mut staged = stage_windows(rows, &collection.entry().options.timeseries)?;
        for attempt in 0.. {
            let (extended_range, sections, rows) = (staged.extended_range, staged.sections.len(), staged.rows.rows());
            let mut changes = Changeset::new();
            let order = self.next_order(collection);
            changes.require(keyspace::exists(&collection.id(), order.generation));
            let written: Vec<JournalEntry> = self.add_records(collection, staged, order, &mut changes);
            match self.storage.commit(changes).await {
                Ok(()) => {
                    self.note_answer();
                    if extended_range {
                        collection.known.extended_range.set(true);
                    }
                    collection.count(Counter::Commits, sections as u64);
                    collection.count(Counter::MeasurementsCommitted, rows as u64);
                    collection.journal.committed(written);
                    break;
                }
                Err(e) if e.code == ErrorCode::WriteConflict && attempt < CHANGE_CONFLICTS_MAX => {
                    // Tells the present generation, or that the collection is gone.
                    self.refresh(collection).await?;
                    if !collection.dedupes() {
                        let rows = collection.rows_of(&written);
                        return Box::pin(self.commit_rows(collection, rows)).await;
                    }
                    staged = staged_again(written, extended_range);
                }
                Err(e) => {
                    // Perhaps only the answer was lost.
                    collection.journal.doubtful();
                    return Err(e);
                }
            }
        }
        Ok(())
    }
}

/// The rows of records that were not stored.
fn staged_again(records: Vec<JournalEntry>, extended_range: bool) -> Staged {
    let (mut blocks, mut sections) = (Vec::new(), Vec::new());
    for JournalEntry { record, .. } in records {
        blocks.push(record.rows);
        sections.extend(record.sections);
    }
    Staged { rows: Block::concat(blocks), sections, extended_range }
}
