//! Concurrent tasks, on their own or shared contexts, which may switch around every storage call. Sometimes storage
//! fails, and a context vanishes in the middle of what it does.

use std::rc::Rc;

use bson::{DateTime, Document, doc, rawdoc};
use futures::executor::{LocalPool, block_on};
use futures::task::LocalSpawnExt;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use super::{
    FIRST_NOW_MS, Trouble, at_most, bucket_rows_max, check_bucket_rows, check_dropped, env_of, is_once, ok, open,
};
use crate::support::faults::{Faulty, Rates};
use crate::support::log::{Log, Outcome};
use crate::support::rows::{a_filter, measurement};
use crate::support::valid_bucket::{Writers, measurements_of_valid};
use crate::support::{Db, Random, TestEnv, checks, raw, take_rows};

const STEPS: i64 = 14;
const HOUR_MS: i64 = 3_600_000;

struct Task {
    at: i64,
    db: Db,
    random: Random,
    rows_max: Option<usize>,
    storage: Rc<dyn Storage>,
    env: Rc<TestEnv>,
    log: Rc<Log>,
    faulty: Rc<Faulty>,
    trouble: Trouble,
    /// Random numbers that decide when there is room, from their own stream.
    room: Random,
}

/// Panics if something is lost, duplicated or invalid.
pub fn history(seed: u64, trouble: Trouble) {
    let random = Random::new(seed);
    let env = env_of(seed);
    let inner: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
    let faulty = Faulty::new(inner, Random::new(seed + 1), true);
    let storage: Rc<dyn Storage> = faulty.clone();
    let rows_max = bucket_rows_max(seed);
    let first = open(&storage, &env, &random, rows_max);
    let log: Rc<Log> = Rc::default();
    let mut create = doc! {
        "create": "c", "timeseries": { "timeField": "t", "metaField": "m" }, "expireAfterSeconds": FIRST_NOW_MS / 1000,
    };
    if is_once(seed) {
        create.insert("dedupe", doc! { "by": ["n"] });
        log.updates_move.set(true);
    }
    block_on(first.ok(raw(&create)));
    if trouble == Trouble::Faults {
        faulty.set(Rates { refused: 6, ambiguous: 6, cut_off: 3, unread: 1 });
    }
    let mut pool = LocalPool::new();
    for at in 0..2 + random.below(3) as i64 {
        // Some tasks share the first context.
        let db = if random.chance(25) { first.clone() } else { open(&storage, &env, &random, rows_max) };
        let (storage, env, log) = (Rc::clone(&storage), Rc::clone(&env), Rc::clone(&log));
        let (faulty, room) = (Rc::clone(&faulty), Random::new(seed * 37 + at as u64));
        let random = Random::new(seed * 31 + at as u64);
        let task = Task { at, db, random, rows_max, storage, env, log, faulty, trouble, room };
        pool.spawner().spawn_local(task.run()).unwrap();
    }
    pool.run();
    faulty.set(Rates::default());
    faulty.set_full(false);
    let judge = |found: &[Document]| log.judge(&doc! {}, found, log.now(), log.now()).unwrap();
    judge(&block_on(checks::sound(&first, "c", Writers::Several)));
    let db = open(&storage, &env, &random, rows_max);
    judge(&block_on(checks::sound_when_folded(&*storage, &db, "c", Writers::Several)));
    judge(&block_on(checks::sound(&first, "c", Writers::Several)));
    block_on(check_bucket_rows(&db, rows_max));
    block_on(check_dropped(&db, &*storage));
}

impl Task {
    async fn run(mut self) {
        for step in 0..STEPS {
            // A context vanishes during an operation; its journal stays, and its task continues with a new context.
            if self.trouble == Trouble::NoRoom && self.room.chance(20) {
                self.faulty.set_full(!self.faulty.is_full());
            }
            let polls =
                if self.trouble == Trouble::Faults && self.random.chance(8) { self.random.below(40) } else { u64::MAX };
            match self.random.below(20) {
                0..=8 => self.insert(step, polls).await,
                9..=10 => self.other(rawdoc! { "flush": 1 }, polls).await,
                11..=12 => self.other(rawdoc! { "foldJournals": 1 }, polls).await,
                13..=14 => self.delete(polls).await,
                15 => self.expire(polls).await,
                18 => self.update(polls).await,
                16 if step % 2 == 0 => self.validate().await,
                16 => self.buckets().await,
                17 => self.vanish(),
                _ => self.find().await,
            }
        }
    }

    fn vanish(&mut self) {
        self.db = open(&self.storage, &self.env, &self.random, self.rows_max);
    }

    async fn other(&mut self, command: bson::RawDocumentBuf, polls: u64) {
        if at_most(polls, self.db.command(command)).await.is_none() {
            self.vanish();
        }
    }

    async fn insert(&mut self, step: i64, polls: u64) {
        let first = (self.at * STEPS + step) * 100;
        let rows: Vec<Document> = (0..1 + self.random.below(12) as i64)
            .map(|at| {
                let mut row = measurement(&self.random, first + at);
                if self.random.chance(10) {
                    // Times before 1970, so that ids do not sort by time, and some have expired already.
                    row.insert("t", DateTime::from_millis(-(self.random.below(3 * HOUR_MS as u64) as i64)));
                }
                row
            })
            .collect();
        let sent: Vec<_> = rows.iter().map(raw).collect();
        let ticket = self.log.insert(rows);
        let reply = at_most(polls, self.db.insert("c", &sent)).await;
        self.end(ticket, reply.as_ref());
    }

    fn end(&mut self, ticket: crate::support::log::Ticket, reply: Option<&Document>) {
        let outcome = if reply.is_some_and(ok) { Outcome::Acknowledged } else { Outcome::Unknown };
        self.log.end(ticket, outcome);
        match reply {
            None => self.vanish(),
            Some(reply) => assert!(ok(reply) || self.trouble.excuses(reply), "{reply}"),
        }
    }

    async fn delete(&mut self, polls: u64) {
        let filter = a_filter(&self.random);
        let ticket = self.log.delete(filter.clone(), filter.clone());
        let command = rawdoc! { "delete": "c", "deletes": [{ "q": raw(&filter), "limit": 0 }] };
        let reply = at_most(polls, self.db.command(command)).await;
        self.end(ticket, reply.as_ref());
    }

    async fn update(&mut self, polls: u64) {
        let filter = if self.random.chance(20) {
            doc! {}
        } else {
            doc! { "m": format!("s{}", self.random.below(3)) }
        };
        let meta = format!("s{}", self.random.below(4));
        let ticket = self.log.update(filter.clone(), meta.clone().into());
        let statement = doc! { "q": filter, "u": { "$set": { "m": meta } }, "multi": true };
        let reply = at_most(polls, self.db.command(raw(&doc! { "update": "c", "updates": [statement] }))).await;
        self.end(ticket, reply.as_ref());
    }

    /// Runs a pass of retention. Measurements from at least a bucket span before 1970 are deleted for certain, later ones up to 1970 perhaps.
    async fn expire(&mut self, polls: u64) {
        let up_to = |ms: i64| doc! { "t": { "$lte": DateTime::from_millis(ms) } };
        let ticket = self.log.delete(up_to(-HOUR_MS), up_to(0));
        let reply = at_most(polls, self.db.command(rawdoc! { "expire": 1 })).await;
        let may_wait = self.trouble == Trouble::NoRoom || self.log.updates_move.get();
        if may_wait && reply.as_ref().is_some_and(ok) {
            // Rows that share a record with others wait for a pass with room, and rows that are being moved for another.
            return self.log.end(ticket, Outcome::Unknown);
        }
        self.end(ticket, reply.as_ref());
    }

    async fn find(&mut self) {
        let filter = a_filter(&self.random);
        let began = self.log.now();
        let command = rawdoc! { "find": "c", "filter": raw(&filter), "batchSize": 2 };
        if let Some(rows) = self.batches("c", command).await {
            self.log.judge(&filter, &rows, began, self.log.now()).unwrap();
        }
    }

    async fn buckets(&mut self) {
        let began = self.log.now();
        let name = "system.buckets.c";
        let Some(buckets) = self.batches(name, rawdoc! { "find": name, "batchSize": 1 }).await else { return };
        let Ok(Some(collection)) = self.db.engine.collection("c").await else { return };
        let options = &collection.entry().options.timeseries;
        let rows: Vec<Document> =
            buckets.iter().flat_map(|b| measurements_of_valid(b, options, Writers::Several).unwrap()).collect();
        self.log.judge(&doc! {}, &rows, began, self.log.now()).unwrap();
    }

    /// A repair, which finds nothing to do whatever others write meanwhile.
    async fn validate(&mut self) {
        let reply = self.db.command(rawdoc! { "validate": "c", "full": true, "repair": self.random.chance(50) }).await;
        assert!(ok(&reply) || self.trouble.excuses(&reply), "{reply}");
        let sound = || reply.get_bool("valid").unwrap() && !reply.get_bool("repaired").unwrap();
        assert!(!ok(&reply) || sound(), "{reply}");
    }

    /// `None` if storage failed.
    async fn batches(&self, name: &str, command: bson::RawDocumentBuf) -> Option<Vec<Document>> {
        let mut reply = self.db.command(command).await;
        let mut rows = Vec::new();
        loop {
            if !ok(&reply) {
                assert!(self.trouble.excuses(&reply), "{reply}");
                return None;
            }
            let cursor = reply.get_document_mut("cursor").unwrap();
            let key = if cursor.contains_key("firstBatch") { "firstBatch" } else { "nextBatch" };
            rows.extend(take_rows(cursor, key));
            let id = cursor.get_i64("id").unwrap();
            if id == 0 {
                return Some(rows);
            }
            reply = self.db.command(rawdoc! { "getMore": id, "collection": name, "batchSize": 3 }).await;
        }
    }
}
