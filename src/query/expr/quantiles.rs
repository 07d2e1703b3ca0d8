//! `$median` and `$percentile` of the numbers in an array. They are exact with every method: `approximate` equals
//! `discrete`.
//!
//! Source: mongodb/mongo src/mongo/db/pipeline/accumulator_percentile.cpp, percentile_algo_discrete.cpp,
//! percentile_algo_continuous.cpp.

// Loaded later.

use super::datum::{ArrayWriter, Datum};
use super::evaluate::Scope;
use super::operators::{Binds, Names, Op, Operator, Syntax, lazy, names};
use super::tree::Expr;
use crate::error::ErrorCode::*;
use crate::error::{Error, Result};
use crate::listed::IntoList;
use crate::value::{Number, Value};

static MEDIAN: Names =
    names(&["input", "method"], 2, 0, Binds::Nothing, &[Location7436201, IDLUnknownField, IDLFailedToParse]);
static PERCENTILE: Names =
    names(&["input", "method", "p"], 3, 0, Binds::Nothing, &[Location7436200, IDLUnknownField, IDLFailedToParse]);

pub(super) static TABLE: &[Operator] = &[
    lazy(Op::More, "$median", Syntax::Named(&MEDIAN), quantiles),
    lazy(Op::More, "$percentile", Syntax::Named(&PERCENTILE), quantiles),
];

/// The quantile at `share` of `count` numbers, interpolated if `is_continuous`; `None` without numbers. `at` gives the number
/// at a place of the sorted numbers.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub fn quantile(count: usize, at: &dyn Fn(usize) -> Option<f64>, share: f64, is_continuous: bool) -> Option<f64> {
    // Casting a negative number gives zero.
    let rank = rank_of(count, share, is_continuous);
    let below = at(rank as usize)?;
    // Nothing lies between infinite neighbours.
    if rank.fract() > 0.0
        && below > f64::NEG_INFINITY
        && let Some(above) = at(rank as usize + 1)
    {
        return Some(if above < f64::INFINITY { between(below, above, rank.fract()) } else { f64::INFINITY });
    }
    Some(below)
}

/// The place of a quantile among so many sorted numbers; with a fraction if it lies between two.
#[allow(clippy::cast_precision_loss)]
fn rank_of(count: usize, share: f64, is_continuous: bool) -> f64 {
    let count = count as f64;
    if is_continuous { share * (count - 1.0) } else { (count * share).ceil() - 1.0 }
}

/// The value `share` of the way from `below` to `above`, kept between the two. Each term is rounded by itself, so that
/// without bounds half of 5e-324 plus half of 5e-324 would be 0.
fn between(below: f64, above: f64, share: f64) -> f64 {
    let mean = (1.0 - share) * below + share * above;
    // Unlike `min` and `max`, comparisons determine which of two zeros is returned.
    if mean < below {
        below
    } else if mean > above {
        above
    } else {
        mean
    }
}

/// The percentiles in `p`: numbers from 0 to 1.
///
/// Errors: 7750300 if it is not constant; 7750301 to 7750303 for other values.
pub fn percentiles_of(p: &Expr) -> Result<Vec<f64>> {
    let refuse = |code| Error::new(code, "The 'p' of $percentile must be an array of constant numbers from 0 to 1");
    let Expr::Constant(Some(array)) = p else { return Err(refuse(Location7750300)) };
    let Some(array) = array.view().as_array().filter(|array| !array.is_empty()) else {
        return Err(refuse(Location7750301));
    };
    let each = array.iter().map(|(_, p)| match Number::of(p).map(Number::near_double) {
        None => Err(refuse(Location7750302)),
        Some(p) if (0.0..=1.0).contains(&p) => Ok(p),
        Some(_) => Err(refuse(Location7750303)),
    });
    each.try_listed()
}

/// True for `continuous`.
///
/// Errors: `TypeMismatch` if it is not a string; `BadValue` for an unknown method.
pub fn is_continuous(method: Option<Value<'_>>) -> Result<bool> {
    let method = method.and_then(Value::as_str);
    match method.ok_or_else(|| Error::type_mismatch("'method' must be a string"))? {
        "continuous" => Ok(true),
        "approximate" | "discrete" => Ok(false),
        _ => Err(Error::bad_value("'method' must be approximate, discrete or continuous")),
    }
}

fn quantiles<'s>(arguments: &'s [Expr], scope: &Scope<'s>) -> Result<Datum<'s>> {
    let [input, method, p @ ..] = arguments else { return Ok(Datum::NULL) };
    let Expr::Constant(Some(method)) = method else { return Err(Error::type_mismatch("'method' must be constant")) };
    let is_continuous = is_continuous(Some(method.view()))?;
    let wanted = p.first().map(percentiles_of).transpose()?;
    let input = input.evaluate(scope)?;
    let number = |value| Number::of(value).map(Number::near_double);
    let mut sorted: Vec<f64> = match input.view().and_then(Value::as_array) {
        Some(array) => array.iter().filter_map(|(_, value)| number(value)).filter(|x| !x.is_nan()).listed(),
        None => input.view().and_then(number).into_iter().listed(),
    };
    sorted.sort_unstable_by(f64::total_cmp);
    let at = |share| {
        quantile(sorted.len(), &|place| sorted.get(place).copied(), share, is_continuous)
            .map_or(Datum::NULL, Datum::double)
    };
    let Some(wanted) = wanted else { return Ok(at(0.5)) };
    let mut found = ArrayWriter::new();
    wanted.into_iter().for_each(|share| found.push(at(share).view()));
    Ok(found.finish())
}
