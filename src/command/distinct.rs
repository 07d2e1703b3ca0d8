//! `distinct`: the different values at a path.

use std::rc::Rc;

use super::find::target;
use super::{Reply, Request};
use crate::engine::Engine;
use crate::error::Result;
use crate::query::{Distinct, FindOptions};
use crate::value::DocWriter;

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    let (user, raw) = target(request.collection()?);
    let (options, key) = FindOptions::of_distinct(request.doc(), &engine.globals())?;
    let mut distinct = Distinct::new(key);
    engine.drain(user, raw, options, &mut distinct).await?;
    let mut reply = DocWriter::new();
    reply.begin_array("values");
    for (at, value) in distinct.into_values().iter().enumerate() {
        reply.value(&at.to_string(), value.view());
    }
    reply.end();
    Ok(Reply::ok(reply))
}
