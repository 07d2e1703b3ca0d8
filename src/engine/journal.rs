//! Which commits of a collection are not folded yet, of every context.

use std::rc::Rc;

use super::Engine;
use super::collection::Collection;
use super::keyspace::{self, ContextId, Marker};
use super::record::Record;
use crate::error::{Error, Result};
use crate::limits::JOURNAL_SIZE_BYTES_MAX;
use crate::storage::{Bytes, KeyRange, Page};

/// How much larger a record is in memory than in storage, about: that of many series with a row each.
const RECORD_GROWTH: usize = 14;

/// A journal record and where it stands.
#[derive(Clone)]
pub struct JournalEntry {
    /// Whose commit it was.
    pub context: ContextId,
    /// Its place in that context's journal.
    pub seq: u64,
    /// What it added.
    pub record: Rc<Record>,
}

/// The journals of a collection at one moment, and what else was asked for at that moment.
pub struct Snapshot {
    /// The epoch of the collection.
    pub epoch: u64,
    /// Records that are not folded, contexts apart and in order of seq inside each.
    pub journal: Vec<JournalEntry>,
    /// The keys of `also`.
    pub also: Vec<Bytes>,
}

impl Engine {
    /// The journal records that storage holds, and the keys of `also` at the same moment: one storage call for both.
    ///
    /// Where a fold removes a record before it could be fetched, all is asked once more: its rows may be missing in a bucket that is
    /// in memory. Errors: `NamespaceNotFound` where the collection was dropped; `DataCorruptionDetected`; those of storage.
    pub(super) async fn journal_snapshot(&self, collection: &Rc<Collection>, also: &[KeyRange]) -> Result<Snapshot> {
        // As long as nobody else has changed buckets, nobody has folded what is ours, and its keys need not be listed, unless a
        // commit has failed that may have been done all the same.
        // Where none is ours, listing them costs nothing, and a first look need not be followed by another.
        let mut all = collection.doubtful_commits.get() > 0 || collection.own.borrow().keys().next().is_none();
        loop {
            if let Some(snapshot) = self.try_journal_snapshot(collection, also, &mut all).await? {
                return Ok(snapshot);
            }
        }
    }

    async fn try_journal_snapshot(
        &self,
        collection: &Rc<Collection>,
        also: &[KeyRange],
        all: &mut bool,
    ) -> Result<Option<Snapshot>> {
        let id = collection.id();
        // A commit that runs has its seq already, and may end behind the look at the keys: only what is known now can be missing there.
        let end = collection.own.borrow().keys().last().map_or(0, |last| last + 1);
        let doubtful_commits = collection.doubtful_commits.get();
        let journals = keyspace::journals(&id);
        let ours = keyspace::journal_up_to(&id, &self.context, u64::MAX);
        let own = match *all {
            true => vec![keyspace::markers(&id), journals],
            false => vec![
                keyspace::markers(&id),
                KeyRange { start: journals.start, end: ours.start },
                KeyRange { start: ours.end, end: journals.end },
            ],
        };
        let (keys, also): (Vec<Bytes>, Vec<Bytes>) = self
            .scan_keys([&own, also].concat())
            .await?
            .into_iter()
            .partition(|key| own.iter().any(|range| range.start <= *key && *key < range.end));
        if !keys.first().is_some_and(|key| keyspace::is_marker(key, &id, Marker::Exists)) {
            self.forget(collection);
            return Err(self.namespace_not_found(&collection.name));
        }
        if keys.get(1).is_some_and(|key| keyspace::is_marker(key, &id, Marker::ExtendedRange)) {
            collection.extended_range.set(true);
        }
        let version = keys.iter().take(4).find_map(|key| keyspace::version_of(key)).unwrap_or_default();
        if version != collection.entry().version {
            self.reload_entry(collection).await?;
            return Ok(None);
        }
        let epoch = keys.iter().take(3).find_map(|key| keyspace::epoch_of(key));
        let epoch = epoch.ok_or_else(|| Error::corrupt("A collection does not say how often it was changed"))?;
        if epoch > collection.epoch.get() {
            // Others have changed buckets. That is noted only together with what they have left of our records: whoever asks meanwhile,
            // or after a failure, must not take those in memory for all there are.
            if !*all {
                *all = true;
                return Ok(None);
            }
            collection.epoch.set(epoch);
            *collection.measured.borrow_mut() = None;
            self.buckets.borrow_mut().forget(&id);
        }
        if !*all && epoch < collection.epoch.get() {
            // A fold has gone on since the keys were read: some of its records may be gone, and the keys do not tell its buckets.
            return Ok(None);
        }
        let mut parts: Vec<(ContextId, u64)> = keys.iter().filter_map(|key| keyspace::journal_parts(key)).collect();
        if *all {
            // Records that somebody else has folded are no longer ours. Those of commits that ended meanwhile are not among the keys.
            let present = |seq: &u64| parts.binary_search(&(self.context, *seq)).is_ok();
            collection.own.borrow_mut().retain(|seq| *seq >= end || present(seq));
        } else {
            let at = parts.partition_point(|(context, _)| *context < self.context);
            parts.splice(at..at, collection.own.borrow().keys().map(|seq| (self.context, *seq)));
        }
        let missing: Vec<(ContextId, u64)> = {
            let mut records = collection.records.borrow_mut();
            // Storage lists its keys in ascending order.
            records.retain(|key, _| parts.binary_search(key).is_ok());
            parts.iter().filter(|key| !records.contains_key(key)).copied().collect()
        };
        if !missing.is_empty() {
            let values = self.journal_values(&id, &missing, &parts).await?;
            let mut records = collection.records.borrow_mut();
            reserve(&values);
            let mut before: Option<Rc<Record>> = None;
            for (key, value) in missing.into_iter().zip(values) {
                let Some(bytes) = value else { return Ok(None) };
                // Somebody else here may have asked for it at the same time.
                if !records.contains_key(&key) {
                    let record = Record::decode(&bytes, before.as_ref().map_or(&[], |before| &before.sections))?;
                    records.insert(key, Rc::clone(before.insert(Rc::new(record))));
                }
            }
        }
        let records = collection.records.borrow();
        if *all && doubtful_commits > 0 {
            let mut own = collection.own.borrow_mut();
            for (context, seq) in parts.iter().filter(|(context, _)| *context == self.context) {
                if let Some(record) = records.get(&(*context, *seq)) {
                    own.insert(*seq, record.size_bytes());
                }
            }
            // Those that have failed since then are looked for the next time.
            collection.doubtful_commits.set(collection.doubtful_commits.get().saturating_sub(doubtful_commits));
        }
        let entries = parts.into_iter().map(|(context, seq)| {
            let record = Rc::clone(records.get(&(context, seq))?);
            Some(JournalEntry { context, seq, record })
        });
        // Another call may have taken a record out of memory during the await.
        Ok(entries.collect::<Option<Vec<_>>>().map(|journal| Snapshot { epoch, journal, also }))
    }

    /// Every key of `ranges`, range after range.
    ///
    /// Errors: those of storage.
    pub(super) async fn scan_keys(&self, mut ranges: Vec<KeyRange>) -> Result<Vec<Bytes>> {
        let page = Page { entries_max: 16_384, keys_only: true };
        let mut keys: Vec<Bytes> = Vec::new();
        loop {
            let entries = self.storage.scan(&ranges, page).await?;
            let done = entries.len() < page.entries_max;
            keys.extend(entries.into_iter().map(|entry| entry.key));
            let Some(last) = keys.last().filter(|_| !done) else { return Ok(keys) };
            go_on(&mut ranges, last);
        }
    }
}

/// What is left of `ranges` behind `last`, the last key of a page: the range in which it lies goes on, and those before it are done.
pub(super) fn go_on(ranges: &mut Vec<KeyRange>, last: &[u8]) {
    let at = ranges.iter().position(|range| range.start[..] <= *last && *last < range.end[..]).unwrap_or(ranges.len());
    ranges.drain(..at);
    if let Some(range) = ranges.first_mut() {
        range.start = [last, &[0]].concat();
    }
}

/// Makes room for the records of `values` at once. The memory of a module grows slowly: in small steps that took most of the time that
/// many records take to read.
fn reserve(values: &[Option<Bytes>]) {
    let stored_bytes: usize = values.iter().flatten().map(Vec::len).sum();
    let mut room: Vec<u8> = Vec::new();
    // What there is no room for is found out by whoever needs it.
    let _ = room.try_reserve_exact((RECORD_GROWTH * stored_bytes).min(2 * JOURNAL_SIZE_BYTES_MAX));
    drop(std::hint::black_box(room));
}
