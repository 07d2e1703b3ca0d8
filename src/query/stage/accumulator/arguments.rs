//! The arguments of accumulators.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/accumulator_multi.cpp, accumulator_percentile.cpp.

use super::accumulation::Accumulation;
use super::model::Settings;
use super::table::AccumulatorSpec;
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;
use crate::query::expr::{BoundExpr, Expr, Globals, is_continuous, percentiles_of};
use crate::query::sort::SortSpec;
use crate::value::{DocWriter, Kind, OwnedValue, Value};

/// The syntax of an accumulator's argument.
#[derive(Clone, Copy)]
pub(super) enum ArgumentSyntax {
    /// An expression.
    Input,
    /// An array of two expressions.
    Pair,
    /// An empty object.
    Nothing,
    /// An object of arguments.
    Named(&'static RequiredArguments),
}

/// Arguments in an object, all of which are required.
pub(super) struct RequiredArguments {
    /// The code for a value that is not an object.
    not_object: ErrorCode,
    /// The code for unknown arguments.
    unknown: ErrorCode,
    /// Names, with the codes for missing ones.
    required: &'static [(&'static str, ErrorCode)],
}

const INPUT: (&str, ErrorCode) = ("input", ErrorCode::Location5787907);
const N_OF_INPUT: (&str, ErrorCode) = ("n", ErrorCode::Location5787906);
const OUTPUT: (&str, ErrorCode) = ("output", ErrorCode::Location5788004);
const SORT_BY: (&str, ErrorCode) = ("sortBy", ErrorCode::Location5788005);
const REQUIRED: ErrorCode = ErrorCode::IDLFailedToParse;

/// For `$firstN` and `$lastN`.
pub(super) const FIRST_N: RequiredArguments = RequiredArguments {
    not_object: ErrorCode::Location5787801,
    unknown: ErrorCode::Location5787901,
    required: &[N_OF_INPUT, INPUT],
};
/// For `$minN` and `$maxN`.
pub(super) const EXTREMES: RequiredArguments = RequiredArguments { not_object: ErrorCode::Location5787900, ..FIRST_N };
/// For `$top` and `$bottom`.
pub(super) const TOP: RequiredArguments = RequiredArguments {
    not_object: ErrorCode::Location5788001,
    unknown: ErrorCode::Location5788002,
    required: &[OUTPUT, SORT_BY],
};
/// For `$topN` and `$bottomN`.
pub(super) const TOP_N: RequiredArguments =
    RequiredArguments { required: &[("n", ErrorCode::Location5788003), OUTPUT, SORT_BY], ..TOP };
/// For `$median`.
pub(super) const MEDIAN: RequiredArguments = RequiredArguments {
    not_object: ErrorCode::Location7436100,
    unknown: ErrorCode::IDLUnknownField,
    required: &[("input", REQUIRED), ("method", REQUIRED)],
};
/// For `$percentile`.
pub(super) const PERCENTILE: RequiredArguments = RequiredArguments {
    not_object: ErrorCode::Location7429703,
    required: &[("input", REQUIRED), ("method", REQUIRED), ("p", REQUIRED)],
    ..MEDIAN
};

/// Parses `{<operator>: <argument>}` for the field `field` of a `$group`.
///
/// Errors: 15952 for an unknown operator, and those of its arguments.
pub(super) fn parse(field: &str, operator: &str, argument: Value<'_>, globals: &Globals) -> Result<Accumulation> {
    let Some(spec) = AccumulatorSpec::named(operator) else {
        return Err(Error::new(ErrorCode::Location15952, format!("Unknown group operator '{operator}'")));
    };
    let mut made = Accumulation {
        name: field.into(),
        spec,
        input: constant(globals),
        keys: Vec::new(),
        n: None,
        by_one: None,
        settings: Settings { collation: globals.collation().clone(), ..Settings::default() },
    };
    match spec.arguments {
        ArgumentSyntax::Nothing if argument.as_doc().is_some_and(|argument| argument.is_empty()) => {}
        ArgumentSyntax::Nothing => return Err(Error::type_mismatch("$count takes no arguments: write {$count: {}}")),
        ArgumentSyntax::Pair if argument.as_array().is_none_or(|pair| pair.iter().count() != 2) => {
            let message = [operator, " needs an array of two expressions"].concat();
            return Err(Error::new(ErrorCode::FailedToParse, message));
        }
        ArgumentSyntax::Pair => made.input = bound(argument, globals)?,
        ArgumentSyntax::Input => made.input = input(operator, argument, globals)?,
        ArgumentSyntax::Named(named) => made.set(named, argument, globals)?,
    }
    Ok(made)
}

/// The value that a count adds for each row.
fn constant(globals: &Globals) -> BoundExpr {
    BoundExpr::new(Expr::Constant(Some(OwnedValue::int32(1))), globals.clone())
}

fn bound(value: Value<'_>, globals: &Globals) -> Result<BoundExpr> {
    Ok(BoundExpr::new(Expr::parse(value, globals)?, globals.clone()))
}

/// An expression, or an array of one.
fn input(operator: &str, argument: Value<'_>, globals: &Globals) -> Result<BoundExpr> {
    let Some(list) = argument.as_array() else { return bound(argument, globals) };
    let mut items = list.iter();
    match (items.next(), items.next()) {
        (Some((_, only)), None) => bound(only, globals),
        _ => {
            let message = format!("The {operator} accumulator is a unary operator");
            Err(Error::new(ErrorCode::Location40237, message))
        }
    }
}

impl Accumulation {
    fn set(&mut self, named: &RequiredArguments, argument: Value<'_>, globals: &Globals) -> Result<()> {
        let operator = self.spec.name;
        let refuse = |code, what: &str, name: &str| Err(Error::new(code, format!("{operator}: {what}{name}")));
        let Some(doc) = argument.as_doc() else {
            return refuse(named.not_object, "its argument must be an object", "");
        };
        if let Some((name, _)) = doc.iter().find(|(name, _)| named.required.iter().all(|known| known.0 != *name)) {
            return refuse(named.unknown, "unknown argument ", name);
        }
        let mut output = None;
        for (name, code) in named.required {
            let Some(value) = doc.get(name) else { return refuse(*code, "missing argument ", name) };
            match *name {
                "n" => self.n = Some(bound(value, globals)?),
                "output" => output = Some(value),
                "sortBy" if value.as_doc().is_none() => {
                    return refuse(ErrorCode::Location10065, "needs an object as ", name);
                }
                "sortBy" => self.sort(value, output, globals)?,
                "p" => self.settings.percentiles = percentiles_of(&Expr::parse(value, globals)?)?,
                "method" => self.settings.is_continuous = is_continuous(Some(value))?,
                _ => self.input = bound(value, globals)?,
            }
        }
        Ok(())
    }

    fn sort(&mut self, sort: Value<'_>, output: Option<Value<'_>>, globals: &Globals) -> Result<()> {
        let sort = SortSpec::parse(sort, globals.collation())?;
        let output = output.unwrap_or(Value::NULL);
        if let [only] = sort.parts() {
            let mut list = DocWriter::new();
            list.value("0", output);
            let list = list.finish();
            // With several sort keys it would be a list.
            let shown = if self.n.is_some() { Value::new_checked(Kind::Array, list.view().as_bytes()) } else { output };
            self.by_one = Some((only.path.as_str().into(), only.ascending, bound(shown, globals)?));
        }
        let mut keys = DocWriter::new();
        for (place, part) in sort.parts().iter().enumerate() {
            keys.string(&place.to_string(), &["$", part.path.as_str()].concat());
            self.settings.ascending.push(part.ascending);
        }
        let key = |(_, path)| bound(path, globals);
        self.keys = keys.finish().view().iter().map(key).try_listed()?;
        self.input = bound(output, globals)?;
        Ok(())
    }
}
