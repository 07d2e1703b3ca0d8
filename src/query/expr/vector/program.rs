//! Compiles an expression: steps in the order in which they are computed, each once, however often the expression has it.

use super::run::Run;
use crate::block::{Bitmap, Block, Column};
use crate::error::Result;
use crate::query::expr::bound::{BoundExpr, Columnwise};
use crate::query::expr::globals::Globals;
use crate::query::expr::operators::{Evaluation, Op, Operator};
use crate::query::expr::tree::{Expr, Variable};
use crate::value::OwnedValue;

/// A step. Numbers are those of the steps whose values it takes.
#[derive(Clone, PartialEq)]
pub enum ExprStep {
    /// `None` means missing.
    Constant(Option<OwnedValue>),
    /// A column of the block: its number in `Program::columns`.
    Column(usize),
    /// What a path reaches in a value.
    Path(usize, Vec<Box<str>>),
    Object(Vec<(Box<str>, usize)>),
    Array(Vec<usize>),
    Call(&'static Operator, Vec<usize>),
    /// The body of a `$let`, and its variables, which may fail whether or not the body reads them.
    Let(usize, Vec<usize>),
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
    if whole.fields().is_all() || matches!(whole.expr(), Expr::Constant(_)) {
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
        // Without variables around it, it can be evaluated by itself.
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
                    (Variable::Bound(hops), path) => (self.variable(*bound.iter().rev().nth(*hops)?)?, path),
                    _ => return None,
                };
                if path.is_empty() {
                    return Some(start);
                }
                let reads = self.reads(start);
                Some(self.push(ExprStep::Path(start, path.to_vec()), reads))
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
                let (variables, reads) = self.all(variables, bound)?;
                let outside = bound.len();
                bound.extend(&variables);
                let body = self.add(body, bound);
                bound.truncate(outside);
                let body = body?;
                let reads = reads.with(self.reads(body));
                Some(self.push(ExprStep::Let(body, variables), reads))
            }
            Expr::Call(operator, arguments) => {
                let is_known = matches!(operator.op, Op::And | Op::Or | Op::Cond | Op::IfNull | Op::Switch)
                    || operator.name() == "$dateToString"
                    || matches!(operator.run, Evaluation::Eager { .. });
                if !is_known {
                    return None;
                }
                let (arguments, reads) = self.all(arguments, bound)?;
                Some(self.push(ExprStep::Call(operator, arguments), reads))
            }
        }
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
    fn column(&self, block: &Block) -> Result<Column> {
        Run::over(self, block, |run| run.column())
    }

    fn narrow(&self, block: &Block, rows: &mut Bitmap) -> Result<()> {
        Run::over(self, block, |run| run.narrow(rows))
    }
}
