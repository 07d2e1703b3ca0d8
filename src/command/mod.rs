//! One file per command: parse the document, call the engine, build the reply. Knows no storage.

mod aggregate;
mod aggregate_arguments;
mod coll_mod;
mod coll_stats;
mod collection_uuid;
mod count;
mod create;
mod create_again;
mod distinct;
mod documents;
mod drop;
mod expire;
mod explain;
mod explain_lookup;
mod explain_reply;
mod explain_write;
mod find;
mod find_and_modify;
mod fold;
mod get_parameter;
mod indexes;
mod insert;
mod list_collections;
mod live;
mod out;
mod raw_write;
mod reply;
mod request;
mod server_status;
mod small;
mod statements;
mod strict_times;
mod validate;

use std::rc::Rc;

pub use documents::with_documents;
pub use fold::parse_context;
pub use reply::Reply;

use crate::block;
use crate::engine::Engine;
use crate::error::{ErrorCode, Result};
use crate::limits::{LARGE_PAYLOAD_BYTES, RARE_OPERATORS};
use crate::query::arguments::time_limit;
use crate::storage::LocalFuture;
use crate::value::{Doc, DocWriter, Value};
use request::Request;

/// The commands that run with the first half of the module: those of pages that insert and read.
#[rustfmt::skip]
const COMMON: [&str; 15] = [
    "insert", "find", "getMore", "killCursors", "killOp", "count", "create", "drop", "dropDatabase", "listCollections",
    "foldJournals", "flush", "expire", "maintain", "ping",
];

/// True for a command that runs only after `Env::complete`. Other commands await it themselves if a collection needs it
/// (I36).
pub fn is_rare(command: &[u8]) -> bool {
    // Inserts are recognised first, because they may be long and never need the second half. After the length come the
    // type and the name of the first field.
    if command.get(5..12) == Some(b"insert\0") {
        return false;
    }
    let request = Doc::parse(command).and_then(Request::new);
    // An invalid command gives the same error in either half.
    request.is_ok_and(|request| {
        let name = request.name();
        !COMMON.contains(&name)
            || name != "insert" && (request.doc().mentions(&RARE_OPERATORS) || request.field("collation").is_some())
    })
}

/// True for `getMore`.
pub fn is_get_more(command: &[u8]) -> bool {
    Doc::parse(command).and_then(Request::new).is_ok_and(|request| request.name() == "getMore")
}

/// True if a command was refused because of an operator that may be in the second half of the module, or because of
/// arithmetic on decimals. After `Env::complete` it may succeed.
pub fn lacks_operator(reply: &Reply) -> bool {
    reply.document.view().get("code").and_then(Value::as_i32) == Some(ErrorCode::InvalidPipelineOperator as i32)
}

/// Runs one command. A failure is a reply too: `{ok: 0, errmsg, code, codeName}`.
pub async fn run(engine: &Rc<Engine>, command: &[u8], payload: Option<&[u8]>) -> Reply {
    let mut outcome = dispatch(engine, command, payload).await;
    if outcome.as_ref().is_err_and(|e| e.code == ErrorCode::NamespaceNotFound) {
        // Another context may have dropped the collection and created it again. This context has forgotten it by now,
        // and the command has changed nothing.
        outcome = dispatch(engine, command, payload).await;
    }
    outcome.unwrap_or_else(Reply::from)
}

/// The key by which `killOp` knows the command, and its time limit in milliseconds.
#[inline(never)]
fn limits_of(request: &Request<'_>) -> Result<(Option<i64>, Option<f64>)> {
    let limit_ms = request.field("maxTimeMS").map(time_limit).transpose()?.flatten();
    Ok((request.integer("opKey")?, limit_ms))
}

async fn dispatch(engine: &Rc<Engine>, command: &[u8], payload: Option<&[u8]>) -> Result<Reply> {
    engine.ensure_open()?;
    let request = Request::new(Doc::parse(command)?)?;
    let ends = limits_of(&request)?;
    if payload.is_some_and(|bytes| bytes.len() > LARGE_PAYLOAD_BYTES) {
        // JavaScript has blocked the thread for a while to make it.
        engine.owe_turn();
    }
    let payload = payload.map(block::decode).transpose()?;
    if let Some(uuid) = request.field("collectionUUID") {
        engine.complete().await?;
        // Loaded by now: awaited above.
        let asking: LocalFuture<'_, Option<Reply>> = Box::pin(collection_uuid::mismatch(engine, &request, uuid));
        if let Some(mismatch) = asking.await? {
            return Ok(mismatch);
        }
    }
    if engine.is_strict() {
        engine.complete().await?;
        let checking: LocalFuture<'_, ()> = Box::pin(strict_times::check(engine, &request));
        checking.await?;
    }
    // Boxed, so that every command's future is as small as this one, and its code stays separate.
    // Loaded by now: the door awaits it for every command that `is_rare`, and a strict database for all, above.
    let running: LocalFuture<'_, Reply> = match request.name() {
        "collMod" => Box::pin(coll_mod::run(engine, &request)),
        "collStats" => Box::pin(coll_stats::run(engine, &request)),
        "count" => Box::pin(count::run(engine, &request)),
        "create" => Box::pin(create::run(engine, &request)),
        "createIndexes" => Box::pin(indexes::create(engine, &request)),
        "dbStats" | "dbstats" => Box::pin(coll_stats::run_database(engine, &request)),
        "delete" | "update" => Box::pin(statements::run(engine, &request)),
        "distinct" => Box::pin(distinct::run(engine, &request)),
        "drop" => Box::pin(drop::run(engine, &request)),
        "dropDatabase" => Box::pin(drop::run_database(engine)),
        "dropIndexes" => Box::pin(indexes::drop(engine, &request)),
        "explain" => Box::pin(explain::run(engine, &request)),
        "expire" => Box::pin(expire::run(engine, &request)),
        "maintain" => Box::pin(expire::maintain(engine, &request)),
        "aggregate" => Box::pin(aggregate::run(engine, &request)),
        "find" => Box::pin(find::run(engine, &request)),
        "findAndModify" | "findandmodify" => Box::pin(find_and_modify::run(engine, &request)),
        "flush" => Box::pin(fold::flush(engine)),
        "foldJournals" => Box::pin(fold::fold_journals(engine, &request)),
        "getMore" => Box::pin(find::get_more(engine, &request)),
        "getParameter" => return get_parameter::run(engine, &request),
        "insert" => Box::pin(insert::run(engine, &request, payload)),
        "killCursors" => return find::kill_cursors(engine, &request),
        "killOp" => return find::kill_op(engine, &request),
        "listCollections" => Box::pin(list_collections::run(engine, &request)),
        "liveClose" | "liveQuery" | "liveRefresh" => Box::pin(live::run(engine, &request)),
        "listIndexes" => Box::pin(indexes::list(engine, &request)),
        "ping" => return Ok(Reply::ok(DocWriter::new())),
        "serverStatus" => return Ok(server_status::run(engine, &request)),
        "validate" => Box::pin(validate::run(engine, &request)),
        _ => return small::run(engine, &request),
    };
    engine.operate(ends, running).await
}
