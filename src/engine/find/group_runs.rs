//! Takes the rows of many journal groups of few rows at once, as `runs` does with those of stored buckets, for a `$group`. If
//! their columns are in memory, no group is looked at but for the number of its rows.

// Loaded later.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

use super::find_cursor::FindCursor;
use super::joined::joined;
use crate::block::{Block, Column};
use crate::bucket::KeptColumns;
use crate::engine::journal::{ByBucket, GroupRun, SectionGroup, SectionRef};
use crate::engine::store::bucket_cache::BucketCache;
use crate::error::Result;
use crate::limits::{ROWS_TOGETHER, RUN_BUCKETS_MAX, SMALL_BUCKET_ROWS};
use crate::listed::IntoList;
use crate::query::{Flow, Sink};
use crate::value::FieldSet;

/// Groups of a run are met one by one if fewer than one in so many may have a row that matches.
const OPEN_SHARE: usize = 8;

impl ByBucket {
    /// The run of groups that begins with the group `first`, as many as have about `ROWS_TOGETHER` rows. It ends where it ended
    /// before, if that was not for lack of groups: groups grow, and the runs behind must not move. None behind the last group.
    fn run_from(&self, first: usize) -> Option<Rc<GroupRun>> {
        let groups = self.groups().get(first..).filter(|groups| !groups.is_empty())?;
        let mut runs = self.runs().borrow_mut();
        let at = runs.partition_point(|run| run.groups.start < first);
        let known = runs.get(at).filter(|run| run.groups.start == first);
        let full = known.filter(|run| run.is_full).map(|run| run.groups.len());
        let (mut count, mut rows) = (0, 0);
        for group in groups {
            if full.map_or(rows >= ROWS_TOGETHER || count == RUN_BUCKETS_MAX, |full| count == full) {
                break;
            }
            (count, rows) = (count + 1, rows + group.rows);
        }
        let groups = first..first + count;
        if let Some(known) = known.filter(|known| known.groups == groups && known.rows == rows) {
            return Some(Rc::clone(known));
        }
        let is_full = full.is_some() || rows >= ROWS_TOGETHER || count == RUN_BUCKETS_MAX;
        let run = Rc::new(GroupRun { groups, rows, is_full, kept: KeptColumns::default() });
        // Those behind begin elsewhere if there are any that overlap.
        let overlapping = runs.iter().skip(at).take_while(|known| known.groups.start < run.groups.end).count();
        runs.splice(at..at + overlapping, [Rc::clone(&run)]);
        Some(run)
    }
}

impl FindCursor {
    /// Takes the rows of the next groups that only journals have. False if there are none left, or if others must take them.
    ///
    /// Errors: those of projections.
    pub(super) fn take_group_run(&mut self, cache: &RefCell<BucketCache>) -> Result<bool> {
        if !self.plan.plan.is_narrowed || !self.scan.is_at_groups() {
            return Ok(false);
        }
        let Some(run) = self.scan.journal().run_from(self.ahead.next_group) else { return Ok(false) };
        let (open, met) = self.scan.open_among(&run.groups);
        // Whether the filter drops the rows of groups that were left out.
        let drops = !self.plan.is_decided_by_metadata() || self.plan.asks_metadata();
        let is_whole = open == run.groups.len();
        let is_small = run.rows <= run.groups.len() * SMALL_BUCKET_ROWS && run.groups.len() > 1;
        let takes = !met && is_small && (is_whole || drops && open * OPEN_SHARE > run.groups.len());
        let matched_before = self.exec.counters().measurements_matched;
        let rows = if takes { self.rows_of_groups(&run, cache) } else { None };
        let selected = match rows {
            Some(rows) => {
                let found = self.plan.of_matching_series(rows);
                let all_match = self.plan.is_decided_by_metadata();
                found.and_then(|rows| Ok((self.exec.select_complete(&rows, all_match)?, rows)))
            }
            None => {
                self.ahead.next_group = run.groups.end;
                let units = self.scan.take_units(&run.groups);
                self.put_units(units);
                return Ok(open == 0 || self.units.is_empty());
            }
        };
        let Ok((selected, rows)) = selected else {
            // Where the filter fails, it must meet groups one by one.
            self.exec.has_failed = true;
            return Ok(false);
        };
        self.ahead.next_group = run.groups.end;
        self.scan.take_groups(&run.groups);
        let counters = self.exec.counters();
        counters.buckets_passed += open as u64;
        counters.unpacked(open as u64, matched_before);
        self.scanned = self.exec.collect(rows, selected)? == Flow::Enough;
        Ok(true)
    }

    /// The rows of a run, with the columns that the plan reads; none if the journals are damaged.
    fn rows_of_groups(&self, run: &GroupRun, cache: &RefCell<BucketCache>) -> Option<Block> {
        run.kept.allow(&cache.borrow().room());
        let mut made = |columns: &FieldSet| self.made_of_groups(run, columns);
        self.named_rows(&run.kept, run.rows, &mut made)
    }

    fn made_of_groups(&self, run: &GroupRun, columns: &FieldSet) -> Option<Block> {
        let groups = self.scan.journal().groups().get(run.groups.clone())?;
        let options = &self.scan.collection().entry().options.timeseries;
        let part = |section: &SectionRef| {
            let (rows, range) = section.rows();
            rows.slice_columns(range, |name| columns.contains(name))
        };
        let parts: Vec<Block> = groups.iter().flat_map(|group| group.sections()).map(part).listed();
        let parts: Vec<(&Block, Range<usize>)> = parts.iter().map(|part| (part, 0..part.rows())).listed();
        let mut rows = Block::new(0);
        rows.append_slices(&parts);
        if let Some(name) = options.meta_field.as_deref().filter(|name| columns.contains(name)) {
            let of_group = |group: &Rc<SectionGroup>| {
                let mut block = Block::new(group.rows);
                group.meta().into_iter().for_each(|meta| block.set_column(name, Column::constant(meta, group.rows)));
                block
            };
            let metas = joined(groups.iter().map(of_group).listed(), true);
            let meta = metas.first().and_then(|metas| metas.column(name)).cloned();
            meta.into_iter().for_each(|meta| rows.set_column(name, meta));
        }
        (rows.rows() == run.rows).then_some(rows)
    }
}
