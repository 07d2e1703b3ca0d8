//! Accumulators: what `$group` makes of the values of a group.
//!
//! Rule: mongodb/mongo src/mongo/db/pipeline/accumulator_*.cpp.

mod deviation;
mod edge;
mod extreme;
mod list;
mod sum;

use std::fmt;
use std::ops::Range;

use crate::block::Column;
use crate::error::{Error, Result};
use crate::value::{Collation, OwnedValue, Value};

/// An accumulator for all groups of a stage.
pub trait Accumulator {
    /// Makes room for one more group, the next in number.
    fn grow(&mut self);

    /// Adds those cells of a column to a group.
    ///
    /// Errors: values that cannot be added.
    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>) -> Result<()>;

    /// As `add`, where the rows come out of their order, which is that of `times_ms`, one a row of the column.
    ///
    /// Errors: as `add`.
    fn add_unordered(&mut self, group: usize, cells: &Column, rows: Range<usize>, times: &Times<'_>) -> Result<()> {
        let _ = times;
        self.add(group, cells, rows)
    }

    /// What has come of a group.
    fn value(&self, group: usize) -> OwnedValue;

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

/// A row of the table of accumulators.
#[derive(Clone, Copy)]
pub struct AccumulatorSpec {
    /// With its `$`.
    pub name: &'static str,
    /// True where the order of rows does not matter, or that of their times is enough.
    pub takes_any_order: bool,
    start: fn(&Collation) -> Box<dyn Accumulator>,
}

impl AccumulatorSpec {
    /// The accumulator of that name.
    pub fn named(name: &str) -> Option<AccumulatorSpec> {
        TABLE.iter().find(|spec| spec.name == name).copied()
    }

    /// One without groups, that compares strings by `collation`.
    pub fn start(&self, collation: &Collation) -> Box<dyn Accumulator> {
        (self.start)(collation)
    }
}

impl PartialEq for AccumulatorSpec {
    fn eq(&self, other: &AccumulatorSpec) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for AccumulatorSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

const TABLE: [AccumulatorSpec; 12] = [
    AccumulatorSpec { name: "$sum", takes_any_order: true, start: |_| Box::new(sum::Sums::new(false)) },
    AccumulatorSpec { name: "$avg", takes_any_order: true, start: |_| Box::new(sum::Sums::new(true)) },
    AccumulatorSpec { name: "$min", takes_any_order: true, start: |by| Box::new(extreme::Extremes::new(false, by)) },
    AccumulatorSpec { name: "$max", takes_any_order: true, start: |by| Box::new(extreme::Extremes::new(true, by)) },
    AccumulatorSpec { name: "$first", takes_any_order: true, start: |_| Box::new(edge::Edges::new(false)) },
    AccumulatorSpec { name: "$last", takes_any_order: true, start: |_| Box::new(edge::Edges::new(true)) },
    AccumulatorSpec { name: "$push", takes_any_order: false, start: |by| Box::new(list::Lists::new(false, by)) },
    AccumulatorSpec { name: "$addToSet", takes_any_order: false, start: |by| Box::new(list::Lists::new(true, by)) },
    AccumulatorSpec {
        name: "$stdDevPop",
        takes_any_order: true,
        start: |_| Box::new(deviation::Deviations::new(false)),
    },
    AccumulatorSpec {
        name: "$stdDevSamp",
        takes_any_order: true,
        start: |_| Box::new(deviation::Deviations::new(true)),
    },
    // Its argument is an empty object; the parser gives it a 1 to add.
    AccumulatorSpec { name: "$count", takes_any_order: true, start: |_| Box::new(sum::Sums::new(false)) },
    AccumulatorSpec { name: "$mergeObjects", takes_any_order: false, start: |_| Box::new(edge::Merged::default()) },
];

fn no_decimals() -> Error {
    Error::bad_value("Sums of decimals are not supported yet")
}

/// Shows `see` every cell of a range that is there.
fn each_cell(cells: &Column, rows: Range<usize>, see: &mut dyn FnMut(Value<'_>) -> Result<()>) -> Result<()> {
    let mut scratch = Vec::new();
    for row in rows {
        if let Some(value) = cells.value(row, &mut scratch) {
            see(value)?;
        }
    }
    Ok(())
}
