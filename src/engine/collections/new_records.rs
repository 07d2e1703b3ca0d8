//! Journal records that this context is about to write.

use crate::catalog::Staged;
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::journal::{CommitOrder, JournalEntry, Record};
use crate::engine::store::keyspace::{self, Marker};
use crate::storage::Changeset;

impl Engine {
    /// Adds the puts of staged rows to `changes`, and returns their records.
    pub(in crate::engine) fn add_records(
        &self,
        collection: &Collection,
        staged: Staged,
        order: CommitOrder,
        changes: &mut Changeset,
    ) -> Vec<JournalEntry> {
        let id = collection.id();
        if staged.extended_range && !collection.extended_range.get() {
            changes.put(keyspace::marker(&id, Marker::ExtendedRange), Vec::new());
        }
        let mut written = Vec::new();
        for (record, bytes) in Record::parts(staged.rows, staged.sections, order) {
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
        let time_ms = self.now_ms().max(collection.last_commit_ms.get());
        collection.last_commit_ms.set(time_ms);
        CommitOrder { generation: collection.generation.get(), time_ms, moved: false }
    }
}
