//! `count`: measurements, not buckets.

use std::rc::Rc;

use bson::rawdoc;

use super::find::target;
use super::{Reply, Request};
use crate::engine::Engine;
use crate::error::Result;
use crate::query::{Count, CountOptions};

pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    let (user, raw) = target(request.collection()?);
    let options = CountOptions::parse(request.doc(), &engine.globals())?;
    let mut count = Count::default();
    engine.drain(user, raw, options.into_find(), &mut count).await?;
    let n = count.count();
    // An int32 where it fits, as the server answers.
    Ok(Reply::ok(match i32::try_from(n) {
        Ok(n) => rawdoc! { "n": n },
        Err(_) => rawdoc! { "n": i64::try_from(n).unwrap_or(i64::MAX) },
    }))
}
