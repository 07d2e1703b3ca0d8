//! Reloads and changes the catalog entry of a collection, under its epoch (I15).

use std::rc::Rc;

use super::collection::Collection;
use crate::engine::Engine;
use crate::engine::store::entry::CollectionEntry;
use crate::engine::store::keyspace::{self, CollectionId};
use crate::error::{ErrorCode, Result};
use crate::limits::CHANGE_CONFLICTS_MAX;
use crate::storage::Changeset;

impl Engine {
    /// Reloads the entry of a collection, which other contexts may have changed.
    ///
    /// Errors: `NamespaceNotFound`; those of storage.
    pub async fn refresh(&self, collection: &Rc<Collection>) -> Result<()> {
        self.journal_snapshot(collection, &[]).await.map(|_| ())
    }

    /// Changes the entry of a collection, and whatever else `change` adds, in one commit that moves the epoch on.
    /// Contexts that change buckets by the old entry then fail and read the new one. Does nothing if `change` returns
    /// false.
    ///
    /// Errors: those of `change`; `NamespaceNotFound`; those of storage.
    pub async fn change_entry(
        &self,
        collection: &Rc<Collection>,
        change: &mut dyn FnMut(&mut CollectionEntry, &mut Changeset) -> Result<bool>,
    ) -> Result<()> {
        let id = collection.id();
        for attempt in 0.. {
            // Reading the epoch also loads the entry of that moment.
            let epoch = self.journal_snapshot(collection, &[]).await?.epoch;
            let mut entry = CollectionEntry::decode(collection.entry().encode().view().as_bytes())?;
            entry.read_indexes()?;
            let mut changes = Changeset::new();
            if !change(&mut entry, &mut changes)? {
                break;
            }
            entry.prepare(&*self.env, &self.globals()).await?;
            let next = self.move_epoch(&id, epoch, None, &mut changes);
            if entry.version > 0 {
                changes.delete(keyspace::version(&id, entry.version));
            }
            entry.version += 1;
            changes.put(keyspace::version(&id, entry.version), Vec::new());
            changes.put(keyspace::catalog(&collection.name), entry.encode().into_bytes());
            match self.storage.commit(changes).await {
                Ok(()) => {
                    if collection.journal.epoch_moved(epoch, next) {
                        // No bucket has changed, so what memory holds of them stays valid.
                        collection.set_entry(entry);
                    }
                    break;
                }
                Err(e) if e.code == ErrorCode::WriteConflict && attempt < CHANGE_CONFLICTS_MAX => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Adds to `changes` that the epoch of a collection moves on from `epoch`, at which they were made. `folded` as in
    /// `next_epoch`. Returns the next epoch.
    pub(in crate::engine) fn move_epoch(
        &self,
        id: &CollectionId,
        epoch: u64,
        folded: Option<usize>,
        changes: &mut Changeset,
    ) -> u64 {
        let next = keyspace::next_epoch(id, epoch, folded);
        changes.require(keyspace::epoch(id, epoch));
        changes.delete(keyspace::epoch(id, epoch));
        // The value says whose changeset it was: if an answer is lost, an epoch that another context has begun must not
        // look like our own.
        let value = self.env.random_u64().to_le_bytes().to_vec();
        changes.insert(keyspace::epoch(id, next.epoch), value);
        next.reserve.into_iter().for_each(|key| changes.put(key, Vec::new()));
        next.passed.into_iter().for_each(|key| changes.delete(key));
        next.epoch
    }
}
