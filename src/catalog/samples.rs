//! Catalogs, rows and answers for tests.

use std::rc::Rc;

use bson::{DateTime, RawDocumentBuf, rawdoc};

use super::offer::{Offer, ReopenRequest, Reopened};
use super::options::{CatalogOptions, Totals};
use super::state::Catalog;
use super::{Section, Staged, Staging};
use crate::block::{Block, pivot_docs};
use crate::bucket::{BucketId, CollectionOptions, Schema};
use crate::value::{Doc, OwnedValue};

pub const MINUTE: i64 = 60_000;
pub const HOUR: i64 = 60 * MINUTE;

/// A catalog of a collection with time field `t`, metadata field `m` and buckets of one hour.
pub fn catalog_with(options: CatalogOptions) -> Catalog {
    let command = rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } };
    let collection = CollectionOptions::parse_create(Doc::parse(command.as_bytes()).unwrap(), 0).unwrap();
    Catalog::new(collection.timeseries, options, Rc::new(Totals::default()), 7)
}

/// A catalog that never asks for stored buckets.
pub fn catalog() -> Catalog {
    catalog_with(CatalogOptions { reopening: false, ..CatalogOptions::default() })
}

/// A catalog that asks for stored buckets.
pub fn reopening_catalog() -> Catalog {
    catalog_with(CatalogOptions::default())
}

pub fn block(docs: &[RawDocumentBuf]) -> Block {
    pivot_docs(docs.iter().map(|d| Doc::parse(d.as_bytes()).unwrap())).unwrap()
}

pub fn of(ms: i64, meta: &str) -> RawDocumentBuf {
    rawdoc! { "t": DateTime::from_millis(ms), "m": meta, "x": 1.0 }
}

pub fn at(ms: i64) -> RawDocumentBuf {
    of(ms, "a")
}

pub fn text_at(ms: i64, text: &str) -> RawDocumentBuf {
    rawdoc! { "t": DateTime::from_millis(ms), "m": "a", "x": text }
}

/// Stages rows; `answer` answers every request.
pub fn stage_answering(
    catalog: &mut Catalog,
    docs: &[RawDocumentBuf],
    answer: &mut dyn FnMut(&ReopenRequest) -> Offer,
) -> Staged {
    let mut batch = catalog.batch(block(docs));
    loop {
        match catalog.stage(&mut batch).unwrap() {
            Staging::Staged(staged) => return staged,
            Staging::Reopen(requests) => requests.iter().for_each(|request| catalog.offer(request, answer(request))),
        }
    }
}

/// Stages rows; no stored bucket exists.
pub fn stage(catalog: &mut Catalog, docs: &[RawDocumentBuf]) -> Vec<Section> {
    stage_answering(catalog, docs, &mut |_| Offer::NotFound).sections
}

/// Stages and commits rows that take `stored_bytes`.
pub fn insert_as(catalog: &mut Catalog, docs: &[RawDocumentBuf], stored_bytes: usize) -> Vec<Section> {
    let sections = stage(catalog, docs);
    catalog.finish(stored_bytes);
    sections
}

/// Stages and commits rows that take no bytes.
pub fn insert(catalog: &mut Catalog, docs: &[RawDocumentBuf]) -> Vec<Section> {
    insert_as(catalog, docs, 0)
}

/// Bucket start and row count of every section.
pub fn shape(sections: &[Section]) -> Vec<(i64, usize)> {
    sections.iter().map(|s| (s.min_time_ms, s.rows)).collect()
}

/// A stored bucket with one measurement like `at`.
pub fn stored(id: BucketId, min_time_ms: i64) -> Reopened {
    let mut schema = Schema::new();
    assert!(
        schema.update("t", OwnedValue::date(min_time_ms).view()) && schema.update("x", OwnedValue::int32(1).view())
    );
    Reopened { id, min_time_ms, count: 1, size_bytes: 200, schema, field_names: vec!["t".into(), "x".into()] }
}
