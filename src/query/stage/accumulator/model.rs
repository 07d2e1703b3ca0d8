//! What an accumulator does, and what several of them share.

use std::ops::Range;

use crate::block::Column;
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Collation, DocWriter, Kind, Number, OwnedValue, Value};

/// An accumulator for all groups of a stage.
pub trait Accumulator {
    /// Makes room for one more group, the next in number, with its `n` where the accumulator has one.
    fn grow(&mut self, n: usize);

    /// Adds those cells of a column to a group. Where the rows come out of their order it is that of `times`, one a row of the column.
    ///
    /// Errors: values that cannot be added.
    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>, times: Option<&Times<'_>>) -> Result<()>;

    /// What has come of a group.
    fn value(&self, group: usize) -> OwnedValue;

    /// Adds what has come of one group to another, as if it had seen these values as well. False, and nothing is done, where the
    /// accumulator cannot.
    fn merge(&mut self, _into: usize, _from: usize) -> bool {
        false
    }

    /// What it holds, where that may become much.
    fn size_bytes(&self) -> usize {
        0
    }
}

/// The times of rows, by which they would be sorted.
pub struct Times<'a> {
    /// Milliseconds since the epoch, one a row.
    pub ms: &'a [i64],
    /// True where the sort ascends.
    pub ascending: bool,
}

impl Times<'_> {
    /// Where a row stands among all of them: below the places of rows that come behind it.
    pub fn place(&self, row: usize) -> i64 {
        let ms = self.ms.get(row).copied().unwrap_or_default();
        if self.ascending { ms } else { !ms }
    }
}

/// What comes of an accumulator besides its input.
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

/// A number as a double, which is what the server counts these in, decimals too; `None` for anything else.
pub(super) fn number(value: Value<'_>) -> Option<f64> {
    Number::of(value).map(Number::near_double)
}

/// The error of what holds more than it may.
pub(super) fn list_is_full() -> Error {
    Error::new(ErrorCode::ExceededMemoryLimit, "A list of a $group takes more memory than it may")
}

pub(super) fn array_of(values: &mut dyn Iterator<Item = Value<'_>>) -> OwnedValue {
    let mut writer = DocWriter::new();
    for (place, value) in values.enumerate() {
        writer.value(&place.to_string(), value);
    }
    Value::new_checked(Kind::Array, writer.finish().view().as_bytes()).to_owned()
}

/// Shows `see` every cell of a range that is there.
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
