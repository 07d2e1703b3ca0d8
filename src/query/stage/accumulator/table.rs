//! The table of accumulators. A new one is a file and a row.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/accumulator_*.cpp.

use std::fmt;

use super::arguments::{self, ArgumentSyntax};
use super::model::{Accumulator, Settings};
use super::ranked::{Rank, Ranked};
use super::{covariance, deviation, extreme, first_last, list, percentile, sum};

/// A row of the table of accumulators.
#[derive(Clone, Copy)]
pub(super) struct AccumulatorSpec {
    /// The name, with its `$`.
    pub name: &'static str,
    /// True if the order of rows does not matter, or if knowing their times is enough.
    pub takes_any_order: bool,
    pub arguments: ArgumentSyntax,
    pub start: fn(&Settings) -> Box<dyn Accumulator>,
}

impl AccumulatorSpec {
    /// The accumulator with this name.
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
    arguments: ArgumentSyntax,
    start: fn(&Settings) -> Box<dyn Accumulator>,
) -> AccumulatorSpec {
    AccumulatorSpec { name, takes_any_order, arguments, start }
}

/// Accumulators that only windows have.
pub const COVARIANCES: [&str; 2] = ["$covariancePop", "$covarianceSamp"];

const TABLE: [AccumulatorSpec; 26] = [
    row("$sum", true, ArgumentSyntax::Input, |_| Box::new(sum::Sums::new(false))),
    row("$avg", true, ArgumentSyntax::Input, |_| Box::new(sum::Sums::new(true))),
    row("$min", true, ArgumentSyntax::Input, |by| Box::new(extreme::ExtremeValues::new(false, &by.collation))),
    row("$max", true, ArgumentSyntax::Input, |by| Box::new(extreme::ExtremeValues::new(true, &by.collation))),
    row("$first", true, ArgumentSyntax::Input, |_| Box::new(first_last::FirstOrLast::new(false))),
    row("$last", true, ArgumentSyntax::Input, |_| Box::new(first_last::FirstOrLast::new(true))),
    row("$push", false, ArgumentSyntax::Input, |by| Box::new(list::Lists::new(false, false, &by.collation))),
    row("$addToSet", false, ArgumentSyntax::Input, |by| Box::new(list::Lists::new(true, false, &by.collation))),
    row("$concatArrays", false, ArgumentSyntax::Input, |by| Box::new(list::Lists::new(false, true, &by.collation))),
    row("$setUnion", false, ArgumentSyntax::Input, |by| Box::new(list::Lists::new(true, true, &by.collation))),
    row("$stdDevPop", true, ArgumentSyntax::Input, |_| Box::new(deviation::Deviations::new(false))),
    row("$stdDevSamp", true, ArgumentSyntax::Input, |_| Box::new(deviation::Deviations::new(true))),
    row(COVARIANCES[0], true, ArgumentSyntax::Pair, |_| Box::new(covariance::Covariances::new(false))),
    row(COVARIANCES[1], true, ArgumentSyntax::Pair, |_| Box::new(covariance::Covariances::new(true))),
    row("$count", true, ArgumentSyntax::Nothing, |_| Box::new(sum::Sums::new(false))),
    row("$mergeObjects", false, ArgumentSyntax::Input, |_| Box::new(first_last::Merged::default())),
    row("$firstN", false, ArgumentSyntax::Named(&arguments::FIRST_N), |by| {
        Box::new(Ranked::new(Rank::First, false, by))
    }),
    row("$lastN", false, ArgumentSyntax::Named(&arguments::FIRST_N), |by| Box::new(Ranked::new(Rank::Last, false, by))),
    row("$minN", true, ArgumentSyntax::Named(&arguments::EXTREMES), |by| Box::new(Ranked::new(Rank::Least, false, by))),
    row("$maxN", true, ArgumentSyntax::Named(&arguments::EXTREMES), |by| {
        Box::new(Ranked::new(Rank::Greatest, false, by))
    }),
    row("$top", false, ArgumentSyntax::Named(&arguments::TOP), |by| Box::new(Ranked::new(Rank::Top, true, by))),
    row("$bottom", false, ArgumentSyntax::Named(&arguments::TOP), |by| Box::new(Ranked::new(Rank::Bottom, true, by))),
    row("$topN", false, ArgumentSyntax::Named(&arguments::TOP_N), |by| Box::new(Ranked::new(Rank::Top, false, by))),
    row("$bottomN", false, ArgumentSyntax::Named(&arguments::TOP_N), |by| {
        Box::new(Ranked::new(Rank::Bottom, false, by))
    }),
    row("$median", true, ArgumentSyntax::Named(&arguments::MEDIAN), |by| Box::new(percentile::Percentiles::new(by))),
    row("$percentile", true, ArgumentSyntax::Named(&arguments::PERCENTILE), |by| {
        Box::new(percentile::Percentiles::new(by))
    }),
];
