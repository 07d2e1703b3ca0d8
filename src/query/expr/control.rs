//! Operators that decide which arguments are evaluated: `$and`, `$or`, `$not`, `$cond`, `$ifNull`, `$switch`, `$let`;
//! and `$rand`.

use super::arguments::{Arguments, argument, failure};
use super::datum::{Datum, is_nullish};
use super::evaluate::{Scope, evaluate_all};
use super::operators::Operator;
use super::tree::Expr;
use crate::error::{ErrorCode, Result};
use crate::value::Value;

/// The first argument whose truth is `wanted` decides.
fn any<'s>(arguments: &'s [Expr], scope: &Scope<'s>, wanted: bool) -> Result<Datum<'s>> {
    for argument in arguments {
        if argument.is_true(scope)? == wanted {
            return Ok(Datum::bool(wanted));
        }
    }
    Ok(Datum::bool(!wanted))
}

pub(super) fn and<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    any(arguments, scope, false)
}

pub(super) fn or<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    any(arguments, scope, true)
}

pub(super) fn not(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    Ok(Datum::bool(!argument(arguments, 0).is_some_and(Value::is_true)))
}

pub(super) fn cond<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    let [test, then, otherwise] = arguments else { return Ok(Datum::Missing) };
    if test.is_true(scope)? { then.evaluate(scope) } else { otherwise.evaluate(scope) }
}

pub(super) fn if_null<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    let mut last = Datum::Missing;
    for argument in arguments {
        last = argument.evaluate(scope)?;
        if !is_nullish(last.view()) {
            break;
        }
    }
    Ok(last)
}

/// Arguments: pairs of a case and its value, then the default, if there is one.
pub(super) fn switch<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    for branch in arguments.chunks(2) {
        match branch {
            [case, then] if case.is_true(scope)? => return then.evaluate(scope),
            [default] => return default.evaluate(scope),
            _ => {}
        }
    }
    Err(failure(ErrorCode::Location40066, "$switch", "found no matching branch, and has no default"))
}

/// Arguments: variables, of which the last becomes the innermost, then the expression that uses them.
pub(super) fn bind<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    let Some((body, variables)) = arguments.split_last() else { return Ok(Datum::Missing) };
    bind_each(&evaluate_all(variables, scope)?, body, scope)
}

fn bind_each(data: &[Datum<'_>], body: &Expr, scope: &Scope<'_>) -> Result<Datum<'static>> {
    match data.split_first() {
        Some((first, rest)) => bind_each(rest, body, &scope.with(first.view())),
        None => Ok(body.evaluate(scope)?.into_static()),
    }
}

/// A double in [0, 1).
pub(super) fn rand<'s>(_: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    Ok(Datum::double(scope.globals().env().random_double()))
}
