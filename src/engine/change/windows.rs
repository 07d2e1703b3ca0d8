//! Updates of metadata in collections with `dedupe`: the measurements of two series may become one.
//!
//! A measurement whose metadata changes counts as inserted at that moment. Its bucket is removed, and its rows become
//! journal records of the other series, in one changeset for the whole command: whatever is read or folded next meets
//! them as it meets any other rows.

use std::rc::Rc;

use super::statements::{ChangeKind, Changed, MeasurementChange};
use crate::block::{Block, Column};
use crate::bucket::unpack;
use crate::catalog::stage_windows;
use crate::engine::Engine;
use crate::engine::buckets::bucket_changes::{BucketChanges, ScannedPage};
use crate::engine::journal::CommitOrder;
use crate::engine::read::scan::Scan;
use crate::engine::read::unit::Unit;
use crate::engine::store::keyspace;
use crate::error::{Error, Result};
use crate::limits::LOOK_WORK;
use crate::query::ReadPlan;
use crate::storage::{Changeset, LocalFuture};
use crate::value::{FieldSet, OwnedValue};

impl Engine {
    /// Changes the metadata of the measurements that match, in an aimed scan whose matches are folded.
    ///
    /// Errors: as `change`.
    /// Boxed, because it is in the second half of the module.
    #[inline(never)]
    pub(super) fn move_measurements<'a>(
        &'a self,
        scan: &'a mut Scan,
        plan: &'a ReadPlan,
        change: &'a MeasurementChange<'_>,
        changed: &'a mut Changed,
    ) -> LocalFuture<'a, ()> {
        Box::pin(self.change_and_move(scan, plan, change, changed))
    }

    /// Ends a scan that has changed all it found.
    ///
    /// Errors: `WriteConflict` if others have changed buckets since: they may have moved measurements away before the
    /// scan came to them. Those of storage.
    /// Boxed, because it is in the second half of the module.
    #[inline(never)]
    pub(super) fn expect_nothing_moved<'a>(&'a self, scan: &'a Scan) -> LocalFuture<'a, ()> {
        Box::pin(self.nothing_moved(scan))
    }

    async fn nothing_moved(&self, scan: &Scan) -> Result<()> {
        match self.journal_snapshot(scan.collection(), &[]).await?.epoch == scan.epoch() {
            true => Ok(()),
            false => Err(Error::write_conflict("Measurements may have moved to other buckets")),
        }
    }

    async fn change_and_move(
        &self,
        scan: &mut Scan,
        plan: &ReadPlan,
        change: &MeasurementChange<'_>,
        changed: &mut Changed,
    ) -> Result<()> {
        let ChangeKind::Update(update) = &change.kind else { return Ok(()) };
        let collection = Rc::clone(scan.collection());
        let entry = collection.entry();
        let options = &entry.options.timeseries;
        let (mut units, mut rows, mut page): (Vec<Unit>, Vec<Block>, _) = (Vec::new(), Vec::new(), Changed::default());
        let mut changes = BucketChanges::new(&collection);
        while let Some(found) = self.next_page(scan).await? {
            for unit in found {
                let Some(stored) = &unit.stored else { continue };
                let view = stored.view(options)?;
                if view.closed() || !plan.may_match(&view)? {
                    continue;
                }
                if let Some(new) = collection.changed_meta(&unit, &view, change, update, &mut page)? {
                    let mut moved = unpack(&view, &FieldSet::All, options)?;
                    if let (Some(name), Some(meta)) = (collection.meta_field(), new.as_ref().map(OwnedValue::view)) {
                        moved.set_column(name, Column::constant(meta, moved.rows()));
                    }
                    rows.push(moved);
                    changes.remove(&unit)?;
                    units.push(unit);
                }
                if let Some(turn) = self.turn(LOOK_WORK)? {
                    turn.await?;
                }
            }
        }
        if rows.is_empty() {
            self.nothing_moved(scan).await?;
        } else {
            let staged = stage_windows(Block::concat(rows), options)?;
            let order = CommitOrder { moved: true, ..self.next_order(&collection) };
            let mut records = Changeset::new();
            let written = self.add_records(&collection, staged, order, &mut records);
            records.require(keyspace::exists(&collection.id(), order.generation));
            changes.add(records);
            let epoch = changes.commit(self, scan.epoch(), Vec::new(), ScannedPage::of(&units, None)).await?;
            scan.set_epoch(epoch);
            collection.journal.committed(written);
        }
        changed.matched += page.matched;
        changed.modified += page.modified;
        Ok(())
    }
}
