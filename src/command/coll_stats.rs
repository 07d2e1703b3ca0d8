//! `collStats`.

// Loaded later.

use std::rc::Rc;

use super::find::target;
use super::reply::{Reply, long};
use super::request::Request;
use crate::engine::Engine;
use crate::error::Result;
use crate::value::DocWriter;

/// Sizes are those of stored values, without keys. `timeseries.numMeasurements` is specific to timepail.
pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&["scale"])?;
    let scale = request.integer("scale")?.unwrap_or(1).max(1);
    let name = request.collection()?;
    let (user, raw) = target(name);
    let sizes = engine.sizes(&engine.existing_collection(user).await?).await?;
    let mut reply = DocWriter::new();
    reply.string("ns", &[engine.name(), ".", name].concat());
    engine.write_sizes(user, raw, &sizes, scale, &mut reply).await?;
    Ok(Reply::ok(reply))
}

/// `dbStats`: sums over all collections. As on the server, each counts as a buckets collection and a view, and one more
/// collection lists the views.
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
