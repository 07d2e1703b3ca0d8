//! The stages of a pipeline, as they are put together while they are parsed.

use std::rc::Rc;

use super::model::{DocumentSource, Foreign, Out};
use super::spec::{Shown, Spec, Step};
use crate::error::{Error, ErrorCode, Result};
use crate::query::expr::{BoundExpr, Expr, Globals};
use crate::query::plan::FindCommand;
use crate::query::sort::SortSpec;
use crate::value::{Doc, DocWriter, OwnedValue, Value};

/// The parts of a find in the order in which they run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Part {
    Filter,
    Sort,
    Skip,
    Limit,
    Projection,
    /// Nothing more belongs to it.
    End,
}

/// A pipeline in the making.
pub(super) struct Parser<'g> {
    pub globals: &'g Globals,
    pub steps: Vec<Shown>,
    /// Where the rows go, if they are written.
    pub out: Option<Out>,
    /// The stage in front that gives documents of its own, if there is one.
    pub source: Option<DocumentSource>,
    /// What the steps need of other collections.
    pub others: Vec<Foreign>,
    /// How far the last find has come, its projection apart.
    pub part: Part,
}

impl<'g> Parser<'g> {
    /// One without steps.
    pub fn new(globals: &'g Globals) -> Parser<'g> {
        let (steps, others) = (Vec::new(), Vec::new());
        Parser { globals, steps, out: None, source: None, others, part: Part::Filter }
    }

    /// True where what was added so far is a filter.
    pub fn is_filter(&self) -> bool {
        matches!(self.steps.as_slice(), [(Step::Find(find), _)] if self.part == Part::Filter && find.projection.is_all())
    }

    /// Forgets what was added, and what it needs of other collections but for the first so many.
    pub fn forget(&mut self, known: usize) {
        (self.source, self.part) = (None, Part::Filter);
        self.others.truncate(known);
        self.steps.clear();
        self.begin_find();
    }

    /// A find, which shows itself.
    pub fn begin_find(&mut self) {
        self.steps.push((Step::Find(Box::default()), DocWriter::new().finish()));
    }

    /// Adds a stage, and what `explain` shows for it.
    pub fn push(&mut self, spec: impl Spec + 'static, name: &str, argument: Value<'_>) {
        self.push_step(Step::Other(Rc::new(spec)), name, argument);
    }

    /// The same of a step.
    pub fn push_step(&mut self, step: Step, name: &str, argument: Value<'_>) {
        let mut shown = DocWriter::new();
        shown.value(name, argument);
        self.steps.push((step, shown.finish()));
    }

    /// The find that a part belongs to: the last one where that has not come further, else a new one.
    pub fn find(&mut self, part: Part) -> &mut FindCommand {
        // What leaves some rows out may do so before they are projected.
        let begins = |find: &FindCommand| {
            self.part > part || !find.projection.is_all() && !matches!(part, Part::Skip | Part::Limit)
        };
        if self.steps.last().is_none_or(|(step, _)| !matches!(step, Step::Find(find) if !begins(find))) {
            self.begin_find();
            self.part = Part::Filter;
        }
        if part != Part::Projection {
            self.part = part;
        }
        match self.steps.last_mut() {
            Some((Step::Find(find), _)) => find,
            _ => unreachable!("a find was pushed"),
        }
    }

    /// A sort. A later one takes the place of an earlier one; one of fields that a projection leaves as they are is done before it.
    pub fn sort_rows(&mut self, sort: SortSpec) {
        if let (true, Some((Step::Find(find), _))) = (self.part <= Part::Sort, self.steps.last_mut())
            && sort.parts().iter().all(|part| find.projection.leaves_root(part.path.first()))
        {
            find.sort = Some(sort);
            self.part = Part::Sort;
        } else {
            self.find(Part::Sort).sort = Some(sort);
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
/// Errors: 40415 for one that is not among `known`, 40414 where one of `required` is missing.
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
