//! Folds journal records of collections with `dedupe`: duplicates meet, and are gone for good.
//!
//! **Invariants I37, I38**: a fold begins the next generation first, and then folds every record of earlier ones, of
//! all contexts. Within one changeset, a window gets all rows of these records. Stored rows stay in their buckets.

// Loaded later.

use std::rc::Rc;

use super::bucket_changes::BucketChanges;
use crate::block::Block;
use crate::bucket::{
    BucketDoc, BucketId, Dedupe, FIRST_BETWEEN, Measurement, PlacedBucket, Placing, Room, SeriesBits, bucket_in_window,
    is_between, merge, start_of, times_of, unpack, whole,
};
use crate::engine::Engine;
use crate::engine::collections::collection::Collection;
use crate::engine::journal::{SectionGroup, SectionRef, in_commit_order, moved_rows};
use crate::engine::read::windows::NearBucket;
use crate::engine::store::keyspace::{self, ContextId};
use crate::engine::store::stored_bucket::Coverage;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::{CHANGE_CONFLICTS_MAX, LATE_ROWS_FACTOR};
use crate::listed::IntoList;
use crate::storage::{Changeset, LocalFuture};
use crate::value::{Doc, DocBuf, FieldSet, Interner};

/// Tells records that exist from others.
type IsJournalled<'a> = &'a dyn Fn(&ContextId, u64) -> bool;

impl Engine {
    /// Begins the next generation of a collection, and returns it. All records of earlier ones are in storage by then.
    ///
    /// Errors: `NamespaceNotFound`; those of storage; `WriteConflict` if others kept beginning generations.
    /// Boxed, because it is in the second half of the module.
    #[inline(never)]
    pub(super) fn begin_generation<'a>(&'a self, collection: &'a Rc<Collection>) -> LocalFuture<'a, u64> {
        Box::pin(self.begin_next_generation(collection))
    }

    async fn begin_next_generation(&self, collection: &Rc<Collection>) -> Result<u64> {
        let id = collection.id();
        let mut conflicts = 0;
        loop {
            let generation = collection.known.generation.get();
            let mut changes = Changeset::new();
            changes.require(keyspace::exists(&id, generation));
            changes.delete(keyspace::exists(&id, generation));
            changes.put(keyspace::exists(&id, generation + 1), Vec::new());
            match self.storage.commit(changes).await {
                Ok(()) => {
                    collection.known.generation.set(collection.known.generation.get().max(generation + 1));
                    return Ok(generation + 1);
                }
                Err(e) if e.code == ErrorCode::WriteConflict && conflicts < CHANGE_CONFLICTS_MAX => {
                    conflicts += 1;
                    self.refresh(collection).await?;
                }
                Err(e) => return Err(e),
            }
        }
    }

    /// The changes of one step of a fold, and how many rows turned out to be duplicates.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    /// Boxed, because it is in the second half of the module.
    #[inline(never)]
    pub(super) fn window_changes<'a>(
        &'a self,
        collection: &'a Rc<Collection>,
        epoch: u64,
        step: &'a [Rc<SectionGroup>],
        journalled: IsJournalled<'a>,
    ) -> LocalFuture<'a, (BucketChanges<'a>, u64)> {
        Box::pin(self.changes_of_windows(collection, epoch, step, journalled))
    }

    async fn changes_of_windows<'a>(
        &'a self,
        collection: &'a Rc<Collection>,
        epoch: u64,
        step: &[Rc<SectionGroup>],
        journalled: IsJournalled<'_>,
    ) -> Result<(BucketChanges<'a>, u64)> {
        let mut changes = BucketChanges::new(collection);
        let Some(dedupe) = collection.dedupe() else { return Ok((changes, 0)) };
        let entry = collection.entry();
        let windows = self.buckets_of_windows(collection, epoch, step, &entry.options.timeseries).await?;
        let (mut duplicates, mut begun) = (0, Interner::default());
        for ((group, near), listed) in step.iter().zip(&windows.near).zip(&windows.listed) {
            let window = FoldedWindow { engine: self, collection, group, near, listed, journalled };
            duplicates += window.fold(&dedupe, &mut changes, &mut begun)?;
        }
        Ok((changes, duplicates))
    }
}

impl Collection {
    /// A bucket with each measurement once, and how many rows it then lacks; `None` if no two rows are one measurement.
    pub(in crate::engine) fn distinct(&self, document: Doc<'_>, engine: &Engine) -> Option<(DocBuf, usize)> {
        let (entry, dedupe) = (self.entry(), self.dedupe()?);
        let options = &entry.options.timeseries;
        let view = BucketDoc::parse(document, options).ok()?;
        let rows = unpack(&view, &FieldSet::All, options).ok()?;
        let found = dedupe.measurements(&rows, &options.time_field, 0..0).ok()??;
        let rest = rows.gather(&found.iter().map(|measurement| measurement.kept).listed());
        let less = rows.rows() - rest.rows();
        let header = (view.id(), view.meta());
        let document = whole(header, view.min_time_ms(), &rest, engine.bucket_format, options).ok()?;
        (less > 0).then_some((document, less))
    }
}

/// A window of a series that is folded.
struct FoldedWindow<'a> {
    engine: &'a Engine,
    collection: &'a Collection,
    group: &'a SectionGroup,
    /// Its stored buckets near the rows of the group.
    near: &'a [NearBucket],
    /// All stored buckets that may belong to it, and some of other series.
    listed: &'a [BucketId],
    journalled: IsJournalled<'a>,
}

/// The rows of a bucket: those that it had, if they do not change, and others in order of time.
#[derive(Default)]
struct SlotRows {
    /// Rows of `all`.
    rows: Vec<u32>,
    /// True if it gets a row that it did not have.
    changes: bool,
}

impl FoldedWindow<'_> {
    /// Adds the new forms of its buckets to `changes`, and the ids of new buckets to those that were `begun` in this
    /// step. Returns the number of rows that are duplicates.
    fn fold(&self, dedupe: &Dedupe, changes: &mut BucketChanges<'_>, begun: &mut Interner) -> Result<u64> {
        let entry = self.collection.entry();
        let options = &entry.options.timeseries;
        // Rows of an interrupted fold, or of a record written twice because the first answer to its commit was lost.
        let is_stored =
            |section: &&SectionRef| self.near.iter().any(|near| near.stored.coverage.covers(section.commit()));
        let mut fresh = in_commit_order(self.group.sections());
        fresh.retain(|section| !is_stored(section));
        if fresh.is_empty() {
            return Ok(0);
        }
        let mut stored: Vec<Block> = Vec::new();
        let overlapping: Vec<usize> = (0..).zip(self.near).filter(|(_, near)| near.overlaps).map(|(at, _)| at).listed();
        for near in self.near.iter().filter(|near| near.overlaps) {
            stored.push(unpack(&near.stored.view(options)?, &FieldSet::All, options)?);
        }
        // Where the rows of each of these buckets end in `all`.
        let ends: Vec<usize> = stored
            .iter()
            .scan(0, |end, rows| {
                *end += rows.rows();
                Some(*end)
            })
            .listed();
        let parts: Vec<_> =
            stored.iter().map(|rows| (rows, 0..rows.rows())).chain(fresh.iter().map(|s| s.rows())).listed();
        let all = Block::concat_slices(&parts);
        let start = ends.last().copied().unwrap_or_default();
        let found = dedupe.measurements(&all, &options.time_field, start..start + moved_rows(&fresh))?;
        let found =
            found.unwrap_or_else(|| (0..all.rows() as u32).map(|row| Measurement { kept: row, first: row }).listed());
        let duplicates = all.rows() - found.len();

        let times = times_of(&all, &options.time_field)?;
        let mut placing = self.placing(&all)?;
        let mut contents: Vec<SlotRows> = Vec::new();
        for Measurement { kept, first } in found {
            let home = ends.partition_point(|end| *end <= first as usize);
            let (slot, is_new) = match overlapping.get(home) {
                Some(slot) => (*slot, kept != first),
                None => (placing.place(times.get(kept as usize).copied().unwrap_or_default()), true),
            };
            if contents.len() <= slot {
                contents.resize_with(slot + 1, SlotRows::default);
            }
            if let Some(content) = contents.get_mut(slot) {
                content.rows.push(kept);
                content.changes |= is_new;
            }
        }
        for (content, (at, slot)) in
            contents.iter().zip(placing.slots.iter().enumerate()).filter(|(content, _)| content.changes)
        {
            let rows = all.gather(&content.rows);
            let before = overlapping.iter().position(|slot| *slot == at).and_then(|home| stored.get(home));
            if before == Some(&rows) {
                // The same measurements were sent again.
                continue;
            }
            let near = self.near.get(at);
            let id = match near {
                Some(near) => near.id,
                None => self.new_id(slot, begun)?,
            };
            let header = (id, self.group.meta());
            let document = match near {
                Some(near) if !near.overlaps => {
                    let additions = [(&rows, 0..rows.rows())];
                    merge(
                        Some(&near.stored.view(options)?),
                        &id,
                        slot.start_ms,
                        header.1,
                        &additions,
                        self.engine.bucket_format,
                        options,
                    )?
                }
                _ => whole(header, slot.start_ms, &rows, self.engine.bucket_format, options)?,
            };
            changes.write(&id, near.map(|near| &*near.stored), self.coverage(near), document)?;
        }
        Ok(duplicates as u64)
    }

    /// What a bucket covers with the rows of the group.
    fn coverage(&self, near: Option<&NearBucket>) -> Coverage {
        let mut coverage = near.map(|near| near.stored.coverage.clone()).unwrap_or_default();
        let now_ms = self.engine.now_ms();
        coverage.expire(now_ms, self.journalled);
        self.group.sections().iter().for_each(|section| coverage.cover(section.commit(), now_ms));
        coverage
    }

    fn placing(&self, all: &Block) -> Result<Placing> {
        let entry = self.collection.entry();
        let options = &entry.options.timeseries;
        let mut slots = Vec::with_capacity(self.near.len());
        for near in self.near {
            let view = near.stored.view(options)?;
            slots.push(PlacedBucket {
                start_ms: view.min_time_ms(),
                last_ms: view.max_time_ms(),
                rows: view.count()?,
                is_between: is_between(&near.id),
                is_stored: true,
            });
        }
        let catalog = self.collection.catalog.borrow();
        let bounds = catalog.options();
        let row_bytes = all.size_bytes().div_ceil(all.rows().max(1)).max(1);
        let in_order =
            (bounds.bucket_size_bytes_max / row_bytes).max(bounds.bucket_count_min).min(bounds.bucket_count_max).max(1);
        let room = Room { in_order, late: LATE_ROWS_FACTOR.saturating_mul(in_order) };
        let first_ms = self.group.first_ms;
        // Outside the standard range ids say nothing, but then all buckets of the window are near.
        let begins = self.listed.iter().any(|id| start_of(id).is_some_and(|start_ms| start_ms <= first_ms))
            || slots.iter().any(|slot| slot.start_ms <= first_ms);
        Ok(Placing::new(slots, Some(self.group.min_time_ms).filter(|_| !begins), room))
    }

    /// An id for a new bucket. Other windows of the step may have begun buckets that would have the same one: ids repeat
    /// every 2^32 seconds, and series may have equal bits.
    fn new_id(&self, slot: &PlacedBucket, begun: &mut Interner) -> Result<BucketId> {
        let series = SeriesBits::of_bucket(&self.group.bucket);
        for copy in if slot.is_between { FIRST_BETWEEN } else { 0 }.. {
            let id = bucket_in_window(slot.start_ms, series, copy);
            let id = id.ok_or_else(|| Error::internal("Too many buckets of a series begin at the same time"))?;
            if !self.listed.contains(&id) && begun.add(id.as_bytes()).1 {
                return Ok(id);
            }
        }
        Err(Error::internal("No id is left"))
    }
}
