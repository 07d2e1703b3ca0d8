//! Scans that pass over runs of cached buckets.

use super::scan::{Rest, Scan};
use crate::engine::store::bucket_runs::BucketRun;
use crate::limits::RUN_PAGE_BUCKETS;
use crate::storage::{Bytes, KeyRange};

impl Scan {
    /// Takes more buckets at once from the cache, so that whole runs are among them.
    pub(in crate::engine) fn expect_runs(&mut self) {
        self.cached_page_max = RUN_PAGE_BUCKETS;
    }

    /// True if it does.
    pub(in crate::engine) fn expects_runs(&self) -> bool {
        self.cached_page_max > 0
    }

    /// The range of the last page, if it came from the cache.
    pub(in crate::engine) fn cached_page(&self) -> Option<&KeyRange> {
        self.covered.as_ref().filter(|_| self.is_cached)
    }

    /// Takes the buckets of a run, which are the next ones, for returned.
    pub(in crate::engine) fn pass(&mut self, run: &BucketRun) {
        let Rest::Range(range) = &mut self.rest else { return };
        range.start.clone_from(&run.range.end);
        if range.is_empty() {
            self.rest = Rest::Done;
        }
        self.examined += run.buckets;
    }

    /// Takes the last buckets of the last page, which begin at `start`, for not returned.
    pub(in crate::engine) fn go_back(&mut self, start: Bytes, buckets: usize) {
        let Some(covered) = &self.covered else { return };
        match &mut self.rest {
            Rest::Range(range) => range.start = start,
            rest => *rest = Rest::Range(KeyRange { start, end: covered.end.clone() }),
        }
        self.examined -= buckets;
    }
}
