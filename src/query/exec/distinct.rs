//! Collects the distinct values at a path.

use super::executor::Flow;
use super::known::KnownValues;
use super::measurements::Measurements;
use super::sink::{Counters, Sink};
use crate::block::Block;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::DOCUMENT_SIZE_BYTES_MAX;
use crate::query::plan::Plan;
use crate::value::{Leaf, OwnedValue, Path, Value, append_key, walk_from_value};

/// The distinct values that a path reaches in the matches of a plan. An array counts as its elements; a missing value
/// does not count.
pub struct Distinct {
    measurements: Measurements,
    /// True if the path leads into the metadata.
    of_meta: bool,
    path: Path,
    known: KnownValues,
    size_bytes: usize,
}

impl Distinct {
    /// An empty collection of values at `path`.
    pub fn new(path: Path) -> Distinct {
        Distinct {
            measurements: Measurements::default(),
            of_meta: false,
            path,
            known: KnownValues::default(),
            size_bytes: 0,
        }
    }

    /// The values, in first-seen order.
    pub fn into_values(self) -> Vec<OwnedValue> {
        self.known.into_values()
    }

    fn add(&mut self, root: Option<Value<'_>>) -> Result<()> {
        let Distinct { path, known, size_bytes, .. } = self;
        let mut key = Vec::new();
        let mut note = |value: Value<'_>| {
            key.clear();
            append_key(&mut key, value);
            if known.add(&key, &mut || Value::to_owned(value)).1 {
                *size_bytes += value.bytes().len();
            }
        };
        walk_from_value(root, path.rest(), Leaf::Whole, &mut |value| {
            match value.and_then(Value::as_array) {
                Some(elements) => elements.iter().for_each(|(_, element)| note(element)),
                None => value.into_iter().for_each(&mut note),
            }
            false
        });
        if *size_bytes > DOCUMENT_SIZE_BYTES_MAX {
            return Err(Error::new(ErrorCode::Location17217, "The distinct values exceed 16 MiB"));
        }
        Ok(())
    }
}

impl Sink for Distinct {
    fn begin(&mut self, plan: &Plan) {
        self.measurements = Measurements::new(plan);
        self.known = KnownValues::new(plan.collation.clone());
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
