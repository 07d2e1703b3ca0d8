//! The tree of an expression.

use super::operators::{Op, Operator};
use crate::listed::IntoList;
use crate::value::{FieldSet, OwnedValue};

/// A parsed expression. `Expr::parse` builds it and evaluates constant parts.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// A value; `None` means missing.
    Constant(Option<OwnedValue>),
    /// A variable, or the value that a path reaches in it.
    Field(Variable, Vec<Box<str>>),
    /// An object whose fields are expressions. Fields without a value are left out.
    Object(Vec<(Box<str>, Expr)>),
    /// An array of expressions. Elements without a value are null.
    Array(Vec<Expr>),
    /// An operator with its arguments, in the order of its table entry.
    Call(&'static Operator, Vec<Expr>),
}

/// Where a path starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Variable {
    /// The document.
    Root,
    /// A variable bound by an operator; 0 is the innermost.
    Bound(usize),
    /// A variable of an enclosing pipeline, whose value comes with each row; 0 is the outermost.
    Outer(usize),
}

impl Expr {
    /// A missing value.
    pub const MISSING: Expr = Expr::Constant(None);

    /// Calls `visit` with this expression and everything in it.
    fn visit(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(self);
        match self {
            Expr::Constant(_) | Expr::Field(..) => {}
            Expr::Object(fields) => fields.iter().for_each(|(_, field)| field.visit(visit)),
            Expr::Array(items) | Expr::Call(_, items) => items.iter().for_each(|item| item.visit(visit)),
        }
    }

    /// True if it contains only constants and at least one operator around them.
    pub(super) fn is_constant_operation(&self) -> bool {
        let mut is_constant = !matches!(self, Expr::Constant(_));
        self.visit(&mut |expr| match expr {
            Expr::Field(..) => is_constant = false,
            Expr::Call(operator, _) if operator.op == Op::Rand => is_constant = false,
            _ => {}
        });
        is_constant
    }

    /// The top-level fields that it reads.
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

    /// True if its value differs from call to call.
    pub fn is_random(&self) -> bool {
        let mut is_random = false;
        self.visit(&mut |expr| is_random |= matches!(expr, Expr::Call(operator, _) if operator.op == Op::Rand));
        is_random
    }

    /// True if it may take long for a row that has little in it: it makes a range of numbers, or goes through elements for each element
    /// of another array.
    pub fn may_take_long(&self) -> bool {
        let (mut takes_long, mut loops) = (false, 0);
        self.visit(&mut |expr| {
            let Expr::Call(operator, arguments) = expr else { return };
            match operator.op {
                Op::Map | Op::Filter | Op::Reduce => {
                    loops += 1;
                    // Constants may be the range of numbers that was written.
                    takes_long |= loops > 1 || !matches!(arguments.first(), Some(Expr::Field(Variable::Root, _)));
                }
                _ => takes_long |= operator.name() == "$range",
            }
        });
        takes_long
    }

    /// True if it reads a variable of an enclosing pipeline.
    pub fn reads_outer(&self) -> bool {
        let mut reads_outer = false;
        self.visit(&mut |expr| reads_outer |= matches!(expr, Expr::Field(Variable::Outer(_), _)));
        reads_outer
    }

    /// If it makes an array: an expression for an object whose fields are the elements, in their order; and true if the elements
    /// are pairs that `$objectToArray` makes of these fields, false if they are the values.
    pub fn fields_in_place_of_elements(&self) -> Option<(Expr, bool)> {
        match self {
            Expr::Call(operator, arguments) if operator.name() == "$objectToArray" => {
                Some((arguments.first()?.clone(), true))
            }
            Expr::Array(items) => {
                // An element is null where a field has no value.
                let or_null = Operator::named("$ifNull").ok()?;
                let element = |item: &Expr| match item {
                    Expr::Object(_) => item.clone(),
                    _ => Expr::Call(or_null, vec![item.clone(), Expr::Constant(Some(OwnedValue::null()))]),
                };
                let fields = items.iter().enumerate().map(|(at, item)| (at.to_string().into(), element(item)));
                Some((Expr::Object(fields.listed()), false))
            }
            _ => None,
        }
    }

    /// The same expression with every path into the document starting at `root`.
    pub fn with_root(mut self, root: &str) -> Expr {
        self.rename(root);
        self
    }

    /// The same expression with other expressions in place of the paths into the document; `None` if one has none.
    pub fn translated(&self, translate: &dyn Fn(&[Box<str>]) -> Option<Expr>) -> Option<Expr> {
        let each = |items: &[Expr]| items.iter().map(|item| item.translated(translate)).listed_if_all();
        Some(match self {
            Expr::Field(Variable::Root, path) => translate(path)?,
            Expr::Constant(_) | Expr::Field(..) => self.clone(),
            Expr::Object(fields) => {
                let fields = fields.iter().map(|(name, field)| Some((name.clone(), field.translated(translate)?)));
                Expr::Object(fields.listed_if_all()?)
            }
            Expr::Array(items) => Expr::Array(each(items)?),
            Expr::Call(operator, items) => Expr::Call(operator, each(items)?),
        })
    }

    /// Makes fields of the variables around it, besides `inside` others: the innermost one becomes the field `name_of(0)`.
    pub(super) fn make_fields(&mut self, inside: usize, name_of: &mut dyn FnMut(usize) -> String) {
        match self {
            Expr::Constant(_) => {}
            Expr::Field(from, path) => {
                if let Variable::Bound(hops) = *from
                    && hops >= inside
                {
                    path.insert(0, name_of(hops - inside).into());
                    *from = Variable::Root;
                }
            }
            Expr::Object(fields) => fields.iter_mut().for_each(|(_, field)| field.make_fields(inside, name_of)),
            Expr::Array(items) => items.iter_mut().for_each(|item| item.make_fields(inside, name_of)),
            Expr::Call(operator, items) => {
                let last = items.len().saturating_sub(1);
                for (at, item) in items.iter_mut().enumerate() {
                    let bound = match operator.op {
                        Op::Map | Op::Filter => usize::from(at == 1),
                        Op::Reduce if at == last => 2,
                        Op::Let if at == last => last,
                        _ => 0,
                    };
                    item.make_fields(inside + bound, name_of);
                }
            }
        }
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
