//! `serverStatus`.

// Loaded later.

use std::rc::Rc;

use super::reply::{Reply, long};
use super::request::Request;
use crate::engine::Engine;
use crate::engine::status::Status;
use crate::value::DocWriter;

/// `{serverStatus: 1}`: identity, and the contents and counters of all catalogs. Ignores the sections that the server
/// can leave out or add. Does not read storage.
#[inline(never)]
pub fn run(engine: &Rc<Engine>, _request: &Request<'_>) -> Reply {
    let uptime_ms = engine.uptime_ms();
    let mut reply = DocWriter::new();
    append_identity(&mut reply, engine);
    reply.string("process", env!("CARGO_PKG_NAME"));
    reply.double("uptime", (uptime_ms / 1000) as f64).int64("uptimeMillis", uptime_ms);
    reply.date("localTime", engine.now_ms());
    if let Some(status) = engine.status() {
        bucket_catalog(reply.begin_doc("bucketCatalog"), &status);
        reply.end();
    }
    Reply::ok(reply)
}

/// The identity of this opening of the database, and the version.
pub fn append_identity(document: &mut DocWriter, engine: &Engine) {
    document.string("host", &engine.context_name()).string("version", env!("CARGO_PKG_VERSION"));
}

fn bucket_catalog(catalog: &mut DocWriter, status: &Status) {
    let stats = &status.stats;
    let size = |n: usize| long(n as u64);
    catalog.int64("numBuckets", size(stats.active)).int64("numOpenBuckets", size(stats.open_series));
    catalog.int64("numIdleBuckets", size(stats.idle)).int64("numArchivedBuckets", size(stats.archived()));
    catalog.int64("memoryUsage", size(stats.memory_bytes));
    stats.write(catalog);
    catalog.begin_doc("stateManagement").int64("bucketsManaged", size(status.managed));
    catalog.int64("currentEra", long(status.era)).int64("erasWithRemainingBuckets", size(status.eras_in_use));
    // A clear takes effect at once, so none is pending.
    catalog.int64("trackedClearOperations", 0).end();
}
