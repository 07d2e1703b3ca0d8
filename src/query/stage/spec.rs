//! Stages as they are asked for: parsed, and not yet at work.

use std::rc::Rc;

use super::group::{Group, GroupSpec};
use super::model::Others;
use super::running::Stage;
use super::unpack::{Unpack, UnpackSpec, refused};
use crate::error::{ErrorCode, Result};
use crate::query::exec::Exec;
use crate::query::expr::BoundExpr;
use crate::query::plan::{CollectionFacts, Demand, FindCommand, Plan, Query};
use crate::value::{DocBuf, FieldSet};

/// A stage as it is asked for. What it needs of other collections, its parser has told (`Parser::split`), and what `explain` shows of it as well
/// (`Parser::push`).
pub(super) trait Spec {
    /// The top-level fields that it reads of its rows, where of what it gives those in `behind` are read.
    fn reads(&self, _behind: FieldSet) -> FieldSet {
        FieldSet::All
    }

    /// The stage at work, perhaps one of several, one behind the other; `others` are the rows of what its pipeline needs of other collections.
    fn start(self: Rc<Self>, others: &Others) -> Box<dyn Stage>;
}

/// A step behind the first find. Of some others have to know what they are.
pub(super) enum Step {
    /// What stands together like the parts of a `find`.
    Find(Box<FindCommand>),
    /// A `$group`, to which the find in front of it gives no more than it needs.
    Group(Box<GroupSpec>),
    /// What unpacks buckets, once in a pipeline.
    Unpack(Rc<UnpackSpec>),
    Other(Rc<dyn Spec>),
}

/// A step, and the stage that `explain` shows for it; finds show themselves.
pub(super) type Shown = (Step, DocBuf);

impl Step {
    /// As `Spec::reads`.
    fn reads(&self, behind: FieldSet) -> FieldSet {
        match self {
            // One that asks for nothing is there so that those before it know nothing of those behind it.
            Step::Find(find) if find.shown().is_empty() => FieldSet::All,
            Step::Find(find) => {
                let demand = Demand { fields: behind, ..Demand::default() };
                let query = Query { find: FindCommand::clone(find), demand };
                Plan::new(query, &CollectionFacts { time_field: "", meta_field: None }).decode
            }
            Step::Group(group) => group.needed_fields(),
            Step::Unpack(_) => FieldSet::All,
            Step::Other(spec) => spec.reads(behind),
        }
    }

    /// As `Spec::start`.
    pub fn start(&self, others: &Others) -> Box<dyn Stage> {
        match self {
            Step::Find(find) => {
                // Rows, of which nobody knows where they come from.
                let facts = CollectionFacts { time_field: "", meta_field: None };
                Box::new(Exec::new(Plan::new(FindCommand::clone(find).into(), &facts)))
            }
            Step::Group(spec) => Box::new(Group::new(GroupSpec::clone(spec))),
            Step::Unpack(spec) => Box::new(Unpack::new(Rc::clone(spec))),
            Step::Other(spec) => Rc::clone(spec).start(others),
        }
    }
}

/// The top-level fields that are read by steps, and by whoever takes what comes out of them, which is all that does. Of the others no column
/// is decoded.
pub(super) fn reads(steps: &[Shown]) -> FieldSet {
    steps.iter().rev().fold(FieldSet::All, |behind, (step, _)| step.reads(behind))
}

/// With what expressions read.
pub(super) fn read_by<'a>(mut needed: FieldSet, exprs: impl IntoIterator<Item = &'a BoundExpr>) -> FieldSet {
    exprs.into_iter().for_each(|expr| needed.add_all(expr.fields()));
    needed
}

/// Checks that stages unpack once, where `has_measurements` not at all, and tells each that does what the next one reads.
///
/// Errors: 7183900.
pub(super) fn settle(steps: &mut [Shown], has_measurements: bool) -> Result<()> {
    let mut is_done = has_measurements;
    for at in 0..steps.len() {
        let Some([(Step::Unpack(spec), _), behind @ ..]) = steps.get_mut(at..) else { continue };
        if is_done {
            let message = "can only be used once in the pipeline, and not over measurements";
            return Err(refused("$_internalUnpackBucket", ErrorCode::Location7183900, message));
        }
        is_done = true;
        if let Some(spec) = Rc::get_mut(spec) {
            spec.narrow(reads(behind));
        }
    }
    Ok(())
}
