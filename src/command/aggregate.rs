//! `aggregate`.

// Loaded later.

use std::rc::Rc;

use super::find::{cursor, globals_of, target};
use super::{Reply, Request, explain, out};
use crate::engine::{Defaults, Engine};
use crate::error::{Error, ErrorCode, Result};
use crate::query::{Aggregation, DocumentSource, Globals, Out};
use crate::value::Value;

/// What stands for a collection where a pipeline needs none.
const NO_COLLECTION: &str = "$cmd.aggregate";

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    if request.bool("explain")? == Some(true) {
        return explain::show(engine, request, None).await;
    }
    let name = collection_of(request)?;
    let (user, raw) = target(name);
    let globals = globals_of(engine, request)?;
    let pipeline = |defaults: Defaults<'_>| parse(request, &globals(defaults), defaults.time_field, false);
    if let Some(out) = out_of(engine, request)? {
        return out::run(engine, (user, raw), &pipeline, &out).await;
    }
    let batch = engine.aggregate(user, raw, &pipeline).await?;
    let reply = cursor(engine, name, batch.cursor_id, "firstBatch");
    Ok(Reply::ok(reply).with_batch(batch.rows))
}

/// Where the rows go, where they are written.
///
/// Errors: as `parse`.
fn out_of(engine: &Engine, request: &Request<'_>) -> Result<Option<Out>> {
    let last = request.field("pipeline").and_then(Value::as_array).and_then(|stages| stages.iter().last());
    match last.and_then(|(_, stage)| stage.as_doc()?.get("$out")) {
        Some(_) => Ok(parse(request, &engine.globals(), "", false)?.out),
        None => Ok(None),
    }
}

/// The collection that a pipeline reads: `{aggregate: 1}` is for one that reads none.
///
/// Errors: `InvalidNamespace`.
pub fn collection_of<'a>(request: &Request<'a>) -> Result<&'a str> {
    if request.target_integer() == Some(1) { Ok(NO_COLLECTION) } else { request.collection() }
}

/// The pipeline of a command, as `Aggregation::of_command`.
///
/// Errors: those, and `InvalidNamespace` where it needs a collection and has none, or has one and needs none.
pub fn parse(request: &Request<'_>, globals: &Globals, time_field: &str, explained: bool) -> Result<Aggregation> {
    let parsed = Aggregation::of_command(request.doc(), globals, time_field, explained)?;
    let needs_none = parsed.source.as_ref().is_some_and(DocumentSource::is_independent);
    if needs_none != (collection_of(request)? == NO_COLLECTION) {
        let message = "{aggregate: 1} is for pipelines that begin with $documents, and these are for nothing else";
        return Err(Error::new(ErrorCode::InvalidNamespace, message));
    }
    Ok(parsed)
}
