//! `validate`.

// Loaded later.

use std::rc::Rc;

use super::find::target;
use super::reply::{Reply, int, long};
use super::request::Request;
use crate::engine::Engine;
use crate::engine::validate::{Checks, Validation};
use crate::error::{Error, Result};
use crate::value::{DocWriter, Kind};

const FLAGS: [&str; 5] = ["full", "checkBSONConformance", "repair", "metadata", "background"];
/// The server's text in place of details.
const NOT_CONFORMANT: &str =
    "Detected one or more documents in this collection not conformant to time-series specifications";

/// The reply of the server; `findings` and `nQuarantined` are specific to timepail.
pub async fn run(engine: &Rc<Engine>, request: &Request<'_>) -> Result<Reply> {
    request.allow_fields(&[&FLAGS[..], &["scandata"]].concat())?;
    let checks = checks_of(request)?;
    let (name, _) = target(request.collection()?);
    let found = engine.validate(name, checks).await?;
    Ok(reply_of(engine.name(), name, found))
}

fn checks_of(request: &Request<'_>) -> Result<Checks> {
    let mut flags = [false; 5];
    for (flag, name) in flags.iter_mut().zip(FLAGS) {
        *flag = request.bool(name)? == Some(true);
    }
    let [full, conformance, repair, metadata, background] = flags;
    let full = full | conformance | repair;
    if full && metadata | background {
        return Err(Error::invalid_options("'metadata' and 'background' cannot be combined with 'full' or 'repair'"));
    }
    Ok(Checks { full, repair })
}

#[inline(never)]
fn reply_of(database: &str, name: &str, found: Validation) -> Reply {
    let mut reply = DocWriter::new();
    reply.string("ns", &[database, ".system.buckets.", name].concat());
    let counts = [
        ("nInvalidDocuments", found.invalid),
        ("nNonCompliantDocuments", found.non_compliant),
        ("nrecords", found.buckets),
        ("nQuarantined", found.quarantined),
    ];
    for (name, n) in counts {
        reply.int64(name, long(n as u64));
    }
    reply.int32("nIndexes", int(found.indexes.len())).begin_doc("keysPerIndex");
    for (name, entries, _) in &found.indexes {
        reply.int64(name, long(*entries as u64));
    }
    reply.end().begin_doc("indexDetails");
    for (name, _, is_valid) in &found.indexes {
        reply.begin_doc(name).bool("valid", *is_valid).end();
    }
    let Validation { warned, broken, .. } = found;
    reply.end().bool("valid", !broken).bool("repaired", found.repaired).begin_array("corruptRecords").end();
    for (list, is_so) in [("warnings", warned), ("errors", broken)] {
        reply.begin_array(list);
        if is_so {
            reply.string("0", NOT_CONFORMANT);
        }
        reply.end();
    }
    for (list, keys) in ["missingIndexEntries", "extraIndexEntries"].iter().zip(&found.wrong_entries) {
        reply.begin_array(list);
        for (place, key) in keys.iter().enumerate() {
            reply.begin_doc(&place.to_string());
            if let Some(id) = key.last_chunk() {
                reply.object_id("bucketId", id);
            }
            reply.end();
        }
        reply.end();
    }
    let findings = found.findings.finish();
    reply.raw("findings", Kind::Array, findings.view().as_bytes());
    Reply::ok(reply)
}
