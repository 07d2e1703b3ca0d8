//! `find`, `count` and `distinct`: pages of a scan, pushed into the pure executor.

use std::rc::Rc;

use super::Engine;
use super::collection::Collection;
use super::find_cursor::FindCursor;
use super::fold::merge_sections;
use super::journal::{SectionRef, Tail};
use super::keyspace;
use super::read::{Access, Scan, buckets_of};
use super::unit::Unit;
use crate::block::{Block, DocPivot};
use crate::bucket::{BUCKETS_PREFIX, BucketDoc, BucketFormat, TimeseriesOptions, extreme_rows, unpack, unpack_edge};
use crate::error::{Error, ErrorCode, Result};
use crate::index;
use crate::limits::{FEW_ROWS_MAX, FIRST_BATCH_COUNT, FORGOTTEN_BATCH_ROWS};
use crate::query::indexes::check_hint;
use crate::query::{Aggregation, Counters, FindOptions, Flow, ReadAccess, ReadPlan, Sink, Which};
use crate::storage::KeyRange;
use crate::value::{Collation, Doc, OwnedValue};

/// What a command takes from its collection.
#[derive(Clone, Copy)]
pub struct Defaults<'a> {
    /// By which strings are compared where the command does not say.
    pub collation: &'a Collation,
    /// Which field of each row is a date; empty where none is known to be.
    pub time_field: &'a str,
}

impl<'a> Defaults<'a> {
    /// Where there is no collection.
    pub fn of_nothing(collation: &'a Collation) -> Defaults<'a> {
        Defaults { collation, time_field: "" }
    }
}

/// The options of a query over a collection with these defaults: another one may be there in the end than the one that memory knew.
pub type Options<'a> = dyn Fn(Defaults<'_>) -> Result<FindOptions> + 'a;

/// A pipeline over a collection with these defaults.
pub type Parse<'a> = dyn Fn(Defaults<'_>) -> Result<Aggregation> + 'a;

/// How a query goes.
pub struct Planned {
    /// What it is over.
    pub collection: Rc<Collection>,
    /// The plan.
    pub plan: ReadPlan,
    /// Index entries that were looked at.
    pub entries: usize,
    /// Stored buckets that were read.
    pub examined: usize,
    /// What was done with them.
    pub counters: Counters,
    /// How many rows came out of each step of a pipeline.
    pub given: Vec<u64>,
}

impl Planned {
    /// What has become of a scan.
    pub(super) fn of(scan: &Scan, plan: ReadPlan, entries: usize, counters: Counters) -> Planned {
        Planned {
            collection: Rc::clone(scan.collection()),
            plan,
            entries,
            examined: scan.examined(),
            counters,
            given: Vec::new(),
        }
    }
}

/// One batch and the cursor that gives the next; id 0 where there is none.
pub struct Batch {
    /// The measurements.
    pub rows: Block,
    /// The cursor's id.
    pub cursor_id: i64,
}

impl Engine {
    /// The first batch of a query over `name`; `raw` asks for its bucket documents. `options` is asked with the default collation of
    /// the collection.
    ///
    /// A missing collection is an empty one. Errors: those of storage; `DataCorruptionDetected`; `BadValue` where a sort
    /// meets parallel arrays.
    pub async fn find(&self, name: &str, raw: bool, options: &Options<'_>) -> Result<Batch> {
        let Some((mut cursor, options)) = self.open_cursor(name, raw, options, None).await? else {
            return Ok(Batch { rows: Block::new(0), cursor_id: 0 });
        };
        let rows = self.next_batch(&mut cursor, batch_size_of(&options)).await?;
        let keep_open = !options.single_batch && !cursor.is_done();
        let cursor_id = if keep_open { self.keep_cursor(&ns_of(name, raw), cursor) } else { 0 };
        Ok(Batch { rows, cursor_id })
    }

    /// A cursor that has read no bucket yet, for batches of a size that is not that of the options; `None` where there is no such
    /// collection.
    pub(super) async fn open_cursor(
        &self,
        name: &str,
        raw: bool,
        options: &Options<'_>,
        batch_size: Option<usize>,
    ) -> Result<Option<(FindCursor, FindOptions)>> {
        let Some((mut scan, plan, options)) = self.begin_find(name, raw, options).await? else { return Ok(None) };
        let mut entries = scan.entries();
        let batch_size = batch_size.unwrap_or(batch_size_of(&options));
        let wanted =
            plan.plan.limit.map_or(u64::MAX, |limit| limit.saturating_add(plan.plan.skip)).min(batch_size as u64);
        if wanted <= FEW_ROWS_MAX {
            scan.expect_few();
        }
        if plan.plan.edge.is_some() {
            // Loaded by now: only `query::stage` looks for rows at an edge.
            entries = entries.max(self.pick_ends(&mut scan, &plan).await?);
        }
        if let Some(ascending) = plan.order {
            self.order_scan(&mut scan, ascending).await?;
        }
        Ok(Some((FindCursor::new(scan, plan, entries), options)))
    }

    /// The next batch of a cursor.
    ///
    /// Errors: `CursorNotFound`, `CursorInUse`, `Unauthorized`; those of storage end the cursor.
    pub async fn get_more(&self, id: i64, ns: &str, batch_size: usize) -> Result<Batch> {
        let mut cursor = self.take_cursor(id, ns)?;
        let rows = self.next_batch(&mut cursor, batch_size).await.inspect_err(|_| self.drop_cursor(id))?;
        if cursor.is_done() {
            self.drop_cursor(id);
            return Ok(Batch { rows, cursor_id: 0 });
        }
        self.put_cursor_back(id, cursor);
        Ok(Batch { rows, cursor_id: id })
    }

    /// Pushes the rows of `name` that match into a sink, until it has enough; its bucket documents where `raw`. `None` where there is no such
    /// collection.
    ///
    /// Errors: as `find`, and those of the sink.
    pub async fn drain(
        &self,
        name: &str,
        raw: bool,
        options: &Options<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Option<Planned>> {
        let Some((mut scan, plan, _)) = self.begin_find(name, raw, options).await? else { return Ok(None) };
        let entries = scan.entries();
        sink.begin(&plan.plan);
        'scan: while let Some(units) = self.next_page(&mut scan).await? {
            for unit in units {
                if push_unit(scan.collection(), &plan, sink, &unit, self.bucket_format)? == Flow::Enough {
                    break 'scan;
                }
            }
        }
        Ok(Some(Planned::of(&scan, plan, entries, *sink.counters())))
    }

    /// Finds all that a query finds, and forgets it.
    ///
    /// Errors: as `find`.
    pub async fn try_find(&self, name: &str, raw: bool, options: &Options<'_>) -> Result<Option<Planned>> {
        let Some((mut cursor, _)) = self.open_cursor(name, raw, options, Some(FORGOTTEN_BATCH_ROWS)).await? else {
            return Ok(None);
        };
        while !cursor.is_done() {
            self.next_batch(&mut cursor, FORGOTTEN_BATCH_ROWS).await?;
        }
        Ok(Some(cursor.into_planned()))
    }

    /// What a query would do, for all that is known without reading the collection.
    ///
    /// Errors: those of storage; `BadValue` for a hint at no index.
    pub async fn plan(&self, name: &str, raw: bool, options: &Options<'_>) -> Result<Option<Planned>> {
        let Some(collection) = self.collection(name).await? else {
            return options(Defaults::of_nothing(&Collation::default())).map(|_| None);
        };
        let options = options(collection.defaults(raw))?;
        self.refresh(&collection).await?;
        let plan = collection.read_plan(options.clone(), raw);
        collection.check_hint(raw, &options, &plan)?;
        Ok(Some(Planned {
            collection,
            plan,
            entries: 0,
            examined: 0,
            counters: Counters::default(),
            given: Vec::new(),
        }))
    }

    /// A scan aimed at what a query reads; `None` where there is no such collection.
    async fn begin_find(
        &self,
        name: &str,
        raw: bool,
        options: &Options<'_>,
    ) -> Result<Option<(Scan, ReadPlan, FindOptions)>> {
        loop {
            let Some(collection) = self.collection(name).await? else {
                return options(Defaults::of_nothing(&Collation::default())).map(|_| None);
            };
            let options = options(collection.defaults(raw))?;
            match self.aimed_scan(&collection, &|| collection.read_plan(options.clone(), raw)).await {
                // Memory has forgotten it; storage says whether it was made again.
                Err(e) if e.code == ErrorCode::NamespaceNotFound => {}
                other => {
                    let (scan, plan) = other?;
                    collection.check_hint(raw, &options, &plan)?;
                    return Ok(Some((scan, plan, options)));
                }
            }
        }
    }

    /// A scan aimed at what a plan reads. `plan` is asked again where the snapshot tells what no one in this context
    /// knew: that there are dates outside the standard range, or that the entry of the collection was changed.
    pub(super) async fn aimed_scan(
        &self,
        collection: &Rc<Collection>,
        plan: &dyn Fn() -> ReadPlan,
    ) -> Result<(Scan, ReadPlan)> {
        let mut is_folded = false;
        let (mut scan, first, mut found) = loop {
            let first = plan();
            let known = (collection.extended_range.get(), collection.entry().version);
            // One look at the journals and at the index: an index that is dropped later has lost nothing of what was there.
            let (scan, found) = self.begin_scan(collection, &index_ranges(collection, &first)).await?;
            if (collection.extended_range.get(), collection.entry().version) != known {
                continue;
            }
            let only_indexed = matches!(&first.access, ReadAccess::Index(access) if access.only_indexed);
            // What is not folded yet is in no index.
            if only_indexed && !is_folded && self.fold_groups(&scan, &|_| true).await? {
                is_folded = true;
                continue;
            }
            break (scan, first, found);
        };
        first.access.keep_texts(&|index| keyspace::index_prefix(&collection.id(), index), &mut found);
        let used: Vec<Option<u16>> = first.access.branches().iter().map(ReadAccess::index).collect();
        for (place, index) in used.iter().enumerate() {
            let is_first = used.iter().position(|other| other == index) == Some(place);
            index.iter().filter(|_| is_first).for_each(|index| collection.count_use(*index));
        }
        scan.aim(match &first.access {
            ReadAccess::Buckets { low, high } => Access::Range(*low, *high),
            _ => Access::Ids(buckets_of(&found)?),
        });
        match &first.access {
            ReadAccess::Buckets { low, high } => scan.keep_groups(&|_, group| (low..=high).contains(&&group.bucket)),
            series @ ReadAccess::Series { .. } => {
                let wanted = scan.journal().groups_within(&series_ranges(collection, series));
                scan.keep_groups(&|number, _| wanted.binary_search(&number).is_ok());
            }
            ReadAccess::Index(_) | ReadAccess::Union(_) => {}
        }
        Ok((scan, first))
    }
}

/// Rows of the first batch.
pub(super) fn batch_size_of(options: &FindOptions) -> usize {
    options.batch_size.map_or(FIRST_BATCH_COUNT, |n| usize::try_from(n).unwrap_or(usize::MAX))
}

/// Where the entries of indexes lie that a plan looks at, and of a union the buckets; ascending and apart.
fn index_ranges(collection: &Collection, plan: &ReadPlan) -> Vec<KeyRange> {
    let id = collection.id();
    let mut ranges: Vec<KeyRange> = Vec::new();
    for branch in plan.access.branches() {
        let prefix = branch.index().map(|index| keyspace::index_prefix(&id, index)).unwrap_or_default();
        let behind = |key: &[u8]| [&prefix[..], key].concat();
        let mut add = |(start, end): (Vec<u8>, Vec<u8>)| ranges.push(KeyRange { start, end });
        match branch {
            ReadAccess::Series { .. } => {
                series_ranges(collection, branch).iter().for_each(|(start, end)| add((behind(start), behind(end))));
            }
            ReadAccess::Index(access) => {
                access.ranges.iter().for_each(|(low, high)| add((behind(low), KeyRange::prefix(&behind(high)).end)));
            }
            ReadAccess::Buckets { low, high } if matches!(plan.access, ReadAccess::Union(_)) => {
                let range = keyspace::buckets(&id, low, high);
                add((range.start, range.end));
            }
            ReadAccess::Buckets { .. } | ReadAccess::Union(_) => {}
        }
    }
    index::apart(ranges)
}

/// Where the entries of the index on metadata and time lie that a plan looks at.
fn series_ranges(collection: &Collection, access: &ReadAccess) -> Vec<(Vec<u8>, Vec<u8>)> {
    let ReadAccess::Series { points, first_ms, last_ms } = access else { return Vec::new() };
    let span_ms = collection.entry().options.timeseries.span_ms();
    let range = |value: &OwnedValue| index::range(Some(value.view()), span_ms, *first_ms, *last_ms);
    points.values.values().iter().map(range).chain(points.texts.iter().map(|_| index::texts())).collect()
}

impl Collection {
    /// What commands over its measurements, or over its bucket documents, take from it.
    pub fn defaults(&self, raw: bool) -> Defaults<'_> {
        Defaults { collation: self.collation(), time_field: if raw { "" } else { self.time_field() } }
    }

    /// The plan of a query over its measurements, or its bucket documents where `raw`, with what is known about them now.
    pub(super) fn read_plan(&self, options: FindOptions, raw: bool) -> ReadPlan {
        if raw {
            return ReadPlan::over_buckets(options);
        }
        let entry = self.entry();
        ReadPlan::new(options, &entry.options.timeseries, self.extended_range.get(), &entry.indexes)
    }

    /// Refuses a hint at an index that is not there, or that the plan could not take, as far as is known: what begins a scan learns what
    /// others have made and hidden.
    pub(super) fn check_hint(&self, raw: bool, options: &FindOptions, plan: &ReadPlan) -> Result<()> {
        let Some(hint) = &options.hint else { return Ok(()) };
        let depends = check_hint(hint, raw, &self.entry().indexes)?;
        if depends && !matches!(plan.access, ReadAccess::Index(_)) {
            return Err(Error::bad_value("The hint provided names an index that this query cannot use"));
        }
        Ok(())
    }
}

/// Pushes one bucket and its journal rows into a sink, as one document where the plan is over these.
pub(super) fn push_unit(
    collection: &Collection,
    plan: &ReadPlan,
    sink: &mut dyn Sink,
    unit: &Unit,
    format: BucketFormat,
) -> Result<Flow> {
    if plan.is_over_buckets() {
        return sink.push(document_row(collection, unit, format)?, None, false);
    }
    let before = sink.counters().measurements_examined;
    let flow = push_rows(collection, plan, sink, unit);
    let counters = sink.counters();
    counters.buckets_unpacked += u64::from(counters.measurements_examined > before);
    flow
}

fn push_rows(collection: &Collection, plan: &ReadPlan, sink: &mut dyn Sink, unit: &Unit) -> Result<Flow> {
    let options = &collection.entry().options.timeseries;
    if let Some(stored) = &unit.stored {
        let view = BucketDoc::parse(stored.document.view(), options)?;
        if plan.skips_closed && view.closed() {
            return Ok(Flow::Continue);
        }
        if plan.may_match(&view)? {
            sink.counters().buckets_passed += 1;
            if push_bucket(plan, sink, &view, options, None)? == Flow::Enough {
                return Ok(Flow::Enough);
            }
        }
    }
    // Where an expression on the metadata fails, rows in time raise it.
    let Some(group) = unit.unfolded() else { return Ok(Flow::Continue) };
    if !plan.may_match_rows(group.meta(), group.first_ms, group.last_ms)? {
        return Ok(Flow::Continue);
    }
    // What only counts rows needs no columns of them.
    if plan.is_decided_by_metadata() {
        let rows = || unit.unfolded_rows(group);
        if let Some(flow) = sink.push_whole(&|| Ok(rows()), group.meta())? {
            return Ok(flow);
        }
        if plan.only_counts() {
            let bounds = (group.min_time_ms, group.last_ms);
            let view = BucketDoc::of_summary(unit.id, group.meta(), (Doc::EMPTY, Doc::EMPTY), bounds, rows());
            return push_bucket(plan, sink, &view, options, None);
        }
    }
    let tail = unit.tail(group, options)?;
    let view = tail.summary(unit.id, group.meta());
    if plan.may_match(&view)? { push_bucket(plan, sink, &view, options, Some(&tail)) } else { Ok(Flow::Continue) }
}

/// Pushes the rows of a bucket that may match, which are those of `tail` where it is not stored.
fn push_bucket(
    plan: &ReadPlan,
    sink: &mut dyn Sink,
    view: &BucketDoc<'_>,
    options: &TimeseriesOptions,
    tail: Option<&Tail>,
) -> Result<Flow> {
    let all_match = plan.all_match(view);
    if all_match && let Some(flow) = sink.push_whole(&|| view.count(), view.meta())? {
        return Ok(flow);
    }
    let examined = sink.counters().measurements_examined;
    // Loaded by now: only `query::stage` looks for rows at an edge.
    let edge = if all_match { plan.edge(view) } else { None };
    if edge.is_some_and(|(which, _)| which == Which::Extremes)
        && let Some(rows) = extreme_rows(view, &plan.columns, &options.time_field)?
    {
        let flow = sink.push(rows, view.meta(), all_match)?;
        sink.counters().measurements_examined = examined;
        return Ok(flow);
    }
    let edge = edge.filter(|(which, _)| *which != Which::Extremes).map(|(which, count)| (which == Which::Last, count));
    let rows = match (tail, edge) {
        (Some(tail), edge) => {
            let rows = match edge {
                Some((is_last, 1)) => tail.edge(is_last)..tail.edge(is_last) + 1,
                _ => 0..tail.rows().rows(),
            };
            tail.rows().slice_columns(rows, |name| plan.columns.contains(name))
        }
        (None, Some(edge)) => unpack_edge(view, &plan.columns, options, edge)?,
        (None, None) => unpack(view, &plan.columns, options)?,
    };
    sink.push(rows, view.meta(), all_match)
}

/// The bucket document, journal rows merged in, as a block of one row.
fn document_row(collection: &Collection, unit: &Unit, format: BucketFormat) -> Result<Block> {
    let stored = unit.stored.as_ref().map(|stored| stored.document.view());
    let sections: Vec<&SectionRef> = unit.sections().collect();
    let mut pivot = DocPivot::new();
    match stored {
        Some(document) if sections.is_empty() => pivot.push(document)?,
        stored => pivot.push(merge_sections(collection, stored, &unit.id, &sections, format)?.view())?,
    }
    Ok(pivot.finish())
}

/// The name under which a cursor is kept.
pub(super) fn ns_of(name: &str, raw: bool) -> String {
    if raw { format!("{BUCKETS_PREFIX}{name}") } else { name.to_owned() }
}
