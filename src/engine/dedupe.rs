//! Turns `dedupe` on and off for an existing collection.
//!
//! Turning it on moves every stored bucket to the windows of its series, page by page: a changeset removes buckets and
//! writes their rows as journal records. They count as earlier than everything else, so rows that others insert
//! meanwhile win or lose as they should. The pages come from the last bucket to the first, because each page counts as
//! earlier than the one before. If the command is interrupted, running it again continues it.

// Loaded later.

use std::rc::Rc;

use super::Engine;
use super::buckets::bucket_changes::{BucketChanges, ScannedPage};
use super::collections::collection::Collection;
use super::journal::CommitOrder;
use super::read::listed::buckets_of;
use super::read::scan::Access;
use super::read::unit::Unit;
use super::store::entry::{CollectionEntry, Moving};
use super::store::keyspace;
use crate::block::{Block, Column};
use crate::bucket::{BucketId, CollectionOptions, SeriesBits, unpack};
use crate::catalog::stage_windows;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::{CHANGE_CONFLICTS_MAX, FOLD_STEP_BUCKETS};
use crate::storage::{Changeset, LocalFuture};
use crate::value::{Doc, FieldSet};

impl Engine {
    /// Turns `dedupe` on or off, as a `collMod` command says. If it is on already, goes on with what was interrupted.
    ///
    /// Errors: those of the command and of storage; `WriteConflict` if others kept changing the collection.
    /// Boxed, because it is in the second half of the module.
    #[inline(never)]
    pub fn change_dedupe<'a>(&'a self, collection: &'a Rc<Collection>, command: Doc<'a>) -> LocalFuture<'a, ()> {
        Box::pin(self.turn_dedupe(collection, command))
    }

    async fn turn_dedupe(&self, collection: &Rc<Collection>, command: Doc<'_>) -> Result<()> {
        let id = collection.id();
        let mut change = |entry: &mut CollectionEntry, changes: &mut Changeset| {
            let new = entry.options.modified(command, self.now_ms())?;
            if new.dedupe == entry.options.dedupe {
                return Ok(false);
            }
            let by = |options: &CollectionOptions| options.dedupe.as_ref().map(|dedupe| dedupe.by.clone());
            entry.moving = match (by(&entry.options), by(&new)) {
                // Which row stays matters only for later duplicates.
                (Some(before), Some(after)) if before == after => entry.moving,
                (_, None) => Moving::Done,
                // Buckets in windows are left from a time when it was on, perhaps with other paths.
                (None, Some(_)) if !entry.options.timeseries.rebucketed => Moving::Others,
                _ => Moving::All,
            };
            entry.options = new;
            let dedupes = entry.options.dedupe.is_some();
            entry.may_be_mixed |= dedupes;
            // Inserts according to the old entry fail, and read the new one.
            let present = collection.known.generation.get();
            if dedupes != (present > 0) {
                changes.require(keyspace::exists(&id, present));
                changes.delete(keyspace::exists(&id, present));
                changes.put(keyspace::exists(&id, u64::from(dedupes)), Vec::new());
            }
            Ok(true)
        };
        self.change_folded(collection, &mut change).await?;
        self.refresh(collection).await?;
        if collection.entry().moving == Moving::Done {
            return Ok(());
        }
        self.fold(collection, &|_, _| true).await?;
        let (mut conflicts, mut moves) = (0, 0);
        while let Err(e) = self.move_buckets(collection, &mut moves).await {
            if e.code != ErrorCode::WriteConflict || conflicts == CHANGE_CONFLICTS_MAX {
                collection.work.buckets_to_move.set(None);
                return Err(e);
            }
            conflicts += 1;
        }
        collection.work.buckets_to_move.set(None);
        let mut done =
            |entry: &mut CollectionEntry, _: &mut Changeset| Ok(std::mem::take(&mut entry.moving) != Moving::Done);
        self.change_entry(collection, &mut done).await?;
        self.fold(collection, &|_, _| true).await.map(drop)
    }

    /// Changes the entry of a collection in which no record is half folded: otherwise a context that
    /// continues the fold would not find its windows.
    ///
    /// Errors: as `change_entry`; `WriteConflict` if others kept folding.
    /// Boxed, because it is in the second half of the module.
    #[inline(never)]
    pub fn change_when_folded<'a>(
        &'a self,
        collection: &'a Rc<Collection>,
        change: &'a mut dyn FnMut(&mut CollectionEntry, &mut Changeset) -> Result<bool>,
    ) -> LocalFuture<'a, ()> {
        Box::pin(self.change_folded(collection, change))
    }

    async fn change_folded(
        &self,
        collection: &Rc<Collection>,
        change: &mut dyn FnMut(&mut CollectionEntry, &mut Changeset) -> Result<bool>,
    ) -> Result<()> {
        let mut conflicts = 0;
        loop {
            self.fold(collection, &|_, _| true).await?;
            let epoch = collection.journal.epoch();
            let mut change = |entry: &mut CollectionEntry, changes: &mut Changeset| {
                if collection.journal.epoch() != epoch {
                    return Err(Error::write_conflict("Others have folded measurements"));
                }
                change(entry, changes)
            };
            match self.change_entry(collection, &mut change).await {
                Err(e) if e.code == ErrorCode::WriteConflict && conflicts < CHANGE_CONFLICTS_MAX => conflicts += 1,
                outcome => return outcome,
            }
        }
    }

    /// Moves all buckets that are still to be moved.
    async fn move_buckets(&self, collection: &Rc<Collection>, moves: &mut i64) -> Result<()> {
        let all = keyspace::buckets(&collection.id(), &BucketId::MIN, &BucketId::MAX);
        let mut ids = buckets_of(&self.scan_keys(vec![all]).await?)?;
        while !ids.is_empty() {
            collection.work.buckets_to_move.set(Some(ids.len() as u64));
            let page = ids.split_off(ids.len().saturating_sub(FOLD_STEP_BUCKETS));
            *moves += 1;
            self.move_page(collection, page, CommitOrder::of_earlier(*moves)).await?;
        }
        Ok(())
    }

    async fn move_page(&self, collection: &Rc<Collection>, page: Vec<BucketId>, order: CommitOrder) -> Result<()> {
        let entry = collection.entry();
        let options = &entry.options.timeseries;
        let (mut scan, _) = self.begin_scan(collection, &[]).await?;
        scan.aim(Access::Ids(page));
        let (mut units, mut rows): (Vec<Unit>, Vec<Block>) = (Vec::new(), Vec::new());
        let mut changes = BucketChanges::new(collection);
        while let Some(found) = self.next_page(&mut scan).await? {
            for unit in found {
                let Some(stored) = &unit.stored else { continue };
                let view = stored.view(options)?;
                let meta = view.meta().map(|meta| meta.to_owned());
                let is_in_window = SeriesBits::of_bucket(&unit.id) == SeriesBits::of(meta.as_ref());
                if is_in_window && entry.moving == Moving::Others || view.closed() {
                    continue;
                }
                let mut moved = unpack(&view, &FieldSet::All, options)?;
                if let (Some(name), Some(meta)) = (collection.meta_field(), view.meta()) {
                    moved.set_column(name, Column::constant(meta, moved.rows()));
                }
                rows.push(moved);
                changes.remove(&unit)?;
                units.push(unit);
            }
        }
        if rows.is_empty() {
            return Ok(());
        }
        let staged = stage_windows(Block::concat(rows), options)?;
        let mut records = Changeset::new();
        let written = self.add_records(collection, staged, order, &mut records);
        changes.add(records);
        changes.commit(self, scan.epoch(), Vec::new(), ScannedPage::of(&units, None)).await?;
        collection.journal.committed(written);
        Ok(())
    }
}
