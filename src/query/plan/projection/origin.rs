//! Where the fields of a projection's result come from.

use super::parse::{Child, Projection, ProjectionNode};
use crate::listed::IntoList;
use crate::query::expr::{BoundExpr, Expr};
use crate::value::sort_by;

/// What a top-level field of a result is, in terms of the row that it comes from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Origin<'a> {
    /// The field of the same name.
    Same,
    /// The field of the same name, of which objects have lost fields, and arrays perhaps scalars.
    Part,
    /// No row has it.
    Missing,
    /// The value of an expression.
    Computed(&'a Expr),
    /// Anything else.
    Unknown,
}

impl Projection {
    /// A projection to objects of these fields alone; `None` if a name comes twice.
    pub fn replacing(fields: Vec<(Box<str>, BoundExpr)>) -> Option<Projection> {
        let mut names: Vec<&str> = fields.iter().map(|(name, _)| &**name).listed();
        sort_by(&mut names, Ord::cmp);
        let is_distinct = names.windows(2).all(|pair| pair.first() != pair.last());
        let children = names.into_iter().map(|name| (name.into(), Child::Computed)).listed();
        is_distinct.then(|| Projection {
            inclusion: true,
            root: ProjectionNode { children },
            computed: fields.into_iter().map(|(name, expr)| (vec![name], expr)).listed(),
        })
    }

    /// Where the top-level field `name` of a result comes from.
    pub fn origin(&self, name: &str) -> Origin<'_> {
        let mut computed = self.computed.iter().filter(|(path, _)| path.first().is_some_and(|first| **first == *name));
        match (computed.next(), self.root.child(name)) {
            (Some((path, expr)), _) if path.len() == 1 => Origin::Computed(expr.expr()),
            (Some(_), _) => Origin::Unknown,
            (None, None) if self.inclusion => Origin::Missing,
            (None, Some(Child::Named)) if !self.inclusion => Origin::Missing,
            (None, None | Some(Child::Named)) => Origin::Same,
            (None, Some(Child::Below(_))) => Origin::Part,
            (None, Some(Child::Computed)) => Origin::Unknown,
        }
    }

    /// The expression of a top-level field that it computes.
    pub fn computed_field(&mut self, name: &str) -> Option<&mut BoundExpr> {
        let mut computed = self.computed.iter_mut();
        computed.find(|(path, _)| matches!(&path[..], [only] if **only == *name)).map(|(_, expr)| expr)
    }

    /// The fields that it computes; `None` if one of them is not at the top.
    pub fn computed_fields(&self) -> Option<Vec<(&str, &BoundExpr)>> {
        self.computed
            .iter()
            .map(|(path, expr)| match &path[..] {
                [name] => Some((&**name, expr)),
                _ => None,
            })
            .listed_if_all()
    }
}
