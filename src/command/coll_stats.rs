//! `collStats`.

use std::rc::Rc;

use bson::raw::CStr;
use bson::{RawDocumentBuf, cstr, rawdoc};

use super::{Reply, Request, long};
use crate::catalog::Stats;
use crate::engine::Engine;
use crate::error::Result;

/// Sizes are those of the stored values, keys left out. `timeseries.numMeasurements` is an addition of ours.
pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&["scale"])?;
    let scale = request.integer("scale")?.unwrap_or(1).max(1);
    let name = request.collection()?;
    let collection = engine.existing_collection(name).await?;
    let sizes = engine.sizes(&collection).await?;
    let stats = collection.stats();
    let size = |n: u64| long(n) / scale;
    let mut timeseries = rawdoc! {
        "bucketsNs": format!("{}.system.buckets.{name}", engine.name()),
        "bucketCount": long(sizes.buckets),
        "numMeasurements": long(sizes.measurements),
    };
    if let Some(average) = sizes.bucket_bytes.checked_div(sizes.buckets) {
        timeseries.append(cstr!("avgBucketSize"), long(average));
    }
    // A collection that was not used in this process has counted nothing.
    if stats != Stats::default() {
        append_counters(&mut timeseries, &stats);
    }
    let mut reply: RawDocumentBuf = rawdoc! {
        "ns": format!("{}.{name}", engine.name()),
        "size": size(sizes.bucket_bytes),
        "storageSize": size(sizes.bucket_bytes + sizes.journal_bytes),
        "journalSize": size(sizes.journal_bytes),
        "scaleFactor": scale,
    };
    reply.append(cstr!("timeseries"), timeseries);
    Ok(Reply::ok(reply))
}

/// The counters of a catalog, by the server's names.
pub fn append_counters(document: &mut RawDocumentBuf, stats: &Stats) {
    for (name, n) in stats.counters() {
        if let Ok(name) = <&CStr>::try_from(name) {
            document.append(name, long(n));
        }
    }
}
