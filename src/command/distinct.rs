//! `distinct`: the distinct values at a path.

// Loaded later.

use std::rc::Rc;

use super::find::{globals_of, target};
use super::reply::Reply;
use super::request::Request;
use crate::engine::{Defaults, Engine};
use crate::error::Result;
use crate::query::{Distinct, FindCommand};
use crate::value::{DocWriter, Path, Value};

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    let (user, raw) = target(request.collection()?);
    let globals = globals_of(engine, request)?;
    let options = |defaults: Defaults<'_>| Ok(FindCommand::of_distinct(request.doc(), &globals(defaults))?.0.into());
    // An invalid path is refused together with the other options.
    let key = request.doc().get("key").and_then(Value::as_str).unwrap_or_default();
    let path = Path::parse(key)?;
    let field = path.first().to_owned();
    let mut distinct = Distinct::new(path);
    engine.drain_values(user, raw, &field, &options, &mut distinct).await?;
    let mut reply = DocWriter::new();
    reply.begin_array("values");
    for (at, value) in distinct.into_values().iter().enumerate() {
        reply.value(&at.to_string(), value.view());
    }
    reply.end();
    Ok(Reply::ok(reply))
}
