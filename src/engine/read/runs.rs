//! Scans that pass over runs of small buckets.

use std::rc::Rc;

use super::scan::{Rest, Scan};
use super::unit::Unit;
use crate::block::Bitmap;
use crate::engine::journal::{ByBucket, RecordRun, SectionGroup};
use crate::engine::store::bucket_runs::BucketRun;
use crate::limits::{RECORD_GROUPS_MIN, RUN_PAGE_BUCKETS, SCAN_PAGE_BUCKETS, SMALL_BUCKET_ROWS};
use crate::listed::IntoList;
use crate::query::ReadPlan;
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

    /// True if the rows of all records take less time than a look at each group that may have a row that matches, and if they show the
    /// fields that are read in the order in which the groups do, or may show them `in_any_order`.
    pub(in crate::engine) fn prefers_records(&self, plan: &ReadPlan, in_any_order: bool) -> bool {
        let open = self.met.iter().filter(|met| !**met).count();
        if open < RECORD_GROUPS_MIN || self.is_ordered() || self.collection().dedupes() || !plan.may_take_runs() {
            return false;
        }
        let records = self.journal().records();
        let runs = (0..).map_while(|at| records.run(at));
        let runs = runs.filter(|run| plan.may_match_times(run.times.0, run.times.1));
        let is_compared = |name: &str| plan.columns.contains(name) && *name != *plan.plan.time_field;
        runs.map(|run| run.rows).sum::<usize>() <= open * SMALL_BUCKET_ROWS
            && (in_any_order || records.have_one_order(&is_compared))
    }

    /// Leaves groups to whoever takes all records. Only those of which a stored bucket holds some rows are returned with it.
    pub(in crate::engine) fn leave_to_records(&mut self) {
        self.leaves_groups = true;
    }

    /// True if some groups were met or left out.
    pub(in crate::engine) fn is_any_met(&self) -> bool {
        self.met.contains(&true)
    }

    /// Which rows of a run are of groups that were neither met nor left out; `None` if all are.
    pub(in crate::engine) fn open_rows(&self, run: &RecordRun) -> Option<Bitmap> {
        let mut open = Bitmap::filled(0, true);
        for (section, group) in self.journal().records().sections(run) {
            open.push_many(self.met.get(group) == Some(&false), section.rows);
        }
        (!open.all()).then_some(open)
    }

    /// Takes all groups for returned.
    pub(in crate::engine) fn meet_all(&mut self) {
        self.met.fill(true);
    }

    /// The rows of the records from `first` on as units, unless their groups were met or left out.
    pub(in crate::engine) fn units_from(&self, first: usize) -> Vec<Unit> {
        let records = self.journal().records().entries().get(first..).unwrap_or_default();
        let rest = Rc::new(ByBucket::of(records.iter()));
        let is_open = |group: &SectionGroup| {
            let at = self.journal().position(group);
            at.is_some_and(|at| self.met.get(at) == Some(&false))
        };
        let open = rest.groups().iter().enumerate().filter(|(_, group)| is_open(group));
        open.map(|(number, group)| Unit::of_journal(group.bucket, number, &rest)).listed()
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
