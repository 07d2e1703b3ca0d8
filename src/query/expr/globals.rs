//! What filters and expressions refer to besides the document.

use std::cell::RefCell;
use std::rc::Rc;

use super::date::Zones;
use super::evaluate::Scope;
use super::outer::Outer;
use super::regex::Regex;
use super::tree::Expr;
use crate::env::Env;
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;
use crate::value::{Collation, Doc, OwnedValue, Value};

/// The host, the time of the command, its collation, and the variables of its `let`.
#[derive(Clone)]
pub struct Globals(Rc<Inner>);

/// What is known of a variable.
#[derive(Clone)]
pub(super) enum Known {
    Value(Option<OwnedValue>),
    /// Its value comes with each row of an enclosing pipeline.
    Outer(usize),
}

struct Inner {
    env: Rc<dyn Env>,
    now_ms: i64,
    collation: Collation,
    /// With the innermost of each name first.
    variables: Vec<(Box<str>, Known)>,
    zones: Rc<RefCell<Zones>>,
    regexes: Rc<RefCell<Vec<Rc<Regex>>>>,
    outer: Rc<Outer>,
}

impl Globals {
    /// For a command that begins now and compares strings by their bytes.
    pub fn new(env: &Rc<dyn Env>) -> Globals {
        Globals(Rc::new(Inner {
            env: Rc::clone(env),
            now_ms: env.now_ms(),
            collation: Collation::default(),
            variables: Vec::new(),
            zones: Rc::default(),
            regexes: Rc::default(),
            outer: Rc::default(),
        }))
    }

    /// The same with a collation and without variables, whose values may depend on the collation.
    pub fn with_collation(&self, collation: &Collation) -> Globals {
        self.with(collation.clone(), Vec::new())
    }

    fn with(&self, collation: Collation, variables: Vec<(Box<str>, Known)>) -> Globals {
        let Inner { env, now_ms, zones, regexes, outer, .. } = &*self.0;
        let (env, zones, regexes, outer) = (Rc::clone(env), Rc::clone(zones), Rc::clone(regexes), Rc::clone(outer));
        Globals(Rc::new(Inner { env, now_ms: *now_ms, collation, variables, zones, regexes, outer }))
    }

    /// The variables of enclosing pipelines.
    pub(super) fn outer(&self) -> &Outer {
        &self.0.outer
    }

    /// The same with the variables of a `let`, which are evaluated now.
    ///
    /// Errors: 4890500 if a variable reads the document, and those of expressions.
    pub fn with_variables(&self, variables: Doc<'_>) -> Result<Globals> {
        let mut evaluated = Vec::new();
        for (name, value) in variables {
            let expr = Expr::parse(value, self)?;
            if !expr.fields().is_empty() {
                let message = format!("The variable '{name}' of 'let' must not read a field");
                return Err(Error::new(ErrorCode::Location4890500, message));
            }
            let value = expr.evaluate(&Scope::of(Doc::EMPTY, self))?.view().map(Value::to_owned);
            evaluated.push((name.into(), Known::Value(value)));
        }
        Ok(self.with(self.0.collation.clone(), evaluated))
    }

    /// The same with more variables, which hide others of the same names.
    pub fn with_more(&self, variables: Vec<(Box<str>, Option<OwnedValue>)>) -> Globals {
        let variables = variables.into_iter().map(|(name, value)| (name, Known::Value(value)));
        self.with(self.0.collation.clone(), variables.chain(self.0.variables.iter().cloned()).listed())
    }

    /// The same with variables whose values come with each row of a pipeline, numbered from `outer_count`. They hide
    /// others of the same names.
    pub fn with_outer<'n>(&self, names: impl Iterator<Item = &'n str>) -> Globals {
        let outer = names.zip(self.outer_count()..).map(|(name, number)| (name.into(), Known::Outer(number)));
        self.with(self.0.collation.clone(), outer.chain(self.0.variables.iter().cloned()).listed())
    }

    /// The number of variables whose values come with rows.
    pub fn outer_count(&self) -> usize {
        self.0.variables.iter().filter(|(_, known)| matches!(known, Known::Outer(_))).count()
    }

    /// The same without variables whose values come with rows.
    pub fn without_outer(&self) -> Globals {
        let mut variables = self.0.variables.clone();
        variables.retain(|(_, known)| matches!(known, Known::Value(_)));
        self.with(self.0.collation.clone(), variables)
    }

    /// The host.
    pub fn env(&self) -> &Rc<dyn Env> {
        &self.0.env
    }

    /// The time zones that the command has used.
    pub(super) fn zones(&self) -> &RefCell<Zones> {
        &self.0.zones
    }

    /// The last regular expressions that operators have compiled.
    pub(super) fn regexes(&self) -> &RefCell<Vec<Rc<Regex>>> {
        &self.0.regexes
    }

    /// How strings compare.
    pub fn collation(&self) -> &Collation {
        &self.0.collation
    }

    /// When the command began, which is the same for every document.
    pub fn now_ms(&self) -> i64 {
        self.0.now_ms
    }

    /// What is known of a variable; `None` if it does not exist.
    pub(super) fn variable(&self, name: &str) -> Option<&Known> {
        self.0.variables.iter().find(|(known, _)| **known == *name).map(|(_, known)| known)
    }
}
