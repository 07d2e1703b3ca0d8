//! `collMod`: other options for a collection that is there.

use std::rc::Rc;

use super::{Reply, Request};
use crate::engine::{CollectionEntry, Engine};
use crate::error::Result;
use crate::value::DocWriter;

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    let collection = engine.existing_collection(request.collection()?).await?;
    let mut change = |entry: &mut CollectionEntry, _: &mut _| {
        let new = entry.options.modified(request.doc(), engine.now_ms())?;
        let changes = new != entry.options;
        entry.options = new;
        Ok(changes)
    };
    engine.change_entry(&collection, &mut change).await?;
    Ok(Reply::ok(DocWriter::new()))
}
