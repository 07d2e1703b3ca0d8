//! `create`: a time-series collection.

use std::rc::Rc;

use super::find::target;
use super::reply::Reply;
use super::request::Request;
use crate::bucket::CollectionOptions;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::value::DocWriter;

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    let name = request.collection()?;
    if target(name).1 && request.field("timeseries").is_none() {
        return Err(Error::new(ErrorCode::IllegalOperation, ["'", name, "' can only hold buckets"].concat()));
    }
    let options = CollectionOptions::parse_create(request.doc(), engine.now_ms())?;
    engine.create_collection(name, options).await?;
    Ok(Reply::ok(DocWriter::new()))
}
