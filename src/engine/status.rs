//! Totals over the catalogs of this context.

use super::Engine;
use crate::catalog::Stats;

/// The state of all catalogs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Status {
    /// Gauges of existing collections; counters also include dropped ones.
    pub stats: Stats,
    /// Number of buckets whose state is kept.
    pub managed: usize,
    /// How often buckets were changed other than by inserts.
    pub era: u64,
    /// Eras with buckets. A catalog drops at once what an era ends, so there is one for each collection with open
    /// buckets.
    pub eras_in_use: usize,
}

impl Engine {
    /// The state of all catalogs; `None` while no existing collection has counted anything.
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

    /// Identifies this opening of the database: sixteen hex digits.
    pub fn context_name(&self) -> String {
        format!("{:016x}", u64::from_be_bytes(self.context))
    }
}
