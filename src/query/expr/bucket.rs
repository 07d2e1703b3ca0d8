//! The operator behind `$bucket`: the boundary below a value.

// Loaded later.

use super::arguments::{Arguments, failure};
use super::datum::Datum;
use super::operators::{ANY, MANY, Op, Operator, Syntax, comparing_as};
use super::tree::Expr;
use crate::error::{ErrorCode, Result};
use crate::listed::IntoList;
use crate::value::{Collation, OwnedValue, Value};

/// Arguments: the value, the default, and the boundaries, ascending.
static BUCKET: Operator =
    comparing_as(Op::Bucket, "$_internalBucket", Syntax::Positional(4, MANY), ANY, false, boundary_below);

/// The greatest of ascending `boundaries` that is not above the value of `by`. Below the first one, and from the last one
/// on, it is the default.
pub fn bucket_of(by: Expr, boundaries: Vec<OwnedValue>, default: Option<OwnedValue>) -> Expr {
    let constants = std::iter::once(default).chain(boundaries.into_iter().map(Some));
    Expr::Call(&BUCKET, std::iter::once(by).chain(constants.map(Expr::Constant)).listed())
}

/// The place of the boundary below a value; `None` if it lies outside.
pub(super) fn place_below(
    value: Option<Value<'_>>,
    boundaries: &[Option<Value<'_>>],
    collation: &Collation,
) -> Option<usize> {
    within(boundaries.partition_point(|boundary| collation.compare_options(*boundary, value).is_le()), boundaries.len())
}

/// The place of the boundary below a value that `reached` of them are not above.
pub(super) fn within(reached: usize, boundaries: usize) -> Option<usize> {
    reached.checked_sub(1).filter(|_| reached < boundaries)
}

fn boundary_below(_: &Operator, arguments: Arguments<'_, '_>, collation: &Collation) -> Result<Datum<'static>> {
    let [value, default, boundaries @ ..] = arguments else { return Ok(Datum::Missing) };
    let found = place_below(*value, boundaries, collation).and_then(|place| boundaries.get(place).copied().flatten());
    match found.or(*default) {
        Some(found) => Ok(Datum::copied(Some(found))),
        None => Err(failure(ErrorCode::Location40066, "$switch", "found no matching branch, and has no default")),
    }
}
