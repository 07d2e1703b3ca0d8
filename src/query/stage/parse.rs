//! Collects the stages of a pipeline during parsing.

use std::rc::Rc;

use super::model::{DocumentSource, Foreign, Out};
use super::spec::{ShownStep, Spec, Step};
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::{BoundExpr, Expr, Globals};
use crate::query::plan::FindCommand;
use crate::query::sort::SortSpec;
use crate::value::{Doc, DocWriter, OwnedValue, Value};

/// The parts of a find, in the order in which they run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FindPart {
    Filter,
    Sort,
    Skip,
    Limit,
    Projection,
    /// Nothing more can be added to it.
    End,
}

/// A pipeline during parsing.
pub(super) struct PipelineParser<'g> {
    pub globals: &'g Globals,
    pub steps: Vec<ShownStep>,
    /// The target collection, if rows are written.
    pub out: Option<Out>,
    /// The first stage, if it produces documents of its own.
    pub source: Option<DocumentSource>,
    /// What the steps need from other collections.
    pub others: Vec<Foreign>,
    /// The last part of the last find, not counting its projection.
    pub part: FindPart,
}

impl<'g> PipelineParser<'g> {
    /// A parser without steps.
    pub fn new(globals: &'g Globals) -> PipelineParser<'g> {
        let (steps, others) = (Vec::new(), Vec::new());
        PipelineParser { globals, steps, out: None, source: None, others, part: FindPart::Filter }
    }

    /// True if only filters were added so far.
    pub fn is_filter(&self) -> bool {
        matches!(self.steps.as_slice(), [(Step::Find(find), _)] if self.part == FindPart::Filter && find.projection.is_all())
    }

    /// Forgets the added stages, and what they need from other collections except for the first `known` entries.
    pub fn forget(&mut self, known: usize) {
        (self.source, self.part) = (None, FindPart::Filter);
        self.others.truncate(known);
        self.steps.clear();
        self.begin_find();
    }

    /// Begins a find; `explain` shows it by its parts.
    pub fn begin_find(&mut self) {
        self.steps.push((Step::Find(Box::default()), DocWriter::new().finish()));
    }

    /// Adds a stage, with the form that `explain` shows.
    pub fn push(&mut self, spec: impl Spec + 'static, name: &str, argument: Value<'_>) {
        self.push_step(Step::Other(Rc::new(spec)), name, argument);
    }

    /// The same for a step.
    pub fn push_step(&mut self, step: Step, name: &str, argument: Value<'_>) {
        let mut shown = DocWriter::new();
        shown.value(name, argument);
        self.steps.push((step, shown.finish()));
    }

    /// The find to which a part can be added: the last one if it has not gone beyond that part, otherwise a new one.
    pub fn find(&mut self, part: FindPart) -> &mut FindCommand {
        // Stages that drop rows may run before the rows are projected.
        let begins = |find: &FindCommand| {
            self.part > part || !find.projection.is_all() && !matches!(part, FindPart::Skip | FindPart::Limit)
        };
        if self.steps.last().is_none_or(|(step, _)| !matches!(step, Step::Find(find) if !begins(find))) {
            self.begin_find();
            self.part = FindPart::Filter;
        }
        if part != FindPart::Projection {
            self.part = part;
        }
        match self.steps.last_mut() {
            Some((Step::Find(find), _)) => find,
            _ => unreachable!("a find was pushed"),
        }
    }

    /// Adds a sort. A later sort replaces an earlier one. A sort by fields that the projection leaves unchanged runs
    /// before it.
    pub fn sort_rows(&mut self, sort: SortSpec) {
        if let (true, Some((Step::Find(find), _))) = (self.part <= FindPart::Sort, self.steps.last_mut())
            && sort.parts().iter().all(|part| find.projection.leaves_root(part.path.first()))
        {
            find.sort = Some(sort);
            self.part = FindPart::Sort;
        } else {
            self.find(FindPart::Sort).sort = Some(sort);
        }
    }

    pub fn expr(&self, value: Value<'_>) -> Result<BoundExpr> {
        Ok(BoundExpr::new(Expr::parse(value, self.globals)?, self.globals.clone()))
    }

    pub fn constant(&self, value: OwnedValue) -> BoundExpr {
        BoundExpr::new(Expr::Constant(Some(value)), self.globals.clone())
    }
}

/// Checks the fields of a stage's argument.
///
/// Errors: 40415 for a field that is not in `known`; 40414 if one of `required` is missing.
pub(super) fn check_fields(stage: &str, doc: Doc<'_>, known: &[&str], required: &[&str]) -> Result<()> {
    if let Some((name, _)) = doc.iter().find(|(name, _)| !known.contains(name)) {
        return Err(Error::new(ErrorCode::IDLUnknownField, format!("BSON field '{stage}.{name}' is an unknown field")));
    }
    match required.iter().find(|name| doc.get(name).is_none()) {
        None => Ok(()),
        Some(name) => {
            let message = format!("BSON field '{stage}.{name}' is missing but a required field");
            Err(Error::new(ErrorCode::IDLFailedToParse, message))
        }
    }
}
