//! Folds journal records into bucket documents.
//!
//! **Invariants I18, I20**: a fold writes its buckets in steps, each of them a changeset under the epoch (see
//! `bucket_changes`), and removes the records with the last step. The coverage of a bucket says which records it holds.
//! So an interrupted fold neither hides nor duplicates rows, and the next fold continues it. If two contexts fold at
//! once, one step fails as a whole, reads again and goes on. Acknowledged rows stay in the journal until they are in
//! buckets. Any context may fold any journal at any time.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::Poll;

use super::bucket_changes::{BucketChanges, ScannedPage};
use crate::block::Block;
use crate::bucket::{BucketDoc, BucketFormat, BucketId, merge};
use crate::catalog::Counter;
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::journal::{ByBucket, JournalEntry, RecordKey, SectionGroup, SectionRef};
use crate::engine::read::scan::Scan;
use crate::engine::store::keyspace::{self, ContextId};
use crate::engine::store::signal::Signal;
use crate::engine::store::stored_bucket::{Coverage, StoredBucket};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::{CHANGE_CONFLICTS_MAX, FOLD_STEP_BUCKETS, FOLD_STEP_ROWS, UNKNOWN_BUCKET_BYTES};
use crate::listed::IntoList;
use crate::value::{Doc, DocBuf, Value};

impl Engine {
    /// True if this context's journal of a collection should be folded and no fold runs yet.
    pub(in crate::engine) fn fold_due(&self, collection: &Collection) -> bool {
        let id = collection.id();
        let stored_bytes = |bucket: &BucketId| match self.buckets.borrow().get(&id, bucket) {
            Some(stored) => stored.map_or(0, |stored| stored.document.view().as_bytes().len()),
            None => UNKNOWN_BUCKET_BYTES,
        };
        collection.work.folding.borrow().is_none() && collection.journal.fold_due(&stored_bytes)
    }

    /// Folds this context's journal of a collection as of now. Callers that come while a fold runs share it.
    ///
    /// Errors: those of storage. A dropped collection has nothing to fold.
    pub(in crate::engine) async fn fold_shared(&self, collection: &Rc<Collection>) -> Result<()> {
        let end = self.next_seq.get();
        loop {
            let running = collection.work.folding.borrow().clone();
            let Some(running) = running else { break };
            running.wait().await?;
            if !collection.journal.has_own_before(end) {
                return Ok(());
            }
        }
        let signal = Signal::new();
        *collection.work.folding.borrow_mut() = Some(signal.clone());
        let guard = FoldGuard { collection, signal };
        let this_context = self.context;
        let outcome = self.fold(collection, &|context, seq| *context == this_context && seq < end).await.map(drop);
        if outcome.is_err() {
            collection.journal.fold_failed();
        }
        guard.signal.resolve(outcome.clone());
        outcome
    }

    /// Folds the journal records that `wanted` selects by context and seq. Earlier records of the same context are
    /// folded with them, because coverage only says up to which record a bucket holds rows. Returns the number of
    /// records.
    ///
    /// Errors: those of storage; `WriteConflict` if others kept folding the same records; `DataCorruptionDetected`.
    pub async fn fold(&self, collection: &Rc<Collection>, wanted: &dyn Fn(&ContextId, u64) -> bool) -> Result<usize> {
        let (mut conflicts, mut generation) = (0, None);
        loop {
            let snapshot = match generation {
                None => self.journal_snapshot(collection, &[]).await,
                Some(_) => self.whole_journal_snapshot(collection).await,
            };
            let (epoch, by_bucket) = match snapshot {
                Err(e) if e.code == ErrorCode::NamespaceNotFound => return Ok(0),
                other => other.map(|snapshot| (snapshot.epoch, snapshot.journal))?,
            };
            let journal = collection.journal.entries();
            let by_window = collection.dedupes();
            let is_wanted = |entry: &&Rc<JournalEntry>| match generation {
                Some(generation) => entry.record.order.generation < generation,
                None => wanted(&entry.context, entry.seq),
            };
            // Moved rows may follow a commit of a later generation in the same journal. They can wait, as they count as
            // earlier than what is stored.
            let of_contexts = journal.chunk_by(|a, b| a.context == b.context);
            let entries: Vec<&Rc<JournalEntry>> =
                of_contexts.flat_map(|of_context| of_context.iter().take_while(is_wanted)).listed();
            if generation.is_none() && !entries.is_empty() && by_window {
                // Loaded by now: `CollectionEntry::prepare` loads it for collections with `dedupe`.
                generation = Some(self.begin_generation(collection).await?);
                continue;
            }
            // The next refresh tells whether the record still exists: rows that others have deleted must not get into a
            // bucket, and the next change of metadata relies on all of these records being folded.
            if entries.iter().any(|entry| !collection.journal.is_confirmed(entry)) {
                continue;
            }
            if entries.is_empty() {
                return Ok(0);
            }
            let by_bucket = match entries.len() == journal.len() {
                true => by_bucket,
                false => Rc::new(ByBucket::of(entries.iter().copied())),
            };
            match self.fold_entries(collection, &journal, &entries, by_bucket, (epoch, by_window)).await {
                Ok(()) => {
                    collection.journal.folded(&entries.iter().map(|entry| entry.key()).listed());
                    return Ok(entries.len());
                }
                Err(e) if e.code == ErrorCode::WriteConflict && conflicts < CHANGE_CONFLICTS_MAX => conflicts += 1,
                Err(e) => return Err(e),
            }
        }
    }

    /// Folds the journal records of a scan that have rows of a group selected by `wanted`, and earlier ones. False if
    /// there are none.
    ///
    /// Errors: as `fold`.
    pub(in crate::engine) async fn fold_groups(
        &self,
        scan: &Scan,
        wanted: &dyn Fn(&SectionGroup) -> bool,
    ) -> Result<bool> {
        let groups = scan.journal().groups().iter().filter(|group| wanted(group));
        let sections: Vec<RecordKey> = groups.flat_map(|group| group.sections()).map(SectionRef::commit).collect();
        self.fold_records(scan.collection(), &sections).await
    }

    /// Folds these journal records and earlier ones. False if there are none.
    ///
    /// Errors: as `fold`.
    pub(in crate::engine) async fn fold_records(
        &self,
        collection: &Rc<Collection>,
        records: &[RecordKey],
    ) -> Result<bool> {
        let mut up_to: Vec<RecordKey> = Vec::new();
        for (context, seq) in records {
            match up_to.iter_mut().find(|(of, _)| of == context) {
                Some((_, last)) => *last = (*last).max(*seq),
                None => up_to.push((*context, *seq)),
            }
        }
        if up_to.is_empty() {
            return Ok(false);
        }
        let wanted = |context: &ContextId, seq| up_to.iter().any(|(c, last)| c == context && seq <= *last);
        self.fold(collection, &wanted).await.map(|_| true)
    }

    /// Folds, in every collection, the journals of contexts other than this one and those in `alive`, such as those of
    /// closed tabs.
    ///
    /// Returns the number of records. Errors: as `fold`.
    pub async fn fold_abandoned(&self, alive: &[ContextId]) -> Result<usize> {
        let mut folded = 0;
        for (name, _) in self.list_collections().await? {
            if let Some(collection) = self.collection(&name).await? {
                folded += self.fold(&collection, &|c, _| *c != self.context && !alive.contains(c)).await?;
            }
        }
        Ok(folded)
    }

    /// Folds `entries`, which `by_bucket` holds by bucket. They are a prefix of each context's journal in `journal`, as
    /// it was at an epoch. `by_window` says that rows are addressed to windows.
    async fn fold_entries(
        &self,
        collection: &Rc<Collection>,
        journal: &[Rc<JournalEntry>],
        entries: &[&Rc<JournalEntry>],
        by_bucket: Rc<ByBucket>,
        (mut epoch, by_window): (u64, bool),
    ) -> Result<()> {
        let id = collection.id();
        let mut records: Vec<(ContextId, u64)> = Vec::new();
        for entry in entries {
            match records.last_mut().filter(|(context, _)| *context == entry.context) {
                Some((_, last)) => *last = entry.seq,
                None => records.push((entry.context, entry.seq)),
            }
        }
        let journalled = |context: &ContextId, up_to| journal.iter().any(|e| e.context == *context && e.seq <= up_to);
        let mut rest = by_bucket.groups();
        let mut moved: Vec<(BucketId, Coverage, DocBuf)> = Vec::new();
        let mut running: Option<Pin<Box<dyn Future<Output = Result<u64>> + '_>>> = None;
        loop {
            if let Some(turn) = self.pause(FOLD_STEP_ROWS) {
                let _ = turn.await;
            }
            let (step, later) = rest.split_at(step_len(rest));
            rest = later;
            let stepped = match by_window {
                false => {
                    let stepped = self.step_changes(collection, &by_bucket, step, &journalled, &mut moved).await;
                    stepped.map(|(changes, n)| (changes, (Counter::ConvertedToUnsorted, n)))
                }
                // It is loaded, as above.
                true => {
                    let stepped = self.window_changes(collection, epoch, step, &journalled).await;
                    stepped.map(|(changes, n)| (changes, (Counter::DuplicatesRemoved, n)))
                }
            };
            // Also after an error: what has begun comes to its end.
            if let Some(running) = running.take() {
                epoch = running.await?;
            }
            let (mut changes, (counter, count)) = stepped?;
            changes.set_folded(if rest.is_empty() { entries.len() } else { 0 });
            if rest.is_empty() {
                // Written in the step that removes their records: until then the rows belong to the records, afterwards
                // to the buckets.
                for (bucket, coverage, document) in moved.drain(..) {
                    changes.write(&bucket, None, coverage, document)?;
                }
            }
            let folded = if rest.is_empty() { std::mem::take(&mut records) } else { Vec::new() };
            let folded = folded.iter().map(|(context, last)| keyspace::journal_up_to(&id, context, *last)).listed();
            let mut commit: Pin<Box<dyn Future<Output = Result<u64>> + '_>> = Box::pin(async move {
                let epoch = changes.commit(self, epoch, folded, ScannedPage::default()).await?;
                collection.count(counter, count);
                Ok(epoch)
            });
            if rest.is_empty() {
                return commit.await.map(drop);
            }
            // Started but not awaited: the next step is computed while storage writes this one.
            match poll_fn(|context| Poll::Ready(commit.as_mut().poll(context))).await {
                Poll::Ready(outcome) => epoch = outcome?,
                Poll::Pending => running = Some(commit),
            }
        }
    }

    /// The buckets of one step with the rows of their sections, and how many of them are no longer in time order.
    ///
    /// Rows that do not go into their bucket go to `moved`, into buckets of their own.
    async fn step_changes<'a>(
        &self,
        collection: &'a Rc<Collection>,
        by_bucket: &ByBucket,
        step: &[Rc<SectionGroup>],
        journalled: &dyn Fn(&ContextId, u64) -> bool,
        moved: &mut Vec<(BucketId, Coverage, DocBuf)>,
    ) -> Result<(BucketChanges<'a>, u64)> {
        let now_ms = self.now_ms();
        let ids: Vec<BucketId> = step.iter().map(|group| group.bucket).listed();
        let stored = self.fetch(collection, &ids).await?;
        let mut changes = BucketChanges::new(collection);
        let mut converted = 0;
        for (group, old) in step.iter().zip(&stored) {
            let bucket = &group.bucket;
            let mut coverage = old.as_ref().map(|stored| stored.coverage.clone()).unwrap_or_default();
            let all = by_bucket.sections_of(bucket);
            // The other groups of a bucket are handled together with its first one.
            if all.first().is_some_and(|first| first.meta() != group.meta()) {
                continue;
            }
            // Rows of an interrupted fold, or of a record written twice because the first answer to its commit was
            // lost.
            let fresh: Vec<&SectionRef> = all.iter().filter(|s| !coverage.covers(s.commit())).listed();
            if fresh.is_empty() {
                continue;
            }
            coverage.expire(now_ms, journalled);
            let place = Place { collection, bucket, old: old.as_deref(), coverage: &coverage };
            let most = collection.catalog.borrow().options().bucket_count_max;
            let folded = match self.fold_bucket(&place, &fresh, most) {
                // Several contexts together have made it too large for a document. One record always fits into one.
                Err(e) if e.code == ErrorCode::BSONObjectTooLarge && most > 1 => self.fold_bucket(&place, &fresh, 1),
                folded => folded,
            };
            let folded = folded.inspect_err(|e| {
                if e.code == ErrorCode::BSONObjectTooLarge {
                    let counter = if old.is_some() { Counter::TooLargeUpdate } else { Counter::TooLargeInsert };
                    collection.count(counter, 1);
                }
            })?;
            if !folded.moved.is_empty() {
                // This context may be one of those that did not know; its next rows go to another bucket.
                collection.catalog.borrow_mut().clear_bucket(*bucket);
                moved.extend(folded.moved);
            }
            let before = old.as_ref().map(|stored| stored.document.view());
            let was_unsorted = before.is_some_and(is_unsorted);
            if let Some(after) = folded.document.or_else(|| old.as_ref().map(|old| old.document.clone())) {
                converted += u64::from(is_unsorted(after.view()) && !was_unsorted);
                changes.write(bucket, old.as_deref(), folded.coverage, after)?;
            }
        }
        Ok((changes, converted))
    }
}

impl Engine {
    /// What a bucket becomes with `fresh`, the sections that it does not hold.
    ///
    /// A record with rows of other metadata does not go into it, and neither does one with which it would have more
    /// than `rows_max` rows, because several contexts have filled it at once, each counting its own rows. Nor do the
    /// records behind such a one.
    ///
    /// Errors: as `merge`.
    fn fold_bucket(&self, place: &Place<'_>, fresh: &[&SectionRef], rows_max: usize) -> Result<Folded> {
        let now_ms = self.now_ms();
        let meta = match place.old {
            Some(old) => old.document.view().get("meta"),
            None => fresh.first().and_then(|section| section.meta()),
        };
        // Coverage can only name whole records.
        let mut leaving: Vec<RecordKey> = Vec::new();
        for section in fresh.iter().filter(|section| section.meta() != meta) {
            leaving.push(section.commit());
        }
        let mut rows = place.stored_rows()?;
        let mut is_full = false;
        for section in fresh {
            if !leaving.contains(&section.commit()) {
                let more = section.rows().1.len();
                is_full |= rows > 0 && rows + more > rows_max;
                rows += more;
                leaving.extend(Some(section.commit()).filter(|_| is_full));
            }
        }
        let (gone, stay): (Vec<&SectionRef>, Vec<_>) =
            fresh.iter().partition(|section| leaving.contains(&section.commit()));
        let mut coverage = place.coverage.clone();
        gone.iter().for_each(|section| coverage.except(section.commit(), now_ms));
        stay.iter().for_each(|section| coverage.cover(section.commit(), now_ms));
        let mut moved = Vec::new();
        for together in apart(&gone, rows_max) {
            let Some(first) = together.first() else { continue };
            let min_time_ms = first.section().map_or(0, |section| section.min_time_ms);
            let id = BucketId::new(min_time_ms, self.env.random_u64());
            let mut coverage = Coverage::default();
            coverage.came_from(first.commit(), now_ms);
            moved.push((id, coverage, merge_sections(place.collection, None, &id, &together, self.bucket_format)?));
        }
        let before = place.old.map(|stored| stored.document.view());
        let merged = |()| merge_sections(place.collection, before, place.bucket, &stay, self.bucket_format);
        let document = (!stay.is_empty()).then_some(()).map(merged).transpose()?;
        Ok(Folded { coverage, document, moved })
    }
}

/// A bucket that is folded.
struct Place<'a> {
    collection: &'a Collection,
    bucket: &'a BucketId,
    /// Its stored form.
    old: Option<&'a StoredBucket>,
    /// What that form holds.
    coverage: &'a Coverage,
}

impl Place<'_> {
    fn stored_rows(&self) -> Result<usize> {
        let options = &self.collection.entry().options.timeseries;
        let rows = |old: &StoredBucket| BucketDoc::parse(old.document.view(), options)?.count();
        self.old.map_or(Ok(0), rows)
    }
}

/// What a fold makes of a bucket.
struct Folded {
    /// Which records it holds from now on.
    coverage: Coverage,
    /// Its document, if it has new rows.
    document: Option<DocBuf>,
    /// Buckets of the rows that do not go into it.
    moved: Vec<(BucketId, Coverage, DocBuf)>,
}

/// Sections by the buckets that they get: of one metadata, of one context, and with at most so many rows unless it is
/// one record.
///
/// **One context**, because a bucket names the first record that it came from: a reader that has any of its other records has
/// that one as well, since a context writes its records in order and they are removed together.
fn apart<'a>(sections: &[&'a SectionRef], rows_max: usize) -> Vec<Vec<&'a SectionRef>> {
    let mut parts: Vec<(Vec<&SectionRef>, usize)> = Vec::new();
    for section in sections {
        let more = section.rows().1.len();
        let of = |part: &&SectionRef| (part.meta(), part.commit().0) == (section.meta(), section.commit().0);
        let known = parts.iter_mut().rev().find(|(part, _)| part.first().is_some_and(of));
        match known.filter(|(part, rows)| {
            let same_record = part.last().is_some_and(|last| last.commit() == section.commit());
            same_record || rows + more <= rows_max
        }) {
            Some((part, rows)) => {
                part.push(section);
                *rows += more;
            }
            None => parts.push((vec![section], more)),
        }
    }
    parts.into_iter().map(|(part, _)| part).listed()
}

/// How many of `groups` one step of a fold takes.
fn step_len(groups: &[Rc<SectionGroup>]) -> usize {
    let mut rows = 0;
    let fits = |group: &&Rc<SectionGroup>| {
        rows += group.rows;
        rows <= FOLD_STEP_ROWS
    };
    groups.iter().take(FOLD_STEP_BUCKETS).take_while(fits).count().max(1).min(groups.len())
}

/// Ends the running fold on every way out (I6).
struct FoldGuard<'a> {
    collection: &'a Collection,
    signal: Signal,
}

impl Drop for FoldGuard<'_> {
    fn drop(&mut self) {
        *self.collection.work.folding.borrow_mut() = None;
        self.signal.resolve(Err(Error::internal("The fold was abandoned")));
    }
}

/// True if the bucket is compressed and its rows are not in time order.
fn is_unsorted(document: Doc<'_>) -> bool {
    let version = document.get("control").and_then(Value::as_doc).and_then(|control| control.get("version"));
    version.and_then(Value::as_integer) == Some(3)
}

/// The document of a stored bucket merged with the journal rows that it does not hold.
pub(in crate::engine) fn merge_sections(
    collection: &Collection,
    stored: Option<Doc<'_>>,
    id: &BucketId,
    sections: &[&SectionRef],
    format: BucketFormat,
) -> Result<DocBuf> {
    let options = &collection.entry().options.timeseries;
    let stored = stored.map(|document| BucketDoc::parse(document, options)).transpose()?;
    let first = sections.first().and_then(|section| section.section());
    let first = first.ok_or_else(|| Error::internal("Cannot merge a bucket with no rows"))?;
    let additions: Vec<(&Block, std::ops::Range<usize>)> = sections.iter().map(|section| section.rows()).listed();
    let meta = first.meta.as_ref().map(|m| m.view());
    merge(stored.as_ref(), id, first.min_time_ms, meta, &additions, format, options)
}
