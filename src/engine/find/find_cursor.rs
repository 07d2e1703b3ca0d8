//! The state of a query between two batches: fetched buckets that are not unpacked yet, and rows that wait.
//!
//! **Invariant I11**: it holds a page of buckets as they are stored, and unpacked rows for one batch. A sort that does
//! not stream holds everything that matches; with a small limit, the buckets of the rows that it keeps, as they are
//! stored. A sort that begins with metadata holds all its buckets as they are stored, or the rows of small ones.

use std::cell::RefCell;

use super::joined::take_joined;
use super::newest_rows::rows_of_units;
use super::planned::PlannedQuery;
use super::push::push_unit;
use super::runs::RunsAhead;
use super::sieve::Sieve;
use crate::block::{Block, Column, ColumnBuilder, ColumnData};
use crate::bucket::BucketId;
use crate::engine::Engine;
use crate::engine::journal::SectionGroup;
use crate::engine::read::scan::{Scan, in_order};
use crate::engine::read::unit::Unit;
use crate::engine::store::bucket_cache::BucketCache;
use crate::error::Result;
use crate::limits::{BATCH_SIZE_BYTES_MAX, BUCKET_WORK, LOOK_WORK};
use crate::listed::IntoList;
use crate::query::{Exec, Flow, Pipeline, ReadPlan, Sink, SortSpec, Stream, TimeBound, sorted_groups};
use crate::storage::LocalFuture;
use crate::value::sort_by;

/// Rows that are passed on together if buckets give only a few each.
const FEW_ROWS: usize = 256;

/// The state of a query between two batches.
pub struct FindCursor {
    pub(super) scan: Scan,
    pub(super) plan: ReadPlan,
    sieve: Sieve,
    pub(super) exec: Exec,
    /// The stages after the find; `None` if rows are returned as they are.
    pub(super) pipeline: Option<Pipeline>,
    /// True if the stages have seen all rows.
    is_through: bool,
    /// Number of index entries read.
    entries: usize,
    /// Buckets to unpack, in reverse order.
    pub(super) units: Vec<Next>,
    /// Runs of small buckets, whose rows are taken at once.
    pub(super) ahead: RunsAhead,
    /// True if the scan gives buckets at the ends of series and has not given them yet.
    gives_ends: bool,
    pub(super) scanned: bool,
}

/// A bucket to unpack.
pub(super) struct Next {
    pub(super) unit: Unit,
    /// True if all rows of earlier buckets sort before the rows of this one.
    begins_group: bool,
}

impl FindCursor {
    /// A cursor that has read nothing yet. If the sort streams by time, the scan is in that order. `gives_ends`: the scan
    /// gives the buckets at the ends of series and nothing else.
    pub(in crate::engine) fn new(scan: Scan, plan: ReadPlan, entries: usize, gives_ends: bool) -> FindCursor {
        let sort = plan.stream.as_ref().map_or_else(|| plan.plan.sort.clone(), |stream| stream.rows.clone());
        let exec = Exec::with_sort(&plan.plan, sort);
        FindCursor {
            sieve: Sieve::new(&plan),
            scan,
            plan,
            exec,
            pipeline: None,
            is_through: false,
            entries,
            units: Vec::new(),
            ahead: RunsAhead::default(),
            gives_ends,
            scanned: false,
        }
    }

    /// Takes the rows wanted of `units` at once. False if they must be taken bucket by bucket.
    #[inline(never)]
    fn take_ends(&mut self, units: &[Unit]) -> Result<bool> {
        // Loaded by now: only `query::stage` wants the first or the last rows.
        let rows = rows_of_units(self.scan.collection(), &self.plan, units)?;
        let Some(rows) = rows.filter(|rows| rows.rows() > 0) else { return Ok(false) };
        self.plan.stream = None;
        let counters = *self.exec.counters();
        self.exec = Exec::new(&self.plan.plan);
        *self.exec.counters() = counters;
        self.scanned = self.exec.push_ends(rows)? == Flow::Enough;
        Ok(true)
    }

    /// Takes the rows of the next buckets at once, if it can, or has `failed`.
    // Loaded later.
    #[inline(never)]
    fn take_joined_if_loaded(&mut self, cache: &RefCell<BucketCache>, wanted: usize, failed: &mut Result<()>) -> bool {
        self.take_joined(cache, wanted).unwrap_or_else(|error| {
            *failed = Err(error);
            true
        })
    }

    fn take_joined(&mut self, cache: &RefCell<BucketCache>, wanted: usize) -> Result<bool> {
        if self.takes_records() && self.units.is_empty() && self.scan.is_at_groups() {
            return self.take_records(cache);
        }
        if wanted < FEW_ROWS || self.take_run(cache, wanted)? {
            return Ok(wanted >= FEW_ROWS);
        }
        let room = cache.borrow().room();
        let FindCursor { scan, plan, sieve, exec, units, .. } = self;
        // The rows of a group are released before those of the next one are taken.
        let mut is_first = true;
        let mut next = units
            .iter()
            .rev()
            .map_while(|next| (std::mem::take(&mut is_first) || !next.begins_group).then_some(&next.unit));
        let (count, flow) = take_joined(scan.collection(), plan, (sieve, &room), exec, wanted, &mut next)?;
        units.truncate(units.len() - count);
        self.scanned = flow == Flow::Enough;
        Ok(count > 0)
    }

    /// Puts units at hand, and forgets runs of those before.
    pub(super) fn put_units(&mut self, units: Vec<Unit>) {
        self.units = units.into_iter().rev().map(|unit| Next { unit, begins_group: false }).listed();
        self.ahead.runs.1.clear();
    }

    /// How many rows are missing to `rows`. Stages and sorts do not wait for a certain number of them.
    fn wanted(&self, rows: usize) -> usize {
        let takes_all = self.pipeline.is_some() || self.plan.sorts_all();
        if takes_all { usize::MAX } else { rows.saturating_sub(self.exec.ready()) }
    }

    /// The plan with its statistics.
    pub(in crate::engine) fn into_planned(mut self) -> PlannedQuery {
        let counters = *self.exec.counters();
        let rows_returned = self.pipeline.map_or_else(Vec::new, |pipeline| pipeline.rows_returned());
        PlannedQuery { rows_returned, ..PlannedQuery::of(&self.scan, self.plan, self.entries, counters) }
    }

    /// Where its rows come from.
    pub(in crate::engine) fn scan(&self) -> &Scan {
        &self.scan
    }

    /// Passes the rows through stages. Called once, before the first batch.
    pub(in crate::engine) fn run_through(&mut self, pipeline: Option<Pipeline>) {
        self.pipeline = pipeline;
    }

    pub(in crate::engine) fn is_done(&self) -> bool {
        match &self.pipeline {
            Some(pipeline) => self.is_through && pipeline.ready() == 0,
            None => self.scanned && self.exec.ready() == 0,
        }
    }

    /// Releases rows that sort before all remaining buckets. `wanted` is how many rows the caller needs.
    fn release(&mut self, wanted: usize) -> Result<Flow> {
        let Some(stream) = &self.plan.stream else { return Ok(Flow::Continue) };
        let next = match self.units.last() {
            Some(next) if next.begins_group => return self.exec.release(None, wanted),
            Some(next) => Some(next.unit.id),
            None => self.scan.next_bucket(),
        };
        // With dates outside the standard range, ids say nothing about order; after the last bucket everything is
        // sorted.
        let (Some(ascending), Some(next), false) =
            (stream.time, next, self.scan.collection().known.extended_range.get())
        else {
            return Ok(Flow::Continue);
        };
        let ms = self.reach_ms(&next, ascending);
        let bound = TimeBound { name: &self.plan.plan.time_field, ascending, ms, ends_page: self.units.is_empty() };
        self.exec.release(Some(&bound), wanted)
    }

    /// True if neither this bucket nor any behind it has a row that matters.
    fn is_past(&self, id: &BucketId) -> bool {
        // With dates outside the standard range, ids say nothing about order.
        self.plan.plan.newest.is_some()
            && self.plan.order == Some(false)
            && !self.scan.collection().known.extended_range.get()
            && self.exec.excludes((i64::MIN, self.reach_ms(id, false)), None)
    }

    /// A lower bound of the bucket's times, or an upper bound if not `ascending`.
    fn reach_ms(&self, id: &BucketId, ascending: bool) -> i64 {
        // The id holds the start in whole seconds.
        let span_ms = self.scan.collection().entry().options.timeseries.span_ms();
        let start_ms = i64::from(id.time_seconds()) * 1000;
        if ascending { start_ms } else { start_ms.saturating_add(span_ms).saturating_add(1000) }
    }

    /// True if the bucket may contain a match.
    fn may_match(&self, unit: &Unit) -> Result<bool> {
        let options = &self.scan.collection().entry().options.timeseries;
        let stored = match &unit.stored {
            Some(stored) => self.plan.may_match(&stored.view(options)?)?,
            None => false,
        };
        // An expression that fails here fails again on the rows.
        let may_match = |group: &SectionGroup| {
            self.plan.may_match_rows(group.meta(), group.times().0, group.times().1).unwrap_or(true)
        };
        Ok(stored || unit.unfolded().is_some_and(may_match))
    }

    /// Sorts all buckets by their metadata according to `spec`, and those that tie by time.
    fn put_in_order(&mut self, mut units: Vec<Unit>, spec: &SortSpec, ascending: bool) -> Result<()> {
        sort_by(&mut units, |a, b| in_order(ascending, &a.id, &b.id));
        let options = &self.scan.collection().entry().options.timeseries;
        let mut metas = ColumnBuilder::with_capacity(units.len());
        for unit in &units {
            let meta = match &unit.stored {
                Some(stored) => stored.view(options)?.meta(),
                None => unit.unfolded().and_then(SectionGroup::meta),
            };
            match meta {
                Some(meta) => metas.push(meta),
                None => metas.push_absent(1),
            }
        }
        let mut block = Block::new(units.len());
        block.set_column(options.meta_field.as_deref().unwrap_or_default(), metas.finish());
        let Ok(sorted) = sorted_groups(spec, &block) else {
            // Metadata that cannot be sorted: an error only if a row of that bucket matches.
            self.plan.stream = None;
            self.exec = Exec::new(&self.plan.plan);
            self.put_units(units);
            return Ok(());
        };
        let mut units: Vec<Option<Unit>> = units.into_iter().map(Some).listed();
        let mut next =
            |(row, begins_group): (u32, bool)| Some(Next { unit: units.get_mut(row as usize)?.take()?, begins_group });
        self.units = sorted.into_iter().rev().filter_map(&mut next).collect();
        Ok(())
    }
}

impl Engine {
    /// The next batch of a cursor.
    pub(in crate::engine) async fn next_batch(&self, cursor: &mut FindCursor, batch_size: usize) -> Result<Block> {
        if cursor.pipeline.is_some() {
            // Loaded by now: `query::stage` has made the pipeline.
            return self.next_of_pipeline(cursor, batch_size).await;
        }
        self.fill(cursor, batch_size).await?;
        let mut batch = cursor.exec.take(batch_size, BATCH_SIZE_BYTES_MAX)?;
        let time_field = cursor.scan.collection().time_field();
        if batch.rows() == 0 && !cursor.plan.is_over_buckets() && cursor.plan.plan.projection.keeps_root(time_field) {
            // Callers that take columns get a time column even if the result is empty.
            batch.set_column(time_field, Column::new(ColumnData::Date(Vec::new()), None));
        }
        Ok(batch)
    }

    /// The next batch of a pipeline. Boxed, because it is in the second half of the module.
    #[inline(never)]
    fn next_of_pipeline<'a>(&'a self, cursor: &'a mut FindCursor, batch_size: usize) -> LocalFuture<'a, Block> {
        Box::pin(self.run_pipeline(cursor, batch_size))
    }

    // Loaded later.
    async fn run_pipeline(&self, cursor: &mut FindCursor, batch_size: usize) -> Result<Block> {
        loop {
            if let Some(pipeline) = &mut cursor.pipeline
                && (cursor.is_through || pipeline.ready() >= batch_size)
            {
                return Ok(pipeline.take(batch_size, BATCH_SIZE_BYTES_MAX));
            }
            let rows = self.next_rows(cursor).await?;
            let Some(pipeline) = &mut cursor.pipeline else { return Ok(rows) };
            pipeline.allow_pauses();
            let flow = if rows.rows() > 0 { pipeline.push(rows)? } else { Flow::Enough };
            if self.resume(pipeline, flow).await? == Flow::Continue {
                continue;
            }
            (cursor.is_through, cursor.scanned) = (true, true);
            for step in 0.. {
                let goes_on = pipeline.finish_stage(step)?;
                let _ = self.resume(pipeline, Flow::Continue).await?;
                if !goes_on {
                    break;
                }
                if let Some(turn) = self.turn(LOOK_WORK)? {
                    turn.await?;
                }
            }
        }
    }

    /// Resumes a pipeline until what was begun is done, with turns of the event loop. `flow` is what it has said so far.
    // Loaded later.
    async fn resume(&self, pipeline: &mut Pipeline, mut flow: Flow) -> Result<Flow> {
        while pipeline.is_paused() {
            if let Some(turn) = self.turn(LOOK_WORK)? {
                turn.await?;
            }
            if pipeline.resume()? == Flow::Enough {
                flow = Flow::Enough;
            }
        }
        Ok(flow)
    }

    /// The next rows for stages; no rows after the last.
    pub(in crate::engine) async fn next_rows(&self, cursor: &mut FindCursor) -> Result<Block> {
        // One bucket at a time, as it was unpacked; for a sort, all that is ready. For a stage that computes something of
        // every block, as many rows as are worth the effort.
        let plan = &cursor.plan.plan;
        let rows = if plan.is_narrowed || plan.rows_per_group.is_some() { FEW_ROWS } else { 1 };
        self.fill(cursor, rows).await?;
        cursor.exec.take_for_stage(cursor.plan.plan.in_any_order)
    }

    /// Unpacks buckets until `rows` rows are ready, or all buckets are read.
    async fn fill(&self, cursor: &mut FindCursor, rows: usize) -> Result<()> {
        if cursor.scanned {
            return Ok(());
        }
        while !cursor.scanned && cursor.exec.ready() < rows {
            if cursor.units.last().is_some_and(|next| cursor.is_past(&next.unit.id)) {
                cursor.scanned = true;
                continue;
            }
            let (mut work, mut failed) = (BUCKET_WORK, Ok(()));
            if cursor.take_joined_if_loaded(&self.buckets, cursor.wanted(rows), &mut failed) {
                failed?;
                work = LOOK_WORK;
            } else if cursor.units.is_empty() {
                cursor.scanned = !self.fetch_units(cursor).await?;
                continue;
            } else if let Some(next) = cursor.units.pop() {
                let FindCursor { scan, plan, sieve, exec, .. } = &mut *cursor;
                let pushed = push_unit(scan.collection(), plan, sieve, exec, &next.unit, self.bucket_format)?;
                cursor.scanned = pushed == Flow::Enough;
            }
            let wanted = cursor.wanted(rows);
            cursor.scanned = cursor.scanned || cursor.release(wanted)? == Flow::Enough;
            if let Some(turn) = self.turn(work)? {
                turn.await?;
            }
            // Not for as long as something is left: during a turn, an insert may end the streaming, and then nothing is released.
            while cursor.exec.take_pause() {
                cursor.scanned = cursor.release(wanted)? == Flow::Enough;
                if let Some(turn) = self.turn(BUCKET_WORK)? {
                    turn.await?;
                }
            }
        }
        if !cursor.scanned {
            return Ok(());
        }
        self.note_work(cursor.exec.counters());
        cursor.exec.finish()?;
        while cursor.exec.take_pause() {
            if let Some(turn) = self.turn(BUCKET_WORK)? {
                turn.await?;
            }
            cursor.exec.finish()?;
        }
        Ok(())
    }

    /// Fetches the next buckets; false if none are left.
    async fn fetch_units(&self, cursor: &mut FindCursor) -> Result<bool> {
        if std::mem::take(&mut cursor.gives_ends)
            && let Some(units) = self.next_page(&mut cursor.scan).await?
        {
            if cursor.take_ends(&units)? {
                return Ok(true);
            }
            cursor.scan.give(units);
        }
        if let Some(Stream { buckets: Some(spec), time, .. }) = cursor.plan.stream.clone() {
            let mut units = Vec::new();
            while let Some(page) = self.next_page(&mut cursor.scan).await? {
                for unit in page {
                    if cursor.may_match(&unit)? {
                        units.push(unit);
                    }
                }
            }
            cursor.put_in_order(units, &spec, time.unwrap_or(true))?;
            return Ok(!cursor.units.is_empty());
        }
        let examined = cursor.scan.examined();
        let Some(page) = self.next_page(&mut cursor.scan).await? else { return Ok(false) };
        cursor.ahead.page = cursor.scan.examined() - examined;
        cursor.put_units(page);
        if cursor.plan.unused_stream.is_some() {
            // Loaded by now: it has set this.
            cursor.stream_after_all();
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use bson::{RawDocumentBuf, rawdoc};
    use futures::executor::block_on;

    use super::super::planned::Defaults;
    use super::*;
    use crate::bucket::CollectionOptions;
    use crate::env::fixed::FixedEnv;
    use crate::limits::SCAN_PAGE_BUCKETS;
    use crate::query::FindCommand;
    use crate::storage::memory::MemoryStorage;
    use crate::value::Doc;

    const BUCKETS: usize = 600;
    const BUCKET_ROWS: usize = 5;
    const BATCH: usize = 10;

    /// What a cursor holds between two batches.
    struct Held {
        /// Buckets as they are stored.
        stored: usize,
        /// Measurements that were unpacked and not returned yet.
        unpacked: usize,
        rows_returned: usize,
    }

    /// What the cursor of a query holds after each of its batches. Each bucket has `BUCKET_ROWS` rows, and is of a series of its own
    /// or, if `by_hour`, of an hour of its own.
    fn held_after_each_batch(by_hour: bool, sort: RawDocumentBuf) -> Vec<Held> {
        let storage = Rc::new(MemoryStorage::new());
        let engine = || Engine::new("d", storage.clone(), Rc::new(FixedEnv::default()), [1; 8]);
        let rows = BUCKETS * BUCKET_ROWS;
        let numbers = |f: &dyn Fn(i64) -> i64| (0..rows as i64).map(f).collect::<Vec<i64>>();
        let (hour, series) = if by_hour { (3_600_000, 1) } else { (0, BUCKETS as i64) };
        let mut block = Block::new(rows);
        let times = ColumnData::Date(numbers(&|row| row / BUCKET_ROWS as i64 * hour + row % BUCKET_ROWS as i64));
        block.set_column("t", Column::new(times, None));
        block.set_column("m", Column::new(ColumnData::I64(numbers(&|row| row / BUCKET_ROWS as i64 % series)), None));
        block.set_column("v", Column::new(ColumnData::I64(numbers(&|row| row * 7919 % 3001)), None));
        let create = rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } };
        let options =
            CollectionOptions::parse_create(Doc::parse(create.as_bytes()).unwrap(), FixedEnv::NOW_MS).unwrap();
        block_on(async {
            let writer = engine();
            writer.create_collection("c", options).await.unwrap();
            let collection = writer.existing_collection("c").await.unwrap();
            writer.insert(&collection, block).await.unwrap();
            writer.flush().await.unwrap();
            let reader = engine();
            let command = rawdoc! { "find": "c", "sort": sort, "batchSize": BATCH as i32 };
            let command = Doc::parse(command.as_bytes()).unwrap();
            let options = |_: Defaults<'_>| FindCommand::parse(command, &reader.globals()).map(Into::into);
            let (mut cursor, _) = reader.open_cursor("c", false, &options, None).await.unwrap().unwrap();
            let (mut held, mut rows_returned) = (Vec::new(), 0);
            while !cursor.is_done() {
                rows_returned += reader.next_batch(&mut cursor, BATCH).await.unwrap().rows();
                let unpacked = cursor.exec.counters().measurements_examined as usize - rows_returned;
                held.push(Held { stored: cursor.units.len(), unpacked, rows_returned });
            }
            assert_eq!(rows_returned, rows);
            held
        })
    }

    #[test]
    fn a_find_or_a_streaming_sort_holds_a_page_of_stored_buckets_and_unpacks_one_batch() {
        for (by_hour, sort) in
            [(false, rawdoc! {}), (true, rawdoc! {}), (true, rawdoc! { "t": 1 }), (true, rawdoc! { "t": -1 })]
        {
            let held = held_after_each_batch(by_hour, sort.clone());
            let stored = held.iter().map(|held| held.stored).max().unwrap();
            assert!((100..=SCAN_PAGE_BUCKETS).contains(&stored), "{sort:?} held {stored} stored buckets");
            let unpacked = held.iter().map(|held| held.unpacked).max();
            assert!(unpacked <= Some(BATCH + 2 * BUCKET_ROWS), "{sort:?} held {unpacked:?} unpacked rows");
        }
    }

    #[test]
    fn a_sort_that_does_not_stream_holds_everything_that_matches() {
        for held in held_after_each_batch(false, rawdoc! { "v": 1 }) {
            assert_eq!((held.stored, held.unpacked + held.rows_returned), (0, BUCKETS * BUCKET_ROWS));
        }
    }

    #[test]
    fn a_sort_that_begins_with_metadata_holds_all_its_buckets_as_they_are_stored() {
        for sort in [rawdoc! { "m": 1 }, rawdoc! { "m": -1, "t": 1 }] {
            for held in held_after_each_batch(false, sort) {
                assert!(held.unpacked <= BATCH, "held {} unpacked rows", held.unpacked);
                assert_eq!(held.stored + (held.unpacked + held.rows_returned) / BUCKET_ROWS, BUCKETS);
            }
        }
    }
}
