//! Variables whose values come with the rows of a pipeline around: a pipeline is parsed once, and given the values for each row.

use super::bound::BoundExpr;
use super::evaluate::{Scope, reach};
use super::globals::Globals;
use super::tree::{Expr, Variable};
use crate::error::Result;
use crate::value::{Doc, OwnedValue, Value};

/// Sees expressions, and may put others in their place.
pub type Visit<'v> = dyn FnMut(&mut BoundExpr) -> Result<()> + 'v;

/// The values of the variables of a pipeline.
pub struct Outer<'v> {
    /// The number of the first one.
    pub first: usize,
    /// In the order of the numbers; `None` is the lack of one.
    pub values: &'v [Option<OwnedValue>],
}

impl Outer<'_> {
    /// Puts the values in the place of the variables; what is constant then is evaluated.
    ///
    /// Errors: those of operators.
    pub fn bind(&self, expr: &mut BoundExpr) -> Result<()> {
        if expr.reads().outer.is_some() {
            *expr = BoundExpr::new(expr.expr().clone().bound(self, expr.globals())?, expr.globals().clone());
        }
        Ok(())
    }

    /// The value of a variable; outer `None` where it is not one of these.
    fn value(&self, number: usize) -> Option<&Option<OwnedValue>> {
        self.values.get(number.checked_sub(self.first)?)
    }
}

impl Expr {
    fn bound(self, outer: &Outer<'_>, globals: &Globals) -> Result<Expr> {
        let bound = match self {
            Expr::Constant(_) => return Ok(self),
            Expr::Field(Variable::Outer(number), path) => {
                return Ok(match outer.value(number) {
                    Some(value) => {
                        let value = value.as_ref().map(OwnedValue::view);
                        Expr::Constant(reach(value, &path).view().map(Value::to_owned))
                    }
                    None => Expr::Field(Variable::Outer(number), path),
                });
            }
            Expr::Field(..) => return Ok(self),
            Expr::Object(fields) => {
                let fields = fields.into_iter().map(|(name, field)| Ok((name, field.bound(outer, globals)?)));
                Expr::Object(fields.collect::<Result<_>>()?)
            }
            Expr::Array(items) => Expr::Array(each(items, outer, globals)?),
            Expr::Call(operator, arguments) => Expr::Call(operator, each(arguments, outer, globals)?),
        };
        bound.folded(globals)
    }

    /// The constant that it comes to, where all its parts are constant.
    pub(super) fn folded(self, globals: &Globals) -> Result<Expr> {
        if !self.is_foldable() {
            return Ok(self);
        }
        let value = self.evaluate(&Scope::of(Doc::EMPTY, globals))?.view().map(Value::to_owned);
        Ok(Expr::Constant(value))
    }
}

fn each(exprs: Vec<Expr>, outer: &Outer<'_>, globals: &Globals) -> Result<Vec<Expr>> {
    exprs.into_iter().map(|expr| expr.bound(outer, globals)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::filter::samples::globals;
    use bson::rawdoc;

    /// An expression where `a` and `b` are the variables of one pipeline, and `c` that of one in it.
    fn expr(expr: bson::RawDocumentBuf) -> BoundExpr {
        let globals = globals().with_outer(["a", "b"].into_iter()).with_outer(["c"].into_iter());
        let expr = Expr::parse(Doc::parse(expr.as_bytes()).unwrap().as_value(), &globals).unwrap();
        BoundExpr::new(expr, globals)
    }

    fn with_values(mut expr: BoundExpr, first: usize, values: &[Option<OwnedValue>]) -> Result<BoundExpr> {
        Outer { first, values }.bind(&mut expr).map(|()| expr)
    }

    #[test]
    fn what_is_constant_once_variables_have_values_is_evaluated() {
        let sum = expr(rawdoc! { "$add": ["$$a", { "$multiply": ["$$b", 2] }] });
        assert_eq!(sum.reads().outer, Some(0));
        let bound = with_values(sum, 0, &[Some(OwnedValue::int32(1)), Some(OwnedValue::int32(3))]).unwrap();
        assert_eq!(bound.expr(), &Expr::Constant(Some(OwnedValue::int32(7))));
        let field =
            with_values(expr(rawdoc! { "$eq": ["$x", "$$b"] }), 0, &[None, Some(OwnedValue::int32(3))]).unwrap();
        assert_eq!((field.reads().outer, field.reads().fields.len()), (None, 1));
        let fails = with_values(expr(rawdoc! { "$add": ["$$a", 1] }), 0, &[Some(OwnedValue::string("x")), None]);
        assert!(fails.is_err());
    }

    #[test]
    fn a_variable_of_another_pipeline_stays_and_has_no_value_until_its_row_comes() {
        let both = expr(rawdoc! { "$cond": ["$$c", "$$a.x", "$y"] });
        let object = OwnedValue::doc(Doc::parse(rawdoc! { "x": 5 }.as_bytes()).unwrap());
        let outer = with_values(both, 0, &[Some(object), None]).unwrap();
        assert_eq!(outer.reads().outer, Some(2));
        assert!(outer.value(Doc::EMPTY).is_err());
        let inner = with_values(outer, 2, &[Some(OwnedValue::int32(1))]).unwrap();
        assert_eq!(inner.value(Doc::EMPTY).unwrap(), Some(OwnedValue::int32(5)));
    }
}
