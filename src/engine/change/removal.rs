//! Removals of whole buckets and whole journal records that write nothing, for a storage without room.
//!
//! **Invariants I19, I23, I25**: a record is removed only if each of its rows is removed or in a bucket; a bucket only
//! if no record is left whose rows it holds, because without the bucket those rows would come back. All of it is one
//! changeset, to an epoch that was written in advance. Other contexts notice it as they notice a fold.

use std::rc::Rc;

use crate::bucket::{BucketDoc, BucketId};
use crate::engine::Engine;
use crate::engine::buckets::bucket_changes::{BucketChanges, ScannedPage};
use crate::engine::collections::collection::Collection;
use crate::engine::journal::SectionRef;
use crate::engine::read::scan::Scan;
use crate::engine::read::unit::Unit;
use crate::engine::store::keyspace::{self, ContextId};
use crate::engine::store::sorted_map::SortedMap;
use crate::error::Result;
use crate::listed::IntoList;
use crate::storage::Changeset;
use crate::value::{Doc, sort_by};

/// Asked for each stored bucket, with its document and its latest time.
type OfBucket<'a> = &'a dyn Fn(&BucketId, Doc<'_>, &BucketDoc<'_>, i64) -> Result<bool>;
/// Asked for each section, with the stored form of its bucket and the bucket's latest time.
type OfRows<'a> = &'a dyn Fn(&SectionRef, Option<&BucketDoc<'_>>, i64) -> Result<bool>;

/// Selects what to remove. Both functions get the latest time of the bucket, whether stored or in journals.
pub(in crate::engine) struct Doomed<'a> {
    /// True if the stored bucket is to be removed.
    pub bucket: OfBucket<'a>,
    /// True if all rows of the section are to be removed.
    pub rows: OfRows<'a>,
    /// True if buckets with journal rows must be kept.
    pub only_folded: bool,
}

/// What was removed.
#[derive(Default)]
pub(in crate::engine) struct Removed {
    pub buckets: u64,
    pub measurements: u64,
    /// Bytes of the removed bucket documents.
    pub bytes: u64,
}

/// The journals of a scan, and which of their rows are already in buckets.
struct Journals {
    /// In the order of their buckets.
    sections: Vec<Journalled>,
    /// Whether each record is to be removed.
    records: SortedMap<(ContextId, u64), bool>,
}

/// A section of the journals.
struct Journalled {
    bucket: BucketId,
    reference: SectionRef,
    /// True if its bucket holds its rows.
    covered: bool,
    /// True if its bucket is not stored.
    unstored: bool,
}

impl Journals {
    /// The sections of a bucket.
    fn of(&self, bucket: &BucketId) -> impl Iterator<Item = &Journalled> {
        let from = self.sections.partition_point(|section| section.bucket < *bucket);
        self.sections.iter().skip(from).take_while(|section| section.bucket == *bucket)
    }

    fn goes(&self, section: &Journalled) -> bool {
        self.records.get(&section.reference.commit()) == Some(&true)
    }

    /// The sections of records to be removed, in the order of their buckets.
    fn gone(&self) -> impl Iterator<Item = &Journalled> {
        self.sections.iter().filter(|section| self.goes(section))
    }
}

impl Engine {
    /// Removes what `doomed` selects from an aimed scan, as far as that needs no room. Returns what was removed; that
    /// is nothing if no epoch is in reserve.
    ///
    /// Errors: those of `doomed` and of storage; `DataCorruptionDetected`; `WriteConflict` if somebody has changed a
    /// bucket of the collection meanwhile.
    pub(in crate::engine) async fn remove_without_room(&self, scan: &mut Scan, doomed: &Doomed<'_>) -> Result<Removed> {
        let collection = Rc::clone(scan.collection());
        let (id, epoch) = (collection.id(), scan.epoch());
        let next = keyspace::next_in_reserve(epoch);
        let reserved = keyspace::epoch(&id, next);
        let mut removed = Removed::default();
        if self.storage.get_many(std::slice::from_ref(&reserved)).await?.iter().all(Option::is_none) {
            return Ok(removed);
        }
        let journals = self.judge_journals(scan, doomed).await?;
        let mut changes = Changeset::new();
        changes.require(keyspace::epoch(&id, epoch));
        changes.require(reserved);
        changes.delete(keyspace::epoch(&id, epoch));
        let mut gone: Vec<BucketId> = Vec::new();
        while let Some(units) = self.next_page(scan).await? {
            let mut page = BucketChanges::new(&collection);
            for unit in &units {
                // A row that stays behind could be an earlier version of a measurement that goes.
                let may_go = !collection.dedupes() || !scan.has_rows_near(unit)?;
                if may_go && collection.is_doomed(unit, &journals, doomed, &mut removed)? {
                    page.remove_with_records(unit);
                    gone.push(unit.id);
                }
            }
            page.removals(&ScannedPage::of(&units, scan.covered()), &mut changes)?;
        }
        let mut held = gone.clone();
        for section in journals.gone() {
            let is_new = held.last() != Some(&section.bucket);
            removed.buckets += u64::from(is_new && section.unstored);
            if is_new {
                held.push(section.bucket);
            }
            if !section.covered {
                removed.measurements += section.reference.rows().1.len() as u64;
            }
        }
        sort_by(&mut held, Ord::cmp);
        held.dedup();
        let records: Vec<(ContextId, u64)> =
            journals.records.iter().filter(|(_, goes)| **goes).map(|(commit, _)| *commit).listed();
        if gone.is_empty() && records.is_empty() {
            return Ok(removed);
        }
        records.iter().for_each(|(context, seq)| changes.delete(keyspace::journal(&id, context, *seq)));
        let _held = collection.direct_writes(held).await;
        self.storage.commit(changes).await?;
        self.keep(&collection, epoch, next, gone.into_iter().map(|bucket| (bucket, None)).listed());
        collection.journal.folded(&records);
        Ok(removed)
    }

    /// The journals of a scan, and which records are to be removed.
    async fn judge_journals(&self, scan: &Scan, doomed: &Doomed<'_>) -> Result<Journals> {
        let collection = scan.collection();
        let options = &collection.entry().options.timeseries;
        let groups = scan.journal().groups().iter();
        let mut all: Vec<(BucketId, SectionRef)> =
            groups.flat_map(|group| group.sections().iter().map(|section| (group.bucket, section.clone()))).listed();
        sort_by(&mut all, |a, b| a.0.cmp(&b.0));
        let mut ids: Vec<BucketId> = all.iter().map(|(bucket, _)| *bucket).listed();
        ids.dedup();
        let stored = self.fetch(collection, &ids).await?;
        let mut journals = Journals { sections: Vec::with_capacity(all.len()), records: SortedMap::default() };
        for (group, stored) in all.chunk_by(|a, b| a.0 == b.0).zip(&stored) {
            let stored = stored.as_deref();
            let view = stored.map(|stored| stored.view(options)).transpose()?;
            let last_ms = last_of(view.as_ref(), group.iter().map(|(_, reference)| reference));
            for (bucket, reference) in group {
                let commit = reference.commit();
                let covered = stored.is_some_and(|stored| stored.coverage.covers(commit));
                let goes = !collection.dedupes() && (covered || (doomed.rows)(reference, view.as_ref(), last_ms)?);
                match journals.records.get_mut(&commit) {
                    Some(all_go) => *all_go &= goes,
                    None => journals.records.insert(commit, goes),
                }
                let (bucket, reference) = (*bucket, reference.clone());
                journals.sections.push(Journalled { bucket, reference, covered, unstored: stored.is_none() });
            }
        }
        Ok(journals)
    }
}

/// The latest time of a bucket.
fn last_of<'a>(stored: Option<&BucketDoc<'_>>, sections: impl Iterator<Item = &'a SectionRef>) -> i64 {
    let sections = sections.filter_map(|reference| reference.section()).map(|section| section.last_ms);
    sections.fold(stored.map_or(i64::MIN, BucketDoc::max_time_ms), i64::max)
}

impl Collection {
    /// True if a bucket is to be removed; then counts it in `removed`.
    fn is_doomed(&self, unit: &Unit, journals: &Journals, doomed: &Doomed<'_>, removed: &mut Removed) -> Result<bool> {
        let Some(stored) = &unit.stored else { return Ok(false) };
        let view = stored.view(&self.entry().options.timeseries)?;
        let last_ms = last_of(Some(&view), journals.of(&unit.id).map(|section| &section.reference));
        let holds = |section: &Journalled| if section.covered { !journals.goes(section) } else { doomed.only_folded };
        let document = stored.document.view();
        if journals.of(&unit.id).any(holds) || !(doomed.bucket)(&unit.id, document, &view, last_ms)? {
            return Ok(false);
        }
        removed.buckets += 1;
        removed.measurements += view.count()? as u64;
        removed.bytes += document.as_bytes().len() as u64;
        Ok(true)
    }
}
