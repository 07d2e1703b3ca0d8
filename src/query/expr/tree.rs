//! The tree of an expression.

use super::operators::{Op, Operator};
use crate::value::{FieldSet, OwnedValue};

/// An expression, parsed. Built by `Expr::parse`, which folds what is constant.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A value; `None` is the lack of one.
    Constant(Option<OwnedValue>),
    /// A variable, or what a path reaches in it.
    Field(Variable, Vec<Box<str>>),
    /// An object whose fields are expressions; fields without a value are left out.
    Object(Vec<(Box<str>, Expr)>),
    /// An array of expressions; elements without a value are null.
    Array(Vec<Expr>),
    /// An operator and its arguments, in the order of its table entry.
    Call(&'static Operator, Vec<Expr>),
}

/// Where a path begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// The document.
    Root,
    /// A variable that an operator has bound: the innermost is 0.
    Bound(usize),
    /// A variable of a pipeline around, whose value comes with each row of that: the outermost is 0.
    Outer(usize),
}

impl Expr {
    /// The lack of a value.
    pub const MISSING: Expr = Expr::Constant(None);

    /// Shows this expression and everything in it to `visit`.
    fn visit(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(self);
        match self {
            Expr::Constant(_) | Expr::Field(..) => {}
            Expr::Object(fields) => fields.iter().for_each(|(_, field)| field.visit(visit)),
            Expr::Array(items) | Expr::Call(_, items) => items.iter().for_each(|item| item.visit(visit)),
        }
    }

    /// True where nothing but constants stands in it, and at least an operator around them.
    pub(super) fn is_foldable(&self) -> bool {
        let mut foldable = !matches!(self, Expr::Constant(_));
        self.visit(&mut |expr| match expr {
            Expr::Field(..) => foldable = false,
            Expr::Call(operator, _) if operator.op == Op::Rand => foldable = false,
            _ => {}
        });
        foldable
    }

    /// The top-level fields of the document that it reads.
    pub fn fields(&self) -> FieldSet {
        let mut fields = FieldSet::none();
        self.visit(&mut |expr| {
            if let Expr::Field(Variable::Root, path) = expr {
                match path.first() {
                    Some(name) => fields.add(name),
                    None => fields = FieldSet::All,
                }
            }
        });
        fields
    }

    /// True where its value differs from call to call.
    pub fn is_random(&self) -> bool {
        let mut is_random = false;
        self.visit(&mut |expr| is_random |= matches!(expr, Expr::Call(operator, _) if operator.op == Op::Rand));
        is_random
    }

    /// True where it reads a variable of a pipeline around.
    pub fn reads_outer(&self) -> bool {
        let mut reads_outer = false;
        self.visit(&mut |expr| reads_outer |= matches!(expr, Expr::Field(Variable::Outer(_), _)));
        reads_outer
    }

    /// The same with every path into the document beginning at `root` instead.
    pub fn with_root(mut self, root: &str) -> Expr {
        self.rename(root);
        self
    }

    fn rename(&mut self, root: &str) {
        match self {
            Expr::Constant(_) => {}
            Expr::Field(from, path) => {
                if let (Variable::Root, Some(first)) = (from, path.first_mut()) {
                    *first = root.into();
                }
            }
            Expr::Object(fields) => fields.iter_mut().for_each(|(_, field)| field.rename(root)),
            Expr::Array(items) | Expr::Call(_, items) => items.iter_mut().for_each(|item| item.rename(root)),
        }
    }
}
