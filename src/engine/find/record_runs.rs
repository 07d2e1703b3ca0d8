//! Takes the rows of many journal records at once, as `runs` does with those of stored buckets. If there are few rows in each bucket,
//! that takes less time than to put them together by bucket, and to look at each of these.

// Loaded later.

use std::cell::RefCell;

use super::find_cursor::FindCursor;
use super::joined::joined;
use super::runs::Among;
use crate::block::{Bitmap, Block, Column, ColumnBuilder, ColumnData};
use crate::engine::journal::RecordRun;
use crate::engine::store::bucket_cache::BucketCache;
use crate::error::Result;
use crate::listed::IntoList;
use crate::value::{FieldSet, OwnedValue};

impl FindCursor {
    /// True if rows that only journals have are taken with their records, after all stored buckets. It does not depend on batches, and
    /// nor does the order of rows.
    pub(super) fn takes_records(&mut self) -> bool {
        if let Some(takes) = self.ahead.takes_records {
            return takes;
        }
        let takes_all = self.plan.sorts_all() || self.exec.takes_all();
        let in_any_order = self.plan.plan.in_any_order;
        let takes = takes_all && !self.exec.has_failed && self.scan.prefers_records(&self.plan, in_any_order);
        if takes {
            self.scan.leave_to_records();
        }
        self.ahead.takes_records = Some(takes);
        takes
    }

    /// Takes the rows of the next records. False if there are none left.
    ///
    /// Errors: those of projections.
    pub(super) fn take_records(&mut self, cache: &RefCell<BucketCache>) -> Result<bool> {
        let Some(run) = self.scan.journal().records().run(self.ahead.next_records) else {
            self.scan.meet_all();
            return Ok(false);
        };
        if self.ahead.next_records == 0 {
            self.ahead.is_any_met = self.scan.is_any_met();
        }
        let open = if self.ahead.is_any_met { self.scan.open_rows(&run) } else { None };
        let may_match = open.as_ref().is_none_or(|open| !open.none());
        if may_match && self.plan.may_match_times(run.times.0, run.times.1) {
            run.kept.allow(&cache.borrow().room());
            let mut made = |columns: &FieldSet, in_any_order| self.made_of_records(&run, columns, in_any_order);
            let blocks = self.kept_rows(&run.kept, run.rows, &mut made)?;
            let blocks = match &open {
                Some(open) => open_among(&blocks, open),
                None => blocks,
            };
            if !self.collect_all(blocks, Among::All(run.records.len()), None)? {
                // Where the filter fails, it must meet buckets one by one; and damage is reported by whoever does.
                let units = self.scan.units_from(run.records.start);
                self.scan.meet_all();
                self.put_units(units);
                self.ahead.takes_records = Some(false);
                return Ok(true);
            }
        }
        self.ahead.next_records += 1;
        Ok(true)
    }

    /// The rows of a run, with these columns; none if a record is damaged.
    fn made_of_records(&self, run: &RecordRun, columns: &FieldSet, in_any_order: bool) -> Vec<Block> {
        let options = &self.scan.collection().entry().options.timeseries;
        let (time_field, records) = (&options.time_field, self.scan.journal().records());
        let mut blocks = Vec::with_capacity(run.records.len());
        for entry in records.entries().get(run.records.clone()).unwrap_or_default() {
            let rows = &entry.record.rows;
            let times = rows.column(time_field).filter(|times| times.presence().is_none());
            if !times.is_some_and(|times| matches!(times.data(), ColumnData::Date(_))) {
                return Vec::new();
            }
            blocks.push(rows.slice_columns(0..rows.rows(), |name| columns.contains(name)));
        }
        let mut blocks = joined(blocks, in_any_order);
        let meta = options.meta_field.as_deref().filter(|name| columns.contains(name));
        let metas = meta.and_then(|name| Some((name, self.metas_of(run)?)));
        let mut first = 0;
        for block in &mut blocks {
            let rows = first..first + block.rows();
            first = rows.end;
            block.begin_with(time_field, metas.as_ref().map(|(name, metas)| (*name, metas.slice(rows))));
        }
        blocks
    }

    /// The metadata of the rows of a run; `None` if they have none.
    fn metas_of(&self, run: &RecordRun) -> Option<Column> {
        let journal = self.scan.journal();
        // The numbers of series among the different values, from 1 on.
        let mut known = vec![0; journal.series_count()];
        let (mut values, mut numbers) = (ColumnBuilder::new(), Vec::with_capacity(run.rows));
        let mut presence = Bitmap::filled(0, true);
        for (section, group) in journal.records().sections(run) {
            let meta = section.meta.as_ref().map(OwnedValue::view);
            let mut number = 0;
            if let Some(meta) = meta
                && let Some(known) = known.get_mut(journal.series_of(group))
            {
                if *known == 0 {
                    values.push(meta);
                    *known = u32::try_from(values.len()).unwrap_or(u32::MAX);
                }
                number = *known - 1;
            }
            presence.push_many(meta.is_some(), section.rows);
            numbers.resize(numbers.len() + section.rows, number);
        }
        let presence = (!presence.all()).then_some(presence);
        (!values.is_empty()).then(|| Column::new(ColumnData::Dictionary(numbers, values.finish().into()), presence))
    }
}

/// The rows that are `open`, of all rows of some blocks.
fn open_among(blocks: &[Block], open: &Bitmap) -> Vec<Block> {
    let mut first = 0;
    let mut of_block = |block: &Block| {
        let rows = first..first + block.rows();
        first = rows.end;
        block.gather(&open.slice(rows).to_rows())
    };
    blocks.iter().map(&mut of_block).listed()
}
