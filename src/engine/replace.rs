//! `$out`: replaces the content of a collection, all at once.
//!
//! **Invariant I17**: new content is written into a collection of its own, whose name users can see. The last changeset
//! renames it to the target, and removes the collection that had this name with everything that belongs to it. Until
//! then everybody reads the old content, and afterwards the new. An interrupted `$out` leaves its temporary collection
//! behind; the next `$out` removes it after half an hour.

use std::rc::Rc;

use super::Engine;
use super::collections::collection::Collection;
use super::collections::namespace::creation;
use super::find::planned::ParsePipeline;
use super::store::entry::CollectionEntry;
use super::store::keyspace;
use crate::block::Block;
use crate::bucket::{CollectionOptions, validate_collection_name};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::{CHANGE_CONFLICTS_MAX, REPLACEMENT_MS_MAX};
use crate::listed::IntoList;
use crate::storage::Changeset;

/// Prefix of the names of temporary collections. The time at which it was begun follows.
const TEMPORARY: &str = "tmp.agg_out.";

/// The target collection, and the epoch at which it is known.
type Present = Option<(Rc<Collection>, u64)>;

/// The identity of a collection, and how often its entry was changed.
type Identity = Option<([u8; 16], u64)>;

fn identity(present: &Present) -> Identity {
    present.as_ref().map(|(collection, _)| (collection.entry().uuid, collection.entry().version))
}

impl Engine {
    /// Replaces the content of the collection `name` with the result of a pipeline. The collection keeps its options
    /// and indexes; a missing one is created with `options`. `check` converts rows to measurements.
    ///
    /// Errors: `NamespaceNotFound` if there is no collection and no options; 7406103 if the collection has other
    /// options; `CommandFailed` if it was changed or dropped meanwhile; as `aggregate`, `create_collection` and
    /// `insert`. The collection is unchanged then.
    pub async fn replace_content(
        &self,
        source: (&str, bool),
        parse: &ParsePipeline<'_>,
        name: &str,
        options: Option<CollectionOptions>,
        check: &dyn Fn(&Collection, Block) -> Result<Block>,
    ) -> Result<()> {
        validate_collection_name(&self.name, name)?;
        let before = self.present(name).await?;
        let known = identity(&before);
        let mut entry = self.successor(name, &before, options)?;
        entry.prepare(&*self.env, &self.globals()).await?;
        self.remove_abandoned_content().await?;
        let temporary = format!("{TEMPORARY}{}.{:x}", self.now_ms(), self.env.random_u64());
        let mut changes = creation(&temporary, &entry);
        if entry.version > 0 {
            changes.put(keyspace::version(&entry.id(), entry.version), Vec::new());
        }
        self.storage.commit(changes).await?;
        let made = self.remember(&temporary, entry);
        made.journal.created(keyspace::FIRST_EPOCH);
        let filled = self.insert_result(source, parse, &made, check).await;
        let outcome = match filled {
            Ok(()) => self.put_in_place(name, known, &made).await,
            failed => failed,
        };
        if outcome.is_err() {
            // If the renaming took place after all, no collection has this name any more.
            let _ = self.drop_collection(&temporary).await;
        }
        outcome
    }

    /// The collection as storage has it now.
    async fn present(&self, name: &str) -> Result<Present> {
        loop {
            let Some(collection) = self.collection(name).await? else { return Ok(None) };
            match self.journal_snapshot(&collection, &[]).await {
                Ok(snapshot) => return Ok(Some((collection, snapshot.epoch))),
                // It was dropped, so memory has forgotten it; storage says whether it was created again.
                Err(e) if e.code == ErrorCode::NamespaceNotFound => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// The entry of the collection that replaces another one, or none.
    fn successor(&self, name: &str, before: &Present, options: Option<CollectionOptions>) -> Result<CollectionEntry> {
        let Some((before, _)) = before else {
            let message = "$out can only create a time-series collection and needs 'timeseries'";
            let options = options.ok_or_else(|| {
                Error::new(ErrorCode::NamespaceNotFound, ["Collection '", name, "' does not exist; ", message].concat())
            })?;
            return Ok(CollectionEntry::new(self.drawn_uuid(), options));
        };
        let before = before.entry();
        if options.is_some_and(|options| !options.timeseries.same_as(&before.options.timeseries)) {
            let message = "The 'timeseries' options of $out must match those of the existing collection";
            return Err(Error::new(ErrorCode::Location7406103, message));
        }
        let mut entry = CollectionEntry::new(self.drawn_uuid(), before.options.clone());
        // All buckets will have these options.
        entry.options.timeseries.rebucketed = before.options.dedupe.is_some();
        entry.specs = before.specs.iter().filter(|spec| spec.ready).cloned().listed();
        entry.version = before.version;
        Ok(entry)
    }

    /// Renames the new content to the target.
    async fn put_in_place(&self, name: &str, known: Identity, made: &Rc<Collection>) -> Result<()> {
        self.fold_shared(made).await?;
        for attempt in 0.. {
            let there = self.present(name).await?;
            if identity(&there) != known {
                let message =
                    "The target collection of $out was created, changed or dropped while its content was computed";
                return Err(Error::new(ErrorCode::CommandFailed, message));
            }
            let epoch = self.journal_snapshot(made, &[]).await?.epoch;
            let id = made.id();
            let mut changes = Changeset::new();
            changes.require(keyspace::epoch(&id, epoch));
            let entry = made.entry().encode().into_bytes();
            match &there {
                Some((there, epoch)) => {
                    let old = there.id();
                    changes.require(keyspace::epoch(&old, *epoch));
                    keyspace::collection_ranges(&old).into_iter().for_each(|range| changes.delete_range(range));
                    changes.put(keyspace::catalog(name), entry);
                }
                None => changes.insert(keyspace::catalog(name), entry),
            }
            changes.delete(keyspace::catalog(&made.name));
            match self.storage.commit(changes).await {
                Ok(()) => {
                    self.forget_name(&made.name);
                    self.forget_name(name);
                    break;
                }
                Err(e) if e.code == ErrorCode::WriteConflict && attempt < CHANGE_CONFLICTS_MAX => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Removes temporary collections of interrupted runs.
    async fn remove_abandoned_content(&self) -> Result<()> {
        for (name, _) in self.list_collections().await? {
            let begun = name.strip_prefix(TEMPORARY).and_then(|rest| rest.split('.').next()?.parse::<i64>().ok());
            if begun.is_some_and(|begun_ms| self.now_ms().saturating_sub(begun_ms) > REPLACEMENT_MS_MAX) {
                self.drop_collection(&name).await?;
            }
        }
        Ok(())
    }
}
