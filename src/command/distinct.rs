//! `distinct`: the different values at a path.

use std::rc::Rc;

use bson::RawDocumentBuf;

use super::find::target;
use super::{Reply, Request};
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::query::{Distinct, DistinctOptions};
use crate::value::DocWriter;

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    let (user, raw) = target(request.collection()?);
    let (options, key) = DistinctOptions::parse(request.doc(), &engine.globals())?.into_find();
    let mut distinct = Distinct::new(key);
    engine.drain(user, raw, options, &mut distinct).await?;
    let mut reply = DocWriter::new();
    reply.begin_array("values");
    for (at, value) in distinct.into_values().iter().enumerate() {
        reply.value(&at.to_string(), value.view());
    }
    reply.end();
    let reply = RawDocumentBuf::from_bytes(reply.finish().into_bytes());
    // The crate's own words for what cannot happen would be 3 KB of code.
    Ok(Reply::ok(reply.map_err(|_| Error::internal("The values do not make a document"))?))
}
