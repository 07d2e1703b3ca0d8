//! Accumulators: what `$group` makes of the values of a group.
//!
//! Rule: mongodb/mongo src/mongo/db/pipeline/accumulator_*.cpp.

mod arguments;
mod covariance;
mod deviation;
mod edge;
mod extreme;
mod list;
mod percentile;
mod ranked;
mod sum;

use std::fmt;
use std::ops::Range;

use arguments::Arguments;
use ranked::{Rank, Ranked};

use crate::block::Column;
use crate::error::{Error, ErrorCode, Result};
use crate::limits::EDGE_ROWS_MAX;
use crate::query::expr::{BoundExpr, Expr, Globals, Variable};
use crate::value::{Collation, Doc, DocWriter, Kind, Number, OwnedValue, Value};

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
    ascending: Vec<bool>,
    /// The `p` of `$percentile`.
    percentiles: Vec<f64>,
    is_continuous: bool,
}

/// A field of a `$group`, parsed.
#[derive(Clone, Debug, PartialEq)]
pub struct Accumulation {
    /// The name of the field.
    pub name: Box<str>,
    spec: AccumulatorSpec,
    /// What it adds of each row.
    pub input: BoundExpr,
    /// How many values it keeps, an expression of the id of a group.
    n: Option<BoundExpr>,
    /// Of `$top` and its like by one field: which, whether ascending, and what comes of a row.
    by_one: Option<(Box<str>, bool, BoundExpr)>,
    settings: Settings,
}

impl Accumulation {
    /// Parses `{<operator>: <argument>}`, what the field `name` is to be.
    ///
    /// Errors: 15952 for an unknown operator, and those of its arguments.
    pub fn parse(name: &str, operator: &str, argument: Value<'_>, globals: &Globals) -> Result<Accumulation> {
        arguments::parse(name, operator, argument, globals)
    }

    /// True where the order of rows does not matter, or that of their times is enough.
    pub fn takes_any_order(&self) -> bool {
        self.spec.takes_any_order
    }

    /// Where it takes one row only of those in the order of their times: whether that is the last, and not the first.
    pub fn is_last(&self) -> Option<bool> {
        match self.spec.name {
            "$first" => Some(false),
            "$last" => Some(true),
            _ => None,
        }
    }

    /// Where it takes rows from one end of those in the order of their times only: whether that is the last, and how many. `ascending` is the
    /// order of the times in which rows come; without one it takes them by an order of its own.
    pub fn end(&self, ascending: Option<bool>, time_field: &str) -> Option<(bool, usize)> {
        let count = match &self.n {
            None => 1,
            Some(n) => match n.expr() {
                Expr::Constant(Some(n)) => usize::try_from(n.view().as_integer()?).ok()?,
                _ => return None,
            },
        };
        let of_time = matches!(self.input.expr(), Expr::Field(Variable::Root, path) if matches!(&path[..], [name] if **name == *time_field));
        let is_last = match (self.spec.name, &self.by_one) {
            ("$first" | "$firstN", _) => !ascending?,
            ("$last" | "$lastN", _) => ascending?,
            ("$min", _) if of_time => false,
            ("$max", _) if of_time => true,
            (name, Some((path, ascending, _))) if **path == *time_field => name.starts_with("$top") != *ascending,
            _ => return None,
        };
        (1..=EDGE_ROWS_MAX).contains(&count).then_some((is_last, count))
    }

    /// The type of the ones that it adds up where it counts rows: a number from JavaScript is a double.
    pub fn counts_as(&self) -> Option<Kind> {
        let Expr::Constant(Some(one)) = self.input.expr() else { return None };
        (one.view().as_integer() == Some(1) && matches!(self.spec.name, "$sum" | "$count")).then(|| one.view().kind())
    }

    /// True where the number of rows and the least and the greatest value of each top-level field tell what comes of it; of the time the
    /// greatest. Of values that compare equal, as 1 and 1.0 do, they do not tell which comes first of rows that are sorted.
    pub fn is_summary(&self, time_field: &str, sorted: bool) -> bool {
        let is_extreme = |name: &str| match name == time_field {
            true => self.spec.name == "$max",
            false => !sorted && matches!(self.spec.name, "$min" | "$max"),
        };
        let is_field = |expr: &Expr| matches!(expr, Expr::Field(Variable::Root, path) if matches!(&path[..], [name] if is_extreme(name)));
        self.counts_as().is_some() || is_field(self.input.expr())
    }

    /// The same as the first or the last of rows in ascending order of `time_field`, where it keeps one row by that field alone.
    pub fn as_edge(&self, time_field: &str) -> Option<Accumulation> {
        let (path, ascending, output) = self.by_one.as_ref().filter(|(path, ..)| **path == *time_field)?;
        debug_assert!(!path.is_empty());
        let is_one = |n: &Expr| matches!(n, Expr::Constant(Some(n)) if n.view().as_integer() == Some(1));
        let spec = AccumulatorSpec::named(match self.spec.name.starts_with("$top") == *ascending {
            true => "$first",
            false => "$last",
        })?;
        let (name, settings) = (self.name.clone(), self.settings.clone());
        let edge = Accumulation { name, spec, input: output.clone(), n: None, by_one: None, settings };
        Some(edge).filter(|_| self.n.as_ref().is_none_or(|n| is_one(n.expr())))
    }

    /// How many values a group keeps: what `n` says of the fields of its id.
    ///
    /// Errors: 5787902, 5787903 and 5787908 for what is no integer above 0.
    pub fn count(&self, id: Option<Doc<'_>>) -> Result<usize> {
        let Some(n) = &self.n else { return Ok(1) };
        let empty = DocWriter::new().finish();
        let refuse = |code, what: &str| Err(Error::new(code, format!("Value for 'n' must be {what}")));
        let n = n.value(id.unwrap_or(empty.view()))?;
        let Some(n) = n.filter(|n| n.view().kind().is_number()) else {
            return refuse(ErrorCode::Location5787902, "of integral type");
        };
        match n.view().as_integer() {
            None => refuse(ErrorCode::Location5787903, "of integral type"),
            Some(n) if n > 0 => Ok(usize::try_from(n).unwrap_or(usize::MAX)),
            Some(_) => refuse(ErrorCode::Location5787908, "greater than 0"),
        }
    }

    /// The accumulator, without groups.
    pub fn start(&self) -> Box<dyn Accumulator> {
        (self.spec.start)(&self.settings)
    }
}

/// A row of the table of accumulators.
#[derive(Clone, Copy)]
struct AccumulatorSpec {
    /// With its `$`.
    name: &'static str,
    /// True where the order of rows does not matter, or that of their times is enough.
    takes_any_order: bool,
    arguments: Arguments,
    start: fn(&Settings) -> Box<dyn Accumulator>,
}

impl AccumulatorSpec {
    /// The accumulator of that name.
    fn named(name: &str) -> Option<AccumulatorSpec> {
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

/// A number as a double, which is what the server counts these in, decimals too; `None` for anything else.
fn number(value: Value<'_>) -> Option<f64> {
    Number::of(value).map(Number::near_double)
}

/// The error of what holds more than it may.
fn list_is_full() -> Error {
    Error::new(ErrorCode::ExceededMemoryLimit, "A list of a $group takes more memory than it may")
}

fn array_of(values: &mut dyn Iterator<Item = Value<'_>>) -> OwnedValue {
    let mut writer = DocWriter::new();
    for (place, value) in values.enumerate() {
        writer.value(&place.to_string(), value);
    }
    Value::new_checked(Kind::Array, writer.finish().view().as_bytes()).to_owned()
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
