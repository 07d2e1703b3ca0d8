//! One file a command: parse the document, call the engine, build the reply. Knows no storage.

mod coll_stats;
mod count;
mod create;
mod delete;
mod distinct;
mod drop;
mod expire;
mod find;
mod fold;
mod get_parameter;
mod insert;
mod list_collections;
mod request;
mod server_status;

use std::rc::Rc;

use bson::{RawDocumentBuf, rawdoc};

pub use fold::parse_context;

use crate::block::{self, Block};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::storage::LocalFuture;
use crate::value::Doc;
use request::Request;

/// What a command answers: a reply document and, for cursor batches, the batch as a block.
#[derive(Debug)]
pub struct Reply {
    /// The reply; `ok` says whether the command succeeded.
    pub document: RawDocumentBuf,
    /// The measurements of `cursor.firstBatch` or `cursor.nextBatch`, which are empty in the document.
    pub batch: Option<Block>,
}

impl Reply {
    fn ok(mut document: RawDocumentBuf) -> Reply {
        document.append(bson::cstr!("ok"), 1.0);
        Reply { document, batch: None }
    }

    fn with_batch(self, batch: Block) -> Reply {
        Reply { batch: Some(batch), ..self }
    }
}

impl From<Error> for Reply {
    fn from(error: Error) -> Reply {
        let document = rawdoc! {
            "ok": 0.0, "errmsg": error.message, "code": error.code as i32, "codeName": &*error.code.name(),
        };
        Reply { document, batch: None }
    }
}

/// Runs one command. A failure is a reply too: `{ok: 0, errmsg, code, codeName}`.
pub async fn run(engine: &Rc<Engine>, command: &[u8], payload: Option<&[u8]>) -> Reply {
    let mut outcome = dispatch(engine, command, payload).await;
    if outcome.as_ref().is_err_and(|e| e.code == ErrorCode::NamespaceNotFound) {
        // Somebody may have dropped the collection that memory held, and made it again; it is forgotten now, and nothing was done.
        outcome = dispatch(engine, command, payload).await;
    }
    outcome.unwrap_or_else(Reply::from)
}

async fn dispatch(engine: &Rc<Engine>, command: &[u8], payload: Option<&[u8]>) -> Result<Reply> {
    engine.ensure_open()?;
    let request = Request::new(Doc::parse(command)?)?;
    let payload = payload.map(block::decode).transpose()?;
    // Boxed, so that the future of every command is as small as this one, and its code stays apart.
    let running: LocalFuture<'_, Reply> = match request.name() {
        "collStats" => Box::pin(coll_stats::run(engine, &request)),
        "count" => Box::pin(count::run(engine, &request)),
        "create" => Box::pin(create::run(engine, &request)),
        "delete" => Box::pin(delete::run(engine, &request)),
        "distinct" => Box::pin(distinct::run(engine, &request)),
        "drop" => Box::pin(drop::run(engine, &request)),
        "dropDatabase" => Box::pin(drop::run_database(engine)),
        "expire" => Box::pin(expire::run(engine, &request)),
        "maintain" => Box::pin(expire::maintain(engine, &request)),
        "find" => Box::pin(find::run(engine, &request)),
        "flush" => Box::pin(fold::flush(engine)),
        "foldJournals" => Box::pin(fold::fold_journals(engine, &request)),
        "getMore" => Box::pin(find::get_more(engine, &request)),
        "getParameter" => return get_parameter::run(engine, &request),
        "insert" => Box::pin(insert::run(engine, &request, payload)),
        "killCursors" => return find::kill_cursors(engine, &request),
        "listCollections" => Box::pin(list_collections::run(engine, &request)),
        "ping" => return Ok(Reply::ok(rawdoc! {})),
        "serverStatus" => return Ok(server_status::run(engine, &request)),
        name => return Err(Error::new(ErrorCode::CommandNotFound, format!("no such command: '{name}'"))),
    };
    running.await
}

/// A count as BSON has it.
fn long(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// One entry of `writeErrors`.
fn write_error(index: usize, error: Error) -> RawDocumentBuf {
    rawdoc! {
        "index": i32::try_from(index).unwrap_or(i32::MAX), "code": error.code as i32, "codeName": &*error.code.name(),
        "errmsg": error.message,
    }
}
