//! `insert` into `system.buckets.<name>`, and the argument that every raw write needs.

use std::rc::Rc;

use super::reply::{Reply, int, write_errors};
use super::request::{Request, check_batch, missing_field, wrong_type};
use crate::engine::Engine;
use crate::error::{Error, ErrorCode, Result};
use crate::value::{Doc, DocWriter};

/// The argument that confirms a write of raw buckets.
pub const UNSAFE: &str = "unsafeBucketWrites";

/// Refuses raw writes without the confirming argument.
///
/// Errors: `IllegalOperation`.
pub fn check(request: &Request<'_>) -> Result<()> {
    if request.bool(UNSAFE)? == Some(true) {
        return Ok(());
    }
    let parts = ["'", request.name(), "' of buckets needs 'unsafeBucketWrites: true'"];
    Err(Error::new(ErrorCode::IllegalOperation, parts.concat()))
}

pub async fn insert(engine: &Rc<Engine>, request: &Request<'_>, name: &str) -> Result<Reply> {
    request.allow_fields(&["documents", "ordered", UNSAFE])?;
    check(request)?;
    let documents = documents_of(request)?;
    let ordered = request.bool("ordered")?.unwrap_or(true);
    engine.complete().await?;
    let errors = engine.insert_buckets(name, &documents, ordered).await?;
    let n = match errors.first() {
        Some((first, _)) if ordered => *first,
        _ => documents.len() - errors.len(),
    };
    let mut reply = DocWriter::new();
    write_errors(reply.int32("n", int(n)), &errors);
    Ok(Reply::ok(reply))
}

#[inline(never)]
fn documents_of<'a>(request: &Request<'a>) -> Result<Vec<Doc<'a>>> {
    let mut documents: Vec<Doc<'a>> = Vec::new();
    for value in request.array("documents")?.ok_or_else(|| missing_field("insert", "documents"))? {
        let document = value.as_doc();
        documents.push(document.ok_or_else(|| wrong_type("insert", "documents", "an array of objects", value))?);
    }
    check_batch(documents.len())?;
    Ok(documents)
}
