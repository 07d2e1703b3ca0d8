//! The interface of accumulators, and what several of them share.

use std::ops::Range;

use crate::block::Column;
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Collation, DocWriter, Kind, Number, OwnedValue, Value};

/// An accumulator for all groups of a stage.
pub trait Accumulator {
    /// Adds a state for one more group, the next by number, with its `n` if the accumulator has one.
    fn grow(&mut self, n: usize);

    /// Adds cells of a column to a group. If rows come out of order, `times` gives their order, with one time per row
    /// of the column.
    ///
    /// Errors: values that cannot be accumulated.
    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>, times: Option<&Times<'_>>) -> Result<()>;

    /// The result for a group.
    fn value(&self, group: usize) -> OwnedValue;

    /// Merges one group into another, as if that had seen these values as well. Does nothing and answers false if the
    /// accumulator cannot merge.
    fn merge(&mut self, _into: usize, _from: usize) -> bool {
        false
    }

    /// The bytes that it holds, if they may become many.
    fn size_bytes(&self) -> usize {
        0
    }
}

/// The times of rows, if these come out of order.
pub struct Times<'a> {
    /// Milliseconds since the epoch, one per row.
    pub ms: &'a [i64],
    /// True if the sort is ascending.
    pub ascending: bool,
}

impl Times<'_> {
    /// The place of a row among all rows: smaller than the places of rows that sort after it.
    pub fn place(&self, row: usize) -> i64 {
        let ms = self.ms.get(row).copied().unwrap_or_default();
        if self.ascending { ms } else { !ms }
    }
}

/// What an accumulator depends on besides its input.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// How strings compare.
    pub collation: Collation,
    /// The directions of a `sortBy`.
    pub(super) ascending: Vec<bool>,
    /// The `p` of `$percentile`.
    pub(super) percentiles: Vec<f64>,
    pub(super) is_continuous: bool,
}

/// A number as a double, which is how the server computes here, decimals included; `None` for other values.
pub(super) fn number(value: Value<'_>) -> Option<f64> {
    Number::of(value).map(Number::near_double)
}

/// The error for exceeding the memory limit.
pub(super) fn list_is_full() -> Error {
    Error::new(ErrorCode::ExceededMemoryLimit, "A list of a $group exceeds the memory limit")
}

pub(super) fn array_of(values: &mut dyn Iterator<Item = Value<'_>>) -> OwnedValue {
    let mut writer = DocWriter::new();
    for (place, value) in values.enumerate() {
        writer.value(&place.to_string(), value);
    }
    Value::new_checked(Kind::Array, writer.finish().view().as_bytes()).to_owned()
}

/// Calls `see` with every present cell of a range.
pub(super) fn each_cell(
    cells: &Column,
    rows: Range<usize>,
    see: &mut dyn FnMut(Value<'_>) -> Result<()>,
) -> Result<()> {
    let mut scratch = Vec::new();
    for row in rows {
        if let Some(value) = cells.value(row, &mut scratch) {
            see(value)?;
        }
    }
    Ok(())
}
