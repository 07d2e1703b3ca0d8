//! Stages as they are asked for: parsed, and not yet at work.

use super::Stage;
use super::foreign::Others;
use super::group::{Group, GroupSpec};
use super::unpack::Unpack;
use super::unpack_spec::UnpackSpec;
use crate::error::Result;
use crate::query::exec::Exec;
use crate::query::expr::{BoundExpr, Visit};
use crate::query::find_options::FindOptions;
use crate::query::plan::{CollectionFacts, Plan};
use crate::query::projection::Needed;
use crate::value::DocBuf;

/// A stage as it is asked for. What it needs of other collections, its parser has told (`Parser::split`), and what `explain` shows of it as well
/// (`Parser::push`).
pub(super) trait Spec: Copied {
    /// The top-level fields that it reads of its rows, where of what it gives those in `behind` are read.
    fn reads(&self, _behind: Needed) -> Needed {
        Needed::All
    }

    /// Shows its expressions to `visit`, which may put others in their place. One that is not shown sees no variable of a pipeline around.
    ///
    /// Errors: those of `visit`.
    fn visit(&mut self, _visit: &mut Visit<'_>) -> Result<()> {
        Ok(())
    }

    /// The stage at work; `others` are the rows of what its pipeline needs of other collections.
    fn start(self: Box<Self>, others: &Others) -> Box<dyn Stage>;
}

/// What can be copied without its type being known.
pub(super) trait Copied {
    fn copied(&self) -> Box<dyn Spec>;
}

impl<T: Spec + Clone + 'static> Copied for T {
    fn copied(&self) -> Box<dyn Spec> {
        Box::new(self.clone())
    }
}

impl Clone for Box<dyn Spec> {
    fn clone(&self) -> Box<dyn Spec> {
        (**self).copied()
    }
}

/// A step behind the first find. Of some others have to know what they are.
#[derive(Clone)]
pub(super) enum Step {
    /// What stands together like the parts of a `find`.
    Find(Box<FindOptions>),
    /// A `$group`, to which the find in front of it gives no more than it needs.
    Group(Box<GroupSpec>),
    /// What unpacks buckets, once in a pipeline.
    Unpack(Box<UnpackSpec>),
    Other(Box<dyn Spec>),
}

/// A step, and the stage that `explain` shows for it; finds show themselves.
pub(super) type Shown = (Step, DocBuf);

impl Step {
    /// As `Spec::reads`.
    fn reads(&self, behind: Needed) -> Needed {
        match self {
            // One that asks for nothing is there so that those before it know nothing of those behind it.
            Step::Find(find) if find.shown().is_empty() => Needed::All,
            Step::Find(find) => {
                let find = FindOptions { reads: behind, ..FindOptions::clone(find) };
                Plan::new(find, &CollectionFacts { time_field: "", meta_field: None }).decode
            }
            Step::Group(group) => group.needed_fields(),
            Step::Unpack(_) => Needed::All,
            Step::Other(spec) => spec.reads(behind),
        }
    }

    /// As `Spec::visit`.
    fn visit(&mut self, visit: &mut Visit<'_>) -> Result<()> {
        match self {
            Step::Find(find) => find.visit(visit),
            Step::Group(spec) => spec.visit(visit),
            Step::Unpack(spec) => spec.visit(visit),
            Step::Other(spec) => spec.visit(visit),
        }
    }

    /// As `Spec::start`.
    pub fn start(self, others: &Others) -> Box<dyn Stage> {
        match self {
            Step::Find(find) => {
                // Rows, of which nobody knows where they come from.
                let facts = CollectionFacts { time_field: "", meta_field: None };
                Box::new(Exec::new(Plan::new(*find, &facts)))
            }
            Step::Group(spec) => Box::new(Group::new(*spec)),
            Step::Unpack(spec) => Box::new(Unpack::new(*spec)),
            Step::Other(spec) => spec.start(others),
        }
    }
}

/// The top-level fields that are read by steps, and by whoever takes what comes out of them, which is all that does. Of the others no column
/// is decoded.
pub(super) fn reads(steps: &[Shown]) -> Needed {
    steps.iter().rev().fold(Needed::All, |behind, (step, _)| step.reads(behind))
}

/// Shows the expressions of steps to `visit`, which may put others in their place.
///
/// Errors: those of `visit`.
pub(super) fn visit_all(steps: &mut [Shown], visit: &mut Visit<'_>) -> Result<()> {
    steps.iter_mut().try_for_each(|(step, _)| step.visit(visit))
}

/// With what expressions read.
pub(super) fn read_by<'a>(mut needed: Needed, exprs: impl IntoIterator<Item = &'a BoundExpr>) -> Needed {
    for expr in exprs {
        if expr.reads().whole {
            return Needed::All;
        }
        expr.reads().fields.iter().for_each(|name| needed.add_path(name));
    }
    needed
}
