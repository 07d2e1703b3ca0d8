//! What the consumer of a find's rows needs of them. The command does not say this, but the stages after it do.

use super::find::FindCommand;
use crate::query::expr::BoundExpr;
use crate::value::FieldSet;

/// The part of a find's matches that is needed. The default is everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Set if only a few of the matches matter.
    pub rows_per_group: Option<RowsPerGroup>,
    /// The top-level fields of the result that somebody reads.
    pub fields: FieldSet,
    /// True if the find returns only `fields`, though its command selects all of them.
    pub is_narrowed: bool,
    /// True if the order that the command asks for does not matter.
    pub takes_any_order: bool,
    /// True if stages never have enough before all rows have come.
    pub waits_for_all: bool,
    /// Set if only the rows with the latest times matter.
    pub newest: Option<NewestBins>,
    /// True for writes: closed buckets are skipped.
    pub skips_closed: bool,
}

impl Demand {
    /// The demand of a write.
    pub fn of_write() -> Demand {
        Demand { skips_closed: true, ..Demand::default() }
    }

    /// True if the find has a sort, and its order matters.
    pub fn sorts(&self, find: &FindCommand) -> bool {
        find.sort.is_some() && !self.takes_any_order
    }
}

impl Default for Demand {
    fn default() -> Self {
        Demand {
            rows_per_group: None,
            fields: FieldSet::All,
            is_narrowed: false,
            takes_any_order: false,
            waits_for_all: false,
            newest: None,
            skips_closed: false,
        }
    }
}

/// A find to be planned: the command, and the demand on its result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The command.
    pub find: FindCommand,
    /// The demand on its result.
    pub demand: Demand,
}

impl From<FindCommand> for Query {
    fn from(find: FindCommand) -> Query {
        Query { find, demand: Demand::default() }
    }
}

/// Of rows that are equal in some fields, only a few matter; the others may be left out.
#[derive(Clone, Debug, PartialEq)]
pub struct RowsPerGroup {
    /// Which rows matter.
    pub which: Which,
    /// How many of them; rows whose time ties with one of them matter as well.
    pub count: usize,
    /// The fields that must be equal, without the time field.
    pub alike: Vec<Box<str>>,
    /// True if values of these fields that compare equal are interchangeable.
    pub by_value: bool,
    /// Expressions that also read the time, and that must be equal as well.
    pub bins: Vec<BoundExpr>,
    /// True if rows are counted, so that a row in place of several must have a weight.
    pub counts: bool,
}

/// Only rows in the latest bins of time matter, because of the groups of a `$group` by time only the newest are returned.
#[derive(Clone, Debug, PartialEq)]
pub struct NewestBins {
    /// The bin of a row: its time, or where a span of time that holds it begins.
    pub bin: BoundExpr,
    /// So much later than its rows a bin may seem to begin.
    pub slack_ms: i64,
    /// How many bins.
    pub count: usize,
}

/// Which of many rows matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// The rows with the first times.
    First,
    /// The rows with the last times.
    Last,
    /// The rows with the smallest and the largest value of each other field that is read, or synthetic rows with these
    /// values. The number of rows does not matter if they have weights. The row with the first time need not be among
    /// them.
    Extremes,
}
