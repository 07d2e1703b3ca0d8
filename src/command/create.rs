//! `create`: a time-series collection.

use std::rc::Rc;

use super::{Reply, Request};
use crate::bucket::CollectionOptions;
use crate::engine::Engine;
use crate::error::Result;
use crate::value::DocWriter;

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    let options = CollectionOptions::parse_create(request.doc(), engine.now_ms())?;
    engine.create_collection(request.collection()?, options).await?;
    Ok(Reply::ok(DocWriter::new()))
}
