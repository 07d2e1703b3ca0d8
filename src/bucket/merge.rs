//! A stored bucket and rows that it does not hold yet, made one document; a bucket without some of its rows.

use std::ops::Range;

use super::build::{Header, build};
use super::document::BucketDoc;
use super::id::BucketId;
use super::min_max::MinMax;
use super::options::TimeseriesOptions;
use super::rows::Rows;
use super::unpack::{ColumnSet, unpack};
use crate::block::{Bitmap, Block};
use crate::error::Result;
use crate::value::{DocBuf, Value};

/// Merges.
pub fn merge(
    stored: Option<&BucketDoc<'_>>,
    id: &BucketId,
    min_time_ms: i64,
    meta: Option<Value<'_>>,
    additions: &[(&Block, Range<usize>)],
    options: &TimeseriesOptions,
) -> Result<DocBuf> {
    let old = stored.map(|bucket| unpack(bucket, &ColumnSet::All, options)).transpose()?;
    let mut summary = match stored {
        Some(bucket) => MinMax::from_control(bucket.control_min(), bucket.control_max())?,
        None => MinMax::seed_time(&options.time_field, min_time_ms),
    };
    for (block, range) in additions {
        summary.update_rows(block, Rows::from(range.clone()), None);
    }
    let mut parts: Vec<(&Block, Range<usize>)> = old.iter().map(|block| (block, 0..block.rows())).collect();
    parts.extend(additions.iter().cloned());
    let rows = Block::concat_slices(&parts);
    let header =
        Header { id: *id, meta: stored.map_or(meta, BucketDoc::meta), closed: stored.is_some_and(BucketDoc::closed) };
    build(&header, &rows, &summary, &options.time_field)
}

/// Rebuilds.
pub fn rebuild(
    bucket: &BucketDoc<'_>,
    rows: &Block,
    keep: &Bitmap,
    options: &TimeseriesOptions,
) -> Result<Option<DocBuf>> {
    if keep.none() {
        return Ok(None);
    }
    let rows = rows.gather(&keep.to_rows());
    let mut summary = MinMax::seed_time(&options.time_field, bucket.min_time_ms());
    summary.update_rows(&rows, Rows::from(0..rows.rows()), None);
    let header = Header { id: bucket.id(), meta: bucket.meta(), closed: bucket.closed() };
    build(&header, &rows, &summary, &options.time_field).map(Some)
}
