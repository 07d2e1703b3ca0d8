//! `collStats`.

use std::rc::Rc;

use super::{Reply, Request, int, long};
use crate::catalog::Stats;
use crate::engine::Engine;
use crate::error::Result;
use crate::value::DocWriter;

/// Sizes are those of the stored values, keys left out. `timeseries.numMeasurements` is an addition of ours.
pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&["scale"])?;
    let scale = request.integer("scale")?.unwrap_or(1).max(1);
    let name = request.collection()?;
    let collection = engine.existing_collection(name).await?;
    let sizes = engine.sizes(&collection).await?;
    let stats = collection.stats();
    let size = |n: u64| long(n) / scale;
    let mut reply = DocWriter::new();
    reply.string("ns", &format!("{}.{name}", engine.name())).int64("size", size(sizes.bucket_bytes));
    reply.int64("storageSize", size(sizes.bucket_bytes + sizes.journal_bytes));
    reply.int64("journalSize", size(sizes.journal_bytes)).int64("scaleFactor", scale);
    reply.begin_doc("timeseries").string("bucketsNs", &format!("{}.system.buckets.{name}", engine.name()));
    reply.int64("bucketCount", long(sizes.buckets)).int64("numMeasurements", long(sizes.measurements));
    if let Some(average) = sizes.bucket_bytes.checked_div(sizes.buckets) {
        reply.int64("avgBucketSize", long(average));
    }
    // A collection that was not used in this process has counted nothing.
    if stats != Stats::default() {
        append_counters(&mut reply, &stats);
    }
    reply.end().int32("nindexes", int(sizes.indexes.len()));
    let index_bytes: u64 = sizes.indexes.iter().map(|(_, bytes)| bytes).sum();
    reply.int64("totalIndexSize", size(index_bytes));
    reply.int64("totalSize", size(index_bytes + sizes.bucket_bytes + sizes.journal_bytes)).begin_doc("indexSizes");
    for (name, bytes) in &sizes.indexes {
        reply.int64(name, size(*bytes));
    }
    reply.end();
    Ok(Reply::ok(reply))
}

/// `dbStats`: sums over all collections. Each is the collection of its buckets and a view, and views are listed in one collection more.
pub async fn run_database(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&["scale", "freeStorage"])?;
    let scale = request.integer("scale")?.unwrap_or(1).max(1);
    let (mut views, mut objects, mut data, mut journals, mut indexes, mut index_bytes) = (0, 0, 0, 0, 0, 0);
    for (name, _) in engine.list_collections().await? {
        // Another context may have dropped it meanwhile.
        let Some(collection) = engine.collection(&name).await? else { continue };
        let sizes = engine.sizes(&collection).await?;
        views += 1;
        objects += sizes.buckets;
        data += sizes.bucket_bytes;
        journals += sizes.journal_bytes;
        indexes += sizes.indexes.len() as u64;
        index_bytes += sizes.indexes.iter().map(|(_, bytes)| bytes).sum::<u64>();
    }
    let mut reply = DocWriter::new();
    reply.string("db", engine.name()).int64("collections", views + i64::from(views > 0)).int64("views", views);
    let average = data.checked_div(objects).unwrap_or_default();
    for (field, n, scale) in [
        ("objects", objects, 1),
        ("avgObjSize", average, 1),
        ("dataSize", data, scale),
        ("storageSize", data + journals, scale),
        ("indexes", indexes, 1),
        ("indexSize", index_bytes, scale),
        ("totalSize", data + journals + index_bytes, scale),
    ] {
        reply.int64(field, long(n) / scale);
    }
    reply.int64("scaleFactor", scale);
    Ok(Reply::ok(reply))
}

/// The counters of a catalog, by the server's names.
pub fn append_counters(document: &mut DocWriter, stats: &Stats) {
    for (name, n) in stats.counters() {
        document.int64(name, long(n));
    }
}
