//! Strings: trimming, splitting, replacing, bytes, `$strcasecmp`.

use super::super::arguments::{Arguments, Want::*, failure, given, natural, text};
use super::super::datum::{ArrayWriter, Datum};
use super::super::operators::{Binds, Names, Op, Operator, Syntax, Wants, named, names, null_in, operator, plain};
use super::calendar::civil;
use crate::error::ErrorCode::*;
use crate::error::Result;
use crate::value::Value;

static TRIM: Names = names(&["input", "chars"], 1, 0, Binds::Nothing, &[Location50696, Location50694, Location50695]);
static REPLACE: Names = names(
    &["input", "find", "replacement"],
    3,
    0,
    Binds::Nothing,
    &[Location51751, Location51750, Location51749, Location51748, Location51747],
);
const TRIM_WANTS: Wants = &[(Text, Location50699), (Text, Location50700)];
const REPLACE_WANTS: Wants = &[(Text, Location51746), (Text, Location51745), (Text, Location51744)];
const PART_WANTS: Wants = &[(TextOrNull, Location16007), (Natural, Location50752), (Whole, Location16035)];
/// What is no letter and no mark at the ends of a string, as the server has it.
const SPACES: &str = "\0 \t\n\u{b}\u{c}\r\u{a0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}";

pub(super) static TABLE: &[Operator] = &[
    named(Op::More, "$trim", &TRIM, TRIM_WANTS, |_, a| trim(a, true, true)),
    named(Op::More, "$ltrim", &TRIM, TRIM_WANTS, |_, a| trim(a, true, false)),
    named(Op::More, "$rtrim", &TRIM, TRIM_WANTS, |_, a| trim(a, false, true)),
    null_in(Op::More, "$split", &[(Text, Location40085), (Text, Location40086)], split),
    named(Op::More, "$replaceOne", &REPLACE, REPLACE_WANTS, |_, a| replace(a, 1)),
    named(Op::More, "$replaceAll", &REPLACE, REPLACE_WANTS, |_, a| replace(a, usize::MAX)),
    plain(Op::More, "$substrBytes", PART_WANTS, part),
    plain(Op::More, "$substr", PART_WANTS, part),
    operator(
        Op::More,
        "$indexOfBytes",
        Syntax::Positional(2, 4),
        &[(Text, Location40091), (Text, Location40092), (Natural, Location40096)],
        true,
        index_of_bytes,
    ),
    plain(Op::More, "$strcasecmp", &[(TextOrNull, Location16007), (TextOrNull, Location16007)], |_, a| compare(a)),
];

fn trim(arguments: Arguments<'_, '_>, left: bool, right: bool) -> Result<Datum<'static>> {
    let chars = given(arguments, 1).and_then(Value::as_str).unwrap_or(SPACES);
    let goes = |letter: char| chars.chars().any(|other| other == letter);
    let mut rest = text(arguments, 0);
    if left {
        rest = rest.trim_start_matches(goes);
    }
    if right {
        rest = rest.trim_end_matches(goes);
    }
    Ok(Datum::string(rest))
}

/// Where a string stands in another, from a place on.
fn find(text: &str, wanted: &str, from: usize) -> Option<usize> {
    let (text, wanted) = (text.as_bytes(), wanted.as_bytes());
    (from..=text.len()).find(|at| text.get(*at..).is_some_and(|rest| rest.starts_with(wanted)))
}

fn split(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let (whole, by) = (text(arguments, 0), text(arguments, 1));
    if by.is_empty() {
        return Err(failure(Location40087, "$split", "requires a non-empty separator"));
    }
    let mut parts = ArrayWriter::new();
    let mut start = 0;
    while let Some(end) = find(whole, by, start) {
        parts.push(Datum::string(whole.get(start..end).unwrap_or_default()).view());
        start = end + by.len();
    }
    parts.push(Datum::string(whole.get(start..).unwrap_or_default()).view());
    Ok(parts.finish())
}

fn replace(arguments: Arguments<'_, '_>, count: usize) -> Result<Datum<'static>> {
    let (whole, wanted, new) = (text(arguments, 0), text(arguments, 1), text(arguments, 2));
    let (mut made, mut start, mut from, mut left) = (String::new(), 0, 0, count);
    while let Some(at) = find(whole, wanted, from).filter(|_| left > 0) {
        // Nothing stands between any two characters.
        if whole.is_char_boundary(at) {
            made.push_str(whole.get(start..at).unwrap_or_default());
            made.push_str(new);
            (start, left) = (at + wanted.len(), left - 1);
        }
        from = at + wanted.len().max(1);
    }
    made.push_str(whole.get(start..).unwrap_or_default());
    Ok(Datum::string(&made))
}

/// From a byte on, so many bytes; all that are left where the count is below zero.
fn part(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let whole = text(arguments, 0);
    let start = natural(arguments, 1, 0).min(whole.len());
    let count = given(arguments, 2).and_then(Value::as_integer).and_then(|n| usize::try_from(n).ok());
    let end = count.and_then(|count| start.checked_add(count)).map_or(whole.len(), |end| end.min(whole.len()));
    if !whole.is_char_boundary(start) {
        return Err(failure(Location28656, operator.name(), "begins inside a character"));
    }
    let part = whole.get(start..end);
    part.map(Datum::string).ok_or_else(|| failure(Location28657, operator.name(), "ends inside a character"))
}

fn index_of_bytes(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let whole = text(arguments, 0);
    let (start, end) = (natural(arguments, 2, 0), natural(arguments, 3, usize::MAX).min(whole.len()));
    let found = find(whole, text(arguments, 1), start).filter(|at| at + text(arguments, 1).len() <= end);
    Ok(found.map_or(Datum::int32(-1), Datum::count))
}

/// Without regard to case, which is that of ASCII.
fn compare(arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let [a, b] = [0, 1].map(|at| text(arguments, at).to_ascii_uppercase());
    Ok(Datum::int32(a.cmp(&b) as i32))
}

/// A date as the server writes it.
pub(super) fn iso(ms: i64) -> String {
    const DAY_MS: i64 = 86_400_000;
    let ((year, month, day), of_day) = (civil(ms.div_euclid(DAY_MS)), ms.rem_euclid(DAY_MS));
    let (seconds, ms) = (of_day / 1000, of_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}
