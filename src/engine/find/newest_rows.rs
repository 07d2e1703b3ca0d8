//! One block of the first or the last rows of many series, if each bucket has one such row.
//!
//! A block of its own for each of a hundred rows would cost more than decoding them.

// Loaded later.

use std::rc::Rc;

use super::part::{BucketPart, only_part, wanted_rows_of};
use crate::block::{Block, ColumnBuilder, DocPivot};
use crate::bucket::{BucketDoc, BucketVersion, TimeseriesOptions, unpack_first_or_last};
use crate::engine::collections::collection::Collection;
use crate::engine::read::unit::Unit;
use crate::engine::store::stored_bucket::{EndRow, StoredBucket};
use crate::error::Result;
use crate::query::{ReadPlan, Which};
use crate::value::{DocBuf, DocWriter};

/// A row kept with its bucket is at most such a part of it.
const KEPT_PART: usize = 4;

/// The wanted rows of `units` in that order, with their metadata; `None` if a bucket may have several, or if it must be
/// unpacked to know.
///
/// Errors: those of filters; `DataCorruptionDetected`.
#[inline(never)]
pub(super) fn rows_of_units(collection: &Collection, plan: &ReadPlan, units: &[Unit]) -> Result<Option<Block>> {
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
        // A bucket without journal rows is here because it matches.
        if group.is_some() && !plan.may_match(view)? {
            continue;
        }
        let Some(is_last) = end_of(plan, view) else { return Ok(None) };
        match (&tail, &stored) {
            (Some((_, tail)), _) => {
                let row = tail.first_or_last_row(is_last);
                let row = tail.rows().slice_columns(row..row + 1, |name| plan.columns.contains(name));
                rows.push(document_of(&row).view())?;
            }
            (None, Some((stored, view))) => rows.push(stored_row(plan, stored, view, options, is_last)?.row.view())?,
            (None, None) => return Ok(None),
        }
        match view.meta() {
            Some(meta) => metas.push(meta),
            None => metas.push_absent(1),
        }
    }
    let mut rows = rows.finish();
    let (metas, time_field) = (metas.finish(), &options.time_field);
    let time = rows.remove_column(time_field);
    if let Some(name) = plan.plan.meta_field.as_deref().filter(|_| plan.plan.wants_meta && metas.present_count() > 0) {
        rows.set_first_column(name, metas);
    }
    if let Some(time) = time {
        rows.set_first_column(time_field, time);
    }
    Ok(Some(rows))
}

/// True if only the last row of a bucket is wanted, false if only the first one; `None` if others are wanted as well.
fn end_of(plan: &ReadPlan, bucket: &BucketDoc<'_>) -> Option<bool> {
    match wanted_rows_of(plan, bucket).filter(|_| plan.all_match(bucket))? {
        (Which::Last, 1) => Some(true),
        (Which::First, 1) => Some(false),
        _ => None,
    }
}

/// The first or the last row of a stored bucket. It is kept with the bucket, unless it is large.
fn stored_row(
    plan: &ReadPlan,
    stored: &StoredBucket,
    view: &BucketDoc<'_>,
    options: &TimeseriesOptions,
    is_last: bool,
) -> Result<Rc<EndRow>> {
    let known = stored.end_row.borrow().clone();
    if let Some(known) = known.filter(|known| known.is_last == is_last && known.columns == plan.columns) {
        return Ok(known);
    }
    let row = document_of(&unpack_first_or_last(view, &plan.columns, options, (is_last, 1))?);
    let new = Rc::new(EndRow { is_last, columns: plan.columns.clone(), row });
    if KEPT_PART * new.row.view().as_bytes().len() <= stored.document.view().as_bytes().len() {
        *stored.end_row.borrow_mut() = Some(Rc::clone(&new));
    }
    Ok(new)
}

fn document_of(row: &Block) -> DocBuf {
    let mut writer = DocWriter::new();
    row.write_row(0, &mut writer);
    writer.finish()
}
