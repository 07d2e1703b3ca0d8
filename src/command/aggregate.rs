//! `aggregate`.

// Loaded later.

use std::rc::Rc;

use super::aggregate_arguments::{collection_of, parse};
use super::find::{cursor, globals_of, target};
use super::reply::Reply;
use super::request::Request;
use super::{explain, out};
use crate::engine::{Defaults, Engine};
use crate::error::Result;
use crate::query::Out;
use crate::value::Value;

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

/// The target collection, if the pipeline writes its rows.
///
/// Errors: as `parse`.
fn out_of(engine: &Engine, request: &Request<'_>) -> Result<Option<Out>> {
    let last = request.field("pipeline").and_then(Value::as_array).and_then(|stages| stages.iter().last());
    match last.and_then(|(_, stage)| stage.as_doc()?.get("$out")) {
        Some(_) => Ok(parse(request, &engine.globals(), "", false)?.out),
        None => Ok(None),
    }
}
