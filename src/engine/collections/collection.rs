//! A collection as this context knows it: its options, open buckets and unfolded commits.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::bucket_size::BucketSize;
use super::directory::Directory;
use crate::bucket::Dedupe;
use crate::catalog::{Catalog, CatalogOptions, Counter, Totals};
use crate::engine::journal::Journal;
use crate::engine::store::entry::CollectionEntry;
use crate::engine::store::keyspace::{CollectionId, ContextId};
use crate::engine::store::queue::InsertQueue;
use crate::engine::store::signal::Signal;
use crate::value::Collation;

/// A collection in use.
pub struct Collection {
    /// The name that users know.
    pub name: String,
    /// The entry when this context first saw it. Identity, fields and collation never change.
    first: Rc<CollectionEntry>,
    /// The latest entry known to this context.
    entry: RefCell<Rc<CollectionEntry>>,
    /// Open buckets.
    pub(in crate::engine) catalog: RefCell<Catalog>,
    /// True once dates outside the standard range are known to be stored.
    pub(in crate::engine) extended_range: Cell<bool>,
    /// How often the collection was folded, as far as this context knows; 0 without `dedupe`.
    pub(in crate::engine) generation: Cell<u64>,
    /// The number of buckets that a running command of this context has still to move to windows.
    pub(in crate::engine) buckets_to_move: Cell<Option<u64>>,
    /// The time of this context's last commit, with `dedupe`.
    pub(in crate::engine) last_commit_ms: Cell<i64>,
    /// Unfolded commits, and the epoch of what memory knows.
    pub(in crate::engine) journal: Journal,
    pub(in crate::engine) queue: RefCell<InsertQueue>,
    /// The sizes of all stored buckets by id, if known at the epoch of `journal`. Used for `maxBytes`.
    pub(in crate::engine) bucket_sizes: RefCell<Option<Vec<BucketSize>>>,
    /// The stored buckets by series, if somebody has asked for them.
    pub(in crate::engine) directory: RefCell<Option<Rc<Directory>>>,
    /// How often queries have used each index, by number.
    pub(super) index_uses: RefCell<Vec<(u16, i64)>>,
    /// When that counting began.
    pub since_ms: i64,
    /// The running fold.
    pub(in crate::engine) folding: RefCell<Option<Signal>>,
}

impl Collection {
    /// A collection without open buckets, with the journal of context `context`. `seed` must be random.
    pub(in crate::engine) fn new(
        name: &str,
        context: ContextId,
        entry: CollectionEntry,
        catalog_options: CatalogOptions,
        totals: &Rc<Totals>,
        seed: u64,
        since_ms: i64,
    ) -> Collection {
        let options = entry.options.timeseries.clone();
        let generation = u64::from(entry.options.dedupe.is_some());
        let journal = Journal::new(context);
        journal.use_windows(window_ms(&entry));
        let entry = Rc::new(entry);
        Collection {
            name: name.to_owned(),
            catalog: RefCell::new(Catalog::new(options, catalog_options, Rc::clone(totals), seed)),
            entry: RefCell::new(Rc::clone(&entry)),
            first: entry,
            extended_range: Cell::new(false),
            // If it is another one, the first commit or snapshot detects it.
            generation: Cell::new(generation),
            buckets_to_move: Cell::new(None),
            last_commit_ms: Cell::new(i64::MIN),
            journal,
            queue: RefCell::default(),
            bucket_sizes: RefCell::default(),
            directory: RefCell::default(),
            index_uses: RefCell::default(),
            since_ms,
            folding: RefCell::new(None),
        }
    }

    /// Identity and options. Other contexts may change them; reads, folds and deletes notice that, inserts do not.
    pub fn entry(&self) -> Rc<CollectionEntry> {
        Rc::clone(&self.entry.borrow())
    }

    /// Takes over a newer entry from storage. If its bucketing differs, the next rows follow it.
    pub(super) fn set_entry(&self, entry: CollectionEntry) {
        if entry.options.timeseries != self.entry().options.timeseries {
            self.catalog.borrow_mut().reconfigure(entry.options.timeseries.clone());
        }
        self.journal.use_windows(window_ms(&entry));
        *self.entry.borrow_mut() = Rc::new(entry);
    }

    /// Which rows are one measurement; `None` if every row is one.
    pub fn dedupe(&self) -> Option<Dedupe> {
        self.entry.borrow().options.dedupe.clone()
    }

    /// True if several rows may be one measurement.
    pub fn dedupes(&self) -> bool {
        self.entry.borrow().options.dedupe.is_some()
    }

    /// The prefix of its keys.
    pub fn id(&self) -> CollectionId {
        self.first.id()
    }

    /// How strings compare unless a query has a collation of its own.
    pub fn collation(&self) -> &Collation {
        &self.first.options.timeseries.collation
    }

    /// Name of the time field.
    pub fn time_field(&self) -> &str {
        &self.first.options.timeseries.time_field
    }

    /// Name of the metadata field.
    pub fn meta_field(&self) -> Option<&str> {
        self.first.options.timeseries.meta_field.as_deref()
    }

    /// The counters of the catalog in this context.
    pub fn stats(&self) -> crate::catalog::Stats {
        self.catalog.borrow().stats()
    }

    /// Counts events that the catalog cannot see.
    pub fn count(&self, counter: Counter, n: u64) {
        self.catalog.borrow_mut().count(counter, n);
    }

    /// Counts a query that uses an index.
    pub(in crate::engine) fn count_use(&self, number: u16) {
        let mut uses = self.index_uses.borrow_mut();
        match uses.iter_mut().find(|(known, _)| *known == number) {
            Some((_, n)) => *n += 1,
            None => uses.push((number, 1)),
        }
    }

    /// How many queries in this context have used an index.
    pub fn uses_of(&self, number: u16) -> i64 {
        self.index_uses.borrow().iter().find(|(known, _)| *known == number).map_or(0, |(_, n)| *n)
    }
}

/// The span of windows; `None` without `dedupe`.
fn window_ms(entry: &CollectionEntry) -> Option<i64> {
    entry.options.dedupe.as_ref().map(|_| entry.options.timeseries.span_ms())
}
