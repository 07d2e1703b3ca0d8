//! `explain`: how a command is executed.

// Loaded later.

use std::rc::Rc;

use super::explain_reply::{multikey_of, reply_of, run_of};
use super::find::{globals_of, target};
use super::reply::Reply;
use super::request::Request;
use super::{aggregate_arguments, explain_lookup, explain_write};
use crate::bucket::BUCKETS_PREFIX;
use crate::engine::{Defaults, Engine};
use crate::error::{Error, ErrorCode, Result};
use crate::listed::IntoList;
use crate::query::{Aggregation, Count, Distinct, Explain, ExplainedGroup, FindCommand, Globals, ShownStage, Sink};
use crate::value::{Collation, DocBuf, OwnedValue};

/// `{explain: command, verbosity}`. With `queryPlanner` the command is only planned; otherwise it runs and its result
/// is discarded.
pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&["verbosity"])?;
    let explained = request.target();
    let command =
        explained.as_doc().ok_or_else(|| super::request::wrong_type("explain", "explain", "an object", explained))?;
    let verbosity = request.string("verbosity")?.unwrap_or("allPlansExecution");
    let all_plans = match verbosity {
        "queryPlanner" => None,
        "executionStats" => Some(false),
        "allPlansExecution" => Some(true),
        _ => {
            let message = format!("Enumeration value '{verbosity}' for field 'explain.verbosity' is not a valid value");
            return Err(Error::bad_value(message));
        }
    };
    show(engine, &Request::new(command)?, all_plans).await
}

/// Explains a command. Without `all_plans` it is only planned. With it, the command runs; if it is true, the rejected
/// plans are shown as well.
pub async fn show(engine: &Rc<Engine>, inner: &Request<'_>, all_plans: Option<bool>) -> Result<Reply> {
    if explain_write::is_write(inner.name()) {
        return explain_write::show(engine, inner, all_plans).await;
    }
    let globals = globals_of(engine, inner)?;
    let nothing = Collation::default();
    let aggregation = match inner.name() {
        "aggregate" => Some(aggregate_arguments::parse(inner, &globals(Defaults::of_nothing(&nothing)), "", true)?),
        _ => None,
    };
    let parse =
        |defaults: Defaults<'_>| aggregate_arguments::parse(inner, &globals(defaults), defaults.time_field, true);
    let options = |defaults: Defaults<'_>| match aggregation {
        Some(_) => Ok(parse(defaults)?.into_query()),
        None => Ok(query(inner, &globals(defaults))?.0.into()),
    };
    let (mut sink, group) = match aggregation {
        Some(_) => (None, None),
        None => query(inner, &globals(Defaults::of_nothing(&nothing)))?.1.unzip(),
    };
    let (name, raw) =
        target(if aggregation.is_some() { aggregate_arguments::collection_of(inner)? } else { inner.collection()? });
    let has_source = aggregation.as_ref().is_some_and(|aggregation| aggregation.source.is_some());
    let begun_ms = engine.now_ms();
    let found = match &mut sink {
        _ if has_source => None,
        _ if all_plans.is_none() => engine.plan(name, raw, &options).await?,
        Some(sink) => engine.drain(name, raw, &options, &mut **sink).await?,
        None if aggregation.is_some() => engine.try_aggregate(name, raw, &parse).await?,
        None => engine.try_find(name, raw, &options).await?,
    };
    let run = run_of(engine, found.as_ref(), begun_ms);
    // A pipeline may run differently once it is known which fields hold dates.
    let aggregation = match (&found, aggregation) {
        (Some(found), Some(_)) => Some(parse(found.collection.defaults(raw))?),
        (_, aggregation) => aggregation,
    };
    let rows_returned = found.as_ref().filter(|_| all_plans.is_some()).map_or(&[][..], |found| &found.rows_returned);
    let entry = found.as_ref().map(|found| found.collection.entry());
    let multikey = multikey_of(engine, found.as_ref().filter(|_| all_plans.is_some())).await?;
    let mut shown = aggregation.as_ref().map_or_else(Vec::new, Aggregation::shown);
    if let Some(aggregation) = aggregation.filter(|_| all_plans.is_some()) {
        explain_lookup::add_reads(engine, &aggregation.others, &mut shown).await?;
    }
    let later = later(shown, rows_returned);
    let explain = Explain {
        namespace: &[engine.name(), ".", if found.is_some() { BUCKETS_PREFIX } else { "" }, name].concat(),
        plan: found.as_ref().zip(entry.as_ref()).map(|(found, entry)| (&found.plan, &entry.options.timeseries)),
        run: all_plans.map(|_| run.unwrap_or_default()),
        all_plans: all_plans == Some(true),
        multikey,
        write: None,
        group,
        has_source,
        later: &later,
    };
    Ok(reply_of(engine, inner, &explain))
}

/// The stages after the find. For several stages of one step, only the output of the last is counted.
fn later(shown: Vec<ShownStage>, rows_returned: &[u64]) -> Vec<(DocBuf, Option<u64>)> {
    let next: Vec<Option<usize>> = shown.iter().skip(1).map(|shown| Some(shown.step)).chain([None]).listed();
    let rows = |step: usize, next: Option<usize>| rows_returned.get(step).copied().filter(|_| next != Some(step));
    shown.into_iter().zip(next).map(|(shown, next)| (shown.stage, rows(shown.step, next))).listed()
}

/// Where the matches go if they are not returned, and how that is shown.
type Into = (Box<dyn Sink>, ExplainedGroup);

/// The find that a command translates to.
///
/// Errors: those of the command; `CommandNotFound` if it cannot be explained.
fn query(inner: &Request<'_>, globals: &Globals) -> Result<(FindCommand, Option<Into>)> {
    let command = inner.doc();
    Ok(match inner.name() {
        "find" => (FindCommand::parse(command, globals)?, None),
        "count" => {
            let options = FindCommand::of_count(command, globals)?;
            (options, Some((Box::new(Count::default()), ("count", "$sum", OwnedValue::int32(1)))))
        }
        "distinct" => {
            let (options, key) = FindCommand::of_distinct(command, globals)?;
            let field = OwnedValue::string(&["$", key.as_str()].concat());
            (options, Some((Box::new(Distinct::new(key)), ("distinct", "$addToSet", field))))
        }
        name => {
            let message = format!("'{name}' is not a command that can be explained");
            return Err(Error::new(ErrorCode::CommandNotFound, message));
        }
    })
}
