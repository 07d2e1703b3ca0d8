//! `count`: measurements, not buckets.

use std::rc::Rc;

use super::find::{globals_of, target};
use super::reply::Reply;
use super::request::Request;
use crate::engine::{Defaults, Engine};
use crate::error::Result;
use crate::query::{Count, FindCommand, Query};
use crate::value::DocWriter;

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    let (user, raw) = target(request.collection()?);
    let globals = globals_of(engine, request)?;
    let options = |defaults: Defaults<'_>| FindCommand::of_count(request.doc(), &globals(defaults)).map(Query::from);
    let mut count = Count::default();
    engine.drain(user, raw, &options, &mut count).await?;
    let n = count.count();
    // An int32 if it fits, as on the server.
    let mut reply = DocWriter::new();
    match i32::try_from(n) {
        Ok(n) => reply.int32("n", n),
        Err(_) => reply.int64("n", i64::try_from(n).unwrap_or(i64::MAX)),
    };
    Ok(Reply::ok(reply))
}
