//! The tree of an update: the steps to each changed value, and the operators there.

use super::operators::UpdateOperator;
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::Globals;
use crate::query::filter::Filter;
use crate::value::OwnedValue;

/// An update of metadata, or of whole documents.
pub struct Update {
    pub(super) root: UpdateNode,
    /// How many names at the start of a path lead to the value that is changed: the one of the metaField, or none.
    pub(super) above: usize,
    /// The identifiers of `arrayFilters`, and the elements that each selects.
    pub(super) filters: Vec<(Box<str>, Filter)>,
    /// True if a path contains a `$`.
    pub(super) is_positional: bool,
    pub(super) globals: Globals,
}

/// A position in the metadata: either an operator and its operand change it, or positions below it are changed.
#[derive(Default)]
pub(super) struct UpdateNode {
    pub(super) op: Option<(UpdateOperator, OwnedValue)>,
    pub(super) children: Vec<(PathStep, UpdateNode)>,
}

/// From a value to one inside it.
#[derive(Clone, PartialEq)]
pub(super) enum PathStep {
    /// To a field, or to the element at a position.
    Name(Box<str>),
    /// `$`: to the element that the query has matched.
    Matched,
    /// `$[]`: to every element.
    All,
    /// `$[identifier]`: to the elements that this array filter matches.
    Filtered(usize),
}

impl PathStep {
    /// True for steps that may lead to several elements of an array.
    pub(super) fn is_of_array(&self) -> bool {
        matches!(self, PathStep::All | PathStep::Filtered(_))
    }
}

impl UpdateNode {
    /// Adds an operator at the end of `steps`, which are those of `path`.
    ///
    /// Errors: `ConflictingUpdateOperators` if another operator is on the way, or below.
    pub(super) fn add(&mut self, steps: &[PathStep], path: &str, op: (UpdateOperator, OwnedValue)) -> Result<()> {
        let step = steps.split_first();
        let is_blocked = match step {
            None => !self.children.is_empty(),
            Some((step, _)) => self.children.iter().any(|(other, _)| other.is_of_array() != step.is_of_array()),
        };
        if is_blocked || self.op.is_some() {
            return Err(conflict(path));
        }
        let Some((step, below)) = step else {
            self.op = Some(op);
            return Ok(());
        };
        let at = self.children.iter().position(|(other, _)| other == step).unwrap_or_else(|| {
            self.children.push((step.clone(), UpdateNode::default()));
            self.children.len() - 1
        });
        self.children.get_mut(at).map_or(Ok(()), |(_, child)| child.add(below, path, op))
    }

    /// True if both change the same value, or one changes a value inside the other.
    pub(super) fn overlaps(&self, other: &UpdateNode) -> bool {
        let same = |(step, child): &(PathStep, UpdateNode)| {
            other.children.iter().any(|(also, changed)| also == step && child.overlaps(changed))
        };
        self.op.is_some() || other.op.is_some() || self.children.iter().any(same)
    }
}

/// The error for two operators on one value.
pub(super) fn conflict(path: &str) -> Error {
    refused(ErrorCode::ConflictingUpdateOperators, "Two operators change", path)
}

/// An error about something that an update cannot do. One function for all, because each format string takes code.
#[cold]
#[inline(never)]
pub(super) fn refused(code: ErrorCode, problem: &str, subject: &str) -> Error {
    Error::new(code, format!("{problem} '{subject}'"))
}
