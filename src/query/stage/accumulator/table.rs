//! The table of accumulators. A new one is a file and a row.
//!
//! Rule: mongodb/mongo src/mongo/db/pipeline/accumulator_*.cpp.

use std::fmt;

use super::arguments::{self, Arguments};
use super::model::{Accumulator, Settings};
use super::ranked::{Rank, Ranked};
use super::{covariance, deviation, edge, extreme, list, percentile, sum};

/// A row of the table of accumulators.
#[derive(Clone, Copy)]
pub(super) struct AccumulatorSpec {
    /// With its `$`.
    pub name: &'static str,
    /// True where the order of rows does not matter, or that of their times is enough.
    pub takes_any_order: bool,
    pub arguments: Arguments,
    pub start: fn(&Settings) -> Box<dyn Accumulator>,
}

impl AccumulatorSpec {
    /// The accumulator of that name.
    pub fn named(name: &str) -> Option<AccumulatorSpec> {
        TABLE.iter().find(|spec| spec.name == name).copied()
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

const fn row(
    name: &'static str,
    takes_any_order: bool,
    arguments: Arguments,
    start: fn(&Settings) -> Box<dyn Accumulator>,
) -> AccumulatorSpec {
    AccumulatorSpec { name, takes_any_order, arguments, start }
}

/// The accumulators that only windows have.
pub const COVARIANCES: [&str; 2] = ["$covariancePop", "$covarianceSamp"];

const TABLE: [AccumulatorSpec; 26] = [
    row("$sum", true, Arguments::Input, |_| Box::new(sum::Sums::new(false))),
    row("$avg", true, Arguments::Input, |_| Box::new(sum::Sums::new(true))),
    row("$min", true, Arguments::Input, |by| Box::new(extreme::Extremes::new(false, &by.collation))),
    row("$max", true, Arguments::Input, |by| Box::new(extreme::Extremes::new(true, &by.collation))),
    row("$first", true, Arguments::Input, |_| Box::new(edge::Edges::new(false))),
    row("$last", true, Arguments::Input, |_| Box::new(edge::Edges::new(true))),
    row("$push", false, Arguments::Input, |by| Box::new(list::Lists::new(false, false, &by.collation))),
    row("$addToSet", false, Arguments::Input, |by| Box::new(list::Lists::new(true, false, &by.collation))),
    row("$concatArrays", false, Arguments::Input, |by| Box::new(list::Lists::new(false, true, &by.collation))),
    row("$setUnion", false, Arguments::Input, |by| Box::new(list::Lists::new(true, true, &by.collation))),
    row("$stdDevPop", true, Arguments::Input, |_| Box::new(deviation::Deviations::new(false))),
    row("$stdDevSamp", true, Arguments::Input, |_| Box::new(deviation::Deviations::new(true))),
    row(COVARIANCES[0], true, Arguments::Pair, |_| Box::new(covariance::Covariances::new(false))),
    row(COVARIANCES[1], true, Arguments::Pair, |_| Box::new(covariance::Covariances::new(true))),
    row("$count", true, Arguments::Nothing, |_| Box::new(sum::Sums::new(false))),
    row("$mergeObjects", false, Arguments::Input, |_| Box::new(edge::Merged::default())),
    row("$firstN", false, Arguments::Named(&arguments::EDGES), |by| Box::new(Ranked::new(Rank::First, false, by))),
    row("$lastN", false, Arguments::Named(&arguments::EDGES), |by| Box::new(Ranked::new(Rank::Last, false, by))),
    row("$minN", true, Arguments::Named(&arguments::EXTREMES), |by| Box::new(Ranked::new(Rank::Least, false, by))),
    row("$maxN", true, Arguments::Named(&arguments::EXTREMES), |by| Box::new(Ranked::new(Rank::Greatest, false, by))),
    row("$top", false, Arguments::Named(&arguments::TOP), |by| Box::new(Ranked::new(Rank::Top, true, by))),
    row("$bottom", false, Arguments::Named(&arguments::TOP), |by| Box::new(Ranked::new(Rank::Bottom, true, by))),
    row("$topN", false, Arguments::Named(&arguments::TOP_N), |by| Box::new(Ranked::new(Rank::Top, false, by))),
    row("$bottomN", false, Arguments::Named(&arguments::TOP_N), |by| Box::new(Ranked::new(Rank::Bottom, false, by))),
    row("$median", true, Arguments::Named(&arguments::MEDIAN), |by| Box::new(percentile::Percentiles::new(by))),
    row("$percentile", true, Arguments::Named(&arguments::PERCENTILE), |by| Box::new(percentile::Percentiles::new(by))),
];
