//! What becomes of a page of buckets: one changeset of as few requests as can be.
//!
//! **Invariant**: a range is deleted only under the guard that the buckets of the page are all that there are, so that nothing goes
//! that nobody has looked at.

use super::Engine;
use super::collection::Collection;
use super::fold::{index_keys, write_bucket};
use super::keyspace::{self, BucketRef};
use super::read::Unit;
use super::stored_bucket::{Coverage, StoredBucket};
use crate::bucket::{BucketDoc, BucketId};
use crate::error::Result;
use crate::storage::{Bytes, Change, Changeset, KeyRange};
use crate::value::{DocBuf, sort_by};

/// Fewer buckets than this are deleted one by one: a guard over a range meets more conflicts.
const RANGE_BUCKETS_MIN: usize = 4;

/// Replacements and removals of buckets.
pub(super) struct PageChanges<'a> {
    collection: &'a Collection,
    units: &'a [Unit],
    changes: Changeset,
    gone: Vec<BucketId>,
    written: Vec<(BucketRef, StoredBucket)>,
}

impl<'a> PageChanges<'a> {
    /// Leaves every bucket of the page as it is.
    pub(super) fn new(collection: &'a Collection, units: &'a [Unit]) -> PageChanges<'a> {
        let (changes, gone, written) = Default::default();
        PageChanges { collection, units, changes, gone, written }
    }

    /// True where nothing would happen.
    pub(super) fn is_empty(&self) -> bool {
        self.gone.is_empty()
    }

    /// Replaces a bucket, or removes it.
    ///
    /// Errors: `DataCorruptionDetected`.
    pub(super) fn replace(
        &mut self,
        view: &BucketDoc<'_>,
        old: (&StoredBucket, u32),
        new: Option<(Coverage, DocBuf)>,
    ) -> Result<()> {
        self.written.extend(write_bucket(&mut self.changes, self.collection, &view.id(), Some(old), new)?);
        self.gone.push(view.id());
        Ok(())
    }

    /// Commits. `covered` says where the buckets of the page are all that there are.
    ///
    /// Errors: `WriteConflict` where somebody has changed one of the buckets, or added one between them; those of storage.
    pub(super) async fn commit(mut self, engine: &Engine, covered: Option<&KeyRange>) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        // Open buckets must not build on counts and schemas of rows that go.
        {
            let mut catalog = self.collection.catalog.borrow_mut();
            self.gone.iter().for_each(|id| catalog.clear_bucket(*id));
        }
        let mut changes = std::mem::take(&mut self.changes);
        if let Some(guard) = covered.and_then(|covered| self.guard(covered)) {
            changes = self.by_ranges(changes, guard)?;
        }
        engine.storage.commit(changes).await?;
        engine.keep(&self.collection.id(), self.written);
        Ok(())
    }

    /// The whole seconds from the first bucket that goes to the last, as far as the page covers them; `None` where most of the buckets
    /// there stay.
    fn guard(&self, covered: &KeyRange) -> Option<KeyRange> {
        let (first, last) = (self.gone.first()?, self.gone.last()?);
        let between = self.units.iter().filter(|unit| (first..=last).contains(&&unit.id)).count();
        if self.gone.len() < RANGE_BUCKETS_MIN || 2 * self.gone.len() < between {
            return None;
        }
        let KeyRange { start, end } = keyspace::buckets_of_seconds(&self.collection.id(), first, last);
        Some(KeyRange { start: start.max(covered.start.clone()), end: end.min(covered.end.clone()) })
    }

    /// The same changes in fewer requests: one guard for all buckets, and one delete for neighbours that nothing separates.
    fn by_ranges(&self, single: Changeset, guard: KeyRange) -> Result<Changeset> {
        let id = self.collection.id();
        let mut keys: Vec<(Bytes, bool)> = Vec::new();
        let mut known: Vec<Bytes> = Vec::new();
        for unit in self.units {
            let Some((stored, generation)) = &unit.stored else { continue };
            let key = keyspace::bucket(&id, &unit.id, *generation);
            if guard.start <= key && key < guard.end {
                known.push(key.clone());
            }
            let goes = self.gone.binary_search(&unit.id).is_ok();
            keys.push((key, goes));
            let bucket = BucketRef { id: unit.id, generation: *generation, fingerprint: stored.fingerprint };
            keys.extend(
                index_keys(self.collection, &bucket, stored.document.view())?.into_iter().map(|key| (key, goes)),
            );
        }
        sort_by(&mut keys, Ord::cmp);
        let mut changes = Changeset::new();
        let mut runs = keys.chunk_by(|(low, low_goes), (high, high_goes)| {
            low_goes == high_goes && (!low_goes || keyspace::encloses_known_only(&id, low, high, &guard))
        });
        changes.require_keys(guard.clone(), known);
        while let Some([(first, true), rest @ ..]) = runs.find(|run| run.first().is_some_and(|(_, goes)| *goes)) {
            match rest.last() {
                Some((last, _)) => {
                    changes.delete_range(KeyRange { start: first.clone(), end: [&last[..], &[0]].concat() });
                }
                None => changes.delete(first.clone()),
            }
        }
        for change in single.into_changes() {
            if matches!(change, Change::Put(..) | Change::Insert(..)) {
                changes.push(change);
            }
        }
        Ok(changes)
    }
}
