//! The state of a catalog: the open buckets of every series, the idle ones among them, and the archived buckets.

use std::rc::Rc;

use super::archive::Archive;
use super::offer::OfferAnswer;
use super::open_bucket::OpenBucket;
use super::open_series::OpenSeries;
use super::options::{CatalogOptions, Totals};
use super::registry::Registry;
use super::stats::{Counter, Stats};
use crate::bucket::{BucketId, IdGenerator, TimeseriesOptions};
use crate::value::{Interner, OwnedValue, hash};

/// Entries of series without a bucket that are kept before all of them are dropped.
const EMPTY_SERIES_MAX: usize = 1000;

/// The buckets of one collection in this context.
pub struct Catalog {
    pub(super) timeseries: TimeseriesOptions,
    pub(super) options: CatalogOptions,
    pub(super) totals: Rc<Totals>,
    pub(super) stats: Stats,
    pub(super) ids: IdGenerator,
    /// Positions in `series` by the bytes of the metadata; no bytes stand for no metadata.
    slots: Interner,
    pub(super) series: Vec<OpenSeries>,
    pub(super) archive: Archive,
    /// Position and time of each bucket that became idle, oldest first. Outdated entries stay until they are reached.
    pub(super) idle: Vec<(usize, u64)>,
    /// How many entries of `idle` were reached.
    pub(super) idle_met: usize,
    pub(super) moment: u64,
    /// How many buckets were opened.
    opened: u64,
    /// Buckets that inserts must not use.
    pub(super) registry: Registry,
    /// Answers that the running batch has not processed.
    pub(super) answers: Vec<(usize, OfferAnswer)>,
    /// What the running batch has staged, per bucket.
    pub(super) staged: Vec<StagedBucket>,
    /// True while they are being committed.
    pub(super) prepared: bool,
    /// Increases whenever the batch's knowledge of this state becomes outdated.
    pub(super) round: u64,
}

/// What a batch adds to one bucket.
pub(super) struct StagedBucket {
    pub slot: usize,
    pub min_time_ms: i64,
    pub id: BucketId,
    pub rows: usize,
    /// True if nothing of the bucket is stored yet.
    pub is_insert: bool,
    /// True if it was opened because its series had no bucket at all.
    pub opened_due_to_metadata: bool,
}

impl Catalog {
    /// A catalog without buckets. `seed` starts the bucket ids and must be random.
    pub fn new(timeseries: TimeseriesOptions, options: CatalogOptions, totals: Rc<Totals>, seed: u64) -> Catalog {
        Catalog {
            timeseries,
            options,
            totals,
            stats: Stats::default(),
            ids: IdGenerator::new(seed),
            slots: Interner::default(),
            series: Vec::new(),
            archive: Archive::default(),
            idle: Vec::new(),
            idle_met: 0,
            moment: 0,
            opened: 0,
            registry: Registry::default(),
            answers: Vec::new(),
            staged: Vec::new(),
            prepared: false,
            round: 1,
        }
    }

    /// The counters.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// The settings.
    pub fn options(&self) -> &CatalogOptions {
        &self.options
    }

    /// Number of buckets with a state: open ones, and those that inserts must not use.
    pub fn managed(&self) -> usize {
        self.stats.active - self.archive.len() + self.registry.len()
    }

    /// Counts events that happen outside the catalog: inserts that wait, and what folds meet.
    pub fn count(&mut self, counter: Counter, n: u64) {
        self.stats[counter] += n;
    }

    /// The position of a series in `series`.
    pub(super) fn slot(&mut self, meta: Option<&OwnedValue>) -> usize {
        let key = meta.map_or(&[][..], OwnedValue::tagged);
        let (slot, is_new) = self.slots.add(key);
        if is_new {
            self.series.push(OpenSeries::new(hash(0, key), meta.cloned()));
        }
        slot
    }

    /// Drops entries of series without buckets once they outnumber those with buckets. No batch may hold positions.
    pub(super) fn compact(&mut self) {
        if self.series.len() <= 2 * self.stats.open_series + EMPTY_SERIES_MAX {
            return;
        }
        let mut numbers = Vec::with_capacity(self.series.len());
        let mut next = 0;
        for series in &self.series {
            let used = series.len() > 0;
            numbers.push(used.then_some(next));
            next += usize::from(used);
        }
        let renumber = |slot: usize| numbers.get(slot).copied().flatten();
        self.slots.renumber(&renumber);
        self.series.retain(|series| series.len() > 0);
        self.idle.retain_mut(|(slot, _)| renumber(*slot).map(|new| *slot = new).is_some());
        // Some of the entries already reached may be gone; reaching others twice does no harm.
        self.idle_met = 0;
    }

    pub(super) fn bucket(&self, slot: usize, index: usize) -> Option<&OpenBucket> {
        self.series.get(slot)?.buckets().get(index)
    }

    /// The position of an open bucket, which begins at `min_time_ms`, among those of its series.
    pub(super) fn index_of(&self, slot: usize, min_time_ms: i64, id: BucketId) -> Option<usize> {
        self.series.get(slot)?.position(min_time_ms, id)
    }

    /// Adds an open bucket, which also counts as active.
    pub(super) fn open(&mut self, slot: usize, mut bucket: OpenBucket) -> usize {
        self.count_memory(bucket.memory_bytes.cast_signed());
        self.count_active(1);
        bucket.number = self.opened;
        self.opened += 1;
        let Some(series) = self.series.get_mut(slot) else { return 0 };
        self.stats.open_series += usize::from(series.len() == 0);
        series.add(bucket)
    }

    /// Removes an open bucket; the caller decides whether it stays active. `OpenSeries::sweep` must follow.
    pub(super) fn remove(&mut self, slot: usize, index: usize) -> Option<&OpenBucket> {
        self.make_busy(slot, index);
        let memory_bytes = self.series.get_mut(slot)?.remove(index)?.memory_bytes;
        self.count_memory(-memory_bytes.cast_signed());
        let series = self.series.get(slot)?;
        self.stats.open_series -= usize::from(series.len() == 0);
        series.buckets().get(index)
    }

    /// Clears the places of removed buckets.
    pub(super) fn sweep(&mut self, slot: usize) {
        self.series.get_mut(slot).into_iter().for_each(OpenSeries::sweep);
    }

    /// Drops an open bucket. `OpenSeries::sweep` must follow.
    pub(super) fn close(&mut self, slot: usize, index: usize) {
        if self.remove(slot, index).is_some() {
            self.count_active(-1);
        }
    }

    pub(super) fn count_active(&mut self, by: isize) {
        self.stats.active = self.stats.active.saturating_add_signed(by);
        self.totals.active.set(self.totals.active.get().saturating_add_signed(by));
    }

    pub(super) fn count_memory(&mut self, by: isize) {
        self.stats.memory_bytes = self.stats.memory_bytes.saturating_add_signed(by);
        self.totals.memory_bytes.set(self.totals.memory_bytes.get().saturating_add_signed(by));
    }

    /// Drops every bucket, because stored buckets were changed outside of the catalog.
    ///
    /// Commits under way go through.
    pub fn clear(&mut self) {
        self.series.clear();
        self.slots = Interner::default();
        self.archive.clear();
        self.idle.clear();
        self.idle_met = 0;
        self.forget_totals();
        self.stats = Stats { active: 0, open_series: 0, idle: 0, memory_bytes: 0, ..self.stats };
        self.round += 1;
        self.next_era();
    }

    /// Fills buckets by other options from now on. Spans only grow, so open buckets stay open and keep their starts.
    pub fn reconfigure(&mut self, timeseries: TimeseriesOptions) {
        self.timeseries = timeseries;
    }

    /// The collection is gone: drops all buckets and adds its counters to those of the process.
    pub fn retire(&mut self) {
        self.clear();
        let mut gone = self.totals.gone.get();
        gone.add(&std::mem::take(&mut self.stats));
        self.totals.gone.set(gone);
    }

    fn forget_totals(&self) {
        let less = |cell: &std::cell::Cell<usize>, share: usize| cell.set(cell.get().saturating_sub(share));
        less(&self.totals.active, self.stats.active);
        less(&self.totals.memory_bytes, self.stats.memory_bytes);
    }
}

impl Drop for Catalog {
    fn drop(&mut self) {
        self.retire();
    }
}

/// Bytes that the metadata adds to a bucket.
pub(super) fn meta_bytes(meta: Option<&OwnedValue>) -> usize {
    meta.map_or(0, |meta| "meta".len() + meta.tagged().len())
}
