//! `collMod`: changes the options of a collection.

// Loaded later.

use std::rc::Rc;

use super::find::target;
use super::reply::Reply;
use super::request::{Request, wrong_type};
use crate::engine::{CollectionEntry, Dropped, Engine};
use crate::error::{Error, ErrorCode, Result};
use crate::limits::TTL_SECONDS_MAX;
use crate::value::{DocWriter, Value};

/// Whether buckets of several types at one path may be stored as such.
const MIXED: &str = "timeseriesBucketsMayHaveMixedSchemaData";
/// Options that the name of the buckets does not have.
const OF_MEASUREMENTS: [&str; 4] = ["timeseries", "expireAfterSeconds", "maxBytes", "dedupe"];

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    if let Some(index) = request.field("index") {
        return change_index(engine, request, index).await;
    }
    let (name, raw) = target(request.collection()?);
    let mixed = request.bool(MIXED)?;
    if mixed.is_some() {
        request.allow_fields(&[MIXED]).map_err(|error| Error::invalid_options(error.into_message()))?;
    } else if raw && let Some(option) = OF_MEASUREMENTS.iter().find(|option| request.field(option).is_some()) {
        let message = ["'", option, "' is changed by the name of the collection, not by that of its buckets"].concat();
        return Err(Error::new(ErrorCode::InvalidNamespace, message));
    }
    let collection = engine.existing_collection(name).await?;
    if request.field("dedupe").is_some() {
        engine.change_dedupe(&collection, request.doc()).await?;
        return Ok(Reply::ok(DocWriter::new()));
    }
    let mut change = |entry: &mut CollectionEntry, _: &mut _| {
        if let Some(mixed) = mixed {
            return Ok(std::mem::replace(&mut entry.may_be_mixed, mixed) != mixed);
        }
        let new = entry.options.modified(request.doc(), engine.now_ms())?;
        let changes = new != entry.options;
        entry.options = new;
        Ok(changes)
    };
    match collection.dedupes() && request.field("timeseries").is_some() {
        true => engine.change_when_folded(&collection, &mut change).await?,
        false => engine.change_entry(&collection, &mut change).await?,
    }
    Ok(Reply::ok(DocWriter::new()))
}

/// `{index: {name | keyPattern, hidden, expireAfterSeconds}}`, which cannot be combined with other options.
async fn change_index(engine: &Rc<Engine>, request: &Request<'_>, index: Value<'_>) -> Result<Reply> {
    request.allow_fields(&["index"]).map_err(|error| Error::invalid_options(error.into_message()))?;
    let index = index.as_doc().ok_or_else(|| wrong_type("collMod", "index", "an object", index))?;
    let (mut hidden, mut seconds, mut which) = (None, None, None);
    let (collection, raw) = target(request.collection()?);
    let key_of = if raw { Dropped::BucketKey } else { Dropped::Key };
    for (name, value) in index {
        if matches!(name, "name" | "keyPattern") && which.is_some() {
            return Err(Error::invalid_options("Give either the 'name' or the 'keyPattern' of the index, not both"));
        }
        let wrong = |wanted: &str| wrong_type("collMod.index", name, wanted, value);
        match name {
            "name" => which = Some(Dropped::Names(vec![value.as_str().ok_or_else(|| wrong("a string"))?])),
            "keyPattern" => which = Some(key_of(value.as_doc().ok_or_else(|| wrong("an object"))?)),
            "hidden" => hidden = Some(value.as_truthy().ok_or_else(|| wrong("a bool"))?),
            "expireAfterSeconds" => seconds = Some(value.as_integer().ok_or_else(|| wrong("an integer"))?),
            "unique" if value.as_truthy() == Some(false) => {
                return Err(Error::bad_value("The option 'unique' of an index cannot be changed to false"));
            }
            _ => {
                return Err(Error::invalid_options(["The option '", name, "' of an index cannot be changed"].concat()));
            }
        }
    }
    let Some(which) = which.filter(|_| hidden.is_some() || seconds.is_some()) else {
        return Err(Error::invalid_options(
            "To change an index, give its 'name' or 'keyPattern' and the options to change",
        ));
    };
    if seconds.is_some_and(|seconds| !(0..=TTL_SECONDS_MAX).contains(&seconds)) {
        return Err(Error::invalid_options("'expireAfterSeconds' must be from 0 to 2147483647"));
    }
    let before = engine.change_index(collection, &which, hidden, seconds).await?;
    let mut reply = DocWriter::new();
    if let Some(hidden) = hidden {
        reply.bool("hidden_old", before.hidden).bool("hidden_new", hidden);
    }
    if let Some(seconds) = seconds {
        reply.int64("expireAfterSeconds_old", before.expire_after_seconds.unwrap_or_default());
        reply.int64("expireAfterSeconds_new", seconds);
    }
    Ok(Reply::ok(reply))
}
