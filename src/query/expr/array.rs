//! Arrays: their elements, slices and order, and `$map`, `$filter`, `$reduce`.

use super::arguments::{self, Arguments, Want::*, argument, failure, number};
use super::datum::{ArrayWriter, Datum, is_nullish};
use super::evaluate::Scope;
use super::operators::{Binds, Names, Op, Operator, Syntax, Wants, comparing_as, lazy, names, null_in, operator};
use super::tree::Expr;
use crate::error::ErrorCode::*;
use crate::error::{ErrorCode, Result};
use crate::listed::IntoList;
use crate::query::sort::SortSpec;
use crate::value::{Collation, Doc, Number, Path, Value, compare_sort_keys, sort_by, sort_key};

static ZIP: Names = names(
    &["inputs", "useLongestLength", "defaults"],
    1,
    0,
    Binds::Nothing,
    &[Location34460, Location34464, Location34465],
);
static SORT: Names = names(
    &["input", "sortBy"],
    2,
    0,
    Binds::Nothing,
    &[Location2942500, Location2942501, Location2942502, Location2942503],
);
static EDGE: Names =
    names(&["n", "input"], 2, 0, Binds::Nothing, &[Location5787801, Location5787901, Location5787906, Location5787907]);
static EXTREME: Names =
    names(&["n", "input"], 2, 0, Binds::Nothing, &[Location5787900, Location5787901, Location5787906, Location5787907]);
static MAP: Names =
    names(&["input", "in"], 2, 0, Binds::Element, &[Location16878, Location16879, Location16880, Location16882]);
static FILTER: Names = names(
    &["input", "cond", "limit"],
    2,
    0,
    Binds::Element,
    &[Location28646, Location28647, Location28648, Location28650],
);
static REDUCE: Names = names(
    &["input", "initialValue", "in"],
    3,
    0,
    Binds::ValueAndThis,
    &[Location40075, Location40076, Location40077, Location40078, Location40079],
);
const RANGE: Wants = &[(Numeric, Location34443), (Numeric, Location34445), (Numeric, Location34447)];
const SLICE: Wants = &[(Array, Location28724), (Numeric, Location28725), (Numeric, Location28727)];
const EDGE_WANTS: Wants = &[(Numeric, Location5787902), (Array, Location5788200)];
/// A longer list would not fit into a document.
const RANGE_COUNT_MAX: i64 = 5_000_000;

pub(super) static TABLE: &[Operator] = &[
    lazy(Op::Map, "$map", Syntax::Named(&MAP), map),
    lazy(Op::Filter, "$filter", Syntax::Named(&FILTER), filter),
    lazy(Op::Reduce, "$reduce", Syntax::Named(&REDUCE), reduce),
    null_in(Op::More, "$reverseArray", &[(Array, Location34435)], |_, a| {
        Ok(list(elements(arguments::array(a, 0)).into_iter().rev()))
    }),
    operator(Op::More, "$range", Syntax::Positional(2, 3), RANGE, false, range),
    operator(Op::More, "$slice", Syntax::Positional(2, 3), SLICE, true, slice),
    operator(Op::More, "$zip", Syntax::Named(&ZIP), &[(Any, InternalError)], false, zip),
    comparing_as(Op::More, "$sortArray", Syntax::Named(&SORT), &[(Any, InternalError)], true, sort),
    operator(Op::More, "$firstN", Syntax::Named(&EDGE), EDGE_WANTS, false, |_, a| {
        let n = count(a)?;
        Ok(list(elements(arguments::array(a, 1)).into_iter().take(n)))
    }),
    operator(Op::More, "$lastN", Syntax::Named(&EDGE), EDGE_WANTS, false, |_, a| {
        let all = elements(arguments::array(a, 1));
        let left_out = all.len().saturating_sub(count(a)?);
        Ok(list(all.into_iter().skip(left_out)))
    }),
    comparing_as(Op::More, "$minN", Syntax::Named(&EXTREME), EDGE_WANTS, false, |_, a, by| extremes(a, by, true)),
    comparing_as(Op::More, "$maxN", Syntax::Named(&EXTREME), EDGE_WANTS, false, |_, a, by| extremes(a, by, false)),
];

pub(super) fn is_array(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    Ok(Datum::bool(argument(arguments, 0).is_some_and(|value| value.as_array().is_some())))
}

pub(super) fn size(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    Ok(Datum::count(arguments::array(arguments, 0).iter().count()))
}

pub(super) fn contains(_: &Operator, arguments: Arguments<'_, '_>, collation: &Collation) -> Result<Datum<'static>> {
    let array = arguments::array(arguments, 1);
    let wanted = argument(arguments, 0);
    Ok(Datum::bool(wanted.is_some_and(|wanted| array.iter().any(|(_, element)| collation.equal(element, wanted)))))
}

/// `$arrayElemAt`, `$first`, `$last`: a negative position counts from the end; the result is missing outside.
pub(super) fn element_at(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let array = arguments::array(arguments, 0);
    let at = match argument(arguments, 1).and_then(Number::of) {
        None => Some(if operator.op == Op::Last { -1 } else { 0 }),
        Some(number) => number.whole().filter(|n| i32::try_from(*n).is_ok()),
    };
    let at =
        at.ok_or_else(|| failure(ErrorCode::Location28691, operator.name(), "needs a 32-bit integer as argument 2"))?;
    let from_end = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX);
    let at = if at < 0 { array.iter().count().checked_sub(from_end) } else { Some(from_end) };
    Ok(Datum::copied(at.and_then(|at| array.iter().nth(at)).map(|(_, element)| element)))
}

pub(super) fn concat(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let mut all = ArrayWriter::new();
    for at in 0..arguments.len() {
        arguments::array(arguments, at).iter().for_each(|(_, element)| all.push(Some(element)));
    }
    Ok(all.finish())
}

/// Calls `each` for every element of the array in the first argument; false if that is null.
fn each_of(
    name: &str,
    arguments: &[Expr],
    scope: &Scope<'_>,
    code: ErrorCode,
    each: &mut dyn FnMut(Value<'_>) -> Result<()>,
) -> Result<bool> {
    let Some(input) = arguments.first() else { return Ok(false) };
    let input = input.evaluate(scope)?;
    if is_nullish(input.view()) {
        return Ok(false);
    }
    Array.check(name, 0, input.view(), code)?;
    for (_, element) in arguments::array(&[input.view()], 0) {
        each(element)?;
    }
    Ok(true)
}

/// Arguments: the input, and the expression for an element, which is bound.
fn map<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    let [_, body] = arguments else { return Ok(Datum::NULL) };
    let mut mapped = ArrayWriter::new();
    let found = each_of("$map", arguments, scope, ErrorCode::Location16883, &mut |element| {
        mapped.push(body.evaluate(&scope.with(Some(element)))?.view());
        Ok(())
    })?;
    Ok(if found { mapped.finish() } else { Datum::NULL })
}

/// Arguments: the input, the condition for an element, which is bound, and how many are wanted.
fn filter<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    let [_, test, limit] = arguments else { return Ok(Datum::NULL) };
    let mut left = None;
    let mut kept = ArrayWriter::new();
    let found = each_of("$filter", arguments, scope, ErrorCode::Location28651, &mut |element| {
        // As on the server, the limit of an empty array, or of null, does not matter.
        let left = match &mut left {
            Some(left) => left,
            None => left.insert(limit_of(limit.evaluate(scope)?.view())?),
        };
        if *left > 0 && test.is_true(&scope.with(Some(element)))? {
            kept.push(Some(element));
            *left -= 1;
        }
        Ok(())
    })?;
    Ok(if found { kept.finish() } else { Datum::NULL })
}

/// How many elements a `$filter` keeps.
fn limit_of(limit: Option<Value<'_>>) -> Result<i32> {
    let Some(limit) = limit.filter(|_| !is_nullish(limit)) else { return Ok(i32::MAX) };
    let limit = Number::of(limit).and_then(Number::whole).and_then(|limit| i32::try_from(limit).ok());
    match limit {
        Some(limit @ 1..) => Ok(limit),
        Some(_) => Err(failure(Location327392, "$filter", "needs a limit greater than 0")),
        None => Err(failure(Location327391, "$filter", "needs a 32-bit integer as its limit")),
    }
}

/// Arguments: the input, the initial value, and the expression for the value so far and an element, which are bound in
/// this order.
fn reduce<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    let [_, initial, body] = arguments else { return Ok(Datum::NULL) };
    let mut value = initial.evaluate(scope)?.into_static();
    let found = each_of("$reduce", arguments, scope, ErrorCode::Location40080, &mut |element| {
        let next = body.evaluate(&scope.with(value.view()).with(Some(element)))?.into_static();
        value = next;
        Ok(())
    })?;
    Ok(if found { value } else { Datum::NULL })
}

fn elements(array: Doc<'_>) -> Vec<Value<'_>> {
    array.iter().map(|(_, element)| element).listed()
}

fn list<'b>(values: impl Iterator<Item = Value<'b>>) -> Datum<'static> {
    let mut list = ArrayWriter::new();
    values.for_each(|value| list.push(Some(value)));
    list.finish()
}

/// The number of values wanted.
fn count(arguments: Arguments<'_, '_>) -> Result<usize> {
    let n = number(arguments, 0).whole().ok_or_else(|| failure(Location5787903, "'n'", "must be an integer"))?;
    let n = usize::try_from(n).ok().filter(|n| *n > 0);
    n.ok_or_else(|| failure(Location5787908, "'n'", "must be greater than 0"))
}

fn extremes(arguments: Arguments<'_, '_>, by: &Collation, upward: bool) -> Result<Datum<'static>> {
    let mut all = elements(arguments::array(arguments, 1));
    all.retain(|value| !is_nullish(Some(*value)));
    sort_by(&mut all, |a, b| if upward { by.compare(*a, *b) } else { by.compare(*b, *a) });
    Ok(list(all.into_iter().take(count(arguments)?)))
}

/// An argument that was checked to be a number, as an int32.
pub(super) fn int32(operator: &Operator, arguments: Arguments<'_, '_>, at: usize, code: ErrorCode) -> Result<i64> {
    let n = number(arguments, at).whole().filter(|n| i32::try_from(*n).is_ok());
    n.ok_or_else(|| failure(code, operator.name(), "needs integers of 32 bits"))
}

fn range(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let place = |at, code| int32(operator, arguments, at, code);
    let (start, end) = (place(0, Location34444)?, place(1, Location34446)?);
    let step = if arguments.len() > 2 { place(2, Location34448)? } else { 1 };
    if step == 0 {
        return Err(failure(Location34449, operator.name(), "requires a non-zero step"));
    }
    if (end - start) / step > RANGE_COUNT_MAX {
        return Err(failure(
            ExceededMemoryLimit,
            operator.name(),
            "would produce a list that exceeds the memory limit",
        ));
    }
    let (mut numbers, mut next) = (ArrayWriter::new(), start);
    while if step > 0 { next < end } else { next > end } {
        numbers.push(Datum::int32(i32::try_from(next).unwrap_or_default()).view());
        next += step;
    }
    Ok(numbers.finish())
}

/// Arguments: a number of elements from the front, or from the end if negative; or a position and a number of elements.
fn slice(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let all = elements(arguments::array(arguments, 0));
    let size = |n: i64| usize::try_from(n.unsigned_abs()).unwrap_or(usize::MAX);
    let first = int32(operator, arguments, 1, Location28726)?;
    let (start, n) = match arguments {
        [_, _, Some(_)] => {
            let n = int32(operator, arguments, 2, Location28728)?;
            if n <= 0 {
                return Err(failure(Location28729, operator.name(), "requires a third argument above 0"));
            }
            (if first < 0 { all.len().saturating_sub(size(first)) } else { size(first) }, size(n))
        }
        _ if first < 0 => (all.len().saturating_sub(size(first)), usize::MAX),
        _ => (0, size(first)),
    };
    Ok(list(all.into_iter().skip(start).take(n)))
}

fn zip(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let refuse = |code, problem: &str| Err(failure(code, operator.name(), problem));
    let Some(inputs) = argument(arguments, 0).and_then(Value::as_array) else {
        return match is_nullish(argument(arguments, 0)) {
            true => Ok(Datum::NULL),
            false => refuse(Location34461, "needs an array as its inputs"),
        };
    };
    let longest = match argument(arguments, 1) {
        None => false,
        Some(longest) => match longest.as_bool() {
            Some(longest) => longest,
            None => return refuse(Location34463, "needs a boolean as useLongestLength"),
        },
    };
    let defaults = match argument(arguments, 2).map(Value::as_array) {
        None => None,
        Some(None) => return refuse(Location34462, "needs an array as its defaults"),
        Some(_) if !longest => return refuse(Location34466, "has defaults without useLongestLength"),
        Some(defaults) => defaults.map(elements),
    };
    let mut columns = Vec::new();
    for (_, input) in inputs {
        match input.as_array() {
            Some(input) => columns.push(elements(input)),
            None if is_nullish(Some(input)) => return Ok(Datum::NULL),
            None => return refuse(Location34468, "needs arrays among its inputs"),
        }
    }
    if defaults.as_ref().is_some_and(|defaults| defaults.len() != columns.len()) {
        return refuse(Location34467, "needs as many defaults as inputs");
    }
    let lengths = columns.iter().map(Vec::len);
    let rows = if longest { lengths.max() } else { lengths.min() }.unwrap_or_default();
    let mut all = ArrayWriter::new();
    for row in 0..rows {
        let mut tuple = ArrayWriter::new();
        for (at, column) in columns.iter().enumerate() {
            let default = || defaults.as_ref().and_then(|defaults| defaults.get(at).copied());
            tuple.push(column.get(row).copied().or_else(default));
        }
        all.push(tuple.finish().view());
    }
    Ok(all.finish())
}

/// Sorts by the elements themselves, or by fields of them.
fn sort(operator: &Operator, arguments: Arguments<'_, '_>, by: &Collation) -> Result<Datum<'static>> {
    let Some(array) = argument(arguments, 0).and_then(Value::as_array) else {
        return Err(failure(Location2942504, operator.name(), "needs an array as its input"));
    };
    let mut all = elements(array);
    let wanted = argument(arguments, 1).unwrap_or(Value::NULL);
    if wanted.as_doc().is_some() {
        let spec = SortSpec::parse(wanted, by)?;
        let key = |value: Value<'_>, path: &Path, up: bool| -> Datum<'static> {
            let first = value.as_doc().and_then(|doc| doc.get(path.first()));
            Datum::copied(sort_key(first, path.rest(), up, by))
        };
        sort_by(&mut all, |a, b| {
            let each = spec.parts().iter().map(|part| {
                let [a, b] = [*a, *b].map(|value| key(value, &part.path, part.ascending));
                let order = compare_sort_keys(a.view(), b.view(), by);
                if part.ascending { order } else { order.reverse() }
            });
            each.fold(std::cmp::Ordering::Equal, std::cmp::Ordering::then)
        });
    } else {
        let up = match wanted.as_integer() {
            Some(1) => true,
            Some(-1) => false,
            _ => return Err(failure(Location2942507, operator.name(), "sorts by 1, -1 or an object")),
        };
        sort_by(&mut all, |a, b| if up { by.compare(*a, *b) } else { by.compare(*b, *a) });
    }
    Ok(list(all.into_iter()))
}
