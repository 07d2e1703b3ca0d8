//! Salvages what is readable of a damaged bucket (I28).

use super::document::BucketFormat;
use super::id::BucketId;
use super::merge::merge;
use super::options::TimeseriesOptions;
use super::time::is_extended_range;
use super::validate::{inner, read_cells, read_times};
use crate::block::{Block, Column, ColumnData};
use crate::value::{Doc, DocBuf, Kind, Value};

/// A valid bucket made from a damaged one.
pub struct Salvaged {
    /// The new bucket, with the same id.
    pub document: DocBuf,
    /// How many measurements it holds.
    pub rows: usize,
    /// True if every column could be read.
    pub complete: bool,
}

/// A valid bucket with every measurement of the damaged bucket `id`, as far as its columns can be read.
///
/// `None` if it is unknown which measurements there are, or if they do not belong in a bucket with that id: rows never
/// get times or metadata that they did not have.
pub fn salvage(
    document: Doc<'_>,
    id: &BucketId,
    format: BucketFormat,
    options: &TimeseriesOptions,
) -> Option<Salvaged> {
    let data = inner(document, "data")?;
    let times = read_times(data.get(&options.time_field)?).ok()?;
    let start_ms = start_of(document, id, options)?;
    if !times.values.iter().all(|ms| (0..options.span_ms()).contains(&ms.saturating_sub(start_ms))) {
        return None;
    }
    let (rows, mut complete) = (times.values.len(), true);
    let mut block = Block::new(rows);
    block.push_new_column(&options.time_field, Column::new(ColumnData::Date(times.values.clone()), None));
    for (name, value) in data.iter().filter(|(name, _)| *name != options.time_field) {
        match read_cells(value, &times) {
            Ok(Some(column)) if block.column(name).is_none() => block.push_new_column(name, column),
            Ok(None) => {}
            _ => complete = false,
        }
    }
    // A value that cannot be metadata would move the rows to another series.
    let meta = document.get("meta");
    let twice = document.iter().filter(|(name, _)| *name == "meta").count() > 1;
    if twice || meta.is_some_and(|meta| options.meta_field.is_none() || meta.kind() == Kind::Undefined) {
        return None;
    }
    let document = merge(None, id, start_ms, meta, &[(&block, 0..rows)], format, options).ok()?;
    Some(Salvaged { document, rows, complete })
}

/// The start of the bucket `id`: taken from its control if that is outside the standard range, which ids cannot
/// express; otherwise from the id.
fn start_of(document: Doc<'_>, id: &BucketId, options: &TimeseriesOptions) -> Option<i64> {
    let min = inner(document, "control").and_then(|control| inner(control, "min"));
    let said = min.and_then(|min| min.get(&options.time_field)).and_then(Value::as_date_ms);
    let of_id = (!id.is_extended()).then(|| i64::from(id.time_seconds()) * 1000);
    said.filter(|ms| is_extended_range(*ms)).or(of_id)
}
