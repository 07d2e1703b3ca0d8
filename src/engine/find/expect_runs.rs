//! Decides whether a query takes runs of small buckets, or the rows of records, instead of a look at each bucket.

// Loaded later.

use std::rc::Rc;

use super::find_cursor::{FindCursor, Next};
use super::planned::PlannedQuery;
use super::runs::fits;
use crate::engine::Engine;
use crate::engine::read::scan::{Access, Scan};
use crate::engine::store::stored_bucket::StoredBucket;
use crate::limits::{ROWS_TOGETHER, SCAN_PAGE_BUCKETS, SMALL_BUCKET_ROWS};
use crate::query::{Exec, Flow, ReadAccess, ReadPlan, Sink};
use crate::storage::LocalFuture;
use crate::value::FieldSet;

/// Rows that a sink takes at once: those of many runs.
const DRAINED_ROWS: usize = 32 * ROWS_TOGETHER;

/// A look at a bucket of a series takes as long as so many rows of runs whose columns are in memory.
const ROWS_A_LOOK: usize = 64;

/// Buckets that tell how many rows those of a range have.
const SAMPLE_BUCKETS: usize = 16;

impl Engine {
    /// Expects runs, if a query may take some. A sort that could stream collects their rows if it is by metadata, or if many of them
    /// are only in journals: to sort these takes less time than to meet small buckets one by one, and they take less room.
    #[inline(never)]
    pub(super) fn expect_runs_if_loaded(&self, scan: &mut Scan, plan: &mut ReadPlan) {
        if let Some(stream) = plan.stream.take() {
            let by_bucket = stream.buckets.is_some();
            let are_small = plan.plan.limit.is_none()
                && plan.may_take_runs()
                && (by_bucket && self.prefers_runs(scan, usize::MAX, false)
                    || !plan.columns.is_all() && self.prefers_records(scan, plan, plan.plan.in_any_order));
            if are_small {
                plan.order = None;
                plan.unused_stream = Some(stream).filter(|_| by_bucket);
            } else {
                plan.stream = Some(stream);
            }
        }
        if plan.may_take_runs() {
            scan.expect_runs();
        }
    }

    /// Notes that all buckets are read, and not only those at the ends of series. Of small ones, all rows are taken.
    pub(super) fn forgo_ends(&self, scan: &mut Scan, plan: &mut ReadPlan) {
        plan.forgo_ends(self.prefers_runs(scan, usize::MAX, false));
        self.expect_runs_if_loaded(scan, plan);
    }

    /// True if `drain_runs` is for a plan, whose scan then expects runs.
    #[inline(never)]
    pub(super) fn drains_runs_if_loaded(&self, scan: &mut Scan, plan: &ReadPlan) -> bool {
        let (find, order) = (&plan.plan, plan.order);
        let is_plain =
            find.skip == 0 && find.limit.is_none() && find.sort.is_none() && order.is_none() && !find.wants_meta;
        // Whoever takes whole rows takes their fields in the order that they have.
        let takes_runs = is_plain
            && !plan.columns.is_all()
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
            (plan.plan.is_narrowed, plan.plan.in_any_order) = (true, true);
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

    /// True if all buckets are in runs that were made before, whose rows take less time than so many looks at buckets, and if these
    /// columns of theirs stay in memory: they do, or somebody has asked for them before and there is room.
    pub(super) fn has_runs(&self, scan: &Scan, looks: usize, columns: &FieldSet) -> bool {
        let Some(range) = scan.range() else { return false };
        let (_, rows, are_all) = self.buckets.borrow().runs_of(range);
        if !are_all || columns.is_all() || rows > looks.saturating_mul(ROWS_A_LOOK) {
            return false;
        }
        let Some(first) = self.buckets.borrow().run(range, (true, true)) else { return false };
        let known = first.kept.named(first.rows, columns);
        if !known.are_noted {
            first.kept.keep_named(&known.missing, None);
        }
        known.missing.is_empty() || known.are_noted && fits(&first.kept, rows, &known.missing)
    }
}

impl FindCursor {
    /// After all, streams a sort by metadata, and begins again, if the buckets that have just come are not small: their rows would
    /// take more room than they do.
    pub(super) fn stream_after_all(&mut self) {
        if self.ahead.takes_records == Some(true) {
            // These come behind all stored rows.
            return;
        }
        let options = &self.scan.collection().entry().options.timeseries;
        let count = |next: &Next| next.unit.stored.as_ref()?.view(options).and_then(|view| view.count()).ok();
        let rows: usize = self.units.iter().filter_map(count).sum();
        if rows <= self.units.len() * SMALL_BUCKET_ROWS {
            return;
        }
        if let (Some(stream), ReadAccess::Buckets { low, high }) = (self.plan.unused_stream.take(), &self.plan.access) {
            self.scan.begin_again();
            self.scan.aim(Access::Range(*low, *high));
            let counters = *self.exec.counters();
            self.exec = Exec::with_sort(&self.plan.plan, stream.rows.clone());
            *self.exec.counters() = counters;
            self.plan.stream = Some(stream);
            self.put_units(Vec::new());
        }
    }
}

#[cfg(test)]
mod tests {
    use bson::rawdoc;
    use futures::executor::block_on;

    use super::super::planned::Defaults;
    use super::*;
    use crate::block::{Block, Column, ColumnData};
    use crate::bucket::CollectionOptions;
    use crate::env::fixed::FixedEnv;
    use crate::query::FindCommand;
    use crate::storage::memory::MemoryStorage;
    use crate::value::{Doc, sort_by};

    const HOUR_MS: i64 = 3_600_000;

    /// Rows of the first `series` series in an hour.
    fn rows_of(hour: i64, series: i64, rows_each: i64) -> Block {
        let rows = || 0..series * rows_each;
        let mut block = Block::new(rows().count());
        let times = rows().map(|row| hour * HOUR_MS + row / series).collect();
        block.set_column("t", Column::new(ColumnData::Date(times), None));
        block.set_column("m", Column::new(ColumnData::I64(rows().map(|row| row * 7 % series).collect()), None));
        block
    }

    /// With an empty collection.
    fn engine() -> Engine {
        let engine = Engine::new("d", Rc::new(MemoryStorage::new()), Rc::new(FixedEnv::default()), [1; 8]);
        let create = rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } };
        let options =
            CollectionOptions::parse_create(Doc::parse(create.as_bytes()).unwrap(), FixedEnv::NOW_MS).unwrap();
        block_on(engine.create_collection("c", options)).unwrap();
        engine
    }

    /// Whether a sort by metadata streams in the end, and the metadata of all of its rows.
    async fn sorted(engine: &Engine) -> (bool, Vec<i64>) {
        let command = rawdoc! { "find": "c", "sort": { "m": 1 }, "projection": { "_id": 0, "t": 1, "m": 1 }, "batchSize": 50_000 };
        let command = Doc::parse(command.as_bytes()).unwrap();
        let options = |_: Defaults<'_>| FindCommand::parse(command, &engine.globals()).map(Into::into);
        let (mut cursor, _) = engine.open_cursor("c", false, &options, None).await.unwrap().unwrap();
        let mut found = Vec::new();
        while !cursor.is_done() {
            let batch = engine.next_batch(&mut cursor, 50_000).await.unwrap();
            let metas = batch.column("m").cloned().unwrap().into_plain();
            match metas.data() {
                ColumnData::I64(metas) => found.extend_from_slice(metas.as_ref()),
                _ => panic!("{metas:?}"),
            }
        }
        (cursor.plan.stream.is_some(), found)
    }

    #[test]
    fn a_sort_by_metadata_takes_runs_and_streams_after_all_if_later_buckets_are_large() {
        const SERIES: i64 = 1100;
        let engine = engine();
        block_on(async {
            let collection = engine.existing_collection("c").await.unwrap();
            let mut expected = Vec::new();
            for (hour, series, rows_each, streams) in
                [(0, SERIES, 2, false), (1, SERIES, 2, false), (2, SERIES / 2, 500, true)]
            {
                engine.insert(&collection, rows_of(hour, series, rows_each)).await.unwrap();
                engine.flush().await.unwrap();
                expected.extend((0..series * rows_each).map(|row| row * 7 % series));
                sort_by(&mut expected, Ord::cmp);
                sorted(&engine).await;
                assert_eq!(sorted(&engine).await, (streams, expected.clone()), "{hour}");
            }
        });
    }

    #[test]
    fn runs_that_are_in_memory_take_the_place_of_looks_at_buckets_once_somebody_asks_again() {
        const SERIES: i64 = 1100;
        let engine = engine();
        let command = rawdoc! { "find": "c" };
        let command = Doc::parse(command.as_bytes()).unwrap();
        let find = |_: Defaults<'_>| FindCommand::parse(command, &engine.globals()).map(Into::into);
        block_on(async {
            let collection = engine.existing_collection("c").await.unwrap();
            engine.insert(&collection, rows_of(0, SERIES, 2)).await.unwrap();
            engine.flush().await.unwrap();
            let (scan, ..) = engine.begin_find("c", false, &find).await.unwrap().unwrap();
            let fields = FieldSet::Only(vec!["x".into()]);
            let asked = |looks: usize| [(); 2].map(|()| engine.has_runs(&scan, looks, &fields));
            assert_eq!(asked(usize::MAX), [false, false]);
            sorted(&engine).await;
            sorted(&engine).await;
            let enough = (2 * SERIES as usize).div_ceil(ROWS_A_LOOK);
            assert_eq!(asked(enough - 1), [false, false]);
            // The first time, it is only noted that somebody asks.
            assert_eq!(asked(enough), [false, true]);
            assert!(!engine.has_runs(&scan, enough, &FieldSet::All));
        });
    }
}
