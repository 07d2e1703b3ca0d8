//! `find`, `getMore`, `killCursors`, `killOp`.

use std::rc::Rc;

use super::reply::Reply;
use super::request::{Request, wrong_type};
use crate::block::Block;
use crate::bucket::BUCKETS_PREFIX;
use crate::engine::{Defaults, Engine};
use crate::error::{Error, Result};
use crate::limits::DECIMAL_OPERATORS;
use crate::listed::IntoList;
use crate::query::arguments::{count, object};
use crate::query::{Filter, FindCommand, Globals, Query};
use crate::value::{DocWriter, Value};

/// Splits a name into the user's collection and whether its raw buckets are meant.
pub fn target(name: &str) -> (&str, bool) {
    name.strip_prefix(BUCKETS_PREFIX).map_or((name, false), |user| (user, true))
}

/// A filter argument; a missing one matches everything.
pub fn parse_filter(engine: &Engine, filter: Option<Value<'_>>, command: &str, field: &str) -> Result<Filter> {
    match filter {
        None => Ok(Filter::all()),
        Some(value) => {
            let filter = value.as_doc().ok_or_else(|| wrong_type(command, field, "an object", value))?;
            Filter::parse(filter, &engine.globals())
        }
    }
}

/// What the filter of a command refers to, given the default collation of the collection.
///
/// Errors: those of collations.
pub fn globals_of(engine: &Engine, request: &Request<'_>) -> Result<impl Fn(Defaults<'_>) -> Globals + use<>> {
    let (globals, collation) = (engine.globals(), engine.collation(request.field("collation"))?);
    Ok(move |defaults: Defaults<'_>| globals.with_collation(collation.as_ref().unwrap_or(defaults.collation)))
}

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    let name = request.collection()?;
    let (user, raw) = target(name);
    let globals = globals_of(engine, request)?;
    let batch = engine
        .find(user, raw, &|defaults| FindCommand::parse(request.doc(), &globals(defaults)).map(Query::from))
        .await?;
    if batch.cursor_id != 0 && request.doc().mentions(&DECIMAL_OPERATORS) {
        // The first decimal may come in a later batch, which cannot be requested again. If the second half cannot be
        // loaded, decimals may still never come.
        engine.globals().env().complete().await.ok();
    }
    let reply = cursor(engine, name, batch.cursor_id, "firstBatch");
    Ok(Reply::ok(reply).with_batch(batch.rows))
}

pub async fn get_more(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&["collection", "batchSize"])?;
    if request.field("maxTimeMS").is_some() {
        return Err(Error::bad_value("cannot set maxTimeMS on getMore command for a non-awaitData cursor"));
    }
    let id =
        request.target_integer().ok_or_else(|| wrong_type("getMore", "getMore", "an integer", request.target()))?;
    let name = request.string("collection")?.ok_or_else(|| super::request::missing_field("getMore", "collection"))?;
    let batch_size = match request.field("batchSize").map(|value| count("batchSize", value)).transpose()? {
        None | Some(0) => usize::MAX,
        Some(n) => usize::try_from(n).unwrap_or(usize::MAX),
    };
    let batch = engine.get_more(id, name, batch_size).await?;
    let reply = cursor(engine, name, batch.cursor_id, "nextBatch");
    Ok(Reply::ok(reply).with_batch(batch.rows))
}

pub fn kill_cursors(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&["cursors"])?;
    let name = request.collection()?;
    let ids: Vec<i64> = match request.array("cursors")? {
        None => return Err(super::request::missing_field("killCursors", "cursors")),
        Some(values) => values
            .map(|v| v.as_integer().ok_or_else(|| wrong_type("killCursors", "cursors", "an array of integers", v)))
            .try_listed()?,
    };
    let report = engine.kill_cursors(name, &ids);
    let mut reply = DocWriter::new();
    let lists: [(&str, &[i64]); 4] = [
        ("cursorsKilled", &report.killed),
        ("cursorsNotFound", &report.not_found),
        ("cursorsAlive", &[]),
        ("cursorsUnknown", &[]),
    ];
    for (name, ids) in lists {
        reply.begin_array(name);
        for (place, id) in ids.iter().enumerate() {
            reply.int64(&place.to_string(), *id);
        }
        reply.end();
    }
    Ok(Reply::ok(reply))
}

/// `{killOp: 1, op: key}`: ends the commands with this `opKey` at their next turn. As on the server, it does not matter
/// whether there are any.
pub fn kill_op(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&["op"])?;
    engine.kill(request.integer("op")?.ok_or_else(|| super::request::missing_field("killOp", "op"))?);
    Ok(Reply::ok(DocWriter::new()))
}

/// The first batch of rows that are all there, as long as `cursor.batchSize` says.
///
/// Errors: `TypeMismatch`; 51024 for a negative size; 40415 for another option of a cursor.
pub fn listing(engine: &Rc<Engine>, request: &Request<'_>, name: &str, rows: Block) -> Result<Reply> {
    let mut batch_size = usize::MAX;
    if let Some(given) = request.field("cursor") {
        for (name, value) in object("cursor", given)? {
            match name {
                "batchSize" => batch_size = usize::try_from(count(name, value)?).unwrap_or(usize::MAX),
                _ => return Err(Error::unknown_field(&[request.name(), ".cursor"].concat(), name)),
            }
        }
    }
    let batch = engine.list(name, rows, batch_size);
    Ok(Reply::ok(cursor(engine, name, batch.cursor_id, "firstBatch")).with_batch(batch.rows))
}

/// A reply with `cursor`, whose `batch` is empty: the rows travel beside the document.
pub fn cursor(engine: &Engine, name: &str, id: i64, batch: &str) -> DocWriter {
    let mut reply = DocWriter::with_capacity(128);
    reply.begin_doc("cursor").int64("id", id).string("ns", &[engine.name(), name].join("."));
    reply.begin_array(batch).end().end();
    reply
}
