//! `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$cmp`: by the whole BSON order, a missing value below null.

use super::datum::Datum;
use crate::error::Result;
use crate::query::filter::CompareOp;
use crate::value::{Value, compare_options};

pub(super) fn compare(name: &'static str, arguments: &[Option<Value<'_>>]) -> Result<Datum<'static>> {
    let [left, right] = arguments else { return Ok(Datum::NULL) };
    let order = compare_options(*left, *right);
    Ok(match CompareOp::from_name(name) {
        Some(op) => Datum::bool(op.holds(order)),
        None if name == "$ne" => Datum::bool(order.is_ne()),
        None => Datum::int32(order as i32),
    })
}
