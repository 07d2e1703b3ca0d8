//! Sequential operations by any of the contexts, each of which has some live queries. Whatever has happened, the last result of
//! each equals that of a fresh query.

use std::rc::Rc;

use bson::{Document, doc, rawdoc};
use futures::executor::block_on;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use super::live_queries::{EXPIRY_STEP_MS, LiveQuery, measurement};
use super::{FIRST_NOW_MS, Trouble, ok, open};
use crate::support::faults::{Faulty, Rates};
use crate::support::rows::a_filter;
use crate::support::{Db, Random, TestEnv, raw};

const STEPS: usize = 40;
const QUERIES: usize = 20;

struct World {
    random: Random,
    env: Rc<TestEnv>,
    faulty: Rc<Faulty>,
    storage: Rc<dyn Storage>,
    /// Contexts and their live queries.
    contexts: Vec<(Db, Vec<LiveQuery>)>,
    trouble: Trouble,
    next: i64,
    sent: Vec<Document>,
    dedupes: bool,
    /// True if queries of a context are brought up to date by one command, every second time. Derived from the seed alone.
    are_together: bool,
    /// How often a result was brought up to date from new rows alone, and how often it was known to hold.
    kept: usize,
}

/// Panics if the result of a live query is not that of a fresh one.
pub fn history(seed: u64, trouble: Trouble) {
    block_on(async {
        let (random, env) = (Random::new(seed), TestEnv::new(seed));
        let faulty = Faulty::new(Rc::new(MemoryStorage::new()), Random::new(seed + 1), false);
        let storage: Rc<dyn Storage> = faulty.clone();
        let dedupes = random.chance(8);
        let contexts = (0..2 + random.below(2)).map(|_| (open(&storage, &env, &random, None), Vec::new())).collect();
        let (next, sent, kept) = (0, Vec::new(), 0);
        let are_together = seed.is_multiple_of(2);
        let mut world =
            World { random, env, faulty, storage, contexts, trouble, next, sent, dedupes, are_together, kept };
        world.create(0).await;
        world.insert(0).await;
        if trouble == Trouble::Faults {
            world.faulty.set(Rates { refused: 5, ambiguous: 5, cut_off: 5, unread: 2 });
        }
        for step in 0..STEPS {
            world.step().await;
            let all = step % 8 == 7;
            for at in 0..world.contexts.len() {
                let some = world.random.chance(50);
                world
                    .look(
                        at,
                        if all {
                            100
                        } else if some {
                            25
                        } else {
                            0
                        },
                    )
                    .await;
            }
        }
        assert!(
            world.dedupes || trouble != Trouble::None || world.kept > 10,
            "results are kept only {} times",
            world.kept
        );
    });
}

impl World {
    fn below(&self, n: usize) -> usize {
        self.random.below(n as u64) as usize
    }

    async fn create(&self, at: usize) {
        let mut create = doc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" }, "expireAfterSeconds": FIRST_NOW_MS / 1000 };
        if self.dedupes {
            create.insert("dedupe", doc! { "keep": "last" });
        }
        self.faulty.without(self.contexts[at].0.ok(raw(&create))).await;
    }

    async fn step(&mut self) {
        let at = self.below(self.contexts.len());
        match self.below(32) {
            0..=13 => self.insert(at).await,
            14..=16 => self.run(at, doc! { "flush": 1 }).await,
            17..=19 => self.run(at, doc! { "foldJournals": 1 }).await,
            20..=21 => self.delete(at).await,
            22 => {
                let filter = a_filter(&self.random);
                self.run(at, doc! { "delete": "c", "deletes": [{ "q": filter, "limit": 1 }] }).await;
            }
            // A measurement that is sent again under its earlier metadata would tie with itself in sorts.
            23..=24 if !self.dedupes => {
                let (from, to) = (format!("s{}", self.below(3)), format!("s{}", self.below(4)));
                let statement = doc! { "q": { "m": from }, "u": { "$set": { "m": to } }, "multi": true };
                self.run(at, doc! { "update": "c", "updates": [statement] }).await;
            }
            25 => {
                self.env.now_ms.set(self.env.now_ms.get() + self.random.below(EXPIRY_STEP_MS as u64) as i64);
                self.run(at, doc! { "expire": 1 }).await;
            }
            26 => {
                // Its journal stays.
                if self.random.chance(50) {
                    self.contexts[at].0.engine.close().await;
                }
                self.contexts[at] = (open(&self.storage, &self.env, &self.random, None), Vec::new());
            }
            27 if self.random.chance(40) => {
                self.faulty.without(self.contexts[at].0.ok(rawdoc! { "drop": "c" })).await;
                if self.random.chance(50) {
                    self.look(at, 50).await;
                }
                let by = self.below(self.contexts.len());
                self.create(by).await;
            }
            28 => {
                let granularity = if self.random.chance(50) { "minutes" } else { "hours" };
                self.run(at, doc! { "collMod": "c", "timeseries": { "granularity": granularity } }).await;
            }
            29 => {
                let index = doc! { "key": { "n": 1 }, "name": "n" };
                self.run(at, doc! { "createIndexes": "c", "indexes": [index] }).await;
            }
            30 => {
                let out = doc! { "$out": { "db": "test", "coll": "c" } };
                self.run(
                    at,
                    doc! { "aggregate": "c", "pipeline": [{ "$match": { "n": { "$gt": 3 } } }, out], "cursor": {} },
                )
                .await;
            }
            _ => {
                let queries = &mut self.contexts[at].1;
                if !queries.is_empty() {
                    queries.swap_remove(self.random.below(queries.len() as u64) as usize).close().await;
                }
            }
        }
    }

    /// A command that may fail where storage does, or because of what others have done.
    async fn run(&self, at: usize, command: Document) {
        let reply = self.contexts[at].0.command(raw(&command)).await;
        // A collection cannot return to smaller buckets.
        let is_refused = command.contains_key("collMod") && reply.get_i32("code").ok() == Some(72);
        assert!(ok(&reply) || is_refused || self.trouble.excuses(&reply), "{command}: {reply}");
    }

    async fn delete(&mut self, at: usize) {
        let filter = a_filter(&self.random);
        if !filter.is_empty() || self.random.chance(20) {
            self.run(at, doc! { "delete": "c", "deletes": [{ "q": filter, "limit": 0 }] }).await;
        }
    }

    /// Inserts of several contexts, with folds between them.
    async fn insert(&mut self, at: usize) {
        for _ in 0..1 + self.below(3) {
            let at = if self.random.chance(50) { at } else { self.below(self.contexts.len()) };
            let mut rows: Vec<Document> = Vec::new();
            for _ in 0..1 + self.below(if self.random.chance(5) { 150 } else { 12 }) {
                self.next += 1;
                let again = self.dedupes && !self.sent.is_empty() && self.random.chance(30);
                let row = if again {
                    let mut row = self.sent[self.below(self.sent.len())].clone();
                    row.insert("n", self.next);
                    row
                } else {
                    measurement(&self.random, self.next)
                };
                rows.push(row);
            }
            let sent: Vec<_> = rows.iter().map(raw).collect();
            self.sent.append(&mut rows);
            let reply = self.contexts[at].0.insert("c", &sent).await;
            assert!(ok(&reply) || self.trouble.excuses(&reply), "{reply}");
            if self.random.chance(10) {
                let by = self.below(self.contexts.len());
                self.run(
                    by,
                    if self.random.chance(50) {
                        doc! { "flush": 1 }
                    } else {
                        doc! { "foldJournals": 1 }
                    },
                )
                .await;
            }
        }
    }

    /// Refreshes a percentage of the queries of a context while storage may fail, and compares those that succeed.
    async fn look(&mut self, at: usize, percent: u64) {
        let World { random, faulty, contexts, kept, are_together, .. } = self;
        let (db, queries) = &mut contexts[at];
        while queries.len() < QUERIES {
            queries.push(faulty.without(LiveQuery::open(db, random)).await.unwrap());
        }
        if *are_together && random.chance(50) {
            let mut some: Vec<_> = queries.iter_mut().filter(|_| random.chance(percent)).collect();
            let ways = LiveQuery::refresh_together(&mut some).await;
            for (query, how) in some.into_iter().zip(ways) {
                let Some(how) = how else { continue };
                *kept += usize::from(how != "fresh");
                faulty.without(query.check()).await;
            }
            return;
        }
        for query in queries.iter_mut().filter(|_| random.chance(percent)) {
            let Some(how) = query.refresh().await else { continue };
            *kept += usize::from(how != "fresh");
            faulty.without(query.check()).await;
        }
    }
}
