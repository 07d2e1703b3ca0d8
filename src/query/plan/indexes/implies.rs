//! Decides whether every match of one filter also matches another.

use crate::query::expr::CompareOp;
use crate::query::filter::{Filter, Test};
use crate::value::{Number, Value, canonical_class};

/// True if every match of `filter` also matches `wanted`; false if that cannot be told. `same_language` says that both
/// compare strings alike.
pub(super) fn implies(filter: &Filter, wanted: &Filter, same_language: bool) -> bool {
    if let Filter::And(parts) = wanted {
        return parts.iter().all(|part| implies(filter, part, same_language));
    }
    let conjuncts = filter.conjuncts();
    wanted.is_trivial()
        // Loaded by now: `filter::geo` has made the region, where the filters have one.
        || conjuncts
            .iter()
            .any(|conjunct| is_narrower(conjunct, wanted) || same_language && conjunct == wanted)
}

/// True if every value that passes the narrow comparison also passes the wide one.
fn is_narrower(filter: &Filter, wanted: &Filter) -> bool {
    if let (Filter::Field(path, Test::Geo(narrow)), Filter::Field(wanted_path, Test::Geo(wide))) = (filter, wanted) {
        return path == wanted_path && wide.region.contains(&narrow.region);
    }
    let (Filter::Field(path, Test::Compare(narrow)), Filter::Field(wanted_path, Test::Compare(wide))) =
        (filter, wanted)
    else {
        return false;
    };
    let order = wide.collation().compare(narrow.value(), wide.value());
    path == wanted_path
        && narrow.collation() == wide.collation()
        // Comparisons match only values of their own class.
        && canonical_class(narrow.value().kind()) == canonical_class(wide.value().kind())
        && !is_nan(narrow.value())
        && !is_nan(wide.value())
        && match (narrow.op(), wide.op()) {
            (CompareOp::Eq, wide) => wide.holds(order),
            (narrow, wide) if narrow.includes_less() != wide.includes_less() => false,
            (_, CompareOp::Lte) => order.is_le(),
            (_, CompareOp::Gte) => order.is_ge(),
            (CompareOp::Lt, CompareOp::Lt) => order.is_le(),
            (CompareOp::Gt, CompareOp::Gt) => order.is_ge(),
            (_, CompareOp::Lt) => order.is_lt(),
            (_, CompareOp::Gt) => order.is_gt(),
            (_, CompareOp::Eq) => false,
        }
}

fn is_nan(value: Value<'_>) -> bool {
    Number::of(value).is_some_and(Number::is_nan)
}
