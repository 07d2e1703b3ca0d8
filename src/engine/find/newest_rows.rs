//! One block of the first or the last rows of many series, if each bucket has few such rows.
//!
//! A block of its own for each of a hundred buckets would cost more than decoding their rows.

// Loaded later.

use std::rc::Rc;

use super::part::{BucketPart, only_part, wanted_rows_of};
use crate::block::{Block, ColumnBuilder, DocPivot};
use crate::bucket::{BucketDoc, BucketVersion, JoinedFields, TimeseriesOptions, joined_rows, unpack_first_or_last};
use crate::engine::collections::collection::Collection;
use crate::engine::read::unit::Unit;
use crate::engine::store::stored_bucket::{EndRows, StoredBucket};
use crate::error::Result;
use crate::listed::IntoList;
use crate::query::{ReadPlan, Which};
use crate::value::{DocBuf, DocWriter};

/// Rows kept with their bucket are at most such a part of it.
const KEPT_PART: usize = 4;

/// Of a bucket with more wanted rows than this, a block costs less than its rows one by one.
const FEW_ROWS_MAX: usize = 16;

/// The wanted rows of `units` in that order, with their metadata, and perhaps rows next to them; `None` if a bucket may
/// have many, or if it must be unpacked to know.
///
/// Errors: those of filters; `DataCorruptionDetected`.
#[inline(never)]
pub(super) fn rows_of_units(collection: &Collection, plan: &ReadPlan, units: &[Unit]) -> Result<Option<Block>> {
    let rows_of = || rows_of_each(collection, plan, units);
    let options = &collection.entry().options.timeseries;
    let end_of_stored = |unit: &Unit| {
        let stored = unit.stored.as_deref().filter(|_| unit.unfolded().is_none())?;
        end_of(plan, &stored.view(options).ok()?)
    };
    // If no bucket has rows in journals, the rows may have been collected before.
    let only = units.first().and_then(end_of_stored).filter(|_| !plan.columns.is_all());
    if only.is_none() || units.iter().any(|unit| end_of_stored(unit) != only) {
        return rows_of();
    }
    let parts: Vec<_> = units.iter().filter_map(|unit| Some((unit.stored.as_ref()?.kept(), 0))).listed();
    let fields =
        JoinedFields { columns: Rc::clone(&plan.columns), has_meta: plan.plan.wants_meta, in_any_order: false, only };
    Ok(joined_rows(&parts, &fields, &mut || Ok(rows_of()?.into_iter().listed()))?.pop())
}

fn rows_of_each(collection: &Collection, plan: &ReadPlan, units: &[Unit]) -> Result<Option<Block>> {
    let entry = collection.entry();
    let options = &entry.options.timeseries;
    let mut rows = DocPivot::new();
    let mut metas = ColumnBuilder::with_capacity(units.len());
    for unit in units {
        let group = unit.unfolded();
        let stored = unit.stored.as_ref().map(|stored| Ok((stored, stored.view(options)?))).transpose()?;
        let part = match (&stored, group) {
            (Some((_, view)), Some(group)) => only_part(plan, unit, group, view, options)?,
            (Some(_), None) => Some(BucketPart::Stored),
            (None, _) => Some(BucketPart::Journal),
        };
        let tail = match group.filter(|_| part == Some(BucketPart::Journal)) {
            Some(group) => Some((group, unit.tail(group, options)?)),
            None => None,
        };
        let view = match (&tail, &stored, part) {
            (Some((group, tail)), ..) => &tail.summary(unit.id, group.meta()),
            (None, Some((_, view)), Some(BucketPart::Stored)) if view.version() == BucketVersion::Sorted => view,
            _ => return Ok(None),
        };
        // It was picked because either its stored rows or those of the journal may match.
        if group.is_some() && !plan.may_match(view)? {
            continue;
        }
        let Some(wanted) = end_of(plan, view) else { return Ok(None) };
        let mut add = |found: &[DocBuf]| {
            match view.meta() {
                Some(meta) => found.iter().for_each(|_| metas.push(meta)),
                None => metas.push_absent(found.len()),
            }
            found.iter().try_for_each(|row| rows.push(row.view()))
        };
        match (&tail, &stored) {
            (Some((_, tail)), _) if wanted.1 == 1 => {
                let mut writer = DocWriter::new();
                tail.rows().write_fields(tail.first_or_last_row(wanted.0), &plan.columns, &mut writer);
                add(&[writer.finish()])?;
            }
            (None, Some((stored, view))) => add(&stored_rows(plan, stored, view, options, wanted)?.rows)?,
            _ => return Ok(None),
        }
    }
    let mut rows = rows.finish();
    let (metas, time_field) = (metas.finish(), &options.time_field);
    let meta_field = plan.plan.meta_field.as_deref().filter(|_| plan.plan.wants_meta && metas.present_count() > 0);
    rows.begin_with(time_field, meta_field.map(|name| (name, metas)));
    Ok(Some(rows))
}

/// True if only the last rows of a bucket are wanted, false if only the first ones, and how many; `None` if others are
/// wanted as well, or many.
fn end_of(plan: &ReadPlan, bucket: &BucketDoc<'_>) -> Option<(bool, usize)> {
    let (which, count) = wanted_rows_of(plan, bucket).filter(|_| plan.all_match(bucket))?;
    (which != Which::Extremes && count <= FEW_ROWS_MAX).then_some((which == Which::Last, count))
}

/// The first or the last rows of a stored bucket. They are kept with the bucket, unless they are large.
fn stored_rows(
    plan: &ReadPlan,
    stored: &StoredBucket,
    view: &BucketDoc<'_>,
    options: &TimeseriesOptions,
    wanted: (bool, usize),
) -> Result<Rc<EndRows>> {
    let known = stored.end_rows.borrow().clone();
    if let Some(known) = known.filter(|known| known.wanted == wanted && known.columns == plan.columns) {
        return Ok(known);
    }
    let rows = documents_of(&unpack_first_or_last(view, &plan.columns, options, wanted)?);
    let new = Rc::new(EndRows { wanted, columns: Rc::clone(&plan.columns), rows });
    let size_bytes: usize = new.rows.iter().map(|row| row.view().as_bytes().len()).sum();
    if KEPT_PART * size_bytes <= stored.document.view().as_bytes().len() {
        *stored.end_rows.borrow_mut() = Some(Rc::clone(&new));
    }
    Ok(new)
}

fn documents_of(rows: &Block) -> Vec<DocBuf> {
    let document = |row| {
        let mut writer = DocWriter::new();
        rows.write_row(row, &mut writer);
        writer.finish()
    };
    (0..rows.rows()).map(document).collect()
}
