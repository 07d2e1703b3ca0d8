//! Journal records that this context is about to write.

use crate::block::Block;
use crate::catalog::{Section, Staged};
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::journal::{CommitOrder, JournalEntry, Record};
use crate::engine::store::keyspace::{self, Marker};
use crate::storage::{Bytes, Changeset};

impl Engine {
    /// Adds the puts of staged rows to `changes`, and returns their records.
    pub(in crate::engine) fn add_records(
        &self,
        collection: &Collection,
        staged: Staged,
        order: CommitOrder,
        changes: &mut Changeset,
    ) -> Vec<JournalEntry> {
        let records = Record::parts(staged.rows, staged.sections, order);
        self.put_records(collection, records, staged.extended_range, changes)
    }

    /// The records of staged rows. The event loop may get turns between them, so they get their places only when they
    /// are put: this context's records must be stored in their order (I22).
    pub(in crate::engine) async fn records_of(
        &self,
        rows: Block,
        sections: Vec<Section>,
        order: CommitOrder,
    ) -> Vec<(Record, Bytes)> {
        let mut records = Vec::new();
        for (record, bytes) in Record::parts(rows, sections, order) {
            let rows = record.rows.rows();
            records.push((record, bytes));
            if let Some(turn) = self.pause(rows) {
                let _ = turn.await;
            }
        }
        records
    }

    /// Adds the puts of records to `changes`, which must be committed before anything is awaited.
    pub(in crate::engine) fn put_records(
        &self,
        collection: &Collection,
        records: impl IntoIterator<Item = (Record, Bytes)>,
        extended_range: bool,
        changes: &mut Changeset,
    ) -> Vec<JournalEntry> {
        let id = collection.id();
        if extended_range && !collection.known.extended_range.get() {
            changes.put(keyspace::marker(&id, Marker::ExtendedRange), Vec::new());
        }
        let mut written = Vec::new();
        for (record, bytes) in records {
            let seq = self.next_seq.get();
            self.next_seq.set(seq + 1);
            written.push(JournalEntry::new((self.context, seq), record));
            // A put, not an insert: the key belongs to this context, and a repeated commit writes the same value.
            changes.put(keyspace::journal(&id, &self.context, seq), bytes);
        }
        written
    }

    /// The place of the next commit of this context.
    pub(in crate::engine) fn next_order(&self, collection: &Collection) -> CommitOrder {
        // A clock that was set back must not turn the order of two commits around.
        let time_ms = self.now_ms().max(collection.known.last_commit_ms.get());
        collection.known.last_commit_ms.set(time_ms);
        CommitOrder { generation: collection.known.generation.get(), time_ms, moved: false }
    }
}
