//! Compiles an expression: steps in the order in which they are computed, each once, however often the expression has it.

use super::elements::{EachElement, ElementsUse};
use super::run::Run;
use super::specific::{self, Specific};
use crate::block::{Bitmap, Block, Column};
use crate::error::Result;
use crate::listed::IntoList;
use crate::query::expr::bound::{BoundExpr, Columnwise};
use crate::query::expr::convert::simple_of;
use crate::query::expr::date::part_of;
use crate::query::expr::globals::Globals;
use crate::query::expr::operators::{Evaluation, Op, Operator};
use crate::query::expr::tree::{Expr, Variable};
use crate::value::{Number, OwnedValue};

/// With more elements or steps than this, arrays that an expression makes are made.
const MADE_ITEMS_MAX: usize = 16;
const MADE_STEPS_MAX: usize = 256;

/// A step. Numbers are those of the steps whose values it takes.
#[derive(PartialEq)]
pub enum ExprStep {
    /// `None` means missing.
    Constant(Option<OwnedValue>),
    /// A column of the block: its number in `Program::columns`.
    Column(usize),
    /// Whole rows.
    Root,
    /// What a path reaches in a value.
    Path(usize, Vec<Box<str>>),
    Object(Vec<(Box<str>, usize)>),
    Array(Vec<usize>),
    Call(&'static Operator, Vec<usize>),
    /// A value, and others that may fail whether or not it reads them, such as the variables of a `$let`.
    Checked(usize, Vec<usize>),
    /// The same value; rows where it is null or missing are left out.
    NotNull(usize),
    /// The same value, which becomes null where it is missing, as in an array.
    OrNull(usize),
    /// What is computed of a value, and the same for values of other types.
    Specific(usize, Box<Specific>, usize),
    /// `$map`, `$filter` or `$reduce` of arrays, the value with which that begins, and the variables from outside that it reads.
    Elements(usize, Vec<usize>, Box<EachElement>),
    /// An expression that is evaluated row by row: what has arrays to go through, asks the host, or is random.
    Single(Box<BoundExpr>),
}

/// What a step reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reads {
    /// Nothing: all rows have the same value.
    Nothing,
    /// This column alone.
    One(usize),
    /// Several columns, or chance.
    More,
}

impl Reads {
    fn with(self, other: Reads) -> Reads {
        match (self, other) {
            (Reads::Nothing, reads) | (reads, Reads::Nothing) => reads,
            (Reads::One(a), Reads::One(b)) if a == b => self,
            _ => Reads::More,
        }
    }
}

/// A compiled expression.
pub struct Program {
    pub steps: Vec<(ExprStep, Reads)>,
    /// The names of the columns that it reads.
    pub columns: Vec<Box<str>>,
    pub globals: Globals,
    /// The step that gives the result.
    pub result: usize,
    /// The expression, for rows that are left out.
    pub whole: BoundExpr,
}

/// Compiles an expression. False if it gains nothing from columns, or if the second half of the module is not loaded.
#[inline(never)]
pub fn compile_if_loaded(whole: &BoundExpr, compiled: &mut Option<Box<dyn Columnwise>>) -> bool {
    if matches!(whole.expr(), Expr::Constant(_)) {
        return false;
    }
    let mut compiler = Compiler { steps: Vec::new(), columns: Vec::new(), globals: whole.globals() };
    let Some(result) = compiler.add(whole.expr(), &mut Vec::new()) else { return false };
    // By itself, it gains if rows are alike.
    if whole.is_random() && matches!(compiler.steps.get(result), Some((ExprStep::Single(_), _))) {
        return false;
    }
    let Compiler { steps, columns, .. } = compiler;
    let (globals, whole) = (whole.globals().clone(), whole.uncompiled());
    *compiled = Some(Box::new(Program { steps, columns, globals, result, whole }));
    true
}

struct Compiler<'g> {
    steps: Vec<(ExprStep, Reads)>,
    columns: Vec<Box<str>>,
    globals: &'g Globals,
}

impl Compiler<'_> {
    /// The number of the step that computes `expr`; `bound` has those of the variables around it. `None` if it cannot be
    /// computed without them row by row.
    fn add(&mut self, expr: &Expr, bound: &mut Vec<usize>) -> Option<usize> {
        if let Some(step) = self.compiled(expr, bound) {
            return Some(step);
        }
        self.single(expr, bound)
    }

    /// The step that evaluates `expr` row by row. `None` with variables around it.
    fn single(&mut self, expr: &Expr, bound: &[usize]) -> Option<usize> {
        if !bound.is_empty() {
            return None;
        }
        let single = BoundExpr::new(expr.clone(), self.globals.clone());
        let reads = match single.fields().names() {
            _ if single.fields().is_all() || single.is_random() => Reads::More,
            [] => Reads::Nothing,
            [name] => Reads::One(self.column(name)),
            _ => Reads::More,
        };
        Some(self.push(ExprStep::Single(Box::new(single)), reads))
    }

    fn compiled(&mut self, expr: &Expr, bound: &mut Vec<usize>) -> Option<usize> {
        match expr {
            Expr::Constant(value) => Some(self.push(ExprStep::Constant(value.clone()), Reads::Nothing)),
            Expr::Field(variable, path) => {
                let (start, path) = match (variable, path.as_slice()) {
                    (Variable::Root, [name, below @ ..]) => {
                        let column = self.column(name);
                        (self.push(ExprStep::Column(column), Reads::One(column)), below)
                    }
                    (Variable::Root, path) => (self.push(ExprStep::Root, Reads::More), path),
                    (Variable::Bound(hops), path) => (self.variable(*bound.iter().rev().nth(*hops)?)?, path),
                    _ => return None,
                };
                Some(self.below(start, path))
            }
            Expr::Object(fields) => {
                let mut steps = Vec::with_capacity(fields.len());
                for (name, field) in fields {
                    steps.push((name.clone(), self.add(field, bound)?));
                }
                let reads = steps.iter().fold(Reads::Nothing, |reads, (_, step)| reads.with(self.reads(*step)));
                Some(self.push(ExprStep::Object(steps), reads))
            }
            Expr::Array(items) => {
                let (items, reads) = self.all(items, bound)?;
                Some(self.push(ExprStep::Array(items), reads))
            }
            Expr::Call(operator, arguments) if operator.op == Op::Let => {
                let (body, variables) = arguments.split_last()?;
                let (variables, _) = self.all(variables, bound)?;
                let outside = bound.len();
                bound.extend(&variables);
                let body = self.add(body, bound);
                bound.truncate(outside);
                Some(self.checked(body?, &variables))
            }
            Expr::Call(operator, arguments) => {
                if let (Some((operator, asks_null)), [input, ..]) =
                    (simple_of(operator, arguments), arguments.as_slice())
                {
                    let mut input = self.add(input, bound)?;
                    let reads = self.reads(input);
                    if asks_null {
                        input = self.push(ExprStep::NotNull(input), reads);
                    }
                    return Some(self.push(ExprStep::Call(operator, vec![input]), reads));
                }
                if let Some((what, input, leaves_null)) = specific::of_call(operator, arguments) {
                    let mut input = self.add(input, bound)?;
                    let others = if matches!(operator.run, Evaluation::Eager { .. }) {
                        let (steps, reads) = self.all(arguments, bound)?;
                        self.push(ExprStep::Call(operator, steps), reads)
                    } else {
                        self.elements(operator, arguments, bound).or_else(|| self.single(expr, bound))?
                    };
                    let reads = self.reads(input);
                    if leaves_null {
                        input = self.push(ExprStep::NotNull(input), reads);
                    }
                    return Some(self.push(ExprStep::Specific(input, Box::new(what), others), reads));
                }
                if let Some(step) = self.among_made(operator, arguments, bound) {
                    return Some(step);
                }
                if let Some(step) = self.over_made(operator, arguments, bound) {
                    return Some(step);
                }
                let is_known = matches!(operator.op, Op::And | Op::Or | Op::Cond | Op::IfNull | Op::Switch)
                    || operator.name() == "$dateToString"
                    || matches!(operator.run, Evaluation::Eager { .. });
                if !is_known {
                    return self.elements(operator, arguments, bound);
                }
                let (steps, reads) = self.all(arguments, bound)?;
                let field = match (operator.op, arguments.as_slice(), steps.as_slice()) {
                    (Op::GetField, [Expr::Constant(Some(name)), _], [_, object]) => {
                        name.view().as_str().and_then(|name| self.field(*object, name, false))
                    }
                    _ => None,
                };
                field.or_else(|| Some(self.push(ExprStep::Call(operator, steps), reads)))
            }
        }
    }

    /// The step of `$in` an array that the expression makes: comparisons with each element.
    fn among_made(&mut self, operator: &Operator, arguments: &[Expr], bound: &mut Vec<usize>) -> Option<usize> {
        let ("$in", [wanted, Expr::Array(items)]) = (operator.name(), arguments) else { return None };
        if items.len() > MADE_ITEMS_MAX {
            return None;
        }
        let (equal, any) = (Operator::named("$eq").ok()?, Operator::named("$or").ok()?);
        let wanted = self.add(wanted, bound)?;
        let (mut items, reads) = self.all(items, bound)?;
        let reads = reads.with(self.reads(wanted));
        let mut tests = Vec::with_capacity(items.len());
        for item in &items {
            let element = self.push(ExprStep::OrNull(*item), self.reads(*item));
            let reads = self.reads(element).with(self.reads(wanted));
            tests.push(self.push(ExprStep::Call(equal, vec![wanted, element]), reads));
        }
        items.push(wanted);
        let found = self.push(ExprStep::Call(any, tests), reads);
        Some(self.checked(found, &items))
    }

    /// The step of an operator over the elements of an array that the expression makes, so that the array need not be made.
    fn over_made(&mut self, operator: &'static Operator, arguments: &[Expr], bound: &mut Vec<usize>) -> Option<usize> {
        let (name, (array, others)) = (operator.name(), arguments.split_first()?);
        let is_one = |name: &str| ["$arrayElemAt", "$map", "$reduce"].contains(&name);
        if name == "$arrayToObject" {
            return self.object_of_pairs(array, bound);
        }
        let is_total = others.is_empty() && ["$avg", "$max", "$min", "$sum"].contains(&name);
        if !is_total && !is_one(name) || matches!(array, Expr::Field(..) | Expr::Constant(_)) {
            return None;
        }
        let array = self.add(array, bound)?;
        let Some((ExprStep::Array(items), reads)) = self.steps.get(array) else { return None };
        let (items, reads) = (items.clone(), *reads);
        if items.len() > MADE_ITEMS_MAX || self.steps.len() > MADE_STEPS_MAX {
            return None;
        }
        // A single one would be taken for the array itself.
        if is_total && items.len() > 1 {
            return Some(self.push(ExprStep::Call(operator, items), reads));
        }
        let elements: Vec<usize> = items.iter().map(|item| self.push(ExprStep::OrNull(*item), reads)).listed();
        let outside = bound.len();
        match others {
            [Expr::Constant(Some(place))] if name == "$arrayElemAt" => {
                let place = i32::try_from(Number::of(place.view())?.whole()?).ok()?;
                let from = if place < 0 { elements.len() } else { 0 };
                let element = elements.get(from.checked_add_signed(place as isize)?)?;
                Some(self.checked(*element, &items))
            }
            [body] if name == "$map" => {
                let mut made = Vec::with_capacity(elements.len());
                for element in elements {
                    bound.push(element);
                    let mapped = self.add(body, bound);
                    bound.truncate(outside);
                    made.push(mapped?);
                }
                let reads = made.iter().fold(reads, |reads, step| reads.with(self.reads(*step)));
                let made = self.push(ExprStep::Array(made), reads);
                Some(self.checked(made, &items))
            }
            [initial, body] if name == "$reduce" => {
                let mut value = self.add(initial, bound)?;
                let mut failing = items;
                for element in elements {
                    failing.push(value);
                    bound.extend([value, element]);
                    let next = self.add(body, bound);
                    bound.truncate(outside);
                    value = next?;
                }
                Some(self.checked(value, &failing))
            }
            _ => None,
        }
    }

    /// The step of the object that `$arrayToObject` makes of pairs of a constant name and a value.
    fn object_of_pairs(&mut self, array: &Expr, bound: &mut Vec<usize>) -> Option<usize> {
        let Expr::Array(pairs) = array else { return None };
        let (mut fields, mut reads) = (Vec::<(Box<str>, usize)>::new(), Reads::Nothing);
        for pair in pairs {
            let Expr::Array(pair) = pair else { return None };
            let [Expr::Constant(Some(name)), value] = pair.as_slice() else { return None };
            let name = name.view().as_str().filter(|name| !name.contains('\0'))?;
            if fields.iter().any(|(known, _)| **known == *name) {
                return None;
            }
            let value = self.add(value, bound)?;
            reads = reads.with(self.reads(value));
            fields.push((name.into(), self.push(ExprStep::OrNull(value), self.reads(value))));
        }
        Some(self.push(ExprStep::Object(fields), reads))
    }

    /// The step of an operator that goes through the elements of arrays.
    fn elements(&mut self, operator: &Operator, arguments: &[Expr], bound: &mut Vec<usize>) -> Option<usize> {
        let (what, (input, initial, body)) = match (operator.op, arguments) {
            (Op::Map, [input, body]) => (ElementsUse::Map, (input, None, body)),
            (Op::Filter, [input, body, Expr::MISSING]) => (ElementsUse::Filter, (input, None, body)),
            (Op::Reduce, [input, initial, body]) => (ElementsUse::Reduce, (input, Some(initial), body)),
            _ => return None,
        };
        let each = EachElement::new(what, body, self.globals)?;
        let input = self.add(input, bound)?;
        let mut outer = Vec::new();
        if let Some(initial) = initial {
            outer.push(self.add(initial, bound)?);
        }
        for between in &each.outside {
            outer.push(*bound.iter().rev().nth(*between)?);
        }
        let reads = outer.iter().fold(self.reads(input), |reads, step| reads.with(self.reads(*step)));
        let reads = if each.fields.is_empty() { reads } else { Reads::More };
        Some(self.push(ExprStep::Elements(input, outer, Box::new(each)), reads))
    }

    fn all(&mut self, exprs: &[Expr], bound: &mut Vec<usize>) -> Option<(Vec<usize>, Reads)> {
        let mut steps = Vec::with_capacity(exprs.len());
        let mut reads = Reads::Nothing;
        for expr in exprs {
            let step = self.add(expr, bound)?;
            reads = reads.with(self.reads(step));
            steps.push(step);
        }
        Some((steps, reads))
    }

    /// The step of what a path reaches in the value of a step.
    fn below(&mut self, start: usize, path: &[Box<str>]) -> usize {
        let Some((name, rest)) = path.split_first() else { return start };
        if let Some(field) = self.field(start, name, true) {
            return self.below(field, rest);
        }
        let reads = self.reads(start);
        self.push(ExprStep::Path(start, path.to_vec()), reads)
    }

    /// The step of a field of an object that the expression makes, so that the object need not be made. `None` if it is not known
    /// to have the field. `by_path`: where the object is null, the field is missing, and not null.
    fn field(&mut self, object: usize, name: &str, by_path: bool) -> Option<usize> {
        let (step, reads) = self.steps.get(object)?;
        let (field, others) = match step {
            ExprStep::Object(fields) => {
                let mut found = fields.iter().filter(|(known, _)| **known == *name).map(|(_, step)| *step);
                // Of two fields with one name, the first that has a value is read.
                let (Some(field), None) = (found.next(), found.next()) else { return None };
                let all: Vec<usize> = fields.iter().map(|(_, step)| *step).listed();
                (self.variable(field)?, all)
            }
            ExprStep::Checked(body, others) => {
                let (body, others) = (*body, others.clone());
                (self.field(body, name, by_path)?, others)
            }
            ExprStep::Call(operator, arguments) => {
                let (&[date, zone, by_week], reads) = (arguments.as_slice(), *reads) else { return None };
                let Some((ExprStep::Constant(by_week), _)) = self.steps.get(by_week) else { return None };
                let by_week = by_week.as_ref().map_or(Some(false), |given| given.view().as_bool())?;
                let part = ExprStep::Call(part_of(operator, by_week, name)?, vec![date, zone]);
                let part = self.push(part, reads);
                return Some(if by_path { self.push(ExprStep::NotNull(part), reads) } else { part });
            }
            _ => return None,
        };
        Some(self.checked(field, &others))
    }

    /// The step `body`, which is left out where one of `others` fails as well.
    fn checked(&mut self, body: usize, others: &[usize]) -> usize {
        let (mut own, mut failing) = (Vec::new(), Vec::new());
        self.failing(body, &mut own);
        others.iter().for_each(|step| self.failing(*step, &mut failing));
        failing.retain(|step| !own.contains(step));
        if failing.is_empty() {
            return body;
        }
        let reads = failing.iter().fold(self.reads(body), |reads, step| reads.with(self.reads(*step)));
        self.push(ExprStep::Checked(body, failing), reads)
    }

    /// Adds steps that are left out wherever this one fails.
    fn failing(&mut self, step: usize, to: &mut Vec<usize>) {
        let inner = match self.steps.get(step) {
            Some((ExprStep::Path(start, _) | ExprStep::NotNull(start) | ExprStep::OrNull(start), _)) => vec![*start],
            Some((ExprStep::Object(fields), _)) => fields.iter().map(|(_, field)| *field).listed(),
            Some((ExprStep::Array(items), _)) => items.clone(),
            Some((ExprStep::Checked(body, others), _)) => [others.as_slice(), &[*body]].concat(),
            Some((ExprStep::Call(..), _)) => {
                // Fields of dates fail where all of them do.
                let step = self.field(step, "hour", false).unwrap_or(step);
                return to.push(step);
            }
            Some((ExprStep::Single(_) | ExprStep::Elements(..) | ExprStep::Specific(..), _)) => {
                return to.push(step);
            }
            Some((ExprStep::Constant(_) | ExprStep::Column(_) | ExprStep::Root, _)) | None => return,
        };
        inner.into_iter().for_each(|step| self.failing(step, to));
    }

    /// The step of a variable; `None` for one that is missing as a constant, which operators take for an omitted argument.
    fn variable(&self, step: usize) -> Option<usize> {
        self.steps.get(step).is_some_and(|(step, _)| *step != ExprStep::Constant(None)).then_some(step)
    }

    fn reads(&self, step: usize) -> Reads {
        self.steps.get(step).map_or(Reads::More, |(_, reads)| *reads)
    }

    fn column(&mut self, name: &str) -> usize {
        self.columns.iter().position(|known| **known == *name).unwrap_or_else(|| {
            self.columns.push(name.into());
            self.columns.len() - 1
        })
    }

    /// The number of a step, which is added unless it is known.
    fn push(&mut self, step: ExprStep, reads: Reads) -> usize {
        let known = match &step {
            // Chance gives other values each time.
            ExprStep::Single(_) if reads == Reads::More => None,
            _ => self.steps.iter().position(|(known, _)| *known == step),
        };
        known.unwrap_or_else(|| {
            self.steps.push((step, reads));
            self.steps.len() - 1
        })
    }
}

impl Columnwise for Program {
    fn column(&self, block: &Block, keeps_null: bool) -> Result<Column> {
        Run::over(self, block, |run| run.column(keeps_null))
    }

    fn narrow(&self, block: &Block, rows: &mut Bitmap) -> Result<()> {
        Run::over(self, block, |run| run.narrow(rows))
    }
}
