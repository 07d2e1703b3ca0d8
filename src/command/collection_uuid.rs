//! `collectionUUID`, an argument of every command: the collection that the caller takes the name for.

// Loaded later.

use std::rc::Rc;

use super::find::target;
use super::reply::Reply;
use super::request::{Request, wrong_type};
use crate::bucket::BUCKETS_PREFIX;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::value::Value;

/// The reply of a command whose name is not that of the collection with this UUID; `None` if it is.
///
/// As on the server, only the collection of buckets has a UUID: the name of measurements is that of a view.
///
/// Errors: `TypeMismatch` if it is no UUID; those of storage.
pub async fn mismatch(engine: &Rc<Engine>, request: &Request<'_>, wanted: Value<'_>) -> Result<Option<Reply>> {
    let uuid = wanted.as_binary().filter(|(subtype, bytes)| *subtype == 4 && bytes.len() == 16);
    let (_, uuid) = uuid.ok_or_else(|| wrong_type(request.name(), "collectionUUID", "a UUID", wanted))?;
    let expected = request.target().as_str().unwrap_or_default();
    let collections = engine.list_collections().await?;
    let actual = collections.iter().find(|(_, entry)| entry.uuid == uuid).map(|(name, _)| name);
    let (user, raw) = target(expected);
    if raw && actual.is_some_and(|actual| actual == user) {
        return Ok(None);
    }
    let message = "Collection UUID does not match that specified";
    let actual = actual.map(|name| [BUCKETS_PREFIX, name].concat());
    Ok(Some(Reply::with_details(&Error::new(ErrorCode::CollectionUUIDMismatch, message), &mut |reply| {
        reply.string("db", engine.name()).binary("collectionUUID", 4, uuid).string("expectedCollection", expected);
        match &actual {
            Some(name) => reply.string("actualCollection", name),
            None => reply.value("actualCollection", Value::NULL),
        };
    })))
}
