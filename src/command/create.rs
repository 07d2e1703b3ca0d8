//! `create`: a time-series collection.

use std::rc::Rc;

use super::create_again;
use super::find::target;
use super::reply::Reply;
use super::request::Request;
use crate::bucket::CollectionOptions;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::storage::LocalFuture;
use crate::value::DocWriter;

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    let name = request.collection()?;
    let (user, raw) = target(name);
    if raw && request.field("timeseries").is_none() {
        return Err(Error::new(ErrorCode::IllegalOperation, ["'", name, "' can only hold buckets"].concat()));
    }
    let options = CollectionOptions::parse_create(request.doc(), engine.now_ms())?;
    let modify = match request.string("ifExists")? {
        None => false,
        Some("modify") => true,
        Some(_) => return Err(Error::bad_value("'ifExists' must be \"modify\"")),
    };
    // A collection and its buckets are one here: creating the buckets creates both.
    let name = user;
    if let Some(there) = engine.create_collection(name, options.clone()).await? {
        engine.complete().await?;
        // Loaded by now: awaited above.
        let modifying: LocalFuture<'_, ()> =
            Box::pin(create_again::modify_or_refuse(engine, name, &there, options, modify));
        modifying.await?;
    }
    Ok(Reply::ok(DocWriter::new()))
}
