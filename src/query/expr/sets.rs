//! Sets: arrays in which order and repetition do not matter.

// Loaded later.

use super::arguments::{self, Arguments, Want::*};
use super::datum::{ArrayWriter, Datum, is_nullish};
use super::operators::{MANY, Nulls, Op, Operator, Syntax, Wants, comparing_as, plain, with_nulls};
use crate::error::ErrorCode::*;
use crate::error::Result;
use crate::listed::IntoList;
use crate::value::{Collation, Value, sort_by};

const UNION: Wants = &[(Array, Location17043)];
const INTERSECTION: Wants = &[(Array, Location17047)];
const DIFFERENCE: Wants = &[(Array, Location17048), (Array, Location17049)];
const EQUALS: Wants = &[(Array, Location17044)];
const SUBSET: Wants = &[(Array, Location17046), (Array, Location17042)];
const TWO: Syntax = Syntax::Positional(2, 2);

pub(super) static TABLE: &[Operator] = &[
    with_nulls(
        Nulls::InTurn,
        comparing_as(Op::More, "$setUnion", Syntax::Positional(0, MANY), UNION, true, |_, a, by| {
            let all: Vec<Value<'_>> = (0..a.len()).flat_map(|at| elements(a, at)).listed();
            Ok(list(&distinct(all, by)))
        }),
    ),
    with_nulls(
        Nulls::InTurn,
        comparing_as(Op::More, "$setIntersection", Syntax::Positional(0, MANY), INTERSECTION, true, |_, a, by| {
            let mut all = distinct(elements(a, 0), by);
            (1..a.len()).for_each(|at| {
                let other = distinct(elements(a, at), by);
                all.retain(|value| holds(&other, *value, by));
            });
            Ok(list(&all))
        }),
    ),
    comparing_as(Op::More, "$setDifference", TWO, DIFFERENCE, true, |_, a, by| {
        let other = distinct(elements(a, 1), by);
        let mut left: Vec<Value<'_>> = Vec::new();
        for value in elements(a, 0) {
            // In the order of the first array.
            if !holds(&other, value, by) && !left.iter().any(|known| by.equal(*known, value)) {
                left.push(value);
            }
        }
        Ok(list(&left))
    }),
    comparing_as(Op::More, "$setEquals", Syntax::Positional(2, MANY), EQUALS, false, |_, a, by| {
        let first = distinct(elements(a, 0), by);
        let is_same = |other: Vec<Value<'_>>| {
            other.len() == first.len() && other.iter().zip(&first).all(|(a, b)| by.equal(*a, *b))
        };
        Ok(Datum::bool((1..a.len()).all(|at| is_same(distinct(elements(a, at), by)))))
    }),
    comparing_as(Op::More, "$setIsSubset", TWO, SUBSET, false, |_, a, by| {
        let whole = distinct(elements(a, 1), by);
        Ok(Datum::bool(elements(a, 0).into_iter().all(|value| holds(&whole, value, by))))
    }),
    plain(Op::More, "$anyElementTrue", &[(Array, Location17041)], |_, a| {
        Ok(Datum::bool(elements(a, 0).into_iter().any(Value::is_true)))
    }),
    plain(Op::More, "$allElementsTrue", &[(Array, Location17040)], |_, a| {
        Ok(Datum::bool(elements(a, 0).into_iter().all(Value::is_true)))
    }),
    comparing_as(Op::More, "$min", Syntax::Positional(0, MANY), &[(Any, InternalError)], false, |_, a, by| {
        Ok(extreme(a, by, false))
    }),
    comparing_as(Op::More, "$max", Syntax::Positional(0, MANY), &[(Any, InternalError)], false, |_, a, by| {
        Ok(extreme(a, by, true))
    }),
    with_nulls(Nulls::First, comparing_as(Op::More, "$indexOfArray", Syntax::Positional(2, 4), &INDEX, true, index_of)),
];

const INDEX: [(arguments::Want, crate::error::ErrorCode); 3] =
    [(Array, Location40090), (Any, InternalError), (Natural, Location40096)];

fn elements<'b>(arguments: Arguments<'_, 'b>, at: usize) -> Vec<Value<'b>> {
    arguments::array(arguments, at).iter().map(|(_, element)| element).listed()
}

/// Each value once, sorted.
fn distinct<'b>(mut values: Vec<Value<'b>>, by: &Collation) -> Vec<Value<'b>> {
    sort_by(&mut values, |a, b| by.compare(*a, *b));
    values.dedup_by(|a, b| by.equal(*a, *b));
    values
}

/// True if a value is among sorted values.
fn holds(values: &[Value<'_>], wanted: Value<'_>, by: &Collation) -> bool {
    values.binary_search_by(|value| by.compare(*value, wanted)).is_ok()
}

fn list(values: &[Value<'_>]) -> Datum<'static> {
    let mut list = ArrayWriter::new();
    values.iter().for_each(|value| list.push(Some(*value)));
    list.finish()
}

/// The smallest or largest of the arguments; of a single array, of its elements. Null does not count.
fn extreme(arguments: Arguments<'_, '_>, by: &Collation, is_max: bool) -> Datum<'static> {
    let values: Vec<Value<'_>> = match arguments {
        [Some(only)] if only.as_array().is_some() => elements(arguments, 0),
        _ => arguments.iter().filter_map(|value| *value).listed(),
    };
    let better = |a: Value<'_>, b: Value<'_>| if is_max { by.compare(b, a).is_gt() } else { by.compare(b, a).is_lt() };
    let there = values.into_iter().filter(|value| !is_nullish(Some(*value)));
    there.reduce(|a, b| if better(a, b) { b } else { a }).map_or(Datum::NULL, |value| Datum::copied(Some(value)))
}

/// The position of a value in an array, within two positions; -1 if there is none.
fn index_of(_: &Operator, arguments: Arguments<'_, '_>, by: &Collation) -> Result<Datum<'static>> {
    let (start, end) = (arguments::natural(arguments, 2, 0), arguments::natural(arguments, 3, usize::MAX));
    let wanted = arguments::argument(arguments, 1);
    let found = elements(arguments, 0).into_iter().enumerate().take(end).skip(start);
    let mut found = found.filter(|(_, value)| wanted.is_some_and(|wanted| by.equal(*value, wanted)));
    Ok(found.next().map_or(Datum::int32(-1), |(at, _)| Datum::count(at)))
}
