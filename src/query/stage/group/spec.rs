//! What a `$group` asks for.

use crate::query::expr::BoundExpr;
use crate::query::stage::accumulator::Accumulation;
use crate::value::{Collation, FieldSet};

/// What a `$group` asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupSpec {
    /// What rows are grouped by.
    pub key: Key,
    /// The fields of the result behind `_id`.
    pub fields: Vec<Accumulation>,
    /// By which keys are equal.
    pub collation: Collation,
    /// The time field by which rows would be sorted, and whether ascending: they come as they are, and whoever cares for their order
    /// looks at it. A million rows are not sorted for the sake of the newest of each series.
    pub unsorted_by: Option<(Box<str>, bool)>,
    /// Parts of the key whose values come in order: behind the last row of one no other has it, and its groups are done.
    pub in_order: Vec<usize>,
}

/// What rows are grouped by.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    /// The value of an expression; where there is none, null.
    One(BoundExpr),
    /// An object of the values of expressions.
    Object(Vec<(Box<str>, BoundExpr)>),
}

impl Key {
    pub(super) fn parts(&self) -> Vec<&BoundExpr> {
        match self {
            Key::One(expr) => vec![expr],
            Key::Object(fields) => fields.iter().map(|(_, expr)| expr).collect(),
        }
    }
}

impl GroupSpec {
    /// The top-level fields that it reads.
    pub fn needed_fields(&self) -> FieldSet {
        let mut needed = FieldSet::none();
        self.unsorted_by.iter().for_each(|(time_field, _)| needed.add_path(time_field));
        for expr in self.key.parts().into_iter().chain(self.fields.iter().map(|field| &field.input)) {
            needed.add_all(expr.fields());
        }
        needed
    }

    /// Rows come in the order of their times: groups are given as soon as the time is behind them. Answers the fields of the id that tell.
    pub fn stream(&mut self, time_field: &str) -> Vec<&str> {
        let parts = self.key.parts().into_iter().zip(0..);
        self.in_order = parts.filter(|(part, _)| part.is_monotonic(time_field)).map(|(_, place)| place).collect();
        let name = |place: &usize| match &self.key {
            Key::One(_) => Some("_id"),
            Key::Object(fields) => fields.get(*place).map(|(name, _)| &**name),
        };
        self.in_order.iter().filter_map(name).collect()
    }

    /// True where rows are counted.
    pub fn counts(&self) -> bool {
        self.fields.iter().any(|field| field.counts_as().is_some())
    }
}
