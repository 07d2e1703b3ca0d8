//! A collection in this context: its options, open buckets and unfolded commits.

use std::cell::RefCell;
use std::rc::Rc;

use super::index_uses::IndexUses;
use super::known::Knowledge;
use super::work::Work;
use crate::bucket::Dedupe;
use crate::catalog::{Catalog, CatalogOptions, Counter, Totals};
use crate::engine::journal::Journal;
use crate::engine::store::entry::CollectionEntry;
use crate::engine::store::keyspace::{CollectionId, ContextId};
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
    /// Unfolded commits, and the epoch of what memory knows.
    pub(in crate::engine) journal: Journal,
    pub(in crate::engine) known: Knowledge,
    pub(in crate::engine) work: Work,
    pub(in crate::engine) index_uses: IndexUses,
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
            journal,
            // If the generation is another one, the first commit or snapshot detects it.
            known: Knowledge::new(generation),
            work: Work::default(),
            index_uses: IndexUses::new(since_ms),
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
}

/// The span of windows; `None` without `dedupe`.
fn window_ms(entry: &CollectionEntry) -> Option<i64> {
    entry.options.dedupe.as_ref().map(|_| entry.options.timeseries.span_ms())
}
