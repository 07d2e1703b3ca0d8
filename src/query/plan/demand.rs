//! What whoever takes the rows of a find wants of them: what the command does not say, but the stages behind it do.

use super::find::FindCommand;
use crate::query::expr::BoundExpr;
use crate::value::FieldSet;

/// What of the matches of a find is wanted. The default is everything.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Where few of the matches matter.
    pub edge: Option<Edge>,
    /// The top-level fields of what comes back that somebody reads.
    pub fields: FieldSet,
    /// True if the projection of the find is not the user's, but says which fields the stage behind it reads.
    pub is_narrowed: bool,
    /// True for what a write takes: closed buckets are not looked at.
    pub skips_closed: bool,
}

impl Demand {
    /// That of a write.
    pub fn of_write() -> Demand {
        Demand { skips_closed: true, ..Demand::default() }
    }
}

impl Default for Demand {
    fn default() -> Self {
        Demand { edge: None, fields: FieldSet::All, is_narrowed: false, skips_closed: false }
    }
}

/// A find to be planned: what a command asks, and what of it is wanted.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// What is asked.
    pub find: FindCommand,
    /// What of it is wanted.
    pub demand: Demand,
}

impl From<FindCommand> for Query {
    fn from(find: FindCommand) -> Query {
        Query { find, demand: Demand::default() }
    }
}

/// Of rows that are alike in some fields only few matter; the others may be left out.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    /// Those that do.
    pub which: Which,
    /// How many of them; with these all that have the time of one of them.
    pub count: usize,
    /// Those fields, but for the time.
    pub alike: Vec<Box<str>>,
    /// True where values of these fields that compare equal are as good as each other.
    pub by_value: bool,
    /// Expressions that read the time as well, of which the rows have to be alike, too.
    pub bins: Vec<BoundExpr>,
    /// True if rows are counted, so that one row in place of several has to tell of how many.
    pub counts: bool,
}

/// Which rows of many matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Those with the first times.
    First,
    /// Those with the last times.
    Last,
    /// Those with the least and the greatest value of each other field that is read, or made-up ones with these values, whose number does
    /// not matter where they tell for how many they stand. The first time need not be among them.
    Extremes,
}
