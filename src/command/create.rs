//! `create`: a time-series collection.

use std::rc::Rc;

use super::{Reply, Request};
use crate::bucket::CollectionOptions;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::value::DocWriter;

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    let options = CollectionOptions::parse_create(request.doc(), engine.now_ms())?;
    if options.collation.is_some() {
        // Strings are compared by bytes so far; answering in another order than was asked for would be worse than a refusal.
        return Err(Error::invalid_options("A collation other than {locale: \"simple\"} is not supported yet"));
    }
    engine.create_collection(request.collection()?, options).await?;
    Ok(Reply::ok(DocWriter::new()))
}
