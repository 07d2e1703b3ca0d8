//! A database for native tests: memory storage, a clock that stands still, seeded randomness, commands in and documents out.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::indexing_slicing, clippy::expect_used)]

pub mod ahead;
pub mod checks;
pub mod closing;
pub mod ending;
pub mod explained;
pub mod faults;
pub mod log;
pub mod model;
mod native_collator;
mod native_regex;
mod native_zone;
pub mod pipelines;
pub mod progress;
pub mod rows;
pub mod valid_bucket;
pub mod weather;

use std::cell::Cell;
use std::rc::Rc;

use bson::{Bson, Document, RawDocumentBuf};
use timepail::block::Block;
use timepail::bucket::BucketFormat;
use timepail::catalog::CatalogOptions;
use timepail::command;
use timepail::engine::Engine;
use timepail::engine::signal::yield_now;
use timepail::env::{Collating, Collator, CompiledRegex, Env, Match, TimeZone, Turn};
use timepail::storage::Storage;
use timepail::value::DocWriter;

/// A small deterministic generator (xorshift64*).
#[derive(Clone)]
pub struct Random(Cell<u64>);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(Cell::new(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1))
    }
    pub fn next(&self) -> u64 {
        let mut x = self.0.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.0.set(x);
        x.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
    /// In `[0, n)`.
    pub fn below(&self, n: u64) -> u64 {
        (self.next() >> 33) % n
    }
    pub fn chance(&self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// If each look moves the clock on by so much, a turn is given wherever it may be.
pub const ALWAYS_MS: f64 = timepail::limits::TURN_MS;

pub struct TestEnv {
    pub now_ms: Cell<i64>,
    /// The time of the clock that is never set back.
    pub elapsed_ms: Cell<f64>,
    /// By how much each look moves that clock on. If above 0, it is looked at wherever the engine might give a turn.
    pub look_ms: Cell<f64>,
    /// Leaves it to the engine where it looks.
    pub looks_seldom: Cell<bool>,
    /// How many turns the engine has given.
    pub turns: Cell<usize>,
    pub random: Random,
}

impl TestEnv {
    pub fn new(seed: u64) -> Rc<TestEnv> {
        Rc::new(TestEnv {
            now_ms: Cell::new(1_800_000_000_000),
            elapsed_ms: Cell::default(),
            look_ms: Cell::default(),
            looks_seldom: Cell::default(),
            turns: Cell::default(),
            random: Random::new(seed),
        })
    }
}

impl Env for TestEnv {
    fn now_ms(&self) -> i64 {
        self.now_ms.get()
    }
    fn elapsed_ms(&self) -> f64 {
        self.elapsed_ms.set(self.elapsed_ms.get() + self.look_ms.get());
        self.elapsed_ms.get()
    }
    fn turn(&self) -> Option<Turn> {
        self.turns.set(self.turns.get() + 1);
        Some(Box::pin(yield_now()))
    }
    fn looks_always(&self) -> bool {
        self.look_ms.get() > 0.0 && !self.looks_seldom.get()
    }
    fn random_u64(&self) -> u64 {
        self.random.next()
    }
    fn regex(&self, pattern: &str, ignores_case: bool) -> std::result::Result<Rc<dyn CompiledRegex>, String> {
        native_regex::compile(pattern, ignores_case)
    }
    fn collator(&self, wanted: &mut Collating<'_>) -> Option<Rc<dyn Collator>> {
        native_collator::collator(wanted)
    }
    fn double(&self, number: &str) -> f64 {
        number.parse().unwrap()
    }
    fn digits(&self, x: f64) -> String {
        format!("{x:e}")
    }
    fn time_zone(&self, name: &str) -> Option<Rc<dyn TimeZone>> {
        native_zone::zone(name)
    }
}

/// One context on a storage.
#[derive(Clone)]
pub struct Db {
    pub engine: Rc<Engine>,
}

impl Db {
    pub fn open(storage: Rc<dyn Storage>, env: Rc<TestEnv>) -> Db {
        Db::open_as(BucketFormat::default(), storage, env)
    }

    /// A context that writes buckets of a format.
    pub fn open_as(format: BucketFormat, storage: Rc<dyn Storage>, env: Rc<TestEnv>) -> Db {
        Db::open_with(format, CatalogOptions::default(), storage, env)
    }

    /// A context that writes buckets of a format, with other catalog settings.
    pub fn open_with(format: BucketFormat, options: CatalogOptions, storage: Rc<dyn Storage>, env: Rc<TestEnv>) -> Db {
        let context = env.random_u64().to_be_bytes();
        let engine = Engine::new("test", storage, env, context).with_bucket_format(format);
        Db { engine: Rc::new(engine.with_catalog_options(options)) }
    }

    /// Runs a command; the batch of a cursor is in the reply as documents.
    pub async fn command(&self, command: RawDocumentBuf) -> Document {
        self.command_with(command, None).await
    }

    pub async fn command_with(&self, command: RawDocumentBuf, payload: Option<&Block>) -> Document {
        let payload = payload.map(timepail::block::encode);
        let reply = command::run(&self.engine, command.as_bytes(), payload.as_deref()).await;
        let mut document: Document = reply.to_bson().try_into().unwrap();
        if let Some(batch) = reply.batch {
            let rows: Vec<Bson> = rows_of(&batch).into_iter().map(Bson::Document).collect();
            let cursor = document.get_document_mut("cursor").unwrap();
            let key = if cursor.contains_key("firstBatch") { "firstBatch" } else { "nextBatch" };
            cursor.insert(key, rows);
        }
        document
    }

    /// Runs a command that must succeed.
    pub async fn ok(&self, command: RawDocumentBuf) -> Document {
        let reply = self.command(command.clone()).await;
        assert_eq!(reply.get_f64("ok").ok(), Some(1.0), "{command:?} failed: {reply}");
        reply
    }

    /// Code and `codeName` of a command that must fail.
    pub async fn fails(&self, command: RawDocumentBuf) -> (i32, String) {
        let reply = self.command(command.clone()).await;
        assert_eq!(reply.get_f64("ok").ok(), Some(0.0), "{command:?} did not fail: {reply}");
        assert!(!reply.get_str("errmsg").unwrap().is_empty());
        (reply.get_i32("code").unwrap(), reply.get_str("codeName").unwrap().to_owned())
    }

    /// All documents of a find command, over all batches.
    pub async fn find(&self, command: RawDocumentBuf) -> Vec<Document> {
        let collection = command.get_str("find").unwrap().to_owned();
        let reply = self.ok(command).await;
        let mut cursor = reply.get_document("cursor").unwrap().clone();
        let mut rows = take_rows(&mut cursor, "firstBatch");
        loop {
            let id = cursor.get_i64("id").unwrap();
            if id == 0 {
                return rows;
            }
            let reply =
                self.ok(bson::rawdoc! { "getMore": id, "collection": collection.as_str(), "batchSize": 7 }).await;
            cursor = reply.get_document("cursor").unwrap().clone();
            rows.extend(take_rows(&mut cursor, "nextBatch"));
        }
    }

    pub async fn insert(&self, collection: &str, documents: &[RawDocumentBuf]) -> Document {
        let list: bson::RawArrayBuf = documents.iter().cloned().collect();
        self.command(bson::rawdoc! { "insert": collection, "documents": list, "ordered": false }).await
    }
}

pub fn take_rows(cursor: &mut Document, key: &str) -> Vec<Document> {
    let Some(Bson::Array(rows)) = cursor.remove(key) else { panic!("no {key} in {cursor}") };
    rows.into_iter().map(|row| row.as_document().unwrap().clone()).collect()
}

/// The rows of a block as documents.
pub fn rows_of(block: &Block) -> Vec<Document> {
    (0..block.rows())
        .map(|row| {
            let mut writer = DocWriter::new();
            block.write_row(row, &mut writer);
            Document::from_reader(writer.finish().into_bytes().as_slice()).unwrap()
        })
        .collect()
}

/// A document with its fields sorted by name, which is equal whatever the column order.
pub fn canonical(document: &Document) -> Vec<u8> {
    let mut fields: Vec<_> = document.iter().collect();
    fields.sort_by_key(|(name, _)| name.as_str());
    let sorted: Document = fields.into_iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut bytes = Vec::new();
    sorted.to_writer(&mut bytes).unwrap();
    bytes
}

/// The documents as a sorted list of canonical forms: a multiset.
pub fn multiset<'a>(documents: impl IntoIterator<Item = &'a Document>) -> Vec<Vec<u8>> {
    let mut all: Vec<_> = documents.into_iter().map(canonical).collect();
    all.sort();
    all
}

pub fn raw(document: &Document) -> RawDocumentBuf {
    RawDocumentBuf::try_from(document).unwrap()
}
