//! Replacements and removals of buckets, as one changeset with as few requests as possible.
//!
//! **Invariants I14, I16, I19**: a changeset that writes or removes a bucket also moves the epoch of its collection on,
//! from the epoch at which the bucket was read. So of two contexts that have read the same state, one fails as a whole,
//! and what was read stays valid until the commit: a range may be deleted once everything in it has been examined.

use std::rc::Rc;

use super::index_checks;
use crate::bucket::{BucketDoc, BucketId};
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::read::unit::Unit;
use crate::engine::store::keyspace::{self, Marker};
use crate::engine::store::stored_bucket::{Coverage, StoredBucket};
use crate::error::{Error, Result};
use crate::index::{self, BucketSummary};
use crate::listed::IntoList;
use crate::storage::{Bytes, Changeset, KeyRange};
use crate::value::{Doc, DocBuf, sort_by};

/// Replacements and removals of buckets that were read at one epoch.
pub(in crate::engine) struct BucketChanges<'a> {
    collection: &'a Collection,
    /// Puts of buckets and of index entries.
    changes: Changeset,
    /// Index entries to remove although their bucket stays.
    stale: Vec<Bytes>,
    /// New forms of buckets; `None` for removed ones.
    changed: Vec<(BucketId, Option<Rc<StoredBucket>>)>,
    /// True if rows may be removed that inserts rely on.
    direct: bool,
    /// True if index entries change although their buckets do not.
    relists: bool,
    /// Set for a step of a fold: how many records it removes.
    folded: Option<usize>,
}

impl<'a> BucketChanges<'a> {
    /// A set of changes that is still empty.
    pub(in crate::engine) fn new(collection: &'a Collection) -> BucketChanges<'a> {
        BucketChanges {
            collection,
            changes: Changeset::new(),
            stale: Vec::new(),
            changed: Vec::new(),
            direct: false,
            relists: false,
            folded: None,
        }
    }

    /// Says that this is a step of a fold: no row is added, removed or changed (I40). It removes so many records.
    pub(in crate::engine) fn set_folded(&mut self, records: usize) {
        self.folded = Some(records);
    }

    /// True if nothing changes.
    pub(in crate::engine) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.changes.is_empty() && self.stale.is_empty()
    }

    /// Sets a bucket; `old` is its previous form, if it was stored.
    ///
    /// Errors: `DataCorruptionDetected`.
    pub(in crate::engine) fn write(
        &mut self,
        bucket: &BucketId,
        old: Option<&StoredBucket>,
        coverage: Coverage,
        document: DocBuf,
    ) -> Result<()> {
        let id = self.collection.id();
        let before = old.map(|old| index_keys(self.collection, bucket, old.document.view())).transpose()?;
        let (before, after) = (before.unwrap_or_default(), index_keys(self.collection, bucket, document.view())?);
        self.stale.extend(before.iter().filter(|key| !after.contains(key)).cloned());
        for key in after.into_iter().filter(|key| !before.contains(key)) {
            self.changes.put(key, Vec::new());
        }
        self.changes.put(keyspace::bucket(&id, bucket), StoredBucket::encode(&coverage, document.view()));
        self.changed.push((*bucket, Some(Rc::new(StoredBucket::new(coverage, document)))));
        Ok(())
    }

    /// Removes a bucket.
    ///
    /// Errors: `WriteConflict` if journal records are left whose rows it holds. The bucket says that it holds them;
    /// without it, the rows would come back.
    pub(in crate::engine) fn remove(&mut self, unit: &Unit) -> Result<()> {
        if unit.half_folded {
            return Err(Error::write_conflict(format!("Bucket {:?} is being folded", unit.id)));
        }
        self.changed.push((unit.id, None));
        Ok(())
    }

    /// Adds other changes, which take place together with these.
    pub(in crate::engine) fn add(&mut self, others: Changeset) {
        others.into_changes().into_iter().for_each(|change| self.changes.push(change));
    }

    /// Moves an unreadable value to a key for quarantined values.
    pub(in crate::engine) fn set_aside(&mut self, epoch: u64, key: Bytes, value: Bytes) {
        self.changes.put(keyspace::quarantined(&self.collection.id(), epoch, &key), value);
        self.stale.push(key);
    }

    /// Records what replaces a quarantined bucket: nothing, or a bucket without some of its rows. Leaves its index
    /// entries alone.
    pub(in crate::engine) fn replace(&mut self, bucket: &BucketId, new: Option<StoredBucket>) {
        if let Some(new) = &new {
            let value = StoredBucket::encode(&new.coverage, new.document.view());
            self.changes.put(keyspace::bucket(&self.collection.id(), bucket), value);
        }
        self.changed.push((*bucket, new.map(Rc::new)));
        self.direct = true;
    }

    /// Adds missing index entries and removes extra ones.
    pub(in crate::engine) fn correct_index(&mut self, missing: &[Bytes], extra: &[Bytes]) {
        missing.iter().for_each(|key| self.changes.put(key.clone(), Vec::new()));
        self.stale.extend_from_slice(extra);
        self.relists = true;
    }

    /// Marks the collection as holding dates outside the standard range.
    pub(in crate::engine) fn mark_extended_range(&mut self) {
        self.changes.put(keyspace::marker(&self.collection.id(), Marker::ExtendedRange), Vec::new());
    }

    /// Commits the changes together with the removal of `folded` journal records. Removed buckets are on `page`.
    /// Returns the new epoch.
    ///
    /// Errors: `WriteConflict` if somebody has changed a bucket of the collection since `epoch`; those of storage.
    pub(in crate::engine) async fn commit(
        mut self,
        engine: &Engine,
        epoch: u64,
        folded: Vec<KeyRange>,
        page: ScannedPage<'_>,
    ) -> Result<u64> {
        if self.is_empty() && folded.is_empty() {
            return Ok(epoch);
        }
        // A fold only adds what inserts have already added. Any other change keeps inserts away from its buckets
        // meanwhile, so that they do not build on counts and schemas of removed rows.
        let ids = self.changed.iter().map(|(id, _)| *id);
        let direct = if page.units.is_empty() && !self.direct { Vec::new() } else { ids.listed() };
        let _held = self.collection.direct_writes(direct).await;
        let id = self.collection.id();
        let mut changes = Changeset::new();
        let next = engine.move_epoch(&id, epoch, self.folded, &mut changes);
        folded.into_iter().for_each(|range| changes.delete_range(range));
        self.stale.drain(..).for_each(|key| changes.delete(key));
        self.removals(&page, &mut changes)?;
        self.changes.into_changes().into_iter().for_each(|change| changes.push(change));
        engine.storage.commit(changes).await?;
        if self.relists {
            *self.collection.known.directory.borrow_mut() = None;
        }
        engine.keep(self.collection, epoch, next, self.changed);
        Ok(next)
    }

    /// Removes a bucket together with all journal records whose rows it holds.
    pub(in crate::engine) fn remove_with_records(&mut self, unit: &Unit) {
        self.changed.push((unit.id, None));
    }

    /// Deletes the removed buckets and their index entries, with one request for each run of neighbours.
    pub(in crate::engine) fn removals(&self, page: &ScannedPage<'_>, changes: &mut Changeset) -> Result<()> {
        if self.changed.iter().all(|(_, new)| new.is_some()) {
            return Ok(());
        }
        let id = self.collection.id();
        let mut keys: Vec<(Bytes, bool)> = Vec::new();
        let mut changed = self.changed.iter().peekable();
        for unit in page.units {
            let Some(stored) = &unit.stored else { continue };
            let goes = changed.next_if(|(changed, _)| *changed == unit.id).is_some_and(|(_, new)| new.is_none());
            keys.push((keyspace::bucket(&id, &unit.id), goes));
            let entries = index_keys(self.collection, &unit.id, stored.document.view())?;
            keys.extend(entries.into_iter().map(|key| (key, goes)));
        }
        sort_by(&mut keys, Ord::cmp);
        let runs = keys.chunk_by(|(low, low_goes), (high, high_goes)| {
            let known = page.covered.is_some_and(|known| keyspace::encloses_known_only(&id, low, high, known));
            *low_goes && *high_goes && known
        });
        for run in runs {
            match run {
                [(key, true)] => changes.delete(key.clone()),
                [(first, true), .., (last, _)] => {
                    changes.delete_range(KeyRange { start: first.clone(), end: [&last[..], &[0]].concat() });
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// The page of a scan from which changes were made.
#[derive(Default)]
pub(in crate::engine) struct ScannedPage<'a> {
    units: &'a [Unit],
    covered: Option<&'a KeyRange>,
}

impl<'a> ScannedPage<'a> {
    /// A page, and the range in which its buckets are all that are stored.
    pub(in crate::engine) fn of(units: &'a [Unit], covered: Option<&'a KeyRange>) -> ScannedPage<'a> {
        ScannedPage { units, covered }
    }
}

/// The keys of a bucket's entries in all indexes.
///
/// Errors: `DataCorruptionDetected`.
pub(in crate::engine) fn index_keys(
    collection: &Collection,
    bucket: &BucketId,
    document: Doc<'_>,
) -> Result<Vec<Bytes>> {
    let entry = collection.entry();
    let view = BucketDoc::parse(document, &entry.options.timeseries)?;
    let id = collection.id();
    let mut keys = Vec::new();
    if collection.meta_field().is_some() {
        let entries = index::entries(view.meta(), view.min_time_ms());
        keys.extend(entries.iter().map(|entry| keyspace::index_entry(&id, index::META_TIME_INDEX, entry, bucket)));
    }
    let summary = BucketSummary { meta: view.meta(), min: view.control_min(), max: view.control_max() };
    if entry.has_more_indexes() {
        index_checks::add_keys(collection, bucket, &summary, &mut keys);
    }
    Ok(keys)
}

impl Engine {
    /// Remembers that buckets are not stored yet: they were begun while the epoch was `epoch`.
    pub(in crate::engine) fn note_begun(&self, collection: &Collection, epoch: u64, begun: Vec<BucketId>) {
        if collection.journal.epoch() == epoch {
            let mut cache = self.buckets.borrow_mut();
            begun.iter().for_each(|bucket| cache.put(&collection.id(), bucket, None));
        }
    }

    /// Keeps the new forms of buckets after a successful commit, which has moved the epoch on to `next`.
    pub(in crate::engine) fn keep(
        &self,
        collection: &Collection,
        epoch: u64,
        next: u64,
        changed: Vec<(BucketId, Option<Rc<StoredBucket>>)>,
    ) {
        if !collection.journal.epoch_moved(epoch, next) {
            // Somebody has moved it on since, so the kept buckets are dropped.
            return;
        }
        if collection.known.directory.borrow().is_some() {
            // Loaded by now: `engine::collections::directory` has made the directory.
            collection.note_in_directory(epoch, next, &changed);
        }
        let mut cache = self.buckets.borrow_mut();
        for (bucket, stored) in changed {
            collection.note_size(&bucket, stored.as_deref());
            match stored {
                Some(_) => cache.put(&collection.id(), &bucket, stored),
                None => cache.remove(&collection.id(), &bucket),
            }
        }
    }
}
