//! `liveQuery`, `liveRefresh` and `liveClose`, commands specific to timepail.

// Loaded later.

use std::rc::Rc;

use super::aggregate_arguments::{collection_of, parse};
use super::find::{cursor, target};
use super::reply::Reply;
use super::request::{Request, missing_field, wrong_type};
use crate::block;
use crate::engine::{Defaults, Engine, LiveNews, LiveSpec};
use crate::error::{Error, Result};
use crate::listed::IntoList;
use crate::query::{Aggregation, FindCommand, Globals};
use crate::value::{Doc, DocWriter, Value};

/// What makes the result of a query depend on the time or on chance. A name is preceded by the type of its value, which
/// here is an object or an array; so a field called `sample` is something else.
const VOLATILE: [&str; 6] = ["$$NOW", "$$CLUSTER_TIME", "\x03$rand\0", "\x04$rand\0", "\x03$sample\0", "$sampleRate\0"];

/// `{liveQuery: 1, query: <find or aggregate>}` keeps a query open, and reads nothing yet. `{liveRefresh: id}` gives the
/// result as it is now, or says that the last one still holds. `{liveRefresh: [id, ...]}` does so for many at once. `{liveClose: id}`
/// ends it.
pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    let mut reply = DocWriter::new();
    if request.name() == "liveQuery" {
        request.allow_fields(&["query"])?;
        let opened = engine.open_live(spec_of(engine, request)?).await?;
        reply.int32("id", opened.id).string("mode", if opened.takes_new_rows { "newRows" } else { "fresh" });
        reply.string("why", opened.why);
        return Ok(Reply::ok(reply));
    }
    request.allow_fields(&[])?;
    let name = request.name();
    if let (Some(ids), "liveRefresh") = (request.target().as_array(), name) {
        return refresh_together(engine, ids).await;
    }
    let id = request.target_integer();
    let id = id.ok_or_else(|| wrong_type(name, name, "an integer", request.target()))?;
    if name == "liveClose" {
        engine.close_live(id)?;
        return Ok(Reply::ok(reply));
    }
    let refreshed = engine.refresh_live(id).await?;
    let mut reply = cursor(engine, &refreshed.ns, refreshed.batch.cursor_id, "firstBatch");
    reply.begin_doc("live").bool("changed", refreshed.how != "nothing").string("how", refreshed.how).end();
    Ok(Reply::ok(reply).with_batch(refreshed.batch.rows))
}

/// Brings many live queries up to date, and tells those of which there is news: the block of the first batch and its
/// cursor, or that it has to be asked for by itself. Of the others the last result holds.
async fn refresh_together(engine: &Engine, ids: Doc<'_>) -> Result<Reply> {
    let number = |(_, id): (_, Value<'_>)| {
        id.as_integer().ok_or_else(|| wrong_type("liveRefresh", "liveRefresh", "an array of integers", id))
    };
    let ids: Vec<i64> = ids.iter().map(number).try_listed()?;
    let mut reply = DocWriter::new();
    reply.begin_array("live");
    for (place, LiveNews { id, batch }) in engine.refresh_live_together(&ids).await.iter().enumerate() {
        reply.begin_doc(&place.to_string()).int64("id", *id);
        if let Some((batch, ns)) = batch {
            reply.begin_doc("cursor").int64("id", batch.cursor_id);
            reply.string("ns", &[engine.name(), ".", ns].concat()).end();
            reply.binary("block", 0, &block::encode(&batch.rows));
        }
        reply.end();
    }
    reply.end();
    Ok(Reply::ok(reply))
}

/// The query of `liveQuery`.
fn spec_of(engine: &Rc<Engine>, request: &Request<'_>) -> Result<LiveSpec> {
    let value = request.field("query").ok_or_else(|| missing_field("liveQuery", "query"))?;
    let document = value.as_doc().ok_or_else(|| wrong_type("liveQuery", "query", "an object", value))?;
    let query = Request::new(document)?;
    let (name, is_find) = match query.name() {
        "find" => (query.collection()?, true),
        "aggregate" => (collection_of(&query)?, false),
        other => return Err(Error::bad_value(["A live query is a find or an aggregate, not '", other, "'"].concat())),
    };
    let (name, raw) = target(name);
    let (env, collation) = (Rc::clone(engine.globals().env()), engine.collation(query.field("collation"))?);
    let document = document.to_owned();
    let is_volatile = query.doc().mentions(&VOLATILE);
    let of_command = move |defaults: Defaults<'_>| {
        let globals = Globals::new(&env).with_collation(collation.as_ref().unwrap_or(defaults.collation));
        let query = Request::new(document.view())?;
        if is_find {
            return FindCommand::parse(query.doc(), &globals).map(Aggregation::of_find);
        }
        let parsed = parse(&query, &globals, defaults.time_field, false)?;
        match &parsed.out {
            Some(_) => Err(Error::bad_value("A live query cannot write its result")),
            None => Ok(parsed),
        }
    };
    Ok(LiveSpec { name: name.to_owned(), raw, is_volatile, parse: Box::new(of_command) })
}
