//! Filters on buckets, as `explain` shows them.

// Loaded later.

use crate::listed::IntoList;
use crate::query::plan::ReadPlan;
use crate::value::{Doc, DocWriter, Value};

/// Writes what is asked of bucket documents, as `write_bucket_filter` does; an empty filter if nothing is.
pub(super) fn write_parsed_query(plan: &ReadPlan, is_write: bool, writer: &mut DocWriter) {
    let mut filter = DocWriter::new();
    write_bucket_filter("parsedQuery", plan, is_write, &mut filter);
    let filter = filter.finish();
    writer.doc("parsedQuery", filter.view().get("parsedQuery").and_then(Value::as_doc).unwrap_or(Doc::EMPTY));
}

/// Writes the filter on a bucket before it is unpacked, in terms of its document, if there is one. Writes leave closed
/// buckets alone.
pub(super) fn write_bucket_filter(name: &str, plan: &ReadPlan, is_write: bool, writer: &mut DocWriter) {
    let meta = plan.split.as_ref().map_or(&plan.plan.residual, |split| &split.meta);
    let meta = Some(meta).filter(|meta| !meta.is_trivial());
    let bucket = plan.split.as_ref().map(|split| &split.bucket).filter(|bucket| !bucket.is_trivial());
    let parts = [is_write.then_some(0), meta.map(|_| 1), bucket.map(|_| 2)].into_iter().flatten().listed();
    let count = parts.len();
    if count == 0 {
        return;
    }
    writer.begin_doc(name);
    if count > 1 {
        writer.begin_array("$and");
    }
    for (place, part) in parts.into_iter().enumerate() {
        if count > 1 {
            writer.begin_doc(&place.to_string());
        }
        match part {
            0 => {
                writer.begin_doc("control.closed").begin_doc("$not").bool("$eq", true).end().end();
            }
            1 => meta.into_iter().for_each(|meta| meta.write(writer)),
            _ => bucket.into_iter().for_each(|bucket| bucket.write(writer)),
        }
        if count > 1 {
            writer.end();
        }
    }
    if count > 1 {
        writer.end();
    }
    writer.end();
}
