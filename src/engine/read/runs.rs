//! Scans that pass over runs of small buckets.

use std::ops::Range;

use super::scan::{Rest, Scan};
use super::unit::Unit;
use crate::engine::store::bucket_runs::BucketRun;
use crate::limits::{RUN_PAGE_BUCKETS, SCAN_PAGE_BUCKETS};
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

    /// The range of the last page, if it came from the cache, or if storage was at the epoch that memory knows.
    pub(in crate::engine) fn page_for_runs(&self) -> Option<&KeyRange> {
        self.covered.as_ref().filter(|_| self.page_epoch == Some(self.collection().journal.epoch()))
    }

    /// True if the last page came from the cache.
    pub(in crate::engine) fn is_cached(&self) -> bool {
        self.is_cached
    }

    /// Takes more buckets at once from storage as well, if they are small. True if the last page, of so many, may be read again for
    /// that: from storage, even if the cache has its first part.
    pub(in crate::engine) fn enlarge_pages(&mut self, are_small: bool, page: usize) -> bool {
        let before = self.page_max;
        // By and by, because those behind may be large.
        self.page_max =
            if are_small { (2 * before).clamp(SCAN_PAGE_BUCKETS, RUN_PAGE_BUCKETS) } else { SCAN_PAGE_BUCKETS };
        let is_short = if self.is_cached { page < RUN_PAGE_BUCKETS } else { before < self.page_max };
        is_short && matches!(self.rest, Rest::Range(_))
    }

    /// Goes back by a page, from `start` on, to read it from storage.
    pub(in crate::engine) fn read_again(&mut self, start: Bytes, page: usize) {
        self.skips_cache = true;
        self.go_back(start, page);
    }

    /// True if only groups of the journals are left, in their own order.
    pub(in crate::engine) fn is_at_groups(&self) -> bool {
        matches!(self.rest, Rest::Done) && !self.is_ordered()
    }

    /// How many of these groups were neither met nor left out, and whether one was met.
    pub(in crate::engine) fn open_among(&self, groups: &Range<usize>) -> (usize, bool) {
        let (mut open, mut is_any_met) = (0, false);
        for (met, left_out) in self.met.iter().zip(&self.left_out).take(groups.end).skip(groups.start) {
            open += usize::from(!met);
            is_any_met |= *met && !left_out;
        }
        (open, is_any_met)
    }

    /// Takes these groups for returned.
    pub(in crate::engine) fn take_groups(&mut self, groups: &Range<usize>) {
        self.met.iter_mut().take(groups.end).skip(groups.start).for_each(|met| *met = true);
    }

    /// Those of these groups that were neither met nor left out, which it takes for returned.
    pub(in crate::engine) fn take_units(&mut self, groups: &Range<usize>) -> Vec<Unit> {
        let journal = self.shared_journal();
        let open = journal.groups().iter().zip(&self.met).enumerate().take(groups.end).skip(groups.start);
        let open = open.filter(|(_, (_, met))| !**met);
        let units = open.map(|(number, (group, _))| Unit::of_journal(group.bucket, number, journal)).collect();
        self.take_groups(groups);
        units
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
