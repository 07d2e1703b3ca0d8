//! Contexts that send the same measurements at the same time, fold and read. Every read finds each of them once, in a
//! version that no later one has replaced; and once everything rests, no fold changes an answer. In some histories,
//! `dedupe` is turned on and off meanwhile.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use bson::{Bson, DateTime, Document, doc, rawdoc};
use futures::executor::{LocalPool, block_on};
use futures::task::LocalSpawnExt;
use timepail::storage::Storage;
use timepail::storage::memory::MemoryStorage;

use super::{Trouble, at_most, env_of, ok, open};
use crate::support::faults::{Faulty, Rates};
use crate::support::valid_bucket::Writers;
use crate::support::{Db, Random, TestEnv, checks, multiset, raw, take_rows};

const STEPS: i64 = 30;

/// One insert of a measurement.
#[derive(Clone, Copy)]
struct Version {
    n: i64,
    began: u64,
    /// Set if it was acknowledged.
    ended: Option<u64>,
    /// When a read that knew it ended and had found another one.
    beaten: Option<u64>,
}

/// What was sent, by series and time.
#[derive(Default)]
struct Log {
    clock: Cell<u64>,
    versions: RefCell<BTreeMap<(String, i64), Vec<Version>>>,
    next: Cell<i64>,
    phase: Cell<Phase>,
}

/// What `dedupe` is.
#[derive(Clone, Copy, Default)]
enum Phase {
    /// It was never on.
    #[default]
    Never,
    /// A command changes it.
    Changing,
    /// On, and it was acknowledged at that time.
    On(u64),
    /// Off, and it was acknowledged at that time.
    Off(u64),
}

struct Task {
    db: Db,
    random: Random,
    storage: Rc<dyn Storage>,
    env: Rc<TestEnv>,
    log: Rc<Log>,
    trouble: Trouble,
    keeps_first: bool,
}

/// Panics if a measurement is lost, found twice, or found in the wrong version. If `changes`, the collection begins
/// without `dedupe`, and a command changes that.
pub fn history(seed: u64, trouble: Trouble, changes: bool) {
    let (random, env) = (Random::new(seed), env_of(seed));
    let inner: Rc<dyn Storage> = Rc::new(MemoryStorage::new());
    let faulty = Faulty::new(inner, Random::new(seed + 1), true);
    let storage: Rc<dyn Storage> = faulty.clone();
    let first = open(&storage, &env, &random, None);
    let keeps_first = random.chance(40);
    let keep = if keeps_first { "first" } else { "last" };
    let mut create = doc! { "create": "c", "timeseries": { "timeField": "t", "metaField": "m" } };
    let log: Rc<Log> = Rc::default();
    if !changes {
        create.insert("dedupe", doc! { "keep": keep });
        log.phase.set(Phase::On(0));
    }
    block_on(first.ok(raw(&create)));
    if trouble == Trouble::Faults {
        faulty.set(Rates { refused: 6, ambiguous: 6, cut_off: 3, unread: 1 });
    }
    let mut pool = LocalPool::new();
    for at in 0..2 + random.below(2) {
        let db = if random.chance(25) { first.clone() } else { open(&storage, &env, &random, None) };
        let (storage, env, log) = (Rc::clone(&storage), Rc::clone(&env), Rc::clone(&log));
        let task = Task { db, random: Random::new(seed * 31 + at), storage, env, log, trouble, keeps_first };
        pool.spawner().spawn_local(task.run()).unwrap();
    }
    if changes {
        let db = if random.chance(25) { first.clone() } else { open(&storage, &env, &random, None) };
        let (storage, env, log) = (Rc::clone(&storage), Rc::clone(&env), Rc::clone(&log));
        let task = Task { db, random: Random::new(seed * 31 + 9), storage, env, log, trouble, keeps_first };
        pool.spawner().spawn_local(task.change()).unwrap();
    }
    pool.run();
    faulty.set(Rates::default());
    let all = || block_on(first.find(rawdoc! { "find": "c", "batchSize": 10_000 }));
    let before = all();
    log.judge(&before, log.now(), keeps_first);
    let other = open(&storage, &env, &random, None);
    let found = block_on(other.find(rawdoc! { "find": "c", "batchSize": 10_000 }));
    assert_eq!(multiset(&found), multiset(&before), "two contexts do not agree");
    let folded = block_on(checks::sound_when_folded(&*storage, &other, "c", Writers::Several));
    assert_eq!(multiset(&folded), multiset(&before), "a fold has changed an answer");
    assert_eq!(multiset(&all()), multiset(&before), "a fold by another context has changed an answer");
}

impl Log {
    fn now(&self) -> u64 {
        self.clock.set(self.clock.get() + 1);
        self.clock.get()
    }

    /// Checks what a read has found that began at `began`.
    fn judge(&self, found: &[Document], began: u64, keeps_first: bool) {
        let mut seen: BTreeMap<(String, i64), Vec<i64>> = BTreeMap::new();
        for row in found {
            let key = (row.get_str("m").unwrap().to_owned(), row.get_datetime("t").unwrap().timestamp_millis());
            seen.entry(key).or_default().push(row.get_i64("n").unwrap());
        }
        let versions = &mut *self.versions.borrow_mut();
        for (key, seen) in &seen {
            let sent = &versions[key];
            assert!(seen.iter().all(|n| sent.iter().any(|version| version.n == *n)), "a value that nobody has sent");
        }
        let ended = self.now();
        for (key, versions) in versions {
            let known = |version: &&Version| version.ended.is_some_and(|ended| ended < began);
            let seen = seen.get(key).map_or(&[][..], |seen| &seen[..]);
            let is_lost = seen.is_empty() && versions.iter().any(|version| known(&version));
            match self.phase.get() {
                Phase::Never => {
                    for version in versions.iter() {
                        let times = seen.iter().filter(|n| **n == version.n).count();
                        assert!(times < 2 && (times == 1 || !known(&version)), "{key:?}: {} {times} times", version.n);
                    }
                }
                Phase::On(since) if since < began => {
                    assert!(!is_lost, "{key:?} was lost");
                    assert!(seen.len() < 2, "{key:?} was found twice: {seen:?}");
                    seen.iter().for_each(|n| judge_version(*n, versions, (began, ended), since, keeps_first));
                }
                Phase::Off(since) if since < began => assert!(!is_lost, "{key:?} was lost"),
                // Buckets are being moved, or were when the read began.
                _ => {}
            }
        }
    }
}

/// Checks a version that was found by a read from `began` to `ended`, given that `dedupe` is on since a time.
fn judge_version(n: i64, versions: &mut [Version], (began, ended): (u64, u64), since: u64, keeps_first: bool) {
    let version = *versions.iter().find(|version| version.n == n).unwrap();
    let known = |version: &&mut Version| version.ended.is_some_and(|ended| ended < began);
    for other in versions.iter_mut().filter(|other| other.n != n).filter(known) {
        let is_later = match keeps_first {
            true => other.ended.is_some_and(|ended| ended < version.began),
            false => version.ended.is_some_and(|ended| ended < other.began),
        };
        // Nothing is said about two that were both sent before.
        let is_wrong = is_later && (since < version.began || since < other.began);
        assert!(!is_wrong, "found {n} where {} should have won", other.n);
        // Of two versions, the same one wins every time.
        other.beaten.get_or_insert(ended);
    }
    assert!(version.beaten.is_none_or(|beaten| began <= beaten), "found {n}, which had lost to another version before");
}

impl Task {
    /// Turns `dedupe` on, perhaps off and on again.
    async fn change(mut self) {
        for change in 0..[1, 1, 3][self.random.below(3) as usize] {
            for _ in 0..self.random.below(30) {
                timepail::engine::signal::yield_now().await;
            }
            let keep = doc! { "keep": if self.keeps_first { "first" } else { "last" } };
            let is_on = change % 2 == 0;
            let dedupe = if is_on { Bson::Document(keep) } else { Bson::String("off".into()) };
            let command = raw(&doc! { "collMod": "c", "dedupe": dedupe });
            self.log.phase.set(Phase::Changing);
            let mut attempts = 0;
            loop {
                let polls = if self.trouble == Trouble::Faults && self.random.chance(30) {
                    self.random.below(200)
                } else {
                    u64::MAX
                };
                match at_most(polls, self.db.command(command.clone())).await {
                    None => self.db = open(&self.storage, &self.env, &self.random, None),
                    Some(reply) if ok(&reply) => break,
                    Some(reply) => {
                        let is_busy = reply.get_i32("code").ok() == Some(112);
                        assert!(is_busy || self.trouble.excuses(&reply), "{reply}");
                    }
                }
                attempts += 1;
                assert!(attempts < 200, "`dedupe` cannot be changed");
            }
            self.log.versions.borrow_mut().values_mut().flatten().for_each(|version| version.beaten = None);
            let now = self.log.now();
            self.log.phase.set(if is_on { Phase::On(now) } else { Phase::Off(now) });
        }
    }

    async fn run(mut self) {
        for _ in 0..STEPS {
            let faults = self.trouble == Trouble::Faults;
            let polls = if faults && self.random.chance(8) { self.random.below(40) } else { u64::MAX };
            match self.random.below(20) {
                0..=10 => self.insert(polls).await,
                11..=13 => self.other(rawdoc! { "flush": 1 }, polls).await,
                14 => self.other(rawdoc! { "foldJournals": 1 }, polls).await,
                15 => self.db = open(&self.storage, &self.env, &self.random, None),
                _ => self.find().await,
            }
        }
    }

    async fn other(&mut self, command: bson::RawDocumentBuf, polls: u64) {
        match at_most(polls, self.db.command(command)).await {
            None => self.db = open(&self.storage, &self.env, &self.random, None),
            Some(reply) => assert!(ok(&reply) || self.trouble.excuses(&reply), "{reply}"),
        }
    }

    async fn insert(&mut self, polls: u64) {
        // Commits are ordered by the clock.
        self.env.now_ms.set(self.env.now_ms.get() + 1);
        let began = self.log.now();
        let (start, series) = (self.random.below(25), format!("s{}", self.random.below(2)));
        let (mut rows, mut sent) = (Vec::new(), Vec::new());
        for at in 0..1 + self.random.below(10) {
            let n = self.log.next.replace(self.log.next.get() + 1);
            let ms = (start + at) as i64 * if self.random.chance(95) { 500 } else { 500_000 };
            if sent.iter().any(|(_, key): &(i64, (String, i64))| key.1 == ms) {
                continue;
            }
            rows.push(raw(&doc! { "t": DateTime::from_millis(ms), "m": series.clone(), "n": n }));
            sent.push((n, (series.clone(), ms)));
        }
        for (n, key) in &sent {
            let mut versions = self.log.versions.borrow_mut();
            versions.entry(key.clone()).or_default().push(Version { n: *n, began, ended: None, beaten: None });
        }
        let reply = at_most(polls, self.db.insert("c", &rows)).await;
        let ended = self.log.now();
        match &reply {
            None => self.db = open(&self.storage, &self.env, &self.random, None),
            Some(reply) => assert!(ok(reply) || self.trouble.excuses(reply), "{reply}"),
        }
        if reply.is_some_and(|reply| ok(&reply)) {
            for (n, key) in &sent {
                let mut versions = self.log.versions.borrow_mut();
                let version = versions.get_mut(key).unwrap().iter_mut().find(|version| version.n == *n).unwrap();
                version.ended = Some(ended);
            }
        }
    }

    async fn find(&mut self) {
        let began = self.log.now();
        let mut reply = self.db.command(rawdoc! { "find": "c", "batchSize": 2 }).await;
        let mut rows = Vec::new();
        loop {
            if !ok(&reply) {
                assert!(self.trouble.excuses(&reply), "{reply}");
                return;
            }
            let cursor = reply.get_document_mut("cursor").unwrap();
            let key = if cursor.contains_key("firstBatch") { "firstBatch" } else { "nextBatch" };
            rows.extend(take_rows(cursor, key));
            let id = cursor.get_i64("id").unwrap();
            if id == 0 {
                break;
            }
            reply = self.db.command(rawdoc! { "getMore": id, "collection": "c", "batchSize": 3 }).await;
        }
        self.log.judge(&rows, began, self.keeps_first);
    }
}
