//! Journal records become bucket documents.
//!
//! **Invariant**: a fold is one changeset. It requires every record it deletes and the old generation of every bucket it
//! rewrites, and inserts the next. Two folders collide, one fails whole, reads again and retries; acknowledged rows lie in
//! the journal until a fold has committed. Anybody may fold any journal at any time.

use std::rc::Rc;

use super::Engine;
use super::collection::Collection;
use super::journal::JournalEntry;
use super::keyspace::{self, BucketRef, CollectionId, ContextId};
use super::read::{ByBucket, Scan, SectionRef, decode_stored};
use super::signal::Signal;
use super::stored_bucket::{Coverage, StoredBucket, fingerprint};
use crate::block::Block;
use crate::bucket::{BucketDoc, BucketFormat, BucketId, merge};
use crate::catalog::Section;
use crate::error::{Error, ErrorCode, Result};
use crate::index;
use crate::limits::{FOLD_STEP_BYTES, WRITE_CONFLICT_RETRIES_MAX};
use crate::storage::{Changeset, Page};
use crate::value::{Doc, DocBuf};

impl Engine {
    /// Folds this context's journal of a collection; callers that come while a fold runs share it.
    ///
    /// Errors: those of storage. A dropped collection has nothing to fold.
    pub(super) async fn fold_shared(&self, collection: &Rc<Collection>) -> Result<()> {
        let running = collection.folding.borrow().clone();
        if let Some(running) = running {
            return running.wait().await;
        }
        let signal = Signal::new();
        *collection.folding.borrow_mut() = Some(signal.clone());
        let guard = FoldGuard { collection, signal };
        let own = self.context;
        let outcome = self.fold(collection, &|context, _| *context == own).await.map(drop);
        guard.signal.resolve(outcome.clone());
        outcome
    }

    /// Folds the journal records that `wanted` names by context and seq: with a record, all before it in its context's journal,
    /// because a bucket says only up to which one it holds rows. Answers how many records.
    ///
    /// Errors: those of storage, `WriteConflict` where others kept folding the same records, `DataCorruptionDetected`.
    pub async fn fold(&self, collection: &Rc<Collection>, wanted: &dyn Fn(&ContextId, u64) -> bool) -> Result<usize> {
        let mut folded = 0;
        let mut conflicts = 0;
        loop {
            let own_last = collection.next_seq.get();
            let snapshot = match self.journal_snapshot(collection, &[]).await {
                Err(e) if e.code == ErrorCode::NamespaceNotFound => return Ok(folded),
                other => other?.journal,
            };
            // In ascending order, as storage lists them.
            let present: Vec<u64> = snapshot.iter().filter(|e| e.context == self.context).map(|e| e.seq).collect();
            // Records that somebody else has folded are no longer ours to count.
            collection.own.borrow_mut().retain(|seq, _| *seq >= own_last || present.binary_search(seq).is_ok());
            let mut step_bytes = 0;
            let step: Vec<JournalEntry> = snapshot
                .into_iter()
                .filter(|entry| wanted(&entry.context, entry.seq))
                .take_while(|entry| {
                    let first = step_bytes == 0;
                    step_bytes += entry.record.size_bytes();
                    first || step_bytes <= FOLD_STEP_BYTES
                })
                .collect();
            if step.is_empty() {
                return Ok(folded);
            }
            match self.fold_step(collection, &step).await {
                Ok(()) => {
                    folded += step.len();
                    conflicts = 0;
                    let mut own = collection.own.borrow_mut();
                    let mut records = collection.records.borrow_mut();
                    for entry in &step {
                        if entry.context == self.context {
                            own.remove(&entry.seq);
                        }
                        records.remove(&(entry.context, entry.seq));
                    }
                }
                Err(e) if e.code == ErrorCode::WriteConflict && conflicts < WRITE_CONFLICT_RETRIES_MAX => {
                    conflicts += 1
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// Folds the journal records of a scan with a section that `wanted` names, and those before them. False where there are none.
    ///
    /// Errors: as `fold`.
    pub(super) async fn fold_sections(&self, scan: &Scan, wanted: &dyn Fn(&Section) -> bool) -> Result<bool> {
        let mut up_to: Vec<(ContextId, u64)> = Vec::new();
        for reference in scan.sections().filter(|reference| reference.section().is_some_and(wanted)) {
            match up_to.iter_mut().find(|(context, _)| *context == reference.context) {
                Some((_, last)) => *last = reference.seq.max(*last),
                None => up_to.push((reference.context, reference.seq)),
            }
        }
        if up_to.is_empty() {
            return Ok(false);
        }
        let wanted = |context: &ContextId, seq| up_to.iter().any(|(c, last)| c == context && seq <= *last);
        self.fold(scan.collection(), &wanted).await.map(|_| true)
    }

    /// Folds, in every collection, the journals of contexts that are neither this one nor in `alive`: those of closed tabs.
    ///
    /// Answers how many records. Errors: as `fold`.
    pub async fn fold_abandoned(&self, alive: &[ContextId]) -> Result<usize> {
        let mut folded = 0;
        for (name, _) in self.list_collections().await? {
            if let Some(collection) = self.collection(&name).await? {
                folded += self.fold(&collection, &|c, _| *c != self.context && !alive.contains(c)).await?;
            }
        }
        Ok(folded)
    }

    /// Folds `entries`, a prefix of each context's journal, in one changeset.
    async fn fold_step(&self, collection: &Rc<Collection>, entries: &[JournalEntry]) -> Result<()> {
        let id = collection.id();
        let mut changes = Changeset::new();
        let mut by_bucket = ByBucket::default();
        for entry in entries {
            let key = keyspace::journal(&id, &entry.context, entry.seq);
            changes.require(key.clone());
            changes.delete(key);
            SectionRef::of_record(entry.context, entry.seq, &entry.record).for_each(|section| by_bucket.push(section));
        }
        let mut written = Vec::new();
        let mut stored = self.stored_buckets(collection, &by_bucket).await?.into_iter();
        for (bucket, sections) in by_bucket.buckets() {
            let old = stored.next().flatten();
            let mut coverage = old.as_ref().map(|(stored, _)| stored.coverage.clone()).unwrap_or_default();
            // A record may have been written a second time, by a commit whose first answer was lost.
            let fresh: Vec<SectionRef> =
                sections.iter().filter(|s| !coverage.covers(&s.context, s.seq)).cloned().collect();
            if fresh.is_empty() {
                continue;
            }
            coverage.expire(self.now_ms());
            sections.iter().for_each(|s| coverage.cover(s.context, s.seq, self.now_ms()));
            let document = old.as_ref().map(|(stored, _)| stored.document.view());
            let document = merge_sections(collection, document, &fresh, self.bucket_format)?;
            let old = old.as_ref().map(|(stored, generation)| (stored, *generation));
            written.extend(write_bucket(&mut changes, collection, bucket, old, Some((coverage, document)))?);
        }
        self.storage.commit(changes).await?;
        self.keep(&id, written);
        Ok(())
    }

    /// Keeps the new forms of buckets whose commit has succeeded.
    pub(super) fn keep(&self, collection: &CollectionId, written: Vec<(BucketRef, StoredBucket)>) {
        let mut cache = self.buckets.borrow_mut();
        written.into_iter().for_each(|(bucket, stored)| cache.put(collection, bucket, Rc::new(stored)));
    }

    /// The stored form and the generation of each of `buckets`, in the same order; `None` for one that was never stored.
    ///
    /// Memory only says which generation to ask for first, which takes half the requests of a search. It does not say what is in
    /// it: a bucket that was deleted and made again may have that generation once more.
    async fn stored_buckets(
        &self,
        collection: &Rc<Collection>,
        buckets: &ByBucket,
    ) -> Result<Vec<Option<(StoredBucket, u32)>>> {
        let id = collection.id();
        let ids = || buckets.buckets().iter().map(|(bucket, _)| bucket);
        let guesses: Vec<Option<u32>> = {
            let cache = self.buckets.borrow();
            ids().map(|bucket| cache.latest_generation(&id, bucket)).collect()
        };
        let known = ids().zip(&guesses).filter_map(|(bucket, guess)| Some(keyspace::bucket(&id, bucket, (*guess)?)));
        let mut values = self.storage.get_many(&known.collect::<Vec<_>>()).await?.into_iter();
        let mut found = Vec::with_capacity(guesses.len());
        for (bucket, guess) in ids().zip(&guesses) {
            let value = guess.and_then(|generation| Some((values.next().flatten()?, generation)));
            found.push(value.map(|(value, generation)| Ok((decode_stored(bucket, value)?, generation))).transpose()?);
        }
        let missing = ids().zip(&found).filter(|(_, found)| found.is_none()).map(|(bucket, _)| bucket);
        let ranges: Vec<_> = missing.map(|bucket| keyspace::bucket_generations(&id, bucket)).collect();
        let page = Page { entries_max: ranges.len().max(1), keys_only: false };
        // In the order of the ranges, as far as there is something to find.
        let mut entries = self.storage.scan(&ranges, page).await?.into_iter().peekable();
        for (bucket, slot) in ids().zip(&mut found).filter(|(_, slot)| slot.is_none()) {
            let range = keyspace::bucket_generations(&id, bucket);
            if let Some(entry) = entries.next_if(|entry| range.start <= entry.key && entry.key < range.end) {
                let (bucket, generation) = keyspace::bucket_parts(&entry.key)?;
                *slot = Some((decode_stored(&bucket, entry.value)?, generation));
            }
        }
        Ok(found)
    }
}

/// Clears the running fold however it ends.
struct FoldGuard<'a> {
    collection: &'a Collection,
    signal: Signal,
}

impl Drop for FoldGuard<'_> {
    fn drop(&mut self) {
        *self.collection.folding.borrow_mut() = None;
        self.signal.resolve(Err(Error::internal("The fold was given up before it had an outcome")));
    }
}

/// The bucket document of a stored bucket and the journal rows that it does not hold.
pub(super) fn merge_sections(
    collection: &Collection,
    stored: Option<Doc<'_>>,
    sections: &[SectionRef],
    format: BucketFormat,
) -> Result<DocBuf> {
    let options = &collection.entry.options.timeseries;
    let stored = stored.map(|document| BucketDoc::parse(document, options)).transpose()?;
    let first = sections.first().and_then(SectionRef::section);
    let first = first.ok_or_else(|| Error::internal("A bucket was to be merged with no rows"))?;
    let additions: Vec<(&Block, std::ops::Range<usize>)> = sections.iter().map(SectionRef::rows).collect();
    let meta = first.meta.as_ref().map(|m| m.view());
    merge(stored.as_ref(), &first.bucket, first.min_time_ms, meta, &additions, format, options)
}

/// Adds the replacement of a bucket (or its removal) to a changeset: the old generation is required and deleted, the next one
/// inserted, index entries follow. Answers the new form.
pub(super) fn write_bucket(
    changes: &mut Changeset,
    collection: &Collection,
    bucket: &BucketId,
    old: Option<(&StoredBucket, u32)>,
    new: Option<(Coverage, DocBuf)>,
) -> Result<Option<(BucketRef, StoredBucket)>> {
    let id = collection.id();
    let mut generation = 0;
    if let Some((stored, old_generation)) = old {
        let key = keyspace::bucket(&id, bucket, old_generation);
        changes.require(key.clone());
        changes.delete(key);
        generation = old_generation.wrapping_add(1);
        let stale = BucketRef { id: *bucket, generation: old_generation, fingerprint: stored.fingerprint };
        let stale = index_keys(collection, &stale, stored.document.view())?;
        stale.into_iter().for_each(|key| changes.delete(key));
    }
    let Some((coverage, document)) = new else { return Ok(None) };
    let bytes = StoredBucket::encode(&coverage, document.view());
    let fingerprint = fingerprint(&bytes);
    changes.insert(keyspace::bucket(&id, bucket, generation), bytes);
    let written = BucketRef { id: *bucket, generation, fingerprint };
    for key in index_keys(collection, &written, document.view())? {
        changes.put(key, Vec::new());
    }
    Ok(Some((written, StoredBucket { coverage, document, fingerprint })))
}

/// The keys of a bucket's index entries.
pub(super) fn index_keys(collection: &Collection, bucket: &BucketRef, document: Doc<'_>) -> Result<Vec<Vec<u8>>> {
    if collection.meta_field().is_none() {
        return Ok(Vec::new());
    }
    let view = BucketDoc::parse(document, &collection.entry.options.timeseries)?;
    let entries = index::entries(view.meta(), view.min_time_ms(), view.max_time_ms());
    let key = |entry: &Vec<u8>| keyspace::index_entry(&collection.id(), index::META_TIME_INDEX, entry, bucket);
    Ok(entries.iter().map(key).collect())
}
