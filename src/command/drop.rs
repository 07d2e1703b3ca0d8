//! `drop` and `dropDatabase`.

use std::rc::Rc;

use super::find::target;
use super::reply::Reply;
use super::request::Request;
use crate::engine::Engine;
use crate::error::Result;
use crate::value::DocWriter;

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&[])?;
    let name = request.collection()?;
    // The name of the buckets drops both as well. Since 7.0 the server answers ok for an absent collection too, but then without `ns`.
    let existed = engine.drop_collection(target(name).0).await?;
    let mut reply = DocWriter::new();
    if existed {
        reply.string("ns", &format!("{}.{name}", engine.name()));
    }
    Ok(Reply::ok(reply))
}

pub async fn run_database(engine: &Rc<Engine>) -> Result<Reply> {
    for (name, _) in engine.list_collections().await? {
        engine.drop_collection(&name).await?;
    }
    let mut reply = DocWriter::new();
    reply.string("dropped", engine.name());
    Ok(Reply::ok(reply))
}
