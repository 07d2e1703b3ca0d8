//! Regular expressions: `$regexMatch`, `$regexFind`, `$regexFindAll`.

// Loaded later.

use std::rc::Rc;

use super::arguments::Want::*;
use super::arguments::failure;
use super::datum::{ArrayWriter, Datum, container, is_nullish};
use super::globals::Globals;
use super::operators::{Asking, Binds, Names, Nulls, Op, Operator, Wants, asking, names, with_nulls};
use super::regex::Regex;
use crate::env::Match;
use crate::error::ErrorCode::*;
use crate::error::Result;
use crate::value::{DocWriter, Kind, Value};

static REGEX: Names = names(
    &["input", "regex", "options"],
    2,
    0,
    Binds::Nothing,
    &[Location51103, Location31024, Location31022, Location31023],
);

/// So many compiled regular expressions are kept.
const KEPT_MAX: usize = 8;

const ARGUMENTS: Wants = &[(Any, InternalError), (Any, InternalError), (Any, InternalError)];

pub(super) static TABLE: &[Operator] = &[
    pattern("$regexMatch", |operator, values, globals| {
        let asked = asked(operator, values, globals)?;
        Ok(Datum::bool(asked.is_some_and(|(regex, input)| regex.is_match(input))))
    }),
    pattern("$regexFind", |operator, values, globals| {
        let asked = asked(operator, values, globals)?;
        let found = asked.map_or_else(Vec::new, |(regex, input)| regex.find(input, false));
        Ok(found.first().map_or(Datum::NULL, object))
    }),
    pattern("$regexFindAll", |operator, values, globals| {
        let mut all = ArrayWriter::new();
        if let Some((regex, input)) = asked(operator, values, globals)? {
            for found in regex.find(input, true) {
                all.push(object(&found).view());
            }
        }
        Ok(all.finish())
    }),
];

const fn pattern(name: &'static str, run: Asking) -> Operator {
    with_nulls(Nulls::Values, asking(Op::More, name, &REGEX, ARGUMENTS, run))
}

fn object(found: &Match) -> Datum<'static> {
    let [whole, groups @ ..] = found.groups.as_slice() else { return Datum::NULL };
    let mut writer = DocWriter::new();
    writer.string("match", whole.as_deref().unwrap_or_default());
    writer.value("idx", Datum::count(found.at).view().unwrap_or(Value::NULL));
    let mut captures = ArrayWriter::new();
    for group in groups {
        captures.push(group.as_deref().map(Datum::string).as_ref().and_then(Datum::view));
    }
    writer.value("captures", captures.finish().view().unwrap_or(Value::NULL));
    container(Kind::Object, writer)
}

/// The regular expression, which is compiled once for all rows that have the same.
///
/// Errors: those of `Regex::new`.
fn compiled(pattern: &str, options: &str, globals: &Globals) -> Result<Rc<Regex>> {
    let mut kept = globals.regexes().borrow_mut();
    if let Some(known) = kept.iter().find(|known| known.is_of(pattern, options)) {
        return Ok(Rc::clone(known));
    }
    let regex = Rc::new(Regex::new(pattern, options, globals)?);
    if kept.len() == KEPT_MAX {
        kept.clear();
    }
    kept.push(Rc::clone(&regex));
    Ok(regex)
}

/// The regular expression and the string to search; `None` if one of them is null.
fn asked<'v>(
    operator: &Operator,
    values: &[Option<Value<'v>>],
    globals: &Globals,
) -> Result<Option<(Rc<Regex>, &'v str)>> {
    let [input, regex, options] = values else { return Ok(None) };
    let name = operator.name();
    let refuse = |code, problem: &str| Err(failure(code, name, problem));
    let wanted = match *options {
        found if is_nullish(found) => None,
        Some(found) if found.as_str().is_some() => found.as_str(),
        _ => return refuse(Location51106, "needs a string as its options"),
    };
    let (pattern, flags) = match *regex {
        found if is_nullish(found) => return Ok(None),
        Some(found) if found.as_regex().is_some() => found.as_regex().unwrap_or_default(),
        Some(found) if found.as_str().is_some() => (found.as_str().unwrap_or_default(), ""),
        _ => return refuse(Location51105, "needs a regular expression or a string as its regex"),
    };
    if !flags.is_empty() && wanted.is_some() {
        return refuse(Location51107, "has options both in its regex and in 'options'");
    }
    let regex = compiled(pattern, wanted.unwrap_or(flags), globals)?;
    match *input {
        found if is_nullish(found) => Ok(None),
        Some(found) => match found.as_str() {
            Some(text) => Ok(Some((regex, text))),
            None => refuse(Location51104, "needs a string as its input"),
        },
        None => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use bson::{RawBson, rawbson};

    use super::super::tests::check;

    #[test]
    fn each_row_is_matched_with_its_own_pattern_and_options() {
        // More patterns than are kept, each of them twice.
        let matches = |options: &str| {
            let number = rawbson!({ "$toString": { "$mod": ["$$this", 12] } });
            let pattern = rawbson!({ "$concat": ["^X", number, { "$literal": "$" }] });
            let matched = rawbson!({ "$regexMatch": { "input": "x7", "regex": pattern, "options": options } });
            rawbson!({ "$map": { "input": { "$range": [0, 24] }, "in": matched } })
        };
        let expected =
            |is_match: &dyn Fn(i32) -> bool| RawBson::Array((0..24).map(is_match).map(RawBson::from).collect());
        let both = RawBson::Array([expected(&|_| false), expected(&|n| n % 12 == 7)].into_iter().collect());
        check(rawbson!([matches(""), matches("i")]), both);
    }
}
