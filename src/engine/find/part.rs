//! Queries for the rows at one end of each bucket: which rows these are, and which part of the bucket holds them.

// Loaded later.

use crate::bucket::{BucketDoc, TimeseriesOptions};
use crate::engine::journal::SectionGroup;
use crate::engine::read::unit::Unit;
use crate::error::Result;
use crate::query::{ReadPlan, Which};
use crate::value::Doc;

/// The rows wanted of a bucket whose rows all match; `None` if all are wanted.
#[inline(never)]
pub(super) fn wanted_rows_of(plan: &ReadPlan, bucket: &BucketDoc<'_>) -> Option<(Which, usize)> {
    plan.wanted_rows(bucket)
}

/// A part of a bucket.
#[derive(PartialEq)]
pub(super) enum BucketPart {
    /// The stored rows.
    Stored,
    /// The journal rows.
    Journal,
}

/// The part of a bucket that holds all wanted rows, if its journal rows are later than its stored ones; `None` if both
/// parts must be read.
#[inline(never)]
pub(super) fn only_part(
    plan: &ReadPlan,
    unit: &Unit,
    group: &SectionGroup,
    stored: &BucketDoc<'_>,
    options: &TimeseriesOptions,
) -> Result<Option<BucketPart>> {
    // Rows at the same time must still be compared.
    if group.first_ms <= stored.max_time_ms() {
        return Ok(None);
    }
    let times = (stored.min_time_ms(), group.last_ms);
    let whole = BucketDoc::of_summary(unit.id, group.meta(), (Doc::EMPTY, Doc::EMPTY), times, 0);
    Ok(match wanted_rows_of(plan, &whole) {
        Some((Which::First, count)) if plan.all_match(stored) && stored.count()? >= count => Some(BucketPart::Stored),
        Some((Which::Last, count)) if unit.unfolded_rows(group) >= count => {
            let tail = unit.tail(group, options)?;
            let view = tail.summary(unit.id, group.meta());
            Some(BucketPart::Journal).filter(|_| plan.all_match(&view)).filter(|_| plan.may_match(&view) == Ok(true))
        }
        _ => None,
    })
}
