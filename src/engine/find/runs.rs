//! Takes the rows of runs of buckets of few rows at once (`BucketRun`), for queries that do nothing else with them than to
//! filter and pass them on. If their columns are in memory, no bucket is looked at, nor need it be in memory.

// Loaded later.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::find_cursor::{FindCursor, Next};
use super::whole_runs::places_among;
use crate::block::Block;
use crate::bucket::{BucketId, JoinedFields, KeptColumns, compact, joined_rows, note_rows};
use crate::engine::store::bucket_cache::BucketCache;
use crate::engine::store::bucket_runs::BucketRun;
use crate::engine::store::keyspace;
use crate::engine::store::stored_bucket::Coverage;
use crate::error::Result;
use crate::limits::{
    ROWS_TOGETHER, ROWS_TOGETHER_SIZE_BYTES_MAX, RUN_BUCKETS_MAX, RUN_ENDS_AT, SCAN_PAGE_BUCKETS, SMALL_BUCKET_ROWS,
};
use crate::query::{Flow, Sink};
use crate::storage::KeyRange;
use crate::value::{FieldSet, hash, sort_by};

/// Bytes of a cell, for an estimate.
const CELL_BYTES: usize = 8;
/// Columns of rows of which all are wanted, for an estimate.
const ALL_COLUMNS: usize = 16;

/// Rows whose metadata matches, and their numbers, if these are not all.
pub(super) type MatchingRows = (Block, Option<Vec<u32>>);
/// Makes rows with some columns, perhaps in any order. None if one of their buckets or records is damaged, or not in memory.
pub(super) type MakeRows<'a> = dyn FnMut(&FieldSet, bool) -> Vec<Block> + 'a;
/// Keeps the matching rows of a run, without most of their columns, and says whether it could.
pub(super) type KeepLate<'a> = dyn FnMut(&mut FindCursor, MatchingRows, Option<Vec<u32>>) -> Result<bool> + 'a;

/// The buckets or records of rows.
#[derive(Clone, Copy)]
pub(super) enum Among<'a> {
    /// So many, of which each may have rows that match.
    All(usize),
    /// Those of them that have rows which match, of buckets whose rows end there.
    Matching(&'a [u32]),
}

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

impl FindCursor {
    /// Takes the rows of the next run. False if there is none, or if its buckets must be looked at.
    ///
    /// Errors: those of projections.
    pub(super) fn take_run(&mut self, cache: &RefCell<BucketCache>, wanted: usize) -> Result<bool> {
        if self.units.is_empty() {
            self.ahead.begins |= self.scan.range().and_then(keyspace::lowest_bucket) == Some(BucketId::MIN);
        }
        if !self.takes_runs(cache) {
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
        let is_late = self.plan.is_late();
        let mut made = |columns: &FieldSet, in_any_order| self.made(&run, cache, columns, in_any_order);
        let (blocks, buckets) = if is_late {
            (named_rows(&run.kept, run.rows, &self.fields(), &mut made), Among::All(run.buckets))
        } else if self.plan.columns.is_all() {
            self.whole_rows(&run, cache)?
        } else {
            (self.kept_rows(&run.kept, run.rows, &mut made)?, Among::All(run.buckets))
        };
        let mut late = |cursor: &mut FindCursor, rows: MatchingRows, selected: Option<Vec<u32>>| {
            cursor.keep_late(&run, cache, rows, selected)
        };
        // Where the filter fails, it must meet buckets one by one.
        if !self.collect_all(blocks, buckets, is_late.then_some(&mut late))? {
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

    /// Filters the rows of some buckets or records, and passes on those that match, or keeps them if they are `late`. False if
    /// there are none, if the filter fails, or if they cannot be kept.
    ///
    /// Errors: those of projections and of `late`.
    pub(super) fn collect_all(
        &mut self,
        blocks: Vec<Block>,
        parts: Among<'_>,
        mut late: Option<&mut KeepLate<'_>>,
    ) -> Result<bool> {
        let all_match = self.plan.is_decided_by_metadata();
        let before = *self.exec.counters();
        let mut selected = Vec::with_capacity(blocks.len());
        let (mut first, mut count) = (0, 0);
        for block in blocks {
            let rows = first..first + block.rows();
            first = rows.end;
            let found = self.plan.of_matching_series(block);
            match found.and_then(|found| Ok((self.exec.select_complete(&found.0, all_match)?, found))) {
                Ok(found) => {
                    if let Among::Matching(ends) = parts {
                        count += places_among(ends, rows, found.1.1.as_deref(), found.0.as_deref()).len();
                    }
                    selected.push(found);
                }
                Err(_) => self.exec.has_failed = true,
            }
        }
        if let Among::All(parts) = parts {
            count = parts;
        }
        if selected.is_empty() || self.exec.has_failed {
            return Ok(false);
        }
        for (rows, found) in selected {
            let Some(late) = &mut late else {
                self.scanned = self.exec.collect(found.0, rows)? == Flow::Enough;
                continue;
            };
            if !late(self, found, rows)? {
                // Others count them.
                *self.exec.counters() = before;
                return Ok(false);
            }
        }
        let counters = self.exec.counters();
        counters.buckets_passed += count as u64;
        counters.unpacked(count as u64, before.measurements_matched);
        Ok(true)
    }

    /// True if the rows of any buckets may be taken together, and filtered afterwards.
    fn takes_runs(&mut self, cache: &RefCell<BucketCache>) -> bool {
        let plan = &self.plan;
        // Other stages than a `$group` may have enough with the first rows, and extremes with the `control` of few buckets.
        let waits = plan.plan.is_narrowed || plan.plan.waits_for_all;
        let takes_many = self.pipeline.is_none()
            || plan.sorts_all()
            || waits && (plan.plan.rows_per_group.is_none() || plan.asks_metadata() || !plan.is_decided_by_time())
            || waits && self.are_many(cache)
            || self.scan.examined() > self.units.len() + SCAN_PAGE_BUCKETS / 4;
        // A limit may be reached with few buckets.
        let is_far = self.scan.examined() > self.units.len() + SCAN_PAGE_BUCKETS;
        takes_many
            && plan.may_take_runs()
            && (plan.sorts_all() || self.exec.takes_all() || is_far)
            && !self.exec.has_failed
            && !self.scan.collection().dedupes()
    }

    /// True if many buckets are at hand or ahead.
    fn are_many(&self, cache: &RefCell<BucketCache>) -> bool {
        let ahead = |range| cache.borrow().runs_of(range).0 > SCAN_PAGE_BUCKETS;
        self.scan.examined() >= SCAN_PAGE_BUCKETS || self.units.is_empty() && self.scan.range().is_some_and(ahead)
    }

    /// The run where the scan stands, unless journals have rows that are to be read with its buckets.
    fn known_run(&mut self, cache: &RefCell<BucketCache>) -> Option<Rc<BucketRun>> {
        self.scan.expect_runs();
        let range = self.scan.range()?;
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
        let count = self.units.len();
        // Others may have taken the first buckets of the page.
        let begins = std::mem::take(&mut self.ahead.begins) && count == page;
        let are_small = count <= page && self.are_small();
        let may_read_again = self.scan.enlarge_pages(are_small && count == page, page);
        let Some(covered) = self.scan.page_for_runs().filter(|_| are_small) else { return };
        let Some(next) = self.units.last() else { return };
        let collection = self.scan.collection().id();
        let next = keyspace::buckets(&collection, &next.unit.id, &next.unit.id);
        let mut start = if count == page { covered.start.clone() } else { next.start };
        let end = Some(&covered.end).filter(|end| {
            begins
                && self.scan.range().is_none()
                && **end == keyspace::buckets(&collection, &BucketId::MIN, &BucketId::MAX).end
        });
        let (mut left, mut buckets, mut rows, mut size_bytes) = (count, 0, 0, 0);
        let (mut coverage, mut row_ends) = (Coverage::default(), Vec::new());
        for (at, next) in (0..count).zip(&self.units).rev() {
            (buckets, rows) = (buckets + 1, rows + self.small_rows(next).unwrap_or_default());
            row_ends.push(u32::try_from(rows).unwrap_or(u32::MAX));
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
            let (coverage, ends) = (std::mem::take(&mut coverage), std::mem::take(&mut row_ends).into());
            let (unpacked, kept) = (Cell::default(), KeptColumns::default());
            let run = BucketRun { collection, range, buckets, rows, size_bytes, ends, coverage, unpacked, kept };
            self.ahead.runs.1.insert(0, cache.borrow_mut().add_run(run));
            (buckets, rows, size_bytes) = (0, 0, 0);
        }
        if left == count && begins && may_read_again {
            // The run ends behind the page.
            self.units.clear();
            self.scan.read_again(start, page);
            self.ahead.begins = true;
            return;
        }
        self.ahead.begins = left < count;
        if left > 0 && left < count {
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

    /// The columns of a run that the plan reads; of whole rows, those that say which of them matter.
    pub(super) fn fields(&self) -> FieldSet {
        let first = self.plan.plan.decode_first.as_ref().filter(|_| self.plan.columns.is_all());
        let mut fields = first.unwrap_or(&self.plan.columns).clone();
        let has_meta = self.has_meta();
        self.plan.plan.meta_field.iter().filter(|_| has_meta).for_each(|name| fields.add(name));
        fields
    }

    /// What the rows of a run are, if the order of their columns matters.
    pub(super) fn joined_fields(&self) -> JoinedFields {
        let (columns, has_meta) = (Rc::clone(&self.plan.columns), self.has_meta());
        JoinedFields { columns, has_meta, in_any_order: false, only: None }
    }

    fn has_meta(&self) -> bool {
        self.plan.plan.wants_meta || self.plan.asks_metadata()
    }

    /// True if the rows of a run may be taken of its buckets. If the filter or a sort with a limit may leave out some of these, not for
    /// the first time, and not without room to keep what is decoded. But of buckets that come from storage, a look takes about as long.
    fn is_ready(&self, run: &BucketRun) -> bool {
        if self.reads_all() && self.plan.plan.limit.is_none() {
            return true;
        }
        let known = run.kept.named(run.rows, &self.fields());
        run.kept.keep_named(&known.missing, None);
        if !known.are_noted && !self.plan.is_late() && !self.plan.columns.is_all() && !self.plan.plan.in_any_order {
            // What a look has found of use is kept when it is made.
            note_rows(&[(&run.kept, run.rows)], &self.joined_fields(), &|| true);
        }
        known.are_noted && (!self.scan.is_cached() || fits(&run.kept, run.rows, &known.missing))
    }

    /// True if every bucket may have rows that match.
    pub(super) fn reads_all(&self) -> bool {
        self.plan.split.as_ref().is_some_and(|split| split.bucket.is_trivial() && split.meta.is_trivial())
    }

    /// The rows of a run with the columns that the plan reads, as far as they are kept; the others are `made`, perhaps in any order.
    /// None if they cannot be.
    pub(super) fn kept_rows(&self, kept: &KeptColumns, rows: usize, made: &mut MakeRows<'_>) -> Result<Vec<Block>> {
        if self.plan.plan.in_any_order && !self.plan.columns.is_all() {
            return Ok(named_rows(kept, rows, &self.fields(), made));
        }
        let mut columns = FieldSet::clone(&self.plan.columns);
        let has_meta = self.has_meta();
        self.plan.plan.meta_field.iter().filter(|_| has_meta).for_each(|name| columns.add(name));
        let (parts, fields) = ([(kept, rows)], self.joined_fields());
        // They take less room than their buckets, and longer to make again than others.
        note_rows(&parts, &fields, &|| fits(kept, rows, &columns));
        joined_rows(&parts, &fields, &mut || Ok(made(&columns, false)))
    }

    /// Columns of the buckets of a run. None if one is damaged: whoever takes them one by one reports it.
    pub(super) fn made(
        &self,
        run: &BucketRun,
        cache: &RefCell<BucketCache>,
        columns: &FieldSet,
        in_any_order: bool,
    ) -> Vec<Block> {
        // Of those at hand, somebody has looked whether they are ready.
        if self.units.is_empty() && !self.is_ready(run) || !is_known(run, cache) {
            return Vec::new();
        }
        let buckets = self.buckets_of(run, cache).unwrap_or_default();
        self.rows_of(&buckets, columns, in_any_order)
    }
}

/// True if no bucket of a run has changed. During a turn, one may have: its new rows do not belong to columns that were made before.
pub(super) fn is_known(run: &BucketRun, cache: &RefCell<BucketCache>) -> bool {
    let known = cache.borrow().run(&run.range, (false, false));
    known.is_some_and(|known| std::ptr::eq(&*known, run))
}

/// Columns that are kept each by itself, in any order; those that are not kept are `made`. None if they cannot be.
pub(super) fn named_rows(kept: &KeptColumns, rows: usize, fields: &FieldSet, made: &mut MakeRows<'_>) -> Vec<Block> {
    let mut known = kept.named(rows, fields);
    if known.missing.is_empty() {
        return vec![known.rows];
    }
    let Some(mut made) = made(&known.missing, true).pop() else { return Vec::new() };
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
    vec![known.rows]
}

/// True if columns of so many rows need not replace others.
pub(super) fn fits(kept: &KeptColumns, rows: usize, missing: &FieldSet) -> bool {
    let columns = if missing.is_all() { ALL_COLUMNS } else { missing.names().len() };
    kept.fits(columns * rows * CELL_BYTES)
}
