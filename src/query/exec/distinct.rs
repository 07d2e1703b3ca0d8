//! The different values at a path.

use std::cmp::Ordering;

use super::executor::Flow;
use super::measurements::Measurements;
use super::sink::{Counters, Sink};
use crate::block::Block;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::DOCUMENT_SIZE_BYTES_MAX;
use crate::query::plan::Plan;
use crate::value::{Collation, Leaf, Numbers, OwnedValue, Path, Value, append_key, walk_from_value};

/// Collects the values that a path reaches in what a plan matches, each once. An array counts as its elements, what is missing as nothing.
pub struct Distinct {
    measurements: Measurements,
    /// True where the path leads into the metadata.
    of_meta: bool,
    path: Path,
    /// By keys that are equal where values compare equal by bytes: 1 and 1.0 are one value.
    known: Numbers,
    values: Vec<OwnedValue>,
    collation: Collation,
    /// The places of `values` in the order of the collation, where bytes do not tell what is equal.
    order: Vec<usize>,
    size_bytes: usize,
}

impl Distinct {
    /// A collection of values at `path` that is empty.
    pub fn new(path: Path) -> Distinct {
        Distinct {
            measurements: Measurements::default(),
            of_meta: false,
            path,
            known: Numbers::default(),
            values: Vec::new(),
            collation: Collation::default(),
            order: Vec::new(),
            size_bytes: 0,
        }
    }

    /// The values, in the order in which they were met.
    pub fn into_values(self) -> Vec<OwnedValue> {
        self.values
    }

    fn add(&mut self, root: Option<Value<'_>>) -> Result<()> {
        let Distinct { path, known, values, size_bytes, collation, order, .. } = self;
        let mut key = Vec::new();
        let mut note = |value: Value<'_>| {
            key.clear();
            append_key(&mut key, value);
            let mut new = known.add(&key).1;
            if new && !collation.is_simple() {
                let place = order.binary_search_by(|at| {
                    values.get(*at).map_or(Ordering::Less, |known| collation.compare(known.view(), value))
                });
                new = place.map_err(|place| order.insert(place, values.len())).is_err();
            }
            if new {
                *size_bytes += value.bytes().len();
                values.push(value.to_owned());
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
            return Err(Error::new(ErrorCode::Location17217, "distinct too big, 16mb cap"));
        }
        Ok(())
    }
}

impl Sink for Distinct {
    fn begin(&mut self, plan: &Plan) {
        self.measurements = Measurements::new(plan);
        self.collation = plan.collation.clone();
        self.of_meta = plan.meta_field.as_deref() == Some(self.path.first());
    }

    fn push(&mut self, rows: Block, meta: Option<Value<'_>>, all_match: bool) -> Result<Flow> {
        let rows = self.measurements.complete(rows, meta);
        let selected = self.measurements.select(&rows, all_match)?;
        let mut matching = (0..rows.rows()).filter(|row| selected.as_ref().is_none_or(|selected| selected.get(*row)));
        if self.of_meta {
            // All rows have the same.
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
