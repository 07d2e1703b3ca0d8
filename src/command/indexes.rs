//! `createIndexes`, `listIndexes`, `dropIndexes`.

// Loaded later.

use std::rc::Rc;

use super::find::{listing, target};
use super::reply::{Reply, int};
use super::request::{Request, missing_field, wrong_type};
use crate::block::DocPivot;
use crate::engine::{Dropped, Engine};
use crate::error::{Error, Result};
use crate::listed::IntoList;
use crate::value::{DocWriter, Value};

pub async fn create(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&["indexes", "commitQuorum", "ignoreUnknownIndexOptions"])?;
    let specs = request.array("indexes")?.ok_or_else(|| missing_field("createIndexes", "indexes"))?;
    let doc = |spec: Value<'_>| wrong_type("createIndexes", "indexes", "an array of objects", spec);
    let specs = specs.map(|spec| spec.as_doc().ok_or_else(|| doc(spec))).try_listed()?;
    if specs.is_empty() {
        return Err(Error::bad_value("Must specify at least one index to create"));
    }
    let (name, raw) = target(request.collection()?);
    let (before, after) = engine.create_indexes(name, &specs, raw).await?;
    let mut reply = DocWriter::new();
    reply.int32("numIndexesBefore", int(before)).int32("numIndexesAfter", int(after));
    reply.bool("createdCollectionAutomatically", false);
    if before == after {
        reply.string("note", "all indexes already exist");
    }
    Ok(Reply::ok(reply))
}

pub async fn list(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&["cursor"])?;
    let name = request.collection()?;
    let (user, raw) = target(name);
    let collection = engine.existing_collection(user).await?;
    engine.end_abandoned_builds(&collection).await?;
    let mut pivot = DocPivot::new();
    let entry = collection.entry();
    for index in entry.indexes.iter().filter(|index| index.spec.ready) {
        let options = &entry.options.timeseries;
        let shown = if raw { index.shown_raw(options) } else { index.spec.shown_in(options) };
        pivot.push(shown.view())?;
    }
    listing(engine, request, name, pivot.finish())
}

pub async fn drop(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&["index"])?;
    let which = request.field("index").ok_or_else(|| missing_field("dropIndexes", "index"))?;
    let wrong = |found: Value<'_>| wrong_type("dropIndexes", "index", "a name, names or a key", found);
    let (name, raw) = target(request.collection()?);
    let dropped = match (which.as_str(), which.as_array(), which.as_doc()) {
        (Some("*"), ..) => Dropped::All,
        (Some(name), ..) => Dropped::Names(vec![name]),
        (_, Some(names), _) => {
            Dropped::Names(names.iter().map(|(_, name)| name.as_str().ok_or_else(|| wrong(name))).try_listed()?)
        }
        (_, _, Some(key)) if raw => Dropped::BucketKey(key),
        (_, _, Some(key)) => Dropped::Key(key),
        _ => return Err(wrong(which)),
    };
    let before = engine.drop_indexes(name, &dropped).await?;
    let mut reply = DocWriter::new();
    reply.int32("nIndexesWas", int(before));
    if matches!(dropped, Dropped::All) {
        reply.string("msg", "non-_id indexes dropped for collection");
    }
    Ok(Reply::ok(reply))
}
