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
use crate::error::Result;
use crate::value::{Collation, OwnedValue, Value};

/// An accumulator for all groups of a stage.
pub trait Accumulator {
    /// Makes room for one more group, the next in number.
    fn grow(&mut self);

    /// Adds those cells of a column to a group.
    ///
    /// Errors: values that cannot be added.
    fn add(&mut self, group: usize, cells: &Column, rows: Range<usize>) -> Result<()>;

    /// What has come of a group.
    fn value(&self, group: usize) -> OwnedValue;

    /// What it holds, where that may become much.
    fn size_bytes(&self) -> usize {
        0
    }
}

/// A row of the table of accumulators.
#[derive(Clone, Copy)]
pub struct AccumulatorSpec {
    /// With its `$`.
    pub name: &'static str,
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
    AccumulatorSpec { name: "$sum", start: |_| Box::new(sum::Sums::new(false)) },
    AccumulatorSpec { name: "$avg", start: |_| Box::new(sum::Sums::new(true)) },
    AccumulatorSpec { name: "$min", start: |by| Box::new(extreme::Extremes::new(false, by)) },
    AccumulatorSpec { name: "$max", start: |by| Box::new(extreme::Extremes::new(true, by)) },
    AccumulatorSpec { name: "$first", start: |_| Box::new(edge::Edges::new(false)) },
    AccumulatorSpec { name: "$last", start: |_| Box::new(edge::Edges::new(true)) },
    AccumulatorSpec { name: "$push", start: |_| Box::new(list::Lists::new(false)) },
    AccumulatorSpec { name: "$addToSet", start: |_| Box::new(list::Lists::new(true)) },
    AccumulatorSpec { name: "$stdDevPop", start: |_| Box::new(deviation::Deviations::new(false)) },
    AccumulatorSpec { name: "$stdDevSamp", start: |_| Box::new(deviation::Deviations::new(true)) },
    // Its argument is an empty object; the parser gives it a 1 to add.
    AccumulatorSpec { name: "$count", start: |_| Box::new(sum::Sums::new(false)) },
    AccumulatorSpec { name: "$mergeObjects", start: |_| Box::new(edge::Merged::default()) },
];

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
