//! `expire` and `maintain`, commands specific to timepail.

use std::rc::Rc;

use super::reply::{Reply, long};
use super::request::Request;
use crate::engine::Engine;
use crate::engine::expire::Expired;
use crate::error::Result;
use crate::value::{DocWriter, Value};

/// `{expire: 1}`: one pass of retention over all collections, now. The reply says what was deleted, in total and per
/// collection.
pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&[])?;
    Ok(report(engine.expire().await?))
}

/// `{maintain: 1}`: folds and retention, as far as they are due. The driver sends it in the background when a reply
/// asks for it. The reply is that of `expire`.
pub async fn maintain(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&[])?;
    Ok(report(engine.maintain().await?))
}

fn report(all: Vec<(String, Expired)>) -> Reply {
    let counts = |expired: &Expired| [expired.buckets, expired.measurements, expired.bytes].map(long);
    let mut totals = [0; 3];
    for (_, expired) in &all {
        totals.iter_mut().zip(counts(expired)).for_each(|(total, count)| *total += count);
    }
    let mut reply = DocWriter::new();
    write_counts(&mut reply, totals);
    reply.begin_array("collections");
    for (place, (name, expired)) in all.iter().enumerate() {
        reply.begin_doc(&place.to_string()).string("name", name);
        write_counts(&mut reply, counts(expired));
        match expired.oldest_ms {
            Some(ms) => reply.date("oldest", ms),
            None => reply.value("oldest", Value::NULL),
        };
        reply.end();
    }
    reply.end();
    Reply::ok(reply)
}

fn write_counts(document: &mut DocWriter, [buckets, measurements, bytes]: [i64; 3]) {
    document.int64("nBuckets", buckets).int64("nMeasurements", measurements).int64("nBytes", bytes);
}
