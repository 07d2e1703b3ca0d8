//! `listCollections`.

use std::rc::Rc;

use super::find::listing;
use super::reply::Reply;
use super::request::Request;
use crate::block::DocPivot;
use crate::bucket::BUCKETS_PREFIX;
use crate::engine::{CollectionEntry, Engine};
use crate::error::Result;
use crate::value::{DocBuf, DocWriter};

/// Users' collections have the type "timeseries"; their buckets collections are listed as well.
pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&["filter", "nameOnly", "authorizedCollections", "cursor"])?;
    let name_only = request.bool("nameOnly")?.unwrap_or(false);
    let filter = super::find::parse_filter(engine, request.field("filter"), "listCollections", "filter")?;
    let mut pivot = DocPivot::new();
    for (name, entry) in engine.list_collections().await? {
        let doc = describe(&name, (!name_only).then_some(&entry), false);
        if filter.matches_doc(doc.view())? {
            pivot.push(doc.view())?;
        }
        let raw = describe(&[BUCKETS_PREFIX, &name].concat(), (!name_only).then_some(&entry), true);
        if filter.matches_doc(raw.view())? {
            pivot.push(raw.view())?;
        }
    }
    listing(engine, request, "$cmd.listCollections", pivot.finish())
}

/// A collection, or the one of its buckets; without an entry, only its name and type.
fn describe(name: &str, entry: Option<&CollectionEntry>, raw: bool) -> DocBuf {
    let mut writer = DocWriter::new();
    writer.string("name", name).string("type", if raw { "collection" } else { "timeseries" });
    if let Some(entry) = entry {
        writer.begin_doc("options");
        if raw {
            write_validator(&mut writer, &entry.options.timeseries.time_field);
            writer.bool("clusteredIndex", true);
        }
        let options = entry.options.to_doc();
        for (name, value) in options.view() {
            writer.value(name, value);
        }
        writer.end().begin_doc("info").bool("readOnly", false);
        if raw {
            writer.binary("uuid", 4, &entry.uuid);
        }
        writer.end();
    }
    writer.finish()
}

/// The outer form of a bucket, as a filter that every bucket matches.
fn write_validator(writer: &mut DocWriter, time_field: &str) {
    fn object<'a>(writer: &'a mut DocWriter, name: &str, required: &[&str]) -> &'a mut DocWriter {
        writer.begin_doc(name).string("bsonType", "object").begin_array("required");
        for (place, field) in required.iter().enumerate() {
            writer.string(&place.to_string(), field);
        }
        writer.end().begin_doc("properties")
    }
    fn kind(writer: &mut DocWriter, name: &str, kind: &str) {
        writer.begin_doc(name).string("bsonType", kind).end();
    }
    writer.begin_doc("validator");
    object(writer, "$jsonSchema", &["_id", "control", "data"]);
    kind(writer, "_id", "objectId");
    object(writer, "control", &["version", "min", "max"]);
    kind(writer, "version", "number");
    for side in ["min", "max"] {
        kind(object(writer, side, &[time_field]), time_field, "date");
        writer.end().end();
    }
    kind(writer, "closed", "bool");
    writer.begin_doc("count").string("bsonType", "number").int32("minimum", 1).end();
    writer.end().bool("additionalProperties", false).end();
    kind(writer, "data", "object");
    writer.begin_doc("meta").end();
    writer.end().bool("additionalProperties", false).end().end();
}
