//! `aggregate`.

use std::rc::Rc;

use super::find::{cursor, globals_of, target};
use super::{Reply, Request, explain};
use crate::engine::{Defaults, Engine};
use crate::error::Result;
use crate::query::Aggregation;

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    if request.bool("explain")? == Some(true) {
        return explain::show(engine, request, None).await;
    }
    let name = request.collection()?;
    let (user, raw) = target(name);
    let globals = globals_of(engine, request)?;
    let parse =
        |defaults: Defaults<'_>| Aggregation::of_command(request.doc(), &globals(defaults), defaults.time_field, false);
    let batch = engine.aggregate(user, raw, &parse).await?;
    let reply = cursor(engine, name, batch.cursor_id, "firstBatch");
    Ok(Reply::ok(reply).with_batch(batch.rows))
}
