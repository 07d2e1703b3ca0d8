//! `serverStatus`.

use std::rc::Rc;

use bson::{DateTime, RawDocumentBuf, cstr, rawdoc};

use super::coll_stats::append_counters;
use super::{Reply, Request, long};
use crate::engine::Engine;
use crate::engine::status::Status;

/// `{serverStatus: 1}`: who this is, and what the catalogs of all collections hold and count. What the server can be asked to
/// leave out or to add means nothing here. Nothing is read from storage.
pub fn run(engine: &Rc<Engine>, _request: &Request<'_>) -> Reply {
    let uptime_ms = engine.uptime_ms();
    let mut reply = rawdoc! {
        "host": engine.context_name(),
        "version": env!("CARGO_PKG_VERSION"),
        "process": env!("CARGO_PKG_NAME"),
        "uptime": (uptime_ms / 1000) as f64,
        "uptimeMillis": uptime_ms,
        "localTime": DateTime::from_millis(engine.now_ms()),
    };
    if let Some(status) = engine.status() {
        reply.append(cstr!("bucketCatalog"), bucket_catalog(&status));
    }
    Reply::ok(reply)
}

fn bucket_catalog(status: &Status) -> RawDocumentBuf {
    let stats = &status.stats;
    let size = |n: usize| long(n as u64);
    let mut catalog = rawdoc! {
        "numBuckets": size(stats.active),
        "numOpenBuckets": size(stats.open_series),
        "numIdleBuckets": size(stats.idle),
        "numArchivedBuckets": size(stats.archived()),
        "memoryUsage": size(stats.memory_bytes),
    };
    append_counters(&mut catalog, stats);
    let state = rawdoc! {
        "bucketsManaged": size(status.managed),
        "currentEra": long(status.era),
        "erasWithRemainingBuckets": size(status.eras_in_use),
        // A clear takes effect at once, so that none is left to remember.
        "trackedClearOperations": 0_i64,
    };
    catalog.append(cstr!("stateManagement"), state);
    catalog
}
