//! The table of operators: their names, their arguments and what runs them.

use std::fmt;

use super::datum::Datum;
use super::evaluate::Scope;
use super::tree::Expr;
use super::{arithmetic, array, compare, control, date, string, types};
use crate::error::{Error, ErrorCode, Result};
use crate::value::Value;

/// An operator of expressions.
pub struct Operator {
    name: &'static str,
    arguments: Arguments,
    run: Run,
}

/// The arguments that an operator takes.
#[derive(Clone, Copy)]
pub(super) enum Arguments {
    /// In an array, or one alone: at least so many and at most so many.
    Positional(usize, usize),
    /// In an object: their names, of which the first so many are required. Where at least one may be positional, so many are
    /// accepted in an array as well.
    Named { names: &'static [&'static str], required: usize, positional: usize },
    /// As a syntax of its own.
    Special,
}

/// What runs an operator.
pub(super) enum Run {
    /// A function of the values of its arguments, and the name to tell siblings apart.
    Eager(fn(&'static str, &[Option<Value<'_>>]) -> Result<Datum<'static>>),
    /// The same where a null among the arguments makes null.
    NullIn(fn(&'static str, &[Option<Value<'_>>]) -> Result<Datum<'static>>),
    /// A function that evaluates its arguments itself.
    Lazy(for<'s> fn(&'s [Expr], &Scope<'s>) -> Result<Datum<'s>>),
}

impl Operator {
    /// The name, with its `$`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    pub(super) fn arguments(&self) -> Arguments {
        self.arguments
    }

    pub(super) fn run(&self) -> &Run {
        &self.run
    }

    /// The operator of a name.
    ///
    /// Errors: 168 for an unknown one.
    pub(super) fn named(name: &str) -> Result<&'static Operator> {
        OPERATORS
            .iter()
            .find(|operator| operator.name == name)
            .ok_or_else(|| Error::new(ErrorCode::InvalidPipelineOperator, format!("Unrecognized expression '{name}'")))
    }
}

impl fmt::Debug for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for Operator {
    fn eq(&self, other: &Operator) -> bool {
        self.name == other.name
    }
}

const MANY: usize = usize::MAX;

const fn lazy(
    name: &'static str,
    arguments: Arguments,
    run: for<'s> fn(&'s [Expr], &Scope<'s>) -> Result<Datum<'s>>,
) -> Operator {
    Operator { name, arguments, run: Run::Lazy(run) }
}

const fn eager(
    name: &'static str,
    least: usize,
    most: usize,
    run: fn(&'static str, &[Option<Value<'_>>]) -> Result<Datum<'static>>,
) -> Operator {
    Operator { name, arguments: Arguments::Positional(least, most), run: Run::Eager(run) }
}

const fn null_in(
    name: &'static str,
    least: usize,
    most: usize,
    run: fn(&'static str, &[Option<Value<'_>>]) -> Result<Datum<'static>>,
) -> Operator {
    Operator { name, arguments: Arguments::Positional(least, most), run: Run::NullIn(run) }
}

const fn named(
    name: &'static str,
    names: &'static [&'static str],
    required: usize,
    run: fn(&'static str, &[Option<Value<'_>>]) -> Result<Datum<'static>>,
) -> Operator {
    Operator { name, arguments: Arguments::Named { names, required, positional: 0 }, run: Run::NullIn(run) }
}

const fn part(name: &'static str) -> Operator {
    let arguments = Arguments::Named { names: &["date", "timezone"], required: 1, positional: 1 };
    Operator { name, arguments, run: Run::NullIn(date::part) }
}

const COND: Arguments = Arguments::Named { names: &["if", "then", "else"], required: 3, positional: 3 };
const GET_FIELD: Arguments = Arguments::Named { names: &["field", "input"], required: 1, positional: 1 };
const SHIFT: &[&str] = &["startDate", "unit", "amount", "timezone"];

static OPERATORS: &[Operator] = &[
    eager("$eq", 2, 2, compare::compare),
    eager("$ne", 2, 2, compare::compare),
    eager("$gt", 2, 2, compare::compare),
    eager("$gte", 2, 2, compare::compare),
    eager("$lt", 2, 2, compare::compare),
    eager("$lte", 2, 2, compare::compare),
    eager("$cmp", 2, 2, compare::compare),
    lazy("$and", Arguments::Positional(0, MANY), control::and),
    lazy("$or", Arguments::Positional(0, MANY), control::or),
    eager("$not", 1, 1, control::not),
    lazy("$cond", COND, control::cond),
    lazy("$ifNull", Arguments::Positional(2, MANY), control::if_null),
    lazy("$switch", Arguments::Special, control::switch),
    lazy("$let", Arguments::Special, control::bind),
    lazy("$rand", Arguments::Positional(0, 0), control::rand),
    null_in("$add", 0, MANY, arithmetic::fold),
    null_in("$multiply", 0, MANY, arithmetic::fold),
    null_in("$subtract", 2, 2, arithmetic::fold),
    null_in("$divide", 2, 2, arithmetic::fold),
    null_in("$mod", 2, 2, arithmetic::fold),
    null_in("$abs", 1, 1, arithmetic::unary),
    null_in("$ceil", 1, 1, arithmetic::unary),
    null_in("$floor", 1, 1, arithmetic::unary),
    null_in("$sqrt", 1, 1, arithmetic::unary),
    null_in("$trunc", 1, 2, arithmetic::to_places),
    null_in("$round", 1, 2, arithmetic::to_places),
    eager("$isArray", 1, 1, array::is_array),
    eager("$size", 1, 1, array::size),
    eager("$in", 2, 2, array::contains),
    null_in("$arrayElemAt", 2, 2, array::element_at),
    null_in("$first", 1, 1, array::element_at),
    null_in("$last", 1, 1, array::element_at),
    null_in("$concatArrays", 0, MANY, array::concat),
    lazy("$map", Arguments::Special, array::map),
    lazy("$filter", Arguments::Special, array::filter),
    lazy("$reduce", Arguments::Special, array::reduce),
    null_in("$concat", 0, MANY, string::concat),
    eager("$toLower", 1, 1, string::change_case),
    eager("$toUpper", 1, 1, string::change_case),
    eager("$strLenBytes", 1, 1, string::len),
    eager("$strLenCP", 1, 1, string::len),
    eager("$substrCP", 3, 3, string::substring),
    null_in("$indexOfCP", 2, 4, string::index_of),
    eager("$type", 1, 1, types::type_of),
    eager("$isNumber", 1, 1, types::is_number),
    null_in("$toBool", 1, 1, types::convert),
    null_in("$toInt", 1, 1, types::convert),
    null_in("$toLong", 1, 1, types::convert),
    null_in("$toDouble", 1, 1, types::convert),
    null_in("$toDate", 1, 1, types::convert),
    lazy("$getField", GET_FIELD, types::get_field),
    part("$year"),
    part("$month"),
    part("$dayOfMonth"),
    part("$dayOfYear"),
    part("$dayOfWeek"),
    part("$week"),
    part("$isoWeek"),
    part("$isoWeekYear"),
    part("$isoDayOfWeek"),
    part("$hour"),
    part("$minute"),
    part("$second"),
    part("$millisecond"),
    named("$dateTrunc", &["date", "unit", "binSize", "timezone", "startOfWeek"], 2, date::truncate),
    named("$dateDiff", &["startDate", "endDate", "unit", "timezone", "startOfWeek"], 3, date::difference),
    named("$dateAdd", SHIFT, 3, date::shift),
    named("$dateSubtract", SHIFT, 3, date::shift),
];
