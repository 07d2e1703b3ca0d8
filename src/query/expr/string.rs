//! Strings: concatenation, length, search, trimming, splitting, replacing, substrings, and case.

use std::borrow::Cow;
use std::iter;

use kernels::edits::{self, Trimmed};
use kernels::texts::Texts;
use kernels::{elements, texts};

use super::arguments::{Arguments, Want::*, argument, failure, natural, number, text};
use super::array::int32;
use super::date::civil;
use super::datum::{ArrayWriter, Datum, is_nullish};
use super::globals::Globals;
use super::operators::{
    ANY, Binds, Names, Nulls, Op, Operator, Syntax, TWO, Wants, asking_of, named, names, null_in, operator, with_nulls,
};
use crate::error::ErrorCode::*;
use crate::error::Result;
use crate::value::{Kind, Value};

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
const PART_WANTS: Wants = &[(Any, InternalError), (Numeric, Location16034), (Numeric, Location16035)];
const CHARACTER_WANTS: Wants = &[(Any, InternalError), (Numeric, Location34450), (Numeric, Location34452)];
/// The characters that are trimmed by default, as on the server.
pub(super) const SPACES: &str = "\0 \t\n\u{b}\u{c}\r\u{a0}\u{1680}\u{2000}\u{2001}\u{2002}\u{2003}\u{2004}\u{2005}\u{2006}\u{2007}\u{2008}\u{2009}\u{200a}";

pub(super) static TABLE: &[Operator] = &[
    named(Op::More, "$trim", &TRIM, TRIM_WANTS, |_, a| trim(a, true, true)),
    named(Op::More, "$ltrim", &TRIM, TRIM_WANTS, |_, a| trim(a, true, false)),
    named(Op::More, "$rtrim", &TRIM, TRIM_WANTS, |_, a| trim(a, false, true)),
    null_in(Op::More, "$split", &[(Text, Location40085), (Text, Location40086)], split),
    named(Op::More, "$replaceOne", &REPLACE, REPLACE_WANTS, |_, a| replace(a, false)),
    named(Op::More, "$replaceAll", &REPLACE, REPLACE_WANTS, |_, a| replace(a, true)),
    asking_of(Op::More, "$substrBytes", PART_WANTS, part),
    asking_of(Op::More, "$substr", PART_WANTS, part),
    asking_of(Op::More, "$substrCP", CHARACTER_WANTS, characters),
    asking_of(Op::More, "$toLower", ANY, |by, a, g| Ok(Datum::string(&written(by, a, 0, g)?.to_ascii_lowercase()))),
    asking_of(Op::More, "$toUpper", ANY, |by, a, g| Ok(Datum::string(&written(by, a, 0, g)?.to_ascii_uppercase()))),
    with_nulls(
        Nulls::First,
        operator(
            Op::More,
            "$indexOfBytes",
            Syntax::Positional(2, 4),
            &[(Text, Location40091), (Text, Location40092), (Natural, Location40096)],
            true,
            index_of_bytes,
        ),
    ),
    asking_of(Op::More, "$strcasecmp", TWO, compare),
];

/// The byte offset of a character by its number; the end if there are fewer characters.
#[inline(never)]
pub(super) fn byte_of(text: &[u8], character: usize) -> usize {
    // A byte that begins a character is not a continuation byte.
    let mut starts = text.iter().enumerate().filter(|(_, byte)| *byte & 0xc0 != 0x80);
    starts.nth(character).map_or(text.len(), |(at, _)| at)
}

/// The number of characters.
pub(super) fn count(text: &[u8]) -> usize {
    text.iter().filter(|byte| *byte & 0xc0 != 0x80).count()
}

pub(super) fn concat(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    Ok(Datum::joined(arguments.iter().filter_map(|text| Some((*text)?.text_bytes()))))
}

pub(super) fn len(operator: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let text = argument(arguments, 0).map_or(&b""[..], Value::text_bytes);
    Ok(Datum::count(if operator.op == Op::StrLenBytes { text.len() } else { count(text) }))
}

/// The first position of a string in another, within two positions; -1 if there is none.
pub(super) fn index_of(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let range = [natural(arguments, 2, 0), natural(arguments, 3, usize::MAX)];
    Ok(Datum::int32(first_of(text(arguments, 0).as_bytes(), text(arguments, 1).as_bytes(), range, true)))
}

/// The place of the first `wanted` in a text between two places, in bytes or, in texts that have others than ASCII, in characters; -1 if there is none.
#[inline(never)]
pub(super) fn first_of(text: &[u8], wanted: &[u8], [start, stop]: [usize; 2], by_characters: bool) -> i32 {
    let place = |at: usize| if by_characters { byte_of(text, at) } else { at.min(text.len()) };
    let searched = text.get(..place(stop)).unwrap_or_default();
    // A match always begins at a character boundary, because the searched string does.
    let found = texts::find(searched, wanted, place(start), false);
    let len = if by_characters { count(text) } else { text.len() };
    let at = found
        .filter(|_| start <= len)
        .map(|at| if by_characters { count(text.get(..at).unwrap_or_default()) } else { at });
    at.and_then(|at| i32::try_from(at).ok()).unwrap_or(-1)
}

/// One text as those of rows.
fn texts_of(text: &str) -> ([u32; 2], &[u8]) {
    ([0, u32::try_from(text.len()).unwrap_or(u32::MAX)], text.as_bytes())
}

fn trim(arguments: Arguments<'_, '_>, start: bool, end: bool) -> Result<Datum<'static>> {
    let chars = argument(arguments, 1).and_then(Value::as_str).unwrap_or(SPACES);
    let (offsets, bytes) = texts_of(text(arguments, 0));
    let (_, trimmed) = edits::trimmed(Texts { offsets: &offsets, bytes }, &Trimmed { chars, start, end });
    Ok(Datum::joined(iter::once(trimmed.as_slice())))
}

fn split(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let (whole, by) = (text(arguments, 0), text(arguments, 1));
    if by.is_empty() {
        return Err(failure(Location40087, "$split", "requires a non-empty separator"));
    }
    let (offsets, bytes) = texts_of(whole);
    let ((offsets, bytes), _) = edits::split(Texts { offsets: &offsets, bytes }, by.as_bytes());
    let (mut parts, mut part) = (ArrayWriter::new(), Vec::new());
    for text in (Texts { offsets: &offsets, bytes: &bytes }).iter() {
        part.clear();
        elements::push_text(&mut part, text);
        parts.push(Some(Value::new_checked(Kind::String, &part)));
    }
    Ok(parts.finish())
}

fn replace(arguments: Arguments<'_, '_>, everywhere: bool) -> Result<Datum<'static>> {
    let (wanted, new) = (text(arguments, 1).as_bytes(), text(arguments, 2).as_bytes());
    let (offsets, bytes) = texts_of(text(arguments, 0));
    let (_, replaced) = edits::replaced(Texts { offsets: &offsets, bytes }, wanted, new, everywhere);
    Ok(Datum::joined(iter::once(replaced.as_slice())))
}

/// A string, or the text of a number or a date; empty for null.
fn written<'b>(
    operator: &Operator,
    arguments: Arguments<'_, 'b>,
    at: usize,
    globals: &Globals,
) -> Result<Cow<'b, str>> {
    use Kind::{Date, Decimal128, Double, Int32, Int64, String as Text};
    let value = argument(arguments, at);
    let Some(value) = value.filter(|_| !is_nullish(value)) else { return Ok("".into()) };
    let written = match value.kind() {
        Text => value.as_str().map(Cow::Borrowed),
        Double | Int32 | Int64 | Decimal128 | Date => super::convert::text(value, globals).map(Cow::Owned),
        _ => None,
    };
    let problem = || format!("cannot write {} as a string", value.kind().alias());
    written.ok_or_else(|| failure(Location16007, operator.name(), &problem()))
}

/// From a byte offset, a number of bytes; all remaining ones if the count is negative.
fn part(operator: &Operator, arguments: Arguments<'_, '_>, globals: &Globals) -> Result<Datum<'static>> {
    let whole = &*written(operator, arguments, 0, globals)?;
    let [start, count] = [1, 2].map(|at| number(arguments, at).truncated().unwrap_or(i64::MAX));
    let Ok(start) = usize::try_from(start) else {
        return Err(failure(Location50752, operator.name(), "needs a non-negative start"));
    };
    let start = start.min(whole.len());
    let count = usize::try_from(count).ok();
    let end = count.and_then(|count| start.checked_add(count)).map_or(whole.len(), |end| end.min(whole.len()));
    if !whole.is_char_boundary(start) {
        return Err(failure(Location28656, operator.name(), "begins inside a character"));
    }
    let part = whole.get(start..end);
    part.map(Datum::string).ok_or_else(|| failure(Location28657, operator.name(), "ends inside a character"))
}

fn index_of_bytes(_: &Operator, arguments: Arguments<'_, '_>) -> Result<Datum<'static>> {
    let range = [natural(arguments, 2, 0), natural(arguments, 3, usize::MAX)];
    Ok(Datum::int32(first_of(text(arguments, 0).as_bytes(), text(arguments, 1).as_bytes(), range, false)))
}

/// From a character on, a number of characters.
fn characters(operator: &Operator, arguments: Arguments<'_, '_>, globals: &Globals) -> Result<Datum<'static>> {
    let whole = &*written(operator, arguments, 0, globals)?;
    let (mut range, codes) = ([0; 2], [(Location34451, Location34455), (Location34453, Location34454)]);
    for (at, (place, (no_integer, below))) in (1..).zip(range.iter_mut().zip(codes)) {
        let n = int32(operator, arguments, at, no_integer)?;
        *place = usize::try_from(n).map_err(|_| failure(below, operator.name(), "needs non-negative integers"))?;
    }
    let [start, count] = range;
    let tail = whole.get(byte_of(whole.as_bytes(), start)..).unwrap_or_default();
    Ok(Datum::string(tail.get(..byte_of(tail.as_bytes(), count)).unwrap_or_default()))
}

/// Ignores the case of ASCII letters.
fn compare(operator: &Operator, arguments: Arguments<'_, '_>, globals: &Globals) -> Result<Datum<'static>> {
    let [a, b] = [0, 1].map(|at| written(operator, arguments, at, globals));
    Ok(Datum::int32(a?.to_ascii_uppercase().cmp(&b?.to_ascii_uppercase()) as i32))
}

/// A date as the server formats it.
pub(super) fn iso(ms: i64) -> String {
    const DAY_MS: i64 = 86_400_000;
    let ((year, month, day), of_day) = (civil(ms.div_euclid(DAY_MS)), ms.rem_euclid(DAY_MS));
    let (seconds, ms) = (of_day / 1000, of_day % 1000);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z")
}
