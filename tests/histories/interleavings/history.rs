//! Small histories: the operations of each task, its context, and how a history is run.

use std::cell::RefCell;
use std::rc::Rc;

use bson::{DateTime, Document, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use super::footprint::Footprint;
use super::scheduler::{Board, Event, Scheduled, Scheduler};
use crate::support::valid_bucket::{Writers, measurements_of_valid};
use crate::support::{ALWAYS_MS, Db, TestEnv, checks, raw, take_rows};

/// The clock of every context.
pub const NOW_MS: i64 = 1_800_000_000_000;
/// The age at which measurements expire: those of the epoch have expired, those of `FRESH_MS` have not.
const EXPIRE_SECONDS: i64 = 86_400;
/// A time that does not expire.
pub const FRESH_MS: i64 = NOW_MS - 3_600_000;

/// The task of operations that ran before the others.
pub const BEFORE: usize = usize::MAX;

#[derive(Clone, Debug)]
pub enum Operation {
    Insert(Vec<Document>),
    Flush,
    /// Folds the journals of all other contexts.
    FoldJournals,
    Delete(Document),
    DeleteOne(Document),
    Expire,
    /// A find in batches of one, every batch a `getMore` of its own.
    Find(Document),
    /// The bucket documents, each checked, as measurements.
    Buckets,
    Count(Document),
    Create,
    CreateOnce,
    /// Turns `dedupe` on.
    TurnOn,
    Drop,
    /// Gives all measurements of a series the metadata of another one.
    Update(&'static str, &'static str),
    /// Creates an index with a name and a key.
    CreateIndex(&'static str, &'static str),
    DropIndex(&'static str),
    HideIndex(&'static str, bool),
    /// A find of everything, with a hint at an index.
    FindBy(&'static str),
}

pub use Operation::*;

/// Sequential operations on one context.
#[derive(Clone)]
pub struct TaskOf {
    pub context: usize,
    pub operations: Vec<Operation>,
}

#[derive(Clone, Default)]
pub struct History {
    pub name: &'static str,
    /// Operations that run first, in order, each with its context.
    pub before: Vec<(usize, Operation)>,
    pub tasks: Vec<TaskOf>,
    /// True if tasks share a context: others may then also run when a task yields and before it gets an answer.
    pub shared: bool,
    /// True if the engine gives a turn wherever it may.
    pub turns: bool,
    /// A task that vanishes after a number of calls.
    pub vanishes: Option<(usize, usize)>,
    /// A task whose writes find no room.
    pub full: Option<usize>,
    /// True if each `n` is one measurement.
    pub once: bool,
}

/// The outcome of an operation.
pub struct Record {
    pub task: usize,
    pub operation: usize,
    pub what: Operation,
    /// The number of calls that had run when it began and when it ended; `None` if it never did.
    pub began: usize,
    pub ended: Option<usize>,
    /// The documents that it found and its count, or an error reply.
    pub outcome: Option<Result<(Vec<Document>, i64), Document>>,
}

/// A completed run.
pub struct Run {
    pub storage: Rc<dyn Storage>,
    pub records: Vec<Record>,
    pub events: Vec<Event>,
    pub vanished: bool,
}

/// A measurement `n` of a series at a minute.
pub fn row(n: i64, series: &str, minute: i64) -> Document {
    doc! { "t": DateTime::from_millis(minute * 60_000), "m": series, "n": n, "x": n as f64 / 2.0 }
}

impl History {
    pub fn new(name: &'static str) -> History {
        History { name, ..History::default() }
    }
    /// Adds an operation that runs first.
    pub fn before(mut self, context: usize, operation: Operation) -> History {
        self.before.push((context, operation));
        self
    }
    /// Adds a task.
    pub fn task(mut self, context: usize, operations: impl IntoIterator<Item = Operation>) -> History {
        self.tasks.push(TaskOf { context, operations: operations.into_iter().collect() });
        self
    }
    pub fn shared(self) -> History {
        History { shared: true, ..self }
    }

    /// The same in a collection with `dedupe`.
    pub fn once(self) -> History {
        History { once: true, ..self }
    }

    /// The same history, in which the engine gives a turn wherever it may.
    pub fn with_turns(self) -> History {
        History { turns: true, ..self }
    }

    pub fn full(self, task: usize) -> History {
        History { full: Some(task), ..self }
    }

    /// True where the order of two calls can make a difference.
    pub fn depend(&self, one: (usize, &Footprint), other: (usize, &Footprint)) -> bool {
        self.tasks[one.0].context == self.tasks[other.0].context || one.1.conflicts(other.1)
    }

    /// Runs the history once. `choose` picks one of the waiting tasks by its index in the list; `None` aborts the run.
    pub fn run(&self, mut choose: impl FnMut(usize, &[(usize, Footprint)]) -> Option<usize>) -> Option<Run> {
        let inner: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
        let board = Board::new(Rc::clone(&inner));
        let scheduled = Scheduled { board: Rc::clone(&board), late_answers: self.shared };
        let storage: Rc<dyn Storage> = Rc::new(scheduled);
        let before = self.before.iter().map(|(context, _)| *context);
        let contexts = 1 + self.tasks.iter().map(|task| task.context).chain(before).max().unwrap_or(0);
        // Each context has its own random numbers, so that they do not depend on other contexts.
        let dbs: Vec<Db> = (0..contexts).map(|at| open_with(&storage, at as u64, self.turns)).collect();
        let records: Rc<RefCell<Vec<Record>>> = Rc::default();
        block_on(async {
            perform(&dbs[0], if self.once { &CreateOnce } else { &Create }).await.unwrap();
            for (at, (context, what)) in self.before.iter().enumerate() {
                let outcome = Some(perform(&dbs[*context], what).await);
                let record =
                    Record { task: BEFORE, operation: at, what: what.clone(), began: 0, ended: Some(0), outcome };
                records.borrow_mut().push(record);
            }
        });
        board.vanishes.set(self.vanishes);
        board.full.set(self.full);
        let mut scheduler = Scheduler::new(Rc::clone(&board), self.shared);
        for (task, of) in self.tasks.iter().enumerate() {
            let (db, board, records) = (dbs[of.context].clone(), Rc::clone(&board), Rc::clone(&records));
            let operations = of.operations.clone();
            scheduler.spawn(async move {
                for (operation, what) in operations.into_iter().enumerate() {
                    board.operations.borrow_mut()[task] = operation;
                    let began = board.events.borrow().len();
                    let record = Record { task, operation, what: what.clone(), began, ended: None, outcome: None };
                    let at = records.borrow().len();
                    records.borrow_mut().push(record);
                    let outcome = perform(&db, &what).await;
                    let mut records = records.borrow_mut();
                    records[at].outcome = Some(outcome);
                    records[at].ended = Some(board.events.borrow().len());
                }
            });
        }
        drop(dbs);
        let mut depth = 0;
        loop {
            let waiting = scheduler.settle();
            if waiting.is_empty() {
                break;
            }
            scheduler.pick(waiting[choose(depth, &waiting)?].0);
            depth += 1;
        }
        assert!(scheduler.is_done(), "tasks wait for each other, or for a task that has vanished");
        drop(scheduler);
        let vanished = records.borrow().iter().any(|record| record.ended.is_none());
        let (records, events) = (records.take(), board.events.take());
        Some(Run { storage: inner, records, events, vanished })
    }
}

/// A context with its own clock and random numbers.
pub fn open(storage: &Rc<dyn Storage>, seed: u64) -> Db {
    open_with(storage, seed, false)
}

/// The same; with `turns` it gives one wherever it may.
fn open_with(storage: &Rc<dyn Storage>, seed: u64, turns: bool) -> Db {
    let env = TestEnv::new(seed + 1);
    env.now_ms.set(NOW_MS);
    env.look_ms.set(if turns { ALWAYS_MS } else { 0.0 });
    Db::open(Rc::clone(storage), env)
}

/// Runs an operation; returns what it found and counted, or the error reply.
async fn perform(db: &Db, what: &Operation) -> Result<(Vec<Document>, i64), Document> {
    let command = match what {
        Insert(rows) => {
            let list: bson::RawArrayBuf = rows.iter().map(raw).collect();
            rawdoc! { "insert": "c", "documents": list }
        }
        Flush => rawdoc! { "flush": 1 },
        FoldJournals => rawdoc! { "foldJournals": 1 },
        Delete(filter) => rawdoc! { "delete": "c", "deletes": [{ "q": raw(filter), "limit": 0 }] },
        DeleteOne(filter) => rawdoc! { "delete": "c", "deletes": [{ "q": raw(filter), "limit": 1 }] },
        Expire => rawdoc! { "expire": 1 },
        Count(filter) => rawdoc! { "count": "c", "query": raw(filter) },
        Create => rawdoc! {
            "create": "c", "timeseries": { "timeField": "t", "metaField": "m" }, "expireAfterSeconds": EXPIRE_SECONDS,
        },
        CreateOnce => rawdoc! {
            "create": "c", "timeseries": { "timeField": "t", "metaField": "m" }, "expireAfterSeconds": EXPIRE_SECONDS,
            "dedupe": { "by": ["n"] },
        },
        TurnOn => rawdoc! { "collMod": "c", "dedupe": { "by": ["n"] } },
        Drop => rawdoc! { "drop": "c" },
        Update(from, to) => {
            let update = rawdoc! { "$set": { "m": *to } };
            rawdoc! { "update": "c", "updates": [{ "q": { "m": *from }, "u": update, "multi": true }] }
        }
        CreateIndex(name, path) => {
            let mut key = bson::RawDocumentBuf::new();
            key.append(bson::raw::CString::try_from(*path).unwrap(), 1);
            rawdoc! { "createIndexes": "c", "indexes": [{ "key": key, "name": *name }] }
        }
        DropIndex(name) => rawdoc! { "dropIndexes": "c", "index": *name },
        HideIndex(name, hidden) => rawdoc! { "collMod": "c", "index": { "name": *name, "hidden": *hidden } },
        FindBy(name) => return page(db, "c", rawdoc! { "find": "c", "hint": *name, "batchSize": 1 }).await,
        Find(filter) => return page(db, "c", rawdoc! { "find": "c", "filter": raw(filter), "batchSize": 1 }).await,
        Buckets => {
            let name = "system.buckets.c";
            let (buckets, n) = page(db, name, rawdoc! { "find": name, "batchSize": 1 }).await?;
            let options = checks::options_of(db, "c").await;
            let rows = buckets.iter().map(|bucket| measurements_of_valid(bucket, &options, Writers::One).unwrap());
            return Ok((rows.flatten().collect(), n));
        }
    };
    let reply = db.command(command).await;
    if reply.get_f64("ok").ok() != Some(1.0) || reply.contains_key("writeErrors") {
        return Err(reply);
    }
    let n = reply
        .get_i32("nModified")
        .or_else(|_| reply.get_i32("n"))
        .map(i64::from)
        .or_else(|_| reply.get_i64("nMeasurements"));
    Ok((Vec::new(), n.unwrap_or(0)))
}

async fn page(db: &Db, name: &str, command: bson::RawDocumentBuf) -> Result<(Vec<Document>, i64), Document> {
    let mut reply = db.command(command).await;
    let mut rows = Vec::new();
    loop {
        if reply.get_f64("ok").ok() != Some(1.0) {
            return Err(reply);
        }
        let cursor = reply.get_document_mut("cursor").unwrap();
        let key = if cursor.contains_key("firstBatch") { "firstBatch" } else { "nextBatch" };
        rows.extend(take_rows(cursor, key));
        let id = cursor.get_i64("id").unwrap();
        if id == 0 {
            let n = rows.len() as i64;
            return Ok((rows, n));
        }
        reply = db.command(rawdoc! { "getMore": id, "collection": name, "batchSize": 1 }).await;
    }
}
