//! Which fields of its rows the steps of a pipeline read: of the others no column is decoded.

use super::aggregation::{Shown, Step};
use crate::query::expr::BoundExpr;
use crate::query::find_options::FindOptions;
use crate::query::plan::{CollectionFacts, Plan};
use crate::query::projection::Needed;

/// The top-level fields that are read by steps, and by whoever takes what comes out of them, which is all that does.
pub(super) fn reads(steps: &[Shown]) -> Needed {
    steps.iter().rev().fold(Needed::All, |behind, (step, _)| match step {
        // One that asks for nothing is there so that those before it know nothing of those behind it.
        Step::Find(find) if find.shown().is_empty() => Needed::All,
        Step::Find(find) => {
            let find = FindOptions { reads: behind, ..FindOptions::clone(find) };
            Plan::new(find, &CollectionFacts { time_field: "", meta_field: None }).decode
        }
        Step::Group(group) | Step::BucketAuto(group, ..) => group.needed_fields(),
        Step::Facet(branches) => {
            branches.iter().map(|(_, steps)| reads(steps)).reduce(Needed::union).unwrap_or_else(Needed::none)
        }
        Step::Unwind(unwind) => {
            let mut needed = behind;
            unwind.path.iter().take(1).for_each(|root| needed.add_path(root));
            needed
        }
        Step::Sample(..) => behind,
        Step::ReplaceRoot(expr) => read_by(Needed::none(), [expr]),
        Step::Windows(windows) => read_by(behind, windows.expressions()),
        Step::Densify(densify) => read_by(behind, densify.expressions()),
        Step::Lookup(_) | Step::Near(_) | Step::Union(_) | Step::Graph(_) | Step::Redact(_) | Step::Unpack(_) => {
            Needed::All
        }
    })
}

/// With what expressions read.
fn read_by<'a>(mut needed: Needed, exprs: impl IntoIterator<Item = &'a BoundExpr>) -> Needed {
    for expr in exprs {
        if expr.reads().whole {
            return Needed::All;
        }
        expr.reads().fields.iter().for_each(|name| needed.add_path(name));
    }
    needed
}
