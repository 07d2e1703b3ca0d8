//! What each `$lookup` of an explained pipeline reads of its other collection.

use std::rc::Rc;

use super::find::target;
use super::reply::long;
use crate::engine::{Defaults, Engine};
use crate::error::Result;
use crate::query::{Foreign, ReadAccess, ShownStage};
use crate::value::{DocBuf, DocWriter, Value};

/// Adds to each `$lookup` among `stages` how it has read the other collection: that is done once, before the first row.
///
/// Errors: those of the pipelines over these collections.
pub async fn add_reads(engine: &Rc<Engine>, others: &[Foreign], stages: &mut [ShownStage]) -> Result<()> {
    for ShownStage { stage, looked_up, .. } in stages {
        let other = looked_up.and_then(|place| others.get(place));
        // Documents that a pipeline produces itself are not read.
        let Some(other) = other.filter(|other| !other.collection.is_empty()) else { continue };
        let reads = reads_of(engine, other).await?;
        let mut writer = DocWriter::new();
        stage.view().iter().chain(reads.view().iter()).for_each(|(name, value)| write(&mut writer, name, value));
        *stage = writer.finish();
    }
    Ok(())
}

fn write(writer: &mut DocWriter, name: &str, value: Value<'_>) {
    writer.value(name, value);
}

async fn reads_of(engine: &Rc<Engine>, other: &Foreign) -> Result<DocBuf> {
    let (name, raw) = target(&other.collection);
    let parse = |defaults: Defaults<'_>| other.parse(defaults.time_field);
    let found = engine.try_aggregate(name, raw, &parse).await?;
    let (mut examined, mut entries, mut scans, mut used) = (0, 0, 0, Vec::new());
    if let Some(found) = &found {
        (examined, entries) = (found.examined as u64, found.entries as u64);
        let entry = found.collection.entry();
        for branch in found.plan.access.branches() {
            scans += i64::from(matches!(branch, ReadAccess::Buckets { .. }));
            let spec = entry.specs.iter().find(|spec| branch.index() == Some(spec.number));
            used.extend(spec.map(|spec| spec.name.clone()));
        }
    }
    let mut reads = DocWriter::new();
    reads.int64("totalDocsExamined", long(examined)).int64("totalKeysExamined", long(entries));
    reads.int64("collectionScans", scans).begin_array("indexesUsed");
    for (place, name) in used.iter().enumerate() {
        reads.string(&place.to_string(), name);
    }
    reads.end();
    Ok(reads.finish())
}
