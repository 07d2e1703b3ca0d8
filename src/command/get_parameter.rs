//! `getParameter`.

// Loaded later.

use std::rc::Rc;

use super::reply::{Reply, long};
use super::request::Request;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::value::DocWriter;

/// Parameters that are always int64.
const INT64: [&str; 3] = ["timeseriesIdleBucketExpiryMemoryUsageThreshold", "cacheBytes", "readCacheBytes"];

/// `{getParameter: 1, <name>: 1, ...}` for some parameters, `{getParameter: '*'}` for all.
#[inline(never)]
pub fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    let all = request.target().as_str() == Some("*");
    let mut reply = DocWriter::new();
    for (name, value) in engine.catalog_options().parameters() {
        if all || request.field(name).is_some() {
            // The server's type of each; an int64 is needed for sizes in bytes alone.
            match i32::try_from(value).ok().filter(|_| !INT64.contains(&name)) {
                Some(value) => reply.int32(name, value),
                None => reply.int64(name, long(value as u64)),
            };
        }
    }
    if reply.is_empty() {
        return Err(Error::invalid_options("Name at least one parameter, or '*' for all"));
    }
    Ok(Reply::ok(reply))
}
