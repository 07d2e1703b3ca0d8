//! Takes the rows of runs of buckets of few rows at once (`BucketRun`), for queries that do nothing else with them than to
//! filter and pass them on. If their columns are in memory, no bucket is looked at, nor need it be in memory.

// Loaded later.

use std::cell::RefCell;
use std::rc::Rc;

use super::find_cursor::{FindCursor, Next};
use super::joined::joined;
use super::planned::PlannedQuery;
use crate::block::{Block, Column};
use crate::bucket::{BucketId, JoinedFields, KeptColumns, compact, joined_rows, unpack};
use crate::engine::Engine;
use crate::engine::read::scan::Scan;
use crate::engine::store::bucket_cache::BucketCache;
use crate::engine::store::bucket_runs::BucketRun;
use crate::engine::store::keyspace;
use crate::engine::store::stored_bucket::{Coverage, StoredBucket};
use crate::error::Result;
use crate::limits::{
    ROWS_TOGETHER, ROWS_TOGETHER_SIZE_BYTES_MAX, RUN_BUCKETS_MAX, RUN_ENDS_AT, SCAN_PAGE_BUCKETS, SMALL_BUCKET_ROWS,
};
use crate::listed::IntoList;
use crate::query::{Flow, ReadPlan, Sink};
use crate::storage::{KeyRange, LocalFuture};
use crate::value::{FieldSet, hash, sort_by};

/// Bytes of a cell, for an estimate.
const CELL_BYTES: usize = 8;

/// Rows that a sink takes at once: those of many runs.
const DRAINED_ROWS: usize = 32 * ROWS_TOGETHER;

/// Buckets that tell how many rows those of a range have.
const SAMPLE_BUCKETS: usize = 16;

/// What a cursor knows of the runs before it.
#[derive(Default)]
pub(super) struct RunsAhead {
    /// How many stored buckets have just been fetched, until somebody has looked for runs among them.
    pub(super) page: usize,
    /// Runs of the buckets at hand, in reverse order. The last one begins with the next bucket if so many buckets are left.
    pub(super) runs: (usize, Vec<Rc<BucketRun>>),
    /// True if a run begins where the scan stands.
    begins: bool,
    /// The buckets that have rows in journals, in order.
    unfolded: Option<Vec<BucketId>>,
    /// Whether journal rows are taken with their records, if that is decided.
    pub(super) takes_records: Option<bool>,
    /// The next run of these, and whether somebody has met groups before.
    pub(super) next_records: usize,
    pub(super) is_any_met: bool,
}

impl Engine {
    /// Expects runs, if a query may take some. A sort that could stream collects their rows if it is by metadata, or if many of them
    /// are only in journals: to sort these takes less time than to meet small buckets one by one.
    #[inline(never)]
    pub(super) fn expect_runs_if_loaded(&self, scan: &mut Scan, plan: &mut ReadPlan) {
        if let Some(stream) = plan.stream.take() {
            let are_small = plan.plan.limit.is_none()
                && plan.may_take_runs()
                && (stream.buckets.is_some() && self.prefers_runs(scan, usize::MAX, true)
                    || self.prefers_records(scan, plan, plan.plan.is_narrowed));
            if are_small {
                plan.order = None;
            } else {
                plan.stream = Some(stream);
            }
        }
        if plan.may_take_runs() {
            scan.expect_runs();
        }
    }

    /// True if `drain_runs` is for a plan, whose scan then expects runs.
    #[inline(never)]
    pub(super) fn drains_runs_if_loaded(&self, scan: &mut Scan, plan: &ReadPlan) -> bool {
        let (find, order) = (&plan.plan, plan.order);
        let is_plain =
            find.skip == 0 && find.limit.is_none() && find.sort.is_none() && order.is_none() && !find.wants_meta;
        let takes_runs = is_plain
            && plan.may_take_runs()
            && (self.prefers_runs(scan, usize::MAX, false) || self.prefers_records(scan, plan, true));
        if takes_runs {
            scan.expect_runs();
        }
        takes_runs
    }

    /// True if `Scan::prefers_records`, and if the stored buckets are small as well, or if there are none.
    fn prefers_records(&self, scan: &Scan, plan: &ReadPlan, in_any_order: bool) -> bool {
        let count = |range| self.buckets.borrow().count(&scan.collection().id(), range);
        scan.prefers_records(plan, in_any_order)
            && (scan.range().map(count) == Some((0, true)) || self.prefers_runs(scan, usize::MAX, true))
    }

    /// Pushes the matching rows of a scan into a sink, as they come from runs.
    ///
    /// Errors: those of reads, and those of the sink.
    #[inline(never)]
    pub(super) fn drain_runs<'a>(
        &'a self,
        scan: Scan,
        mut plan: ReadPlan,
        entries: usize,
        sink: &'a mut dyn Sink,
    ) -> LocalFuture<'a, PlannedQuery> {
        Box::pin(async move {
            // The order of fields does not matter.
            plan.plan.is_narrowed = true;
            sink.begin(&plan.plan);
            let mut cursor = FindCursor::new(scan, plan, entries, false);
            while !cursor.is_done() {
                let rows = self.next_batch(&mut cursor, DRAINED_ROWS).await?;
                if sink.push(rows, None, true)? == Flow::Enough {
                    break;
                }
            }
            *sink.counters() = *cursor.exec.counters();
            Ok(cursor.into_planned())
        })
    }

    /// True if the rows of all buckets take less time than a look at so many of them, as those of small ones in memory do. Unless they
    /// are in memory from the first to the last, others may be large.
    pub(super) fn prefers_runs(&self, scan: &Scan, wanted: usize, in_memory: bool) -> bool {
        let Some(range) = scan.range() else { return false };
        let (collection, cache) = (scan.collection(), self.buckets.borrow());
        let (count, rows, are_all) = cache.runs_of(range);
        if are_all {
            return count > SCAN_PAGE_BUCKETS && rows <= wanted.min(count).saturating_mul(SMALL_BUCKET_ROWS / 2);
        }
        let (count, is_all) = cache.count(&collection.id(), range);
        let Some((sample, _)) = cache.scan(&collection.id(), range, SAMPLE_BUCKETS).filter(|_| is_all || !in_memory)
        else {
            return false;
        };
        let options = &collection.entry().options.timeseries;
        let rows = |(_, stored): &(_, Rc<StoredBucket>)| stored.view(options).and_then(|view| view.count()).ok();
        let rows: usize = sample.iter().filter_map(rows).sum();
        let rows = rows.saturating_mul(count);
        count > SCAN_PAGE_BUCKETS && rows <= wanted.min(count) * sample.len() * SMALL_BUCKET_ROWS / 2
    }
}

impl FindCursor {
    /// Takes the rows of the next run. False if there is none, or if its buckets must be looked at.
    ///
    /// Errors: those of projections.
    pub(super) fn take_run(&mut self, cache: &RefCell<BucketCache>, wanted: usize) -> Result<bool> {
        if !self.takes_runs() {
            return Ok(false);
        }
        let found = if self.units.is_empty() {
            self.known_run(cache)
        } else {
            self.find_runs(cache);
            let (left, runs) = &mut self.ahead.runs;
            if *left == self.units.len() { runs.pop() } else { None }
        };
        let Some(run) = found.filter(|run| run.rows <= wanted) else { return Ok(false) };
        let blocks = self.kept_rows(&run.kept, run.rows, &mut |columns| self.made(&run, cache, columns))?;
        // Where the filter fails, it must meet buckets one by one.
        if !self.collect_all(blocks, run.buckets)? {
            return Ok(false);
        }
        if self.units.is_empty() {
            self.scan.pass(&run);
            self.ahead.begins = true;
        } else {
            self.units.truncate(self.units.len() - run.buckets);
            self.ahead.runs.0 = self.units.len();
        }
        Ok(true)
    }

    /// Filters the rows of so many buckets or records, and passes on those that match. False if there are none, or if the filter fails.
    ///
    /// Errors: those of projections.
    pub(super) fn collect_all(&mut self, blocks: Vec<Block>, parts: usize) -> Result<bool> {
        let all_match = self.plan.is_decided_by_metadata();
        let matched_before = self.exec.counters().measurements_matched;
        let mut selected = Vec::with_capacity(blocks.len());
        for block in blocks {
            let found = self.plan.of_matching_series(block);
            match found.and_then(|block| Ok((self.exec.select_complete(&block, all_match)?, block))) {
                Ok(found) => selected.push(found),
                Err(_) => self.exec.has_failed = true,
            }
        }
        if selected.is_empty() || self.exec.has_failed {
            return Ok(false);
        }
        let counters = self.exec.counters();
        counters.buckets_passed += parts as u64;
        counters.unpacked(parts as u64, matched_before);
        for (rows, block) in selected {
            self.scanned = self.exec.collect(block, rows)? == Flow::Enough;
        }
        Ok(true)
    }

    /// True if the rows of any buckets may be taken together, and filtered afterwards.
    fn takes_runs(&mut self) -> bool {
        let plan = &self.plan;
        // Other stages than a `$group` may have enough with the first rows, and extremes with the `control` of few buckets.
        let reads_rows = plan.plan.rows_per_group.is_none() || plan.asks_metadata() || !plan.is_decided_by_time();
        let takes_many = self.pipeline.is_none()
            || plan.plan.is_narrowed && reads_rows
            || plan.sorts_all()
            || self.scan.examined() > self.units.len() + SCAN_PAGE_BUCKETS / 4;
        takes_many
            && plan.may_take_runs()
            && (plan.sorts_all() || self.exec.takes_all())
            && !self.exec.has_failed
            && !self.scan.collection().dedupes()
    }

    /// The run where the scan stands, unless journals have rows that are to be read with its buckets.
    fn known_run(&mut self, cache: &RefCell<BucketCache>) -> Option<Rc<BucketRun>> {
        self.scan.expect_runs();
        let range = self.scan.range()?;
        self.ahead.begins |= keyspace::lowest_bucket(range) == Some(BucketId::MIN);
        // The filter drops the rows of buckets in front of the range and behind it. Of one in front of it, none was met before.
        let drops = !self.plan.is_decided_by_metadata();
        let run = cache.borrow().run(range, (drops && self.scan.examined() == 0, drops))?;
        if self.ahead.takes_records == Some(true) {
            return Some(run).filter(|run| !self.scan.journal().records().are_reached(&run.coverage));
        }
        let unfolded = self.ahead.unfolded.get_or_insert_with(|| {
            let mut ids = Vec::new();
            self.scan.journal().groups().iter().for_each(|group| ids.push(group.bucket));
            sort_by(&mut ids, Ord::cmp);
            ids
        });
        // Perhaps the last bucket in front of the run is taken for one of it.
        let next = unfolded.get(unfolded.partition_point(|id| Some(*id) < keyspace::lowest_bucket(&run.range)));
        next.is_none_or(|id| Some(*id) > keyspace::highest_bucket(&run.range)).then_some(run)
    }

    /// Looks for runs in a page that has just come, and gives what is left behind them back to the scan, so that the next page
    /// begins with it.
    fn find_runs(&mut self, cache: &RefCell<BucketCache>) {
        let page = std::mem::take(&mut self.ahead.page);
        if page == 0 {
            return;
        }
        self.ahead.runs.1.clear();
        let begins = std::mem::take(&mut self.ahead.begins);
        let are_small = page == self.units.len() && self.are_small();
        let may_read_again = self.scan.enlarge_pages(are_small, page);
        let Some(covered) = self.scan.page_for_runs().filter(|_| are_small) else { return };
        let collection = self.scan.collection().id();
        let mut start = covered.start.clone();
        let end = Some(&covered.end).filter(|end| {
            begins
                && self.scan.range().is_none()
                && **end == keyspace::buckets(&collection, &BucketId::MIN, &BucketId::MAX).end
        });
        let (mut left, mut buckets, mut rows, mut size_bytes) = (page, 0, 0, 0);
        let mut coverage = Coverage::default();
        for (at, next) in (0..page).zip(&self.units).rev() {
            (buckets, rows) = (buckets + 1, rows + self.small_rows(next).unwrap_or_default());
            let stored = next.unit.stored.iter();
            stored.clone().for_each(|stored| coverage.join(&stored.coverage));
            size_bytes += stored.map(|stored| stored.size_bytes()).sum::<usize>();
            let is_long =
                rows >= ROWS_TOGETHER || buckets >= RUN_BUCKETS_MAX || size_bytes >= ROWS_TOGETHER_SIZE_BYTES_MAX;
            let ends = begins && is_long || hash(0, next.unit.id.as_bytes()).is_multiple_of(RUN_ENDS_AT);
            let end = match end {
                Some(end) if at == 0 => end.clone(),
                _ if ends => keyspace::buckets(&collection, &next.unit.id, &next.unit.id).end,
                _ => continue,
            };
            left = at;
            let range = KeyRange { start: std::mem::replace(&mut start, end.clone()), end };
            if !begins {
                // Those in front of the first run are taken for themselves.
                break;
            }
            let (coverage, kept) = (std::mem::take(&mut coverage), KeptColumns::default());
            let run = BucketRun { collection, range, buckets, rows, coverage, kept };
            self.ahead.runs.1.insert(0, cache.borrow_mut().add_run(run));
            (buckets, rows, size_bytes) = (0, 0, 0);
        }
        if left == page && begins && may_read_again {
            // The run ends behind the page.
            self.units.clear();
            self.scan.read_again(start, page);
            self.ahead.begins = true;
            return;
        }
        self.ahead.begins = left < page;
        if left > 0 && left < page {
            self.units.drain(..left);
            self.scan.go_back(start, left);
        }
        self.ahead.runs.0 = self.units.len();
        if self.ahead.runs.1.iter().filter(|run| !self.is_ready(run)).count() > 0 {
            self.ahead.runs.1.clear();
        }
    }

    /// True if the buckets at hand have few rows, and nothing to do with rows in journals.
    fn are_small(&self) -> bool {
        let mut rows = 0;
        self.units.iter().all(|next| {
            rows += self.small_rows(next).unwrap_or(usize::MAX / 2);
            rows <= self.units.len() * SMALL_BUCKET_ROWS
        })
    }

    /// The rows of a bucket; `None` if it is damaged, or if it has something to do with rows in journals.
    fn small_rows(&self, next: &Next) -> Option<usize> {
        let stored = next.unit.stored.as_ref().filter(|_| next.unit.number.is_none())?;
        if stored.coverage.origins().next().is_some() {
            return None;
        }
        stored.view(&self.scan.collection().entry().options.timeseries).and_then(|view| view.count()).ok()
    }

    /// The columns of a run that the plan reads.
    fn fields(&self) -> FieldSet {
        let mut fields = FieldSet::clone(&self.plan.columns);
        let has_meta = self.has_meta();
        self.plan.plan.meta_field.iter().filter(|_| has_meta).for_each(|name| fields.add(name));
        fields
    }

    fn has_meta(&self) -> bool {
        self.plan.plan.wants_meta || self.plan.asks_metadata()
    }

    /// True if the rows of a run may be taken of its buckets. If the filter or a sort with a limit may leave out some of these, not for
    /// the first time, and not without room to keep what is decoded. But of buckets that come from storage, a look takes about as long.
    fn is_ready(&self, run: &BucketRun) -> bool {
        let plan = &self.plan;
        let reads_all = plan.split.as_ref().is_some_and(|split| split.bucket.is_trivial() && split.meta.is_trivial());
        if reads_all && plan.plan.limit.is_none() {
            return true;
        }
        let known = run.kept.named(run.rows, &self.fields());
        run.kept.keep_named(&known.missing, None);
        known.are_noted && (!self.scan.is_cached() || fits(&run.kept, run.rows, &known.missing))
    }

    /// The rows of a run with the columns that the plan reads, as far as they are kept; the others are `made`. None if they cannot be.
    pub(super) fn kept_rows(
        &self,
        kept: &KeptColumns,
        rows: usize,
        made: &mut dyn FnMut(&FieldSet) -> Vec<Block>,
    ) -> Result<Vec<Block>> {
        let in_any_order = self.plan.plan.is_narrowed;
        if !in_any_order {
            let (columns, has_meta) = (Rc::clone(&self.plan.columns), self.has_meta());
            let fields = JoinedFields { columns, has_meta, in_any_order, only: None };
            return joined_rows(&[(kept, rows)], &fields, &mut || Ok(made(&self.fields())));
        }
        // Each column is kept by itself.
        let mut known = kept.named(rows, &self.fields());
        if known.missing.is_empty() {
            return Ok(vec![known.rows]);
        }
        let Some(mut made) = made(&known.missing).pop() else { return Ok(Vec::new()) };
        if !known.are_noted && fits(kept, rows, &known.missing) {
            // They take less room than their buckets, and longer to make again than others.
            kept.keep_named(&known.missing, None);
            known.are_noted = true;
        }
        if known.are_noted {
            // As in `joined_rows`, it is worth it only where they stay.
            compact(&mut made);
        }
        made.columns().iter().for_each(|(name, column)| known.rows.set_column(name, column.clone()));
        kept.keep_named(&known.missing, Some(&known.rows));
        Ok(vec![known.rows])
    }

    /// Columns of the buckets of a run. None if one is damaged: whoever takes them one by one reports it.
    fn made(&self, run: &BucketRun, cache: &RefCell<BucketCache>, columns: &FieldSet) -> Vec<Block> {
        // Of those at hand, somebody has looked whether they are ready.
        if self.units.is_empty() && !self.is_ready(run) {
            return Vec::new();
        }
        let cache = cache.borrow();
        // During a turn, a bucket may have changed: its new rows do not belong to columns that were made before.
        let is_known = cache.run(&run.range, (false, false)).is_some_and(|known| std::ptr::eq(&*known, run));
        if !is_known {
            return Vec::new();
        }
        let blocks = if self.units.is_empty() {
            let found = cache.scan(&run.collection, &run.range, run.buckets);
            found.and_then(|(buckets, _)| {
                buckets.iter().map(|(_, stored)| self.made_of(stored, columns)).listed_if_all()
            })
        } else {
            let next = self.units.iter().rev().take(run.buckets).map(|next| next.unit.stored.as_ref());
            next.map(|stored| self.made_of(stored?, columns)).listed_if_all()
        };
        joined(blocks.filter(|blocks| blocks.len() == run.buckets).unwrap_or_default(), self.plan.plan.is_narrowed)
    }

    fn made_of(&self, stored: &StoredBucket, columns: &FieldSet) -> Option<Block> {
        let options = &self.scan.collection().entry().options.timeseries;
        let view = stored.view(options).ok()?.without_kept();
        let mut rows = unpack(&view, columns, options).ok()?;
        let meta = options.meta_field.as_deref().filter(|name| columns.contains(name)).zip(view.meta());
        let count = rows.rows();
        rows.begin_with(&options.time_field, meta.map(|(name, meta)| (name, Column::constant(meta, count))));
        Some(rows)
    }
}

/// True if columns of so many rows need not replace others.
fn fits(kept: &KeptColumns, rows: usize, missing: &FieldSet) -> bool {
    kept.fits(missing.names().len() * rows * CELL_BYTES)
}
