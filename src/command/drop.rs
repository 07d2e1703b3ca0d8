//! `drop` and `dropDatabase`.

use std::rc::Rc;

use bson::rawdoc;

use super::{Reply, Request};
use crate::engine::Engine;
use crate::error::Result;

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&[])?;
    let name = request.collection()?;
    // The server answers ok for an absent collection too, since 7.0; only then without `ns`.
    let existed = engine.drop_collection(name).await?;
    Ok(Reply::ok(if existed {
        rawdoc! { "ns": format!("{}.{name}", engine.name()) }
    } else {
        rawdoc! {}
    }))
}

pub async fn run_database(engine: &Rc<Engine>) -> Result<Reply> {
    for (name, _) in engine.list_collections().await? {
        engine.drop_collection(&name).await?;
    }
    Ok(Reply::ok(rawdoc! { "dropped": engine.name() }))
}
