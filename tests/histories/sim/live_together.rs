//! Live queries while contexts write, fold and delete at once: each result is that of a fresh query that began when the refresh
//! did, or later; and once everything rests, it is that of a fresh one.

use std::cell::RefCell;
use std::rc::Rc;

use bson::{DateTime, Document, doc, rawdoc};
use futures::executor::{LocalPool, block_on};
use futures::task::LocalSpawnExt;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use super::live_queries::{LiveQuery, measurement};
use super::{FIRST_NOW_MS, Trouble, at_most, env_of, ok, open};
use crate::support::faults::{Faulty, Rates};
use crate::support::log::{Log, Outcome, Ticket};
use crate::support::rows::a_filter;
use crate::support::{Db, Random, TestEnv, raw};

const STEPS: i64 = 16;
const QUERIES: usize = 4;

/// The live queries of a task: finds with filters that the log can judge, and others that are compared at the end.
type Queries = Rc<RefCell<Vec<LiveQuery>>>;

struct Task {
    at: i64,
    db: Db,
    random: Random,
    storage: Rc<dyn Storage>,
    env: Rc<TestEnv>,
    log: Rc<Log>,
    trouble: Trouble,
    finds: Vec<LiveQuery>,
    others: Vec<LiveQuery>,
    /// Where they go at the end.
    left: Queries,
}

/// Panics if a live query has a result that no fresh one could have had.
pub fn history(seed: u64, trouble: Trouble) {
    let (random, env) = (Random::new(seed), env_of(seed));
    let faulty = Faulty::new(Rc::new(MemoryStorage::new()), Random::new(seed + 1), true);
    let storage: Rc<dyn Storage> = faulty.clone();
    let first = open(&storage, &env, &random, None);
    block_on(first.ok(rawdoc! {
        "create": "c", "timeseries": { "timeField": "t", "metaField": "m" }, "expireAfterSeconds": FIRST_NOW_MS / 1000,
    }));
    if trouble == Trouble::Faults {
        faulty.set(Rates { refused: 6, ambiguous: 6, cut_off: 3, unread: 1 });
    }
    let (log, left): (Rc<Log>, Queries) = Default::default();
    let mut pool = LocalPool::new();
    for at in 0..2 + random.below(3) as i64 {
        // Some tasks share the first context.
        let db = if random.chance(30) { first.clone() } else { open(&storage, &env, &random, None) };
        let (storage, env, log, left) = (Rc::clone(&storage), Rc::clone(&env), Rc::clone(&log), Rc::clone(&left));
        let random = Random::new(seed * 31 + at as u64);
        let (finds, others) = (Vec::new(), Vec::new());
        let task = Task { at, db, random, storage, env, log, trouble, finds, others, left };
        pool.spawner().spawn_local(task.run()).unwrap();
    }
    pool.run();
    faulty.set(Rates::default());
    for mut query in left.take() {
        block_on(query.refresh()).unwrap();
        block_on(query.check());
    }
}

impl Task {
    async fn run(mut self) {
        for step in 0..STEPS {
            let vanishes = self.trouble == Trouble::Faults && self.random.chance(5);
            let polls = if vanishes { self.random.below(40) } else { u64::MAX };
            match self.random.below(20) {
                0..=6 => self.insert(step, polls).await,
                7..=8 => self.other(rawdoc! { "flush": 1 }, polls).await,
                9..=10 => self.other(rawdoc! { "foldJournals": 1 }, polls).await,
                11 => self.delete(polls).await,
                12 => self.update(polls).await,
                13 if self.random.chance(30) => self.vanish(),
                _ => self.look().await,
            }
        }
        let mut left = self.left.borrow_mut();
        left.append(&mut self.finds);
        left.append(&mut self.others);
    }

    fn vanish(&mut self) {
        self.db = open(&self.storage, &self.env, &self.random, None);
        self.finds.clear();
        self.others.clear();
    }

    async fn other(&mut self, command: bson::RawDocumentBuf, polls: u64) {
        if at_most(polls, self.db.command(command)).await.is_none() {
            self.vanish();
        }
    }

    async fn insert(&mut self, step: i64, polls: u64) {
        let first = (self.at * STEPS + step) * 100;
        let count = 1 + self.random.below(12) as i64;
        let rows: Vec<Document> = (0..count).map(|at| measurement(&self.random, first + at)).collect();
        let sent: Vec<_> = rows.iter().map(raw).collect();
        let ticket = self.log.insert(rows);
        let reply = at_most(polls, self.db.insert("c", &sent)).await;
        self.end(ticket, reply.as_ref());
    }

    fn end(&mut self, ticket: Ticket, reply: Option<&Document>) {
        let outcome = if reply.is_some_and(ok) { Outcome::Acknowledged } else { Outcome::Unknown };
        self.log.end(ticket, outcome);
        match reply {
            None => self.vanish(),
            Some(reply) => assert!(ok(reply) || self.trouble.excuses(reply), "{reply}"),
        }
    }

    async fn delete(&mut self, polls: u64) {
        let filter = match self.random.below(2) {
            0 => a_filter(&self.random),
            _ => doc! { "t": { "$lt": DateTime::from_millis(self.random.below(16 * 3_600_000) as i64) } },
        };
        let ticket = self.log.delete(filter.clone(), filter.clone());
        let command = rawdoc! { "delete": "c", "deletes": [{ "q": raw(&filter), "limit": 0 }] };
        let reply = at_most(polls, self.db.command(command)).await;
        self.end(ticket, reply.as_ref());
    }

    async fn update(&mut self, polls: u64) {
        let (filter, meta) = (doc! { "m": format!("s{}", self.random.below(3)) }, format!("s{}", self.random.below(4)));
        let ticket = self.log.update(filter.clone(), meta.clone().into());
        let statement = doc! { "q": filter, "u": { "$set": { "m": meta } }, "multi": true };
        let reply = at_most(polls, self.db.command(raw(&doc! { "update": "c", "updates": [statement] }))).await;
        self.end(ticket, reply.as_ref());
    }

    /// Brings the live queries up to date, one after another or with one command.
    async fn look(&mut self) {
        while self.finds.len() + self.others.len() < 2 * QUERIES {
            let filter = a_filter(&self.random);
            let (of_filter, other) =
                (LiveQuery::of_filter(&self.db, &filter).await, LiveQuery::open(&self.db, &self.random).await);
            let (Some(of_filter), Some(other)) = (of_filter, other) else { return };
            self.finds.push(of_filter);
            self.others.push(other);
        }
        if self.random.chance(50) {
            let began = self.log.now();
            let mut all: Vec<_> = self.finds.iter_mut().chain(&mut self.others).collect();
            let ways = LiveQuery::refresh_together(&mut all).await;
            for (query, how) in self.finds.iter().zip(ways) {
                if let (Some(_), Some(rows)) = (how, &query.rows) {
                    let filter = query.command.get_document("filter").unwrap();
                    self.log.judge(filter, rows, began, self.log.now()).unwrap();
                }
            }
            return;
        }
        for query in &mut self.finds {
            let began = self.log.now();
            if query.refresh().await.is_some()
                && let Some(rows) = &query.rows
            {
                let filter = query.command.get_document("filter").unwrap();
                self.log.judge(filter, rows, began, self.log.now()).unwrap();
            }
        }
        for query in &mut self.others {
            query.refresh().await;
        }
    }
}
