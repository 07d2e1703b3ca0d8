//! The specification of a `$group`.

use crate::listed::IntoList;
use crate::query::expr::BoundExpr;
use crate::query::stage::accumulator::Accumulation;
use crate::value::{Collation, FieldSet};

/// The specification of a `$group`.
#[derive(Debug, PartialEq)]
pub struct GroupSpec {
    /// What rows are grouped by.
    pub key: Key,
    /// The fields of the result after `_id`.
    pub fields: Vec<Accumulation>,
    /// The collation by which keys are equal.
    pub collation: Collation,
    /// Set if rows were to be sorted by this time field (true: ascending) but come unsorted, and whatever depends on
    /// their order reads the times. This saves sorting a million rows for the newest of each series.
    pub unsorted_by: Option<(Box<str>, bool)>,
    /// Parts of the key whose values come in order: once a value has changed, its groups are complete.
    pub in_order: Vec<usize>,
    /// False if nobody reads the ids of its groups.
    pub shows_id: bool,
    /// True if the ids are of use as columns: the next stage reads parts of them, or they are the result.
    pub shows_parts: bool,
}

/// What rows are grouped by.
#[derive(Clone, Debug, PartialEq)]
pub enum Key {
    /// The value of an expression; null if it is missing.
    One(BoundExpr),
    /// An object of expressions.
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
        for expr in self.key.parts().into_iter().chain(self.fields.iter().flat_map(Accumulation::exprs)) {
            needed.add_all(expr.fields());
        }
        needed
    }

    /// Rows come in time order: groups are returned as soon as their time has passed. Returns the fields of the id that
    /// show it.
    pub fn stream(&mut self, time_field: &str) -> Vec<&str> {
        let parts = self.key.parts().into_iter().zip(0..);
        self.in_order = parts.filter(|(part, _)| part.is_monotonic(time_field)).map(|(_, place)| place).listed();
        let name = |place: &usize| match &self.key {
            Key::One(_) => Some("_id"),
            Key::Object(fields) => fields.get(*place).map(|(name, _)| &**name),
        };
        self.in_order.iter().filter_map(name).listed()
    }

    /// True if rows may be added at any time and in any order.
    pub fn takes_later_rows(&self) -> bool {
        let by_time = self.unsorted_by.is_some();
        self.fields.iter().all(|field| match field.is_last() {
            Some(_) => by_time,
            None => field.takes_any_order() || field.is_ranked(),
        })
    }

    /// True if rows are counted.
    pub fn counts(&self) -> bool {
        self.fields.iter().any(|field| field.counts_as().is_some())
    }
}
