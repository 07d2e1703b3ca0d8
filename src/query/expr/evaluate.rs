//! Evaluates an expression on a document.

use super::arguments::is_null_call;
use super::datum::{ArrayWriter, Datum, container};
use super::globals::Globals;
use super::operators::{Evaluation, Function};
use super::tree::{Expr, Variable};
use crate::error::Result;
use crate::listed::IntoList;
use crate::value::{Doc, DocWriter, Kind, Value};

/// A bound variable, the scope around it, and the document outermost.
#[derive(Clone, Copy)]
pub struct Scope<'s> {
    value: Option<Value<'s>>,
    outer: Option<&'s Scope<'s>>,
    globals: &'s Globals,
}

impl<'s> Scope<'s> {
    /// The scope of a document.
    pub fn of(root: Doc<'s>, globals: &'s Globals) -> Scope<'s> {
        Scope { value: Some(root.as_value()), outer: None, globals }
    }

    /// This scope with one more variable.
    pub(super) fn with<'i>(&'i self, value: Option<Value<'i>>) -> Scope<'i>
    where
        's: 'i,
    {
        Scope { value, outer: Some(self), globals: self.globals }
    }

    pub(super) fn globals(&self) -> &'s Globals {
        self.globals
    }

    fn get(&self, variable: Variable) -> Option<Value<'s>> {
        let (mut value, mut outer) = (self.value, self.outer);
        let mut hops = match variable {
            Variable::Root => usize::MAX,
            Variable::Bound(hops) => hops,
            Variable::Outer(_) => return None,
        };
        while let Some(scope) = outer.filter(|_| hops > 0) {
            (value, outer) = (scope.value, scope.outer);
            hops -= 1;
        }
        value
    }
}

impl Expr {
    /// The value for the document of `scope`.
    ///
    /// Errors: values that operators do not accept, with the server's codes.
    pub fn evaluate<'s>(&'s self, scope: &Scope<'s>) -> Result<Datum<'s>> {
        Ok(match self {
            Expr::Constant(value) => value.as_ref().map(|value| value.view()).into(),
            Expr::Field(Variable::Outer(number), path) => match scope.globals.reach_outer(*number, path) {
                Some(value) => Datum::Shared(value),
                None => Datum::Missing,
            },
            Expr::Field(variable, path) => reach(scope.get(*variable), path),
            Expr::Object(fields) => {
                let mut writer = DocWriter::new();
                for (name, field) in fields {
                    if let Some(value) = field.evaluate(scope)?.view() {
                        writer.value(name, value);
                    }
                }
                container(Kind::Object, writer)
            }
            Expr::Array(items) => {
                let mut array = ArrayWriter::new();
                for item in items {
                    array.push(item.evaluate(scope)?.view());
                }
                array.finish()
            }
            Expr::Call(operator, arguments) => match &operator.run {
                Evaluation::Lazy(run) => run(arguments, scope)?,
                Evaluation::Eager { wants, nulls, run } => {
                    let data = evaluate_all(arguments, scope)?;
                    let values: Vec<Option<Value<'_>>> = data.iter().map(Datum::view).listed();
                    // An omitted argument differs from null.
                    let is_given = |at: usize| !operator.may_omit(at) || arguments.get(at) != Some(&Expr::MISSING);
                    if is_null_call(operator.name(), (wants, *nulls), &values, &is_given)? {
                        return Ok(Datum::NULL);
                    }
                    match run {
                        Function::Plain(run) => run(operator, &values)?,
                        Function::Comparing(run) => run(operator, &values, scope.globals.collation())?,
                        Function::Asking(run) => run(operator, &values, scope.globals)?,
                    }
                }
            },
        })
    }

    /// True if the value for the document of `scope` counts as true: it is not null, false, zero or missing.
    ///
    /// Errors: those of `evaluate`.
    pub fn is_true(&self, scope: &Scope<'_>) -> Result<bool> {
        Ok(self.evaluate(scope)?.view().is_some_and(Value::is_true))
    }
}

/// The values of all arguments.
#[inline(never)]
pub(super) fn evaluate_all<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Vec<Datum<'s>>> {
    let mut data = Vec::with_capacity(arguments.len());
    for argument in arguments {
        data.push(argument.evaluate(scope)?);
    }
    Ok(data)
}

/// The value that `path` reaches in `value`. Arrays are mapped, and numbers are not positions.
pub(super) fn reach<'a>(value: Option<Value<'a>>, path: &[Box<str>]) -> Datum<'a> {
    let Some((name, rest)) = path.split_first() else { return value.into() };
    let Some(value) = value else { return Datum::Missing };
    if let Some(doc) = value.as_doc() {
        return reach(doc.get(name), rest);
    }
    let Some(array) = value.as_array() else { return Datum::Missing };
    let mut reached = ArrayWriter::new();
    for (_, element) in array.iter().filter(|(_, element)| element.kind() == Kind::Object) {
        if let Some(found) = reach(Some(element), path).view() {
            reached.push(Some(found));
        }
    }
    reached.finish()
}
