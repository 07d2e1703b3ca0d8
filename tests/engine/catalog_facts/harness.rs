//! A catalog without an engine, and an engine whose commits can be held back.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bson::{DateTime, RawBson, RawDocumentBuf, rawdoc};
use timepail::block::pivot_docs;
use timepail::bucket::{CollectionOptions, Schema};
use timepail::catalog::{Catalog, CatalogOptions, Offer, ReopenRequest, Reopened, Section, Staging, Totals};
use timepail::engine::Engine;
use timepail::engine::signal::Signal;
use timepail::error::{Error, ErrorCode};
use timepail::storage::memory::MemoryStorage;
use timepail::storage::{Bytes, Changeset, Entry, KeyRange, LocalFuture, Page, Storage};
use timepail::value::{Doc, OwnedValue};

use crate::support::{Db, TestEnv};

pub const MINUTE: i64 = 60_000;
pub const HOUR: i64 = 60 * MINUTE;

/// A catalog of a collection with time field `t`, metadata field `m` and buckets of one hour.
pub fn catalog() -> Catalog {
    catalog_with(CatalogOptions::default())
}

pub fn catalog_with(options: CatalogOptions) -> Catalog {
    let command = rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } };
    let collection = CollectionOptions::parse_create(Doc::parse(command.as_bytes()).unwrap(), 0).unwrap();
    Catalog::new(collection.timeseries, options, Rc::new(Totals::default()), 7)
}

pub fn of(ms: i64, meta: impl Into<RawBson>) -> RawDocumentBuf {
    rawdoc! { "t": DateTime::from_millis(ms), "m": meta.into(), "x": 1.0 }
}

pub fn at(ms: i64) -> RawDocumentBuf {
    of(ms, "a")
}

/// A measurement at 0 with these fields.
pub fn with(fields: &RawDocumentBuf) -> RawDocumentBuf {
    let mut doc = rawdoc! { "t": DateTime::from_millis(0), "m": "a" };
    fields.iter().flatten().for_each(|(name, value)| doc.append(name, RawBson::from(value)));
    doc
}

/// Stages rows; `answer` answers requests for stored buckets.
pub fn stage_answering(
    catalog: &mut Catalog,
    docs: &[RawDocumentBuf],
    answer: &mut dyn FnMut(&mut Catalog, &ReopenRequest) -> Offer,
) -> Vec<Section> {
    let docs = docs.iter().map(|doc| Doc::parse(doc.as_bytes()).unwrap());
    let mut batch = catalog.batch(pivot_docs(docs).unwrap());
    loop {
        match catalog.stage(&mut batch).unwrap() {
            Staging::Staged(staged) => return staged.sections,
            Staging::Reopen(requests) => requests.iter().for_each(|request| {
                let offer = answer(catalog, request);
                catalog.offer(request, offer);
            }),
        }
    }
}

/// Stages rows without stored buckets; `finish` or `abort` must follow.
pub fn stage(catalog: &mut Catalog, docs: &[RawDocumentBuf]) -> Vec<Section> {
    stage_answering(catalog, docs, &mut |_, _| Offer::NotFound)
}

pub fn insert(catalog: &mut Catalog, docs: &[RawDocumentBuf]) -> Vec<Section> {
    let sections = stage(catalog, docs);
    catalog.finish(0);
    sections
}

/// A stored bucket with one measurement like `at`.
pub fn stored(id: timepail::bucket::BucketId, min_time_ms: i64) -> Reopened {
    let mut schema = Schema::new();
    assert!(schema.update("t", OwnedValue::date(min_time_ms).view()));
    assert!(schema.update("x", OwnedValue::double(1.0).view()));
    Reopened { id, min_time_ms, count: 1, size_bytes: 200, schema, field_names: vec!["t".into(), "x".into()] }
}

/// Memory storage whose commits wait at a gate while it is shut, and fail on demand.
#[derive(Default)]
pub struct Gate {
    pub inner: MemoryStorage,
    shut: RefCell<Option<Signal>>,
    pub fails: Cell<bool>,
    pub commits: Cell<usize>,
}

impl Gate {
    pub fn shut(&self) {
        *self.shut.borrow_mut() = Some(Signal::new());
    }
    /// The shut gate; empty while it is open.
    pub fn gate_mut(&self) -> std::cell::RefMut<'_, Option<Signal>> {
        self.shut.borrow_mut()
    }
    pub fn open(&self) {
        if let Some(signal) = self.shut.take() {
            signal.resolve(Ok(()));
        }
    }
}

impl Storage for Gate {
    fn get_many<'a>(&'a self, keys: &'a [Bytes]) -> LocalFuture<'a, Vec<Option<Bytes>>> {
        self.inner.get_many(keys)
    }
    fn scan<'a>(&'a self, ranges: &'a [KeyRange], page: Page) -> LocalFuture<'a, Vec<Entry>> {
        self.inner.scan(ranges, page)
    }
    fn commit(&self, changes: Changeset) -> LocalFuture<'_, ()> {
        Box::pin(async move {
            let gate = self.shut.borrow().clone();
            if let Some(gate) = gate {
                gate.wait().await?;
            }
            if self.fails.get() {
                return Err(Error::new(ErrorCode::OperationFailed, "The test storage refused this commit"));
            }
            self.commits.set(self.commits.get() + 1);
            self.inner.commit(changes).await
        })
    }
}

/// A database of one collection, `c`, with time field `t` and metadata field `m`.
pub async fn database(storage: Rc<dyn Storage>, options: CatalogOptions) -> Db {
    let db = open(storage, options);
    db.ok(rawdoc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } }).await;
    db
}

thread_local! {
    /// Contexts of one storage must differ.
    static SEED: Cell<u64> = const { Cell::new(1) };
}

pub fn open(storage: Rc<dyn Storage>, options: CatalogOptions) -> Db {
    let seed = SEED.get();
    SEED.set(seed + 1);
    let env = TestEnv::new(seed);
    let context = env.random.next().to_be_bytes();
    Db { engine: Rc::new(Engine::new("test", storage, env, context).with_catalog_options(options)) }
}

/// The bucket documents after a fold.
pub async fn buckets(db: &Db) -> Vec<bson::Document> {
    db.ok(rawdoc! { "flush": 1 }).await;
    db.find(rawdoc! { "find": "system.buckets.c" }).await
}

pub async fn statistic(db: &Db, name: &str) -> i64 {
    let stats = db.ok(rawdoc! { "collStats": "c" }).await;
    stats.get_document("timeseries").unwrap().get_i64(name).unwrap()
}
