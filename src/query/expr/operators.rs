//! The table of operators: their names, their arguments and their functions.

use std::fmt;

use super::arguments::{Want, Want::*};
use super::compare::CompareOp;
use super::datum::Datum;
use super::evaluate::Scope;
use super::globals::Globals;
use super::tree::Expr;
use super::{
    arithmetic, array, compare, control, convert, date, math, objects, patterns, quantiles, rounding, sets, string,
    types,
};
use crate::error::{Error, ErrorCode, ErrorCode::*, Result};
use crate::value::{Collation, Value};

/// An operator as a number, because comparing names takes far more code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Op {
    Eq,
    Ne,
    Gt,
    Gte,
    Lt,
    Lte,
    Cmp,
    And,
    Or,
    Not,
    Cond,
    IfNull,
    Switch,
    Let,
    Rand,
    Add,
    Multiply,
    Subtract,
    Divide,
    Mod,
    Abs,
    Ceil,
    Floor,
    Sqrt,
    Trunc,
    Round,
    IsArray,
    Size,
    In,
    ArrayElemAt,
    First,
    Last,
    ConcatArrays,
    Map,
    Filter,
    Reduce,
    Concat,
    StrLenBytes,
    StrLenCP,
    IndexOfCP,
    Type,
    IsNumber,
    GetField,
    Year,
    Month,
    DayOfMonth,
    DayOfYear,
    DayOfWeek,
    Week,
    IsoWeek,
    IsoWeekYear,
    IsoDayOfWeek,
    Hour,
    Minute,
    Second,
    Millisecond,
    DateTrunc,
    DateDiff,
    DateAdd,
    DateSubtract,
    /// The boundary below a value.
    Bucket,
    /// Any other operator.
    More,
}

/// An operator of expressions.
pub struct Operator {
    pub(super) op: Op,
    name: &'static str,
    pub(super) syntax: Syntax,
    pub(super) run: Evaluation,
    /// The same for a single double, if the result is always a double; `None` for numbers that it does not accept. Of an
    /// integer, it is the function of the nearest double.
    pub(super) of_double: Option<fn(f64) -> Option<f64>>,
}

/// How the arguments of an operator are written.
pub(super) enum Syntax {
    /// In an array, or a single one without an array: minimum and maximum number.
    Positional(usize, usize),
    /// In an object.
    Named(&'static Names),
    /// The syntax of `$let`.
    Let,
    /// The syntax of `$switch`.
    Switch,
}

/// Arguments in an object.
pub(super) struct Names {
    /// Their names, in the order in which they are passed on.
    pub names: &'static [&'static str],
    /// How many of them are required.
    pub required: usize,
    /// How many may be given in an array instead, or a single one alone; 0 for none.
    pub positional: usize,
    /// The variables with which the last required argument is evaluated.
    pub binds: Binds,
    /// Codes: for a value that is not an object, for an unknown argument, and for each missing one. The last code also
    /// applies to further ones.
    pub codes: &'static [ErrorCode],
}

/// The variables that an operator binds.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Binds {
    Nothing,
    /// An element, named by `as`, or else `this`.
    Element,
    /// `value` and `this`.
    ValueAndThis,
}

/// A function of the argument values, and of the operator to tell siblings apart.
pub(super) type Eager = fn(&Operator, &[Option<Value<'_>>]) -> Result<Datum<'static>>;
/// The same with the collation.
type Comparing = fn(&Operator, &[Option<Value<'_>>], &Collation) -> Result<Datum<'static>>;
/// The same with globals.
pub(super) type Asking = fn(&Operator, &[Option<Value<'_>>], &Globals) -> Result<Datum<'static>>;
/// A function that evaluates its arguments itself.
type Lazy = for<'s> fn(&'s [Expr], &Scope<'s>) -> Result<Datum<'s>>;

/// The function of an operator on argument values.
pub(super) enum Function {
    Plain(Eager),
    Comparing(Comparing),
    Asking(Asking),
}

/// What a null argument does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Nulls {
    /// It is a value like others.
    Values,
    /// Any null gives null.
    Any,
    /// The first argument gives null, if it is null.
    First,
    /// A null gives null, unless an argument before it is wrong.
    InTurn,
}

impl Nulls {
    const fn any(nulls: bool) -> Nulls {
        if nulls { Nulls::Any } else { Nulls::Values }
    }
}

/// How an operator is evaluated.
pub(super) enum Evaluation {
    Eager {
        /// What the arguments must be, with the error code otherwise. The last entry also applies to further arguments.
        wants: &'static [(Want, ErrorCode)],
        nulls: Nulls,
        run: Function,
    },
    Lazy(Lazy),
}

impl Operator {
    /// The name, with its `$`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// True if this argument is optional and has a name: a constant that is missing then stands for an omitted one.
    pub(super) fn may_omit(&self, at: usize) -> bool {
        matches!(&self.syntax, Syntax::Named(names) if at >= names.required)
    }

    /// The comparison, if the operator is one.
    pub fn comparison(&self) -> Option<CompareOp> {
        Some(match self.op {
            Op::Eq => CompareOp::Eq,
            Op::Gt => CompareOp::Gt,
            Op::Gte => CompareOp::Gte,
            Op::Lt => CompareOp::Lt,
            Op::Lte => CompareOp::Lte,
            _ => return None,
        })
    }

    /// The operator with this name.
    ///
    /// Errors: 168 for an unknown one.
    pub(super) fn named(name: &str) -> Result<&'static Operator> {
        let known = OPERATORS.iter().find(|operator| operator.name == name).or_else(|| operator_if_loaded(name));
        known.ok_or_else(|| Error::new(InvalidPipelineOperator, format!("Unrecognized expression '{name}'")))
    }
}

/// The operator with this name in the second half of the module, if that is loaded. Before it is loaded, parsing
/// reports the operator as unknown, and `bindings` runs the command again with both halves.
// Loaded later.
#[inline(never)]
fn operator_if_loaded(name: &str) -> Option<&'static Operator> {
    tables().iter().find_map(|table| table.iter().find(|operator| operator.name() == name))
}

/// The names of all operators.
#[cfg(test)]
pub(super) fn names_of_all() -> Vec<&'static str> {
    OPERATORS.iter().chain(tables().into_iter().flatten()).map(Operator::name).collect()
}

#[inline(always)]
fn tables() -> [&'static [Operator]; 12] {
    let [units, parts, texts] = date::TABLES;
    [
        string::TABLE,
        array::TABLE,
        objects::TABLE,
        sets::TABLE,
        math::TABLE,
        rounding::TABLE,
        units,
        parts,
        texts,
        convert::TABLE,
        patterns::TABLE,
        quantiles::TABLE,
    ]
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Operator {
    fn eq(&self, other: &Operator) -> bool {
        std::ptr::eq(self, other)
    }
}

/// What the arguments must be.
pub(super) type Wants = &'static [(Want, ErrorCode)];

pub(super) const fn operator(
    op: Op,
    name: &'static str,
    syntax: Syntax,
    wants: Wants,
    nulls: bool,
    run: Eager,
) -> Operator {
    Operator {
        op,
        name,
        syntax,
        run: Evaluation::Eager { wants, nulls: Nulls::any(nulls), run: Function::Plain(run) },
        of_double: None,
    }
}

/// With as many arguments as `wants` has.
pub(super) const fn plain(op: Op, name: &'static str, wants: Wants, run: Eager) -> Operator {
    operator(op, name, Syntax::Positional(wants.len(), wants.len()), wants, false, run)
}

/// The same with the collation.
pub(super) const fn comparing(op: Op, name: &'static str, wants: Wants, run: Comparing) -> Operator {
    let run = Evaluation::Eager { wants, nulls: Nulls::Values, run: Function::Comparing(run) };
    Operator { op, name, syntax: Syntax::Positional(2, 2), run, of_double: None }
}

/// The same with arguments written as in `syntax`.
pub(super) const fn comparing_as(
    op: Op,
    name: &'static str,
    syntax: Syntax,
    wants: Wants,
    nulls: bool,
    run: Comparing,
) -> Operator {
    Operator {
        op,
        name,
        syntax,
        run: Evaluation::Eager { wants, nulls: Nulls::any(nulls), run: Function::Comparing(run) },
        of_double: None,
    }
}

/// With arguments in an object, null in giving null, and globals.
pub(super) const fn asking(op: Op, name: &'static str, names: &'static Names, wants: Wants, run: Asking) -> Operator {
    let run = Evaluation::Eager { wants, nulls: Nulls::Any, run: Function::Asking(run) };
    Operator { op, name, syntax: Syntax::Named(names), run, of_double: None }
}

/// With as many arguments as `wants` has, and globals.
pub(super) const fn asking_of(op: Op, name: &'static str, wants: Wants, run: Asking) -> Operator {
    let run = Evaluation::Eager { wants, nulls: Nulls::Values, run: Function::Asking(run) };
    Operator { op, name, syntax: Syntax::Positional(wants.len(), wants.len()), run, of_double: None }
}

/// The same with one argument, null giving null.
pub(super) const fn asking_of_one(op: Op, name: &'static str, run: Asking) -> Operator {
    let run = Evaluation::Eager { wants: ANY, nulls: Nulls::Any, run: Function::Asking(run) };
    Operator { op, name, syntax: Syntax::Positional(1, 1), run, of_double: None }
}

/// As `plain`, with null giving null.
pub(super) const fn null_in(op: Op, name: &'static str, wants: Wants, run: Eager) -> Operator {
    operator(op, name, Syntax::Positional(wants.len(), wants.len()), wants, true, run)
}

/// With any number of arguments, which are checked in turn until one is null, which gives null.
pub(super) const fn variadic(op: Op, name: &'static str, wants: Wants, run: Eager) -> Operator {
    with_nulls(Nulls::InTurn, operator(op, name, Syntax::Positional(0, MANY), wants, true, run))
}

pub(super) const fn named(op: Op, name: &'static str, names: &'static Names, wants: Wants, run: Eager) -> Operator {
    operator(op, name, Syntax::Named(names), wants, true, run)
}

pub(super) const fn lazy(op: Op, name: &'static str, syntax: Syntax, run: Lazy) -> Operator {
    Operator { op, name, syntax, run: Evaluation::Lazy(run), of_double: None }
}

/// An operator for which a null argument does something else.
pub(super) const fn with_nulls(nulls: Nulls, operator: Operator) -> Operator {
    let run = match operator.run {
        Evaluation::Eager { wants, run, .. } => Evaluation::Eager { wants, nulls, run },
        Evaluation::Lazy(run) => Evaluation::Lazy(run),
    };
    Operator { run, ..operator }
}

/// An operator together with its function of a single double.
pub(super) const fn with_doubles(operator: Operator, of_double: fn(f64) -> Option<f64>) -> Operator {
    Operator { of_double: Some(of_double), ..operator }
}

pub(super) const MANY: usize = usize::MAX;
pub(super) const ANY: Wants = &[(Any, InternalError)];
pub(super) const TWO: Wants = &[(Any, InternalError), (Any, InternalError)];
pub(super) const NUMBER: Wants = &[(Numeric, Location28765)];
const ELEMENTS: Wants = &[(Array, Location28689)];

pub(super) const fn names(
    names: &'static [&'static str],
    required: usize,
    positional: usize,
    binds: Binds,
    codes: &'static [ErrorCode],
) -> Names {
    Names { names, required, positional, binds, codes }
}

static COND: Names =
    names(&["if", "then", "else"], 3, 3, Binds::Nothing, &[Location16020, Location17083, Location17080]);
static GET_FIELD: Names =
    names(&["field", "input"], 1, 1, Binds::Nothing, &[Location3041701, Location3041701, Location3041702]);
static OPERATORS: &[Operator] = &[
    comparing(Op::Eq, "$eq", TWO, compare::compare),
    comparing(Op::Ne, "$ne", TWO, compare::compare),
    comparing(Op::Gt, "$gt", TWO, compare::compare),
    comparing(Op::Gte, "$gte", TWO, compare::compare),
    comparing(Op::Lt, "$lt", TWO, compare::compare),
    comparing(Op::Lte, "$lte", TWO, compare::compare),
    comparing(Op::Cmp, "$cmp", TWO, compare::compare),
    lazy(Op::And, "$and", Syntax::Positional(0, MANY), control::and),
    lazy(Op::Or, "$or", Syntax::Positional(0, MANY), control::or),
    plain(Op::Not, "$not", ANY, control::not),
    lazy(Op::Cond, "$cond", Syntax::Named(&COND), control::cond),
    lazy(Op::IfNull, "$ifNull", Syntax::Positional(2, MANY), control::if_null),
    lazy(Op::Switch, "$switch", Syntax::Switch, control::switch),
    lazy(Op::Let, "$let", Syntax::Let, control::bind),
    lazy(Op::Rand, "$rand", Syntax::Positional(0, 0), control::rand),
    variadic(Op::Add, "$add", &[(Term, TypeMismatch)], arithmetic::combine),
    variadic(Op::Multiply, "$multiply", &[(Numeric, TypeMismatch)], arithmetic::combine),
    null_in(Op::Subtract, "$subtract", TWO, arithmetic::combine),
    null_in(Op::Divide, "$divide", TWO, arithmetic::combine),
    null_in(Op::Mod, "$mod", TWO, arithmetic::combine),
    null_in(Op::Abs, "$abs", NUMBER, arithmetic::unary),
    null_in(Op::Ceil, "$ceil", NUMBER, arithmetic::unary),
    null_in(Op::Floor, "$floor", NUMBER, arithmetic::unary),
    null_in(Op::Sqrt, "$sqrt", NUMBER, arithmetic::unary),
    plain(Op::IsArray, "$isArray", ANY, array::is_array),
    plain(Op::Size, "$size", &[(Array, Location17124)], array::size),
    comparing(Op::In, "$in", &[(Any, InternalError), (Array, Location40081)], array::contains),
    null_in(Op::ArrayElemAt, "$arrayElemAt", &[(Array, Location28689), (Numeric, Location28690)], array::element_at),
    null_in(Op::First, "$first", ELEMENTS, array::element_at),
    null_in(Op::Last, "$last", ELEMENTS, array::element_at),
    variadic(Op::ConcatArrays, "$concatArrays", &[(Array, Location28664)], array::concat),
    variadic(Op::Concat, "$concat", &[(Text, Location16702)], string::concat),
    plain(Op::StrLenBytes, "$strLenBytes", &[(Text, Location34473)], string::len),
    plain(Op::StrLenCP, "$strLenCP", &[(Text, Location34471)], string::len),
    with_nulls(
        Nulls::First,
        operator(
            Op::IndexOfCP,
            "$indexOfCP",
            Syntax::Positional(2, 4),
            &[(Text, Location40093), (Text, Location40094), (Natural, Location40096)],
            true,
            string::index_of,
        ),
    ),
    plain(Op::Type, "$type", ANY, types::type_of),
    plain(Op::IsNumber, "$isNumber", ANY, types::is_number),
    operator(
        Op::GetField,
        "$getField",
        Syntax::Named(&GET_FIELD),
        &[(Text, Location3041704), (Any, InternalError)],
        false,
        types::get_field,
    ),
];
