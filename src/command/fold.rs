//! `flush` and `foldJournals`, commands specific to timepail.

use std::rc::Rc;

use super::reply::Reply;
use super::request::Request;
use crate::engine::Engine;
use crate::engine::keyspace::ContextId;
use crate::error::{Error, Result};
use crate::listed::IntoList;
use crate::value::DocWriter;

/// `{flush: 1}`: folds this context's journals.
pub async fn flush(engine: &Rc<Engine>) -> Result<Reply> {
    engine.flush().await?;
    Ok(Reply::ok(DocWriter::new()))
}

/// `{foldJournals: 1, alive: [context, ...]}`: folds the journals of every context other than this one and those in
/// `alive` (sixteen hex digits each). Correctness does not depend on `alive`; it only saves useless folds.
pub async fn fold_journals(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&["alive"])?;
    let alive: Vec<ContextId> = match request.array("alive")? {
        None => Vec::new(),
        Some(values) => values
            .map(|v| {
                v.as_str().and_then(parse_context).ok_or_else(|| {
                    Error::bad_value(format!("'alive' must hold contexts of sixteen hex digits, not {v:?}"))
                })
            })
            .try_listed()?,
    };
    let folded = engine.fold_abandoned(&alive).await?;
    let mut reply = DocWriter::new();
    reply.int64("nFolded", i64::try_from(folded).unwrap_or(i64::MAX));
    Ok(Reply::ok(reply))
}

/// A context from its sixteen hex digits.
pub fn parse_context(hex: &str) -> Option<ContextId> {
    (hex.len() == 16).then(|| u64::from_str_radix(hex, 16).ok()).flatten().map(u64::to_be_bytes)
}
