//! Commands with a short reply, or with a refusal.

// Loaded later.

use super::reply::Reply;
use super::request::Request;
use super::server_status::append_identity;
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::value::DocWriter;

/// What a command without a file of its own does.
#[derive(Clone, Copy, PartialEq)]
enum Small {
    /// Succeeds; there is nothing to do.
    Nothing,
    /// Time-series collections do not support it.
    Refused,
    /// Refused, because there are no transactions.
    Transaction,
    /// Identifies this engine and its limits.
    Hello,
}

static COMMANDS: [(&str, Small); 24] = [
    ("abortTransaction", Small::Transaction),
    ("buildInfo", Small::Hello),
    ("captrunc", Small::Refused),
    ("cloneCollectionAsCapped", Small::Refused),
    ("commitTransaction", Small::Transaction),
    ("compact", Small::Nothing),
    ("convertToCapped", Small::Refused),
    ("dataSize", Small::Refused),
    ("dbCheck", Small::Refused),
    ("emptycapped", Small::Refused),
    ("endSessions", Small::Nothing),
    ("hello", Small::Hello),
    ("isMaster", Small::Hello),
    ("ismaster", Small::Hello),
    ("killSessions", Small::Nothing),
    ("mapReduce", Small::Refused),
    ("planCacheClear", Small::Refused),
    ("planCacheClearFilters", Small::Refused),
    ("planCacheListFilters", Small::Refused),
    ("planCacheSetFilter", Small::Refused),
    ("reIndex", Small::Nothing),
    ("refreshSessions", Small::Nothing),
    ("renameCollection", Small::Refused),
    ("startSession", Small::Nothing),
];

/// The first question of every driver. The newest wire protocol here is that of 7.0.
static HELLO: [(&str, i32); 7] = [
    ("maxBsonObjectSize", 16_777_216),
    ("maxMessageSizeBytes", 48_000_000),
    ("maxWriteBatchSize", 100_000),
    ("logicalSessionTimeoutMinutes", 30),
    ("connectionId", 1),
    ("minWireVersion", 0),
    ("maxWireVersion", 21),
];

#[inline(never)]
pub fn run(engine: &Engine, request: &Request<'_>) -> Result<Reply> {
    let name = request.name();
    let mut reply = DocWriter::new();
    let (code, what) = match COMMANDS.iter().find(|(known, _)| *known == name) {
        Some((_, Small::Refused)) => {
            (ErrorCode::CommandNotSupportedOnView, "A time-series collection does not support '")
        }
        Some((_, Small::Transaction)) => (ErrorCode::IllegalOperation, "Transactions are not supported: '"),
        Some((_, small)) => {
            if *small == Small::Hello {
                append_identity(&mut reply, engine);
                reply.bool("isWritablePrimary", true).bool("ismaster", true).date("localTime", engine.now_ms());
                for (name, n) in HELLO {
                    reply.int32(name, n);
                }
            }
            return Ok(Reply::ok(reply));
        }
        None => (ErrorCode::CommandNotFound, "no such command: '"),
    };
    Err(Error::new(code, [what, name, "'"].concat()))
}
