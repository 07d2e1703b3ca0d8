//! Collections by name: create, find, drop, list.

use std::rc::Rc;

use super::collection::Collection;
use crate::bucket::{CollectionOptions, validate_collection_name};
use crate::engine::Engine;
use crate::engine::store::entry::CollectionEntry;
use crate::engine::store::keyspace::{self, Marker};
use crate::error::{Error, ErrorCode, Result};
use crate::storage::{Changeset, Page};

impl Engine {
    /// The collection called `name`, from memory or from storage; `None` where there is none.
    ///
    /// What is in memory may be stale: commits and reads check the collection's marker and call `forget`.
    /// Errors: those of storage; `DataCorruptionDetected`; `BadValue` where this host does not know the locale of its collation.
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
        // Somebody may have loaded it during the await; there must be one catalog of open buckets.
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

    /// Drops what memory holds of a collection that storage no longer has.
    pub(in crate::engine) fn forget(&self, collection: &Rc<Collection>) {
        self.collections.borrow_mut().retain(|_, known| !Rc::ptr_eq(known, collection));
        // Cursors may hold it for a while.
        collection.catalog.borrow_mut().retire();
    }

    pub(in crate::engine) fn forget_name(&self, name: &str) {
        let known = self.collections.borrow().get(name).cloned();
        known.iter().for_each(|collection| self.forget(collection));
    }

    /// Creates a collection; nothing happens where it exists with equal options. Answers its options where it exists with others.
    ///
    /// Errors: `InvalidNamespace`, those of collations and of storage, and `NamespaceExists` where somebody dropped it at this very moment.
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
                // Memory knows all of a collection that has nothing.
                self.remember(name, entry).journal.created(keyspace::FIRST_EPOCH);
                Ok(None)
            }
            Err(e) if e.code == ErrorCode::WriteConflict => {
                // Memory may be stale here: compare with what storage says now.
                let keys = [keyspace::catalog(name)];
                let stored = self.storage.get_many(&keys).await?.pop().flatten();
                let stored = stored.as_deref().map(CollectionEntry::decode).transpose()?;
                match stored {
                    Some(there) if there.options.same_as(&entry.options) => Ok(None),
                    Some(there) => Ok(Some(there.options)),
                    None => Err(Error::new(
                        ErrorCode::NamespaceExists,
                        ["Collection '", name, "' was there and is dropped now"].concat(),
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

    /// The entry that storage holds of a collection in use.
    ///
    /// Errors: `NamespaceNotFound` where it was dropped, and perhaps made again; those of storage.
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

    /// Takes over what others have made of the entry of a collection.
    ///
    /// Errors: as `stored_entry`.
    pub(in crate::engine) async fn reload_entry(&self, collection: &Rc<Collection>) -> Result<()> {
        let entry = self.stored_entry(collection).await?;
        // Somebody here may have learnt of a later one meanwhile.
        if entry.version > collection.entry().version {
            collection.set_entry(entry);
        }
        Ok(())
    }

    /// Drops a collection and everything that belongs to it, in one commit; absent is fine.
    ///
    /// Answers whether there was one. Errors: those of storage.
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

/// What makes a collection, under a name that nobody has.
pub(in crate::engine) fn creation(name: &str, entry: &CollectionEntry) -> Changeset {
    let mut changes = Changeset::new();
    changes.insert(keyspace::catalog(name), entry.encode().into_bytes());
    changes.put(keyspace::marker(&entry.id(), Marker::Exists), Vec::new());
    changes.put(keyspace::epoch(&entry.id(), keyspace::FIRST_EPOCH), Vec::new());
    // From the epoch before the first, for that has no reserve either.
    let (_, reserve) = keyspace::next_epoch(&entry.id(), 0);
    reserve.into_iter().for_each(|key| changes.put(key, Vec::new()));
    changes
}
