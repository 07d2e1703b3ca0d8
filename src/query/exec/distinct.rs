//! Collects the distinct values at a path.

// Loaded later.

use super::coding::{Coder, MissingAs};
use super::measurements::Measurements;
use super::sink::{Counters, Flow, Sink};
use crate::block::{Bitmap, Block, Column};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::DOCUMENT_SIZE_BYTES_MAX;
use crate::query::plan::Plan;
use crate::query::sort::column_at;
use crate::value::{Collation, Leaf, OwnedValue, Path, Value, walk_from_value};

/// The distinct values that a path reaches in the matches of a plan. An array counts as its elements; a missing value
/// does not count.
pub struct Distinct {
    measurements: Measurements,
    /// True if the path leads into the metadata.
    of_meta: bool,
    path: Path,
    known: Coder,
    /// How many values were counted in `size_bytes`.
    counted: usize,
    size_bytes: usize,
}

impl Distinct {
    /// An empty collection of values at `path`.
    pub fn new(path: Path) -> Distinct {
        Distinct {
            measurements: Measurements::default(),
            of_meta: false,
            path,
            known: Coder::new(Collation::default(), MissingAs::Nothing),
            counted: 0,
            size_bytes: 0,
        }
    }

    /// The values, in first-seen order.
    pub fn into_values(self) -> Vec<OwnedValue> {
        self.known.into_values()
    }

    fn add(&mut self, root: Option<Value<'_>>) -> Result<()> {
        let Distinct { path, known, .. } = self;
        walk_from_value(root, path.rest(), Leaf::Whole, &mut |value| {
            match value.and_then(Value::as_array) {
                Some(elements) => elements.iter().for_each(|(_, element)| {
                    known.number(element);
                }),
                None => value.into_iter().for_each(|value| {
                    known.number(value);
                }),
            }
            false
        });
        self.check_size()
    }

    fn check_size(&mut self) -> Result<()> {
        let mut size_bytes = 0;
        self.known.for_each(self.counted, &mut |value| size_bytes += value.bytes().len());
        self.size_bytes += size_bytes;
        self.counted = self.known.count();
        if self.size_bytes > DOCUMENT_SIZE_BYTES_MAX {
            return Err(Error::new(ErrorCode::Location17217, "The distinct values exceed 16 MiB"));
        }
        Ok(())
    }
}

/// Numbers the values of a whole column, or of its `selected` rows. False if it has no rows, or if the second half of the
/// module is not loaded.
// Loaded later.
#[inline(never)]
fn numbered_if_loaded(known: &mut Coder, column: &Column, selected: Option<&Bitmap>) -> bool {
    if column.is_empty() {
        return false;
    }
    match selected {
        None => known.numbers(column, 0..column.len()),
        Some(selected) => {
            let rows = selected.to_rows();
            known.numbers(&column.gather(&rows), 0..rows.len())
        }
    };
    true
}

impl Sink for Distinct {
    fn begin(&mut self, plan: &Plan) {
        self.measurements = Measurements::new(plan);
        self.known = Coder::new(plan.collation.clone(), MissingAs::Nothing);
        self.of_meta = plan.meta_field.as_deref() == Some(self.path.first());
    }

    fn push(&mut self, rows: Block, meta: Option<Value<'_>>, all_match: bool) -> Result<Flow> {
        let rows = self.measurements.complete(rows, meta);
        let selected = self.measurements.select(&rows, all_match)?;
        let mut matching = (0..rows.rows()).filter(|row| selected.as_ref().is_none_or(|selected| selected.get(*row)));
        if self.of_meta {
            // All rows of the bucket have the same value.
            return matching.next().map_or(Ok(()), |_| self.add(meta)).map(|()| Flow::Continue);
        }
        let Some(column) = rows.column(self.path.first()) else { return Ok(Flow::Continue) };
        // There are no arrays in a column of one type. A path into objects may be one.
        if let Some(Some(column)) = column_at(&self.path, &rows)
            && column.kind().is_some()
            && numbered_if_loaded(&mut self.known, column, selected.as_ref())
        {
            return self.check_size().map(|()| Flow::Continue);
        }
        let mut scratch = Vec::new();
        matching.try_for_each(|row| self.add(column.value(row, &mut scratch)))?;
        Ok(Flow::Continue)
    }

    fn push_whole(&mut self, count: &dyn Fn() -> Result<usize>, meta: Option<Value<'_>>) -> Result<Option<Flow>> {
        if !self.of_meta {
            return Ok(None);
        }
        let rows = count()?;
        if rows > 0 {
            self.measurements.counters.measurements_matched += rows as u64;
            self.add(meta)?;
        }
        Ok(Some(Flow::Continue))
    }

    fn counters(&mut self) -> &mut Counters {
        &mut self.measurements.counters
    }
}
