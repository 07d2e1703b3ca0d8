//! What users' indexes accept, and the entries of a bucket in them.

use crate::block::{Block, ColumnData};
use crate::bucket::{BucketDoc, BucketId, unpack};
use crate::engine::collections::collection::Collection;
use crate::engine::store::keyspace;
use crate::error::{Error, ErrorCode, Result};
use crate::index::{self, BucketSummary, META_TIME_INDEX, Source, check_points};
use crate::listed::IntoList;
use crate::query::Index;
use crate::storage::Bytes;
use crate::value::{Component, Doc, FieldSet, Kind, Path, Value, sort_by};

impl Collection {
    /// The rows whose values or metadata some index refuses, each with its error.
    pub fn index_errors(&self, rows: &Block) -> Vec<(usize, Error)> {
        if self.entry().has_more_indexes() { errors(self, rows) } else { Vec::new() }
    }

    /// Refuses metadata that some index does not accept.
    ///
    /// Errors: as `IndexSpec::check_meta`.
    pub(in crate::engine) fn check_meta(&self, meta: Option<Value<'_>>) -> Result<()> {
        if self.entry().has_more_indexes() { check_meta(self, meta) } else { Ok(()) }
    }

    /// Refuses a bucket that some index does not accept.
    ///
    /// Errors: 5930501; as `check_points`, `check_meta` and `unpack`.
    pub(in crate::engine) fn check_bucket(&self, document: Doc<'_>) -> Result<()> {
        if self.entry().has_more_indexes() { check_bucket(self, document) } else { Ok(()) }
    }
}

/// Adds the keys of a bucket's entries in users' indexes.
#[inline(never)]
pub fn add_keys(collection: &Collection, bucket: &BucketId, summary: &BucketSummary<'_>, keys: &mut Vec<Bytes>) {
    let (id, entry) = (collection.id(), collection.entry());
    for index in entry.indexes.iter().filter(|index| index.spec.number != META_TIME_INDEX && index.takes(summary)) {
        // Loaded by now: `CollectionEntry::prepare` awaits it for an index on places.
        let entries = index::keys(&index.spec, summary);
        keys.extend(entries.iter().map(|entry| keyspace::index_entry(&id, index.spec.number, entry, bucket)));
    }
}

/// Refuses a bucket whose measurements or metadata some index does not accept.
///
/// Errors: 5930501; as `check_points`, `check_meta` and `unpack`.
#[inline(never)]
pub fn check_bucket(collection: &Collection, document: Doc<'_>) -> Result<()> {
    let entry = collection.entry();
    let options = &entry.options.timeseries;
    let view = BucketDoc::parse(document, options)?;
    check_meta(collection, view.meta())?;
    let limited = limited_paths(collection);
    let has_places = limited.iter().any(|(source, _)| *source == Source::Data);
    // If all values are scalars, the summaries contain only scalars.
    let is_plain = |name: &str| {
        let kinds = [view.control_min(), view.control_max()].map(|doc| doc.get(name).map(|value| value.kind()));
        kinds[0] == kinds[1] && kinds[0].is_none_or(|kind| !matches!(kind, Kind::Object | Kind::Array))
    };
    let names = limited.iter().map(|(_, path)| path.first());
    let mut wanted: Vec<Box<str>> = names.filter(|name| has_places || !is_plain(name)).map(|name| name.into()).listed();
    if wanted.is_empty() {
        return Ok(());
    }
    sort_by(&mut wanted, Ord::cmp);
    wanted.dedup();
    let rows = unpack(&view, &FieldSet::Only(wanted), options)?;
    errors(collection, &rows).into_iter().next().map_or(Ok(()), |(_, error)| Err(error))
}

/// Refuses metadata that some index does not accept. A partial index applies only if the part of its filter on the
/// metadata matches.
///
/// Errors: as `IndexSpec::check_meta`.
#[inline(never)]
pub fn check_meta(collection: &Collection, meta: Option<Value<'_>>) -> Result<()> {
    let entry = collection.entry();
    let Some(value) = meta else { return Ok(()) };
    let takes = |index: &&Index| index.spec.limits_meta() && index.takes_meta(meta);
    // Loaded by now: `CollectionEntry::prepare` awaits it for an index on places.
    entry.indexes.iter().filter(takes).try_for_each(|index| index.spec.check_meta(value))
}

/// The rows whose values or metadata some index refuses, each with its error.
#[inline(never)]
pub fn errors(collection: &Collection, rows: &Block) -> Vec<(usize, Error)> {
    let mut errors = Vec::new();
    for (source, path) in limited_paths(collection) {
        let Some(column) = rows.column(path.first()) else { continue };
        let may_nest =
            matches!(column.data(), ColumnData::Bson(_) | ColumnData::Objects(_) | ColumnData::Dictionary(..));
        // Scalars are neither arrays nor places.
        if !may_nest && source != Source::Data {
            continue;
        }
        let mut scratch = Vec::new();
        for row in 0..column.len() {
            let value = column.value(row, &mut scratch);
            let outcome = match source {
                // Loaded by now: `CollectionEntry::prepare` awaits it for an index on places.
                Source::Data => check_points(value, &path),
                _ if value.is_some_and(|value| meets_array(value, path.rest())) => {
                    let message = format!("'{path}' is indexed, so it must not contain an array");
                    Err(Error::new(ErrorCode::Location5930501, message))
                }
                _ => Ok(()),
            };
            errors.extend(outcome.err().map(|error| (row, error)));
        }
    }
    let limited = collection.entry().indexes.iter().any(|index| index.spec.limits_meta());
    if let Some(column) = collection.meta_field().and_then(|meta| rows.column(meta)).filter(|_| limited) {
        let mut scratch = Vec::new();
        for row in 0..column.len() {
            if let Err(error) = check_meta(collection, column.value(row, &mut scratch)) {
                errors.push((row, error));
            }
        }
    }
    errors
}

/// The paths of measurements with restricted values: no arrays for `Source::Min`, only points for `Source::Data`.
fn limited_paths(collection: &Collection) -> Vec<(Source, Path)> {
    let entry = collection.entry();
    let parts = entry.specs.iter().flat_map(|spec| &spec.parts);
    let is_limited = |source: Source| matches!(source, Source::Min | Source::Data);
    parts
        .filter(|part| is_limited(part.source) && part.path.as_str() != collection.time_field())
        .map(|part| (part.source, part.path.clone()))
        .listed()
}

fn meets_array(value: Value<'_>, path: &[Component]) -> bool {
    if value.kind() == Kind::Array {
        return true;
    }
    let below = path.split_first().and_then(|(name, rest)| Some((value.as_doc()?.get(name.name())?, rest)));
    below.is_some_and(|(value, rest)| meets_array(value, rest))
}
