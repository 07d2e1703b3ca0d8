//! `$exists`: whether a field is there, whatever it holds.

use super::tree::{Filter, Test};
use crate::value::{Kind, Number, Path, Value};

/// The filter of `{path: {$exists: operand}}`. Any operand is taken for its truth.
pub(super) fn parse(path: Path, operand: Value<'_>) -> Filter {
    let exists = Filter::Field(path, Test::Exists);
    if is_truthy(operand) { exists } else { Filter::negated(exists) }
}

/// Everything is true but false, null, undefined and zeros.
fn is_truthy(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::Bool => value.as_bool() == Some(true),
        Kind::Null | Kind::Undefined => false,
        _ => Number::of(value).is_none_or(|n| n.compare(Number::Integer(0)).is_ne()),
    }
}
