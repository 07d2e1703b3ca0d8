//! `find`, `count` and `distinct`: pushes pages of a scan into the pure executor.

use super::cursor::{OpenCursor, take_rows};
use super::find_cursor::FindCursor;
use super::planned::{Defaults, ParseFind, PlannedQuery};
use super::push::push_unit;
use super::sieve::Sieve;
use crate::block::Block;
use crate::bucket::BUCKETS_PREFIX;
use crate::engine::Engine;
use crate::engine::read::scan::Scan;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::{BUCKET_WORK, FEW_ROWS_MAX, FIRST_BATCH_COUNT, FORGOTTEN_BATCH_ROWS};
use crate::query::{Counters, FindCommand, Flow, ReadPlan, Sink};
use crate::storage::LocalFuture;
use crate::value::Collation;

/// One batch, and the cursor for the next; id 0 if there is none.
pub struct CursorBatch {
    /// The measurements.
    pub rows: Block,
    /// The cursor's id.
    pub cursor_id: i64,
}

impl Engine {
    /// The first batch of a query over `name`, or over its bucket documents if `raw`. `options` is called with the
    /// defaults of the collection.
    ///
    /// A missing collection counts as empty. Errors: those of storage; `DataCorruptionDetected`; `BadValue` if a sort
    /// meets parallel arrays.
    pub async fn find(&self, name: &str, raw: bool, options: &ParseFind<'_>) -> Result<CursorBatch> {
        self.buckets.borrow().begin_query();
        let Some((mut cursor, options)) = self.open_cursor(name, raw, options, None).await? else {
            return Ok(CursorBatch { rows: Block::new(0), cursor_id: 0 });
        };
        let rows = self.next_batch(&mut cursor, batch_size_of(&options)).await?;
        let keep_open = !options.single_batch && !cursor.is_done();
        let cursor_id = if keep_open { self.keep_cursor(&ns_of(name, raw), cursor) } else { 0 };
        Ok(CursorBatch { rows, cursor_id })
    }

    /// A cursor that has read no bucket yet, for batches of any size; `None` if there is no such collection.
    pub(in crate::engine) async fn open_cursor(
        &self,
        name: &str,
        raw: bool,
        options: &ParseFind<'_>,
        batch_size: Option<usize>,
    ) -> Result<Option<(FindCursor, FindCommand)>> {
        let Some((mut scan, mut plan, options)) = self.begin_find(name, raw, options).await? else { return Ok(None) };
        let entries = scan.entries();
        let batch_size = batch_size.unwrap_or(batch_size_of(&options));
        let wanted =
            plan.plan.limit.map_or(u64::MAX, |limit| limit.saturating_add(plan.plan.skip)).min(batch_size as u64);
        if wanted <= FEW_ROWS_MAX {
            scan.expect_few();
        }
        if wanted > FEW_ROWS_MAX || plan.sorts_all() {
            self.expect_runs_if_loaded(&mut scan, &mut plan);
        }
        let is_of_ends = plan.plan.rows_per_group.is_some();
        let mut asked = None;
        if is_of_ends {
            // Loaded by now: only `query::stage` wants the first or the last rows.
            asked = self.pick_ends(&mut scan, &plan).await?;
        }
        // Loaded by now: as above.
        if asked.is_none() && !(is_of_ends && self.aim_at_values(&mut scan, &plan).await?) {
            self.narrow(&mut scan, &plan).await?;
        }
        if asked.is_none() && is_of_ends {
            // Loaded by now: as above.
            self.forgo_ends(&mut scan, &mut plan);
        }
        if scan.range().is_none() {
            // Buckets of few series are streamed, small or not.
            plan.stream = plan.unused_stream.take().or(plan.stream);
        }
        if let Some(ascending) = plan.order {
            self.order_scan(&mut scan, ascending);
        }
        Ok(Some((FindCursor::new(scan, plan, entries.max(asked.unwrap_or(0)), asked.is_some()), options)))
    }

    /// The next batch of a cursor.
    ///
    /// Errors: `CursorNotFound`, `CursorInUse`, `Unauthorized`; `QueryPlanKilled` if the collection was dropped; those of
    /// storage end the cursor.
    pub async fn get_more(&self, id: i64, ns: &str, batch_size: usize) -> Result<CursorBatch> {
        let mut cursor = self.take_cursor(id, ns)?;
        let (rows, is_done) = match &mut cursor {
            OpenCursor::Query(query) => {
                let rows = self.next_batch(query, batch_size).await.map_err(|error| {
                    self.drop_cursor(id);
                    match error.code {
                        ErrorCode::NamespaceNotFound => Error::new(ErrorCode::QueryPlanKilled, error.into_message()),
                        _ => error,
                    }
                })?;
                (rows, query.is_done())
            }
            OpenCursor::Rows(left) => (take_rows(left, batch_size), left.rows() == 0),
        };
        if is_done {
            self.drop_cursor(id);
            return Ok(CursorBatch { rows, cursor_id: 0 });
        }
        self.put_cursor_back(id, cursor);
        Ok(CursorBatch { rows, cursor_id: id })
    }

    /// Pushes the matching rows of `name`, or its bucket documents if `raw`, into a sink until it has enough. `None` if
    /// there is no such collection.
    ///
    /// Errors: as `find`, and those of the sink.
    pub async fn drain(
        &self,
        name: &str,
        raw: bool,
        options: &ParseFind<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Option<PlannedQuery>> {
        self.buckets.borrow().begin_query();
        let Some((scan, plan, _)) = self.begin_find(name, raw, options).await? else { return Ok(None) };
        self.drain_aimed(scan, plan, sink).await.map(Some)
    }

    /// The same for a scan that is aimed.
    #[inline(never)]
    pub(super) fn drain_aimed<'a>(
        &'a self,
        mut scan: Scan,
        plan: ReadPlan,
        sink: &'a mut dyn Sink,
    ) -> LocalFuture<'a, PlannedQuery> {
        Box::pin(async move {
            let entries = scan.entries();
            let takes_runs = self.drains_runs_if_loaded(&mut scan, &plan);
            self.narrow(&mut scan, &plan).await?;
            if takes_runs {
                // Loaded by now: it has just answered.
                return self.drain_runs(scan, plan, entries, sink).await;
            }
            self.drain_scan(&mut scan, &plan, sink).await?;
            Ok(PlannedQuery::of(&scan, plan, entries, *sink.counters()))
        })
    }

    /// Pushes the matching rows of an aimed scan into a sink until it has enough.
    async fn drain_scan(&self, scan: &mut Scan, plan: &ReadPlan, sink: &mut dyn Sink) -> Result<()> {
        let sieve = Sieve::new(plan);
        sink.begin(&plan.plan);
        'scan: while let Some(units) = self.next_page(scan).await? {
            for unit in units {
                if push_unit(scan.collection(), plan, &sieve, sink, &unit, self.bucket_format)? == Flow::Enough {
                    break 'scan;
                }
                if let Some(turn) = self.turn(BUCKET_WORK)? {
                    turn.await?;
                }
            }
        }
        self.note_work(sink.counters());
        Ok(())
    }

    /// Runs a query to its end and discards the result.
    ///
    /// Errors: as `find`.
    pub async fn try_find(&self, name: &str, raw: bool, options: &ParseFind<'_>) -> Result<Option<PlannedQuery>> {
        let Some((mut cursor, _)) = self.open_cursor(name, raw, options, Some(FORGOTTEN_BATCH_ROWS)).await? else {
            return Ok(None);
        };
        while !cursor.is_done() {
            self.next_batch(&mut cursor, FORGOTTEN_BATCH_ROWS).await?;
        }
        Ok(Some(cursor.into_planned()))
    }

    /// The plan of a query, without reading the collection.
    ///
    /// Errors: those of storage; `BadValue` for a hint that names no index.
    pub async fn plan(&self, name: &str, raw: bool, options: &ParseFind<'_>) -> Result<Option<PlannedQuery>> {
        let Some(collection) = self.collection(name).await? else {
            return options(Defaults::of_nothing(&Collation::default())).map(|_| None);
        };
        let query = options(collection.defaults(raw))?;
        self.refresh(&collection).await?;
        let plan = collection.read_plan(query.clone(), raw);
        collection.check_hint(raw, &query.find, &plan)?;
        Ok(Some(PlannedQuery {
            collection,
            plan,
            entries: 0,
            examined: 0,
            counters: Counters::default(),
            rows_returned: Vec::new(),
        }))
    }

    /// Aims a scan at the buckets of series that match, if the second half is loaded.
    ///
    /// Errors: those of storage; `DataCorruptionDetected`.
    pub(super) async fn narrow(&self, scan: &mut Scan, plan: &ReadPlan) -> Result<()> {
        if self.narrow_if_loaded(scan, plan) {
            // Loaded by now: it has just answered.
            self.prepare(scan, plan).await?;
        }
        Ok(())
    }

    /// A scan aimed at what a query reads; `None` if there is no such collection.
    pub(super) async fn begin_find(
        &self,
        name: &str,
        raw: bool,
        options: &ParseFind<'_>,
    ) -> Result<Option<(Scan, ReadPlan, FindCommand)>> {
        loop {
            let Some(collection) = self.collection(name).await? else {
                return options(Defaults::of_nothing(&Collation::default())).map(|_| None);
            };
            let query = options(collection.defaults(raw))?;
            if raw && collection.dedupes() {
                // Bucket documents have each measurement once.
                self.fold(&collection, &|_, _| true).await?;
            }
            match self.aimed_scan(&collection, &|| collection.read_plan(query.clone(), raw)).await {
                // It was dropped, so memory has forgotten it; storage says whether it was created again.
                Err(e) if e.code == ErrorCode::NamespaceNotFound => {}
                other => {
                    let (mut scan, plan) = other?;
                    collection.check_hint(raw, &query.find, &plan)?;
                    if raw && collection.dedupes() {
                        // Later commits are not in buckets yet.
                        scan.keep_groups(&|_, _| false);
                    } else if let Some(dedupe) = collection.dedupe() {
                        // Loaded by now: `CollectionEntry::prepare` loads it for collections with `dedupe`.
                        self.resolve(&mut scan, dedupe).await?;
                    }
                    return Ok(Some((scan, plan, query.find)));
                }
            }
        }
    }
}

/// Maximum rows of the first batch.
pub(in crate::engine) fn batch_size_of(options: &FindCommand) -> usize {
    options.batch_size.map_or(FIRST_BATCH_COUNT, |n| usize::try_from(n).unwrap_or(usize::MAX))
}

/// The name under which a cursor is kept.
pub(in crate::engine) fn ns_of(name: &str, raw: bool) -> String {
    if raw { format!("{BUCKETS_PREFIX}{name}") } else { name.to_owned() }
}
