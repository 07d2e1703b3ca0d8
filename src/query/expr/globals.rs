//! What filters and expressions may refer to besides the document.

use std::rc::Rc;

use super::evaluate::Scope;
use super::tree::Expr;
use crate::env::Env;
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Doc, OwnedValue, Value};

/// The world outside, the moment of the command, and the variables of its `let`.
#[derive(Clone)]
pub struct Globals(Rc<Inner>);

struct Inner {
    env: Rc<dyn Env>,
    now_ms: i64,
    variables: Vec<(Box<str>, Option<OwnedValue>)>,
}

impl Globals {
    /// Those of a command that begins now.
    pub fn new(env: &Rc<dyn Env>) -> Globals {
        Globals(Rc::new(Inner { env: Rc::clone(env), now_ms: env.now_ms(), variables: Vec::new() }))
    }

    /// The same with the variables of a `let`, which are evaluated now.
    ///
    /// Errors: 4890500 for a variable that reads the document, and those of expressions.
    pub fn with_variables(&self, variables: Doc<'_>) -> Result<Globals> {
        let mut evaluated = Vec::new();
        for (name, value) in variables {
            let expr = Expr::parse(value, self)?;
            let reads = expr.reads();
            if reads.whole || !reads.fields.is_empty() {
                let message = format!("The variable '{name}' of let must not access a field");
                return Err(Error::new(ErrorCode::Location4890500, message));
            }
            let value = expr.evaluate(&Scope::of(Doc::EMPTY, &*self.0.env))?.view().map(Value::to_owned);
            evaluated.push((name.into(), value));
        }
        Ok(Globals(Rc::new(Inner { env: Rc::clone(&self.0.env), now_ms: self.0.now_ms, variables: evaluated })))
    }

    /// The world outside.
    pub fn env(&self) -> &Rc<dyn Env> {
        &self.0.env
    }

    /// When the command began: the same moment for every document.
    pub fn now_ms(&self) -> i64 {
        self.0.now_ms
    }

    /// The value of a variable; outer `None` where there is no such variable.
    pub(super) fn variable(&self, name: &str) -> Option<&Option<OwnedValue>> {
        self.0.variables.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }
}
