//! Commands of our own: `expire` and `maintain`.

use std::rc::Rc;

use bson::{DateTime, RawArrayBuf, RawBson, cstr, rawdoc};

use super::{Reply, Request, long};
use crate::engine::Engine;
use crate::engine::expire::Expired;
use crate::error::Result;

/// `{expire: 1}`: one pass of retention over all collections, now. The reply says what went, in all and by collection.
pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&[])?;
    Ok(report(engine.expire().await?))
}

/// `{maintain: 1}`: folds and retention, as far as they are due. The driver sends it, in the background, when a reply says so. The reply
/// is that of `expire`.
pub async fn maintain(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&[])?;
    Ok(report(engine.maintain().await?))
}

fn report(all: Vec<(String, Expired)>) -> Reply {
    let mut totals = [0; 3];
    let mut collections = RawArrayBuf::new();
    for (name, expired) in all {
        let counts = [expired.buckets, expired.measurements, expired.bytes].map(long);
        totals.iter_mut().zip(counts).for_each(|(total, count)| *total += count);
        let [buckets, measurements, bytes] = counts;
        let oldest = expired.oldest_ms.map_or(RawBson::Null, |ms| DateTime::from_millis(ms).into());
        let gone = rawdoc! { "name": name, "nBuckets": buckets, "nMeasurements": measurements, "nBytes": bytes, "oldest": oldest };
        collections.push(gone);
    }
    let [buckets, measurements, bytes] = totals;
    let mut reply = rawdoc! { "nBuckets": buckets, "nMeasurements": measurements, "nBytes": bytes };
    reply.append(cstr!("collections"), collections);
    Reply::ok(reply)
}
