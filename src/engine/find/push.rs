//! Pushes one bucket and its journal rows into the pure executor.

use std::rc::Rc;

use super::part::{BucketPart, only_part, wanted_rows_of};
use super::sieve::Sieve;
use crate::block::{Block, DocPivot};
use crate::bucket::{BucketDoc, BucketFormat, extreme_rows, unpack, unpack_first_or_last, unpack_rest, whole};
use crate::engine::buckets::fold::merge_sections;
use crate::engine::collections::collection::Collection;
use crate::engine::journal::{SectionRef, Tail};
use crate::engine::read::unit::Unit;
use crate::engine::store::entry::CollectionEntry;
use crate::engine::store::stored_bucket::StoredBucket;
use crate::error::Result;
use crate::query::{Flow, LateColumns, ReadPlan, Sink, Which};
use crate::value::{Doc, FieldSet};

/// Pushes one bucket and its journal rows into a sink; as one document, if the plan is over bucket documents.
pub(super) fn push_unit(
    collection: &Collection,
    plan: &ReadPlan,
    sieve: &Sieve,
    sink: &mut dyn Sink,
    unit: &Unit,
    format: BucketFormat,
) -> Result<Flow> {
    if plan.is_over_buckets() {
        return sink.push(document_row(collection, unit, format)?, None, false);
    }
    let before = *sink.counters();
    let flow = push_rows(collection, plan, sieve, sink, unit);
    let counters = sink.counters();
    let is_unpacked = counters.measurements_examined > before.measurements_examined;
    counters.unpacked(is_unpacked.into(), before.measurements_matched);
    flow
}

#[inline(never)]
fn push_rows(
    collection: &Collection,
    plan: &ReadPlan,
    sieve: &Sieve,
    sink: &mut dyn Sink,
    unit: &Unit,
) -> Result<Flow> {
    let options = &collection.entry().options.timeseries;
    let group = unit.unfolded();
    if let Some(stored) = &unit.stored {
        let view = stored.view(options)?;
        if plan.skips_closed && view.closed() {
            return Ok(Flow::Continue);
        }
        let metadata_matches = plan.metadata_matches(view.meta())?;
        sink.counters().buckets_missed += u64::from(!metadata_matches && plan.may_leave_out_series());
        if plan.may_match_with(&view, Some(metadata_matches))? {
            sink.counters().buckets_passed += 1;
            let only = match group.filter(|_| plan.plan.rows_per_group.is_some()) {
                // Loaded by now: only `query::stage` wants the first or the last rows.
                Some(group) => only_part(plan, unit, group, &view, options)?,
                None => None,
            };
            if only != Some(BucketPart::Journal)
                && push_bucket(collection, plan, sink, &view, RowSource::Stored(stored))? == Flow::Enough
            {
                return Ok(Flow::Enough);
            }
            if only == Some(BucketPart::Stored) {
                return Ok(Flow::Continue);
            }
        }
    }
    // An expression that fails on the metadata fails again on the rows, which raises the error.
    let Some(group) = group else { return Ok(Flow::Continue) };
    let times = group.times();
    if !plan.may_match_rows(group.meta(), times.0, times.1)? || sink.excludes(times, None) {
        return Ok(Flow::Continue);
    }
    // Counting needs no columns.
    if plan.is_decided_by_metadata() {
        let rows = || unit.unfolded_rows(group);
        if let Some(flow) = sink.push_whole(&|| Ok(rows()), group.meta())? {
            return Ok(flow);
        }
        if plan.only_counts() {
            let bounds = (group.min_time_ms, times.1);
            let view = BucketDoc::of_summary(unit.id, group.meta(), (Doc::EMPTY, Doc::EMPTY), bounds, rows());
            return push_bucket(collection, plan, sink, &view, RowSource::Counted);
        }
    }
    if !sieve.may_match(plan, unit, group)? {
        return Ok(Flow::Continue);
    }
    let tail = unit.tail(group, options)?;
    let view = tail.summary(unit.id, group.meta());
    if plan.may_match(&view)? {
        push_bucket(collection, plan, sink, &view, RowSource::Journal(&tail))
    } else {
        Ok(Flow::Continue)
    }
}

/// A stored bucket, and which of its columns are wanted.
struct StoredColumns {
    stored: Rc<StoredBucket>,
    columns: Rc<FieldSet>,
    entry: Rc<CollectionEntry>,
    /// How many of its rows in front are left out.
    left_out: usize,
}

impl LateColumns for StoredColumns {
    fn rows(&self, known: &Block, from: usize) -> Result<Block> {
        let options = &self.entry.options.timeseries;
        unpack_rest(&self.stored.view(options)?, &self.columns, options, known, self.left_out + from)
    }
}

/// What reads all columns of a stored bucket that the plan wants, without some rows in front.
pub(super) fn late_columns(
    collection: &Collection,
    plan: &ReadPlan,
    stored: &Rc<StoredBucket>,
    left_out: usize,
) -> Rc<dyn LateColumns> {
    let (stored, columns) = (Rc::clone(stored), Rc::clone(&plan.columns));
    Rc::new(StoredColumns { stored, columns, entry: collection.entry(), left_out })
}

/// Where the rows of a bucket are.
#[derive(Clone, Copy)]
enum RowSource<'a> {
    Stored(&'a Rc<StoredBucket>),
    Journal(&'a Tail),
    /// Only their number is read.
    Counted,
}

/// Pushes the rows of a bucket that may match.
fn push_bucket(
    collection: &Collection,
    plan: &ReadPlan,
    sink: &mut dyn Sink,
    view: &BucketDoc<'_>,
    rows: RowSource<'_>,
) -> Result<Flow> {
    let entry = collection.entry();
    let options = &entry.options.timeseries;
    if sink.excludes((view.min_time_ms(), view.max_time_ms()), Some(view.control_max())) {
        return Ok(Flow::Continue);
    }
    let all_match = plan.all_match(view);
    if all_match && let Some(flow) = sink.push_whole(&|| view.count(), view.meta())? {
        return Ok(flow);
    }
    let examined = sink.counters().measurements_examined;
    // Loaded by now: as above.
    let wanted = if all_match && plan.plan.rows_per_group.is_some() { wanted_rows_of(plan, view) } else { None };
    if wanted.is_some_and(|(which, _)| which == Which::Extremes)
        && let Some(rows) = extreme_rows(view, &plan.columns, &options.time_field, plan.counts())?
    {
        let flow = sink.push(rows, view.meta(), all_match)?;
        sink.counters().measurements_examined = examined;
        return Ok(flow);
    }
    let first_or_last =
        wanted.filter(|(which, _)| *which != Which::Extremes).map(|(which, count)| (which == Which::Last, count));
    let rows = match (rows, first_or_last) {
        (RowSource::Journal(tail), Some((is_last, 1))) => {
            let row = tail.first_or_last_row(is_last);
            tail.rows().slice_columns(row..row + 1, |name| plan.columns.contains(name))
        }
        (RowSource::Journal(tail), _) => tail.columns(&plan.columns),
        (_, Some(first_or_last)) => unpack_first_or_last(view, &plan.columns, options, first_or_last)?,
        (RowSource::Stored(stored), None) => {
            let first = plan
                .plan
                .decode_first
                .as_ref()
                .filter(|_| !all_match || plan.plan.sort.is_some() || plan.plan.newest.is_some());
            let columns = first.unwrap_or(&plan.columns);
            let ends = plan.plan.sorted_ends.filter(|_| all_match);
            let rows = match ends {
                // One row alone would not tell whether others have its time.
                Some((is_last, count)) => unpack_first_or_last(view, columns, options, (is_last, count.max(2)))?,
                None => unpack(view, columns, options)?,
            };
            if first.is_none() {
                return sink.push(rows, view.meta(), all_match);
            }
            let left_out = if matches!(ends, Some((true, _))) { view.count()? - rows.rows() } else { 0 };
            let rest = late_columns(collection, plan, stored, left_out);
            return sink.push_in_steps(rows, view.meta(), all_match, rest);
        }
        (RowSource::Counted, None) => unpack(view, &plan.columns, options)?,
    };
    sink.push(rows, view.meta(), all_match)
}

/// The bucket document with journal rows merged in, as a block of one row.
fn document_row(collection: &Collection, unit: &Unit, format: BucketFormat) -> Result<Block> {
    let stored = unit.stored.as_ref().map(|stored| stored.document.view());
    let known = unit.unfolded().filter(|_| stored.is_none()).and_then(|group| Some((group, group.resolution()?)));
    if let Some((group, known)) = known {
        let (rows, header) = (known.tail.rows(), (unit.id, group.meta()));
        let mut pivot = DocPivot::new();
        pivot.push(whole(header, group.min_time_ms, rows, format, &collection.entry().options.timeseries)?.view())?;
        return Ok(pivot.finish());
    }
    let sections: Vec<&SectionRef> = unit.sections().collect();
    let mut pivot = DocPivot::new();
    match stored {
        Some(document) if sections.is_empty() => pivot.push(document)?,
        stored => pivot.push(merge_sections(collection, stored, &unit.id, &sections, format)?.view())?,
    }
    Ok(pivot.finish())
}
