//! Deletes whole journal records if all of their rows match, without folding them.
//!
//! **Invariant I23**: a record is dropped only if no bucket holds rows of it, so that nothing of it is left. Other
//! contexts notice it as they notice a fold: the epoch moves on.

use std::rc::Rc;

use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::journal::{JournalEntry, RecordKey, SectionGroup, SectionRef};
use crate::engine::read::scan::Scan;
use crate::engine::store::keyspace;
use crate::error::Result;
use crate::listed::IntoList;
use crate::query::ReadPlan;
use crate::storage::{Changeset, KeyRange};
use crate::value::sort_by;

impl Engine {
    /// Removes the records of a scan that has just begun if all of their rows match. Returns the number of rows
    /// removed.
    ///
    /// Errors: those of expressions on the metadata and of storage; `DataCorruptionDetected`; `WriteConflict` if
    /// somebody has changed a bucket meanwhile.
    pub(super) async fn drop_records(&self, collection: &Rc<Collection>, scan: &Scan, plan: &ReadPlan) -> Result<u64> {
        if !plan.is_decided_by_time() {
            return Ok(0);
        }
        let reached = reached_records(scan, plan)?;
        let is_reached =
            |entry: &JournalEntry| reached.as_ref().is_none_or(|keys| keys.binary_search(&entry.key()).is_ok());
        let entries = collection.journal.entries();
        let mut gone: Vec<bool> = Vec::with_capacity(entries.len());
        for entry in &entries {
            gone.push(is_reached(entry) && all_match(plan, entry)?);
        }
        if !gone.contains(&true) || !self.is_unfolded(collection, scan, plan).await? {
            return Ok(0);
        }
        let (id, epoch) = (collection.id(), scan.epoch());
        let mut changes = Changeset::new();
        let next = self.move_epoch(&id, epoch, None, &mut changes);
        let (mut rows, mut keys) = (0, Vec::new());
        let of_one =
            |a: &(&Rc<JournalEntry>, &bool), b: &(&Rc<JournalEntry>, &bool)| a.1 == b.1 && a.0.context == b.0.context;
        for run in entries.iter().zip(&gone).listed().chunk_by(of_one) {
            let (Some((first, true)), Some((last, _))) = (run.first(), run.last()) else { continue };
            let key = |entry: &JournalEntry| keyspace::journal(&id, &entry.context, entry.seq);
            // A context writes its records in order, so no new one can appear between these.
            changes.delete_range(KeyRange { start: key(first), end: [&key(last)[..], &[0]].concat() });
            rows += run.iter().map(|(entry, _)| entry.record.rows.rows() as u64).sum::<u64>();
            keys.extend(run.iter().map(|(entry, _)| entry.key()));
        }
        self.storage.commit(changes).await?;
        self.keep(collection, epoch, next, Vec::new());
        collection.journal.folded(&keys);
        Ok(rows)
    }

    /// True if no stored bucket holds rows of a group that may match, and no such bucket is closed.
    async fn is_unfolded(&self, collection: &Collection, scan: &Scan, plan: &ReadPlan) -> Result<bool> {
        let mut groups: Vec<&Rc<SectionGroup>> = Vec::new();
        for group in scan.journal().groups() {
            if plan.may_match_rows(group.meta(), group.first_ms, group.last_ms)? {
                groups.push(group);
            }
        }
        let ids: Vec<_> = groups.iter().map(|group| group.bucket).listed();
        let stored = self.fetch(collection, &ids).await?;
        let options = &collection.entry().options.timeseries;
        for (group, stored) in groups.into_iter().zip(&stored) {
            let Some(stored) = stored else { continue };
            if group.is_covered(&stored.coverage) || stored.view(options)?.closed() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// The records with rows of series and times that may match, ascending; `None` for all records, if every series
/// matches.
fn reached_records(scan: &Scan, plan: &ReadPlan) -> Result<Option<Vec<RecordKey>>> {
    if !plan.asks_metadata() {
        return Ok(None);
    }
    let mut keys = Vec::new();
    for group in scan.groups() {
        if plan.may_match_rows(group.meta(), group.first_ms, group.last_ms)? {
            keys.extend(group.sections().iter().map(SectionRef::commit));
        }
    }
    sort_by(&mut keys, Ord::cmp);
    Ok(Some(keys))
}

/// True if every row of a record matches, judged by its time and metadata only.
fn all_match(plan: &ReadPlan, entry: &JournalEntry) -> Result<bool> {
    let (sections, (first_ms, last_ms)) = (&entry.record.sections, entry.times);
    if first_ms > last_ms || !plan.all_match_between(first_ms, last_ms) {
        return Ok(false);
    }
    if !plan.asks_metadata() {
        return Ok(true);
    }
    for section in sections {
        let meta = section.meta.as_ref().map(|meta| meta.view());
        if !plan.may_match_rows(meta, section.first_ms, section.last_ms)? {
            return Ok(false);
        }
    }
    Ok(true)
}
