//! `listCollections`.

use std::rc::Rc;

use super::find::cursor;
use super::reply::Reply;
use super::request::Request;
use crate::block::DocPivot;
use crate::engine::Engine;
use crate::error::Result;
use crate::value::{DocBuf, DocWriter};
/// Users' collections have the type "timeseries"; their buckets collections are listed as well.
pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&["filter", "nameOnly", "authorizedCollections", "cursor"])?;
    let name_only = request.bool("nameOnly")?.unwrap_or(false);
    let filter = super::find::parse_filter(engine, request.field("filter"), "listCollections", "filter")?;
    let mut pivot = DocPivot::new();
    for (name, entry) in engine.list_collections().await? {
        let options = entry.options.to_doc();
        let doc = describe(&name, "timeseries", (!name_only).then_some(&options));
        if filter.matches_doc(doc.view())? {
            pivot.push(doc.view())?;
        }
        let raw = describe(&format!("system.buckets.{name}"), "collection", (!name_only).then_some(&options));
        if filter.matches_doc(raw.view())? {
            pivot.push(raw.view())?;
        }
    }
    let reply = cursor(engine, "$cmd.listCollections", 0, "firstBatch");
    Ok(Reply::ok(reply).with_batch(pivot.finish()))
}

fn describe(name: &str, kind: &str, options: Option<&DocBuf>) -> DocBuf {
    let mut writer = DocWriter::new();
    writer.string("name", name).string("type", kind);
    if let Some(options) = options {
        writer.doc("options", options.view()).begin_doc("info").bool("readOnly", false).end();
    }
    writer.finish()
}
