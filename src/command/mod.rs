//! One file a command: parse the document, call the engine, build the reply. Knows no storage.

mod coll_stats;
mod count;
mod create;
mod delete;
mod drop;
mod find;
mod fold;
mod insert;
mod list_collections;
mod request;

use std::rc::Rc;

use bson::{RawDocumentBuf, rawdoc};

pub use fold::parse_context;

use crate::block::{self, Block};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
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
            "ok": 0.0, "errmsg": error.message, "code": error.code as i32, "codeName": error.code.name(),
        };
        Reply { document, batch: None }
    }
}

/// Runs one command. A failure is a reply too: `{ok: 0, errmsg, code, codeName}`.
pub async fn run(engine: &Rc<Engine>, command: &[u8], payload: Option<&[u8]>) -> Reply {
    dispatch(engine, command, payload).await.unwrap_or_else(Reply::from)
}

async fn dispatch(engine: &Rc<Engine>, command: &[u8], payload: Option<&[u8]>) -> Result<Reply> {
    engine.ensure_open()?;
    let request = Request::new(Doc::parse(command)?)?;
    let payload = payload.map(block::decode).transpose()?;
    match request.name() {
        "collStats" => coll_stats::run(engine, &request).await,
        "count" => count::run(engine, &request).await,
        "create" => create::run(engine, &request).await,
        "delete" => delete::run(engine, &request).await,
        "drop" => drop::run(engine, &request).await,
        "dropDatabase" => drop::run_database(engine).await,
        "find" => find::run(engine, &request).await,
        "flush" => fold::flush(engine).await,
        "foldJournals" => fold::fold_journals(engine, &request).await,
        "getMore" => find::get_more(engine, &request).await,
        "insert" => insert::run(engine, &request, payload).await,
        "killCursors" => find::kill_cursors(engine, &request),
        "listCollections" => list_collections::run(engine, &request).await,
        "ping" => Ok(Reply::ok(rawdoc! {})),
        name => Err(Error::new(ErrorCode::CommandNotFound, format!("no such command: '{name}'"))),
    }
}

/// One entry of `writeErrors`.
fn write_error(index: usize, error: Error) -> RawDocumentBuf {
    rawdoc! {
        "index": i32::try_from(index).unwrap_or(i32::MAX), "code": error.code as i32, "codeName": error.code.name(),
        "errmsg": error.message,
    }
}
