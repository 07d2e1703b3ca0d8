//! Expressions: parsed into a tree, evaluated on a document. One file a family of operators; `operators` is their table.

mod arguments;
mod arithmetic;
mod array;
mod bound;
mod compare;
mod control;
mod datum;
mod evaluate;
mod globals;
mod more;
mod operators;
mod outer;
mod parse;
mod string;
#[cfg(test)]
mod tests;
mod tree;
mod types;
mod unparse;

pub use arithmetic::computed;
pub use bound::BoundExpr;
pub use datum::Datum;
pub use evaluate::Scope;
pub use globals::Globals;
pub use more::{Unit, decimal, decimal_sum, is_continuous, minus, over, plus, quantile, result, shares, times, total};
pub use operators::Operator;
pub use tree::{Expr, Reads, Variable};
