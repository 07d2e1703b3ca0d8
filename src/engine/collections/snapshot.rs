//! The journals of a collection at one moment: refreshes the journal and fetches the records that are missing in memory.

use std::rc::Rc;

use super::collection::Collection;
use crate::engine::Engine;
use crate::engine::journal::{ByBucket, JournalEntry, JournalMark, RecordKey, RefreshOutcome};
use crate::engine::store::keyspace::{self, Marker};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::{
    CHANGE_CONFLICTS_MAX, FETCHED_RECORDS_BYTES, JOURNAL_SIZE_BYTES_MAX, LOOK_WORK, SORTED_SECTIONS_MAX,
};
use crate::listed::IntoList;
use crate::storage::{Bytes, Entry, KeyRange};

/// Roughly how much larger a record is in memory than in storage, if it has many series with one row each.
const RECORD_GROWTH: usize = 14;

/// The journals of a collection at one moment, and the keys read at the same moment.
pub struct Snapshot {
    /// The epoch of the collection.
    pub epoch: u64,
    /// The same moment, for later questions about what has changed since.
    pub mark: JournalMark,
    /// The unfolded rows.
    pub journal: Rc<ByBucket>,
    /// The keys in the ranges `also`.
    pub also: Vec<Bytes>,
}

impl Engine {
    /// Reads the journal records in storage, and the keys of `also` at the same moment, in one storage call.
    ///
    /// If a fold removes a record before it could be fetched, everything is read again, because its rows may be missing
    /// from a bucket in memory. Errors: `NamespaceNotFound` if the collection was dropped; `DataCorruptionDetected`;
    /// those of storage.
    pub(in crate::engine) async fn journal_snapshot(
        &self,
        collection: &Rc<Collection>,
        also: &[KeyRange],
    ) -> Result<Snapshot> {
        // As long as no other context has changed buckets, records were only added, so known ones need not be listed.
        self.snapshot_of(collection, also, false).await
    }

    /// As `journal_snapshot`, with all records that are in storage: also those of this context whose commits were not
    /// answered yet.
    ///
    /// Errors: as `journal_snapshot`.
    pub(in crate::engine) async fn whole_journal_snapshot(&self, collection: &Rc<Collection>) -> Result<Snapshot> {
        self.snapshot_of(collection, &[], true).await
    }

    /// True if storage holds these records of this context, as they were committed.
    ///
    /// Errors: as `journal_snapshot`.
    pub(in crate::engine) async fn own_records_exist(
        &self,
        collection: &Rc<Collection>,
        written: &[JournalEntry],
    ) -> Result<bool> {
        let mut all = true;
        while self.try_journal_snapshot(collection, &[], &mut all).await?.is_none() {}
        Ok(written.iter().all(|entry| collection.journal.holds(&entry.key())))
    }

    async fn snapshot_of(&self, collection: &Rc<Collection>, also: &[KeyRange], all: bool) -> Result<Snapshot> {
        let (mut all, mut conflicts) = (all, 0);
        loop {
            let Some(snapshot) = self.try_journal_snapshot(collection, also, &mut all).await? else { continue };
            if !collection.dedupes() || !collection.journal.is_any_by_bucket() {
                return Ok(snapshot);
            }
            // Loaded by now: `CollectionEntry::prepare` loads it for collections with `dedupe`.
            match self.adopt_records(collection, snapshot.epoch).await {
                Err(e) if e.code == ErrorCode::WriteConflict && conflicts < CHANGE_CONFLICTS_MAX => conflicts += 1,
                outcome => outcome?,
            }
            all = true;
        }
    }

    async fn try_journal_snapshot(
        &self,
        collection: &Rc<Collection>,
        also: &[KeyRange],
        all: &mut bool,
    ) -> Result<Option<Snapshot>> {
        let (id, journal) = (collection.id(), &collection.journal);
        let refresh = journal.begin_refresh(*all);
        // Most collections have an epoch in front of the reserve, also those of which all records are listed.
        let markers = match *all || keyspace::is_from_reserve(journal.epoch()) {
            true => keyspace::markers_and_reserve(&id),
            false => keyspace::markers(&id),
        };
        let journals = journal.ranges(&id, &refresh);
        let ranges = std::iter::once(markers).chain(journals).chain(also.iter().cloned()).listed();
        // The first refresh needs all records, which are the second range.
        let ahead = (journal.epoch() == 0).then_some(1);
        let (mut keys, mut listed, mut brought, mut also) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for Entry { key, value } in self.scan_ahead(ranges, ahead).await? {
            if let Some(place) = keyspace::journal_parts(&key) {
                listed.push(place);
                brought.push(value);
            } else if keyspace::is_of_markers(&key) {
                keys.push(key);
            } else {
                also.push(key);
            }
        }
        let Some(generation) = keys.first().and_then(|key| keyspace::generation_of(key, &id)) else {
            self.forget(collection);
            return Err(self.namespace_not_found(&collection.name));
        };
        collection.known.generation.set(generation);
        if keys.get(1).is_some_and(|key| keyspace::is_marker(key, &id, Marker::ExtendedRange)) {
            collection.known.extended_range.set(true);
        }
        let version = keys.iter().take(4).find_map(|key| keyspace::version_of(key)).unwrap_or_default();
        if version != collection.entry().version {
            self.reload_entry(collection).await?;
            return Ok(None);
        }
        // The epoch comes after up to three other markers.
        let Some(epoch) = keys.iter().take(4).find_map(|key| keyspace::epoch_of(key)) else {
            // Another context had no room to write an epoch and took one from the reserve.
            if !std::mem::replace(all, true) {
                return Ok(None);
            }
            return Err(Error::corrupt("A collection has no epoch"));
        };
        let missing = match journal.learn(&refresh, epoch, &listed) {
            RefreshOutcome::Again { all: again } => {
                *all = again;
                return Ok(None);
            }
            RefreshOutcome::Known { missing, moved } => {
                if moved {
                    journal.overtaken(self.next_seq.get());
                    *collection.known.bucket_sizes.borrow_mut() = None;
                    self.buckets.borrow_mut().forget(&id);
                }
                missing
            }
        };
        let mut values = Vec::new();
        if !missing.is_empty() {
            values = self.journal_values(&id, &missing, &listed, brought).await?;
            reserve(&values);
        }
        if !self.take_in(collection, epoch, &missing, values).await? || !journal.end_refresh(&refresh, epoch) {
            *all = true;
            return Ok(None);
        }
        Ok(Some(Snapshot { epoch, mark: journal.mark(), journal: journal.by_bucket(), also }))
    }

    /// Adds records that were fetched at that epoch, and sorts all into buckets, with turns in between. False if another
    /// refresh is needed.
    ///
    /// Errors: `DataCorruptionDetected`; those of a turn.
    async fn take_in(
        &self,
        collection: &Collection,
        epoch: u64,
        missing: &[RecordKey],
        values: Vec<Option<Bytes>>,
    ) -> Result<bool> {
        let mut values = values.into_iter();
        let mut start = 0;
        loop {
            let mut size_bytes = 0;
            let some = values.as_slice().iter().take_while(|value| {
                let is_one_more = size_bytes < FETCHED_RECORDS_BYTES;
                size_bytes += value.as_ref().map_or(0, Vec::len);
                is_one_more
            });
            let end = start + some.count();
            if end > start {
                let before = start.checked_sub(1).and_then(|before| missing.get(before)).copied();
                let keys = missing.get(start..end).unwrap_or_default();
                if !collection.journal.add_fetched(epoch, before, keys, values.by_ref().take(end - start))? {
                    return Ok(false);
                }
                start = end;
            } else if collection.journal.sort_some(SORTED_SECTIONS_MAX) {
                return Ok(true);
            }
            // A row takes about eight bytes.
            if let Some(turn) = self.turn((size_bytes / 8).max(LOOK_WORK))? {
                turn.await?;
            }
        }
    }
}

/// Allocates memory for the records of `values` at once. A module's memory grows slowly: in small steps, growing took
/// most of the time of reading many records.
fn reserve(values: &[Option<Bytes>]) {
    let stored_bytes: usize = values.iter().flatten().map(Vec::len).sum();
    let mut room: Vec<u8> = Vec::new();
    // If there is not enough memory, the allocation that needs it reports it.
    let _ = room.try_reserve_exact((RECORD_GROWTH * stored_bytes).min(2 * JOURNAL_SIZE_BYTES_MAX));
    drop(std::hint::black_box(room));
}
