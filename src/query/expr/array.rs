//! Arrays: `$isArray`, `$size`, `$in`, `$arrayElemAt`, `$first`, `$last`, `$concatArrays`, `$map`, `$filter`, `$reduce`.

use super::datum::{ArrayWriter, Datum, is_nullish, type_name};
use super::evaluate::Scope;
use super::tree::Expr;
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Doc, Number, Value, equal};

type Arguments<'a, 'b> = &'a [Option<Value<'b>>];

/// The array at a place among the arguments.
fn array_at<'a>(name: &str, arguments: Arguments<'_, 'a>, at: usize, code: ErrorCode) -> Result<Doc<'a>> {
    let value = arguments.get(at).copied().flatten();
    value.and_then(Value::as_array).ok_or_else(|| {
        Error::new(code, format!("{name} requires an array as argument {}, found: {}", at + 1, type_name(value)))
    })
}

pub(super) fn is_array(_: &'static str, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    Ok(Datum::bool(arguments.iter().flatten().any(|value| value.as_array().is_some())))
}

pub(super) fn size(name: &'static str, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    Ok(Datum::count(array_at(name, arguments, 0, ErrorCode::Location17124)?.iter().count()))
}

pub(super) fn contains(name: &'static str, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let array = array_at(name, arguments, 1, ErrorCode::Location40081)?;
    let wanted = arguments.first().copied().flatten();
    Ok(Datum::bool(wanted.is_some_and(|wanted| array.iter().any(|(_, element)| equal(element, wanted)))))
}

/// `$arrayElemAt`, `$first`, `$last`: from the end where the position is negative, and missing outside.
pub(super) fn element_at(name: &'static str, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let array = array_at(name, arguments, 0, ErrorCode::Location28689)?;
    let at = match (name, arguments.get(1).copied().flatten()) {
        ("$first", _) => 0,
        ("$last", _) => -1,
        (_, position) => {
            let number = position.and_then(Number::of).ok_or_else(|| {
                let message = format!("$arrayElemAt's second argument must be numeric, but is {}", type_name(position));
                Error::new(ErrorCode::Location28690, message)
            })?;
            let whole = number.whole().and_then(|n| i32::try_from(n).ok());
            whole.ok_or_else(|| {
                let message = "$arrayElemAt's second argument must be representable as a 32-bit integer";
                Error::new(ErrorCode::Location28691, message)
            })?
        }
    };
    let at = match usize::try_from(at) {
        Ok(at) => Some(at),
        Err(_) => array.iter().count().checked_sub(at.unsigned_abs() as usize),
    };
    Ok(Datum::copied(at.and_then(|at| array.iter().nth(at)).map(|(_, element)| element)))
}

pub(super) fn concat(name: &'static str, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let mut all = ArrayWriter::new();
    for at in 0..arguments.len() {
        let array = array_at(name, arguments, at, ErrorCode::Location28664)?;
        array.iter().for_each(|(_, element)| all.push(Some(element)));
    }
    Ok(all.finish())
}

/// Calls `each` for every element of the array that `input` is; false where it is null.
fn each_of(
    name: &str,
    input: &Expr,
    scope: &Scope<'_>,
    code: ErrorCode,
    each: &mut dyn FnMut(Value<'_>) -> Result<()>,
) -> Result<bool> {
    let input = input.evaluate(scope)?;
    if is_nullish(input.view()) {
        return Ok(false);
    }
    for (_, element) in array_at(name, &[input.view()], 0, code)? {
        each(element)?;
    }
    Ok(true)
}

/// Input, and what becomes of an element, which is bound.
pub(super) fn map<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    let [input, body] = arguments else { return Ok(Datum::NULL) };
    let mut mapped = ArrayWriter::new();
    let found = each_of("$map", input, scope, ErrorCode::Location16883, &mut |element| {
        mapped.push(body.evaluate(&scope.with(Some(element)))?.view());
        Ok(())
    })?;
    Ok(if found { mapped.finish() } else { Datum::NULL })
}

/// Input, limit, and what elements have to pass, which are bound.
pub(super) fn filter<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    let [input, limit, test] = arguments else { return Ok(Datum::NULL) };
    let limit = limit.evaluate(scope)?;
    let mut left = match limit.view().filter(|_| !is_nullish(limit.view())) {
        None => i64::MAX,
        Some(limit) => Number::of(limit).and_then(Number::whole).filter(|n| *n > 0).ok_or_else(|| {
            Error::new(ErrorCode::Location327391, format!("$filter: limit must be a positive integer, not {limit:?}"))
        })?,
    };
    let mut kept = ArrayWriter::new();
    let found = each_of("$filter", input, scope, ErrorCode::Location28651, &mut |element| {
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
    let [input, initial, body] = arguments else { return Ok(Datum::NULL) };
    let mut value = initial.evaluate(scope)?.into_static();
    let found = each_of("$reduce", input, scope, ErrorCode::Location40080, &mut |element| {
        let next = body.evaluate(&scope.with(value.view()).with(Some(element)))?.into_static();
        value = next;
        Ok(())
    })?;
    Ok(if found { value } else { Datum::NULL })
}
