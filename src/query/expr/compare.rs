//! `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$cmp`: by the whole BSON order, a missing value below null.

use std::cmp::Ordering;

use super::datum::Datum;
use super::operators::{Op, Operator};
use crate::error::Result;
use crate::value::{Collation, Value};

/// One of the five comparisons.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompareOp {
    /// `$eq`
    Eq,
    /// `$gt`
    Gt,
    /// `$gte`
    Gte,
    /// `$lt`
    Lt,
    /// `$lte`
    Lte,
}

impl CompareOp {
    /// True where a value that is `order` of the operand passes.
    #[inline]
    pub fn holds(self, order: Ordering) -> bool {
        match self {
            CompareOp::Eq => order == Ordering::Equal,
            CompareOp::Gt => order == Ordering::Greater,
            CompareOp::Gte => order != Ordering::Less,
            CompareOp::Lt => order == Ordering::Less,
            CompareOp::Lte => order != Ordering::Greater,
        }
    }

    /// The name of the operator, and of the one that compares by the whole BSON order.
    pub fn names(self) -> (&'static str, &'static str) {
        match self {
            CompareOp::Eq => ("$eq", "$_internalExprEq"),
            CompareOp::Gt => ("$gt", "$_internalExprGt"),
            CompareOp::Gte => ("$gte", "$_internalExprGte"),
            CompareOp::Lt => ("$lt", "$_internalExprLt"),
            CompareOp::Lte => ("$lte", "$_internalExprLte"),
        }
    }

    /// The comparison with its sides exchanged.
    pub fn flipped(self) -> CompareOp {
        match self {
            CompareOp::Eq => CompareOp::Eq,
            CompareOp::Gt => CompareOp::Lt,
            CompareOp::Gte => CompareOp::Lte,
            CompareOp::Lt => CompareOp::Gt,
            CompareOp::Lte => CompareOp::Gte,
        }
    }

    /// True for the comparisons that a value below the operand passes.
    pub fn includes_less(self) -> bool {
        self.holds(Ordering::Less)
    }

    /// True for the comparisons that a value equal to the operand passes.
    pub fn includes_equal(self) -> bool {
        self.holds(Ordering::Equal)
    }
}

pub(super) fn compare(
    operator: &Operator,
    arguments: &[Option<Value<'_>>],
    collation: &Collation,
) -> Result<Datum<'static>> {
    let [left, right] = arguments else { return Ok(Datum::NULL) };
    let order = collation.compare_options(*left, *right);
    Ok(match operator.comparison() {
        Some(op) => Datum::bool(op.holds(order)),
        None if operator.op == Op::Ne => Datum::bool(order.is_ne()),
        None => Datum::int32(order as i32),
    })
}
