//! `$exists`: whether a field is present, with any value.

use super::tree::{Filter, Test};
use crate::value::{Path, Value};

/// The filter of `{path: {$exists: operand}}`. Any operand counts by its truth.
pub(super) fn parse(path: Path, operand: Value<'_>) -> Filter {
    let exists = Filter::Field(path, Test::Exists);
    if operand.is_true() { exists } else { Filter::negated(exists) }
}
