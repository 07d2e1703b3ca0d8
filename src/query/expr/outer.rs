//! Variables whose values come with the rows of an enclosing pipeline. A pipeline is parsed once and finds the values
//! of the current row in cells.

use std::cell::{Cell, RefCell};

use super::bound::BoundExpr;
use super::evaluate::{Scope, reach};
use super::globals::Globals;
use super::tree::{Expr, Variable};
use crate::error::Result;
use crate::listed::IntoList;
use crate::value::{Doc, OwnedValue, Value};

/// The variables of the enclosing pipelines, outermost first.
pub(super) struct Outer {
    /// Their current values. A pipeline stores its own for a row, and runs the inner pipeline to its end.
    values: RefCell<Vec<Option<OwnedValue>>>,
    /// The outermost variable that was read during parsing; 0 also for a random value.
    read: Cell<usize>,
}

impl Default for Outer {
    fn default() -> Outer {
        Outer { values: RefCell::default(), read: Cell::new(usize::MAX) }
    }
}

impl Outer {
    /// Records that a variable is read.
    pub(super) fn note(&self, number: usize) {
        self.read.set(self.read.get().min(number));
    }
}

impl Globals {
    /// Sets variables from number `first` on; later ones lose their values.
    pub fn set_outer(&self, first: usize, values: Vec<Option<OwnedValue>>) {
        let mut known = self.outer().values.borrow_mut();
        known.resize(first, None);
        known.extend(values);
    }

    /// The outermost variable read since the last call, or restored since; `usize::MAX` for none.
    pub fn take_outer_read(&self) -> usize {
        self.outer().read.replace(usize::MAX)
    }

    /// Restores that a variable was read.
    pub fn note_outer_read(&self, number: usize) {
        self.outer().note(number);
    }

    /// Records that a value is random: as one that depends on every variable, it is another one for each row.
    pub fn note_random(&self) {
        self.outer().note(0);
    }

    /// The value that a path reaches in a variable now.
    pub(super) fn reach_outer(&self, number: usize, path: &[Box<str>]) -> Option<OwnedValue> {
        let values = self.outer().values.borrow();
        let value = values.get(number).and_then(Option::as_ref);
        reach(value.map(OwnedValue::view), path).view().map(Value::to_owned)
    }
}

impl BoundExpr {
    /// The same with the current values of enclosing pipelines' variables, if it reads any; constant parts are then
    /// evaluated.
    ///
    /// Errors: those of operators.
    pub fn resolved(&self) -> Result<Option<BoundExpr>> {
        if !self.reads_outer() {
            return Ok(None);
        }
        let expr = self.expr().clone().resolved(self.globals())?;
        Ok(Some(BoundExpr::new(expr, self.globals().clone())))
    }
}

impl Expr {
    fn resolved(self, globals: &Globals) -> Result<Expr> {
        let each = |exprs: Vec<Expr>| exprs.into_iter().map(|expr| expr.resolved(globals)).try_listed();
        let resolved = match self {
            Expr::Field(Variable::Outer(number), path) => {
                return Ok(Expr::Constant(globals.reach_outer(number, &path)));
            }
            Expr::Constant(_) | Expr::Field(..) => return Ok(self),
            Expr::Object(fields) => {
                let fields = fields.into_iter().map(|(name, field)| Ok((name, field.resolved(globals)?)));
                Expr::Object(fields.try_listed()?)
            }
            Expr::Array(items) => Expr::Array(each(items)?),
            Expr::Call(operator, arguments) => Expr::Call(operator, each(arguments)?),
        };
        resolved.with_constants_evaluated(globals)
    }

    /// The constant value, if all parts are constant.
    pub(super) fn with_constants_evaluated(self, globals: &Globals) -> Result<Expr> {
        if !self.is_constant_operation() {
            return Ok(self);
        }
        let value = self.evaluate(&Scope::of(Doc::EMPTY, globals))?.view().map(Value::to_owned);
        Ok(Expr::Constant(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::expr::samples::globals;
    use bson::rawdoc;

    /// An expression in which `a` and `b` are variables of one pipeline, and `c` is one of a pipeline inside it.
    fn expr(expr: bson::RawDocumentBuf) -> BoundExpr {
        let globals = globals().with_outer(["a", "b"].into_iter()).with_outer(["c"].into_iter());
        let expr = Expr::parse(Doc::parse(expr.as_bytes()).unwrap().as_value(), &globals).unwrap();
        BoundExpr::new(expr, globals)
    }

    #[test]
    fn expressions_become_constant_once_their_variables_are_bound() {
        let sum = expr(rawdoc! { "$add": ["$$a", { "$multiply": ["$$b", 2] }] });
        assert_eq!(sum.globals().take_outer_read(), 0);
        let number = |n: i32| Some(OwnedValue::int32(n));
        sum.globals().set_outer(0, vec![number(1), number(3)]);
        assert_eq!(sum.resolved().unwrap().unwrap().expr(), &Expr::Constant(number(7)));
        assert_eq!(sum.value(Doc::EMPTY).unwrap(), number(7));
        // With the values of another row.
        sum.globals().set_outer(0, vec![number(2), number(3)]);
        assert_eq!(sum.value(Doc::EMPTY).unwrap(), number(8));
        sum.globals().set_outer(0, vec![Some(OwnedValue::string("x")), number(3)]);
        assert!(sum.resolved().is_err());
        let field = expr(rawdoc! { "$eq": ["$x", "$$b"] }).resolved().unwrap().unwrap();
        assert_eq!((field.reads_outer(), field.fields().names().len()), (false, 1));
        assert!(expr(rawdoc! { "$eq": ["$x", 1] }).resolved().unwrap().is_none());
    }

    #[test]
    fn a_nested_pipeline_has_its_own_variables() {
        let both = expr(rawdoc! { "$concat": ["$$c", "$$a.x"] });
        let text = |text: &str| Some(OwnedValue::string(text));
        let object = OwnedValue::doc(Doc::parse(rawdoc! { "x": "5" }.as_bytes()).unwrap());
        both.globals().set_outer(0, vec![Some(object), None]);
        both.globals().set_outer(2, vec![text("1")]);
        assert_eq!(both.value(Doc::EMPTY).unwrap(), text("15"));
        both.globals().set_outer(2, vec![text("2")]);
        assert_eq!(both.value(Doc::EMPTY).unwrap(), text("25"));
        let inner = expr(rawdoc! { "$add": ["$$c", 1] });
        assert_eq!((inner.globals().take_outer_read(), inner.globals().take_outer_read()), (2, usize::MAX));
    }
}
