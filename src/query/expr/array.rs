//! Arrays: `$isArray`, `$size`, `$in`, `$arrayElemAt`, `$first`, `$last`, `$concatArrays`, `$map`, `$filter`, `$reduce`.

use super::arguments::{self, Arguments, Want, failure, given};
use super::datum::{ArrayWriter, Datum, is_nullish};
use super::evaluate::Scope;
use super::operators::{Op, Operator};
use super::tree::Expr;
use crate::error::{ErrorCode, Result};
use crate::value::{Collation, Number, Value};

pub(super) fn is_array(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    Ok(Datum::bool(given(arguments, 0).is_some_and(|value| value.as_array().is_some())))
}

pub(super) fn size(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    Ok(Datum::count(arguments::array(arguments, 0).iter().count()))
}

pub(super) fn contains(_: &Operator, arguments: Arguments<'_, '_>, collation: &Collation) -> Result<Datum<'static>> {
    let array = arguments::array(arguments, 1);
    let wanted = given(arguments, 0);
    Ok(Datum::bool(wanted.is_some_and(|wanted| array.iter().any(|(_, element)| collation.equal(element, wanted)))))
}

/// `$arrayElemAt`, `$first`, `$last`: from the end where the position is negative, and missing outside.
pub(super) fn element_at(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let array = arguments::array(arguments, 0);
    let at = match given(arguments, 1).and_then(Number::of) {
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

/// Calls `each` for every element of the array that the first argument is; false where it is null.
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
    Want::Array.check(name, 0, input.view(), code)?;
    for (_, element) in arguments::array(&[input.view()], 0) {
        each(element)?;
    }
    Ok(true)
}

/// Input, and what becomes of an element, which is bound.
pub(super) fn map<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    let [_, body] = arguments else { return Ok(Datum::NULL) };
    let mut mapped = ArrayWriter::new();
    let found = each_of("$map", arguments, scope, ErrorCode::Location16883, &mut |element| {
        mapped.push(body.evaluate(&scope.with(Some(element)))?.view());
        Ok(())
    })?;
    Ok(if found { mapped.finish() } else { Datum::NULL })
}

/// Input, what elements have to pass, which are bound, and how many are wanted.
pub(super) fn filter<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    let [_, test, limit] = arguments else { return Ok(Datum::NULL) };
    let limit = limit.evaluate(scope)?;
    let mut left = match limit.view().filter(|_| !is_nullish(limit.view())) {
        None => i64::MAX,
        Some(limit) => Number::of(limit)
            .and_then(Number::whole)
            .filter(|n| *n > 0)
            .ok_or_else(|| failure(ErrorCode::Location327391, "$filter", "needs a positive integer as its limit"))?,
    };
    let mut kept = ArrayWriter::new();
    let found = each_of("$filter", arguments, scope, ErrorCode::Location28651, &mut |element| {
        if left > 0 && test.is_true(&scope.with(Some(element)))? {
            kept.push(Some(element));
            left -= 1;
        }
        Ok(())
    })?;
    Ok(if found { kept.finish() } else { Datum::NULL })
}

/// Input, initial value, and what becomes of the value so far and an element, which are bound in this order.
pub(super) fn reduce<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    let [_, initial, body] = arguments else { return Ok(Datum::NULL) };
    let mut value = initial.evaluate(scope)?.into_static();
    let found = each_of("$reduce", arguments, scope, ErrorCode::Location40080, &mut |element| {
        let next = body.evaluate(&scope.with(value.view()).with(Some(element)))?.into_static();
        value = next;
        Ok(())
    })?;
    Ok(if found { value } else { Datum::NULL })
}
