//! Strings: `$concat`, `$strLenBytes`, `$strLenCP`, `$indexOfCP`.

use super::arguments::{Arguments, natural, text};
use super::datum::Datum;
use super::operators::{Op, Operator};
use crate::error::Result;

/// Where the character of a number begins, in bytes; the end where there are not so many.
#[inline(never)]
pub(super) fn byte_of(text: &str, character: usize) -> usize {
    // What begins a character is no continuation of one.
    let mut starts = text.bytes().enumerate().filter(|(_, byte)| byte & 0xc0 != 0x80);
    starts.nth(character).map_or(text.len(), |(at, _)| at)
}

fn count(text: &str) -> usize {
    text.bytes().filter(|byte| byte & 0xc0 != 0x80).count()
}

pub(super) fn concat(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let mut all = String::new();
    for at in 0..arguments.len() {
        all.push_str(text(arguments, at));
    }
    Ok(Datum::string(&all))
}

pub(super) fn len(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let text = text(arguments, 0);
    Ok(Datum::count(if operator.op == Op::StrLenBytes { text.len() } else { count(text) }))
}

/// The first place of a string in another, between two places; -1 where there is none.
pub(super) fn index_of(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let (text, wanted) = (text(arguments, 0), text(arguments, 1).as_bytes());
    let (start, stop) = (natural(arguments, 2, 0), natural(arguments, 3, usize::MAX));
    let searched = text.as_bytes().get(..byte_of(text, stop)).unwrap_or_default();
    let first = byte_of(text, start);
    // A string is found only where a character begins, because it begins with one.
    let found = (first..=searched.len()).find(|at| searched.get(*at..).is_some_and(|rest| rest.starts_with(wanted)));
    Ok(match found.filter(|_| start <= count(text)) {
        Some(at) => Datum::count(count(text.get(..at).unwrap_or_default())),
        None => Datum::int32(-1),
    })
}
