//! Expressions: parsed into a tree, evaluated on a document. One file per family of operators; `operators` has their
//! table.

mod arguments;
mod arithmetic;
mod array;
mod binary;
mod bound;
mod bucket;
mod compare;
mod control;
mod convert;
mod date;
mod datum;
mod decimals;
mod evaluate;
mod globals;
mod literals;
mod matcher;
mod math;
mod objects;
mod operators;
mod outer;
mod parse;
mod patterns;
mod quantiles;
mod regex;
mod rounding;
#[cfg(test)]
pub mod samples;
mod sets;
mod string;
#[cfg(test)]
mod tests;
mod tree;
mod types;
mod unparse;
mod vector;

pub use arithmetic::computed;
pub use bound::BoundExpr;
pub use bucket::bucket_of;
pub use compare::CompareOp;
pub use date::TimeUnit;
pub use datum::ArrayWriter;
pub use globals::Globals;
pub use objects::not_an_object;
pub use operators::Operator;
pub use quantiles::{is_continuous, percentiles_of, quantile};
pub use regex::Regex;
pub use tree::{Expr, Variable};
pub use vector::reached;
