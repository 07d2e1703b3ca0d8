//! Collections by name: create, find, drop, list.

use std::rc::Rc;

use super::collection::Collection;
use crate::bucket::{CollectionOptions, validate_collection_name};
use crate::engine::Engine;
use crate::engine::store::entry::CollectionEntry;
use crate::engine::store::keyspace;
use crate::error::{Error, ErrorCode, Result};
use crate::storage::{Changeset, Page};

impl Engine {
    /// The collection called `name`, from memory or from storage; `None` if there is none.
    ///
    /// The collection in memory may be stale: commits and reads check its marker and call `forget`.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`; `BadValue` if this host does not know the locale of its
    /// collation.
    pub async fn collection(&self, name: &str) -> Result<Option<Rc<Collection>>> {
        if let Some(known) = self.collections.borrow().get(name) {
            return Ok(Some(Rc::clone(known)));
        }
        let keys = [keyspace::catalog(name)];
        let Some(bytes) = self.storage.get_many(&keys).await?.pop().flatten() else { return Ok(None) };
        let mut entry = CollectionEntry::decode(&bytes)?;
        entry.prepare(&*self.env, &self.globals()).await?;
        Ok(Some(self.remember(name, entry)))
    }

    /// The collection called `name`.
    ///
    /// Errors: `NamespaceNotFound`, and as `collection`.
    pub async fn existing_collection(&self, name: &str) -> Result<Rc<Collection>> {
        self.collection(name).await?.ok_or_else(|| self.namespace_not_found(name))
    }

    pub(in crate::engine) fn namespace_not_found(&self, name: &str) -> Error {
        Error::new(ErrorCode::NamespaceNotFound, format!("Collection '{}.{name}' does not exist", self.name))
    }

    pub(in crate::engine) fn remember(&self, name: &str, entry: CollectionEntry) -> Rc<Collection> {
        let mut known = self.collections.borrow_mut();
        // Somebody may have loaded it during the await, and there must be only one catalog of open buckets.
        if let Some(there) = known.get(name) {
            if there.entry().uuid == entry.uuid {
                return Rc::clone(there);
            }
            there.catalog.borrow_mut().retire();
        }
        let (seed, now_ms) = (self.env.random_u64(), self.now_ms());
        let collection =
            Rc::new(Collection::new(name, self.context, entry, self.catalog_options, &self.totals, seed, now_ms));
        known.insert(name.to_owned(), Rc::clone(&collection));
        collection
    }

    /// Drops a collection from memory after it was dropped from storage.
    pub(in crate::engine) fn forget(&self, collection: &Rc<Collection>) {
        self.collections.borrow_mut().retain(|_, known| !Rc::ptr_eq(known, collection));
        // Cursors may hold the collection for a while.
        collection.catalog.borrow_mut().retire();
    }

    pub(in crate::engine) fn forget_name(&self, name: &str) {
        let known = self.collections.borrow().get(name).cloned();
        known.iter().for_each(|collection| self.forget(collection));
    }

    /// Creates a collection; does nothing if it exists with equal options. Returns its options if it exists with others.
    ///
    /// Errors: `InvalidNamespace`, those of collations and of storage, and `NamespaceExists` if another context dropped it at this very moment.
    pub async fn create_collection(
        &self,
        name: &str,
        mut options: CollectionOptions,
    ) -> Result<Option<CollectionOptions>> {
        validate_collection_name(&self.name, name)?;
        options.collate(&*self.env)?;
        let mut entry = CollectionEntry::new(self.drawn_uuid(), options);
        entry.prepare(&*self.env, &self.globals()).await?;
        match self.storage.commit(creation(name, &entry)).await {
            Ok(()) => {
                // A new collection is empty, so memory knows all of it.
                self.remember(name, entry).journal.created(keyspace::FIRST_EPOCH);
                Ok(None)
            }
            Err(e) if e.code == ErrorCode::WriteConflict => {
                // Memory may be stale here, so compare with storage.
                let keys = [keyspace::catalog(name)];
                let stored = self.storage.get_many(&keys).await?.pop().flatten();
                let stored = stored.as_deref().map(CollectionEntry::decode).transpose()?;
                match stored {
                    Some(there) if there.options.same_as(&entry.options) => Ok(None),
                    Some(there) => Ok(Some(there.options)),
                    None => Err(Error::new(
                        ErrorCode::NamespaceExists,
                        ["Collection '", name, "' existed and was dropped at this moment: try again"].concat(),
                    )),
                }
            }
            Err(e) => Err(e),
        }
    }

    pub(in crate::engine) fn drawn_uuid(&self) -> [u8; 16] {
        let halves = [self.env.random_u64().to_le_bytes(), self.env.random_u64().to_le_bytes()].concat();
        let mut uuid: [u8; 16] = halves.try_into().unwrap_or_default();
        // Version and variant bits of a random UUID.
        uuid[6] = uuid[6] & 0x0F | 0x40;
        uuid[8] = uuid[8] & 0x3F | 0x80;
        uuid
    }

    /// The stored entry of a collection in use.
    ///
    /// Errors: `NamespaceNotFound` if it was dropped, even if created again; those of storage.
    async fn stored_entry(&self, collection: &Rc<Collection>) -> Result<CollectionEntry> {
        let bytes = self.storage.get_many(&[keyspace::catalog(&collection.name)]).await?.pop().flatten();
        let stored = bytes.as_deref().map(CollectionEntry::decode).transpose()?;
        let Some(mut entry) = stored.filter(|entry| entry.uuid == collection.entry().uuid) else {
            self.forget(collection);
            return Err(self.namespace_not_found(&collection.name));
        };
        entry.prepare(&*self.env, &self.globals()).await?;
        Ok(entry)
    }

    /// Reloads the entry of a collection, which other contexts may have changed.
    ///
    /// Errors: as `stored_entry`.
    pub(in crate::engine) async fn reload_entry(&self, collection: &Rc<Collection>) -> Result<()> {
        let entry = self.stored_entry(collection).await?;
        // This context may have learnt of a later entry meanwhile.
        if entry.version > collection.entry().version {
            collection.set_entry(entry);
        }
        Ok(())
    }

    /// Drops a collection and everything that belongs to it in one commit, if it exists.
    ///
    /// Returns whether it existed. Errors: those of storage.
    pub async fn drop_collection(&self, name: &str) -> Result<bool> {
        let keys = [keyspace::catalog(name)];
        let Some(bytes) = self.storage.get_many(&keys).await?.pop().flatten() else {
            self.forget_name(name);
            return Ok(false);
        };
        let entry = CollectionEntry::decode(&bytes)?;
        let mut changes = Changeset::new();
        changes.delete(keyspace::catalog(name));
        keyspace::collection_ranges(&entry.id()).into_iter().for_each(|range| changes.delete_range(range));
        self.storage.commit(changes).await?;
        self.forget_name(name);
        Ok(true)
    }

    /// Every collection, by name.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    pub async fn list_collections(&self) -> Result<Vec<(String, CollectionEntry)>> {
        let mut range = keyspace::catalog_range();
        let page = Page { entries_max: 1000, keys_only: false };
        let mut found = Vec::new();
        loop {
            let entries = self.storage.scan(std::slice::from_ref(&range), page).await?;
            let done = entries.len() < page.entries_max;
            if let Some(last) = entries.last() {
                range.start = [&last.key[..], &[0]].concat();
            }
            for entry in entries {
                found.push((keyspace::catalog_name(&entry.key)?.to_owned(), CollectionEntry::decode(&entry.value)?));
            }
            if done {
                return Ok(found);
            }
        }
    }
}

/// The changeset that creates a collection under an unused name.
pub(in crate::engine) fn creation(name: &str, entry: &CollectionEntry) -> Changeset {
    let mut changes = Changeset::new();
    changes.insert(keyspace::catalog(name), entry.encode().into_bytes());
    changes.put(keyspace::exists(&entry.id(), u64::from(entry.options.dedupe.is_some())), Vec::new());
    changes.put(keyspace::epoch(&entry.id(), keyspace::FIRST_EPOCH), Vec::new());
    // Starts from the epoch before the first, which has no reserve, so that the reserve is written too.
    let reserve = keyspace::next_epoch(&entry.id(), 0, None).reserve;
    reserve.into_iter().for_each(|key| changes.put(key, Vec::new()));
    changes
}
