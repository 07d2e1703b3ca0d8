//! The tree of an update: which steps lead to what is changed, and what becomes of it there.

use super::operators::Operator;
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::Globals;
use crate::query::filter::Filter;
use crate::value::OwnedValue;

/// What an update makes of metadata.
pub struct Update {
    pub(super) root: Node,
    /// The identifiers of `arrayFilters`, and which elements they stand for.
    pub(super) filters: Vec<(Box<str>, Filter)>,
    /// Whether a path has a `$`.
    pub(super) is_positional: bool,
    pub(super) globals: Globals,
}

/// A place in the metadata. It is changed itself, by an operator and its operand, or places below it are.
#[derive(Default)]
pub(super) struct Node {
    pub(super) op: Option<(Operator, OwnedValue)>,
    pub(super) children: Vec<(Step, Node)>,
}

/// From a value to one inside it.
#[derive(Clone, PartialEq)]
pub(super) enum Step {
    /// To a field, or the element at a position.
    Name(Box<str>),
    /// `$`: to the element by which the query has matched.
    Matched,
    /// `$[]`: to every element.
    All,
    /// `$[identifier]`: to the elements that this array filter matches.
    Filtered(usize),
}

impl Step {
    /// True for the steps that every element of an array may take.
    pub(super) fn is_of_array(&self) -> bool {
        matches!(self, Step::All | Step::Filtered(_))
    }
}

impl Node {
    /// Adds an operator at the end of `steps`, which are those of `path`.
    ///
    /// Errors: `ConflictingUpdateOperators` where another one is on the way, or below.
    pub(super) fn add(&mut self, steps: &[Step], path: &str, op: (Operator, OwnedValue)) -> Result<()> {
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
            self.children.push((step.clone(), Node::default()));
            self.children.len() - 1
        });
        self.children.get_mut(at).map_or(Ok(()), |(_, child)| child.add(below, path, op))
    }

    /// True where both change the same, or one what is below the other.
    pub(super) fn overlaps(&self, other: &Node) -> bool {
        let same = |(step, child): &(Step, Node)| {
            other.children.iter().any(|(also, changed)| also == step && child.overlaps(changed))
        };
        self.op.is_some() || other.op.is_some() || self.children.iter().any(same)
    }
}

/// Two operators at one place.
pub(super) fn conflict(path: &str) -> Error {
    refused(ErrorCode::ConflictingUpdateOperators, "Two operators would change", path)
}

/// What an update cannot do. One function for all, because each format takes its code.
#[cold]
#[inline(never)]
pub(super) fn refused(code: ErrorCode, problem: &str, subject: &str) -> Error {
    Error::new(code, format!("{problem} '{subject}'"))
}
