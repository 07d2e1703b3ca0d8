//! `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$cmp`: by the whole BSON order, a missing value below null.

use super::datum::Datum;
use super::operators::{Op, Operator};
use crate::error::Result;
use crate::value::{Collation, Value};

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
