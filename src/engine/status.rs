//! What the catalogs of this context hold and count together.

use super::Engine;
use crate::catalog::Stats;

/// The state of all catalogs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Status {
    /// Gauges of the collections that exist, counters also of those that are gone.
    pub stats: Stats,
    /// Buckets whose state is kept.
    pub managed: usize,
    /// How often buckets were changed by others than inserts.
    pub era: u64,
    /// Eras that have buckets. A catalog forgets at once what an era ends, so it is one for each collection with open buckets.
    pub eras_in_use: usize,
}

impl Engine {
    /// The state of all catalogs; `None` as long as no collection that exists has counted anything.
    pub fn status(&self) -> Option<Status> {
        let mut status = Status { stats: self.totals.gone.get(), era: self.totals.era.get(), ..Status::default() };
        let mut used = false;
        for collection in self.collections.borrow().values() {
            let catalog = collection.catalog.borrow();
            let managed = catalog.managed();
            used |= catalog.stats() != Stats::default();
            status.stats.add(&catalog.stats());
            status.managed += managed;
            status.eras_in_use += usize::from(managed > 0);
        }
        used.then_some(status)
    }

    /// Milliseconds since this context opened the database.
    pub fn uptime_ms(&self) -> i64 {
        self.now_ms().saturating_sub(self.opened_ms).max(0)
    }

    /// What tells this opening of the database from all others: sixteen hex digits.
    pub fn context_name(&self) -> String {
        format!("{:016x}", u64::from_be_bytes(self.context))
    }
}
