//! The parts common to every `explain` reply.

use super::reply::Reply;
use super::request::Request;
use super::server_status;
use crate::engine::{Engine, PlannedQuery};
use crate::error::Result;
use crate::index::IndexSpec;
use crate::query::{ExecutionStats, Explain, ReadAccess};
use crate::value::DocWriter;

/// Statistics of a query that ran.
pub fn run_of(engine: &Engine, found: Option<&PlannedQuery>, begun_ms: i64) -> Option<ExecutionStats> {
    found.map(|found| ExecutionStats {
        entries: found.entries as u64,
        examined: found.examined as u64,
        counters: found.counters,
        duration_ms: engine.now_ms() - begun_ms,
    })
}

/// Where each index used by a query has arrays on its paths.
///
/// Errors: those of storage.
pub async fn multikey_of(engine: &Engine, found: Option<&PlannedQuery>) -> Result<Vec<Vec<Vec<usize>>>> {
    let mut depths = Vec::new();
    let Some(found) = found else { return Ok(depths) };
    for branch in found.plan.access.branches() {
        let parts = match branch {
            ReadAccess::Series { .. } => IndexSpec::default_of(&found.collection.entry().options.timeseries)
                .map(|spec| (spec.number, spec.parts)),
            ReadAccess::Index(access) => Some((access.spec.number, access.parts())),
            ReadAccess::Buckets { .. } | ReadAccess::Union(_) => None,
        };
        depths.push(match parts {
            Some((number, parts)) => engine.multikey_depths(&found.collection, number, &parts).await?,
            None => Vec::new(),
        });
    }
    Ok(depths)
}

/// The reply that shows an explanation.
pub fn reply_of(engine: &Engine, inner: &Request<'_>, explain: &Explain<'_>) -> Reply {
    let mut reply = DocWriter::new();
    reply.string("explainVersion", "1");
    explain.write(&mut reply);
    reply.doc("command", inner.doc()).begin_doc("serverInfo");
    server_status::append_identity(&mut reply, engine);
    reply.end();
    Reply::ok(reply)
}
