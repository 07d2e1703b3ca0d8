//! Inserts: stage, commit journal records (I12), reply.

use std::rc::Rc;

use crate::block::Block;
use crate::catalog::{Counter, Staging};
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::journal::{CommitOrder, JournalEntry};
use crate::engine::store::keyspace;
use crate::engine::store::signal::{Signal, yield_now};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::STAGED_ROWS_MAX;
use crate::storage::Changeset;

/// The right to commit what the queue holds. However the claimant ends, its waiters get an outcome and the queue
/// continues (I6).
struct Claim<'a> {
    collection: &'a Collection,
    outcome: Signal,
}

impl<'a> Claim<'a> {
    fn new(collection: &'a Collection) -> Claim<'a> {
        let outcome = Signal::new();
        collection.work.queue.borrow_mut().next = Some(outcome.clone());
        Claim { collection, outcome }
    }
}

impl Drop for Claim<'_> {
    fn drop(&mut self) {
        {
            let mut queue = self.collection.work.queue.borrow_mut();
            if queue.next.as_ref().is_some_and(|next| next.is(&self.outcome)) {
                queue.next = None;
                queue.blocks.clear();
            }
            let was_running = queue.running.take_if(|running| running.is(&self.outcome)).is_some();
            // If the commit was given up halfway, it is unknown whether its rows are stored.
            if was_running && !self.outcome.is_resolved() {
                self.collection.journal.doubtful();
                self.collection.catalog.borrow_mut().abort();
            }
        }
        self.outcome.resolve(Err(Error::internal("The insert was abandoned; whether its rows are stored is unknown")));
    }
}

impl Engine {
    /// Stores measurements whose time column is a date column without holes; resolves when they are durable.
    ///
    /// Inserts in flight at the same time share one commit: the first claims it and lets the others of this turn join,
    /// and they all get the same outcome.
    ///
    /// Errors: `NamespaceNotFound` if the collection was dropped; those of storage. Nothing is stored then.
    pub async fn insert(&self, collection: &Rc<Collection>, rows: Block) -> Result<()> {
        if rows.rows() == 0 {
            return Ok(());
        }
        let joined = {
            let mut queue = collection.work.queue.borrow_mut();
            queue.blocks.push(rows);
            queue.next.clone()
        };
        if let Some(commit) = joined {
            collection.count(Counter::Waits, 1);
            return commit.wait().await;
        }
        let claim = Claim::new(collection);
        yield_now().await;
        if collection.journal.is_congested() {
            // Folding frees the journal; if it fails, the insert itself may still succeed.
            let _ = self.fold_shared(collection).await;
        }
        loop {
            let running = collection.work.queue.borrow().running();
            match running {
                Some(running) => drop(running.wait().await),
                None => break,
            }
        }
        let blocks = {
            let mut queue = collection.work.queue.borrow_mut();
            queue.next = None;
            queue.running = Some(claim.outcome.clone());
            std::mem::take(&mut queue.blocks)
        };
        let outcome = self.commit_rows(collection, Block::concat(blocks)).await;
        claim.outcome.resolve(outcome.clone());
        outcome
    }

    pub(super) async fn commit_rows(&self, collection: &Rc<Collection>, rows: Block) -> Result<()> {
        if collection.dedupes() {
            // Loaded by now: `CollectionEntry::prepare` loads it for collections with `dedupe`.
            return self.commit_windows(collection, rows).await;
        }
        let mut batch = collection.catalog.borrow().batch(rows);
        let staged = loop {
            let stage = collection.catalog.borrow_mut().stage(&mut batch)?;
            match stage {
                Staging::Staged(staged) => break staged,
                Staging::Reopen(requests) if requests.is_empty() => {
                    if let Some(turn) = self.pause(STAGED_ROWS_MAX) {
                        let _ = turn.await;
                    }
                }
                Staging::Reopen(requests) => self.reopen(collection, &requests).await?,
            }
        };
        let extended_range = staged.extended_range;
        let records = self.records_of(staged.rows, staged.sections, CommitOrder::default()).await;
        let id = collection.id();
        let mut changes = Changeset::new();
        changes.expect(keyspace::exists(&id, 0));
        let written = self.put_records(collection, records, extended_range, &mut changes);
        let epoch = collection.journal.epoch();
        match self.storage.commit(changes).await {
            Ok(()) => {
                self.note_answer();
                if extended_range {
                    collection.known.extended_range.set(true);
                }
                let stored_bytes = written.iter().map(|entry: &JournalEntry| entry.record.columns_bytes).sum();
                let begun = collection.catalog.borrow_mut().finish(stored_bytes);
                self.note_begun(collection, epoch, begun);
                collection.journal.committed(written);
                Ok(())
            }
            Err(e) => {
                collection.catalog.borrow_mut().abort();
                if e.code == ErrorCode::WriteConflict {
                    self.complete().await?;
                    // Loaded by now: awaited in the line above.
                    return self.commit_by_new_entry(collection, written).await;
                }
                // Perhaps only the answer was lost.
                collection.journal.doubtful();
                Err(e)
            }
        }
    }
}
