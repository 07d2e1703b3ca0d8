//! Deletes: whole buckets where the bucket alone says so, else buckets rewritten without the rows.

use std::rc::Rc;

use super::Engine;
use super::bucket_changes::{BucketChanges, Page};
use super::collection::Collection;
use super::read::Unit;
use crate::block::Bitmap;
use crate::bucket::{BucketDoc, ColumnSet, rebuild, unpack};
use crate::catalog::Section;
use crate::error::{ErrorCode, Result};
use crate::limits::CHANGE_CONFLICTS_MAX;
use crate::query::{Filter, FindOptions, ReadPlan};
use crate::value::{Collation, OwnedValue};

impl Engine {
    /// Deletes the measurements that match; at most one where `only_one`. Answers how many.
    ///
    /// Journal rows of buckets that may hold a match are folded first, so that what was acknowledged before the call is in a
    /// bucket; measurements that others insert meanwhile stay.
    /// `filter` is asked with the default collation of the collection.
    /// Errors: `NamespaceNotFound` does not arise: a missing collection has nothing to delete; those of the filter and of storage.
    pub async fn delete(
        &self,
        name: &str,
        filter: &dyn Fn(&Collation) -> Result<Filter>,
        only_one: bool,
    ) -> Result<u64> {
        let mut deleted = 0;
        let mut conflicts = 0;
        loop {
            let Some(collection) = self.collection(name).await? else {
                return filter(&Collation::default()).map(|_| deleted);
            };
            let filter = filter(collection.collation())?;
            match self.delete_pass(&collection, &filter, only_one, &mut deleted).await {
                // Memory has forgotten it; storage says whether it was made again.
                Err(e) if e.code == ErrorCode::NamespaceNotFound => {}
                Err(e) if e.code == ErrorCode::WriteConflict && conflicts < CHANGE_CONFLICTS_MAX => conflicts += 1,
                other => return other.map(|()| deleted),
            }
        }
    }

    async fn delete_pass(
        &self,
        collection: &Rc<Collection>,
        filter: &Filter,
        only_one: bool,
        deleted: &mut u64,
    ) -> Result<()> {
        let plan = || collection.read_plan(FindOptions { filter: filter.clone(), ..FindOptions::default() }, false);
        let (mut scan, mut aimed) = self.aimed_scan(collection, &plan).await?;
        let span_ms = collection.entry().options.timeseries.span_ms();
        let reached = |section: &Section| {
            let end_ms = section.min_time_ms.saturating_add(span_ms);
            let meta = section.meta.as_ref().map(OwnedValue::view);
            // What fails here fails again on the bucket.
            aimed.may_match_rows(meta, section.min_time_ms, end_ms).unwrap_or(true)
        };
        if self.fold_sections(&scan, &reached).await? {
            (scan, aimed) = self.aimed_scan(collection, &plan).await?;
        }
        while let Some(units) = self.next_page(&mut scan).await? {
            let mut changes = BucketChanges::new(collection);
            let mut gone = 0;
            for unit in &units {
                gone += self.delete_from(collection, &aimed, unit, only_one, &mut changes)?;
                if only_one && gone > 0 {
                    break;
                }
            }
            let page = Page::of(&units, scan.covered());
            let epoch = changes.commit(self, scan.epoch(), Vec::new(), page).await?;
            scan.set_epoch(epoch);
            *deleted += gone;
            if only_one && *deleted > 0 {
                break;
            }
        }
        Ok(())
    }

    /// Adds what deleting from one bucket takes to `changes`; answers how many measurements go.
    fn delete_from(
        &self,
        collection: &Rc<Collection>,
        plan: &ReadPlan,
        unit: &Unit,
        only_one: bool,
        changes: &mut BucketChanges<'_>,
    ) -> Result<u64> {
        let Some(stored) = &unit.stored else { return Ok(0) };
        let options = &collection.entry().options.timeseries;
        let view = BucketDoc::parse(stored.document.view(), options)?;
        if !plan.may_match(&view)? {
            return Ok(0);
        }
        if !only_one && plan.all_match(&view) {
            changes.remove(unit)?;
            return Ok(view.count()? as u64);
        }
        let rows = unpack(&view, &ColumnSet::All, options)?;
        let mut matching = plan.select(&rows, view.meta())?;
        let first = matching.iter().next();
        if only_one && let Some(first) = first {
            matching = Bitmap::from_fn(rows.rows(), |row| row == first);
        }
        if matching.none() {
            return Ok(0);
        }
        let mut keep = matching.clone();
        keep.invert();
        match rebuild(&view, &rows, &keep, self.bucket_format, options)? {
            Some(rest) => changes.write(&unit.id, Some(stored), stored.coverage.clone(), rest)?,
            None => changes.remove(unit)?,
        }
        Ok(matching.count() as u64)
    }
}
