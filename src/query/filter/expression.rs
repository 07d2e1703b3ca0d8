//! `$expr`: an expression that must be true of the document.

use std::rc::Rc;

use super::compare::Compare;
use super::tree::{Filter, Test};
use crate::block::{Bitmap, Block};
use crate::error::Result;
use crate::listed::IntoList;
use crate::query::expr::{BoundExpr, Expr, Globals, Operator, Variable};
use crate::value::{Collation, Doc, DocWriter, FieldSet, Kind, Path, Value};

/// An expression, and what is known of it without evaluating it.
#[derive(Clone, Debug)]
pub struct Condition {
    expr: BoundExpr,
    /// The equivalent filter, if the expression compares a field with a constant. It is equivalent only for documents
    /// without an array on the path; for others it says nothing.
    twin: Option<(Path, Test)>,
}

/// The filter of `{$expr: operand}`. Whatever filters can express becomes a filter, so that conjunctions can be split.
///
/// Errors: those of parsing expressions.
pub(super) fn parse(operand: Value<'_>, globals: &Globals) -> Result<Filter> {
    Ok(Filter::of_expr(Expr::parse(operand, globals)?, globals))
}

/// The filter of a rate: the probability that a document passes.
pub(super) fn sample(rate: f64, globals: &Globals) -> Result<Filter> {
    let mut writer = DocWriter::new();
    writer.begin_array("$lt").begin_doc("0").begin_doc("$rand").end().end().double("1", rate).end();
    parse(writer.finish().view().as_value(), globals)
}

impl Filter {
    /// The filter that an expression must be true.
    pub fn of_expr(expr: Expr, globals: &Globals) -> Filter {
        match expr {
            Expr::Constant(value) if value.as_ref().is_some_and(|value| value.view().is_true()) => Filter::AlwaysTrue,
            Expr::Constant(_) => Filter::AlwaysFalse,
            Expr::Call(operator, arguments) => match logic(operator) {
                Some(combine) => combine(arguments.into_iter().map(|one| Filter::of_expr(one, globals)).listed()),
                None => Filter::Expr(Rc::new(Condition::new(BoundExpr::new(
                    Expr::Call(operator, arguments),
                    globals.clone(),
                )))),
            },
            other => Filter::Expr(Rc::new(Condition::new(BoundExpr::new(other, globals.clone())))),
        }
    }
}

/// The logical filter that corresponds to an operator of expressions.
fn logic(operator: &Operator) -> Option<fn(Vec<Filter>) -> Filter> {
    Some(match operator.name() {
        "$and" => Filter::and,
        "$or" => Filter::or,
        "$not" => Filter::nor,
        _ => return None,
    })
}

impl Condition {
    fn new(expr: BoundExpr) -> Condition {
        let twin = match expr.expr() {
            Expr::Call(operator, arguments) => twin(operator, arguments, expr.globals().collation()),
            _ => None,
        };
        Condition { expr, twin }
    }

    /// The top-level fields that it reads.
    pub fn fields(&self) -> &FieldSet {
        self.expr.fields()
    }

    /// True if it differs from call to call.
    pub fn is_random(&self) -> bool {
        self.expr.is_random()
    }

    /// The equivalent filter, which is valid for documents without an array on its path.
    pub fn twin(&self) -> Option<&(Path, Test)> {
        self.twin.as_ref()
    }

    /// The same with the current values of enclosing pipelines' variables.
    ///
    /// Errors: those of operators.
    pub(super) fn resolved(&self) -> Result<Option<Condition>> {
        Ok(self.expr.resolved()?.map(Condition::new))
    }

    /// The expression.
    pub fn expr(&self) -> &Expr {
        self.expr.expr()
    }

    /// True if it only compares fields and constants, so that it cannot fail and cannot distinguish values that compare
    /// equal. With a collation it says false, because conditions that differ only in their collation count as equal: what
    /// is remembered of one would be taken for the other.
    pub(super) fn takes_equal_for_same(&self) -> bool {
        let Expr::Call(operator, arguments) = self.expr.expr() else { return false };
        if !self.expr.globals().collation().is_simple() {
            return false;
        }
        let is_plain = |one: &Expr| matches!(one, Expr::Constant(_) | Expr::Field(Variable::Root, _));
        match (operator.name(), &arguments[..]) {
            ("$in", [item, Expr::Constant(Some(list))]) => is_plain(item) && list.view().kind() == Kind::Array,
            (name, arguments) => (name == "$ne" || operator.comparison().is_some()) && arguments.iter().all(is_plain),
        }
    }

    /// The same condition with all paths starting at `root`.
    pub(super) fn with_root(&self, root: &str) -> Condition {
        Condition::new(self.expr.with_root(root))
    }

    /// The filter with other expressions in place of the paths into the document; `None` if one has none.
    pub fn translated(&self, translate: &dyn Fn(&[Box<str>]) -> Option<Expr>) -> Option<Filter> {
        let expr = self.expr.expr().translated(translate)?;
        Some(Filter::Expr(Rc::new(Condition::new(BoundExpr::new(expr, self.expr.globals().clone())))))
    }

    /// True if the expression is true for `doc`, which may be limited to the fields that it reads.
    pub(super) fn matches(&self, doc: Doc<'_>) -> Result<bool> {
        self.expr.is_true(doc)
    }

    /// True if it is true for a document whose fields are all `value`.
    pub(super) fn matches_value(&self, value: Option<Value<'_>>) -> Result<bool> {
        let mut writer = DocWriter::new();
        for (field, value) in self.fields().names().iter().zip(std::iter::repeat(value)) {
            if let Some(value) = value {
                writer.value(field, value);
            }
        }
        self.matches(writer.finish().view())
    }

    /// Removes from `rows` those for which the expression is not true.
    pub(super) fn narrow(&self, block: &Block, rows: &mut Bitmap) -> Result<()> {
        if let Some(expr) = self.expr.resolved()? {
            return Filter::of_expr(expr.expr().clone(), expr.globals()).narrow(block, rows);
        }
        if let Some((path, test)) = &self.twin
            && block.column(path.first()).is_none_or(|column| column.kind().is_some())
        {
            test.narrow(path, block, rows);
            return Ok(());
        }
        self.expr.narrow(block, rows)
    }
}

/// A field compared with a constant, on either side.
fn twin(operator: &Operator, arguments: &[Expr], collation: &Collation) -> Option<(Path, Test)> {
    let op = operator.comparison()?;
    let (path, value, op) = match arguments {
        [Expr::Field(Variable::Root, path), Expr::Constant(Some(value))] => (path, value, op),
        [Expr::Constant(Some(value)), Expr::Field(Variable::Root, path)] => (path, value, op.flipped()),
        _ => return None,
    };
    if path.is_empty() || matches!(value.view().kind(), Kind::Array | Kind::Undefined) {
        return None;
    }
    let path = Path::parse(&path.join(".")).ok()?;
    Some((path, Test::Whole(Compare::plain(op, value.clone(), collation))))
}

impl PartialEq for Condition {
    fn eq(&self, other: &Condition) -> bool {
        self.expr == other.expr
    }
}
